/* The op cast: converts the elements of a thread's words by a cast plan, or slot
 * by slot where there is none. */
#include "codegen/cast.h"

#include "codegen/convert.h"
#include "ir/op_attrs.h"

/* Returns true when two elements at a time become one word: f32 to f16 and bf16 has an
 * instruction for pairs (PTX cvt.rn.f16x2.f32, 9.7.9.21). From f8e5m2 to f16 a shift is
 * enough, which the optimizer finds only for single elements. */
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

bool emit_cast_runs(Codegen *cg, Loc at, const CastRuns *runs, LLVMValueRef *in,
                    LLVMValueRef *out)
{
    for (unsigned i = 0; i < runs->count; i++)
        if (!emit_cast_plan(cg, at, runs->plans[i],
                            in + i * CAST_ELEMENTS_MAX / 32 * dtype_bits(runs->from),
                            out + i * CAST_ELEMENTS_MAX / 32 * dtype_bits(runs->to)))
            return false;
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

LLVMValueRef *emit_cast_words(Codegen *cg, Loc at, const CastRuns *runs, const Value *v)
{
    const Type *from = v->type;
    if (runs->from == runs->to)
        return plain_words(cg, v);
    LLVMValueRef *out = words_new(cg, type_like(cg->module, from, runs->to));
    if (!runs->planned)
        cast_slots(cg, runs->to, from->dtype, out, plain_words(cg, v), runs->slots);
    else if (!emit_cast_runs(cg, at, runs, lowered_words(v), out))
        return NULL;
    return out;
}

bool emit_cast(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *t = op->results[0]->type;
    LLVMValueRef *ordered, *words = emit_cast_words(cg, op->loc, &plan->cast.codes,
                                                    op->operands[0]);
    if (words && t->packed) {
        ordered = words_new(cg, t);
        emit_reorder(cg, t->dtype, t->packed, true, type_thread_words(t), words, ordered);
        words = ordered;
    }
    if (words)
        lower_words(cg, op->results[0], words);
    return words;
}
