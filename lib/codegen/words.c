/* Bit ranges of packed register words, by shifts and ors on i32, and whole bytes, by prmt: narrow
 * vector types (<4 x i6>) would be split badly by instruction selection. */
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

/* ---- bytes ------------------------------------------------------------------- */

enum { WORD_BYTES = 4, SELECTOR_BITS = 4 };

/* A word that has two bytes, and their places in it. */
typedef struct BytePair {
    LLVMValueRef word;
    unsigned first, second;
} BytePair;

/* Builds a word by prmt, of which byte i is byte from[i] of `a` and, from 4 on, of `b`. */
static LLVMValueRef permute_bytes(Codegen *cg, Loc at, LLVMValueRef a, LLVMValueRef b,
                                  const unsigned from[WORD_BYTES])
{
    uint32_t selector = 0;
    for (unsigned i = 0; i < WORD_BYTES; i++)
        selector |= from[i] << (SELECTOR_BITS * i);
    LLVMValueRef args[] = {a, b, const_i32_of(cg, selector)};
    return call_intrinsic(cg, INTR_prmt, at, args, 3);
}

/* Finds two bytes in one word, or interleaves the halves of two words that have them. */
static BytePair pair_bytes(Codegen *cg, Loc at, LLVMValueRef *words, int64_t first, int64_t second)
{
    static const unsigned halves[2][WORD_BYTES] = {{0, 4, 1, 5}, {2, 6, 3, 7}};
    int64_t a = first / WORD_BYTES, b = second / WORD_BYTES;
    unsigned i = (unsigned)(first % WORD_BYTES), j = (unsigned)(second % WORD_BYTES);
    if (a == b)
        return (BytePair){words[a], i, j};
    if (i / 2 == j / 2)
        return (BytePair){permute_bytes(cg, at, words[a], words[b], halves[i / 2]), i % 2 * 2,
                          j % 2 * 2 + 1};
    const unsigned from[WORD_BYTES] = {i, WORD_BYTES + j, i, WORD_BYTES + j};
    return (BytePair){permute_bytes(cg, at, words[a], words[b], from), 0, 1};
}

/* Returns the number of the one word other than that of the first byte, that word where there is
 * none, or -1 where there are several. */
static int64_t other_word(const int64_t bytes[WORD_BYTES])
{
    int64_t first = bytes[0] / WORD_BYTES, other = first;
    for (int i = 1; i < WORD_BYTES; i++) {
        int64_t word = bytes[i] / WORD_BYTES;
        if (word != first && other != first && word != other)
            return -1;
        other = word != first ? word : other;
    }
    return other;
}

LLVMValueRef emit_gather_bytes(Codegen *cg, Loc at, LLVMValueRef *words, const int64_t bytes[4])
{
    int64_t first = bytes[0] / WORD_BYTES, other = other_word(bytes);
    unsigned from[WORD_BYTES];
    if (other >= 0) {
        bool as_it_is = other == first;
        for (unsigned i = 0; i < WORD_BYTES; i++) {
            from[i] = (unsigned)(bytes[i] % WORD_BYTES) + (bytes[i] / WORD_BYTES == first ? 0 : WORD_BYTES);
            as_it_is &= from[i] == i;
        }
        return as_it_is ? words[first] : permute_bytes(cg, at, words[first], words[other], from);
    }
    BytePair low = pair_bytes(cg, at, words, bytes[0], bytes[1]);
    BytePair high = pair_bytes(cg, at, words, bytes[2], bytes[3]);
    if (!low.word || !high.word)
        return NULL;
    from[0] = low.first, from[1] = low.second;
    from[2] = WORD_BYTES + high.first, from[3] = WORD_BYTES + high.second;
    return permute_bytes(cg, at, low.word, high.word, from);
}
