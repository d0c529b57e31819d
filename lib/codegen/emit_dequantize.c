/* dequantize: a cast, a difference and a product of pairs of elements.
 *
 * Scales and zero points are cast once, whole. Then each word of the result needs a
 * word with those of its elements:
 *
 *     result word     c0 c1 | c2 c3 | c4 c5        groups of three along the slots
 *     spread          s0 s0 | s0 s1 | s1 s1        one prmt for each that is new
 *
 * Zero points that the plan folds into the cast of the codes cost an operation a
 * spread word, not one a result word. */
#include "codegen/cast.h"

#include "codegen/convert_build.h"
#include "ir/op_attrs.h"

/* Source slots of a spread word's lanes, `low` and `high`. */
typedef struct Pair {
    int64_t high;
    LLVMValueRef word;
    struct Pair *next;
} Pair;

/* Scales or zero points in the result's type, to be spread over its words. */
typedef struct Spread {
    Codegen *cg;
    Loc at;
    unsigned lanes;             /* elements in a word */
    LLVMValueRef *words;
    int64_t *slots, count;      /* of each result slot: its slot in `words` */
    Pair **pairs;               /* by their low lane's slot */
} Spread;

static bool spread_open(Codegen *cg, const Op *op, unsigned i, const CastRuns *runs, Spread *s)
{
    const Type *to = op->results[0]->type;
    const Type *groups = type_like(cg->module, op->operands[i]->type, to->dtype);
    Arena *arena = &cg->module->scratch;
    *s = (Spread){.cg = cg, .at = op->loc, .lanes = 32 / dtype_bits(to->dtype),
                  .words = emit_cast_words(cg, op->loc, runs, op->operands[i]),
                  .slots = arena_array(arena, int64_t, (size_t)to->layout->slots),
                  .count = to->layout->slots,
                  .pairs = arena_array(arena, Pair *, (size_t)groups->layout->slots)};
    for (int64_t slot = 0; slot < s->count; slot++)
        s->slots[slot] = layout_broadcast_slot(groups->layout, to->layout, slot);
    return s->words;
}

static LLVMValueRef build_pair(const Spread *s, int64_t low, int64_t high)
{
    if (low % 2 == 0 && high == low + 1)
        return s->words[low / 2];
    uint32_t selector = (low % 2 ? 0x32 : 0x10) | (high % 2 ? 0x7600 : 0x5400);
    LLVMValueRef args[] = {s->words[low / 2], s->words[high / 2],
                           const_i32_of(s->cg, selector)};
    return call_intrinsic(s->cg, INTR_prmt, s->at, args, 3);
}

/* Spreads the values for the elements of result word `word` over their lanes. NULL after an
 * error. */
static LLVMValueRef spread_word(Spread *s, int64_t word)
{
    int64_t slot = word * s->lanes, low = s->slots[slot];
    if (s->lanes == 1)
        return s->words[low];
    int64_t high = slot + 1 < s->count ? s->slots[slot + 1] : low;
    for (const Pair *p = s->pairs[low]; p; p = p->next)
        if (p->high == high)
            return p->word;
    LLVMValueRef v = build_pair(s, low, high);
    Pair *pair = arena_new(&s->cg->module->scratch, Pair);
    *pair = (Pair){high, v, s->pairs[low]};
    s->pairs[low] = pair;
    return v;
}

/* Replaces each word by `code` of it and its spread word. */
static bool apply(Spread *s, LLVMOpcode code, DType t, LLVMValueRef *words)
{
    Codegen *cg = s->cg;
    LLVMTypeRef type = t == DTYPE_f32   ? cg->f32
                       : t == DTYPE_f16 ? LLVMVectorType(cg->f16, 2)
                                        : LLVMVectorType(cg->bf16, 2);
    for (int64_t word = 0; word * s->lanes < s->count; word++) {
        LLVMValueRef other = spread_word(s, word);
        if (!other)
            return false;
        LLVMValueRef v = LLVMBuildBinOp(cg->builder, code,
                                        build_bitcast(cg->builder, words[word], type),
                                        build_bitcast(cg->builder, other, type), "");
        words[word] = build_bitcast(cg->builder, v, cg->i32);
    }
    return true;
}

/* ---- zero points in the cast --------------------------------------------------- */

/* Converts a run by its plan: inputs are the codes' words, and a spread word for each of the
 * result's. */
static bool emit_run(Spread *zeros, const CastPlan *plan, LLVMValueRef *codes, int64_t first,
                     LLVMValueRef *out)
{
    const CastQuery *q = &plan->query;
    LLVMValueRef in[8 * CAST_ELEMENTS_MAX / 32 + CAST_WORDS_MAX];
    unsigned bits = dtype_bits(q->from), count = (q->elements * bits + 31) / 32;
    memcpy(in, codes + first * bits / 32, count * sizeof *in);
    for (unsigned i = 0; i < plan->out_words; i++) {
        LLVMValueRef v = spread_word(zeros, first / zeros->lanes + i);
        if (!v)
            return false;
        in[count++] = v;
    }
    return emit_cast_plan(zeros->cg, zeros->at, plan, in, out + first / zeros->lanes);
}

static bool emit_runs(Spread *zeros, const CastRuns *runs, LLVMValueRef *codes,
                      LLVMValueRef *out)
{
    for (unsigned i = 0; i < runs->count; i++)
        if (!emit_run(zeros, runs->plans[i], codes, (int64_t)i * CAST_ELEMENTS_MAX, out))
            return false;
    return true;
}

/* ---- the op ---------------------------------------------------------------------- */

/* The codes less their zero points, in the result's type. NULL after an error. */
static LLVMValueRef *take_zeros_off(Codegen *cg, const Op *op, const CastChoice *plan)
{
    const Type *to = op->results[0]->type;
    LLVMValueRef *words = words_new(cg, to);
    Spread zeros;
    if (!spread_open(cg, op, 2, &plan->zeros, &zeros))
        return NULL;
    if (plan->folded)
        return emit_runs(&zeros, &plan->codes, lowered_words(op->operands[0]), words) ? words
                                                                                      : NULL;
    words = emit_cast_words(cg, op->loc, &plan->codes, op->operands[0]);
    return words && apply(&zeros, LLVMFSub, to->dtype, words) ? words : NULL;
}

bool emit_dequantize(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *to = op->results[0]->type;
    const CastChoice *cast = &plan->cast;
    LLVMValueRef *words = op->operand_count > 2
                              ? take_zeros_off(cg, op, cast)
                              : emit_cast_words(cg, op->loc, &cast->codes, op->operands[0]);
    Spread scales;
    if (!words || !spread_open(cg, op, 1, &cast->scales, &scales) ||
        !apply(&scales, LLVMFMul, to->dtype, words))
        return false;
    lower_words(cg, op->results[0], words);
    return true;
}
