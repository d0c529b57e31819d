/* Scalar expressions as i64 arithmetic. Overflow is undefined by the language,
 * so sums and products are nsw; `/` and `mod` round toward minus infinity. */
#include "codegen/recurrence.h"

/* Subexpressions already computed by one emit_expr: trees share nodes, and a
 * walk of every path could take exponential time. */
typedef struct Computed {
    const Expr *expr;
    LLVMValueRef value;
} Computed;

typedef struct ExprEmitter {
    Codegen *cg;
    InternSet done;     /* of Computed */
} ExprEmitter;

static bool computed_equal(const void *a, const void *b)
{
    return ((const Computed *)a)->expr == ((const Computed *)b)->expr;
}

static bool fits_u32(ScalarFacts f)
{
    return f.min >= 0 && f.max <= UINT32_MAX;
}

/* a / b or a mod b of operands that are not negative, in 32 bits if they fit:
 * 64-bit division is a long sequence on a GPU. */
static LLVMValueRef divide_unsigned(Codegen *cg, bool narrow, LLVMValueRef a, LLVMValueRef b,
                                    bool rest)
{
    LLVMBuilderRef at = cg->builder;
    if (narrow) {
        a = LLVMBuildTrunc(at, a, cg->i32, "");
        b = LLVMBuildTrunc(at, b, cg->i32, "");
    }
    LLVMValueRef v = rest ? LLVMBuildURem(at, a, b, "") : LLVMBuildUDiv(at, a, b, "");
    return narrow ? LLVMBuildZExt(at, v, cg->i64, "") : v;
}

/* Floor division from the machine's, which truncates: where a rest is left and
 * the signs differ, the quotient is one less and the rest `b` more. A ceiling is
 * one more where a rest is left and the signs are the same. */
static LLVMValueRef divide_signed(Codegen *cg, ScalarOp op, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef at = cg->builder;
    LLVMValueRef zero = const_i64_of(cg, 0);
    LLVMValueRef quotient = LLVMBuildSDiv(at, a, b, "");
    LLVMValueRef rest = LLVMBuildSub(at, a, LLVMBuildMul(at, quotient, b, ""), "");
    LLVMValueRef left = LLVMBuildICmp(at, LLVMIntNE, rest, zero, "");
    LLVMIntPredicate signs = op == SCALAR_ceil_div ? LLVMIntSGE : LLVMIntSLT;
    LLVMValueRef sign = LLVMBuildICmp(at, signs, LLVMBuildXor(at, a, b, ""), zero, "");
    LLVMValueRef adjust = LLVMBuildAnd(at, left, sign, "");
    if (op == SCALAR_mod)
        return LLVMBuildAdd(at, rest, LLVMBuildSelect(at, adjust, b, zero, ""), "");
    LLVMValueRef one = LLVMBuildZExt(at, adjust, cg->i64, "");
    return op == SCALAR_ceil_div ? LLVMBuildAdd(at, quotient, one, "")
                                 : LLVMBuildSub(at, quotient, one, "");
}

LLVMValueRef emit_division(Codegen *cg, const Expr *e, LLVMValueRef a, ScalarFacts f, LLVMValueRef b)
{
    ScalarFacts divisor = facts_of_expr(e->b);
    int64_t by = expr_is_constant(e->b) ? e->b->constant : 0;
    bool rest = e->op == SCALAR_mod;
    if (by > 0 && f.divisor % by == 0)
        return rest ? const_i64_of(cg, 0) : LLVMBuildExactSDiv(cg->builder, a, b, "");
    if (by > 0 && (by & (by - 1)) == 0 && e->op != SCALAR_ceil_div)
        return rest ? LLVMBuildAnd(cg->builder, a, const_i64_of(cg, by - 1), "")
                    : LLVMBuildAShr(cg->builder, a, const_i64_of(cg, __builtin_ctzll(by)), "");
    if (e->op != SCALAR_ceil_div && f.min >= 0 && divisor.min >= 0)
        return divide_unsigned(cg, fits_u32(f) && fits_u32(divisor), a, b, rest);
    return divide_signed(cg, e->op, a, b);
}

static LLVMValueRef is_true(Codegen *cg, LLVMValueRef v)
{
    return LLVMBuildICmp(cg->builder, LLVMIntNE, v, const_i64_of(cg, 0), "");
}

static LLVMValueRef compare(Codegen *cg, LLVMIntPredicate is, LLVMValueRef a, LLVMValueRef b)
{
    return LLVMBuildZExt(cg->builder, LLVMBuildICmp(cg->builder, is, a, b, ""), cg->i64, "");
}

static LLVMValueRef choose(Codegen *cg, LLVMIntPredicate is, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef first = LLVMBuildICmp(cg->builder, is, a, b, "");
    return LLVMBuildSelect(cg->builder, first, a, b, "");
}

static LLVMValueRef logic(Codegen *cg, ScalarOp op, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef x = is_true(cg, a), y = is_true(cg, b);
    LLVMValueRef v = op == SCALAR_and ? LLVMBuildAnd(cg->builder, x, y, "")
                                      : LLVMBuildOr(cg->builder, x, y, "");
    return LLVMBuildZExt(cg->builder, v, cg->i64, "");
}

static LLVMValueRef apply(Codegen *cg, const Expr *e, LLVMValueRef a, LLVMValueRef b)
{
    LLVMBuilderRef at = cg->builder;
    switch (e->op) {
    case SCALAR_or:
    case SCALAR_and: return logic(cg, e->op, a, b);
    case SCALAR_not: return compare(cg, LLVMIntEQ, a, const_i64_of(cg, 0));
    case SCALAR_eq: return compare(cg, LLVMIntEQ, a, b);
    case SCALAR_ne: return compare(cg, LLVMIntNE, a, b);
    case SCALAR_lt: return compare(cg, LLVMIntSLT, a, b);
    case SCALAR_le: return compare(cg, LLVMIntSLE, a, b);
    case SCALAR_gt: return compare(cg, LLVMIntSGT, a, b);
    case SCALAR_ge: return compare(cg, LLVMIntSGE, a, b);
    case SCALAR_add: return LLVMBuildNSWAdd(at, a, b, "");
    case SCALAR_sub: return LLVMBuildNSWSub(at, a, b, "");
    case SCALAR_mul: return LLVMBuildNSWMul(at, a, b, "");
    case SCALAR_div:
    case SCALAR_mod:
    case SCALAR_ceil_div: return emit_division(cg, e, a, facts_of_expr(e->a), b);
    case SCALAR_neg: return LLVMBuildNSWNeg(at, a, "");
    case SCALAR_min: return choose(cg, LLVMIntSLT, a, b);
    case SCALAR_max: return choose(cg, LLVMIntSGT, a, b);
    case SCALAR_OP_COUNT: break;
    }
    return NULL;
}

static LLVMValueRef compute(ExprEmitter *x, const Expr *e);

static LLVMValueRef compute_op(ExprEmitter *x, const Expr *e)
{
    LLVMValueRef carried = carried_division(x->cg, e);
    if (carried)
        return carried;
    LLVMValueRef a = compute(x, e->a);
    LLVMValueRef b = e->b ? compute(x, e->b) : NULL;
    return apply(x->cg, e, a, b);
}

static LLVMValueRef compute(ExprEmitter *x, const Expr *e)
{
    if (e->kind == EXPR_CONSTANT)
        return const_i64_of(x->cg, e->constant);
    if (e->kind == EXPR_VALUE)
        return lowered(e->value)->value;
    const Computed *known = intern_find(&x->done, e->hash, &(Computed){e, NULL});
    if (known)
        return known->value;
    Computed *fresh = arena_new(&x->cg->module->scratch, Computed);
    *fresh = (Computed){e, compute_op(x, e)};
    intern_add(&x->done, e->hash, fresh);
    return fresh->value;
}

LLVMValueRef emit_expr(Codegen *cg, const Expr *e)
{
    ExprEmitter x = {.cg = cg};
    intern_init(&x.done, &cg->module->scratch, computed_equal);
    return compute(&x, e);
}
