/* Comparison and choice. A bool's code is 8 bits, but what compare gives and
 * select takes is one bit to LLVM: the code between them disappears. */
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

bool emit_select(Codegen *cg, const Op *op)
{
    return emit_slots(cg, op, code_select);
}
