/* Element-wise arithmetic: add, sub, mul, neg, div, mod, abs, min, max, fma, floor, ceil and
 * round, as dtype_add and its kin define them, in the machine's arithmetic that rounds alike.
 *
 *   f16, bf16        in their own type, two slots of a word at once
 *   f32, f64         in their own type
 *   i32, i64, ...    wrapping: in i32 or i64, cut to the type's width
 *   other floats     decoded to f32 or f64, which is rounded once more
 *
 * f32 does no harm to floats of at most 8 bits and 6 exponent bits: their
 * products have at most 14 bits, so f32 holds them exactly. A sum that f32
 * cannot hold is far above the type's smallest numbers, has at most 7 bits of
 * precision to keep, and rounding to p bits through 24 >= 2p + 2 bits equals
 * rounding once; so it is with quotients. Wider exponents would leave f32's
 * range. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/internal.h"

/* ---- floats ---------------------------------------------------------- */

static LLVMValueRef build_fma(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return build_overloaded(b, "llvm.fma", &type, 1, (LLVMValueRef[]){x, y, z}, 3);
}

/* x - floor(x / y) * y. */
static LLVMValueRef build_mod(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef quotient = build_unary(b, "llvm.floor", LLVMBuildFDiv(b, x, y, ""));
    return build_fma(b, LLVMBuildFNeg(b, quotient, ""), y, x);
}

static LLVMValueRef apply_float(LLVMBuilderRef b, OpCode f, LLVMValueRef *v)
{
    switch (f) {
    case OP_add: return LLVMBuildFAdd(b, v[0], v[1], "");
    case OP_sub: return LLVMBuildFSub(b, v[0], v[1], "");
    case OP_mul: return LLVMBuildFMul(b, v[0], v[1], "");
    case OP_div: return LLVMBuildFDiv(b, v[0], v[1], "");
    case OP_mod: return build_mod(b, v[0], v[1]);
    case OP_abs: return build_unary(b, "llvm.fabs", v[0]);
    case OP_min: return build_binary(b, "llvm.minimumnum", v[0], v[1]);
    case OP_max: return build_binary(b, "llvm.maximumnum", v[0], v[1]);
    case OP_fma: return build_fma(b, v[0], v[1], v[2]);
    case OP_floor: return build_unary(b, "llvm.floor", v[0]);
    case OP_ceil: return build_unary(b, "llvm.ceil", v[0]);
    case OP_round: return build_unary(b, "llvm.roundeven", v[0]);
    default: return LLVMBuildFNeg(b, v[0], "");
    }
}

/* Adds, rounding to odd: the last bit shows that bits were lost, so that rounding
 * once more is right. `lost` is exact (Knuth's TwoSum), and NaN for infinities. */
static LLVMValueRef build_add_to_odd(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
    LLVMValueRef sum = LLVMBuildFAdd(b, x, y, ""), part = LLVMBuildFSub(b, sum, x, "");
    LLVMValueRef lost_x = LLVMBuildFSub(b, x, LLVMBuildFSub(b, sum, part, ""), "");
    LLVMValueRef lost = LLVMBuildFAdd(b, lost_x, LLVMBuildFSub(b, y, part, ""), "");
    LLVMValueRef zero = const_real(sum, 0);
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, lost, zero, "");
    bool wide = LLVMGetTypeKind(LLVMTypeOf(sum)) == LLVMDoubleTypeKind;
    LLVMValueRef bits = build_bitcast(b, sum, wide ? type_i64(b) : type_i32(b));
    LLVMValueRef even = build_test(b, LLVMIntEQ, build_and(b, bits, 1), 0);
    LLVMValueRef outward = LLVMBuildICmp(
        b, LLVMIntEQ, LLVMBuildFCmp(b, LLVMRealOLT, lost, zero, ""),
        LLVMBuildFCmp(b, LLVMRealOLT, sum, zero, ""), "");
    LLVMValueRef step = build_select(b, outward, const_int(bits, 1),
                                     const_int(bits, UINT64_MAX));
    LLVMValueRef odd = LLVMBuildAdd(b, bits, step, "");
    bits = build_select(b, LLVMBuildAnd(b, even, inexact, ""), odd, bits);
    return build_bitcast(b, bits, LLVMTypeOf(sum));
}

/* Returns true when computing in f32 gives the defined result: mod is defined so, min, max
 * and abs give one of their operands, f32 holds the integer next to each number, and the
 * file's head shows it for the rest. */
static bool goes_through_f32(OpCode f, DType t)
{
    if (f == OP_mod || f == OP_abs || f == OP_neg || f == OP_min || f == OP_max ||
        f == OP_floor || f == OP_ceil || f == OP_round)
        return true;
    return dtype_bits(t) <= 8 && dtype_info[t].exponent <= 6;
}

/* Decodes floats, computes exactly or rounds harmlessly, and encodes. */
static LLVMValueRef float_through(Codegen *cg, const Op *op, DType t, LLVMValueRef *codes)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef v[OPERANDS_MAX];
    bool single = goes_through_f32(op->code, t);
    for (unsigned i = 0; i < op->operand_count; i++)
        v[i] = single ? convert_decode_f32(b, t, codes[i])
                      : convert_decode_f64(b, t, codes[i]);
    LLVMValueRef result = op->code == OP_fma
                              ? build_add_to_odd(b, LLVMBuildFMul(b, v[0], v[1], ""), v[2])
                              : apply_float(b, op->code, v);
    return single ? convert_encode_f32(b, t, result) : convert_encode_f64(b, t, result);
}

static LLVMValueRef float_code(Codegen *cg, const Op *op, DType t, LLVMValueRef *codes)
{
    if (t != DTYPE_f32 && t != DTYPE_f64)
        return float_through(cg, op, t, codes);
    LLVMTypeRef type = t == DTYPE_f32 ? cg->f32 : cg->f64;
    LLVMValueRef v[OPERANDS_MAX];
    for (unsigned i = 0; i < op->operand_count; i++)
        v[i] = LLVMBuildBitCast(cg->builder, codes[i], type, "");
    LLVMValueRef result = apply_float(cg->builder, op->code, v);
    if (op->code == OP_mul)
        allow_contraction(cg, result);
    return LLVMBuildBitCast(cg->builder, result, LLVMTypeOf(codes[0]), "");
}

/* Two f16 or bf16 slots of a word. */
static LLVMValueRef pair_word(Codegen *cg, const Op *op, LLVMValueRef *words)
{
    DType t = op->results[0]->type->dtype;
    LLVMTypeRef pair = LLVMVectorType(t == DTYPE_f16 ? cg->f16 : cg->bf16, 2);
    LLVMValueRef v[OPERANDS_MAX];
    for (unsigned i = 0; i < op->operand_count; i++)
        v[i] = LLVMBuildBitCast(cg->builder, words[i], pair, "");
    return LLVMBuildBitCast(cg->builder, apply_float(cg->builder, op->code, v), cg->i32, "");
}

/* ---- integers -------------------------------------------------------- */

/* Division that LLVM defines for every operand: by 1 where the divisor is 0 or,
 * for the least integer's sake, -1. */
typedef struct Division {
    LLVMValueRef quotient, rest;
    LLVMValueRef by_zero, by_minus_one;     /* i1; minus one: NULL if unsigned */
} Division;

static Division divide_unsigned(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
    Division d = {.by_zero = build_test(b, LLVMIntEQ, y, 0)};
    y = build_select(b, d.by_zero, const_int(y, 1), y);
    d.quotient = LLVMBuildUDiv(b, x, y, "");
    d.rest = LLVMBuildSub(b, x, LLVMBuildMul(b, d.quotient, y, ""), "");
    return d;
}

/* Rounds down: one less where the rest's sign is not the divisor's. */
static Division divide_signed(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y)
{
    Division d = {.by_zero = build_test(b, LLVMIntEQ, y, 0),
                  .by_minus_one = build_test(b, LLVMIntEQ, y, UINT64_MAX)};
    LLVMValueRef zero = const_int(x, 0), unsafe = build_or(b, d.by_zero, d.by_minus_one);
    y = build_select(b, unsafe, const_int(y, 1), y);
    LLVMValueRef quotient = LLVMBuildSDiv(b, x, y, "");
    LLVMValueRef rest = LLVMBuildSub(b, x, LLVMBuildMul(b, quotient, y, ""), "");
    LLVMValueRef differ = LLVMBuildICmp(b, LLVMIntSLT, LLVMBuildXor(b, rest, y, ""), zero, "");
    LLVMValueRef down = LLVMBuildAnd(b, build_test(b, LLVMIntNE, rest, 0), differ, "");
    d.quotient = LLVMBuildAdd(b, quotient, LLVMBuildSExt(b, down, LLVMTypeOf(x), ""), "");
    d.rest = LLVMBuildAdd(b, rest, build_select(b, down, y, zero), "");
    return d;
}

static LLVMValueRef divide(LLVMBuilderRef b, OpCode f, bool is_signed, LLVMValueRef x,
                           LLVMValueRef y)
{
    Division d = is_signed ? divide_signed(b, x, y) : divide_unsigned(b, x, y);
    if (f == OP_mod)
        return build_select(b, d.by_zero, x, d.rest);
    if (d.by_minus_one)
        d.quotient = build_select(b, d.by_minus_one, LLVMBuildNeg(b, x, ""), d.quotient);
    return build_select(b, d.by_zero, const_int(x, UINT64_MAX), d.quotient);
}

static LLVMValueRef build_abs(LLVMBuilderRef b, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMTypeOf(x), bit = LLVMInt1TypeInContext(LLVMGetBuilderContext(b));
    LLVMValueRef args[] = {x, LLVMConstInt(bit, 0, 0)};     /* the least one wraps */
    return build_overloaded(b, "llvm.abs", &type, 1, args, 2);
}

/* The value whose low bits are the result's code. */
static LLVMValueRef apply_integer(LLVMBuilderRef b, OpCode f, bool is_signed, LLVMValueRef *v)
{
    switch (f) {
    case OP_add: return LLVMBuildAdd(b, v[0], v[1], "");
    case OP_sub: return LLVMBuildSub(b, v[0], v[1], "");
    case OP_mul: return LLVMBuildMul(b, v[0], v[1], "");
    case OP_div:
    case OP_mod: return divide(b, f, is_signed, v[0], v[1]);
    case OP_abs: return is_signed ? build_abs(b, v[0]) : v[0];
    case OP_min: return build_binary(b, is_signed ? "llvm.smin" : "llvm.umin", v[0], v[1]);
    case OP_max: return build_binary(b, is_signed ? "llvm.smax" : "llvm.umax", v[0], v[1]);
    case OP_fma: return LLVMBuildAdd(b, LLVMBuildMul(b, v[0], v[1], ""), v[2], "");
    default: return LLVMBuildNeg(b, v[0], "");
    }
}

/* ---- ops ------------------------------------------------------------- */

static LLVMValueRef slot_code(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    DType t = op->results[0]->type->dtype;
    if (dtype_is_float(t))
        return float_code(cg, op, t, codes);
    for (unsigned i = 0; i < op->operand_count; i++)
        codes[i] = emit_integer_value(cg, t, codes[i]);
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    return emit_integer_code(cg, t, apply_integer(cg->builder, op->code, is_signed, codes));
}

static bool emit_arith(Codegen *cg, const Op *op)
{
    DType t = op->results[0]->type->dtype;
    bool halves = (t == DTYPE_f16 || t == DTYPE_bf16) && op->code != OP_mod;
    return halves ? emit_words(cg, op, pair_word) : emit_slots(cg, op, slot_code);
}

bool emit_add(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_sub(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_mul(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_neg(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_div(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_mod(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_abs(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_min(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_max(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_fma(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_floor(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_ceil(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
bool emit_round(Codegen *cg, const Op *op) { return emit_arith(cg, op); }
