/* reduce and broadcast. A reduction goes from the inside out, as
 * lib/select/reduce.h plans it:
 *
 *   slots    acc[r] = slot + slot + ..              in each thread
 *   lanes    acc[r] = acc[r] + acc[r] of lane ^ 2^k
 *   warps    scratch[r][partial][place] = acc[r]    one thread of each butterfly
 *            barrier
 *            acc[r] = scratch[r][0][place] + scratch[r][1][place] + ..
 *            barrier                                the scratch may be used again
 *
 * Accumulators are f32, or f64 for f64; i32, or i64 for 64-bit integers. The
 * two lanes of a butterfly add the same two numbers, and each thread adds
 * partial results in the same order, so replicas stay equal. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/internal.h"
#include "ir/op_attrs.h"
#include "select/plan.h"

typedef struct Reduce {
    Codegen *cg;
    const Op *op;
    ReduceKind kind;
    DType dtype;
    const ReducePlan *plan;
    int64_t count;              /* of accumulators: slots of the result */
    LLVMValueRef *acc;          /* NULL: nothing yet */
} Reduce;

/* ---- values ----------------------------------------------------------- */

static bool is_signed(DType t)
{
    return dtype_info[t].kind == DKIND_INT;
}

/* The code of an element as the type that accumulates it. */
static LLVMValueRef decode(const Reduce *r, LLVMValueRef code)
{
    LLVMBuilderRef b = r->cg->builder;
    if (!dtype_is_float(r->dtype))
        return emit_integer_value(r->cg, r->dtype, code);
    return r->dtype == DTYPE_f64 ? convert_decode_f64(b, r->dtype, code)
                                 : convert_decode_f32(b, r->dtype, code);
}

static LLVMValueRef encode(const Reduce *r, LLVMValueRef v)
{
    LLVMBuilderRef b = r->cg->builder;
    if (!dtype_is_float(r->dtype))
        return emit_integer_code(r->cg, r->dtype, v);
    return r->dtype == DTYPE_f64 ? convert_encode_f64(b, r->dtype, v)
                                 : convert_encode_f32(b, r->dtype, v);
}

/* Combines as fold_float and fold_integer of the interpreter; llvm.maximumnum lets a
 * number win over a NaN. */
static LLVMValueRef fold(const Reduce *r, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = r->cg->builder;
    bool larger = r->kind == REDUCE_MAX;
    if (dtype_is_float(r->dtype))
        return r->kind == REDUCE_SUM
                   ? LLVMBuildFAdd(b, x, y, "")
                   : build_binary(b, larger ? "llvm.maximumnum" : "llvm.minimumnum", x, y);
    if (r->kind == REDUCE_SUM)
        return LLVMBuildAdd(b, x, y, "");
    if (is_signed(r->dtype))
        return build_binary(b, larger ? "llvm.smax" : "llvm.smin", x, y);
    return build_binary(b, larger ? "llvm.umax" : "llvm.umin", x, y);
}

/* ---- slots and lanes --------------------------------------------------- */

static void reduce_slots(const Reduce *r)
{
    const Layout *from = r->op->operands[0]->type->layout;
    const Layout *to = r->op->results[0]->type->layout;
    unsigned bits = dtype_bits(r->dtype);
    uint32_t dims = reduce_dims(r->op);
    for (int64_t slot = 0; slot < from->slots; slot++) {
        int64_t index[LIMIT_RANK], thread, at;
        layout_index(from, 0, slot, index);
        for (unsigned d = 0; d < from->rank; d++)
            index[d] = dims >> d & 1 ? 0 : index[d];
        layout_place(to, index, &thread, &at);
        LLVMValueRef code = emit_get_bits(r->cg, lowered_words(r->op->operands[0]), slot * bits,
                                          bits);
        LLVMValueRef v = decode(r, code);
        r->acc[at] = r->acc[at] ? fold(r, r->acc[at], v) : v;
    }
}

/* The word `v` of the lane whose number differs in the bit `distance`. */
static LLVMValueRef shuffle_word(const Reduce *r, LLVMValueRef v, uint32_t distance)
{
    enum { LAST_LANE = 31 };
    Codegen *cg = r->cg;
    LLVMValueRef args[] = {const_i32_of(cg, UINT32_MAX), v, const_i32_of(cg, distance),
                           const_i32_of(cg, LAST_LANE)};
    return call_intrinsic(cg, INTR_shuffle_xor, r->op->loc, args, 4);
}

static LLVMValueRef shuffle(const Reduce *r, LLVMValueRef v, uint32_t distance)
{
    LLVMBuilderRef b = r->cg->builder;
    LLVMTypeRef type = LLVMTypeOf(v), i32 = r->cg->i32, i64 = r->cg->i64;
    if (reduce_bytes(r->dtype) == 4)
        return build_bitcast(b, shuffle_word(r, build_bitcast(b, v, i32), distance), type);
    v = build_bitcast(b, v, i64);
    LLVMValueRef low = shuffle_word(r, LLVMBuildTrunc(b, v, i32, ""), distance);
    LLVMValueRef high = shuffle_word(r, LLVMBuildTrunc(b, build_lshr(b, v, 32), i32, ""),
                                     distance);
    low = LLVMBuildZExt(b, low, i64, "");
    high = build_shl(b, LLVMBuildZExt(b, high, i64, ""), 32);
    return build_bitcast(b, build_or(b, high, low), type);
}

static void reduce_lanes(const Reduce *r)
{
    for (uint32_t distance = 1; distance <= r->plan->lanes; distance *= 2)
        for (int64_t i = 0; r->plan->lanes & distance && i < r->count; i++)
            r->acc[i] = fold(r, r->acc[i], shuffle(r, r->acc[i], distance));
}

/* ---- warps -------------------------------------------------------------- */

/* The number that the thread's digits make, an i32. */
static LLVMValueRef thread_number(Codegen *cg, const ThreadDigits *digits)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef number = const_i32_of(cg, 0);
    for (unsigned i = 0; i < digits->count; i++) {
        LLVMValueRef weight = const_i32_of(cg, (uint32_t)digits->digit[i].weight);
        LLVMValueRef extent = const_i32_of(cg, (uint32_t)digits->digit[i].extent);
        LLVMValueRef v = LLVMBuildUDiv(b, cg->thread, weight, "");
        if (digits->digit[i].weight * digits->digit[i].extent != cg->threads.count)
            v = LLVMBuildURem(b, v, extent, "");
        number = LLVMBuildNUWAdd(b, LLVMBuildNUWMul(b, number, extent, ""), v, "");
    }
    return number;
}

/* The address of scratch[slot][partial][0], `base` being that of [0][0][0]. */
static LLVMValueRef scratch_at(const Reduce *r, LLVMValueRef base, int64_t slot, int64_t partial)
{
    int64_t entry = (slot * r->plan->partials.size + partial) * r->plan->places.size;
    LLVMValueRef bytes = const_i64_of(r->cg, entry * reduce_bytes(r->dtype));
    return LLVMBuildGEP2(r->cg->builder, r->cg->i8, base, &bytes, 1, "");
}

/* Stores by the first of the threads that a butterfly joined. */
static void store_partials(const Reduce *r, LLVMValueRef base)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef lanes = build_and(b, cg->thread, r->plan->lanes);
    LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(cg->context, cg->function, "first");
    LLVMBasicBlockRef stored = LLVMAppendBasicBlockInContext(cg->context, cg->function, "stored");
    LLVMBuildCondBr(b, build_test(b, LLVMIntEQ, lanes, 0), first, stored);
    LLVMPositionBuilderAtEnd(b, first);
    for (int64_t i = 0; i < r->count; i++)
        LLVMSetAlignment(LLVMBuildStore(b, r->acc[i], scratch_at(r, base, i, 0)),
                         reduce_bytes(r->dtype));
    LLVMBuildBr(b, stored);
    LLVMPositionBuilderAtEnd(b, stored);
}

static void fold_partials(const Reduce *r, LLVMValueRef base)
{
    LLVMBuilderRef b = r->cg->builder;
    LLVMTypeRef type = LLVMTypeOf(r->acc[0]);
    for (int64_t i = 0; i < r->count; i++) {
        r->acc[i] = NULL;
        for (int64_t p = 0; p < r->plan->partials.size; p++) {
            LLVMValueRef v = LLVMBuildLoad2(b, type, scratch_at(r, base, i, p), "");
            LLVMSetAlignment(v, reduce_bytes(r->dtype));
            r->acc[i] = r->acc[i] ? fold(r, r->acc[i], v) : v;
        }
    }
}

static bool reduce_warps(const Reduce *r, const Plan *plan)
{
    Codegen *cg = r->cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = reduce_bytes(r->dtype);
    LLVMValueRef base = shared_scratch(cg, r->op, plan);
    if (!base)
        return false;
    LLVMValueRef place = thread_number(cg, &r->plan->places);
    LLVMValueRef partial = thread_number(cg, &r->plan->partials);
    LLVMValueRef row = LLVMBuildNUWMul(b, partial, const_i32_of(cg, (uint32_t)(
                                       r->plan->places.size * bytes)), "");
    place = LLVMBuildNUWMul(b, place, const_i32_of(cg, bytes), "");
    LLVMValueRef column = LLVMBuildGEP2(b, cg->i8, base, &place, 1, "");
    store_partials(r, LLVMBuildGEP2(b, cg->i8, column, &row, 1, ""));
    if (!emit_barrier(cg, r->op))
        return false;
    fold_partials(r, column);
    return emit_barrier(cg, r->op);
}

/* ---- ops ----------------------------------------------------------------- */

bool emit_reduce(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *t = op->results[0]->type;
    Reduce r = {.cg = cg, .op = op, .kind = reduce_kind(op), .dtype = t->dtype,
                .plan = &plan->reduce, .count = t->layout->slots};
    r.acc = arena_array(&cg->module->scratch, LLVMValueRef, (size_t)r.count);
    reduce_slots(&r);
    reduce_lanes(&r);
    if (plan->scratch && !reduce_warps(&r, plan))
        return false;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t i = 0; i < r.count; i++)
        emit_set_bits(cg, words, i * bits, bits, encode(&r, r.acc[i]));
    lower_words(cg, op->results[0], words);
    return true;
}

/* Repeats slots of each thread. */
bool emit_broadcast(Codegen *cg, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    unsigned bits = dtype_bits(to->dtype);
    LLVMValueRef *words = words_new(cg, to);
    for (int64_t slot = 0; slot < to->layout->slots; slot++) {
        int64_t source = layout_broadcast_slot(from->layout, to->layout, slot);
        emit_set_bits(cg, words, slot * bits, bits,
                      emit_get_bits(cg, lowered_words(op->operands[0]), source * bits, bits));
    }
    lower_words(cg, op->results[0], words);
    return true;
}
