#include "codegen/fold.h"

#include "codegen/convert.h"
#include "codegen/convert_build.h"

#include <math.h>

Fold fold_open(Codegen *cg, const Op *op)
{
    return (Fold){cg, op, reduce_kind(op), op->operands[0]->type->dtype};
}

/* ---- values ----------------------------------------------------------- */

LLVMValueRef fold_decode(const Fold *f, LLVMValueRef code)
{
    LLVMBuilderRef b = f->cg->builder;
    if (f->dtype == DTYPE_bool)     /* every code but 0 is true */
        return LLVMBuildZExt(b, build_test(b, LLVMIntNE, code, 0), f->cg->i32, "");
    if (!dtype_is_float(f->dtype))
        return emit_integer_value(f->cg, f->dtype, code);
    return f->dtype == DTYPE_f64 ? convert_decode_f64(b, f->dtype, code)
                                 : convert_decode_f32(b, f->dtype, code);
}

LLVMValueRef fold_encode(const Fold *f, LLVMValueRef v)
{
    LLVMBuilderRef b = f->cg->builder;
    if (!dtype_is_float(f->dtype))
        return emit_integer_code(f->cg, f->dtype, v);
    return f->dtype == DTYPE_f64 ? convert_encode_f64(b, f->dtype, v)
                                 : convert_encode_f32(b, f->dtype, v);
}

static LLVMValueRef combine_floats(const Fold *f, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = f->cg->builder;
    if (f->kind == REDUCE_SUM)
        return allow_contraction(f->cg, LLVMBuildFAdd(b, x, y, ""));
    if (f->kind == REDUCE_PRODUCT)
        return LLVMBuildFMul(b, x, y, "");
    return build_binary(b, f->kind == REDUCE_MAX ? "llvm.maximumnum" : "llvm.minimumnum", x, y);
}

LLVMValueRef fold_combine(const Fold *f, LLVMValueRef x, LLVMValueRef y)
{
    LLVMBuilderRef b = f->cg->builder;
    bool is_signed = dtype_info[f->dtype].kind == DKIND_INT;
    if (dtype_is_float(f->dtype))
        return combine_floats(f, x, y);
    switch (f->kind) {
    case REDUCE_SUM: return LLVMBuildAdd(b, x, y, "");
    case REDUCE_PRODUCT: return LLVMBuildMul(b, x, y, "");
    case REDUCE_ANY: return LLVMBuildOr(b, x, y, "");
    case REDUCE_ALL: return LLVMBuildAnd(b, x, y, "");
    case REDUCE_MAX: return build_binary(b, is_signed ? "llvm.smax" : "llvm.umax", x, y);
    default: return build_binary(b, is_signed ? "llvm.smin" : "llvm.umin", x, y);
    }
}

/* ---- constants ---------------------------------------------------------- */

static LLVMValueRef real_constant(const Fold *f, double v)
{
    return LLVMConstReal(f->dtype == DTYPE_f64 ? f->cg->f64 : f->cg->f32, v);
}

LLVMValueRef fold_neutral(const Fold *f)
{
    if (!dtype_is_float(f->dtype))
        return fold_start(f);
    return real_constant(f, f->kind == REDUCE_SUM ? -0.0 : f->kind == REDUCE_PRODUCT ? 1 : NAN);
}

/* Returns the least or the greatest value of a type of integers, sign-extended. */
static uint64_t integer_bound(DType t, bool greatest)
{
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    uint64_t above = is_signed ? UINT64_C(1) << (dtype_bits(t) - 1) : 0;
    uint64_t most = is_signed ? above - 1 : UINT64_MAX >> (64 - dtype_bits(t));
    return greatest ? most : -above;
}

LLVMValueRef fold_start(const Fold *f)
{
    bool is_float = dtype_is_float(f->dtype), greatest = f->kind == REDUCE_MIN;
    LLVMTypeRef integer = reduce_bytes(f->dtype) == 8 ? f->cg->i64 : f->cg->i32;
    if (f->kind == REDUCE_SUM || f->kind == REDUCE_PRODUCT)
        return is_float ? real_constant(f, f->kind == REDUCE_PRODUCT)
                        : LLVMConstInt(integer, f->kind == REDUCE_PRODUCT, 0);
    if (!is_float)
        return LLVMConstInt(integer, integer_bound(f->dtype, greatest), 0);
    if (dtype_has_infinity(f->dtype))
        return real_constant(f, greatest ? INFINITY : -INFINITY);
    return real_constant(f, greatest ? dtype_max(f->dtype) : dtype_min(f->dtype));
}

/* ---- lanes and threads ---------------------------------------------------- */

static LLVMValueRef shuffle_word(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef v,
                                 LLVMValueRef lane)
{
    enum { FIRST_LANE = 0, LAST_LANE = 31 };
    uint32_t clamp = id == INTR_shuffle_up ? FIRST_LANE : LAST_LANE;
    LLVMValueRef args[] = {const_i32_of(cg, UINT32_MAX), v, lane, const_i32_of(cg, clamp)};
    return call_intrinsic(cg, id, op->loc, args, 4);
}

LLVMValueRef fold_shuffle(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef v,
                          LLVMValueRef lane)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef type = LLVMTypeOf(v), i32 = cg->i32, i64 = cg->i64;
    if (type != i64 && type != cg->f64)
        return build_bitcast(b, shuffle_word(cg, op, id, build_bitcast(b, v, i32), lane), type);
    v = build_bitcast(b, v, i64);
    LLVMValueRef low = shuffle_word(cg, op, id, LLVMBuildTrunc(b, v, i32, ""), lane);
    LLVMValueRef high = shuffle_word(cg, op, id, LLVMBuildTrunc(b, build_lshr(b, v, 32), i32, ""),
                                     lane);
    low = LLVMBuildZExt(b, low, i64, "");
    high = build_shl(b, LLVMBuildZExt(b, high, i64, ""), 32);
    return build_bitcast(b, build_or(b, high, low), type);
}

static IntrinsicId redux_of(const Fold *f)
{
    bool is_signed = dtype_info[f->dtype].kind == DKIND_INT;
    switch (f->kind) {
    case REDUCE_SUM: return INTR_redux_add;
    case REDUCE_ANY: return INTR_redux_or;
    case REDUCE_ALL: return INTR_redux_and;
    case REDUCE_MAX: return is_signed ? INTR_redux_smax : INTR_redux_umax;
    default: return is_signed ? INTR_redux_smin : INTR_redux_umin;
    }
}

LLVMValueRef fold_lanes(const Fold *f, LLVMValueRef v)
{
    LLVMValueRef args[] = {v, const_i32_of(f->cg, UINT32_MAX)};
    return call_intrinsic(f->cg, redux_of(f), f->op->loc, args, 2);
}
