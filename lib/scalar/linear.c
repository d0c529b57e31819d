/* Sums of scalar expressions. */
#include "scalar/linear.h"

#include "scalar/facts.h"

enum { SCALARS = 16 };

static bool add_term(LinearSum *s, const Expr *leaf, int64_t factor)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->terms[i].leaf == leaf)
            return !__builtin_add_overflow(s->terms[i].factor, factor, &s->terms[i].factor);
    if (s->count == LINEAR_TERMS)
        return false;
    s->terms[s->count++] = (LinearTerm){leaf, factor};
    return true;
}

bool linear_add(LinearSum *s, const Expr *e, int64_t factor)
{
    int64_t scaled;
    if (expr_is_constant(e))
        return !__builtin_mul_overflow(e->constant, factor, &scaled) &&
               !__builtin_add_overflow(s->constant, scaled, &s->constant);
    if (e->kind == EXPR_VALUE && e->value->def && e->value->def->code == OP_scalar &&
        s->scalars++ < SCALARS)
        return linear_add(s, op_expr(e->value->def, ATTR_VALUE), factor);
    if (e->kind != EXPR_OP)
        return add_term(s, e, factor);
    switch (e->op) {
    case SCALAR_add: return linear_add(s, e->a, factor) && linear_add(s, e->b, factor);
    case SCALAR_sub:
        return factor != INT64_MIN && linear_add(s, e->a, factor) &&
               linear_add(s, e->b, -factor);
    case SCALAR_mul: {
        const Expr *by = expr_is_constant(e->b) ? e->b : e->a;
        const Expr *other = by == e->b ? e->a : e->b;
        if (!expr_is_constant(by))
            return add_term(s, e, factor);
        return !__builtin_mul_overflow(by->constant, factor, &scaled) &&
               linear_add(s, other, scaled);
    }
    default: return add_term(s, e, factor);
    }
}

/* Adds to [*min, *max] the range of factor * leaf; false when unknown. */
static bool add_range(const LinearTerm *t, int64_t *min, int64_t *max)
{
    ScalarFacts f = facts_of_expr(t->leaf);
    int64_t low = t->factor >= 0 ? f.min : f.max, high = t->factor >= 0 ? f.max : f.min;
    return !__builtin_mul_overflow(low, t->factor, &low) &&
           !__builtin_mul_overflow(high, t->factor, &high) &&
           !__builtin_add_overflow(*min, low, min) && !__builtin_add_overflow(*max, high, max);
}

bool linear_range(const LinearSum *s, unsigned skip, int64_t *min, int64_t *max)
{
    *min = *max = s->constant;
    for (unsigned i = 0; i < s->count; i++)
        if (i != skip && !add_range(&s->terms[i], min, max))
            return false;
    return true;
}

bool linear_add_sum(LinearSum *s, const LinearSum *t, int64_t factor)
{
    int64_t scaled;
    if (__builtin_mul_overflow(t->constant, factor, &scaled) ||
        __builtin_add_overflow(s->constant, scaled, &s->constant))
        return false;
    for (unsigned i = 0; i < t->count; i++)
        if (__builtin_mul_overflow(t->terms[i].factor, factor, &scaled) ||
            !add_term(s, t->terms[i].leaf, scaled))
            return false;
    return true;
}

int64_t linear_factor(const LinearSum *s, const Expr *leaf)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->terms[i].leaf == leaf)
            return s->terms[i].factor;
    return 0;
}
