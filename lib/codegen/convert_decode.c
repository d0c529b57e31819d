/* Casts, first half: the value of a code as an LLVM float or double. */
#include "codegen/convert.h"

#include <math.h>

#include "codegen/convert_build.h"

enum {
    F32_NAN = 0x7fc00000,
    INT_DIGITS_F32 = 16,    /* widest integer type that goes through f32 */
};

bool convert_fits_f32(DType t)
{
    return dtype_is_integer(t) ? dtype_bits(t) <= INT_DIGITS_F32 : t != DTYPE_f64;
}

/* An integer by the mantissa of a float, which needs no conversion unit:
 * 2^23 + u is the float whose low mantissa bits are u. Flipping the sign bit
 * of a signed code adds 2^(bits-1). */
static LLVMValueRef decode_int(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    double offset = 0x1p23;
    uint32_t flip = 0x4b000000;
    if (dtype_info[from].kind == DKIND_INT) {
        offset += ldexp(1, (int)dtype_bits(from) - 1);
        flip |= (uint32_t)1 << (dtype_bits(from) - 1);
    }
    LLVMValueRef bits = LLVMBuildXor(b, code, const_i32(b, flip), "");
    LLVMValueRef v = build_bitcast(b, bits, type_f32(b));
    return LLVMBuildFSub(b, v, const_real(v, offset), "");
}

/* Shifts exponent and mantissa to their places in an f32, and sets the bias
 * right by an exact product, which also normalizes subnormals:
 *
 *     code           s eee mm
 *     f32    s 00000eee mm000000000000000000000   * 2^(127 - bias)
 */
static LLVMValueRef decode_small(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    const DTypeInfo *t = &dtype_info[from];
    int bias = (1 << (t->exponent - 1)) - 1;
    uint32_t sign = (uint32_t)1 << (t->exponent + t->mantissa);
    LLVMValueRef top = build_shl(b, build_and(b, code, sign), 31 - t->exponent - t->mantissa);
    LLVMValueRef rest = build_shl(b, build_and(b, code, sign - 1), F32_MANTISSA - t->mantissa);
    LLVMValueRef v = build_bitcast(b, build_or(b, top, rest), type_f32(b));
    v = LLVMBuildFMul(b, v, const_real(v, ldexp(1, F32_BIAS - bias)), "");
    if (t->special != SPECIAL_FN)
        return v;
    LLVMValueRef is_nan = build_test(b, LLVMIntEQ, build_and(b, code, sign - 1), sign - 1);
    return build_select(b, is_nan, const_real(v, NAN), v);
}

/* f16, and types that are its upper part. */
static LLVMValueRef decode_half(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    LLVMValueRef bits = build_shl(b, code, 16 - dtype_bits(from));
    bits = LLVMBuildTrunc(b, bits, type_i16(b), "");
    return LLVMBuildFPExt(b, build_bitcast(b, bits, type_f16(b)), type_f32(b), "");
}

/* The exponent of ue8m0 is that of f32; 2^-127 is a subnormal there. */
static LLVMValueRef decode_exponent(LLVMBuilderRef b, LLVMValueRef code)
{
    LLVMValueRef bits = build_shl(b, code, F32_MANTISSA);
    bits = build_select(b, build_test(b, LLVMIntEQ, code, 0),
                        const_i32(b, 1u << (F32_MANTISSA - 1)), bits);
    bits = build_select(b, build_test(b, LLVMIntEQ, code, 255), const_i32(b, F32_NAN), bits);
    return build_bitcast(b, bits, type_f32(b));
}

static LLVMValueRef decode_bool(LLVMBuilderRef b, LLVMValueRef code)
{
    LLVMTypeRef type = type_f32(b);
    return build_select(b, build_test(b, LLVMIntNE, code, 0), LLVMConstReal(type, 1),
                        LLVMConstReal(type, 0));
}

LLVMValueRef convert_decode_f32(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    switch (from) {
    case DTYPE_bool:
        return decode_bool(b, code);
    case DTYPE_ue8m0:
        return decode_exponent(b, code);
    case DTYPE_f8e5m2:
    case DTYPE_f16:
        return decode_half(b, from, code);
    case DTYPE_bf16:
        return build_bitcast(b, build_shl(b, code, 16), type_f32(b));
    case DTYPE_tf32:
        return build_bitcast(b, build_and(b, code, 0xffffe000), type_f32(b));
    case DTYPE_f32:
        return build_bitcast(b, code, type_f32(b));
    default:
        return dtype_is_integer(from) ? decode_int(b, from, code)
                                      : decode_small(b, from, code);
    }
}

static LLVMValueRef build_magnitude(LLVMBuilderRef b, LLVMValueRef code)
{
    LLVMTypeRef type = LLVMTypeOf(code), bit = LLVMInt1TypeInContext(LLVMGetBuilderContext(b));
    LLVMValueRef args[] = {code, LLVMConstInt(bit, 0, 0)};  /* abs(INT64_MIN) wraps */
    return build_overloaded(b, "llvm.abs", &type, 1, args, 2);
}

/* Magnitudes from 2^53 lose their low 11 bits to bit 11, which is set when any
 * of them was. */
static LLVMValueRef decode_int64(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    bool is_signed = dtype_info[from].kind == DKIND_INT;
    LLVMValueRef magnitude = is_signed ? build_magnitude(b, code) : code;
    LLVMValueRef lost = build_test(b, LLVMIntNE, build_and(b, magnitude, 0x7ff), 0);
    LLVMValueRef sticky = build_shl(b, LLVMBuildZExt(b, lost, type_i64(b), ""), 11);
    LLVMValueRef odd = build_or(b, build_and(b, magnitude, ~UINT64_C(0x7ff)), sticky);
    LLVMValueRef big = build_test(b, LLVMIntUGE, magnitude, UINT64_C(1) << 53);
    LLVMValueRef v = LLVMBuildUIToFP(b, build_select(b, big, odd, magnitude), type_f64(b), "");
    if (!is_signed)
        return v;
    LLVMValueRef negative = LLVMBuildICmp(b, LLVMIntSLT, code, const_int(code, 0), "");
    return build_select(b, negative, LLVMBuildFNeg(b, v, ""), v);
}

LLVMValueRef convert_decode_f64(LLVMBuilderRef b, DType from, LLVMValueRef code)
{
    switch (from) {
    case DTYPE_f64:
        return build_bitcast(b, code, type_f64(b));
    case DTYPE_i64:
    case DTYPE_u64:
        return decode_int64(b, from, code);
    case DTYPE_i32:
        return LLVMBuildSIToFP(b, code, type_f64(b), "");
    case DTYPE_u32:
        return LLVMBuildUIToFP(b, code, type_f64(b), "");
    default:
        return LLVMBuildFPExt(b, convert_decode_f32(b, from, code), type_f64(b), "");
    }
}
