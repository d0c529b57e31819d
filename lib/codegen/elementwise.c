/* Helpers of element-wise emitters: the walk over slots or words, and integers as
 * values. */
#include "codegen/convert_build.h"
#include "codegen/internal.h"

bool emit_slots(Codegen *cg, const Op *op, CodeEmitter *emit)
{
    const Type *t = op->results[0]->type;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *out = words_new(cg, t);
    for (int64_t slot = 0; slot < t->layout->slots; slot++) {
        LLVMValueRef codes[OPERANDS_MAX];
        for (unsigned i = 0; i < op->operand_count; i++) {
            unsigned width = dtype_bits(op->operands[i]->type->dtype);
            codes[i] = emit_get_bits(cg, lowered_words(op->operands[i]), slot * width, width);
        }
        LLVMValueRef code = emit(cg, op, codes);
        if (!code)
            return false;
        emit_set_bits(cg, out, slot * bits, bits, code);
    }
    lower_words(cg, op->results[0], out);
    return true;
}

bool emit_words(Codegen *cg, const Op *op, CodeEmitter *emit)
{
    const Type *t = op->results[0]->type;
    LLVMValueRef *out = words_new(cg, t);
    for (int64_t word = 0; word < type_thread_words(t); word++) {
        LLVMValueRef words[OPERANDS_MAX];
        for (unsigned i = 0; i < op->operand_count; i++)
            words[i] = lowered_words(op->operands[i])[word];
        out[word] = emit(cg, op, words);
        if (!out[word])
            return false;
    }
    lower_words(cg, op->results[0], out);
    return true;
}

LLVMValueRef allow_contraction(Codegen *cg, LLVMValueRef v)
{
    if (cg->program->contract && LLVMIsAInstruction(v) && LLVMCanValueUseFastMathFlags(v))
        LLVMSetFastMathFlags(v, LLVMFastMathAllowContract);
    return v;
}

LLVMValueRef emit_integer_value(Codegen *cg, DType t, LLVMValueRef code)
{
    unsigned above = LLVMGetIntTypeWidth(LLVMTypeOf(code)) - dtype_bits(t);
    if (dtype_info[t].kind != DKIND_INT || above == 0)
        return code;
    LLVMBuilderRef b = cg->builder;
    return LLVMBuildAShr(b, build_shl(b, code, above), const_int(code, above), "");
}

LLVMValueRef emit_integer_code(Codegen *cg, DType t, LLVMValueRef value)
{
    if (dtype_bits(t) == LLVMGetIntTypeWidth(LLVMTypeOf(value)))
        return value;
    return build_and(cg->builder, value, (UINT64_C(1) << dtype_bits(t)) - 1);
}
