/* A walk in program order carries along the accesses that no `synchronize` has
 * ordered yet, on some path: what is Past. What reaches the top of a loop body
 * grows until it holds for every round (as in lifetimes.c); then one more walk
 * compares each access with the past.
 *
 * A past access remembers how many rounds of each loop around the walk have gone
 * by since, so that both accesses can speak of one round's index:
 *
 *     for %i in 0 .. %n {
 *       load_shared %s[%i mod 3]           1 round ago: (%i - 1) mod 3
 *       copy_async .., %s[(%i + 2) mod 3]  <-- compared here
 *     }
 *
 * Loops of few rounds are walked round by round, with the index as a constant. */
#include "memory/hazards_walk.h"

#include "ir/loop.h"
#include "scalar/facts.h"

#include <string.h>

enum {
    UNROLLED = 8,           /* rounds of a loop that is walked round by round, ... */
    UNROLLED_IN_ALL = 64,   /* ... and of all such loops around one op */
    PAST_LIMIT = 1024,
    AGE_LIMIT = 15
};

/* ---- states ------------------------------------------------------------ */

static bool same_past(const Walk *w, const Past *a, const Past *b)
{
    if (a->footprint != b->footprint || a->age != b->age || a->shared != b->shared ||
        a->grouped != b->grouped ||
        memcmp(a->rounds, b->rounds, w->depth) != 0)
        return false;
    for (unsigned d = 0; d < a->footprint->tile.offsets->count; d++)
        if (a->offsets[d] != b->offsets[d])
            return false;
    return true;
}

static Past *state_find(const Walk *w, const State *s, const Past *p)
{
    for (unsigned i = 0; i < s->count; i++)
        if (same_past(w, &s->items[i], p))
            return &s->items[i];
    return NULL;
}

/* Adds `p`, or lets the known one be as certain as both; whether `s` changed. */
static bool state_add(Walk *w, State *s, Past p)
{
    Past *known = state_find(w, s, &p);
    if (known) {
        bool less = known->certain && !p.certain;
        known->certain = known->certain && p.certain;
        return less;
    }
    if (s->count == PAST_LIMIT) {
        hazards_report(w, (Hazard){.kind = HAZARD_UNKNOWN, .first = p.footprint->op});
        return false;
    }
    arena_push(w->arena, s->items, s->count, s->capacity, p);
    return true;
}

static State state_copy(const Walk *w, const State *s)
{
    State copy = {.dead = s->dead};
    for (unsigned i = 0; i < s->count; i++)
        arena_push(w->arena, copy.items, copy.count, copy.capacity, s->items[i]);
    return copy;
}

/* Of two branches: certain is what both have. */
static void state_join(Walk *w, State *to, const State *from)
{
    if (from->dead)
        return;
    if (to->dead) {
        *to = state_copy(w, from);
        return;
    }
    for (unsigned i = 0; i < to->count; i++)
        if (!state_find(w, from, &to->items[i]))
            to->items[i].certain = false;
    for (unsigned i = 0; i < from->count; i++) {
        Past p = from->items[i];
        p.certain = p.certain && state_find(w, to, &p);
        state_add(w, to, p);
    }
}

static bool by_whole_block(const Walk *w)
{
    return w->threads.count == program_threads(w->p);
}

/* One of the whole block orders all that is done; one of a thread_group what its own
 * threads did, and only before what they will do. */
static void state_synchronize(const Walk *w, State *s)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->count; i++) {
        Past p = s->items[i];
        if (p.age == AGE_DONE && by_whole_block(w))
            continue;
        p.grouped |= p.age == AGE_DONE && thread_range_equal(p.threads, w->threads);
        s->items[kept++] = p;
    }
    s->count = kept;
}

/* An mbarrier may order accesses, and end those that it counts; no proof looks at its
 * phases, so nothing stays certain. */
static void state_doubt(State *s)
{
    for (unsigned i = 0; i < s->count; i++)
        s->items[i].certain = false;
}

/* An arrival orders the accesses of its warp that are over. */
static void state_arrive(State *s)
{
    for (unsigned i = 0; i < s->count; i++)
        s->items[i].certain = s->items[i].certain && s->items[i].age != AGE_DONE;
}

/* Replaces the items of completion `c` by what `change` makes of them, merging equal ones.
 * What a thread_group commits, and waits for, are its own copies. */
static void state_change(Walk *w, State *s, Completion c, void (*change)(Past *p, int64_t n),
                         int64_t n)
{
    State old = *s;
    s->count = 0;
    for (unsigned i = 0; i < old.count; i++) {
        Past p = old.items[i];
        bool own = by_whole_block(w) || thread_range_equal(p.threads, w->threads);
        if (own && p.footprint->completion == c)
            change(&p, n);
        state_add(w, s, p);
    }
}

static void change_commit(Past *p, int64_t n)
{
    (void)n;
    p->age = p->age != AGE_DONE && p->age < AGE_LIMIT ? (uint8_t)(p->age + 1) : p->age;
}

static void change_wait(Past *p, int64_t pending)
{
    if (p->age - AGE_STARTED > pending)
        p->age = AGE_DONE;
}

static void report_unfinished(Walk *w, const State *s, const Op *now, const Value *memory)
{
    for (unsigned i = 0; w->comparing && !s->dead && i < s->count; i++) {
        const Past *p = &s->items[i];
        if (p->age != AGE_DONE && p->footprint->mode == MODE_WRITE &&
            (!memory || p->footprint->root == memory))
            hazards_report(w, (Hazard){HAZARD_UNFINISHED, p->certain, p->footprint->op, now,
                               MODE_WRITE, MODE_WRITE, p->footprint->tile.memory});
    }
}

/* ---- the walk ---------------------------------------------------------- */

static void flow_region(Walk *w, const Region *r, State *s);

/* The index of an unrolled loop. */
static const Expr *unrolled_value(Value *v, void *data)
{
    (void)data;
    return v->data;
}

static bool is_written(const Walk *w, const Value *root)
{
    for (unsigned i = 0; i < w->footprint_count; i++)
        if (w->footprints[i].root == root && w->footprints[i].mode != MODE_READ)
            return true;
    return false;
}

static void flow_access(Walk *w, const Op *op, State *s)
{
    Footprint *f = &w->footprints[op->mark - 1];
    unsigned count = 0;
    const Expr *const *offsets[ACCESSES_MAX];
    for (; f + count < w->footprints + w->footprint_count && f[count].op == op; count++) {
        const Attr *written = f[count].tile.offsets;
        const Expr **resolved = arena_array(w->arena, const Expr *, written->count);
        hazards_substitute(w, written->exprs, written->count, unrolled_value, NULL, resolved);
        offsets[count] = resolved;
        for (unsigned i = 0; w->comparing && i < s->count; i++)
            hazards_compare(w, &s->items[i], &f[count], offsets[count]);
        if (w->comparing)
            hazards_compare_with_itself(w, &f[count]);
    }
    for (unsigned i = 0; i < count; i++) {
        Past p = {.footprint = &f[i], .offsets = offsets[i], .shared = (uint8_t)w->depth,
                  .age = op_is_async(op) ? AGE_STARTED : AGE_DONE,
                  .certain = w->certain, .threads = w->threads};
        if (is_written(w, f[i].root))
            state_add(w, s, p);
    }
}

static State *loop_entry(Walk *w)
{
    unsigned n = w->loop++;
    if (n == w->loop_count) {
        State none = {.dead = true};
        arena_push(w->arena, w->entries, w->loop_count, w->loop_capacity, none);
    }
    return &w->entries[n];
}

/* The most rounds a loop can have, as far as is known. */
static int64_t most_rounds(const Op *op, const Loop *loop)
{
    ScalarFacts lower = facts_of_expr(loop->lower);
    ScalarFacts upper = facts_of_expr(op_expr(op, ATTR_UPPER));
    int64_t span, step = loop->step && expr_is_constant(loop->step) ? loop->step->constant : 1;
    if (lower.min == INT64_MIN || upper.max == INT64_MAX || step < 1 ||
        __builtin_sub_overflow(upper.max, lower.min, &span))
        return INT64_MAX;
    return span <= 0 ? 0 : (span - 1) / step + 1;
}

/* What was true at the end of a round, at the top of the next one. */
static void enter_round(Walk *w, State *entry, const State *end, int64_t most)
{
    unsigned n = w->depth - 1;
    for (unsigned i = 0; !end->dead && i < end->count; i++) {
        Past p = end->items[i];
        if (p.rounds[n] < HAZARD_ROUNDS)
            p.rounds[n]++;
        if (p.rounds[n] < most)
            w->grown |= state_add(w, entry, p);
    }
}

/* After the loop: its rounds count no more. An access before it is certain when
 * no number of rounds has ordered it, one of the last round when it was. */
static void leave_loop(Walk *w, State *s, const State *end)
{
    unsigned n = w->depth - 1;
    w->depth = n;
    for (unsigned i = 0; !end->dead && i < end->count; i++) {
        Past p = end->items[i];
        bool inside = p.shared > n;
        p.certain = p.certain && p.rounds[n] == (inside ? 0 : HAZARD_ROUNDS);
        p.shared = inside ? (uint8_t)n : p.shared;
        p.rounds[n] = 0;
        Past *known = state_find(w, s, &p);
        if (known)
            known->certain = known->certain || p.certain;
        else
            state_add(w, s, p);
    }
    s->dead = s->dead && end->dead;
}

static void flow_rounds(Walk *w, const Op *op, State *s, const Loop *loop)
{
    bool is_for = op->code == OP_for, was_certain = w->certain;
    int64_t most = is_for ? most_rounds(op, loop) : INT64_MAX;
    State *entry = loop_entry(w);
    unsigned number = w->loop - 1;
    w->loops[w->depth++] = *loop;
    w->certain = was_certain && is_for;
    w->grown |= entry->dead && !s->dead;
    entry->dead = entry->dead && s->dead;
    for (unsigned i = 0; i < s->count; i++) {
        Past p = s->items[i];
        p.rounds[w->depth - 1] = 0;
        w->grown |= state_add(w, entry, p);
    }
    State end = state_copy(w, entry);
    for (unsigned r = 0; r < op->region_count; r++)
        flow_region(w, op->regions[r], &end);
    enter_round(w, &w->entries[number], &end, most);
    w->certain = was_certain;
    for (unsigned i = 0; i < s->count; i++)
        s->items[i].certain = false;
    leave_loop(w, s, &end);
}

/* A loop whose rounds are known and few. */
static bool is_unrolled(const Walk *w, const Op *op, const Loop *loop, int64_t *rounds)
{
    const Expr *upper = op_expr(op, ATTR_UPPER);
    if (!expr_is_constant(loop->lower) || !expr_is_constant(upper) ||
        (loop->step && !expr_is_constant(loop->step)))
        return false;
    *rounds = most_rounds(op, loop);
    return *rounds <= UNROLLED && w->unrolled * *rounds <= UNROLLED_IN_ALL;
}

static void flow_unrolled(Walk *w, const Op *op, State *s, const Loop *loop, int64_t rounds)
{
    Value *index = for_index(op);
    int64_t step = loop->step ? loop->step->constant : 1, unrolled = w->unrolled;
    w->unrolled *= rounds ? rounds : 1;
    for (int64_t i = 0; i < rounds; i++) {
        index->data = (void *)expr_constant(&w->m->exprs, loop->lower->constant + i * step);
        flow_region(w, op->regions[0], s);
    }
    index->data = NULL;
    w->unrolled = unrolled;
}

static void flow_loop(Walk *w, const Op *op, State *s)
{
    Loop loop = {.op = op};
    int64_t rounds;
    if (op->code == OP_for) {
        const Expr *step = op_expr(op, ATTR_STEP);
        loop.lower = expr_substitute(&w->m->exprs, op_expr(op, ATTR_LOWER), unrolled_value,
                                     NULL);
        loop.step = step ? expr_substitute(&w->m->exprs, step, unrolled_value, NULL) : NULL;
        if (is_unrolled(w, op, &loop, &rounds)) {
            flow_unrolled(w, op, s, &loop, rounds);
            return;
        }
    }
    if (w->depth == HAZARD_LOOPS)
        hazards_report(w, (Hazard){.kind = HAZARD_UNKNOWN, .first = op});
    else
        flow_rounds(w, op, s, &loop);
}

static void flow_if(Walk *w, const Op *op, State *s)
{
    State before = state_copy(w, s);
    flow_region(w, op->regions[0], s);
    flow_region(w, op->regions[1], &before);
    state_join(w, s, &before);
}

/* Other groups may run at the same time: what they do is not ordered, and not certain
 * to meet. */
static void flow_group(Walk *w, const Op *op, State *s)
{
    ThreadRange threads = w->threads;
    bool certain = w->certain;
    w->threads = region_threads(op->regions[0]);
    w->certain = w->certain && by_whole_block(w);
    flow_region(w, op->regions[0], s);
    w->threads = threads;
    w->certain = certain;
}

static void flow_wait(Walk *w, const Op *op, State *s)
{
    if (op_syncs(op, SYNC_WAIT, COMPLETION_MBARRIER))
        state_doubt(s);
    else
        state_change(w, s, op_info[op->code].sync.completion, change_wait,
                     op_expr(op, ATTR_NUMBER)->constant);
}

/* An acquire and a release are barriers, too. */
static void flow_sync(Walk *w, const Op *op, State *s)
{
    SyncKind kind = op_sync(op);
    if (kind == SYNC_BARRIER || kind == SYNC_ACQUIRE || kind == SYNC_RELEASE)
        state_synchronize(w, s);
    else if (kind == SYNC_COMMIT)
        state_change(w, s, op_info[op->code].sync.completion, change_commit, 0);
    else if (kind == SYNC_WAIT)
        flow_wait(w, op, s);
    else if (kind == SYNC_ARRIVE)
        state_arrive(s);
}

static void flow_op(Walk *w, const Op *op, State *s)
{
    if (op->mark) {
        flow_access(w, op, s);
    } else if (op_sync(op) != SYNC_NONE) {
        flow_sync(w, op, s);
    } else if (op->code == OP_allocate_shared) {
        report_unfinished(w, s, op, op->results[0]);
    } else if (op->code == OP_exit) {
        report_unfinished(w, s, op, NULL);
        *s = (State){.dead = true};
    } else if (op->code == OP_if) {
        flow_if(w, op, s);
    } else if (op->code == OP_thread_group) {
        flow_group(w, op, s);
    } else if (op->region_count) {
        flow_loop(w, op, s);
    }
}

static void flow_region(Walk *w, const Region *r, State *s)
{
    for (const Op *op = r->first; op && !s->dead; op = op->next)
        flow_op(w, op, s);
}

/* ---- all of it --------------------------------------------------------- */

static bool add_footprints(Op *op, void *data)
{
    Walk *w = data;
    Footprint f[ACCESSES_MAX];
    unsigned count = footprints_of(w->m, op, f);
    if (count)
        op->mark = w->footprint_count + 1;
    for (unsigned i = 0; i < count; i++)
        w->footprints[w->footprint_count++] = f[i];
    return true;
}

static bool count_ops(Op *op, void *data)
{
    (void)op;
    ++*(size_t *)data;
    return true;
}

static void walk_body(Walk *w)
{
    State s = {.dead = false};
    w->grown = false;
    w->loop = 0;
    w->certain = true;
    w->threads = (ThreadRange){0, program_threads(w->p)};
    flow_region(w, w->p->body, &s);
    report_unfinished(w, &s, NULL, NULL);
}

Hazards hazards_of(Program *p)
{
    Walk w = {.p = p, .m = p->module, .arena = &p->module->scratch, .unrolled = 1};
    size_t ops = 0;
    region_walk(p->body, count_ops, &ops);
    w.footprints = arena_array(w.arena, Footprint, ACCESSES_MAX * ops);
    region_walk(p->body, add_footprints, &w);
    do
        walk_body(&w);
    while (w.grown);
    w.comparing = true;
    walk_body(&w);
    hazards_compare_blocks(&w);
    program_clear_data(p);
    return w.found;
}
