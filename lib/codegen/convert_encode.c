/* Casts, second half: the code nearest to an LLVM float or double. */
#include "codegen/convert.h"

#include <math.h>

#include "codegen/convert_build.h"

enum { F32_MAGNITUDE = 0x7fffffff };    /* every bit but the sign */

/* Adds the term that rounds `bits` to a multiple of 2^drop, ties to even, when the low
 * `drop` bits are then cut off. */
static LLVMValueRef round_bits(LLVMBuilderRef b, LLVMValueRef bits, unsigned drop)
{
    LLVMValueRef odd = build_and(b, build_lshr(b, bits, drop), 1);
    LLVMValueRef half = build_add(b, bits, ((uint32_t)1 << (drop - 1)) - 1);
    return LLVMBuildAdd(b, half, odd, "");
}

/* Rounds numbers below the least normal one: adding a float whose unit in the last place
 * is the least subnormal rounds, and leaves the code in the low bits. */
static LLVMValueRef encode_subnormal(LLVMBuilderRef b, const DTypeInfo *t, int bias,
                                     LLVMValueRef magnitude)
{
    int unit = 1 - bias - (int)t->mantissa;
    LLVMValueRef v = build_bitcast(b, magnitude, type_f32(b));
    LLVMValueRef magic = const_real(v, ldexp(1, F32_MANTISSA + unit));
    LLVMValueRef sum = build_bitcast(b, LLVMBuildFAdd(b, v, magic, ""), type_i32(b));
    return build_add(b, sum, -((uint32_t)(F32_MANTISSA + unit + F32_BIAS) << F32_MANTISSA));
}

/* The largest code without sign that is a number or, in IEEE types, infinity. */
static uint32_t largest_code(const DTypeInfo *t)
{
    uint32_t ones = ((uint32_t)1 << (t->exponent + t->mantissa)) - 1;
    if (t->special == SPECIAL_FN)
        return ones - 1;
    return t->special == SPECIAL_IEEE ? ones >> t->mantissa << t->mantissa : ones;
}

/* The positive quiet NaN; in types without NaN the largest value. */
static uint32_t nan_code(const DTypeInfo *t)
{
    uint32_t ones = ((uint32_t)1 << (t->exponent + t->mantissa)) - 1;
    uint32_t payload = ((uint32_t)1 << t->mantissa) - 1;
    return t->special == SPECIAL_IEEE ? ones - (payload >> 1) : ones;
}

/* The sign bit of an f32 at its place in a code of t. */
static LLVMValueRef place_sign(LLVMBuilderRef b, const DTypeInfo *t, LLVMValueRef bits)
{
    unsigned at = t->exponent + t->mantissa;
    return build_and(b, build_lshr(b, bits, 31 - at), (uint32_t)1 << at);
}

/* Floats of at most 8 bits with a sign. */
static LLVMValueRef encode_small(LLVMBuilderRef b, DType to, LLVMValueRef value)
{
    const DTypeInfo *t = &dtype_info[to];
    int bias = (1 << (t->exponent - 1)) - 1;
    unsigned drop = F32_MANTISSA - t->mantissa;
    LLVMValueRef bits = build_bitcast(b, value, type_i32(b));
    LLVMValueRef magnitude = build_and(b, bits, F32_MAGNITUDE);
    LLVMValueRef code = build_lshr(b, round_bits(b, magnitude, drop), drop);
    code = build_add(b, code, -((uint32_t)(F32_BIAS - bias) << t->mantissa));
    LLVMValueRef tiny = build_test(b, LLVMIntULT, magnitude,
                                   (uint32_t)(F32_BIAS + 1 - bias) << F32_MANTISSA);
    code = build_select(b, tiny, encode_subnormal(b, t, bias, magnitude), code);
    code = build_binary(b, "llvm.umin", code, const_int(code, largest_code(t)));
    code = build_or(b, code, place_sign(b, t, bits));
    return build_select(b, build_is_nan(b, value), const_i32(b, nan_code(t)), code);
}

/* Powers of two: rounds the exponent; numbers not above 0 become code 0.
 * Subnormals of f32 lie around the two least codes, 2^-127 and 2^-126. */
static LLVMValueRef encode_exponent(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef bits = build_bitcast(b, value, type_i32(b));
    LLVMValueRef code = build_lshr(b, round_bits(b, bits, F32_MANTISSA), F32_MANTISSA);
    code = build_binary(b, "llvm.umin", code, const_int(code, 254));
    LLVMValueRef second = build_test(b, LLVMIntUGT, bits, 0x600000);
    code = build_select(b, build_test(b, LLVMIntULT, bits, 1u << F32_MANTISSA),
                        LLVMBuildZExt(b, second, type_i32(b), ""), code);
    LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, bits, const_int(bits, 0), "");
    code = build_select(b, negative, const_i32(b, 0), code);
    return build_select(b, build_is_nan(b, value), const_i32(b, 255), code);
}

/* f32 with the low 13 bits rounded away. */
static LLVMValueRef encode_tf32(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef bits = build_bitcast(b, value, type_i32(b));
    LLVMValueRef code = build_and(b, round_bits(b, bits, 13), 0xffffe000);
    return build_select(b, build_is_nan(b, value), const_i32(b, 0x7fffe000), code);
}

static LLVMValueRef encode_16(LLVMBuilderRef b, LLVMTypeRef type, LLVMValueRef value)
{
    LLVMValueRef v = LLVMBuildFPTrunc(b, value, type, "");
    return LLVMBuildZExt(b, build_bitcast(b, v, type_i16(b)), type_i32(b), "");
}

/* Integers of at most 16 bits: clamps, then rounds by adding 1.5 * 2^23, which
 * leaves the two's complement in the low bits. minimumnum turns NaN into max.
 * The clamp lies a quarter above max, which rounds back to it: of a clamp to
 * [0, 1] ptxas makes .sat, which turns NaN into 0 (seen with 13.0). */
static LLVMValueRef encode_small_int(LLVMBuilderRef b, DType to, LLVMValueRef value)
{
    unsigned bits = dtype_bits(to);
    bool is_signed = dtype_info[to].kind == DKIND_INT;
    double max = ldexp(1, (int)(bits - is_signed)) - 1 + 0.25;
    double min = is_signed ? -ldexp(1, (int)bits - 1) : 0;
    value = build_binary(b, "llvm.minimumnum", value, const_real(value, max));
    value = build_binary(b, "llvm.maximumnum", value, const_real(value, min));
    value = LLVMBuildFAdd(b, value, const_real(value, 0x1.8p23), "");
    return build_and(b, build_bitcast(b, value, type_i32(b)), ((uint32_t)1 << bits) - 1);
}

/* Integers of 32 and 64 bits from float or double. */
static LLVMValueRef encode_wide_int(LLVMBuilderRef b, DType to, LLVMValueRef value)
{
    bool is_signed = dtype_info[to].kind == DKIND_INT;
    LLVMTypeRef types[] = {dtype_bits(to) > 32 ? type_i64(b) : type_i32(b), LLVMTypeOf(value)};
    LLVMValueRef whole = build_unary(b, "llvm.rint", value);
    LLVMValueRef code = build_overloaded(b, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat",
                                         types, 2, &whole, 1);
    uint64_t max = UINT64_MAX >> (64 - dtype_bits(to) + is_signed);
    return build_select(b, build_is_nan(b, value), const_int(code, max), code);
}

static LLVMValueRef encode_bool(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef set = LLVMBuildFCmp(b, LLVMRealUNE, value, const_real(value, 0), "");
    return LLVMBuildZExt(b, set, type_i32(b), "");
}

LLVMValueRef convert_encode_f32(LLVMBuilderRef b, DType to, LLVMValueRef value)
{
    switch (to) {
    case DTYPE_bool:
        return encode_bool(b, value);
    case DTYPE_ue8m0:
        return encode_exponent(b, value);
    case DTYPE_f16:
        return encode_16(b, type_f16(b), value);
    case DTYPE_bf16:
        return encode_16(b, type_bf16(b), value);
    case DTYPE_tf32:
        return encode_tf32(b, value);
    case DTYPE_f32:
        return build_bitcast(b, value, type_i32(b));
    case DTYPE_f64:
        return build_bitcast(b, LLVMBuildFPExt(b, value, type_f64(b), ""), type_i64(b));
    default:
        if (!dtype_is_integer(to))
            return encode_small(b, to, value);
        return dtype_bits(to) <= 16 ? encode_small_int(b, to, value)
                                    : encode_wide_int(b, to, value);
    }
}

/* Rounds a double to odd: of the two floats around it, the one whose last bit
 * is set. A later rounding to fewer bits then sees which side of a tie the
 * double was on. The nearest float is one of the two; if it is inexact and
 * even, the other lies toward the double. */
static LLVMValueRef narrow_to_odd(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef near = LLVMBuildFPTrunc(b, value, type_f32(b), "");
    LLVMValueRef back = build_unary(b, "llvm.fabs", LLVMBuildFPExt(b, near, type_f64(b), ""));
    LLVMValueRef exact = build_unary(b, "llvm.fabs", value);
    LLVMValueRef bits = build_bitcast(b, near, type_i32(b));
    LLVMValueRef even = build_test(b, LLVMIntEQ, build_and(b, bits, 1), 0);
    LLVMValueRef inexact = LLVMBuildFCmp(b, LLVMRealONE, back, exact, "");
    LLVMValueRef step = build_select(b, LLVMBuildFCmp(b, LLVMRealOLT, back, exact, ""),
                                     const_i32(b, 1), const_i32(b, UINT32_MAX));
    LLVMValueRef odd = LLVMBuildAdd(b, bits, step, "");
    bits = build_select(b, LLVMBuildAnd(b, even, inexact, ""), odd, bits);
    return build_bitcast(b, bits, type_f32(b));
}

LLVMValueRef convert_encode_f64(LLVMBuilderRef b, DType to, LLVMValueRef value)
{
    if (to == DTYPE_f64)
        return build_bitcast(b, value, type_i64(b));
    if (to == DTYPE_f32)
        return build_bitcast(b, LLVMBuildFPTrunc(b, value, type_f32(b), ""), type_i32(b));
    if (to == DTYPE_bool)
        return encode_bool(b, value);
    if (dtype_is_integer(to) && dtype_bits(to) > 16)
        return encode_wide_int(b, to, value);
    return convert_encode_f32(b, to, narrow_to_odd(b, value));
}
