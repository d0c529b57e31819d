/* Proves which mbarriers mean the phases that their ops name, and which accesses they order. */
#include "memory/rings_events.h"

#include "ir/op_access.h"
#include "scalar/difference.h"
#include "scalar/facts.h"
#include "scalar/linear.h"

enum { DISTANCES = 64 };        /* of unordered iterations, at which tiles are compared */

/* ---- checks -------------------------------------------------------------------- */

static const Event *stream_event(const Rings *r, int stream, unsigned *i)
{
    for (; *i < r->event_count; ++*i)
        if (r->events[*i]->kind == EVENT_ARRIVE && r->events[*i]->stream == stream)
            return r->events[*i];
    return NULL;
}

/* Returns true when every arrival of the stream that may be for the number of `e` plus `lag`
 * knows that `e` has been. */
static bool stream_knows(const Rings *r, int stream, const Event *e, int64_t lag)
{
    const Event *a;
    for (unsigned i = 0; (a = stream_event(r, stream, &i)); i++) {
        Lag given = a->given[e->id];
        if (events_are_apart(a, a->lag, e, lag) || given == LAG_ALL)
            continue;
        if (given == LAG_NONE || given < a->lag - lag)
            return false;
    }
    return true;
}

/* Returns true when the phase of that ticket cannot end before `e`. */
static bool ends_after(const Rings *r, const Event *e, int64_t lag)
{
    const RingArray *b = &r->arrays[e->array];
    for (unsigned n = 0; n < b->stream_count; n++)
        if (stream_knows(r, b->streams[n], e, lag))
            return true;
    return false;
}

/* Returns true when the phase before that of the ticket is known to have ended, in each block
 * that the event has to do with. */
static bool knows_before(const Rings *r, const Event *e)
{
    Lag end = (e->everywhere ? e->all : e->done)[e->array];
    return end == LAG_ALL || (end != LAG_NONE && end >= e->lag - r->arrays[e->array].count);
}

/* Returns true when the wait may be for a phase before -1. */
static bool is_too_early(const Rings *r, const Event *e)
{
    return !e->vacuous && event_least(e) + e->lag < -r->arrays[e->array].count;
}

/* Returns true when `a` may arrive for the ticket of the wait, and not after it. */
static bool may_end_phase(const Event *a, const Event *wait)
{
    Lag given = a->given[wait->id];
    bool after = given == LAG_ALL || (given != LAG_NONE && given >= a->lag - wait->lag);
    return !after && !events_are_apart(a, a->lag, wait, wait->lag);
}

/* Returns true unless all arrivals for the phase of a wait that happens once come after it. */
static bool may_end(const Rings *r, const Event *e)
{
    const RingArray *b = &r->arrays[e->array];
    for (unsigned n = 0; !e->segment->loop && e->lag >= 0 && n < b->stream_count; n++) {
        unsigned i = 0;
        const Event *a;
        while ((a = stream_event(r, b->streams[n], &i)) && !may_end_phase(a, e))
            i++;
        if (!a)
            return false;
    }
    return true;
}

/* Returns true when `e` means the phase of its ticket. */
static bool means_its_phase(const Rings *r, const Event *e)
{
    if (!e->placed || !knows_before(r, e))
        return false;
    switch (e->kind) {
    case EVENT_WAIT:
        return !is_too_early(r, e) && may_end(r, e) &&
               ends_after(r, e, e->lag + r->arrays[e->array].count);
    case EVENT_ACCESS: return ends_after(r, e, e->lag);
    default: return true;
    }
}

/* Returns true when the streams of an array are as many warps as its phases count, of all blocks
 * that arrive. */
static bool streams_add_up(const Rings *r, const RingArray *b)
{
    enum { WARP = 32 };
    int64_t warps = 0;
    for (unsigned n = 0; n < b->stream_count; n++) {
        unsigned i = 0;
        const Event *a = stream_event(r, b->streams[n], &i);
        warps += r->ranges[a->range].count / WARP;
    }
    return warps * (b->everywhere ? program_blocks(r->p) : 1) == b->arrivals;
}

/* A parity names phases two apart: the earlier one is meant where the later one, which comes
 * first in the text, is too far ahead. Returns true when that is to be tried. */
static bool try_earlier_phases(Rings *r)
{
    bool found = false;
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        Event *e = r->events[i];
        if (e->kind != EVENT_WAIT || !e->placed || e->earlier || knows_before(r, e))
            continue;
        e->earlier = found = true;
        e->lag -= 2 * r->arrays[e->array].count;
    }
    return found;
}

static void set_unknown(Rings *r, int array, const Op *op)
{
    r->arrays[array].unknown = op;
    r->unknown[r->unknown_count++] = op;
}

/* Returns true when a phase of events of the kind has become unknown. */
static bool check_kind(Rings *r, bool waits)
{
    bool found = false;
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->array < 0 || (e->kind == EVENT_WAIT) != waits || r->arrays[e->array].unknown ||
            means_its_phase(r, e))
            continue;
        set_unknown(r, e->array, e->op);
        found = true;
    }
    return found;
}

/* A wrong wait is rather the cause of what else is not known than the other way round. */
static bool check_events(Rings *r)
{
    return try_earlier_phases(r) || check_kind(r, true) || check_kind(r, false);
}

static const Op *first_arrival(const Rings *r, int array)
{
    const Op *op = NULL;
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->array == array && (!op || (op_sync(op) != SYNC_ARRIVE &&
                                          e->kind == EVENT_ARRIVE)))
            op = e->op;
    }
    return op;
}

static void check_arrays(Rings *r)
{
    for (unsigned i = 0; i < r->array_count; i++)
        if (!r->arrays[i].unknown && first_arrival(r, (int)i) &&
            (r->full || !streams_add_up(r, &r->arrays[i])))
            set_unknown(r, (int)i, first_arrival(r, (int)i));
}

/* An op of which the ticket is not known comes before all that follows from it. */
static void check_places(Rings *r)
{
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->array >= 0 && !e->placed && !r->arrays[e->array].unknown)
            set_unknown(r, e->array, e->op);
    }
}

static bool is_mbarrier(Op *op, void *data)
{
    (void)data;
    return op->code != OP_allocate_mbarrier;
}

Rings *rings_of(Program *p)
{
    if (region_walk(p->body, is_mbarrier, NULL))
        return NULL;
    Rings *r = arena_new(&p->module->scratch, Rings);
    *r = (Rings){.m = p->module, .p = p, .arena = &p->module->scratch};
    rings_build(r);
    check_places(r);
    check_arrays(r);
    do
        rings_flow(r);
    while (check_events(r));
    return r;
}

bool rings_phase(const Rings *r, const Op *op, RingPhase *phase)
{
    for (unsigned i = 0; r && i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->op != op || e->array < 0)
            continue;
        const RingArray *a = &r->arrays[e->array];
        *phase = (RingPhase){a->value, a->count, a->arrivals, e->lag, e->placed && !a->unknown};
        return true;
    }
    return false;
}

const Op *rings_unknown(const Rings *r, unsigned n)
{
    return n < r->unknown_count ? r->unknown[n] : NULL;
}

bool rings_number(const Rings *r, const Op *loop)
{
    for (unsigned i = 0; r && i < r->segment_count; i++) {
        if (r->segments[i]->loop == loop)
            return true;
        for (unsigned j = 0; j < r->segments[i]->outer_count; j++)
            if (r->segments[i]->outer[j].op == loop)
                return true;
    }
    return false;
}

/* ---- pairs ------------------------------------------------------------------------- */

/* Returns what is known at `y` of `x`, its accesses over, relative to the number of `y`: a copy to
 * all blocks meets the accesses of each. */
static Lag known_of(const Rings *r, const Event *y, const Event *x)
{
    const Lag *known = y->everywhere ? y->all : y->done;
    if (x->array < 0)
        return known[x->id];
    Lag end = r->arrays[x->array].unknown ? LAG_NONE : known[x->array];
    return end == LAG_NONE || end == LAG_ALL ? end : (Lag)(end - x->lag);
}

/* Returns true for an index of blocks by the blocks of a cluster in that dimension. */
static bool is_cluster_index(const Expr *e)
{
    const Op *def = e->a->kind == EXPR_VALUE ? e->a->value->def : NULL;
    return e->op == SCALAR_div && def && def->code == OP_block_indices &&
           expr_is_constant(e->b) &&
           e->b->constant == def->parent->program->cluster[e->a->value->index];
}

/* Returns true when all blocks of a cluster have the same value. */
static bool is_alike(const Expr *e)
{
    if (e->kind == EXPR_OP)
        return is_cluster_index(e) || (is_alike(e->a) && (!e->b || is_alike(e->b)));
    return e->kind == EXPR_CONSTANT || e->value->program;
}

/* Returns true when the loops of the event end at the same number in all blocks of a cluster. */
static bool ends_alike(const Event *e)
{
    return is_alike(e->segment->end);
}

/* Returns true when all of `x` are over at `y`, which no loop numbers or another one; `x` may be of
 * any block of a cluster. */
static bool is_all_over(const Rings *r, const Event *y, const Event *x, bool any_block)
{
    int64_t left;
    Lag lag = known_of(r, y, x);
    if (lag == LAG_ALL || lag == LAG_NONE)
        return lag == LAG_ALL;
    return x->segment && (!any_block || ends_alike(x)) &&
           !(y->segment && y->base == y->segment->number) &&
           ring_difference(x->segment->end, y->base, &left) && left + lag + 1 >= 0;
}

/* A number, in terms of a fresh symbol. */
typedef struct Numbering {
    Rings *r;
    const Event *e;
    const Expr *symbol;         /* its number */
    bool any_block;             /* of which block is not known */
    Value *values[16];          /* of the loops around it, ... */
    const Expr *fresh[16];      /* ... and any that they may be */
    unsigned count;
} Numbering;

/* Returns true for a value that the two accesses of a question share. */
static bool is_shared_value(const Numbering *n, const Value *v)
{
    return v->program || (!n->any_block && v->def && (v->def->code == OP_block_indices ||
                                                      v->def->code == OP_cluster_rank));
}

static const Expr *numbered_value(Value *v, void *data);

/* Any value: one symbol for each that is mapped. */
static const Expr *any_value(Numbering *n, Value *v)
{
    for (unsigned i = 0; i < n->count; i++)
        if (n->values[i] == v)
            return n->fresh[i];
    ScalarFacts f = facts_of_value(v);
    const Expr *fresh = ring_fresh_value(n->r, v->type, f.min, f.max);
    if (n->count < 16) {
        n->values[n->count] = v;
        n->fresh[n->count++] = fresh;
    }
    return fresh;
}

static const Expr *make(Rings *r, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    return a && b ? expr_make(&r->m->exprs, op, a, b, &why) : NULL;
}

/* The sum of terms other than `index`. */
static const Expr *rest_of_number(Numbering *n, const LinearSum *s, const Expr *index)
{
    ExprTable *t = &n->r->m->exprs;
    const Expr *sum = expr_constant(t, s->constant);
    for (unsigned i = 0; i < s->count; i++) {
        if (s->terms[i].leaf == index)
            continue;
        const Expr *leaf = expr_substitute(t, s->terms[i].leaf, numbered_value, n);
        sum = make(n->r, SCALAR_add, sum,
                   make(n->r, SCALAR_mul, expr_constant(t, s->terms[i].factor), leaf));
    }
    return sum;
}

/* The loop's index, from the number: index + rest, or (index - lower) / step, as its numbers go
 * up by one. */
static const Expr *index_of_number(Numbering *n, Value *index)
{
    ExprTable *t = &n->r->m->exprs;
    const Segment *g = n->e->segment;
    const Expr *i = expr_value(t, index);
    LinearSum s = {.count = 0};
    if (linear_add(&s, g->number, 1) && linear_factor(&s, i) == 1)
        return make(n->r, SCALAR_sub, n->symbol, rest_of_number(n, &s, i));
    int64_t none;
    const Expr *lower = op_expr(g->loop, ATTR_LOWER);
    if (g->number->kind != EXPR_OP || g->number->op != SCALAR_div || !expr_is_constant(lower) ||
        !ring_difference(make(n->r, SCALAR_sub, i, lower), g->number->a, &none) || none)
        return NULL;
    return make(n->r, SCALAR_add, lower, make(n->r, SCALAR_mul, g->number->b, n->symbol));
}

/* Maps values at an event to such that its number gives, or to any. */
static const Expr *numbered_value(Value *v, void *data)
{
    Numbering *n = data;
    const Op *loop = n->e->segment ? n->e->segment->loop : NULL;
    if (is_shared_value(n, v))
        return NULL;
    if (v->def && v->def->code == OP_scalar)
        return expr_substitute(&n->r->m->exprs, op_expr(v->def, ATTR_VALUE), numbered_value, n);
    if (loop && v->region && v->region->parent == loop && loop->code == OP_for &&
        v->index == 0 && n->symbol) {
        const Expr *index = index_of_number(n, v);
        if (index)
            return index;
    }
    return any_value(n, v);
}

/* The mbarriers that one of the loops uses. */
static const RingArray *array_of(const Rings *r, const Segment *a, const Segment *b)
{
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->array >= 0 && (e->segment == a || e->segment == b))
            return &r->arrays[e->array];
    }
    return NULL;
}

typedef struct PairQuery {
    Rings *r;
    const RingPair *pair;       /* NULL: accesses of two blocks of a cluster */
    RingApart apart;
    void *data;
} PairQuery;

/* Names the number of `e`. `slots` > 0: a number below that, as a remainder. */
static const Expr *name_number(Rings *r, const Event *e, const Expr *symbol, int64_t slots)
{
    return slots && e->segment->max < slots
        ? make(r, SCALAR_mod, symbol, expr_constant(&r->m->exprs, slots)) : symbol;
}

/* The number of `y` where that of `x` is it plus `distance`: any, unless one of them happens once. */
static const Expr *number_at(Rings *r, const Event *x, const Event *y, int64_t distance)
{
    if (!y->segment->loop)
        return ring_constant(r, 0);
    return x->segment->loop ? ring_fresh_value(r, type_scalar(r->m, DTYPE_i64), 0, INT64_MAX)
                            : ring_constant(r, -distance);
}

/* Returns true when the tiles are apart where the number of `x` is that of `y` plus
 * `distance`; see name_number. */
static bool named_are_apart(const PairQuery *q, const Event *x, const Event *y,
                            int64_t distance, int64_t slots)
{
    Rings *r = q->r;
    const Expr *now = number_at(r, x, y, distance);
    const Expr *then = make(r, SCALAR_add, now, expr_constant(&r->m->exprs, distance));
    Numbering a = {r, x, name_number(r, x, then, slots), .any_block = !q->pair};
    Numbering b = {r, y, name_number(r, y, now, slots), .any_block = !q->pair};
    return a.symbol && b.symbol && q->apart(q->data, numbered_value, &a, &b);
}

/* The first iterations of a ring may name its slots without a remainder. */
static bool are_apart(const PairQuery *q, const Event *x, const Event *y, int64_t distance)
{
    const RingArray *b = array_of(q->r, x->segment, y->segment);
    return named_are_apart(q, x, y, distance, 0) ||
           (b && named_are_apart(q, x, y, distance, b->count));
}

static int64_t saturated(int64_t a, int64_t b)
{
    int64_t d;
    return __builtin_sub_overflow(a, b, &d) ? (a > b ? INT64_MAX : INT64_MIN) : d;
}

static bool is_one_run(const PairQuery *q, const Event *e)
{
    return q->pair->loop == e->segment->loop;
}

/* Orders `x` and `y` of any iterations, or finds them apart. */
static bool order_numbers(const PairQuery *q, const Event *x, const Event *y)
{
    Lag a = known_of(q->r, y, x), b = known_of(q->r, x, y);
    int64_t low = saturated(x->segment->min, y->segment->max);
    int64_t high = saturated(x->segment->max, y->segment->min);
    low = a != LAG_NONE && a + 1 > low ? a + 1 : low;
    high = b != LAG_NONE && -(int64_t)b - 1 < high ? -(int64_t)b - 1 : high;
    if (q->pair && x->segment == y->segment) {
        int64_t since = is_one_run(q, x) ? q->pair->iterations : 1;
        high = -since < high ? -since : high;
    }
    if (saturated(high, low) >= DISTANCES)
        return false;
    for (int64_t d = low; d <= high; d++) {
        bool itself = q->pair && x == y && d == 0 && !x->repeated;
        if (!itself && !are_apart(q, x, y, d))
            return false;
    }
    return true;
}

/* Returns true when what is known is relative to the event's own number. */
static bool has_number(const Event *e)
{
    return e->segment && e->base == e->segment->number;
}

static bool order_events(const PairQuery *q, const Event *x, const Event *y)
{
    const Rings *r = q->r;
    if (is_all_over(r, y, x, !q->pair) || is_all_over(r, x, y, !q->pair))
        return true;
    if (!has_number(x) || !has_number(y))
        return false;
    if (!q->pair || x->segment != y->segment || !is_one_run(q, x) || q->pair->more)
        return order_numbers(q, x, y);
    int64_t since = q->pair->iterations;
    Lag a = known_of(r, y, x), b = known_of(r, x, y);
    return (x == y && since == 0 && !x->repeated) || (a != LAG_NONE && a >= -since) ||
           (b != LAG_NONE && b >= since) || are_apart(q, x, y, -since);
}

static bool order_ops(const PairQuery *q, const Op *first, const Op *second)
{
    const Rings *r = q->r;
    bool any = false;
    for (unsigned i = r->array_count; i < r->event_count; i++)
        for (unsigned j = r->array_count; j < r->event_count; j++) {
            if (r->events[i]->op != first || r->events[j]->op != second)
                continue;
            if (r->full || !order_events(q, r->events[i], r->events[j]))
                return false;
            any = true;
        }
    return any;
}

bool rings_order(Rings *r, const RingPair *pair, RingApart apart, void *data)
{
    PairQuery q = {r, pair, apart, data};
    return order_ops(&q, pair->first, pair->second);
}

bool rings_order_blocks(Rings *r, const Op *copy, const Op *other, RingApart apart, void *data)
{
    PairQuery q = {r, NULL, apart, data};
    return order_ops(&q, copy, other);
}

bool rings_know(const Rings *r, const Op *op)
{
    for (unsigned i = 0; op_sync(op) == SYNC_ARRIVE && i < r->array_count; i++)
        if (r->arrays[i].value == op->operands[0])
            return r->arrays[i].everywhere;
    for (unsigned i = r->array_count; i < r->event_count; i++)
        if (r->events[i]->op == op && r->events[i]->placed)
            return r->events[i]->everywhere;
    return false;
}

/* ---- the end ------------------------------------------------------------------------- */

/* Returns true when the loop that numbers `w` has come to `end` when it ends. */
static bool is_reached(Rings *r, const Segment *w, const Expr *end, int64_t lag)
{
    int64_t more;
    const Expr *beyond = w->past ? make(r, SCALAR_sub, w->end, end) : NULL;
    return beyond && ring_difference(w->past, beyond, &more) && more + lag >= 0;
}

/* Returns true when the numbers of `w` plus `lag` come to `end`. */
static bool comes_to(Rings *r, const Segment *w, const Expr *end, int64_t lag)
{
    int64_t more;
    if (end->kind == EXPR_OP && end->op == SCALAR_min &&
        (comes_to(r, w, end->a, lag) || comes_to(r, w, end->b, lag)))
        return true;
    const Expr *beyond = make(r, SCALAR_sub, w->end, end);
    return (ring_difference(end, w->end, &more) && more + lag >= 0) ||
           (beyond && facts_of_expr(beyond).min >= -lag) || is_reached(r, w, end, lag);
}

/* Returns true when the wait is for all tickets of the copy. */
static bool waits_for_all(Rings *r, const Event *wait, const Event *copy)
{
    int64_t begin;
    const Segment *w = wait->segment, *c = copy->segment;
    return ring_difference(w->begin, c->begin, &begin) && begin + copy->lag - wait->lag >= 0 &&
           comes_to(r, w, c->end, wait->lag - copy->lag);
}

/* A block waits for the copies of all blocks where they are as many as its own. */
static bool is_waited_for(Rings *r, const Event *copy)
{
    if (copy->everywhere && !ends_alike(copy))
        return false;
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->kind == EVENT_WAIT && e->array == copy->array && !e->conditional &&
            waits_for_all(r, e, copy))
            return true;
    }
    return false;
}

bool rings_finish(Rings *r, const Op *op)
{
    bool any = false;
    for (unsigned i = r->array_count; i < r->event_count; i++) {
        const Event *e = r->events[i];
        if (e->op != op)
            continue;
        if (r->full || e->array < 0 || r->arrays[e->array].unknown || !is_waited_for(r, e))
            return false;
        any = true;
    }
    return any;
}
