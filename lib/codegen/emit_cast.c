/* The op cast: converts the elements of a thread's words by a cast plan, or slot
 * by slot where there is none. */
#include "codegen/cast.h"

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

/* Slot by slot, or by pairs. */
static void cast_slots(Codegen *cg, DType to, DType from, LLVMValueRef *out, LLVMValueRef *in,
                       int64_t slots)
{
    int64_t slot = 0;
    if (is_pairwise(to, from))
        for (; slot + 2 <= slots; slot += 2)
            cast_pair(cg, to, from, out, in, slot);
    for (; slot < slots; slot++)
        cast_slot(cg, to, from, out, in, slot);
}

/* By plans: CAST_ELEMENTS_MAX elements fill whole words of both types, and all
 * runs of as many have one plan. `*planned` is whether there was one. */
static bool cast_planned(Codegen *cg, Loc at, CastQuery query, LLVMValueRef *in,
                         LLVMValueRef *out, int64_t slots, bool *planned)
{
    CastPlan plan = {0};
    *planned = false;
    for (int64_t done = 0; done < slots; done += CAST_ELEMENTS_MAX) {
        int64_t left = slots - done;
        query.elements = left < CAST_ELEMENTS_MAX ? (unsigned)left : CAST_ELEMENTS_MAX;
        if (query.elements != plan.query.elements &&
            !cast_plan(&cg->module->scratch, &query, &plan))
            return true;
        if (!emit_cast_plan(cg, at, &plan, in + done * dtype_bits(query.from) / 32,
                            out + done * dtype_bits(query.to) / 32))
            return false;
    }
    *planned = true;
    return true;
}

/* The words of `v` in plain order. */
static LLVMValueRef *plain_words(Codegen *cg, const Value *v)
{
    const Type *t = v->type;
    LLVMValueRef *in = lowered_words(v), *out = in;
    if (t->packed) {
        out = words_new(cg, t);
        emit_reorder(cg, t->dtype, t->packed, false, type_thread_words(t), in, out);
    }
    return out;
}

LLVMValueRef *emit_cast_words(Codegen *cg, Loc at, DType to, const Value *v, bool finite)
{
    const Type *from = v->type;
    int64_t slots = from->layout->slots;
    LLVMValueRef *out;
    bool planned;
    if (from->dtype == to)
        return plain_words(cg, v);
    CastQuery query = {.from = from->dtype, .to = to, .packed = from->packed, .finite = finite,
                       .sm = cg->target->sm};
    out = words_new(cg, type_like(cg->module, from, to));
    if (!cast_planned(cg, at, query, lowered_words(v), out, slots, &planned))
        return NULL;
    if (!planned)
        cast_slots(cg, to, from->dtype, out, plain_words(cg, v), slots);
    return out;
}

bool emit_cast(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    LLVMValueRef *ordered, *words = emit_cast_words(cg, op->loc, t->dtype, op->operands[0],
                                                    cast_is_finite(op));
    if (words && t->packed) {
        ordered = words_new(cg, t);
        emit_reorder(cg, t->dtype, t->packed, true, type_thread_words(t), words, ordered);
        words = ordered;
    }
    if (words)
        lower_words(cg, op->results[0], words);
    return words;
}
