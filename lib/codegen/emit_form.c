/* Storage orders and deferred power-of-two scales: decode, rescale, and casts that change
 * orders. */
#include "codegen/cast.h"

#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/memory.h"
#include "types/storage.h"

#include <math.h>

/* ---- storage orders -------------------------------------------------------- */

/* A move of a group's bits: those of word `from` by `left` (below 0: to the
 * right) to those of word `to`, for each bit of `mask`, a mask of the target. */
typedef struct Move {
    unsigned from, to;
    int left;
    uint32_t mask;
} Move;

typedef struct Moves {
    Move at[CAST_GROUP_BITS_MAX];
    unsigned count;
} Moves;

static void add_bit(Moves *moves, unsigned from, unsigned to)
{
    Move move = {from / 32, to / 32, (int)(to % 32) - (int)(from % 32), UINT32_C(1) << to % 32};
    unsigned i = 0;
    while (i < moves->count && (moves->at[i].from != move.from || moves->at[i].to != move.to ||
                                moves->at[i].left != move.left))
        i++;
    if (i == moves->count)
        moves->at[moves->count++] = (Move){move.from, move.to, move.left, 0};
    moves->at[i].mask |= move.mask;
}

/* The bits of codes that are stored inverted, in word `w` of a group. */
static uint32_t flipped_bits(const CastStorage *s, unsigned w, bool packed)
{
    unsigned bits = 32 * s->words / s->elements;
    uint32_t mask = 0;
    for (unsigned e = 0; s->flips && e < s->elements; e++) {
        unsigned plain = e * bits + bits - 1, at = packed ? s->order[plain] : plain;
        if (at / 32 == w)
            mask |= UINT32_C(1) << at % 32;
    }
    return mask;
}

static void emit_group(Codegen *cg, const CastStorage *s, bool to_packed, LLVMValueRef *in,
                       LLVMValueRef *out)
{
    LLVMBuilderRef b = cg->builder;
    Moves moves = {.count = 0};
    for (unsigned i = 0; i < 32 * s->words; i++)
        add_bit(&moves, to_packed ? i : s->order[i], to_packed ? s->order[i] : i);
    for (unsigned w = 0; w < s->words; w++)
        out[w] = const_i32_of(cg, flipped_bits(s, w, to_packed));
    for (unsigned i = 0; i < moves.count; i++) {
        const Move *m = &moves.at[i];
        LLVMValueRef v = in[m->from];
        v = m->left > 0   ? build_shl(b, v, (unsigned)m->left)
            : m->left < 0 ? build_lshr(b, v, (unsigned)-m->left)
                          : v;
        v = m->mask == UINT32_MAX ? v : build_and(b, v, m->mask);
        out[m->to] = LLVMBuildXor(b, out[m->to], v, "");
    }
}

void emit_reorder(Codegen *cg, DType dtype, DType packed, bool to_packed, int64_t words,
                  LLVMValueRef *in, LLVMValueRef *out)
{
    CastStorage s;
    cast_storage(dtype, packed, &s);
    for (int64_t i = 0; i < words; i += s.words)
        emit_group(cg, &s, to_packed, in + i, out + i);
}

/* ---- decode ------------------------------------------------------------------ */

bool emit_decode(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMValueRef *out = words_new(cg, op->results[0]->type);
    if (!emit_cast_runs(cg, op->loc, &plan->cast.codes, lowered_words(op->operands[0]), out))
        return false;
    lower_words(cg, op->results[0], out);
    return true;
}

/* ---- rescale ------------------------------------------------------------------- */

enum { FACTOR_MAX = 126, PARTS = 2 };

/* The factors of a rescale: 2^by[i] at index i along `dim`. Each has two parts, powers
 * of 2 that are normal numbers of f32. */
typedef struct Factors {
    const Layout *layout;
    unsigned dim, count;
    int *by;
    bool first_part;                /* some first part is not 1 */
    LLVMValueRef tables[PARTS];     /* of f32, made when a thread must look one up */
} Factors;

/* Splits a power of two: the part beyond FACTOR_MAX comes first, so that only the second
 * product rounds, if any. */
static double factor_part(int by, unsigned part)
{
    int second = by > FACTOR_MAX ? FACTOR_MAX : by < -FACTOR_MAX ? -FACTOR_MAX : by;
    return ldexp(1, part == 0 ? by - second : second);
}

static Factors factors_of(Codegen *cg, const Type *from, const Type *to)
{
    const Scaling *varying = to->scaling && to->scaling->count > 1 ? to->scaling : from->scaling;
    Factors f = {.layout = to->layout, .dim = varying ? varying->dim : 0};
    f.count = (unsigned)to->layout->shape[f.dim];
    f.by = arena_array(&cg->module->scratch, int, f.count);
    for (unsigned i = 0; i < f.count; i++) {
        int64_t index[LIMIT_RANK] = {0};
        index[f.dim] = i;
        f.by[i] = type_exponent(to, index) - type_exponent(from, index);
        f.first_part |= factor_part(f.by[i], 0) != 1;
    }
    return f;
}

/* The exponent of `slot` where it is the same in all threads. */
static bool common_exponent(const Factors *f, int64_t slot, int *by)
{
    for (int64_t thread = 0; thread < f->layout->threads; thread++) {
        int64_t index[LIMIT_RANK];
        layout_index(f->layout, thread, slot, index);
        if (thread > 0 && f->by[index[f->dim]] != *by)
            return false;
        *by = f->by[index[f->dim]];
    }
    return true;
}

static LLVMValueRef factor_table(Codegen *cg, Factors *f, unsigned part)
{
    LLVMValueRef *values = arena_array(&cg->module->scratch, LLVMValueRef, f->count);
    if (f->tables[part])
        return f->tables[part];
    for (unsigned i = 0; i < f->count; i++)
        values[i] = LLVMConstReal(cg->f32, factor_part(f->by[i], part));
    LLVMValueRef numbers = LLVMConstArray2(cg->f32, values, f->count);
    LLVMValueRef table = LLVMAddGlobalInAddressSpace(cg->llvm, LLVMTypeOf(numbers),
                                                     "tilus$factors", SPACE_GLOBAL);
    LLVMSetInitializer(table, numbers);
    LLVMSetGlobalConstant(table, 1);
    LLVMSetLinkage(table, LLVMPrivateLinkage);
    return f->tables[part] = table;
}

/* An f32: a part of the factor of `slot`, in this thread. */
static LLVMValueRef slot_factor(Codegen *cg, Factors *f, int64_t slot, unsigned part)
{
    LLVMBuilderRef b = cg->builder;
    int64_t index[LIMIT_RANK];
    int by = 0;
    if (common_exponent(f, slot, &by))
        return LLVMConstReal(cg->f32, factor_part(by, part));
    layout_index(f->layout, 0, slot, index);
    LLVMValueRef at = add_i64(cg, emit_thread_index(cg, f->layout, f->dim, cg->thread),
                              const_i64_of(cg, index[f->dim]));
    LLVMValueRef place = LLVMBuildGEP2(b, cg->f32, factor_table(cg, f, part), &at, 1, "");
    return LLVMBuildLoad2(b, cg->f32, place, "");
}

/* Multiplies in f32, which holds every product but those that the result rounds anyway: of
 * 16-bit floats, no bit that f32 loses below 2^-149 could change the rounding. */
bool emit_rescale(Codegen *cg, const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    unsigned bits = dtype_bits(to->dtype);
    LLVMValueRef *in = lowered_words(op->operands[0]), *out = words_new(cg, to);
    Factors f = factors_of(cg, from, to);
    for (int64_t slot = 0; slot < to->layout->slots; slot++) {
        LLVMValueRef code = emit_get_bits(cg, in, slot * bits, bits);
        LLVMValueRef v = convert_decode_f32(cg->builder, from->dtype, code);
        for (unsigned part = f.first_part ? 0 : 1; part < PARTS; part++)
            v = LLVMBuildFMul(cg->builder, v, slot_factor(cg, &f, slot, part), "");
        emit_set_bits(cg, out, slot * bits, bits, convert_encode_f32(cg->builder, to->dtype, v));
    }
    lower_words(cg, op->results[0], out);
    return true;
}
