/* A walk in program order carries along the pending accesses, which no `synchronize`
 * has ordered yet, on some path. The set at the top of a loop body grows until it holds
 * for every iteration (as in lifetimes.c); then one more walk compares each access with
 * the pending ones.
 *
 * A pending access counts the iterations of each loop around the walk that have gone by
 * since, so that both accesses can speak of one iteration's index:
 *
 *     for %i in 0 .. %n {
 *       load_shared %s[%i mod 3]           1 iteration ago: (%i - 1) mod 3
 *       copy_async .., %s[(%i + 2) mod 3]  <-- compared here
 *     }
 *
 * A loop of few iterations is walked once an iteration, with the index as a constant. */
#include "memory/hazards_walk.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "scalar/facts.h"

#include <assert.h>
#include <string.h>

enum {
    UNROLLED = 8,           /* iterations of a loop that is walked once an iteration, ... */
    UNROLLED_IN_ALL = 64,   /* ... and of all such loops around one op */
    PENDING_LIMIT = 1024,
    AGE_LIMIT = 15
};

/* ---- states ------------------------------------------------------------ */

static bool same_pending(const Walk *w, const Pending *a, const Pending *b)
{
    if (a->footprint != b->footprint || a->age != b->age || a->shared != b->shared ||
        a->grouped != b->grouped ||
        memcmp(a->iterations, b->iterations, w->depth) != 0)
        return false;
    for (unsigned d = 0; d < a->footprint->tile.offsets->count; d++)
        if (a->offsets[d] != b->offsets[d])
            return false;
    return true;
}

static Pending *state_find(const Walk *w, const State *s, const Pending *p)
{
    for (unsigned i = 0; i < s->count; i++)
        if (same_pending(w, &s->items[i], p))
            return &s->items[i];
    return NULL;
}

/* Adds `p`, or lets the known one be as certain as both. Returns true when `s` changed. */
static bool state_add(Walk *w, State *s, Pending p)
{
    Pending *known = state_find(w, s, &p);
    if (known) {
        bool less = known->certain && !p.certain;
        known->certain = known->certain && p.certain;
        return less;
    }
    if (s->count == PENDING_LIMIT) {
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

/* Joins two branches: an access is certain when both have it. */
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
        Pending p = from->items[i];
        p.certain = p.certain && state_find(w, to, &p);
        state_add(w, to, p);
    }
}

static bool by_whole_block(const Walk *w)
{
    return w->threads.count == program_threads(w->p);
}

/* A `synchronize` of the whole block orders every access that is over; one of a
 * thread_group orders those of its threads, and only before their later ones. */
static void state_synchronize(Walk *w, State *s, const Op *by)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < s->count; i++) {
        Pending p = s->items[i];
        bool own = p.age == AGE_DONE && thread_range_equal(p.threads, w->threads);
        bool whole = p.age == AGE_DONE && by_whole_block(w);
        if ((own && !p.grouped) || whole)
            hazards_ordered(w, p.footprint, by);
        if (whole)
            continue;
        p.grouped |= own;
        s->items[kept++] = p;
    }
    s->count = kept;
}

/* An mbarrier may order accesses, and end those that it counts, which rings.h looks into; a
 * path tells nothing, so nothing stays certain. */
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
 * A thread_group commits, and waits for, its own copies; bulk stores are those of the first
 * of the threads. `reads`: only what copies read. */
static void state_change(Walk *w, State *s, const Op *by, Completion c, bool reads,
                         void (*change)(Pending *p, int64_t n), int64_t n)
{
    State old = *s;
    s->count = 0;
    for (unsigned i = 0; i < old.count; i++) {
        Pending p = old.items[i];
        bool own = c == COMPLETION_BULK_GROUP
                       ? p.threads.begin == w->threads.begin
                       : by_whole_block(w) || thread_range_equal(p.threads, w->threads);
        bool meant = !reads || p.footprint->mode == MODE_READ;
        if (own && meant && p.footprint->completion == c)
            change(&p, n);
        if (p.age == AGE_DONE && old.items[i].age != AGE_DONE)
            hazards_ordered(w, p.footprint, by);
        state_add(w, s, p);
    }
}

static void change_commit(Pending *p, int64_t n)
{
    (void)n;
    p->age = p->age != AGE_DONE && p->age < AGE_LIMIT ? (uint8_t)(p->age + 1) : p->age;
}

static void change_wait(Pending *p, int64_t pending)
{
    assert(pending >= 0);
    if (p->age - AGE_STARTED > pending)
        p->age = AGE_DONE;
}

/* Returns true when the op that ends a copy is known to come before the end of the block. */
static bool is_finished(const Walk *w, const Pending *p, const Op *now)
{
    return !now && w->rings && p->footprint->completion == COMPLETION_MBARRIER &&
           rings_finish(w->rings, p->footprint->op);
}

/* A bulk store may still write global memory when its block ends, which it reads no more. */
static bool must_end(const Footprint *f)
{
    return f->mode == (f->completion == COMPLETION_BULK_GROUP ? MODE_READ : MODE_WRITE);
}

static void report_unfinished(Walk *w, const State *s, const Op *now, const Value *memory)
{
    for (unsigned i = 0; w->comparing && !s->dead && i < s->count; i++) {
        const Pending *p = &s->items[i];
        if (is_finished(w, p, now))
            continue;
        if (p->age != AGE_DONE && must_end(p->footprint) &&
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
        Pending p = {.footprint = &f[i], .offsets = offsets[i], .shared = (uint8_t)w->depth,
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

/* Returns an upper bound of the iterations of a loop. */
static int64_t most_iterations(const Op *op, const Loop *loop)
{
    ScalarFacts lower = facts_of_expr(loop->lower);
    ScalarFacts upper = facts_of_expr(op_expr(op, ATTR_UPPER));
    int64_t span, step = loop->step && expr_is_constant(loop->step) ? loop->step->constant : 1;
    if (lower.min == INT64_MIN || upper.max == INT64_MAX || step < 1 ||
        __builtin_sub_overflow(upper.max, lower.min, &span))
        return INT64_MAX;
    return span <= 0 ? 0 : (span - 1) / step + 1;
}

/* Hands pending accesses at the end of an iteration on to the top of the next one. */
static void enter_iteration(Walk *w, State *entry, const State *end, int64_t most)
{
    assert(w->depth > 0);
    unsigned n = w->depth - 1;
    for (unsigned i = 0; !end->dead && i < end->count; i++) {
        Pending p = end->items[i];
        if (p.iterations[n] < HAZARD_ITERATIONS)
            p.iterations[n]++;
        if (p.iterations[n] < most)
            w->grown |= state_add(w, entry, p);
    }
}

/* Drops the iterations of the loop that ends. An access before the loop is certain when
 * no number of iterations has ordered it, one of the last iteration when it was. */
static void leave_loop(Walk *w, State *s, const State *end)
{
    assert(w->depth > 0);
    unsigned n = w->depth - 1;
    w->depth = n;
    for (unsigned i = 0; !end->dead && i < end->count; i++) {
        Pending p = end->items[i];
        bool inside = p.shared > n;
        p.certain = p.certain && p.iterations[n] == (inside ? 0 : HAZARD_ITERATIONS);
        p.shared = inside ? (uint8_t)n : p.shared;
        p.iterations[n] = 0;
        Pending *known = state_find(w, s, &p);
        if (known)
            known->certain = known->certain || p.certain;
        else
            state_add(w, s, p);
    }
    s->dead = s->dead && end->dead;
}

static void flow_iterations(Walk *w, const Op *op, State *s, const Loop *loop)
{
    bool is_for = op->code == OP_for, was_certain = w->certain;
    int64_t most = is_for ? most_iterations(op, loop) : INT64_MAX;
    State *entry = loop_entry(w);
    unsigned number = w->loop - 1;
    w->loops[w->depth++] = *loop;
    w->certain = was_certain && is_for;
    w->grown |= entry->dead && !s->dead;
    entry->dead = entry->dead && s->dead;
    for (unsigned i = 0; i < s->count; i++) {
        Pending p = s->items[i];
        p.iterations[w->depth - 1] = 0;
        w->grown |= state_add(w, entry, p);
    }
    State end = state_copy(w, entry);
    for (unsigned r = 0; r < op->region_count; r++)
        flow_region(w, op->regions[r], &end);
    enter_iteration(w, &w->entries[number], &end, most);
    w->certain = was_certain;
    for (unsigned i = 0; i < s->count; i++)
        s->items[i].certain = false;
    leave_loop(w, s, &end);
}

/* Returns true when the iterations of the loop are known and few. */
static bool is_unrolled(const Walk *w, const Op *op, const Loop *loop, int64_t *iterations)
{
    const Expr *upper = op_expr(op, ATTR_UPPER);
    if (!expr_is_constant(loop->lower) || !expr_is_constant(upper) ||
        (loop->step && !expr_is_constant(loop->step)) || rings_number(w->rings, op))
        return false;
    *iterations = most_iterations(op, loop);
    return *iterations <= UNROLLED && w->unrolled * *iterations <= UNROLLED_IN_ALL;
}

static void flow_unrolled(Walk *w, const Op *op, State *s, const Loop *loop,
                          int64_t iterations)
{
    Value *index = for_index(op);
    int64_t step = loop->step ? loop->step->constant : 1, unrolled = w->unrolled;
    w->unrolled *= iterations ? iterations : 1;
    for (int64_t i = 0; i < iterations; i++) {
        index->data = (void *)expr_constant(&w->m->exprs, loop->lower->constant + i * step);
        flow_region(w, op->regions[0], s);
    }
    index->data = NULL;
    w->unrolled = unrolled;
}

static void flow_loop(Walk *w, const Op *op, State *s)
{
    Loop loop = {.op = op};
    int64_t iterations;
    if (op->code == OP_for) {
        const Expr *step = op_expr(op, ATTR_STEP);
        loop.lower = expr_substitute(&w->m->exprs, op_expr(op, ATTR_LOWER), unrolled_value,
                                     NULL);
        loop.step = step ? expr_substitute(&w->m->exprs, step, unrolled_value, NULL) : NULL;
        if (is_unrolled(w, op, &loop, &iterations)) {
            flow_unrolled(w, op, s, &loop, iterations);
            return;
        }
    }
    if (w->depth == HAZARD_LOOPS)
        hazards_report(w, (Hazard){.kind = HAZARD_UNKNOWN, .first = op});
    else
        flow_iterations(w, op, s, &loop);
}

static void flow_if(Walk *w, const Op *op, State *s)
{
    State before = state_copy(w, s);
    flow_region(w, op->regions[0], s);
    flow_region(w, op->regions[1], &before);
    state_join(w, s, &before);
}

/* Other groups may run at the same time: their accesses are not ordered, and not certain
 * to be reached. */
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
        state_change(w, s, op, op_info[op->code].sync.completion, bulk_wait_reads(op), change_wait,
                     op_wait_pending(op));
}

/* An acquire and a release are barriers, too. */
static void flow_sync(Walk *w, const Op *op, State *s)
{
    SyncKind kind = op_sync(op);
    if (op_is_barrier(op) || kind == SYNC_ACQUIRE || kind == SYNC_RELEASE)
        state_synchronize(w, s, op);
    else if (kind == SYNC_COMMIT)
        state_change(w, s, op, op_info[op->code].sync.completion, false, change_commit, 0);
    else if (kind == SYNC_WAIT)
        flow_wait(w, op, s);
    else if (kind == SYNC_ARRIVE)
        state_arrive(s);
}

static void flow_op(Walk *w, const Op *op, State *s)
{
    diag_check_time(w->m->diag, op->loc);
    if (op->mark) {
        flow_access(w, op, s);
        if (op_commits_product(op))
            state_change(w, s, op, COMPLETION_PRODUCT, false, change_commit, 0);
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

static void report_phases(Walk *w)
{
    const Op *op;
    for (unsigned n = 0; w->rings && (op = rings_unknown(w->rings, n)); n++)
        hazards_report(w, (Hazard){.kind = HAZARD_PHASE, .first = op,
                                   .memory = op->operands[op->operand_count - 1]});
}

static bool add_footprints(Op *op, void *data)
{
    Walk *w = data;
    Footprint f[ACCESSES_MAX];
    unsigned count = footprints_of(w->m, op, f);
    bool remote = op_is_remote(op) && program_blocks(w->p) > 1;
    if (remote && !(w->rings && rings_know(w->rings, op)))
        hazards_report(w, (Hazard){.kind = HAZARD_REMOTE, .first = op});
    else if (count)
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

static Hazards find_hazards(Program *p, bool proving)
{
    Walk w = {.p = p, .proving = proving, .m = p->module, .arena = &p->module->scratch,
              .unrolled = 1};
    size_t ops = 0;
    region_walk(p->body, count_ops, &ops);
    w.rings = rings_of(p);
    w.footprints = arena_array(w.arena, Footprint, ACCESSES_MAX * ops);
    region_walk(p->body, add_footprints, &w);
    do
        walk_body(&w);
    while (w.grown);
    w.comparing = true;
    report_phases(&w);
    walk_body(&w);
    hazards_compare_blocks(&w);
    hazards_compare_cluster(&w);
    hazards_prove_ordered(&w);
    w.found.rings = w.rings;
    program_clear_data(p);
    return w.found;
}

Hazards hazards_of(Program *p)
{
    return find_hazards(p, false);
}

Hazards hazards_explained(Program *p)
{
    return find_hazards(p, true);
}
