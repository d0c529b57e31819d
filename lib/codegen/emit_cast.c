/* The op cast: converts the elements of a thread's words, slot by slot. */
#include "codegen/internal.h"

#include "codegen/convert.h"

/* Whether two elements at a time become one word: f32 to f16 and bf16 has an
 * instruction for pairs (PTX cvt.rn.f16x2.f32, 9.7.9.21). From f8e5m2 to f16 a
 * shift is enough, which the optimiser finds only for single elements. */
static bool is_pairwise(DType to, DType from)
{
    if (to == from || !convert_fits_f32(from))
        return false;
    return to == DTYPE_bf16 || (to == DTYPE_f16 && from != DTYPE_f8e5m2);
}

static LLVMValueRef get_slot(Codegen *cg, LLVMValueRef *words, DType from, int64_t slot)
{
    return emit_get_bits(cg, words, slot * dtype_bits(from), dtype_bits(from));
}

static void cast_pair(Codegen *cg, DType to, DType from, LLVMValueRef *out, LLVMValueRef *in,
                      int64_t slot)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(cg->f32, 2));
    for (unsigned i = 0; i < 2; i++) {
        LLVMValueRef v = convert_decode_f32(b, from, get_slot(cg, in, from, slot + i));
        pair = LLVMBuildInsertElement(b, pair, v, const_i32_of(cg, i), "");
    }
    LLVMTypeRef half = to == DTYPE_f16 ? cg->f16 : cg->bf16;
    pair = LLVMBuildFPTrunc(b, pair, LLVMVectorType(half, 2), "");
    out[slot / 2] = LLVMBuildBitCast(b, pair, cg->i32, "");
}

static void cast_slot(Codegen *cg, DType to, DType from, LLVMValueRef *out, LLVMValueRef *in,
                      int64_t slot)
{
    LLVMValueRef code = convert_code(cg->builder, to, from, get_slot(cg, in, from, slot));
    emit_set_bits(cg, out, slot * dtype_bits(to), dtype_bits(to), code);
}

bool emit_cast(Codegen *cg, const Op *op)
{
    const Type *source = op->operands[0]->type, *result = op->results[0]->type;
    DType from = source->dtype, to = result->dtype;
    LLVMValueRef *in = lowered_words(op->operands[0]);
    LLVMValueRef *out = words_new(cg, result);
    int64_t slots = type_thread_bits(result) / dtype_bits(to), slot = 0;
    if (is_pairwise(to, from))
        for (; slot + 2 <= slots; slot += 2)
            cast_pair(cg, to, from, out, in, slot);
    for (; slot < slots; slot++)
        cast_slot(cg, to, from, out, in, slot);
    lower_words(cg, op->results[0], out);
    return true;
}
