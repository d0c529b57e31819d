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
static bool cast_planned(Codegen *cg, const Op *op, LLVMValueRef *out, int64_t slots,
                         bool *planned)
{
    LLVMValueRef *in = lowered_words(op->operands[0]);
    const Type *source = op->operands[0]->type;
    DType from = source->dtype, to = op->results[0]->type->dtype;
    CastPlan plan = {0};
    *planned = false;
    for (int64_t done = 0; done < slots; done += CAST_ELEMENTS_MAX) {
        int64_t left = slots - done;
        CastQuery query = {.from = from, .to = to, .packed = source->packed,
                           .finite = cast_is_finite(op), .sm = cg->target->sm,
                           .elements = left < CAST_ELEMENTS_MAX ? (unsigned)left
                                                                : CAST_ELEMENTS_MAX};
        if (query.elements != plan.query.elements &&
            !cast_plan(&cg->module->scratch, &query, &plan))
            return true;
        if (!emit_cast_plan(cg, op->loc, &plan, in + done * dtype_bits(from) / 32,
                            out + done * dtype_bits(to) / 32))
            return false;
    }
    *planned = true;
    return true;
}

/* The operand's words in plain order. */
static LLVMValueRef *plain_words(Codegen *cg, const Op *op)
{
    const Type *t = op->operands[0]->type;
    LLVMValueRef *in = lowered_words(op->operands[0]), *out = in;
    if (t->packed) {
        out = words_new(cg, t);
        emit_reorder(cg, t->dtype, t->packed, false, type_thread_words(t), in, out);
    }
    return out;
}

bool emit_cast(Codegen *cg, const Op *op)
{
    const Type *source = op->operands[0]->type, *result = op->results[0]->type;
    LLVMValueRef *out = words_new(cg, result), *ordered;
    int64_t slots = type_thread_bits(result) / dtype_bits(result->dtype);
    bool planned = false;
    if (source->dtype == result->dtype)
        out = plain_words(cg, op);
    else if (!cast_planned(cg, op, out, slots, &planned))
        return false;
    else if (!planned)
        cast_slots(cg, result->dtype, source->dtype, out, plain_words(cg, op), slots);
    if (!result->packed) {
        lower_words(cg, op->results[0], out);
        return true;
    }
    ordered = words_new(cg, result);
    emit_reorder(cg, result->dtype, result->packed, true, type_thread_words(result), out,
                 ordered);
    lower_words(cg, op->results[0], ordered);
    return true;
}
