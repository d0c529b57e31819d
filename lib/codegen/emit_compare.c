/* Comparison and choice. A bool's code is 8 bits, but what compare gives and
 * select takes is one bit to LLVM: the code between them disappears. Pairs of f16 or bf16 that
 * are compared for a choice of 16-bit elements make a mask of both. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/internal.h"
#include "ir/op_attrs.h"

/* Predicates of floats, ordered: false for a NaN, but `ne` is true. */
static const LLVMRealPredicate float_predicates[] = {
    [PREDICATE_EQ] = LLVMRealOEQ, [PREDICATE_NE] = LLVMRealUNE, [PREDICATE_LT] = LLVMRealOLT,
    [PREDICATE_LE] = LLVMRealOLE, [PREDICATE_GT] = LLVMRealOGT, [PREDICATE_GE] = LLVMRealOGE};

static const LLVMIntPredicate signed_predicates[] = {
    [PREDICATE_EQ] = LLVMIntEQ,  [PREDICATE_NE] = LLVMIntNE,  [PREDICATE_LT] = LLVMIntSLT,
    [PREDICATE_LE] = LLVMIntSLE, [PREDICATE_GT] = LLVMIntSGT, [PREDICATE_GE] = LLVMIntSGE};

static const LLVMIntPredicate unsigned_predicates[] = {
    [PREDICATE_EQ] = LLVMIntEQ,  [PREDICATE_NE] = LLVMIntNE,  [PREDICATE_LT] = LLVMIntULT,
    [PREDICATE_LE] = LLVMIntULE, [PREDICATE_GT] = LLVMIntUGT, [PREDICATE_GE] = LLVMIntUGE};

/* An i1. */
static LLVMValueRef test(Codegen *cg, DType t, Predicate p, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = cg->builder;
    if (dtype_info[t].kind == DKIND_INT)
        return LLVMBuildICmp(b, signed_predicates[p], emit_integer_value(cg, t, x),
                             emit_integer_value(cg, t, y), "");
    if (dtype_is_integer(t))
        return LLVMBuildICmp(b, unsigned_predicates[p], x, y, "");
    if (t == DTYPE_f64)
        return LLVMBuildFCmp(b, float_predicates[p], build_bitcast(b, x, cg->f64),
                             build_bitcast(b, y, cg->f64), "");
    return LLVMBuildFCmp(b, float_predicates[p], convert_decode_f32(b, t, x),
                         convert_decode_f32(b, t, y), "");
}

static LLVMValueRef code_compare(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    Predicate p = compare_predicate(op);
    LLVMValueRef holds = test(cg, op->operands[0]->type->dtype, p, codes[0], codes[1]);
    return LLVMBuildZExt(cg->builder, holds, cg->i32, "");
}

bool emit_compare(Codegen *cg, const Op *op)
{
    return emit_slots(cg, op, code_compare);
}

static LLVMValueRef code_select(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    (void)op;
    LLVMValueRef is_true = build_test(cg->builder, LLVMIntNE, codes[0], 0);
    return build_select(cg->builder, is_true, codes[1], codes[2]);
}

/* ---- pairs ----------------------------------------------------------------- */

static IntrinsicId set_intrinsic(Predicate p, DType t)
{
#define SET(predicate, id) [PREDICATE_##predicate] = {INTR_set_##id##_f16, INTR_set_##id##_bf16}
    static const IntrinsicId ids[][2] = {SET(EQ, eq), SET(NE, ne), SET(LT, lt),
                                         SET(LE, le), SET(GT, gt), SET(GE, ge)};
#undef SET
    return ids[p][t == DTYPE_bf16];
}

/* Returns the comparison by which `op` chooses if both go by pairs: their elements have 16 bits,
 * those compared are floats that the target compares two at once. Else NULL. */
static const Op *paired_compare(const Codegen *cg, const Op *op)
{
    const Op *compare = op->operands[0]->def;
    const Type *t = op->results[0]->type;
    if (dtype_bits(t->dtype) != 16 || !compare || compare->code != OP_compare)
        return NULL;
    const Type *compared = compare->operands[0]->type;
    bool halves = compared->dtype == DTYPE_f16 || compared->dtype == DTYPE_bf16;
    if (!halves || compared->layout != t->layout)
        return NULL;
    IntrinsicId id = set_intrinsic(compare_predicate(compare), compared->dtype);
    return cg->target->sm >= intrinsic_info[id].sm ? compare : NULL;
}

/* Chooses two elements at once: (mask & a) | (~mask & b). What compare gave is not used. */
static bool select_pairs(Codegen *cg, const Op *op, const Op *compare)
{
    const Type *t = op->results[0]->type;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef *x = lowered_words(compare->operands[0]), *y = lowered_words(compare->operands[1]);
    LLVMValueRef *u = lowered_words(op->operands[1]), *v = lowered_words(op->operands[2]);
    LLVMValueRef *out = words_new(cg, t);
    IntrinsicId id = set_intrinsic(compare_predicate(compare), compare->operands[0]->type->dtype);
    for (int64_t word = 0; word < type_thread_words(t); word++) {
        LLVMValueRef pair[] = {x[word], y[word]};
        LLVMValueRef mask = call_intrinsic(cg, id, op->loc, pair, 2);
        if (!mask)
            return false;
        out[word] = LLVMBuildOr(b, LLVMBuildAnd(b, mask, u[word], ""),
                                LLVMBuildAnd(b, LLVMBuildNot(b, mask, ""), v[word], ""), "");
    }
    lower_words(cg, op->results[0], out);
    return true;
}

bool emit_select(Codegen *cg, const Op *op)
{
    const Op *compare = paired_compare(cg, op);
    return compare ? select_pairs(cg, op, compare) : emit_slots(cg, op, code_select);
}
