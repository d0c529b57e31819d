/* Casts between codes: chooses the way, and clamps integers. */
#include "codegen/convert.h"

#include "codegen/convert_build.h"

/* Counts a bool as an unsigned integer of one digit. */
static bool is_whole(DType t)
{
    return dtype_is_integer(t) || t == DTYPE_bool;
}

static bool is_signed(DType t)
{
    return dtype_info[t].kind == DKIND_INT;
}

/* Binary digits of the largest value of an integer type. */
static unsigned int_digits(DType t)
{
    return t == DTYPE_bool ? 1 : dtype_bits(t) - is_signed(t);
}

/* An integer's or bool's value in `type`, i32 or i64, at least as wide. */
static LLVMValueRef decode_int(LLVMBuilderRef b, DType from, LLVMValueRef code,
                               LLVMTypeRef type)
{
    if (from == DTYPE_bool)
        code = LLVMBuildZExt(b, build_test(b, LLVMIntNE, code, 0), type_i32(b), "");
    if (!is_signed(from))
        return LLVMBuildZExt(b, code, type, "");
    unsigned above = LLVMGetIntTypeWidth(LLVMTypeOf(code)) - dtype_bits(from);
    if (above)
        code = LLVMBuildAShr(b, build_shl(b, code, above), const_int(code, above), "");
    return LLVMBuildSExt(b, code, type, "");
}

/* Clamps a value of the type `from` into the range of `to`, as far as the
 * ranges differ. */
static LLVMValueRef clamp_int(LLVMBuilderRef b, DType to, DType from, LLVMValueRef v)
{
    unsigned digits = int_digits(to);
    uint64_t max = digits ? UINT64_MAX >> (64 - digits) : 0;
    bool narrows = digits < int_digits(from);
    if (is_signed(from) && (narrows || !is_signed(to)))
        v = build_binary(b, "llvm.smax", v, const_int(v, is_signed(to) ? ~max : 0));
    if (narrows)
        v = build_binary(b, is_signed(from) ? "llvm.smin" : "llvm.umin", v, const_int(v, max));
    return v;
}

static LLVMValueRef convert_int(LLVMBuilderRef b, DType to, DType from, LLVMValueRef code)
{
    bool is_wide = dtype_bits(to) > 32 || dtype_bits(from) > 32;
    LLVMValueRef v = decode_int(b, from, code, is_wide ? type_i64(b) : type_i32(b));
    v = clamp_int(b, to, from, v);
    if (dtype_bits(to) > 32)
        return v;
    v = LLVMBuildTrunc(b, v, type_i32(b), "");
    return is_signed(from) ? build_and(b, v, UINT32_MAX >> (32 - dtype_bits(to))) : v;
}

/* Wide integers to f32 and f64: an instruction that rounds once. */
static LLVMValueRef convert_wide_int(LLVMBuilderRef b, DType to, DType from, LLVMValueRef code)
{
    LLVMTypeRef type = to == DTYPE_f64 ? type_f64(b) : type_f32(b);
    LLVMValueRef v = is_signed(from) ? LLVMBuildSIToFP(b, code, type, "")
                                     : LLVMBuildUIToFP(b, code, type, "");
    return build_bitcast(b, v, to == DTYPE_f64 ? type_i64(b) : type_i32(b));
}

LLVMValueRef convert_code(LLVMBuilderRef b, DType to, DType from, LLVMValueRef code)
{
    if (to == from)
        return code;
    if (is_whole(from) && to == DTYPE_bool)
        return LLVMBuildZExt(b, build_test(b, LLVMIntNE, code, 0), type_i32(b), "");
    if (is_whole(from) && is_whole(to))
        return convert_int(b, to, from, code);
    if (convert_fits_f32(from))
        return convert_encode_f32(b, to, convert_decode_f32(b, from, code));
    if (is_whole(from) && (to == DTYPE_f32 || to == DTYPE_f64))
        return convert_wide_int(b, to, from, code);
    return convert_encode_f64(b, to, convert_decode_f64(b, from, code));
}
