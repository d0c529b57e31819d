/* dot by tensor cores: one instruction for each fragment of c and step of k, as
 * analysis/dot.h plans it. By other means: emit_dot_fma.c. */
#include "codegen/dot.h"

#include <string.h>

enum { MMA_WORDS_MOST = 4 };    /* of one operand of an instruction */

IntrinsicId mma_intrinsic(const Mma *mma)
{
    static const IntrinsicId intrinsics[MMA_COUNT] = {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    [MMA_ROW_##a##_##b##_##c##_##from] = INTR_##intrinsic,
#include "analysis/mma.def"
    };
    return intrinsics[mma - mma_table];
}

typedef struct Dot {
    Codegen *cg;
    const Op *op;
    DotPlan plan;
} Dot;

/* The even (part 0) or odd elements of four bits of `word`, each as a byte. */
static LLVMValueRef unpack(Codegen *cg, DType t, LLVMValueRef word, unsigned part)
{
    const uint32_t low = 0x0f0f0f0f, signs = 0x08080808, fill = 0xf0 / 0x08;
    LLVMBuilderRef b = cg->builder;
    if (part)
        word = LLVMBuildLShr(b, word, const_i32_of(cg, 4), "");
    word = LLVMBuildAnd(b, word, const_i32_of(cg, low), "");
    if (dtype_info[t].kind != DKIND_INT)
        return word;
    LLVMValueRef negative = LLVMBuildAnd(b, word, const_i32_of(cg, signs), "");
    return LLVMBuildOr(b, word, LLVMBuildMul(b, negative, const_i32_of(cg, fill), ""), "");
}

/* Part `part` of a fragment of operand `i`, whose words are `from`. */
static void fragment_words(const Dot *dot, unsigned i, LLVMValueRef *from, unsigned part,
                           LLVMValueRef *to)
{
    const DotSide *s = &dot->plan.sides[i];
    for (int64_t w = 0; w < s->words; w++)
        to[w] = dot->plan.mma->parts == 1 || i == MMA_C
                    ? from[w]
                    : unpack(dot->cg, s->type->dtype, from[w], part);
}

/* c += a * b: fragments, in words. */
static bool emit_mma(const Dot *dot, LLVMValueRef *a, LLVMValueRef *b, LLVMValueRef *c)
{
    Codegen *cg = dot->cg;
    LLVMValueRef args[MMA_OPERANDS * MMA_WORDS_MOST], *words[MMA_OPERANDS] = {a, b, c};
    IntrinsicId id = mma_intrinsic(dot->plan.mma);
    for (unsigned part = 0; part < dot->plan.mma->parts; part++) {
        unsigned count = 0;
        for (unsigned i = 0; i < MMA_OPERANDS; i++) {
            fragment_words(dot, i, words[i], part, args + count);
            count += (unsigned)dot->plan.sides[i].words;
        }
        LLVMValueRef d = call_intrinsic(cg, id, dot->op->loc, args, count);
        if (!d)
            return false;
        for (int64_t w = 0; w < dot->plan.sides[MMA_C].words; w++)
            c[w] = LLVMBuildExtractValue(cg->builder, d, (unsigned)w, "");
    }
    return true;
}

/* Every fragment of c, k ascending in each. The k loop is outside so that
 * neighbouring instructions do not wait for each other. */
static bool emit_fragments(const Dot *dot, LLVMValueRef *out)
{
    const DotPlan *plan = &dot->plan;
    const DotSide *a = &plan->sides[MMA_A], *b = &plan->sides[MMA_B], *c = &plan->sides[MMA_C];
    LLVMValueRef *words_a = lowered_words(dot->op->operands[MMA_A]);
    LLVMValueRef *words_b = lowered_words(dot->op->operands[MMA_B]);
    for (int64_t k = 0; k < plan->depth; k++)
        for (int64_t slot = 0; slot < c->quotient->slots; slot++) {
            int64_t pair = slot * plan->depth + k;
            if (!emit_mma(dot, words_a + plan->slots[MMA_A][pair] * a->words,
                          words_b + plan->slots[MMA_B][pair] * b->words, out + slot * c->words))
                return false;
        }
    return true;
}

bool emit_dot(Codegen *cg, const Op *op)
{
    Dot dot = {.cg = cg, .op = op};
    if (!dot_follow(cg->module, op, cg->target->sm, &dot.plan))
        return false;
    if (!dot.plan.mma)
        return emit_dot_fma(cg, op, &dot.plan);
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    LLVMValueRef *start = lowered_words(op->operands[MMA_C]);
    memcpy(out, start, (size_t)type_thread_words(op->results[0]->type) * sizeof *out);
    if (!emit_fragments(&dot, out))
        return false;
    lower_words(cg, op->results[0], out);
    return true;
}
