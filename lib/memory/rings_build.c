/* The program as events, in the order of its text: accesses, arrivals, waits and barriers,
 * with the loops, branches and groups around them. Loops of few iterations inside a numbered
 * one are written out. Then the loops get their numbers.
 *
 *     %end = while %p < %last iter(%p = %first) {       number of an iteration of the inner
 *       for %i in 0 .. %length {                        loop: %p - %first + %i, as its
 *         mbarrier_wait %full[(%p - %first + %i) mod 4], ..   mbarriers say. It begins at 0,
 *       }                                               and goes on with the next %p where
 *       yield %p + %length                              the last iteration has led to.
 *     } */
#include "memory/rings_events.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "scalar/bounds.h"
#include "scalar/difference.h"
#include "scalar/facts.h"
#include "scalar/linear.h"

#include <assert.h>

enum {
    WRITTEN_OUT = 8,        /* iterations of a loop that is written out */
    CANDIDATES = 24,        /* expressions that may number a loop */
    EXPANDED = 64           /* scalars in an expression that are replaced by theirs */
};

/* Around what is being built. */
typedef struct Place {
    const Segment *segment;
    unsigned range, depth;
    bool conditional, repeated, vacuous;
} Place;

/* ---- expressions ----------------------------------------------------------- */

typedef struct Expansion {
    Rings *r;
    unsigned count;
} Expansion;

/* A `scalar`'s expression, or the index of a loop that is written out. */
static const Expr *expanded_value(Value *v, void *data)
{
    Expansion *x = data;
    if (v->data)
        return v->data;
    if (!v->def || v->def->code != OP_scalar || x->count++ >= EXPANDED)
        return NULL;
    return expr_substitute(&x->r->m->exprs, op_expr(v->def, ATTR_VALUE), expanded_value, x);
}

static const Expr *expand(Rings *r, const Expr *e)
{
    Expansion x = {r, 0};
    return expr_substitute(&r->m->exprs, e, expanded_value, &x);
}

static const Expr *make(Rings *r, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    return a && b ? expr_make(&r->m->exprs, op, a, b, &why) : NULL;
}

static const Expr *constant(Rings *r, int64_t value)
{
    return expr_constant(&r->m->exprs, value);
}

bool ring_difference(const Expr *a, const Expr *b, int64_t *difference)
{
    Difference d = difference_of(a, b);
    for (unsigned i = 1; i < d.count; i++)
        if (d.values[i] != d.values[0])
            return false;
    *difference = d.values[0];
    return d.count && difference_is_exact(&d);
}

static const Expr *plus(Rings *r, const Expr *e, int64_t number)
{
    return number ? make(r, SCALAR_add, e, constant(r, number)) : e;
}

static bool is_equal(const Expr *a, const Expr *b)
{
    int64_t d;
    return a == b || (ring_difference(a, b, &d) && d == 0);
}

bool ring_goes_on(const Expr *end, const Expr *begin, const Expr *upper)
{
    if (is_equal(end, begin))
        return true;
    if (end->kind != EXPR_OP || end->op != SCALAR_min)
        return false;
    return (is_equal(end->a, begin) && is_equal(end->b, upper)) ||
           (is_equal(end->b, begin) && is_equal(end->a, upper));
}

/* ---- loops -------------------------------------------------------------------- */

static bool is_mbarrier_wait(const Op *op)
{
    return op_syncs(op, SYNC_WAIT, COMPLETION_MBARRIER);
}

static bool is_mbarrier_op(const Op *op)
{
    return op_sync(op) == SYNC_ARRIVE || is_mbarrier_wait(op) ||
           op_completion(op) == COMPLETION_MBARRIER;
}

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
    return e && !expr_visit_values(expand(r, e), is_other_value, (void *)v);
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

/* ---- numbers -------------------------------------------------------------------- */

typedef struct Candidates {
    Rings *r;
    const Expr *exprs[CANDIDATES];
    unsigned count;
} Candidates;

static void add_candidate(Candidates *c, const Expr *e)
{
    for (unsigned i = 0; i < c->count; i++)
        if (c->exprs[i] == e)
            return;
    if (e && !expr_is_constant(e) && c->count < CANDIDATES)
        c->exprs[c->count++] = e;
}

/* X of an element X mod N, or a phase. */
static bool add_candidates(Op *op, void *data)
{
    Candidates *c = data;
    const Expr *element = op_expr(op, ATTR_ELEMENT), *phase = op_expr(op, ATTR_STATE);
    if (!is_mbarrier_op(op))
        return true;
    element = expand(c->r, element);
    bool ring = element->kind == EXPR_OP && element->op == SCALAR_mod;
    add_candidate(c, ring ? element->a : element);
    if (phase && expr_is_constant(element))
        add_candidate(c, expand(c->r, phase));
    return true;
}

static const Expr *loop_step(Rings *r, const Op *op)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    return step ? expand(r, step) : constant(r, 1);
}

static const Expr *loop_lower(Rings *r, const Op *op)
{
    return expand(r, op_expr(op, ATTR_LOWER));
}

static const Expr *loop_upper(Rings *r, const Op *op)
{
    return expand(r, op_expr(op, ATTR_UPPER));
}

static const Expr *index_of(Rings *r, const Op *op)
{
    return expr_value(&r->m->exprs, for_index(op));
}

/* The index after the last iteration, unless there is none. */
static const Expr *index_end(Rings *r, const Op *op)
{
    const Expr *step = loop_step(r, op), *lower = loop_lower(r, op), *upper = loop_upper(r, op);
    if (expr_is_constant(step) && step->constant == 1)
        return upper;
    const Expr *span = make(r, SCALAR_sub, upper, lower);
    return make(r, SCALAR_add, lower,
                make(r, SCALAR_mul, step, make(r, SCALAR_ceil_div, span, step)));
}

/* (index - lower) / step */
static const Expr *count_from_lower(Rings *r, const Op *op)
{
    const Expr *steps = make(r, SCALAR_sub, index_of(r, op), loop_lower(r, op));
    return make(r, SCALAR_div, steps, loop_step(r, op));
}

/* Maps what a loop carries: to the initial, the next or the last values. */
typedef enum Turn { TURN_FIRST, TURN_NEXT, TURN_AFTER } Turn;

typedef struct Turning {
    Rings *r;
    const Op *op;
    Turn turn;
} Turning;

static const Expr *turned_index(const Turning *t)
{
    switch (t->turn) {
    case TURN_FIRST: return loop_lower(t->r, t->op);
    case TURN_NEXT: return make(t->r, SCALAR_add, index_of(t->r, t->op), loop_step(t->r, t->op));
    case TURN_AFTER: break;
    }
    return index_end(t->r, t->op);
}

static const Expr *turned_value(Value *v, void *data)
{
    const Turning *t = data;
    if (!v->region || v->region->parent != t->op)
        return NULL;
    int n = loop_carried_number(v);
    if (n < 0)
        return turned_index(t);
    Value *to = t->turn == TURN_FIRST  ? t->op->operands[n]
                : t->turn == TURN_NEXT ? region_yield(t->op->regions[0])->operands[n]
                                       : t->op->results[n];
    return expand(t->r, expr_value(&t->r->m->exprs, to));
}

static const Expr *turn(Rings *r, const Expr *e, const Op *op, Turn to)
{
    Turning t = {r, op, to};
    int64_t value;
    const Expr *turned = e ? expr_substitute(&r->m->exprs, e, turned_value, &t) : NULL;
    return turned && ring_difference(constant(r, 0), turned, &value) ? constant(r, value) : turned;
}

/* x - y mod x, for x not below 0 */
static bool is_rest_of_modulus(const Expr *e)
{
    return e->kind == EXPR_OP && e->op == SCALAR_sub && e->b->kind == EXPR_OP &&
           e->b->op == SCALAR_mod && e->b->b == e->a && facts_of_expr(e->a).min >= 0;
}

/* Returns true when `e`, as the text has it, is above 0 at the op. */
static bool is_positive(Rings *r, const Op *at, const Expr *e, unsigned depth)
{
    if (facts_of_expr(e).min >= 1 || is_rest_of_modulus(expand(r, e)))
        return true;
    if (depth > 0 && e->kind == EXPR_VALUE && e->value->def && e->value->def->code == OP_scalar)
        return is_positive(r, at, op_expr(e->value->def, ATTR_VALUE), depth - 1);
    if (depth > 0 && e->kind == EXPR_OP && e->op == SCALAR_min)
        return is_positive(r, at, e->a, depth - 1) && is_positive(r, at, e->b, depth - 1);
    return bounds_proved(at, constant(r, 0), 1, e);
}

/* Returns true for an extent of a view in the program's own body, which is never negative, and a
 * number of parts of it, or a multiple. */
static bool is_extent(Rings *r, const Expr *e)
{
    while (e->kind == EXPR_OP &&
           (e->op == SCALAR_ceil_div || e->op == SCALAR_div || e->op == SCALAR_mul) &&
           facts_of_expr(e->b).min > 0)
        e = e->a;
    for (const Op *op = r->p->body->first; op && !op->region_count; op = op->next)
        for (unsigned d = 0; op->code == OP_view_global && d < op->results[0]->type->rank; d++)
            if (expand(r, op->results[0]->type->extents[d]) == e)
                return true;
    return false;
}

/* Returns true when the loop runs at least so often that its bounds are in order. */
static bool bounds_are_ordered(Rings *r, const Op *op)
{
    enum { NESTED = 4 };
    if (op->code != OP_for)
        return true;
    const Expr *lower = loop_lower(r, op), *upper = loop_upper(r, op);
    if (expr_is_constant(lower) && lower->constant == 0 &&
        (facts_of_expr(upper).min >= 0 || is_extent(r, upper) ||
         is_positive(r, op, op_expr(op, ATTR_UPPER), NESTED)))
        return true;
    Difference d = difference_of(lower, upper);
    for (unsigned i = 0; i < d.count; i++) {
        int64_t least = d.rest_min;
        if (!difference_is_exact(&d) &&
            (least == INT64_MIN || __builtin_add_overflow(least, d.values[i], &least)))
            return false;
        if ((difference_is_exact(&d) ? d.values[i] : least) < 0)
            return false;
    }
    return true;
}

/* Goes on through the loop `op`, around what `s` numbers until now. */
static bool number_outer(Rings *r, Segment *s, const Op *inner, const Op *op, const Expr *entry,
                         const Expr *leave)
{
    if (s->outer_count == RING_OUTER || !bounds_are_ordered(r, inner))
        return false;
    const Expr *next = turn(r, entry, op, TURN_NEXT);
    if (!next || !is_equal(next, leave))
        return false;
    OuterLoop *outer = &s->outer[s->outer_count++];
    *outer = (OuterLoop){op, entry, turn(r, entry, op, TURN_FIRST),
                         turn(r, entry, op, TURN_AFTER)};
    return outer->before && outer->after;
}

/* Returns true when `number` goes up by one from iteration to iteration of the loop, and of
 * those around it. */
static bool number_loop(Rings *r, Segment *s, const Op *op, const Expr *number)
{
    int64_t step;
    *s = (Segment){.loop = op, .number = number};
    const Expr *next = op->code == OP_while || op->code == OP_for ? turn(r, number, op, TURN_NEXT)
                                                                  : NULL;
    if (!next || !ring_difference(number, next, &step) || step != 1)
        return false;
    s->entry = turn(r, number, op, TURN_FIRST);
    s->leave = turn(r, number, op, TURN_AFTER);
    const Expr *begin = s->entry, *end = s->leave;
    const Op *inner = op;
    for (const Op *at = op->parent->parent; at && begin && end; at = at->parent->parent) {
        if (!op_is_loop(at))
            continue;
        if (!number_outer(r, s, inner, at, begin, end))
            return false;
        begin = s->outer[s->outer_count - 1].before;
        end = s->outer[s->outer_count - 1].after;
        inner = at;
    }
    s->begin = begin;
    s->end = end;
    return begin && end && facts_of_expr(begin).min >= 0;
}

/* a - b where `while a < b` has ended. */
static const Expr *past_end(Rings *r, const Op *op)
{
    const Expr *cond = op->code == OP_while ? expand(r, op_expr(op, ATTR_COND)) : NULL;
    if (!cond || cond->kind != EXPR_OP || (cond->op != SCALAR_lt && cond->op != SCALAR_gt))
        return NULL;
    bool less = cond->op == SCALAR_lt;
    return make(r, SCALAR_sub, turn(r, less ? cond->a : cond->b, op, TURN_AFTER),
                turn(r, less ? cond->b : cond->a, op, TURN_AFTER));
}

static void set_range_of_number(Rings *r, Segment *s)
{
    s->past = past_end(r, s->outer_count ? s->outer[s->outer_count - 1].op : s->loop);
    ScalarFacts f = facts_of_expr(s->number);
    s->min = f.min > 0 ? f.min : 0;
    s->max = f.max;
}

/* The loop's numbering; NULL when none is found. */
static const Segment *find_segment(Rings *r, const Op *op)
{
    Candidates c = {.r = r};
    region_walk(op->regions[0], add_candidates, &c);
    if (op->code == OP_for)
        add_candidate(&c, count_from_lower(r, op));
    for (unsigned i = 0; i < c.count; i++) {
        Segment s;
        if (!number_loop(r, &s, op, c.exprs[i]))
            continue;
        set_range_of_number(r, &s);
        Segment *kept = arena_new(r->arena, Segment);
        *kept = s;
        arena_push(r->arena, r->segments, r->segment_count, r->segment_capacity, kept);
        return kept;
    }
    return NULL;
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

/* ---- blocks of a cluster ---------------------------------------------------- */

/* A bit for each block of the cluster. */
static uint32_t all_ranks(const Rings *r)
{
    return (UINT32_C(1) << program_blocks(r->p)) - 1;
}

/* The bits of a rank, or of a mask of them; 0: of the op's own block, all bits: unknown. */
static uint32_t ranks_of(Rings *r, const Op *op, AttrKind kind)
{
    const Expr *e = op_expr(op, kind) ? expand(r, op_expr(op, kind)) : NULL;
    if (!e || program_blocks(r->p) == 1)
        return 0;
    if (!expr_is_constant(e) || e->constant < 0 || e->constant > all_ranks(r))
        return UINT32_MAX;
    return kind == ATTR_RANK ? UINT32_C(1) << e->constant : (uint32_t)e->constant;
}

/* Returns true when the arrival goes on with that of the event before at the same mbarrier of
 * other blocks. */
static bool joins_arrival(Rings *r, const Op *op, const Place *at)
{
    uint32_t ranks = ranks_of(r, op, ATTR_RANK);
    Event *e = r->event_count ? r->events[r->event_count - 1] : NULL;
    if (!ranks || !e || e->kind != EVENT_ARRIVE || !e->ranks || e->ranks & ranks ||
        e->segment != at->segment || e->range != at->range || e->depth != at->depth ||
        e->conditional != at->conditional || e->repeated != at->repeated ||
        e->vacuous != at->vacuous || e->array != find_array(r, op->operands[0]) ||
        !is_equal(e->element, expand(r, op_expr(op, ATTR_ELEMENT))))
        return false;
    e->ranks |= ranks;
    e->everywhere = e->ranks == all_ranks(r);
    return true;
}

/* Returns true when the event has to do with its own block's mbarriers, or with those of all
 * blocks, and is not the only one to do so. */
static bool knows_blocks(const Rings *r, const Event *e)
{
    bool everywhere = r->arrays[e->array].everywhere;
    if (e->kind == EVENT_ARRIVE)
        return everywhere ? e->everywhere : e->ranks == 0;
    return !op_is_remote(e->op) || program_blocks(r->p) == 1 || (everywhere && e->everywhere);
}

/* Finds the arrays at which all arrivals go to all blocks. */
static void find_everywhere(Rings *r)
{
    for (unsigned i = 0; i < r->array_count; i++)
        r->arrays[i].everywhere = program_blocks(r->p) > 1;
    for (unsigned i = 0; i < r->event_count; i++)
        if (r->events[i]->kind == EVENT_ARRIVE && !r->events[i]->everywhere)
            r->arrays[r->events[i]->array].everywhere = false;
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
    e->element = expand(r, op_expr(op, ATTR_ELEMENT));
    e->phase = phase ? expand(r, phase) : NULL;
    e->ranks = ranks_of(r, op, kind == EVENT_ARRIVE ? ATTR_RANK : ATTR_MULTICAST);
    e->everywhere = e->ranks && e->ranks == all_ranks(r);
}

static void build_written_out(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    int64_t iterations = for_iterations(op), by = step ? step->constant : 1;
    for (int64_t i = 0; i < iterations; i++) {
        for_index(op)->data = (void *)constant(r, op_expr(op, ATTR_LOWER)->constant + i * by);
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
        inside.segment = holds_loop(r, op, &inside) ? NULL : find_segment(r, op);
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
    const Expr *gap = make(r, SCALAR_sub, a, b);
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

static bool place_event(Rings *r, Event *e, int64_t first);

/* A wait or arrival that is passed over for tickets below 0 is in no branch. */
static bool build_vacuous(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    const Op *only = only_op(op, at);
    if (!only)
        return false;
    bool arrives = op_sync(only) == SYNC_ARRIVE;
    const Expr *phase = op_expr(only, ATTR_STATE), *cond = expand(r, op_expr(op, ATTR_COND));
    Place inside = *at;
    Event trial = {.op = only, .segment = at->segment,
                   .array = find_array(r, only->operands[only->operand_count - 1]),
                   .element = expand(r, op_expr(only, ATTR_ELEMENT)),
                   .phase = phase ? expand(r, phase) : NULL};
    if (!place_event(r, &trial, arrives ? -r->arrays[trial.array].count : 0) ||
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
    const Expr *cond = expand(r, op_expr(op, ATTR_COND));
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

static void build_op(Rings *r, Node ***tail, const Op *op, const Place *at)
{
    if (op_sync(op) == SYNC_ARRIVE)
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

/* ---- tickets ------------------------------------------------------------------------- */

/* Finds k with element == (number + k) mod count. */
static bool find_shift(Rings *r, const Event *e, int64_t *shift)
{
    int64_t count = r->arrays[e->array].count;
    if (count == 1) {
        *shift = 0;
        return true;
    }
    for (int64_t k = 0; k < count; k++) {
        const Expr *at = plus(r, e->segment->number, k);
        const Expr *slot = make(r, SCALAR_mod, at, constant(r, count));
        if (slot && is_equal(slot, e->element)) {
            *shift = k;
            return true;
        }
    }
    return false;
}

/* Finds the ticket of a wait: of two of a parity, the one that is not ahead. Of others the
 * first one from `first` on. */
static bool place_event(Rings *r, Event *e, int64_t first)
{
    int64_t shift, phases, count = r->arrays[e->array].count;
    if (!e->segment || !find_shift(r, e, &shift))
        return false;
    e->lag = first + floor_mod(shift - first, count);
    if (e->phase) {
        const Expr *at = plus(r, e->segment->number, shift);
        const Expr *phase = make(r, SCALAR_div, at, constant(r, count));
        if (!phase || (!ring_difference(phase, e->phase, &phases) &&
                       (count > 1 || !ring_difference(at, e->phase, &phases))))
            return false;
        int64_t ahead = phases * count + shift;
        bool odd = phases & 1;
        e->lag = phases <= 0 && phases > -LAG_LIMIT ? ahead : odd ? shift - count : shift;
    }
    return e->lag > -LAG_LIMIT && e->lag < LAG_LIMIT;
}

/* An arrival begins a stream, or goes on with one of its threads. */
typedef struct Stream {
    unsigned range;
    int array;
    const Segment *last;
    const Expr *next;
} Stream;

/* Returns true when numbers of the segment end at its `end`, and not below its begin, if
 * those from `begin` on exist. */
static bool ends_in_order(Rings *r, const Segment *s, const Expr *begin)
{
    int64_t gap;
    const Op *outermost = s->outer_count ? s->outer[s->outer_count - 1].op : s->loop;
    return bounds_are_ordered(r, outermost) ||
           (ring_difference(s->begin, begin, &gap) && gap >= 0 && !is_equal(s->end, begin));
}

/* Returns true when arrivals of `e` come next in the stream. */
static bool stream_takes(Rings *r, const Stream *s, Event *e, int64_t shift)
{
    int64_t count = r->arrays[e->array].count, lag;
    if (e->vacuous || s->array != e->array || s->range != e->range || s->last == e->segment)
        return false;
    if (!ring_difference(e->segment->begin, s->next, &lag))
        lag = 0;
    const Expr *begin = plus(r, e->segment->begin, lag);
    const Expr *end = plus(r, e->segment->end, lag);
    if (!begin || !end || !ring_goes_on(s->next, begin, end) || floor_mod(lag - shift, count) ||
        !ends_in_order(r, s->last, e->segment->begin))
        return false;
    e->lag = lag;
    return true;
}

static void place_arrival(Rings *r, Event *e, Stream *streams, unsigned *count)
{
    RingArray *b = &r->arrays[e->array];
    int64_t shift;
    if (!e->segment || e->conditional || e->repeated || !knows_blocks(r, e) ||
        !find_shift(r, e, &shift))
        return;
    unsigned i = 0;
    while (i < *count && !stream_takes(r, &streams[i], e, shift))
        i++;
    if (i == *count) {
        if (!expr_is_constant(e->segment->begin))
            return;
        e->lag = e->vacuous ? e->lag : -e->segment->begin->constant;
        if (floor_mod(e->lag - shift, b->count) || e->segment->begin->constant + e->lag > 0)
            return;
        if (b->stream_count == RING_STREAMS)
            return;
        streams[(*count)++] = (Stream){.range = e->range, .array = e->array};
        b->streams[b->stream_count++] = (int)i;
    }
    streams[i].last = e->segment;
    streams[i].next = plus(r, e->segment->end, e->lag);
    e->stream = (int)i;
    e->placed = streams[i].next && e->lag > -LAG_LIMIT && e->lag < LAG_LIMIT;
}

/* The lag of the arrival in the loop of `e` at its mbarriers; 0 without one. */
static int64_t arrival_lag(const Rings *r, const Event *e)
{
    for (unsigned i = 0; i < r->event_count; i++) {
        const Event *a = r->events[i];
        if (a->kind == EVENT_ARRIVE && a->array == e->array && a->segment == e->segment &&
            a->range == e->range && a->placed)
            return a->lag;
    }
    return 0;
}

static void place_events(Rings *r)
{
    Stream *streams = arena_array(r->arena, Stream, r->event_count + 1);
    unsigned count = 0;
    find_everywhere(r);
    for (unsigned i = 0; i < r->event_count; i++)
        if (r->events[i]->kind == EVENT_ARRIVE)
            place_arrival(r, r->events[i], streams, &count);
    for (unsigned i = 0; i < r->event_count; i++) {
        Event *e = r->events[i];
        if (e->array >= 0 && (e->kind == EVENT_WAIT || e->kind == EVENT_ACCESS))
            e->placed = knows_blocks(r, e) && place_event(r, e, arrival_lag(r, e));
    }
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
    place_events(r);
}
