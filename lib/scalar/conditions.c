/* Proofs from conditions. Each known condition is a sum that is at least 0; a goal is
 * one too. The goal follows when it is a sum of known ones, times factors above 0, and
 * of a rest that is at least 0 by its range:
 *
 *     if %i + 2 < %k / 16        known   %k / 16 - 1 - %i - 2 >= 0
 *                                        %k - 16 * (%k / 16)  >= 0     of any quotient
 *     %g[(%i + 2) * 16] : 16     goal    %k - (%i + 2) * 16 - 16 >= 0
 *                                        = 16 * the first + the second
 *
 * Values never change where their conditions hold: they are SSA, and a condition around
 * an op, or before it, uses the values that the op sees. */
#include "scalar/conditions.h"

#include "ir/loop.h"
#include "scalar/facts.h"
#include "scalar/linear.h"

#include <string.h>

enum {
    KNOWN = 16,         /* conditions, the nearest ones first */
    READ = 64,          /* expressions that are read as conditions */
    PASSED = 4096,      /* ops before it that are looked at */
    STEPS = 3,          /* known conditions in one proof */
    TRIES = 512         /* of steps */
};

typedef struct Known {
    LinearSum sums[KNOWN];
    unsigned count;
    unsigned read;
    unsigned tries;
} Known;

/* ---- what is known ------------------------------------------------------------ */

/* Learns that s >= 0. */
static void learn_sum(Known *k, const LinearSum *s)
{
    for (unsigned i = 0; i < k->count; i++)
        if (!memcmp(&k->sums[i], s, sizeof *s))
            return;
    if (k->count < KNOWN)
        k->sums[k->count++] = *s;
}

/* Bounds a quotient by a constant c: c * (E / c) <= E, and c - 1 more when it
 * is rounded up. */
static void learn_leaf(Known *k, const Expr *leaf)
{
    if (leaf->kind != EXPR_OP || !leaf->b || !expr_is_constant(leaf->b) ||
        leaf->b->constant < 1 || (leaf->op != SCALAR_div && leaf->op != SCALAR_ceil_div))
        return;
    int64_t c = leaf->b->constant;
    LinearSum s = {.constant = leaf->op == SCALAR_ceil_div ? c - 1 : 0};
    if (linear_add(&s, leaf->a, 1) && linear_add(&s, leaf, -c))
        learn_sum(k, &s);
}

static bool is_call(const Expr *e, ScalarOp op)
{
    return e->kind == EXPR_OP && e->op == op;
}

/* Learns that larger - smaller - gap >= 0. */
static void learn_order(Known *k, const Expr *smaller, const Expr *larger, int64_t gap)
{
    LinearSum s = {.count = 0};
    if (k->read++ >= READ)
        return;
    if (is_call(larger, SCALAR_min)) {
        learn_order(k, smaller, larger->a, gap);
        learn_order(k, smaller, larger->b, gap);
    } else if (is_call(smaller, SCALAR_max)) {
        learn_order(k, smaller->a, larger, gap);
        learn_order(k, smaller->b, larger, gap);
    } else if (linear_add(&s, larger, 1) && linear_add(&s, smaller, -1) &&
               !__builtin_sub_overflow(s.constant, gap, &s.constant)) {
        learn_sum(k, &s);
        for (unsigned i = 0; i < s.count; i++)
            learn_leaf(k, s.terms[i].leaf);
    }
}

static void learn(Known *k, const Expr *cond, bool holds);

/* `a and b`, which holds, or `a or b`, which does not: both sides say something. */
static void learn_both(Known *k, const Expr *cond, bool holds)
{
    learn(k, cond->a, holds);
    learn(k, cond->b, holds);
}

/* Learns that `cond` is not 0, or is. */
static void learn(Known *k, const Expr *cond, bool holds)
{
    if (cond->kind == EXPR_VALUE && cond->value->def && cond->value->def->code == OP_scalar)
        cond = op_expr(cond->value->def, ATTR_VALUE);
    if (cond->kind != EXPR_OP || k->read++ >= READ)
        return;
    const Expr *a = cond->a, *b = cond->b;
    switch (cond->op) {
    case SCALAR_not: learn(k, a, !holds); break;
    case SCALAR_and:
        if (holds)
            learn_both(k, cond, true);
        break;
    case SCALAR_or:
        if (!holds)
            learn_both(k, cond, false);
        break;
    case SCALAR_lt: learn_order(k, holds ? a : b, holds ? b : a, holds); break;
    case SCALAR_le: learn_order(k, holds ? a : b, holds ? b : a, !holds); break;
    case SCALAR_gt: learn_order(k, holds ? b : a, holds ? a : b, holds); break;
    case SCALAR_ge: learn_order(k, holds ? b : a, holds ? a : b, !holds); break;
    case SCALAR_eq:
    case SCALAR_ne:
        if (holds == (cond->op == SCALAR_eq)) {
            learn_order(k, a, b, 0);
            learn_order(k, b, a, 0);
        }
        break;
    default: break;
    }
}

/* Learns what holds for the ops in region `r` of the op `around`. */
static void learn_around(Known *k, Module *m, const Op *around, const Region *r)
{
    if (around->code == OP_if)
        learn(k, op_expr(around, ATTR_COND), r == around->regions[0]);
    if (around->code == OP_while)
        learn(k, op_expr(around, ATTR_COND), true);
    if (around->code != OP_for)
        return;
    const Expr *index = expr_value(&m->exprs, for_index(around));
    learn_order(k, index, op_expr(around, ATTR_UPPER), 1);
    learn_order(k, op_expr(around, ATTR_LOWER), index, 0);
}

/* All that is known where `op` runs. */
static void learn_all(Known *k, const Op *op)
{
    Module *m = op->parent->program->module;
    unsigned passed = 0;
    for (const Op *at = op; at; at = at->parent->parent) {
        for (const Op *before = at->prev; before && passed < PASSED; before = before->prev) {
            passed++;
            if (before->code == OP_assert || before->code == OP_assume)
                learn(k, op_expr(before, ATTR_COND), true);
        }
        if (at->parent->parent)
            learn_around(k, m, at->parent->parent, at->parent);
    }
}

/* ---- proofs ------------------------------------------------------------------- */

static bool follows(Known *k, const LinearSum *goal, unsigned steps);

/* Returns true when the goal is some times `known`, which cancels one of its terms, and a rest
 * that follows. */
static bool follows_by(Known *k, const LinearSum *goal, const LinearSum *known,
                       unsigned steps)
{
    for (unsigned i = 0; i < goal->count; i++) {
        int64_t factor = goal->terms[i].factor;
        int64_t by = linear_factor(known, goal->terms[i].leaf);
        if (factor == 0 || by == 0 || (factor > 0) != (by > 0) || factor == INT64_MIN ||
            factor % by)
            continue;
        LinearSum rest = *goal;
        k->tries++;
        if (linear_add_sum(&rest, known, -(factor / by)) && follows(k, &rest, steps - 1))
            return true;
    }
    return false;
}

static bool follows(Known *k, const LinearSum *goal, unsigned steps)
{
    int64_t min, max;
    if (linear_range(goal, LINEAR_TERMS, &min, &max) && min >= 0)
        return true;
    for (unsigned i = 0; steps && i < k->count && k->tries < TRIES; i++)
        if (follows_by(k, goal, &k->sums[i], steps))
            return true;
    return false;
}

bool conditions_keep_from_zero(const Op *op, const Expr *offset)
{
    LinearSum low = {.count = 0};
    Known known = {.count = 0};
    if (!linear_add(&low, offset, 1))
        return false;
    learn_all(&known, op);
    return follows(&known, &low, STEPS);
}

bool conditions_keep_inside(const Op *op, const Expr *offset, int64_t span,
                            const Expr *extent)
{
    LinearSum low = {.count = 0}, high = {.count = 0};
    Known known = {.count = 0};
    if (!linear_add(&low, offset, 1) || !linear_add(&high, extent, 1) ||
        !linear_add(&high, offset, -1) ||
        __builtin_sub_overflow(high.constant, span, &high.constant))
        return false;
    learn_all(&known, op);
    for (unsigned i = 0; i < high.count; i++)
        learn_leaf(&known, high.terms[i].leaf);
    return follows(&known, &low, STEPS) && follows(&known, &high, STEPS);
}
