/* Bit operations: and, or, xor, not of integers take whole words, unused bits too; bools
 * and shifts go slot by slot. */
#include "codegen/convert_build.h"
#include "codegen/internal.h"

static LLVMValueRef apply(LLVMBuilderRef b, OpCode f, LLVMValueRef *v)
{
    switch (f) {
    case OP_and: return LLVMBuildAnd(b, v[0], v[1], "");
    case OP_or: return LLVMBuildOr(b, v[0], v[1], "");
    case OP_xor: return LLVMBuildXor(b, v[0], v[1], "");
    default: return LLVMBuildNot(b, v[0], "");
    }
}

static LLVMValueRef word_logic(Codegen *cg, const Op *op, LLVMValueRef *words)
{
    return apply(cg->builder, op->code, words);
}

/* Every code but 0 is true. */
static LLVMValueRef bool_logic(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        codes[i] = build_test(cg->builder, LLVMIntNE, codes[i], 0);
    return LLVMBuildZExt(cg->builder, apply(cg->builder, op->code, codes), cg->i32, "");
}

static bool emit_logic(Codegen *cg, const Op *op)
{
    bool is_bool = op->results[0]->type->dtype == DTYPE_bool;
    return is_bool ? emit_slots(cg, op, bool_logic) : emit_words(cg, op, word_logic);
}

bool emit_and(Codegen *cg, const Op *op) { return emit_logic(cg, op); }
bool emit_or(Codegen *cg, const Op *op) { return emit_logic(cg, op); }
bool emit_xor(Codegen *cg, const Op *op) { return emit_logic(cg, op); }
bool emit_not(Codegen *cg, const Op *op) { return emit_logic(cg, op); }

/* LLVM defines shifts by less than the width only. */
static LLVMValueRef code_shift(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    LLVMBuilderRef b = cg->builder;
    DType t = op->results[0]->type->dtype;
    LLVMValueRef most = const_int(codes[1], dtype_bits(t) - 1);
    LLVMValueRef count = build_binary(b, "llvm.umin", codes[1], most);
    if (op->code == OP_shr && dtype_info[t].kind == DKIND_INT) {
        LLVMValueRef x = emit_integer_value(cg, t, codes[0]);
        return emit_integer_code(cg, t, LLVMBuildAShr(b, x, count, ""));
    }
    LLVMValueRef shifted = op->code == OP_shl
                               ? emit_integer_code(cg, t, LLVMBuildShl(b, codes[0], count, ""))
                               : LLVMBuildLShr(b, codes[0], count, "");
    LLVMValueRef beyond = LLVMBuildICmp(b, LLVMIntUGT, codes[1], most, "");
    return build_select(b, beyond, const_int(shifted, 0), shifted);
}

bool emit_shl(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_shift); }
bool emit_shr(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_shift); }
