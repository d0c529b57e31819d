/* Bit ranges of packed register words, by shifts and ors on i32: narrow vector
 * types (<4 x i6>) would be split badly by instruction selection. */
#include "codegen/internal.h"

LLVMValueRef *words_new(Codegen *cg, const Type *t)
{
    int64_t count = type_thread_words(t);
    LLVMValueRef *words = arena_array(&cg->module->scratch, LLVMValueRef, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        words[i] = const_i32_of(cg, 0);
    return words;
}

static LLVMValueRef shift_left(Codegen *cg, LLVMValueRef v, unsigned by)
{
    return by ? LLVMBuildShl(cg->builder, v, const_i32_of(cg, by), "") : v;
}

static LLVMValueRef shift_right(Codegen *cg, LLVMValueRef v, unsigned by)
{
    return by ? LLVMBuildLShr(cg->builder, v, const_i32_of(cg, by), "") : v;
}

static LLVMValueRef mask_low(Codegen *cg, LLVMValueRef v, unsigned nbits)
{
    if (nbits == 32)
        return v;
    return LLVMBuildAnd(cg->builder, v, const_i32_of(cg, (UINT32_C(1) << nbits) - 1), "");
}

/* Builds an `or` without constant zeros, so that unoptimized IR stays readable. */
static LLVMValueRef merge(Codegen *cg, LLVMValueRef a, LLVMValueRef b)
{
    if (LLVMIsAConstantInt(a) && LLVMConstIntGetZExtValue(a) == 0)
        return b;
    return LLVMBuildOr(cg->builder, a, b, "");
}

static LLVMValueRef get_word(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits)
{
    int64_t word = bit / 32;
    unsigned at = (unsigned)(bit % 32);
    LLVMValueRef v = shift_right(cg, words[word], at);
    if (at + nbits <= 32)
        return at + nbits == 32 ? v : mask_low(cg, v, nbits);
    LLVMValueRef high = shift_left(cg, words[word + 1], 32 - at);
    return mask_low(cg, LLVMBuildOr(cg->builder, v, high, ""), nbits);
}

LLVMValueRef emit_get_bits(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits)
{
    if (nbits <= 32)
        return get_word(cg, words, bit, nbits);
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef low = LLVMBuildZExt(b, get_word(cg, words, bit, 32), cg->i64, "");
    LLVMValueRef high = LLVMBuildZExt(b, get_word(cg, words, bit + 32, nbits - 32), cg->i64, "");
    return LLVMBuildOr(b, low, LLVMBuildShl(b, high, const_i64_of(cg, 32), ""), "");
}

static void set_word(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits,
                     LLVMValueRef value)
{
    int64_t word = bit / 32;
    unsigned at = (unsigned)(bit % 32);
    words[word] = merge(cg, words[word], shift_left(cg, value, at));
    if (at + nbits > 32)
        words[word + 1] = merge(cg, words[word + 1], shift_right(cg, value, 32 - at));
}

void emit_set_bits(Codegen *cg, LLVMValueRef *words, int64_t bit, unsigned nbits,
               LLVMValueRef value)
{
    if (nbits <= 32) {
        set_word(cg, words, bit, nbits, value);
        return;
    }
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef high = LLVMBuildLShr(b, value, const_i64_of(cg, 32), "");
    set_word(cg, words, bit, 32, LLVMBuildTrunc(b, value, cg->i32, ""));
    set_word(cg, words, bit + 32, nbits - 32, LLVMBuildTrunc(b, high, cg->i32, ""));
}
