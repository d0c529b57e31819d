/* reduce and broadcast. A reduction goes from the inside out, as
 * lib/select/reduce.h plans it:
 *
 *   slots    acc[r] = (slot + slot) + (slot + slot)    in each thread, a balanced tree,
 *                                             whose leaves are runs where these become fma
 *   lanes    acc[r] = acc[r] + acc[r] of lane ^ 2^k       or one redux.sync
 *   warps    scratch[r][partial][place] = acc[r]    one thread of each butterfly
 *            barrier
 *            acc[r] = scratch[r][0][place] + scratch[r][1][place] + ..
 *            barrier                                the scratch may be used again
 *
 * Each partial result is a value (codegen/fold.h), or a pair of f16 or bf16, max and min of which
 * are packed; that of argmax and argmin is a value and its index. The
 * two lanes of a butterfly add the same two numbers, and each thread adds
 * partial results in the same order, so replicas stay equal. */
#include "codegen/convert_build.h"
#include "codegen/fold.h"
#include "codegen/memory.h"

#include <stdlib.h>

/* A partial result; `index` (an i32) is NULL except for argmax and argmin. */
typedef struct Partial {
    LLVMValueRef value, index;
} Partial;

/* A slot of the operand. */
typedef struct Source {
    int64_t to;             /* the slot of the result that it adds to */
    int64_t index;          /* of argmax, argmin: in the reduced dimension; else `slot` */
    int64_t slot;
} Source;

typedef struct Reduce {
    Fold fold;
    const ReducePlan *plan;
    bool indexed;           /* argmax, argmin */
    Source *sources;        /* sorted by `to`, then by `index` */
    int64_t fan_in;         /* of them, for each slot of the result */
    Partial *acc;
} Reduce;

/* ---- partial results ---------------------------------------------------- */

/* Builds the test that the value `x` is greater (less) than `y`, or a number where `y` is a
 * NaN. */
static LLVMValueRef is_preferred(const Reduce *r, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = r->fold.cg->builder;
    bool greater = reduce_prefers_greater(r->fold.kind);
    if (dtype_is_float(r->fold.dtype)) {
        LLVMRealPredicate is = greater ? LLVMRealUGT : LLVMRealULT;
        return LLVMBuildAnd(b, LLVMBuildFCmp(b, is, x, y, ""),
                            LLVMBuildFCmp(b, LLVMRealORD, x, x, ""), "");
    }
    if (dtype_info[r->fold.dtype].kind == DKIND_INT)
        return LLVMBuildICmp(b, greater ? LLVMIntSGT : LLVMIntSLT, x, y, "");
    return LLVMBuildICmp(b, greater ? LLVMIntUGT : LLVMIntULT, x, y, "");
}

static Partial choose(const Reduce *r, LLVMValueRef second, Partial x, Partial y)
{
    LLVMBuilderRef b = r->fold.cg->builder;
    return (Partial){build_select(b, second, y.value, x.value),
                     build_select(b, second, y.index, x.index)};
}

/* Combines two partial results, of which the first has the lesser indices. */
static Partial combine_in_order(const Reduce *r, Partial x, Partial y)
{
    if (r->indexed)
        return choose(r, is_preferred(r, y.value, x.value), x, y);
    return (Partial){fold_combine(&r->fold, x.value, y.value), NULL};
}

/* Combines two partial results; of equal elements the first counts. */
static Partial combine(const Reduce *r, Partial x, Partial y)
{
    LLVMBuilderRef b = r->fold.cg->builder;
    if (!r->indexed)
        return combine_in_order(r, x, y);
    LLVMValueRef tied = LLVMBuildNot(b, is_preferred(r, x.value, y.value), "");
    LLVMValueRef earlier = LLVMBuildICmp(b, LLVMIntULT, y.index, x.index, "");
    LLVMValueRef second = LLVMBuildOr(b, is_preferred(r, y.value, x.value),
                                      LLVMBuildAnd(b, tied, earlier, ""), "");
    return choose(r, second, x, y);
}

/* ---- slots -------------------------------------------------------------- */

static int compare_sources(const void *a, const void *b)
{
    const Source *x = a, *y = b;
    if (x->to != y->to)
        return x->to < y->to ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* Lists the slots of the operand by the slots of the result that they add to. */
static void find_sources(Reduce *r)
{
    const Op *op = r->fold.op;
    const Layout *from = op->operands[0]->type->layout, *to = op->results[0]->type->layout;
    uint32_t dims = reduce_dims(op);
    r->sources = arena_array(&r->fold.cg->module->scratch, Source, (size_t)from->slots);
    r->fan_in = from->slots / to->slots;
    for (int64_t slot = 0; slot < from->slots; slot++) {
        int64_t index[LIMIT_RANK], thread;
        Source *s = &r->sources[slot];
        *s = (Source){.index = slot, .slot = slot};
        layout_index(from, 0, slot, index);
        for (unsigned d = 0; d < from->rank; d++) {
            if (!(dims >> d & 1))
                continue;
            s->index = r->indexed ? index[d] : slot;
            index[d] = 0;
        }
        layout_place(to, index, &thread, &s->to);
    }
    qsort(r->sources, (size_t)from->slots, sizeof *r->sources, compare_sources);
}

static Partial source_partial(const Reduce *r, const Source *s)
{
    Codegen *cg = r->fold.cg;
    unsigned bits = dtype_bits(r->fold.dtype);
    LLVMValueRef code = emit_get_bits(cg, lowered_words(r->fold.op->operands[0]), s->slot * bits,
                                      bits);
    return (Partial){fold_decode(&r->fold, code),
                     r->indexed ? const_i32_of(cg, (uint32_t)s->index) : NULL};
}

/* Returns how many sources are combined one after another: sums of products that may be
 * contracted, of which each but the first then is one fma. */
static int64_t run_length(const Reduce *r)
{
    enum { FMA_RUN = 8 };
    const Op *def = r->fold.op->operands[0]->def;
    bool fuses = r->fold.cg->program->contract && r->fold.kind == REDUCE_SUM &&
                 (r->fold.dtype == DTYPE_f32 || r->fold.dtype == DTYPE_f64);
    return fuses && def && def->code == OP_mul ? FMA_RUN : 1;
}

static Partial reduce_run(const Reduce *r, const Source *s, int64_t count)
{
    Partial sum = source_partial(r, s);
    for (int64_t i = 1; i < count; i++)
        sum = combine_in_order(r, sum, source_partial(r, s + i));
    return sum;
}

/* Combines sources in a balanced tree. */
static Partial reduce_sources(const Reduce *r, const Source *s, int64_t count)
{
    if (count <= run_length(r))
        return reduce_run(r, s, count);
    int64_t half = count / 2;
    Partial x = reduce_sources(r, s, half);
    return combine_in_order(r, x, reduce_sources(r, s + half, count - half));
}

/* Adds the thread's share to indices that count slots only. */
static void add_thread_index(const Reduce *r)
{
    Codegen *cg = r->fold.cg;
    const Op *op = r->fold.op;
    unsigned dim = (unsigned)op_attr(op, ATTR_DIMS)->ints[0];
    LLVMValueRef share = emit_thread_index(cg, op->operands[0]->type->layout, dim, cg->thread);
    share = LLVMBuildTrunc(cg->builder, share, cg->i32, "");
    for (int64_t i = 0; i < r->plan->count; i++)
        r->acc[i].index = LLVMBuildNUWAdd(cg->builder, r->acc[i].index, share, "");
}

/* ---- slots in pairs --------------------------------------------------------- */

/* Builds the pair of two slots of the operand, by one prmt where they are not one word. */
static LLVMValueRef pair_of(const Reduce *r, int64_t low, int64_t high)
{
    enum { HALF = 16 };
    Codegen *cg = r->fold.cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef *words = lowered_words(r->fold.op->operands[0]), word = words[low / 2];
    if (low == high && low % 2)
        word = build_lshr(b, word, HALF);
    if (low != high && (low % 2 || high != low + 1))
        word = build_or(b, emit_get_bits(cg, words, low * HALF, HALF),
                        build_shl(b, emit_get_bits(cg, words, high * HALF, HALF), HALF));
    return build_bitcast(b, word, LLVMVectorType(r->fold.dtype == DTYPE_f16 ? cg->f16 : cg->bf16,
                                                 2));
}

/* Combines pairs of sources of two neighbors among the slots of the result: x[i] and y[i]. */
static LLVMValueRef reduce_pairs(const Reduce *r, const Source *x, const Source *y, int64_t count)
{
    if (count == 1)
        return pair_of(r, x->slot, y->slot);
    int64_t half = count / 2;
    LLVMValueRef v = reduce_pairs(r, x, y, half);
    return fold_combine(&r->fold, v, reduce_pairs(r, x + half, y + half, count - half));
}

/* Returns true when sources of one slot of the result fill words. */
static bool fills_words(const Reduce *r)
{
    bool fills = r->fan_in % 2 == 0;
    for (int64_t i = 0; fills && i < r->fan_in * r->plan->result_slots; i += 2)
        fills = r->sources[i].slot % 2 == 0 && r->sources[i + 1].slot == r->sources[i].slot + 1;
    return fills;
}

/* Combines words of sources of one slot of the result: two partial results of it. */
static LLVMValueRef reduce_words(const Reduce *r, const Source *s, int64_t count)
{
    if (count == 2)
        return pair_of(r, s[0].slot, s[1].slot);
    int64_t half = count / 4 * 2;
    LLVMValueRef v = reduce_words(r, s, half);
    return fold_combine(&r->fold, v, reduce_words(r, s + half, count - half));
}

/* Builds {x of lane i, y of lane j}. */
static LLVMValueRef shuffle_pair(const Reduce *r, LLVMValueRef x, LLVMValueRef y, unsigned i,
                                 unsigned j)
{
    Codegen *cg = r->fold.cg;
    LLVMValueRef mask[] = {const_i32_of(cg, i), const_i32_of(cg, 2 + j)};
    return LLVMBuildShuffleVector(cg->builder, x, y, LLVMConstVector(mask, 2), "");
}

/* Builds accumulator `i`: slots 2i and 2i + 1 of the result, or twice the last. */
static LLVMValueRef reduce_pair(const Reduce *r, int64_t i, bool by_words)
{
    const Source *x = r->sources + 2 * i * r->fan_in;
    const Source *y = 2 * i + 1 < r->plan->result_slots ? x + r->fan_in : x;
    if (!by_words)
        return reduce_pairs(r, x, y, r->fan_in);
    LLVMValueRef v = reduce_words(r, x, r->fan_in);
    LLVMValueRef w = x == y ? v : reduce_words(r, y, r->fan_in);
    return fold_combine(&r->fold, shuffle_pair(r, v, w, 0, 0), shuffle_pair(r, v, w, 1, 1));
}

static void reduce_slots(Reduce *r)
{
    find_sources(r);
    bool by_words = r->plan->pairs && fills_words(r);
    for (int64_t i = 0; i < r->plan->count; i++)
        r->acc[i] = r->plan->pairs ? (Partial){reduce_pair(r, i, by_words), NULL}
                                   : reduce_sources(r, r->sources + i * r->fan_in, r->fan_in);
    if (r->indexed)
        add_thread_index(r);
}

/* ---- lanes ------------------------------------------------------------------ */

static Partial shuffle(const Reduce *r, Partial x, uint32_t distance)
{
    Codegen *cg = r->fold.cg;
    const Op *op = r->fold.op;
    LLVMValueRef lane = const_i32_of(cg, distance);
    x.value = fold_shuffle(cg, op, INTR_shuffle_xor, x.value, lane);
    if (r->indexed)
        x.index = fold_shuffle(cg, op, INTR_shuffle_xor, x.index, lane);
    return x;
}

static void reduce_lanes(const Reduce *r)
{
    for (int64_t i = 0; r->plan->redux && i < r->plan->count; i++)
        r->acc[i].value = fold_lanes(&r->fold, r->acc[i].value);
    if (r->plan->redux)
        return;
    for (uint32_t distance = 1; distance <= r->plan->lanes; distance *= 2)
        for (int64_t i = 0; r->plan->lanes & distance && i < r->plan->count; i++)
            r->acc[i] = combine(r, r->acc[i], shuffle(r, r->acc[i], distance));
}

/* ---- warps -------------------------------------------------------------- */

/* The threads' places in the scratch; indices lie after all values. */
typedef struct Scratch {
    LLVMValueRef values, indices;       /* of [0][0][place] */
    LLVMValueRef partial;               /* times the places */
} Scratch;

static LLVMValueRef offset_by(const Reduce *r, LLVMValueRef base, LLVMValueRef entries,
                              unsigned bytes)
{
    LLVMBuilderRef b = r->fold.cg->builder;
    LLVMValueRef at = LLVMBuildNUWMul(b, entries, const_i32_of(r->fold.cg, bytes), "");
    return LLVMBuildGEP2(b, r->fold.cg->i8, base, &at, 1, "");
}

/* The address of [acc][partial] where `base` is that of [0][0]. */
static LLVMValueRef scratch_at(const Reduce *r, LLVMValueRef base, int64_t acc, int64_t partial,
                               unsigned bytes)
{
    int64_t entry = (acc * r->plan->partials.size + partial) * r->plan->places.size;
    LLVMValueRef at = const_i64_of(r->fold.cg, entry * bytes);
    return LLVMBuildGEP2(r->fold.cg->builder, r->fold.cg->i8, base, &at, 1, "");
}

static Scratch open_scratch(const Reduce *r, LLVMValueRef base)
{
    Codegen *cg = r->fold.cg;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef place = emit_thread_number(cg, &r->plan->places);
    LLVMValueRef partial = emit_thread_number(cg, &r->plan->partials);
    LLVMValueRef places = const_i32_of(cg, (uint32_t)r->plan->places.size);
    LLVMValueRef behind = const_i64_of(cg, r->plan->indices);
    LLVMValueRef indices = LLVMBuildGEP2(b, cg->i8, base, &behind, 1, "");
    return (Scratch){offset_by(r, base, place, reduce_bytes(r->fold.dtype)),
                     offset_by(r, indices, place, REDUCE_INDEX_BYTES),
                     LLVMBuildNUWMul(b, partial, places, "")};
}

static void store(const Reduce *r, LLVMValueRef base, int64_t acc, LLVMValueRef v, unsigned bytes)
{
    LLVMSetAlignment(LLVMBuildStore(r->fold.cg->builder, v, scratch_at(r, base, acc, 0, bytes)),
                     bytes);
}

/* Stores by the first of the threads that a butterfly joined. */
static void store_partials(const Reduce *r, const Scratch *s)
{
    Codegen *cg = r->fold.cg;
    LLVMBuilderRef b = cg->builder;
    unsigned bytes = reduce_bytes(r->fold.dtype);
    LLVMValueRef values = offset_by(r, s->values, s->partial, bytes);
    LLVMValueRef indices = r->indexed ? offset_by(r, s->indices, s->partial, REDUCE_INDEX_BYTES)
                                      : NULL;
    LLVMValueRef lanes = build_and(b, cg->thread, r->plan->lanes);
    LLVMBasicBlockRef first = LLVMAppendBasicBlockInContext(cg->context, cg->function, "first");
    LLVMBasicBlockRef stored = LLVMAppendBasicBlockInContext(cg->context, cg->function, "stored");
    LLVMBuildCondBr(b, build_test(b, LLVMIntEQ, lanes, 0), first, stored);
    LLVMPositionBuilderAtEnd(b, first);
    for (int64_t i = 0; i < r->plan->count; i++) {
        store(r, values, i, r->acc[i].value, bytes);
        if (r->indexed)
            store(r, indices, i, r->acc[i].index, REDUCE_INDEX_BYTES);
    }
    LLVMBuildBr(b, stored);
    LLVMPositionBuilderAtEnd(b, stored);
}

static LLVMValueRef load(const Reduce *r, LLVMTypeRef type, LLVMValueRef base, int64_t acc,
                         int64_t partial, unsigned bytes)
{
    LLVMValueRef v = LLVMBuildLoad2(r->fold.cg->builder, type,
                                    scratch_at(r, base, acc, partial, bytes), "");
    LLVMSetAlignment(v, bytes);
    return v;
}

static void combine_partials(const Reduce *r, const Scratch *s)
{
    unsigned bytes = reduce_bytes(r->fold.dtype);
    LLVMTypeRef type = LLVMTypeOf(r->acc[0].value);
    for (int64_t i = 0; i < r->plan->count; i++)
        for (int64_t p = 0; p < r->plan->partials.size; p++) {
            Partial v = {load(r, type, s->values, i, p, bytes), NULL};
            if (r->indexed)
                v.index = load(r, r->fold.cg->i32, s->indices, i, p, REDUCE_INDEX_BYTES);
            r->acc[i] = p ? combine(r, r->acc[i], v) : v;
        }
}

static bool reduce_warps(const Reduce *r, const Plan *plan)
{
    Codegen *cg = r->fold.cg;
    LLVMValueRef base = shared_scratch(cg, r->fold.op, plan);
    if (!base)
        return false;
    Scratch s = open_scratch(r, base);
    store_partials(r, &s);
    if (!emit_barrier(cg, r->fold.op))
        return false;
    combine_partials(r, &s);
    return emit_barrier(cg, r->fold.op);
}

/* ---- ops ----------------------------------------------------------------- */

static LLVMValueRef *result_words(const Reduce *r, const Type *t)
{
    Codegen *cg = r->fold.cg;
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *words = words_new(cg, t);
    for (int64_t i = 0; i < r->plan->count; i++)
        if (r->plan->pairs)
            words[i] = build_bitcast(cg->builder, r->acc[i].value, cg->i32);
        else
            emit_set_bits(cg, words, i * bits, bits,
                          r->indexed ? r->acc[i].index : fold_encode(&r->fold, r->acc[i].value));
    return words;
}

bool emit_reduce(Codegen *cg, const Op *op, const Plan *plan)
{
    const Type *t = op->results[0]->type;
    Reduce r = {.fold = fold_open(cg, op), .plan = &plan->reduce,
                .indexed = reduce_gives_index(reduce_kind(op))};
    r.acc = arena_array(&cg->module->scratch, Partial, (size_t)r.plan->count);
    reduce_slots(&r);
    reduce_lanes(&r);
    if (plan->scratch && !reduce_warps(&r, plan))
        return false;
    lower_words(cg, op->results[0], result_words(&r, t));
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
