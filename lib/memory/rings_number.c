/* Numbers of loops' iterations, which their mbarriers name, over all the loops around them.
 *
 *     %end = while %p < %last iter(%p = %first) {       number of an iteration of the inner
 *       for %i in 0 .. %length {                        loop: %p - %first + %i, as its
 *         mbarrier_wait %full[(%p - %first + %i) mod 4], ..   mbarriers say. It begins at 0,
 *       }                                               and goes on with the next %p where
 *       yield %p + %length                              the last iteration has led to.
 *     } */
#include "memory/rings_events.h"

#include "ir/loop.h"
#include "ir/op_attrs.h"
#include "scalar/bounds.h"
#include "scalar/difference.h"
#include "scalar/facts.h"

enum {
    CANDIDATES = 24,        /* expressions that may number a loop */
    EXPANDED = 64           /* scalars in an expression that are replaced by theirs */
};

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

const Expr *ring_expand(Rings *r, const Expr *e)
{
    Expansion x = {r, 0};
    return expr_substitute(&r->m->exprs, e, expanded_value, &x);
}

const Expr *ring_make(Rings *r, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    return a && b ? expr_make(&r->m->exprs, op, a, b, &why) : NULL;
}

const Expr *ring_constant(Rings *r, int64_t value)
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

const Expr *ring_plus(Rings *r, const Expr *e, int64_t number)
{
    return number ? ring_make(r, SCALAR_add, e, ring_constant(r, number)) : e;
}

bool ring_equal(const Expr *a, const Expr *b)
{
    int64_t d;
    return a == b || (ring_difference(a, b, &d) && d == 0);
}

const Expr *ring_fresh_value(Rings *r, const Type *type, int64_t min, int64_t max)
{
    Value *v = arena_new(&r->m->arena, Value);
    *v = (Value){.type = type, .program = r->p,
                 .facts = {.divisible = 1, .min = min, .max = max, .align = 1}};
    return expr_value(&r->m->exprs, v);
}

bool ring_goes_on(const Expr *end, const Expr *begin, const Expr *upper)
{
    if (ring_equal(end, begin))
        return true;
    if (end->kind != EXPR_OP || end->op != SCALAR_min)
        return false;
    return (ring_equal(end->a, begin) && ring_equal(end->b, upper)) ||
           (ring_equal(end->b, begin) && ring_equal(end->a, upper));
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
    element = ring_expand(c->r, element);
    bool ring = element->kind == EXPR_OP && element->op == SCALAR_mod;
    add_candidate(c, ring ? element->a : element);
    if (phase && expr_is_constant(element))
        add_candidate(c, ring_expand(c->r, phase));
    return true;
}

static const Expr *loop_step(Rings *r, const Op *op)
{
    const Expr *step = op_expr(op, ATTR_STEP);
    return step ? ring_expand(r, step) : ring_constant(r, 1);
}

static const Expr *loop_lower(Rings *r, const Op *op)
{
    return ring_expand(r, op_expr(op, ATTR_LOWER));
}

static const Expr *loop_upper(Rings *r, const Op *op)
{
    return ring_expand(r, op_expr(op, ATTR_UPPER));
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
    const Expr *span = ring_make(r, SCALAR_sub, upper, lower);
    return ring_make(r, SCALAR_add, lower,
                ring_make(r, SCALAR_mul, step, ring_make(r, SCALAR_ceil_div, span, step)));
}

/* (index - lower) / step */
static const Expr *count_from_lower(Rings *r, const Op *op)
{
    const Expr *steps = ring_make(r, SCALAR_sub, index_of(r, op), loop_lower(r, op));
    return ring_make(r, SCALAR_div, steps, loop_step(r, op));
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
    case TURN_NEXT:
        return ring_make(t->r, SCALAR_add, index_of(t->r, t->op), loop_step(t->r, t->op));
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
    return ring_expand(t->r, expr_value(&t->r->m->exprs, to));
}

static const Expr *turn(Rings *r, const Expr *e, const Op *op, Turn to)
{
    Turning t = {r, op, to};
    int64_t value;
    const Expr *turned = e ? expr_substitute(&r->m->exprs, e, turned_value, &t) : NULL;
    return turned && ring_difference(ring_constant(r, 0), turned, &value) ? ring_constant(r, value)
                                                                          : turned;
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
    if (facts_of_expr(e).min >= 1 || is_rest_of_modulus(ring_expand(r, e)))
        return true;
    if (depth > 0 && e->kind == EXPR_VALUE && e->value->def && e->value->def->code == OP_scalar)
        return is_positive(r, at, op_expr(e->value->def, ATTR_VALUE), depth - 1);
    if (depth > 0 && e->kind == EXPR_OP && e->op == SCALAR_min)
        return is_positive(r, at, e->a, depth - 1) && is_positive(r, at, e->b, depth - 1);
    return bounds_proved(at, ring_constant(r, 0), 1, e);
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
            if (ring_expand(r, op->results[0]->type->extents[d]) == e)
                return true;
    return false;
}

bool ring_bounds_are_ordered(Rings *r, const Op *op)
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
    if (s->outer_count == RING_OUTER || !ring_bounds_are_ordered(r, inner))
        return false;
    const Expr *next = turn(r, entry, op, TURN_NEXT);
    if (!next || !ring_equal(next, leave))
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
    const Expr *cond = op->code == OP_while ? ring_expand(r, op_expr(op, ATTR_COND)) : NULL;
    if (!cond || cond->kind != EXPR_OP || (cond->op != SCALAR_lt && cond->op != SCALAR_gt))
        return NULL;
    bool less = cond->op == SCALAR_lt;
    return ring_make(r, SCALAR_sub, turn(r, less ? cond->a : cond->b, op, TURN_AFTER),
                turn(r, less ? cond->b : cond->a, op, TURN_AFTER));
}

static void set_range_of_number(Rings *r, Segment *s)
{
    s->past = past_end(r, s->outer_count ? s->outer[s->outer_count - 1].op : s->loop);
    ScalarFacts f = facts_of_expr(s->number);
    s->min = f.min > 0 ? f.min : 0;
    s->max = f.max;
}

const Segment *ring_find_segment(Rings *r, const Op *op)
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

const Segment *ring_once(Rings *r)
{
    const Expr *zero = ring_constant(r, 0), *one = ring_constant(r, 1);
    Segment *s = arena_new(r->arena, Segment);
    *s = (Segment){.number = ring_fresh_value(r, type_scalar(r->m, DTYPE_i64), 0, 0),
                   .entry = zero, .leave = one, .begin = zero, .end = one};
    return s;
}
