/* dot by tensor cores: one instruction for each fragment of c and step of k, as
 * select/dot.h plans it. By other means: emit_dot_fma.c. */
#include "codegen/cast.h"
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
    LLVMValueRef *words[MMA_OPERANDS];  /* c's are the result's */
    LLVMValueRef *parts[2];             /* of each word of a and b, once made; else NULL */
    bool failed;
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

/* Part `part` of word `word` of operand i, which is unpacked, or converted, once. */
static LLVMValueRef operand_word(Dot *dot, unsigned i, int64_t word, unsigned part)
{
    unsigned parts = dot->plan->mma->parts;
    if (parts == 1 || i == MMA_C)
        return dot->words[i][word];
    LLVMValueRef *known = dot->parts[i] + word * parts;
    const CastPlan *convert = dot->plan->convert[i];
    if (convert && !known[part])
        dot->failed |= !emit_cast_plan(dot->cg, dot->op->loc, convert, &dot->words[i][word],
                                       known);
    else if (!known[part])
        known[part] = unpack(dot->cg, dot->plan->sides[i].type->dtype, dot->words[i][word], part);
    return known[part];
}

/* Collects part `part` of the pieces in `slots` of operand i; the number of words. */
static unsigned gather(Dot *dot, unsigned i, const int64_t *slots, unsigned part,
                       LLVMValueRef *fragment)
{
    const DotSide *s = &dot->plan->sides[i];
    unsigned count = 0;
    for (int64_t piece = 0; piece < dot_pieces(s); piece++)
        for (int64_t w = 0; w < s->words; w++)
            fragment[count++] = operand_word(dot, i, slots[piece] * s->words + w, part);
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
static unsigned gather_operands(Dot *dot, int64_t unit, int64_t k, unsigned part,
                                LLVMValueRef *args)
{
    unsigned count = 0;
    for (unsigned i = 0; i < MMA_OPERANDS; i++)
        count += gather(dot, i, dot_slots(dot->plan, i, unit, k), part, args + count);
    return count;
}

/* c += a * b for fragment `unit` of c and step `k`. */
static bool emit_mma(Dot *dot, int64_t unit, int64_t k)
{
    const DotPlan *plan = dot->plan;
    const int64_t *slots_c = dot_slots(plan, MMA_C, unit, k);
    LLVMValueRef args[MMA_OPERANDS * MMA_WORDS_MOST];
    IntrinsicId id = mma_intrinsic(plan->mma);
    for (unsigned part = 0; part < plan->mma->parts; part++) {
        unsigned count = gather_operands(dot, unit, k, part, args);
        LLVMValueRef d = dot->failed ? NULL
                                     : call_intrinsic(dot->cg, id, dot->op->loc, args, count);
        if (!d)
            return false;
        scatter(dot->cg, &plan->sides[MMA_C], slots_c, d, dot->words[MMA_C]);
    }
    return true;
}

/* Multiplies every fragment of c, k ascending in each. The k loop is outside so that
 * neighboring instructions do not wait for each other. */
static bool emit_fragments(Dot *dot)
{
    for (int64_t k = 0; k < dot->plan->depth; k++)
        for (int64_t unit = 0; unit < dot->plan->units; unit++)
            if (!emit_mma(dot, unit, k))
                return false;
    return true;
}

/* Prepares the operands: c's words become the result's. */
static Dot dot_open(Codegen *cg, const Op *op, const DotPlan *plan)
{
    Dot dot = {.cg = cg, .op = op, .plan = plan};
    for (unsigned i = MMA_A; i <= MMA_B; i++) {
        const Type *t = op->operands[i]->type;
        dot.words[i] = lowered_words(op->operands[i]);
        dot.parts[i] = arena_array(&cg->module->scratch, LLVMValueRef,
                                   (size_t)type_thread_words(t) * plan->mma->parts);
    }
    dot.words[MMA_C] = words_new(cg, op->results[0]->type);
    memcpy(dot.words[MMA_C], lowered_words(op->operands[MMA_C]),
           (size_t)type_thread_words(op->results[0]->type) * sizeof(LLVMValueRef));
    return dot;
}

bool emit_dot(Codegen *cg, const Op *op, const Plan *plan)
{
    if (!plan->dot.mma)
        return emit_dot_fma(cg, op, plan);
    Dot dot = dot_open(cg, op, &plan->dot);
    if (!emit_fragments(&dot))
        return false;
    lower_words(cg, op->results[0], dot.words[MMA_C]);
    return true;
}
