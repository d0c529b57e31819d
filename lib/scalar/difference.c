/* Both expressions become one sum of leaves with factors, where equal leaves
 * cancel. Quotients and remainders of expressions that differ by a constant k
 * leave two values each:
 *
 *     (x + k) mod c - x mod c     is  k mod c  or  k mod c - c
 *     (x + k) / c - x / c         is  k / c  or, unless c divides k, k / c + 1
 *
 * so the slots of a ring of c tiles are told apart whatever x is. Where c is no constant, k is a
 * multiple of it, and leaves one value. Products of two sums are sums of products where that makes
 * the difference one number:
 *
 *     ((x + c) / c) * n - (x / c) * n - n   is  0
 */
#include "scalar/difference.h"

#include "scalar/facts.h"

#include <assert.h>

enum { TERMS = 16, NESTED = 8 };

typedef struct Term {
    const Expr *leaf, *by;      /* leaf, or leaf * by, in the order of their numbers */
    int64_t factor;
} Term;

typedef struct Sum {
    Term terms[TERMS];
    unsigned count;
    int64_t constant;
    bool expands;               /* products of sums */
} Sum;

/* ---- sums -------------------------------------------------------------- */

static bool is_same_term(const Term *t, const Expr *leaf, const Expr *by)
{
    return (t->leaf == leaf && t->by == by) || (t->leaf == by && t->by == leaf);
}

/* Adds factor * leaf, or factor * leaf * by. */
static bool add_product_term(Sum *s, const Expr *leaf, const Expr *by, int64_t factor)
{
    int64_t sum;
    for (unsigned i = 0; i < s->count; i++)
        if (is_same_term(&s->terms[i], leaf, by)) {
            bool fits = !__builtin_add_overflow(s->terms[i].factor, factor, &sum);
            s->terms[i].factor = fits ? sum : s->terms[i].factor;
            return fits;
        }
    if (s->count == TERMS)
        return false;
    s->terms[s->count++] = (Term){leaf, by, factor};
    return true;
}

static bool add_term(Sum *s, const Expr *leaf, int64_t factor)
{
    return add_product_term(s, leaf, NULL, factor);
}

static bool add_expr(Sum *s, const Expr *e, int64_t factor);

/* Adds factor * x * y, of which none is a product; a constant is a term without a leaf. */
static bool add_terms(Sum *s, const Term *x, const Term *y, int64_t factor)
{
    int64_t all;
    if (x->by || y->by || __builtin_mul_overflow(x->factor, y->factor, &all) ||
        __builtin_mul_overflow(all, factor, &all))
        return false;
    if (!x->leaf && !y->leaf)
        return !__builtin_add_overflow(s->constant, all, &s->constant);
    return x->leaf ? add_product_term(s, x->leaf, y->leaf, all) : add_term(s, y->leaf, all);
}

/* Adds factor times the product of two sums. */
static bool add_expanded(Sum *s, const Expr *e, int64_t factor)
{
    Sum of[2] = {{.expands = true}, {.expands = true}};
    if (!add_expr(&of[0], e->a, 1) || !add_expr(&of[1], e->b, 1))
        return false;
    for (unsigned i = 0; i <= of[0].count; i++)
        for (unsigned j = 0; j <= of[1].count; j++) {
            Term x = i < of[0].count ? of[0].terms[i] : (Term){.factor = of[0].constant};
            Term y = j < of[1].count ? of[1].terms[j] : (Term){.factor = of[1].constant};
            if (x.factor && y.factor && !add_terms(s, &x, &y, factor))
                return false;
        }
    return true;
}

static bool add_product(Sum *s, const Expr *e, int64_t factor)
{
    const Expr *by = expr_is_constant(e->b) ? e->b : e->a;
    int64_t scaled;
    if (!expr_is_constant(by))
        return s->expands ? add_expanded(s, e, factor) : add_term(s, e, factor);
    return !__builtin_mul_overflow(by->constant, factor, &scaled) &&
           add_expr(s, by == e->b ? e->a : e->b, scaled);
}

/* A remainder that changes nothing is left out. */
static bool add_remainder(Sum *s, const Expr *e, int64_t factor)
{
    ScalarFacts f = facts_of_expr(e->a);
    bool same = expr_is_constant(e->b) && f.min >= 0 && f.max < e->b->constant;
    return same ? add_expr(s, e->a, factor) : add_term(s, e, factor);
}

static bool is_zero(const Sum *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->terms[i].factor)
            return false;
    return s->constant == 0;
}

static bool is_zero_expr(const Expr *e)
{
    Sum s = {.expands = true};
    return add_expr(&s, e, 1) && is_zero(&s);
}

/* Adds factor * e; false when it does not fit. */
static bool add_expr(Sum *s, const Expr *e, int64_t factor)
{
    int64_t scaled;
    if (expr_is_constant(e))
        return !__builtin_mul_overflow(e->constant, factor, &scaled) &&
               !__builtin_add_overflow(s->constant, scaled, &s->constant);
    if (e->kind != EXPR_OP || factor == INT64_MIN)
        return add_term(s, e, factor);
    switch (e->op) {
    case SCALAR_add: return add_expr(s, e->a, factor) && add_expr(s, e->b, factor);
    case SCALAR_sub: return add_expr(s, e->a, factor) && add_expr(s, e->b, -factor);
    case SCALAR_neg: return add_expr(s, e->a, -factor);
    case SCALAR_mul: return add_product(s, e, factor);
    case SCALAR_mod: return add_remainder(s, e, factor);
    case SCALAR_div: return (s->expands && is_zero_expr(e->a)) || add_term(s, e, factor);
    default: return add_term(s, e, factor);
    }
}

/* ---- quotients and remainders ------------------------------------------ */

static Difference difference(const Expr *a, const Expr *b, unsigned depth);

/* Finds k with b - a == k * by, for a leaf `by`. */
static bool find_multiple(const Expr *a, const Expr *b, const Expr *by, int64_t *k)
{
    Sum s = {.expands = true};
    *k = 0;
    if (!add_expr(&s, b, 1) || !add_expr(&s, a, -1))
        return false;
    for (unsigned i = 0; i < s.count; i++)
        if (is_same_term(&s.terms[i], by, NULL)) {
            *k = s.terms[i].factor;
            s.terms[i].factor = 0;
        }
    return is_zero(&s);
}

/* The values of leaf - other, two numbers, when they are quotients or remainders by one
 * divisor. */
static bool pair_values(const Expr *leaf, const Expr *other, unsigned depth, int64_t *values)
{
    if (leaf->kind != EXPR_OP || other->kind != EXPR_OP || leaf->op != other->op ||
        (leaf->op != SCALAR_mod && leaf->op != SCALAR_div) || leaf->b != other->b)
        return false;
    if (!expr_is_constant(leaf->b)) {
        bool found = depth < NESTED && find_multiple(other->a, leaf->a, leaf->b, &values[0]);
        values[0] = leaf->op == SCALAR_mod ? 0 : values[0];
        values[1] = values[0];
        return found;
    }
    if (leaf->b->constant < 1)
        return false;
    Difference inner = difference(other->a, leaf->a, depth + 1);
    if (!difference_is_exact(&inner) || inner.count > 1)
        return false;
    int64_t k = inner.values[0], c = leaf->b->constant, rest = floor_mod(k, c);
    bool remainder = leaf->op == SCALAR_mod;
    values[0] = remainder ? rest : floor_div(k, c);
    values[1] = rest == 0 ? values[0] : remainder ? rest - c : values[0] + 1;
    return true;
}

/* Each value plus factor * either of two. */
static bool multiply_values(Difference *d, const int64_t *pair, int64_t factor)
{
    Difference all = *d;
    all.count = 0;
    for (unsigned i = 0; i < d->count; i++)
        for (unsigned j = 0; j < (pair[0] == pair[1] ? 1u : 2u); j++) {
            int64_t *value = &all.values[all.count];
            if (all.count == DIFFERENCE_VALUES ||
                __builtin_mul_overflow(pair[j], factor, value) ||
                __builtin_add_overflow(*value, d->values[i], value))
                return false;
            all.count++;
        }
    *d = all;
    return true;
}

/* Finds the pair of leaves in two terms of opposite factors, and what both are multiplied by. */
static bool find_pair(const Term *x, const Term *y, unsigned depth, int64_t *values,
                      const Expr **by)
{
    const Expr *of_x[] = {x->leaf, x->by}, *of_y[] = {y->leaf, y->by};
    if (!x->by != !y->by || x->factor <= 0 || y->factor >= 0 || x->factor + y->factor != 0)
        return false;
    for (unsigned i = 0; i < (x->by ? 2u : 1u); i++)
        for (unsigned j = 0; j < (x->by ? 2u : 1u); j++) {
            *by = of_x[!i];
            if (*by == of_y[!j] && pair_values(of_x[i], of_y[j], depth, values))
                return true;
        }
    return false;
}

/* Adds the difference of a pair, times `by` and `factor`, to the sum or to its values. */
static bool add_pair(Sum *s, Difference *d, const int64_t *values, const Expr *by, int64_t factor)
{
    int64_t scaled;
    if (!by)
        return multiply_values(d, values, factor);
    return values[0] == values[1] && !__builtin_mul_overflow(values[0], factor, &scaled) &&
           (scaled == 0 || add_term(s, by, scaled));
}

/* Takes terms that make such a pair out of the sum. */
static void take_pairs(Sum *s, Difference *d, unsigned depth)
{
    int64_t values[2];
    const Expr *by;
    for (unsigned i = 0; i < s->count; i++)
        for (unsigned j = 0; j < s->count; j++) {
            Term *x = &s->terms[i], *y = &s->terms[j];
            if (i != j && find_pair(x, y, depth, values, &by) &&
                add_pair(s, d, values, by, x->factor))
                x->factor = y->factor = 0;
        }
}

/* ---- the rest ---------------------------------------------------------- */

static void add_bound(int64_t *sum, int64_t bound, int64_t factor, int64_t unknown)
{
    bool known = *sum != unknown && bound != INT64_MIN && bound != INT64_MAX;
    if (!known || __builtin_mul_overflow(bound, factor, &bound) ||
        __builtin_add_overflow(*sum, bound, sum))
        *sum = unknown;
}

static void add_rest(Difference *d, const Term *t)
{
    ScalarFacts f = facts_of_expr(t->leaf);
    int64_t step;
    if (t->factor == 0)
        return;
    if (__builtin_mul_overflow(t->factor, f.divisor, &step))
        step = t->factor;
    d->rest_divisor = gcd_i64(d->rest_divisor, step);
    add_bound(&d->rest_min, t->factor > 0 ? f.min : f.max, t->factor, INT64_MIN);
    add_bound(&d->rest_max, t->factor > 0 ? f.max : f.min, t->factor, INT64_MAX);
}

/* Products of sums stay leaves, whose facts are known, unless they cancel as sums. */
static bool expanded_difference(const Expr *a, const Expr *b, unsigned depth, Difference *d)
{
    Sum s = {.expands = true};
    if (!add_expr(&s, b, 1) || !add_expr(&s, a, -1))
        return false;
    *d = (Difference){.count = 1, .values = {s.constant}};
    s.constant = 0;
    take_pairs(&s, d, depth);
    return is_zero(&s);
}

static bool has_products(const Sum *s)
{
    for (unsigned i = 0; i < s->count; i++)
        if (s->terms[i].factor && s->terms[i].leaf->kind == EXPR_OP &&
            s->terms[i].leaf->op == SCALAR_mul)
            return true;
    return false;
}

static Difference difference(const Expr *a, const Expr *b, unsigned depth)
{
    Difference unknown = {.count = 1, .rest_min = INT64_MIN, .rest_max = INT64_MAX,
                          .rest_divisor = 1};
    Difference expanded;
    Sum s = {.count = 0};
    if (depth == NESTED || !add_expr(&s, b, 1) || !add_expr(&s, a, -1))
        return unknown;
    Difference d = {.count = 1, .values = {s.constant}};
    take_pairs(&s, &d, depth);
    if (has_products(&s) && expanded_difference(a, b, depth, &expanded))
        return expanded;
    for (unsigned i = 0; i < s.count; i++)
        add_rest(&d, &s.terms[i]);
    return d;
}

Difference difference_of(const Expr *a, const Expr *b)
{
    return difference(a, b, 0);
}

/* ---- narrowing --------------------------------------------------------- */

static bool add_value(Difference *d, int64_t value)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->values[i] == value)
            return true;
    if (d->count == DIFFERENCE_VALUES)
        return false;
    d->values[d->count++] = value;
    return true;
}

/* Cuts [*low, *high] to where value + rest can be. A sum beyond 64 bits lies on the
 * side of its rest, outside of every such range. False when nothing is left. */
static bool cut_to_rest(const Difference *d, int64_t value, int64_t *low, int64_t *high)
{
    int64_t sum;
    if (d->rest_min > INT64_MIN) {
        if (!__builtin_add_overflow(value, d->rest_min, &sum))
            *low = sum > *low ? sum : *low;
        else if (value > 0)
            return false;
    }
    if (d->rest_max < INT64_MAX) {
        if (!__builtin_add_overflow(value, d->rest_max, &sum))
            *high = sum < *high ? sum : *high;
        else if (value < 0)
            return false;
    }
    return *low <= *high;
}

/* The distance from `low` up to the grid of value + n * step. */
static int64_t to_grid(int64_t low, int64_t value, int64_t step)
{
    return floor_mod(floor_mod(value, step) - floor_mod(low, step), step);
}

/* Adds to `inside` each value + rest in [low, high]; false when they are too many. */
static bool add_sums(Difference *inside, const Difference *d, int64_t value, int64_t low,
                     int64_t high)
{
    int64_t step = d->rest_divisor, sum;
    if (step == 0)
        return value < low || value > high || add_value(inside, value);
    if (!cut_to_rest(d, value, &low, &high) ||
        __builtin_add_overflow(low, to_grid(low, value, step), &sum))
        return true;
    while (sum <= high) {
        assert(floor_mod(sum, step) == floor_mod(value, step));
        if (!add_value(inside, sum))
            return false;
        if (__builtin_add_overflow(sum, step, &sum))
            break;
    }
    return true;
}

bool difference_narrow(Difference *d, int64_t below, int64_t above)
{
    Difference inside = {.count = 0};
    assert(below > 0 && above > 0);
    for (unsigned i = 0; i < d->count; i++)
        if (!add_sums(&inside, d, d->values[i], 1 - below, above - 1))
            return false;
    *d = inside;
    return true;
}
