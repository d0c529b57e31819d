/* Bounds proofs, by ranges, by structure, and at last by conditions.
 *
 * By structure: block and loop indices run below a count n, and tiles are cut
 * from an extent E by
 *
 *     program @p<E / c>              for %v in 0 .. E / c
 *     load_global %g[%v * c + rest]
 *
 * Let v and n be multiples of g (1 when nothing is known). Then v <= n - g, so
 * with 0 <= rest and rest + span <= g * c
 *
 *     v * c + rest + span <= (n - g) * c + g * c = n * c <= E.
 *
 * Where an op runs, each block and each loop around it has an iteration, so n >= g even
 * if no index stands in the offset: it may be 0, as it is in the only iteration. */
#include "scalar/bounds.h"

#include "ir/loop.h"
#include "scalar/conditions.h"
#include "scalar/facts.h"
#include "scalar/linear.h"

/* The count that an index runs below: v in [0, n). NULL when `v` is no index,
 * or may be negative. */
static const Expr *index_count(const Value *v)
{
    if (v->def && v->def->code == OP_block_indices)
        return v->def->parent->program->grid[v->index];
    const Op *loop = v->region ? v->region->parent : NULL;
    if (!loop || loop->code != OP_for || v != for_index(loop))
        return NULL;
    return facts_of_expr(op_expr(loop, ATTR_LOWER)).min >= 0 ? op_expr(loop, ATTR_UPPER) : NULL;
}

/* The most that the count n >= 1 of a loop cut into whole iterations can be: x of
 * x / a * a, and x of max(x, 0). */
static const Expr *uncut(const Expr *n)
{
    if (n->kind == EXPR_OP && n->op == SCALAR_mul && n->a->kind == EXPR_OP &&
        n->a->op == SCALAR_div && n->a->b == n->b && expr_is_constant(n->b) &&
        n->b->constant > 0)
        n = n->a->a;
    if (n->kind == EXPR_OP && n->op == SCALAR_max && expr_is_constant(n->b) &&
        n->b->constant == 0)
        n = n->a;
    return n;
}

/* Returns true when n * c <= extent, for c >= 1 and every n >= 0. */
static bool count_fits(const Expr *n, int64_t c, const Expr *extent)
{
    int64_t product;
    if (n == extent)
        return c == 1;
    if (n->kind == EXPR_OP && n->a == extent && n->b && expr_is_constant(n->b)) {
        int64_t by = n->b->constant;
        if (n->op == SCALAR_div && c <= by)
            return true;
        if (n->op == SCALAR_ceil_div && c <= by && facts_of_expr(extent).divisor % by == 0)
            return true;
    }
    if (extent->kind == EXPR_OP && extent->op == SCALAR_mul &&
        ((extent->a == n && expr_is_constant(extent->b) && c <= extent->b->constant) ||
         (extent->b == n && expr_is_constant(extent->a) && c <= extent->a->constant)))
        return true;
    return !__builtin_mul_overflow(facts_of_expr(n).max, c, &product) &&
           product <= facts_of_expr(extent).min;
}

/* The proof with term `i` as v * c. */
static bool proved_by_index(const LinearSum *s, unsigned i, int64_t span, const Expr *extent)
{
    const LinearTerm *t = &s->terms[i];
    const Expr *n = t->leaf->kind == EXPR_VALUE ? index_count(t->leaf->value) : NULL;
    int64_t min, max, step;
    if (!n || t->factor < 1 || !linear_range(s, i, &min, &max) || min < 0)
        return false;
    int64_t g = gcd_i64(facts_of_expr(t->leaf).divisor, facts_of_expr(n).divisor);
    if (__builtin_mul_overflow(g > 0 ? g : 1, t->factor, &step))
        return false;
    return !__builtin_add_overflow(max, span, &max) && max <= step &&
           (count_fits(n, t->factor, extent) || count_fits(uncut(n), t->factor, extent));
}

/* Proves that the first `end` elements are inside as there is an iteration of the index
 * that runs below `n` (NULL: none): n >= g, and end <= g * c. */
static bool proved_by_iteration(const Expr *n, int64_t end, const Expr *extent)
{
    if (!n)
        return false;
    int64_t g = facts_of_expr(n).divisor;
    return count_fits(n, g > 0 ? (end - 1) / g + 1 : end, extent);
}

/* Tries proved_by_iteration for each block and loop around `op`. */
static bool proved_by_iterations(const Op *op, int64_t end, const Expr *extent)
{
    const Program *p = op->parent->program;
    for (unsigned d = 0; d < p->grid_rank; d++)
        if (proved_by_iteration(p->grid[d], end, extent))
            return true;
    for (const Op *loop = op->parent->parent; loop; loop = loop->parent->parent)
        if (loop->code == OP_for &&
            proved_by_iteration(index_count(for_index(loop)), end, extent))
            return true;
    return false;
}

static bool proved_by_structure(const Op *op, const Expr *offset, int64_t span,
                                const Expr *extent)
{
    LinearSum s = {.count = 0};
    int64_t end;
    ScalarFacts f = facts_of_expr(offset);
    if (f.min >= 0 && !__builtin_add_overflow(f.max, span, &end) &&
        (end <= facts_of_expr(extent).min || proved_by_iterations(op, end, extent)))
        return true;
    if (!linear_add(&s, offset, 1))
        return false;
    for (unsigned i = 0; i < s.count; i++)
        if (proved_by_index(&s, i, span, extent))
            return true;
    return false;
}

bool bounds_proved(const Op *op, const Expr *offset, int64_t span, const Expr *extent)
{
    return proved_by_structure(op, offset, span, extent) ||
           conditions_keep_inside(op, offset, span, extent);
}

bool bounds_from_zero(const Op *op, const Expr *offset)
{
    return facts_of_expr(offset).min >= 0 || conditions_keep_from_zero(op, offset);
}
