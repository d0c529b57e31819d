/* Ops that make register tensors of scalars: iota, splat and random.
 *
 * The number of an element, along a dimension or in row-major order, is the sum of the
 * thread's part and the slot's, a constant. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "scalar/facts.h"
#include "support/philox.h"

/* The low bits of an i64 in the LLVM type of T's codes. */
static LLVMValueRef narrow(Codegen *cg, DType t, LLVMValueRef v)
{
    return dtype_bits(t) > 32 ? v : LLVMBuildTrunc(cg->builder, v, cg->i32, "");
}

bool emit_iota(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Expr *value = op_expr(op, ATTR_VALUE);
    unsigned bits = dtype_bits(t->dtype), dim = iota_dim(op);
    LLVMValueRef *out = words_new(cg, t);
    LLVMValueRef first = emit_thread_index(cg, t->layout, dim, cg->thread);
    if (value)
        first = LLVMBuildAdd(cg->builder, emit_expr(cg, value), first, "");
    first = narrow(cg, t->dtype, first);
    for (int64_t slot = 0; slot < t->layout->slots; slot++) {
        int64_t index[LIMIT_RANK];
        layout_index(t->layout, 0, slot, index);
        LLVMValueRef v = index[dim] ? build_add(cg->builder, first, (uint64_t)index[dim]) : first;
        emit_set_bits(cg, out, slot * bits, bits, emit_integer_code(cg, t->dtype, v));
    }
    lower_words(cg, op->results[0], out);
    return true;
}

bool emit_splat(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Value *v = value_float_scalar(op);
    unsigned bits = dtype_bits(t->dtype);
    LLVMValueRef *out = words_new(cg, t);
    LLVMValueRef code =
        v ? convert_code(cg->builder, t->dtype, v->type->dtype, lowered(v)->value)
          : emit_integer_code(cg, t->dtype,
                              narrow(cg, t->dtype, emit_expr(cg, op_expr(op, ATTR_VALUE))));
    for (int64_t slot = 0; slot < t->layout->slots; slot++)
        emit_set_bits(cg, out, slot * bits, bits, code);
    lower_words(cg, op->results[0], out);
    return true;
}

/* ---- random ------------------------------------------------------------------- */

/* A block of random words, and which it is, counted from the thread's first. */
typedef struct Block {
    int64_t number;
    LLVMValueRef words[PHILOX_WORDS];
} Block;

typedef struct Random {
    Codegen *cg;
    Loc at;
    LLVMValueRef seed, first;   /* i64: the number of the thread's slot 0 */
    bool aligned;               /* `first` is a multiple of PHILOX_WORDS */
    Block *blocks;              /* of an aligned thread, so far */
    uint32_t count, capacity;
} Random;

/* The row-major number of an element of the tile. */
static int64_t row_major(const Layout *l, int64_t thread, int64_t slot)
{
    int64_t index[LIMIT_RANK], number = 0;
    layout_index(l, thread, slot, index);
    for (unsigned d = 0; d < l->rank; d++)
        number = number * l->shape[d] + index[d];
    return number;
}

/* The row-major number of this thread's slot 0, an i64. */
static LLVMValueRef thread_number(Codegen *cg, const Layout *l)
{
    LLVMValueRef number = const_i64_of(cg, 0);
    for (unsigned d = 0; d < l->rank; d++) {
        number = mul_i64(cg, number, const_i64_of(cg, l->shape[d]));
        number = add_i64(cg, number, emit_thread_index(cg, l, d, cg->thread));
    }
    return number;
}

/* Returns true when each thread's slot 0 has a number that is a multiple of PHILOX_WORDS. */
static bool is_aligned(const Layout *l, const Expr *first)
{
    bool aligned = facts_of_expr(first).divisor % PHILOX_WORDS == 0;
    for (int64_t thread = 0; aligned && thread < l->threads; thread++)
        aligned = row_major(l, thread, 0) % PHILOX_WORDS == 0;
    return aligned;
}

static void build_halves(Codegen *cg, LLVMValueRef v, LLVMValueRef halves[2])
{
    halves[0] = LLVMBuildTrunc(cg->builder, v, cg->i32, "");
    halves[1] = LLVMBuildTrunc(cg->builder, build_lshr(cg->builder, v, 32), cg->i32, "");
}

/* Computes both halves of a product, the low one first. LLVM would widen the arithmetic around a
 * product of i64 to 64 bits, which has no xor of three. */
static bool build_product(Codegen *cg, Loc at, LLVMValueRef word, uint32_t by,
                          LLVMValueRef halves[2])
{
    LLVMValueRef args[] = {word, const_i32_of(cg, by)};
    if (LLVMIsAConstantInt(word) && LLVMConstIntGetZExtValue(word) == 0) {
        halves[0] = halves[1] = word;
        return true;
    }
    LLVMValueRef both = call_intrinsic(cg, INTR_mul_wide, at, args, 2);
    for (unsigned i = 0; both && i < 2; i++)
        halves[i] = LLVMBuildExtractValue(cg->builder, both, i, "");
    return both;
}

/* Computes one round (philox.c). */
static bool build_round(Codegen *cg, Loc at, LLVMValueRef w[PHILOX_WORDS],
                        const LLVMValueRef key[PHILOX_KEYS])
{
    static const uint32_t multipliers[] = PHILOX_MULTIPLIERS;
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef a[2], c[2];
    if (!build_product(cg, at, w[0], multipliers[0], a) ||
        !build_product(cg, at, w[2], multipliers[1], c))
        return false;
    w[0] = LLVMBuildXor(b, LLVMBuildXor(b, c[1], w[1], ""), key[0], "");
    w[1] = c[0];
    w[2] = LLVMBuildXor(b, LLVMBuildXor(b, a[1], w[3], ""), key[1], "");
    w[3] = a[0];
    return true;
}

/* The words of the block with number `block`, an i64. False after an error. */
static bool build_block(const Random *r, LLVMValueRef block, LLVMValueRef words[PHILOX_WORDS])
{
    static const uint32_t weyl[] = PHILOX_WEYL;
    Codegen *cg = r->cg;
    LLVMValueRef key[PHILOX_KEYS];
    build_halves(cg, r->seed, key);
    build_halves(cg, block, words);
    words[2] = words[3] = const_i32_of(cg, 0);
    for (unsigned round = 0; round < PHILOX_ROUNDS; round++) {
        if (!build_round(cg, r->at, words, key))
            return false;
        for (unsigned i = 0; i < PHILOX_KEYS; i++)
            key[i] = build_add(cg->builder, key[i], weyl[i]);
    }
    return true;
}

/* The word that is `number` from an aligned thread's first: a block serves four. NULL after an
 * error. */
static LLVMValueRef aligned_word(Random *r, int64_t number)
{
    Codegen *cg = r->cg;
    int64_t at = number / PHILOX_WORDS;
    uint32_t i = 0;
    while (i < r->count && r->blocks[i].number != at)
        i++;
    if (i == r->count) {
        Block block = {.number = at};
        LLVMValueRef first = build_add(cg->builder, r->first, (uint64_t)at * PHILOX_WORDS);
        if (!build_block(r, build_lshr(cg->builder, first, 2), block.words))
            return NULL;
        arena_push(&cg->module->scratch, r->blocks, r->count, r->capacity, block);
    }
    return r->blocks[i].words[number % PHILOX_WORDS];
}

/* Computes a word whatever the first number is: a Philox block for each word. */
static LLVMValueRef single_word(Random *r, int64_t number)
{
    LLVMBuilderRef b = r->cg->builder;
    LLVMValueRef n = build_add(b, r->first, (uint64_t)number), words[PHILOX_WORDS];
    if (!build_block(r, build_lshr(b, n, 2), words))
        return NULL;
    LLVMValueRef odd = build_test(b, LLVMIntNE, build_and(b, n, 1), 0);
    LLVMValueRef high = build_test(b, LLVMIntNE, build_and(b, n, 2), 0);
    return build_select(b, high, build_select(b, odd, words[3], words[2]),
                        build_select(b, odd, words[1], words[0]));
}

bool emit_random(Codegen *cg, const Op *op)
{
    const Type *t = op->results[0]->type;
    const Expr *counter = op_expr(op, ATTR_COUNTER);
    LLVMValueRef *out = words_new(cg, t);
    Random r = {.cg = cg, .at = op->loc, .seed = emit_expr(cg, op_expr(op, ATTR_VALUE)),
                .aligned = is_aligned(t->layout, counter)};
    r.first = LLVMBuildAdd(cg->builder, emit_expr(cg, counter), thread_number(cg, t->layout), "");
    for (int64_t slot = 0; slot < t->layout->slots; slot++) {
        int64_t number = row_major(t->layout, 0, slot);
        out[slot] = r.aligned ? aligned_word(&r, number) : single_word(&r, number);
        if (!out[slot])
            return false;
    }
    lower_words(cg, op->results[0], out);
    return true;
}
