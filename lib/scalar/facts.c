/* Divisors and ranges of scalar expressions, by one walk over the tree. */
#include "scalar/facts.h"

/* Values visited before the walk gives up: bounds of nested loops may refer to each
 * other many times over. And how deep it goes, through expressions and from values to
 * what is behind them: chains of definitions are as long as the text, the stack not. */
enum { VALUES = 1024, DEPTH = 1024 };

typedef struct Budget {
    int values;             /* left, of all */
    unsigned depth;         /* left, below here */
} Budget;

static const ScalarFacts unknown = {1, INT64_MIN, INT64_MAX};

static ScalarFacts of_expr(const Expr *e, Budget *budget);

static bool has_min(ScalarFacts f) { return f.min != INT64_MIN; }
static bool has_max(ScalarFacts f) { return f.max != INT64_MAX; }

static ScalarFacts of_constant(int64_t c)
{
    int64_t divisor = c == INT64_MIN ? INT64_C(1) << 62 : c < 0 ? -c : c;
    return (ScalarFacts){divisor, c, c};
}

/* ---- values ----------------------------------------------------------- */

/* An expression behind a value. */
static ScalarFacts of_behind(const Expr *e, Budget *budget)
{
    unsigned before = budget->depth, charge = e->depth + 1;
    if (charge > before)
        return unknown;
    budget->depth = before - charge;
    ScalarFacts f = of_expr(e, budget);
    budget->depth = before;
    return f;
}

static ScalarFacts of_block_index(const Value *v, Budget *budget)
{
    ScalarFacts extent = of_behind(v->def->parent->program->grid[v->index], budget);
    return (ScalarFacts){1, 0, has_max(extent) && extent.max > 0 ? extent.max - 1
                                                                 : INT32_MAX - 1};
}

static ScalarFacts of_loop_index(const Op *loop, Budget *budget)
{
    ScalarFacts lower = of_behind(op_expr(loop, ATTR_LOWER), budget);
    ScalarFacts upper = of_behind(op_expr(loop, ATTR_UPPER), budget);
    const Expr *step = op_expr(loop, ATTR_STEP);
    int64_t step_divisor = step ? of_behind(step, budget).divisor : 1;
    return (ScalarFacts){gcd_i64(lower.divisor, step_divisor), lower.min,
                         has_max(upper) && upper.max > INT64_MIN ? upper.max - 1 : upper.max};
}

/* The part of `f` that the type of `v` holds. Outside of it the program is wrong,
 * so where nothing is left `f` will do. */
static ScalarFacts within_type(const Value *v, ScalarFacts f)
{
    int64_t least, most;
    if (!dtype_integer_range(v->type->dtype, &least, &most) || f.min > most || f.max < least)
        return f;
    return (ScalarFacts){f.divisor, f.min > least ? f.min : least,
                         f.max < most ? f.max : most};
}

static ScalarFacts of_scalar(const Value *v, Budget *budget)
{
    return within_type(v, of_behind(op_expr(v->def, ATTR_VALUE), budget));
}

static ScalarFacts of_value(const Value *v, Budget *budget)
{
    if (--budget->values < 0)
        return unknown;
    if (v->program)
        return (ScalarFacts){v->facts.divisible, v->facts.min, v->facts.max};
    if (v->def && v->def->code == OP_block_indices)
        return of_block_index(v, budget);
    if (v->def && v->def->code == OP_cluster_rank)
        return (ScalarFacts){1, 0, program_blocks(v->def->parent->program) - 1};
    if (v->region && v->region->parent->code == OP_for && v->index == 0)
        return of_loop_index(v->region->parent, budget);
    return v->def && v->def->code == OP_scalar ? of_scalar(v, budget)
                                               : within_type(v, unknown);
}

/* ---- operators ---------------------------------------------------------- */

static int64_t known_sum(int64_t a, int64_t b, int64_t otherwise)
{
    int64_t sum;
    return a == otherwise || b == otherwise || __builtin_add_overflow(a, b, &sum) ? otherwise
                                                                                  : sum;
}

static ScalarFacts negate(ScalarFacts a)
{
    /* 2^63 is no i64, but %n - INT64_MIN may well be one. */
    bool representable = has_max(a) && a.max != INT64_MIN;
    return (ScalarFacts){a.divisor, representable ? -a.max : INT64_MIN,
                         has_min(a) ? -a.min : INT64_MAX};
}

static ScalarFacts add(ScalarFacts a, ScalarFacts b)
{
    return (ScalarFacts){gcd_i64(a.divisor, b.divisor), known_sum(a.min, b.min, INT64_MIN),
                         known_sum(a.max, b.max, INT64_MAX)};
}

static int64_t known_product(int64_t a, int64_t b, int64_t otherwise)
{
    int64_t product;
    return a == otherwise || b == otherwise || __builtin_mul_overflow(a, b, &product)
               ? otherwise : product;
}

static ScalarFacts multiply(ScalarFacts a, ScalarFacts b)
{
    ScalarFacts f = unknown;
    if (__builtin_mul_overflow(a.divisor, b.divisor, &f.divisor))
        f.divisor = a.divisor > b.divisor ? a.divisor : b.divisor;
    if (a.min >= 0 && b.min >= 0)
        return (ScalarFacts){f.divisor, known_product(a.min, b.min, INT64_MIN),
                             known_product(a.max, b.max, INT64_MAX)};
    int64_t corners[4];
    if (!has_min(a) || !has_max(a) || !has_min(b) || !has_max(b) ||
        __builtin_mul_overflow(a.min, b.min, &corners[0]) ||
        __builtin_mul_overflow(a.min, b.max, &corners[1]) ||
        __builtin_mul_overflow(a.max, b.min, &corners[2]) ||
        __builtin_mul_overflow(a.max, b.max, &corners[3]))
        return f;
    f.min = f.max = corners[0];
    for (int i = 1; i < 4; i++) {
        f.min = corners[i] < f.min ? corners[i] : f.min;
        f.max = corners[i] > f.max ? corners[i] : f.max;
    }
    return f;
}

/* a / c for c > 0, rounded up or down. */
static int64_t quotient(int64_t a, int64_t c, bool up)
{
    return floor_div(a, c) + (up && floor_mod(a, c) != 0);
}

/* Returns true of numbers above 0. Where no code comes, a range may end before it begins. */
static bool is_above_zero(ScalarFacts f)
{
    return f.min > 0 && f.max >= f.min;
}

/* a / b and ceil_div(a, b) for b > 0. */
static ScalarFacts divide(ScalarFacts a, ScalarFacts b, bool up)
{
    bool exact = b.min == b.max && a.divisor % b.min == 0;
    ScalarFacts f = {exact ? a.divisor / b.min : 1, INT64_MIN, INT64_MAX};
    if (has_min(a))
        f.min = quotient(a.min, a.min < 0 ? b.min : b.max, up);
    if (has_max(a))
        f.max = quotient(a.max, a.max < 0 ? b.max : b.min, up);
    return f;
}

/* a mod b for b > 0. */
static ScalarFacts modulo(ScalarFacts a, ScalarFacts b)
{
    if (b.min == b.max && a.divisor % b.min == 0)
        return of_constant(0);
    if (a.min >= 0 && a.max < b.min)
        return a;
    int64_t most = has_max(b) ? b.max - 1 : INT64_MAX;
    return (ScalarFacts){gcd_i64(a.divisor, b.divisor), 0,
                         a.min >= 0 && a.max < most ? a.max : most};
}

static ScalarFacts pick(ScalarFacts a, ScalarFacts b, bool larger)
{
    int64_t divisor = gcd_i64(a.divisor, b.divisor);
    if (larger)
        return (ScalarFacts){divisor, a.min > b.min ? a.min : b.min,
                             a.max > b.max ? a.max : b.max};
    return (ScalarFacts){divisor, a.min < b.min ? a.min : b.min, a.max < b.max ? a.max : b.max};
}

/* A comparison whose operands' ranges decide it. */
static ScalarFacts compare(ScalarOp op, ScalarFacts a, ScalarFacts b)
{
    bool below = a.max < b.min, not_above = a.max <= b.min;
    bool above = a.min > b.max, not_below = a.min >= b.max;
    bool equal = a.min == a.max && b.min == b.max && a.min == b.min;
    bool always = op == SCALAR_lt   ? below
                  : op == SCALAR_le ? not_above
                  : op == SCALAR_gt ? above
                  : op == SCALAR_ge ? not_below
                  : op == SCALAR_eq ? equal
                                    : below || above;
    bool never = op == SCALAR_lt   ? not_below
                 : op == SCALAR_le ? above
                 : op == SCALAR_gt ? not_above
                 : op == SCALAR_ge ? below
                 : op == SCALAR_eq ? below || above
                                   : equal;
    return always ? of_constant(1) : never ? of_constant(0) : (ScalarFacts){1, 0, 1};
}

static bool is_false(ScalarFacts f) { return f.min == 0 && f.max == 0; }
static bool is_true(ScalarFacts f) { return f.min > 0 || f.max < 0; }

/* `and`, `or`, and `not` of `a` alone, of operands that decide it. */
static ScalarFacts logic(ScalarOp op, ScalarFacts a, ScalarFacts b)
{
    bool always = op == SCALAR_and  ? is_true(a) && is_true(b)
                  : op == SCALAR_or ? is_true(a) || is_true(b)
                                    : is_false(a);
    bool never = op == SCALAR_and  ? is_false(a) || is_false(b)
                 : op == SCALAR_or ? is_false(a) && is_false(b)
                                   : is_true(a);
    return always ? of_constant(1) : never ? of_constant(0) : (ScalarFacts){1, 0, 1};
}

static ScalarFacts of_op(const Expr *e, Budget *budget)
{
    ScalarFacts a = of_expr(e->a, budget);
    ScalarFacts b = e->b ? of_expr(e->b, budget) : unknown;
    switch (e->op) {
    case SCALAR_add: return add(a, b);
    case SCALAR_sub: return add(a, negate(b));
    case SCALAR_neg: return negate(a);
    case SCALAR_mul: return multiply(a, b);
    case SCALAR_min: return pick(a, b, false);
    case SCALAR_max: return pick(a, b, true);
    case SCALAR_div: return is_above_zero(b) ? divide(a, b, false) : unknown;
    case SCALAR_ceil_div: return is_above_zero(b) ? divide(a, b, true) : unknown;
    case SCALAR_mod: return is_above_zero(b) ? modulo(a, b) : unknown;
    case SCALAR_eq:
    case SCALAR_ne:
    case SCALAR_lt:
    case SCALAR_le:
    case SCALAR_gt:
    case SCALAR_ge: return compare(e->op, a, b);
    case SCALAR_or:
    case SCALAR_and:
    case SCALAR_not: return logic(e->op, a, b);
    case SCALAR_OP_COUNT: break;
    }
    return unknown;
}

static ScalarFacts of_expr(const Expr *e, Budget *budget)
{
    if (e->kind == EXPR_CONSTANT)
        return of_constant(e->constant);
    return e->kind == EXPR_VALUE ? of_value(e->value, budget) : of_op(e, budget);
}

/* ---- interface ------------------------------------------------------------ */

ScalarFacts facts_of_value(const Value *v)
{
    Budget budget = {VALUES, DEPTH};
    return of_value(v, &budget);
}

ScalarFacts facts_of_expr(const Expr *e)
{
    Budget budget = {VALUES, DEPTH};
    return of_expr(e, &budget);
}

bool expr_never_fails(const Expr *e)
{
    if (e->kind != EXPR_OP)
        return true;
    ScalarFacts f = facts_of_expr(e);
    return has_min(f) && has_max(f) && expr_never_fails(e->a) &&
           (!e->b || expr_never_fails(e->b));
}

int64_t facts_alignment(const Expr *e, int64_t limit)
{
    int64_t divisor = facts_of_expr(e).divisor, alignment = 1;
    while (alignment < limit && divisor % (2 * alignment) == 0)
        alignment *= 2;
    return alignment;
}
