/* dot by tensor cores: one instruction for each fragment of c and step of k, as
 * select/dot.h plans it. By other means: emit_dot_fma.c. */
#include "codegen/dot.h"

#include <string.h>

enum { MMA_WORDS_MOST = 4 };    /* of one operand of an instruction */

IntrinsicId mma_intrinsic(const Mma *mma)
{
    static const IntrinsicId intrinsics[MMA_COUNT] = {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    [MMA_ROW_##a##_##b##_##c##_##k##_##from] = INTR_##intrinsic,
#include "select/mma.def"
    };
    return intrinsics[mma - mma_table];
}

typedef struct Dot {
    Codegen *cg;
    const Op *op;
    const DotPlan *plan;
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

/* Collects the pieces in `slots` of an operand's words; the number of words. */
static unsigned gather(const DotSide *s, const int64_t *slots, LLVMValueRef *words,
                       LLVMValueRef *fragment)
{
    unsigned count = 0;
    for (int64_t piece = 0; piece < dot_pieces(s); piece++)
        for (int64_t w = 0; w < s->words; w++)
            fragment[count++] = words[slots[piece] * s->words + w];
    return count;
}

/* Puts the members of `fragment` into the pieces in `slots` of an operand's words. */
static void scatter(Codegen *cg, const DotSide *s, const int64_t *slots, LLVMValueRef fragment,
                    LLVMValueRef *words)
{
    unsigned count = 0;
    for (int64_t piece = 0; piece < dot_pieces(s); piece++)
        for (int64_t w = 0; w < s->words; w++)
            words[slots[piece] * s->words + w] =
                LLVMBuildExtractValue(cg->builder, fragment, count++, "");
}

/* Part `part` of the operands of the instruction for fragment `unit` of c and step `k`;
 * the number of words. */
static unsigned gather_operands(const Dot *dot, LLVMValueRef *words[MMA_OPERANDS],
                                int64_t unit, int64_t k, unsigned part, LLVMValueRef *args)
{
    const DotPlan *plan = dot->plan;
    unsigned count = 0;
    for (unsigned i = 0; i < MMA_OPERANDS; i++) {
        const DotSide *s = &plan->sides[i];
        unsigned end = count + gather(s, dot_slots(plan, i, unit, k), words[i], args + count);
        for (; count < end; count++)
            if (plan->mma->parts > 1 && i != MMA_C)
                args[count] = unpack(dot->cg, s->type->dtype, args[count], part);
    }
    return count;
}

/* c += a * b for fragment `unit` of c and step `k`, in the words of all operands. */
static bool emit_mma(const Dot *dot, LLVMValueRef *words[MMA_OPERANDS], int64_t unit,
                     int64_t k)
{
    const DotPlan *plan = dot->plan;
    const int64_t *slots_c = dot_slots(plan, MMA_C, unit, k);
    LLVMValueRef args[MMA_OPERANDS * MMA_WORDS_MOST];
    IntrinsicId id = mma_intrinsic(plan->mma);
    for (unsigned part = 0; part < plan->mma->parts; part++) {
        unsigned count = gather_operands(dot, words, unit, k, part, args);
        LLVMValueRef d = call_intrinsic(dot->cg, id, dot->op->loc, args, count);
        if (!d)
            return false;
        scatter(dot->cg, &plan->sides[MMA_C], slots_c, d, words[MMA_C]);
    }
    return true;
}

/* Every fragment of c, k ascending in each. The k loop is outside so that
 * neighbouring instructions do not wait for each other. */
static bool emit_fragments(const Dot *dot, LLVMValueRef *out)
{
    LLVMValueRef *words[MMA_OPERANDS] = {lowered_words(dot->op->operands[MMA_A]),
                                         lowered_words(dot->op->operands[MMA_B]), out};
    for (int64_t k = 0; k < dot->plan->depth; k++)
        for (int64_t unit = 0; unit < dot->plan->units; unit++)
            if (!emit_mma(dot, words, unit, k))
                return false;
    return true;
}

bool emit_dot(Codegen *cg, const Op *op, const Plan *plan)
{
    Dot dot = {.cg = cg, .op = op, .plan = &plan->dot};
    if (!plan->dot.mma)
        return emit_dot_fma(cg, op, plan);
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    LLVMValueRef *start = lowered_words(op->operands[MMA_C]);
    memcpy(out, start, (size_t)type_thread_words(op->results[0]->type) * sizeof *out);
    if (!emit_fragments(&dot, out))
        return false;
    lower_words(cg, op->results[0], out);
    return true;
}
