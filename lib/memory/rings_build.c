/* The program as events, in the order of its text: accesses, arrivals, waits and barriers,
 * with the loops, branches and groups around them. Loops of few iterations inside a numbered
 * one are written out. */
#include "memory/rings_events.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"

#include <assert.h>

enum { WRITTEN_OUT = 8 };   /* iterations of a loop that is written out */

/* Around what is being built. */
typedef struct Place {
    const Segment *segment;
    unsigned range, depth;
    bool conditional, repeated, vacuous;
} Place;

/* ---- loops -------------------------------------------------------------------- */

static bool is_other_op(Op *op, void *data)
{
    (void)data;
    return !is_mbarrier_op(op);
}

static bool has_mbarriers(const Op *op)
{
    bool found = false;
    for (unsigned i = 0; i < op->region_count; i++)
        found = found || !region_walk(op->regions[i], is_other_op, NULL);
    return found;
}

typedef struct IndexSearch {
    Rings *r;
    const Value *index;
} IndexSearch;

static bool is_other_value(Value *v, void *data)
{
    return v != (const Value *)data;
}

static bool uses_value(Rings *r, const Expr *e, const Value *v)
{
    return e && !expr_visit_values(ring_expand(r, e), is_other_value, (void *)v);
}

static bool leaves_index(Op *op, void *data)
{
    IndexSearch *s = data;
    return !is_mbarrier_op(op) || (!uses_value(s->r, op_expr(op, ATTR_ELEMENT), s->index) &&
                                   !uses_value(s->r, op_expr(op, ATTR_STATE), s->index));
}

static bool is_in_no_group(Op *op, void *data)
{
    (void)data;
    Completion c = op_is_async(op) ? op_completion(op) : op_info[op->code].sync.completion;
    return c == COMPLETION_NOW || c == COMPLETION_MBARRIER;
}

/* Returns true when groups of copies or products begin or end in the loop. */
static bool has_groups(const Op *op)
{
    return !region_walk(op->regions[0], is_in_no_group, NULL);
}

/* Returns true for an inner loop of few iterations, each of which means the same phases. */
static bool is_written_out(Rings *r, const Op *op, const Place *at)
{
    if (op->code != OP_for || at->depth == 0)
        return false;
    int64_t iterations = for_iterations(op);
    IndexSearch s = {r, for_index(op)};
    return iterations >= 0 && iterations <= WRITTEN_OUT &&
           region_walk(op->regions[0], leaves_index, &s);
}

/* Returns true when a loop inside of `op`, not written out, has mbarrier ops. */
static bool holds_loop(Rings *r, const Op *op, const Place *at)
{
    for (unsigned i = 0; i < op->region_count; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next) {
            bool loop = op_is_loop(in) && has_mbarriers(in) && !is_written_out(r, in, at);
            if (loop || (in->region_count && holds_loop(r, in, at)))
                return true;
        }
    return false;
}

/* ---- nodes ----------------------------------------------------------------------- */

static unsigned find_range(Rings *r, ThreadRange threads)
{
    for (unsigned i = 0; i < r->range_count; i++)
        if (thread_range_equal(r->ranges[i], threads))
            return i;
    if (r->range_count == RING_RANGES) {
        r->full = true;
        return 0;
    }
    r->ranges[r->range_count] = threads;
    return r->range_count++;
}

static int find_array(const Rings *r, const Value *v)
{
    int i = (int)r->array_count;
    while (--i >= 0 && r->arrays[i].value != v)
        ;
    return i;
}

static Event *add_event(Rings *r, EventKind kind, const Op *op, const Place *at)
{
    if (r->event_count == RING_EVENTS) {
        r->full = true;
        return r->events[RING_EVENTS - 1];
    }
    Event *e = arena_new(r->arena, Event);
    *e = (Event){.kind = kind, .id = r->event_count, .op = op, .segment = at->segment,
                 .range = at->range, .conditional = at->conditional, .repeated = at->repeated,
                 .vacuous = at->vacuous, .depth = at->depth, .array = -1, .stream = -1};
    r->events[r->event_count++] = e;
    return e;
}

static Node *add_node(Rings *r, Node ***tail, NodeKind kind)
{
    Node *n = arena_new(r->arena, Node);
    *n = (Node){.kind = kind, .outer = -1};
    **tail = n;
    *tail = &n->next;
    return n;
}

static Event *add_event_node(Rings *r, Node ***tail, EventKind kind, const Op *op,
                             const Place *at)
{
    Event *e = add_event(r, kind, op, at);
    add_node(r, tail, NODE_EVENT)->event = e;
    return e;
}

static void build_region(Rings *r, Node ***tail, const Region *region, const Place *at);

static Node *build_body(Rings *r, const Region *region, const Place *at)
{
    Node *body = NULL, **tail = &body;
    build_region(r, &tail, region, at);
    return body;
}

/* Returns true when the arrival goes on with that of the event before at the same mbarrier of
 * other blocks. */
static bool joins_arrival(Rings *r, const Op *op, const Place *at)
{
    uint32_t ranks = ring_ranks(r, op, ATTR_RANK);
    Event *e = r->event_count ? r->events[r->event_count - 1] : NULL;
    if (!ranks || !e || e->kind != EVENT_ARRIVE || !e->ranks || e->ranks & ranks ||
        e->segment != at->segment || e->range != at->range || e->depth != at->depth ||
        e->conditional != at->conditional || e->repeated != at->repeated ||
        e->vacuous != at->vacuous || e->array != find_array(r, op->operands[0]) ||
        !ring_equal(e->element, ring_expand(r, op_expr(op, ATTR_ELEMENT))))
        return false;
    e->ranks |= ranks;
    e->everywhere = e->ranks == ring_all_ranks(r);
    return true;
}

/* The event of an op on mbarriers, with the ticket that its text names. */
static void build_mbarrier(Rings *r, Node ***tail, const Op *op, EventKind kind,
                           const Place *at)
{
    if (kind == EVENT_ARRIVE && joins_arrival(r, op, at))
        return;
    Event *e = add_event_node(r, tail, kind, op, at);
    const Expr *phase = op_expr(op, ATTR_STATE);
    e->array = find_array(r, op->operands[op->operand_count - 1]);
    assert(e->array >= 0);
    e->element = ring_expand(r, op_expr(op, ATTR_ELEMENT));
    e->phase = phase ? ring_expand(r, phase) : NULL;
    e->ranks = ring_ranks(r, op, kind == EVENT_ARRIVE ? ATTR_RANK : ATTR_MULTICAST);
    e->everywhere = e->ranks && e->ranks == ring_all_ranks(r);
}

static void build_written_out(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    int64_t iterations = for_iterations(op), by = step ? step->constant : 1;
    for (int64_t i = 0; i < iterations; i++) {
        for_index(op)->data = (void *)ring_constant(r, op_expr(op, ATTR_LOWER)->constant + i * by);
        build_region(r, tail, op->regions[0], at);
    }
    for_index(op)->data = NULL;
}

static void build_loop(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    Place inside = *at;
    bool holds = has_mbarriers(op);
    if (at->segment && (holds || has_groups(op)) && is_written_out(r, op, at)) {
        build_written_out(r, tail, op, at);
        return;
    }
    Node *n = add_node(r, tail, NODE_LOOP);
    inside.depth++;
    if (holds)
        inside.segment = holds_loop(r, op, &inside) ? NULL : ring_find_segment(r, op);
    else
        inside.repeated = at->segment != NULL;
    n->outermost = at->depth == 0;
    n->range = at->range;
    n->first = r->event_count;
    n->segment = holds ? inside.segment : NULL;
    n->outer = n->segment ? 0 : -1;
    n->body = build_body(r, op->regions[0], &inside);
    n->last = r->event_count;
    for (unsigned i = 0; !n->segment && holds && i < r->segment_count; i++)
        for (unsigned j = 0; j < r->segments[i]->outer_count; j++)
            if (r->segments[i]->outer[j].op == op && !n->segment) {
                n->segment = r->segments[i];
                n->outer = (int)j + 1;
            }
}

/* Returns true when the number of the segment plus `lag` is below 0 wherever `cond` is 0.
 * `exactly`: and nowhere else. */
static bool is_vacuous(Rings *r, const Expr *cond, const Expr *number, int64_t lag, bool exactly)
{
    if (cond->kind != EXPR_OP || !cond->b)
        return false;
    bool greater = cond->op == SCALAR_gt || cond->op == SCALAR_ge;
    bool strict = cond->op == SCALAR_ge || cond->op == SCALAR_le;
    if (!greater && cond->op != SCALAR_lt && cond->op != SCALAR_le)
        return false;
    /* Not so: a - b <= 0, or <= -1. */
    const Expr *a = greater ? cond->a : cond->b, *b = greater ? cond->b : cond->a;
    const Expr *gap = ring_make(r, SCALAR_sub, a, b);
    int64_t least;
    if (!gap || !ring_difference(gap, number, &least))
        return false;
    return exactly ? least + lag - strict == -1 : least + lag - strict < 0;
}

/* The first op from `op` on that is no `scalar` and no yield, or NULL. */
static const Op *next_acting(const Op *op)
{
    while (op && (op->code == OP_scalar || op->code == OP_yield))
        op = op->next;
    return op;
}

/* The arrival that `op` is, or that a loop over blocks repeats; NULL for others. */
static const Op *find_arrival(const Op *op)
{
    if (op->code == OP_for && op->result_count == 0) {
        op = next_acting(op->regions[0]->first);
        if (!op || next_acting(op->next) || !op_attr(op, ATTR_RANK))
            return NULL;
    }
    return op_sync(op) == SYNC_ARRIVE ? op : NULL;
}

/* Returns true when all ops from `op` on arrive at the mbarrier of `first`. */
static bool all_arrive(const Op *op, const Op *first)
{
    for (; op; op = next_acting(op->next)) {
        const Op *arrival = find_arrival(op);
        if (!arrival || arrival->operands[0] != first->operands[0] ||
            op_expr(arrival, ATTR_ELEMENT) != op_expr(first, ATTR_ELEMENT))
            return false;
    }
    return true;
}

/* The op in a branch with one wait, or one arrival, perhaps at several blocks; NULL for others. */
static const Op *only_op(const Op *op, const Place *at)
{
    const Op *first = next_acting(op->regions[0]->first);
    if (!at->segment || !first || next_acting(op->regions[1]->first) || op->result_count)
        return NULL;
    if (is_mbarrier_wait(first))
        return next_acting(first->next) ? NULL : first;
    const Op *arrival = find_arrival(first);
    return arrival && all_arrive(first, arrival) ? arrival : NULL;
}

/* A wait or arrival that is passed over for tickets below 0 is in no branch. */
static bool build_vacuous(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    const Op *only = only_op(op, at);
    if (!only)
        return false;
    bool arrives = op_sync(only) == SYNC_ARRIVE;
    const Expr *phase = op_expr(only, ATTR_STATE), *cond = ring_expand(r, op_expr(op, ATTR_COND));
    Place inside = *at;
    Event trial = {.op = only, .segment = at->segment,
                   .array = find_array(r, only->operands[only->operand_count - 1]),
                   .element = ring_expand(r, op_expr(only, ATTR_ELEMENT)),
                   .phase = phase ? ring_expand(r, phase) : NULL};
    if (!ring_place_event(r, &trial, arrives ? -r->arrays[trial.array].count : 0) ||
        !is_vacuous(r, cond, at->segment->number, trial.lag, arrives))
        return false;
    inside.vacuous = true;
    unsigned begin = r->event_count;
    build_region(r, tail, op->regions[0], &inside);
    for (unsigned i = begin; i < r->event_count; i++)
        r->events[i]->lag = trial.lag;
    return true;
}

static void build_if(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    const Expr *cond = ring_expand(r, op_expr(op, ATTR_COND));
    Place inside = *at;
    if (expr_is_constant(cond)) {
        build_region(r, tail, op->regions[cond->constant ? 0 : 1], at);
        return;
    }
    if (build_vacuous(r, tail, op, at))
        return;
    inside.conditional = true;
    Node *n = add_node(r, tail, NODE_IF);
    n->body = build_body(r, op->regions[0], &inside);
    n->other = build_body(r, op->regions[1], &inside);
}

static void build_group(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    Place inside = *at;
    Node *n = add_node(r, tail, NODE_GROUP);
    n->around = at->range;
    inside.range = n->range = find_range(r, region_threads(op->regions[0]));
    n->body = build_body(r, op->regions[0], &inside);
}

static bool is_barrier(const Op *op)
{
    return op_is_barrier(op) || op_sync(op) == SYNC_ACQUIRE || op_sync(op) == SYNC_RELEASE;
}

static void build_access(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    OpAccess accesses[ACCESSES_MAX];
    if (!op_accesses(op, accesses))
        return;
    if (op_completion(op) == COMPLETION_MBARRIER) {
        build_mbarrier(r, tail, op, EVENT_ACCESS, at);
        return;
    }
    Event *e = add_event_node(r, tail, EVENT_ACCESS, op, at);
    e->grouped = op_is_async(op);
    e->commits = op_commits_product(op);
    e->completion = op_completion(op);
}

/* A commit of a group, or a wait for groups, after which their accesses are over. */
static bool build_group_op(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    Completion c = op_info[op->code].sync.completion;
    bool commits = op_sync(op) == SYNC_COMMIT;
    if ((!commits && op_sync(op) != SYNC_WAIT) ||
        (c != COMPLETION_GROUP && c != COMPLETION_PRODUCT))
        return false;
    add_event_node(r, tail, commits ? EVENT_COMMIT : EVENT_RETIRE, op, at)->completion = c;
    return true;
}

/* Returns true for an op on mbarriers in no loop and no branch. */
static bool happens_once(const Op *op, const Place *at)
{
    return at->depth == 0 && !at->conditional && !op->region_count && is_mbarrier_op(op);
}

/* Returns true when the arrival goes on with that of the event before, which happens once. */
static bool joins_once(Rings *r, const Op *op, const Place *at)
{
    const Event *e = r->event_count ? r->events[r->event_count - 1] : NULL;
    Place inside = *at;
    if (op_sync(op) != SYNC_ARRIVE || !e || !e->segment || e->segment->loop)
        return false;
    inside.segment = e->segment;
    inside.depth++;
    return joins_arrival(r, op, &inside);
}

static void build_op(Rings *r, Node ***tail, const Op *op, const Place *at);

/* Builds an op that happens once as in a loop of one iteration around it. */
static void build_once(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    Place inside = *at;
    if (joins_once(r, op, at))
        return;
    Node *n = add_node(r, tail, NODE_LOOP), **end = &n->body;
    inside.depth++;
    inside.segment = n->segment = ring_once(r);
    n->outermost = true;
    n->outer = 0;
    n->range = at->range;
    n->first = r->event_count;
    build_op(r, &end, op, &inside);
    n->last = r->event_count;
}

static void build_op(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    if (happens_once(op, at))
        build_once(r, tail, op, at);
    else if (op_sync(op) == SYNC_ARRIVE)
        build_mbarrier(r, tail, op, EVENT_ARRIVE, at);
    else if (is_mbarrier_wait(op))
        build_mbarrier(r, tail, op, EVENT_WAIT, at);
    else if (build_group_op(r, tail, op, at))
        return;
    else if (is_barrier(op))
        add_event_node(r, tail, EVENT_SYNC, op, at);
    else if (op_is_loop(op))
        build_loop(r, tail, op, at);
    else if (op->code == OP_if)
        build_if(r, tail, op, at);
    else if (op->code == OP_thread_group)
        build_group(r, tail, op, at);
    else
        build_access(r, tail, op, at);
}

static void build_region(Rings *r, Node ***tail, const Region *region, const Place *at)
{
    for (const Op *op = region->first; op; op = op->next)
        build_op(r, tail, op, at);
}

/* ---- all of it -------------------------------------------------------------------------- */

static bool add_array(Op *op, void *data)
{
    Rings *r = data;
    if (op->code != OP_allocate_mbarrier)
        return true;
    Event *e = arena_new(r->arena, Event);
    *e = (Event){.kind = EVENT_END, .id = r->event_count, .op = op, .array = (int)r->array_count,
                 .stream = -1};
    r->events[r->event_count++] = e;
    r->arrays[r->array_count++] = (RingArray){.value = op->results[0],
                                              .count = type_extent(op->results[0]->type, 0),
                                              .arrivals = mbarrier_arrivals(op)};
    return true;
}

void rings_build(Rings *r)
{
    Place at = {.segment = NULL};
    r->arrays = arena_array(r->arena, RingArray, LIMIT_MBARRIERS);
    region_walk(r->p->body, add_array, r);
    at.range = find_range(r, (ThreadRange){0, program_threads(r->p)});
    r->body = build_body(r, r->p->body, &at);
    rings_place(r);
}
