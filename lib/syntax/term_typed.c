/* Constants of an element type, as T(N) makes them: f32(N) / 2 divides as f32 does. What is done
 * with them is folded as the ops on tensors compute it. */
#include "syntax/term.h"

#include "ir/verify.h"

#include <math.h>

Term term_of_typed(Loc loc, DType t, Constant n)
{
    return (Term){.kind = TERM_NUMBER, .loc = loc, .dtype = t,
                  .number = constant_decode(t, constant_encode(t, n))};
}

/* Gives the constant `a` the type `t` of the one beside it, which must hold it. */
static bool give_type(Parser *p, DType t, const Term *a, uint64_t *code)
{
    Constant n;
    term_constant(a, &n);
    *code = constant_encode(t, n);
    return a->dtype || constant_fits(t, n) || p->untaken ||
           diag_error(p->diag, a->loc, "%s", constant_misfit(&p->m->arena, t, n));
}

/* Compares codes; of a NaN only `!=` is true. */
static bool compare(DType t, Predicate predicate, uint64_t x, uint64_t y)
{
    DOrder order = dtype_order(t, x, y);
    switch (predicate) {
    case PREDICATE_EQ: return order == DORDER_EQUAL;
    case PREDICATE_NE: return order != DORDER_EQUAL;
    case PREDICATE_LT: return order == DORDER_LESS;
    case PREDICATE_LE: return order == DORDER_LESS || order == DORDER_EQUAL;
    case PREDICATE_GT: return order == DORDER_GREATER;
    default: return order == DORDER_GREATER || order == DORDER_EQUAL;
    }
}

typedef uint64_t (*CodeFunction)(DType t, uint64_t a, uint64_t b);

/* Returns the function of codes that an op is; NULL: none of two constants. */
static CodeFunction code_function(OpCode code)
{
    switch (code) {
    case OP_add: return dtype_add;
    case OP_sub: return dtype_sub;
    case OP_mul: return dtype_mul;
    case OP_div: return dtype_div;
    case OP_mod: return dtype_mod;
    case OP_min: return dtype_lesser;
    case OP_max: return dtype_greater;
    case OP_and: return dtype_and;
    case OP_or: return dtype_or;
    case OP_shl: return dtype_shl;
    case OP_shr: return dtype_shr;
    default: return NULL;
    }
}

bool typed_combine(Parser *p, const Operator *o, Loc loc, Term *a, const Term *b)
{
    uint64_t x, y;
    DType t = a->dtype ? a->dtype : b->dtype;
    CodeFunction f = code_function(o->tensor);
    if (b->dtype && b->dtype != t)
        return diag_error(p->diag, loc, "`%s` of %s and %s: cast one, as in %s(..)", o->spelling,
                          dtype_name(t), dtype_name(b->dtype), dtype_name(t));
    if (!give_type(p, t, a, &x) || !give_type(p, t, b, &y))
        return false;
    if (o->predicate != PREDICATE_NONE) {
        *a = term_of_expr(a->loc, expr_constant(&p->m->exprs, compare(t, o->predicate, x, y)));
        return true;
    }
    if (!f || !verify_op_defined(o->tensor, t))
        return diag_error(p->diag, loc, "`%s` is not defined for %s", o->spelling, dtype_name(t));
    if (dtype_is_integer(t) && (o->tensor == OP_div || o->tensor == OP_mod) && !y)
        return term_undefined(p, loc, a, arena_printf(&p->m->arena, "`%s` gives division by zero",
                                                      o->spelling));
    *a = term_of_typed(a->loc, t, constant_decode(t, f(t, x, y)));
    return true;
}

bool typed_negate(Parser *p, Loc loc, Term *a)
{
    DType t = a->dtype;
    if (!verify_op_defined(OP_neg, t))
        return diag_error(p->diag, loc, "`-` is not defined for %s", dtype_name(t));
    *a = term_of_typed(a->loc, t, constant_decode(t, dtype_neg(t, constant_encode(t, a->number))));
    return true;
}
