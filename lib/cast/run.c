/* Runs plans on the host, word by word: the meaning of each operation, by the
 * definitions of dtype.h, which round exactly once. */
#include "cast/plan.h"

#include <assert.h>

enum { RUN_OPS_MAX = 1024 };

/* Bytes of b:a by the low four nibbles of a selector; a nibble's upper bit
 * spreads the byte's sign (PTX ISA, "prmt"). */
static uint32_t run_prmt(uint32_t a, uint32_t b, uint32_t selector)
{
    uint64_t bytes = (uint64_t)b << 32 | a;
    uint32_t result = 0;
    for (unsigned i = 0; i < 4; i++) {
        unsigned nibble = selector >> 4 * i & 15;
        uint32_t byte = bytes >> 8 * (nibble & 7) & 0xff;
        if (nibble & 8)
            byte = byte & 0x80 ? 0xff : 0;
        result |= byte << 8 * i;
    }
    return result;
}

static uint32_t run_lop3(uint32_t a, uint32_t b, uint32_t c, uint32_t table)
{
    uint32_t result = 0;
    for (unsigned i = 0; i < 8; i++)
        if (table >> i & 1)
            result |= (i & 4 ? a : ~a) & (i & 2 ? b : ~b) & (i & 1 ? c : ~c);
    return result;
}

typedef uint64_t Binary(DType t, uint64_t a, uint64_t b);

/* `binary` in each half. */
static uint32_t run_halves(DType t, Binary *binary, uint32_t a, uint32_t b)
{
    uint64_t low = binary(t, a & 0xffff, b & 0xffff), high = binary(t, a >> 16, b >> 16);
    return (uint32_t)(high << 16 | low);
}

/* Like dtype_lesser and dtype_greater, but a NaN wins. */
static uint64_t lesser_or_nan(DType t, uint64_t a, uint64_t b)
{
    return dtype_order(t, a, b) == DORDER_NONE ? dtype_add(t, a, b) : dtype_lesser(t, a, b);
}

static uint64_t greater_or_nan(DType t, uint64_t a, uint64_t b)
{
    return dtype_order(t, a, b) == DORDER_NONE ? dtype_add(t, a, b) : dtype_greater(t, a, b);
}

static uint32_t run_fma_halves(DType t, uint32_t a, uint32_t b, uint32_t c)
{
    uint64_t low = dtype_fma(t, a & 0xffff, b & 0xffff, c & 0xffff);
    uint64_t high = dtype_fma(t, a >> 16, b >> 16, c >> 16);
    return (uint32_t)(high << 16 | low);
}

static uint32_t run_convert(DType to, DType from, uint32_t a, uint32_t b)
{
    uint64_t low = dtype_cast(to, from, a), high = dtype_cast(to, from, b);
    return (uint32_t)(high << dtype_bits(to) | low);
}

/* Saturates where the definition of f8e5m2 has infinity; a NaN has all bits set
 * (PTX ISA, "cvt"). */
static uint32_t run_to_e5m2(uint32_t half)
{
    enum { INFINITY_CODE = 0x7c, NAN_CODE = 0x7f };
    uint32_t code = (uint32_t)dtype_cast(DTYPE_f8e5m2, DTYPE_f16, half);
    uint32_t magnitude = code & 0x7f;
    return magnitude == INFINITY_CODE ? code - 1 : magnitude > INFINITY_CODE ? NAN_CODE : code;
}

static uint32_t run_integer(const CastOp *op, uint32_t a, uint32_t b, uint32_t c)
{
    switch (op->code) {
    case CAST_prmt: return run_prmt(a, b, c);
    case CAST_lop3: return run_lop3(a, b, c, op->imm);
    case CAST_shl: return a << op->imm;
    case CAST_shr: return a >> op->imm;
    case CAST_add: return a + b;
    case CAST_mad: return a * b + c;
    case CAST_shf: return (uint32_t)(((uint64_t)b << 32 | a) >> op->imm);
    default: return a - b;
    }
}

static uint32_t run_float(const CastOp *op, uint32_t a, uint32_t b, uint32_t c)
{
    switch (op->code) {
    case CAST_f16_add: return run_halves(DTYPE_f16, dtype_add, a, b);
    case CAST_f16_sub: return run_halves(DTYPE_f16, dtype_sub, a, b);
    case CAST_f16_mul: return run_halves(DTYPE_f16, dtype_mul, a, b);
    case CAST_f16_fma: return run_fma_halves(DTYPE_f16, a, b, c);
    case CAST_f16_min: return run_halves(DTYPE_f16, dtype_lesser, a, b);
    case CAST_f16_max: return run_halves(DTYPE_f16, dtype_greater, a, b);
    case CAST_f16_min_nan: return run_halves(DTYPE_f16, lesser_or_nan, a, b);
    case CAST_f16_max_nan: return run_halves(DTYPE_f16, greater_or_nan, a, b);
    case CAST_bf16_add: return run_halves(DTYPE_bf16, dtype_add, a, b);
    case CAST_bf16_sub: return run_halves(DTYPE_bf16, dtype_sub, a, b);
    case CAST_bf16_mul: return run_halves(DTYPE_bf16, dtype_mul, a, b);
    case CAST_bf16_fma: return run_fma_halves(DTYPE_bf16, a, b, c);
    case CAST_bf16_min: return run_halves(DTYPE_bf16, dtype_lesser, a, b);
    case CAST_bf16_min_nan: return run_halves(DTYPE_bf16, lesser_or_nan, a, b);
    case CAST_bf16_max_nan: return run_halves(DTYPE_bf16, greater_or_nan, a, b);
    case CAST_bf16_max: return run_halves(DTYPE_bf16, dtype_greater, a, b);
    case CAST_f32_add: return (uint32_t)dtype_add(DTYPE_f32, a, b);
    case CAST_f32_sub: return (uint32_t)dtype_sub(DTYPE_f32, a, b);
    case CAST_f32_mul: return (uint32_t)dtype_mul(DTYPE_f32, a, b);
    case CAST_f32_fma: return (uint32_t)dtype_fma(DTYPE_f32, a, b, c);
    case CAST_f32_min: return (uint32_t)dtype_lesser(DTYPE_f32, a, b);
    case CAST_f32_max: return (uint32_t)dtype_greater(DTYPE_f32, a, b);
    case CAST_f32_min_nan: return (uint32_t)lesser_or_nan(DTYPE_f32, a, b);
    case CAST_f32_max_nan: return (uint32_t)greater_or_nan(DTYPE_f32, a, b);
    case CAST_widen_f16: return (uint32_t)dtype_cast(DTYPE_f32, DTYPE_f16, a & 0xffff);
    case CAST_narrow_f16: return run_convert(DTYPE_f16, DTYPE_f32, a, b);
    case CAST_from_e4m3: return run_convert(DTYPE_f16, DTYPE_f8e4m3, a & 0xff, a >> 8 & 0xff);
    case CAST_pair_e4m3: return run_convert(DTYPE_f8e4m3, DTYPE_f32, a, b) | c << 16;
    case CAST_to_e4m3: return run_convert(DTYPE_f8e4m3, DTYPE_f16, a & 0xffff, a >> 16);
    default: return run_to_e5m2(a >> 16) << 8 | run_to_e5m2(a & 0xffff);
    }
}

uint32_t cast_run_op(const CastOp *op, uint32_t a, uint32_t b, uint32_t c)
{
    return cast_op_info[op->code].unit == CAST_UNIT_INT ? run_integer(op, a, b, c)
                                                        : run_float(op, a, b, c);
}

void cast_run(const CastPlan *plan, const uint32_t *in, uint32_t *out)
{
    uint32_t value[RUN_OPS_MAX];
    assert(plan->count <= RUN_OPS_MAX);
    for (uint32_t i = 0; i < plan->count; i++) {
        const CastOp *op = &plan->ops[i];
        uint32_t a = 0, b = 0, c = 0;
        if (cast_op_info[op->code].inputs > 0)
            a = value[op->in[0]], b = value[op->in[1]], c = value[op->in[2]];
        value[i] = op->code == CAST_input      ? in[op->imm]
                   : op->code == CAST_constant ? op->imm
                                               : cast_run_op(op, a, b, c);
    }
    for (unsigned i = 0; i < plan->out_words; i++)
        out[i] = value[plan->out[i]];
}
