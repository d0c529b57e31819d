/* Element-wise functions: the machine's approximations in f32, rounded to the
 * type. f16 and bf16 go through f32 too: PTX has some functions of their own for
 * them, but those miss by more than the rounding does. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/internal.h"

#include <math.h>

static const double log2_of_e = 0x1.71547652b82fep0;

static LLVMValueRef apply(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef *codes,
                          double scale)
{
    LLVMBuilderRef b = cg->builder;
    DType t = op->results[0]->type->dtype;
    LLVMValueRef x = convert_decode_f32(b, t, codes[0]);
    if (scale != 1)
        x = LLVMBuildFMul(b, x, const_real(x, scale), "");
    LLVMValueRef bits = build_bitcast(b, x, cg->i32);
    LLVMValueRef result = call_intrinsic(cg, id, op->loc, &bits, 1);
    return result ? convert_encode_f32(b, t, build_bitcast(b, result, cg->f32)) : NULL;
}

/* Applies a function to `scale` times the operand. */
#define FUNCTION(id, intrinsic, scale)                                        \
    static LLVMValueRef code_##id(Codegen *cg, const Op *op, LLVMValueRef *codes) \
    {                                                                         \
        return apply(cg, op, INTR_##intrinsic, codes, scale);                 \
    }                                                                         \
    bool emit_##id(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_##id); }

FUNCTION(exp2, exp2_f32, 1)
FUNCTION(exp, exp2_f32, log2_of_e)
FUNCTION(log2, log2_f32, 1)
FUNCTION(rcp, rcp_f32, 1)
FUNCTION(rsqrt, rsqrt_f32, 1)
FUNCTION(sqrt, sqrt_f32, 1)
FUNCTION(tanh, tanh_f32, 1)

/* ---- sine and cosine ------------------------------------------------------- */

static LLVMValueRef build_fma(LLVMBuilderRef b, LLVMValueRef x, LLVMValueRef y, LLVMValueRef z)
{
    LLVMTypeRef type = LLVMTypeOf(x);
    return build_overloaded(b, "llvm.fma", &type, 1, (LLVMValueRef[]){x, y, z}, 3);
}

/* Takes off turns, as sin.approx and cos.approx are accurate from -pi to pi: x - k * 2 pi, by
 * 2 pi in two parts (Cody and Waite). The sum with `to_integer` rounds x / (2 pi) to k. The
 * first difference is exact while |k| is below 2^21. Both parts are positive, so that -0, of which k
 * is 0, stays -0. */
static LLVMValueRef build_reduced(LLVMBuilderRef b, LLVMValueRef x)
{
    static const double turn = 0x1.921fb54442d18p2, to_integer = 0x1.8p23;
    float high = nextafterf((float)turn, 0), low = (float)(turn - (double)high);
    LLVMValueRef shift = const_real(x, to_integer);
    LLVMValueRef k = build_fma(b, x, const_real(x, 1 / turn), shift);
    k = LLVMBuildFSub(b, k, shift, "");
    LLVMValueRef r = build_fma(b, k, const_real(x, -(double)high), x);
    return build_fma(b, k, const_real(x, -(double)low), r);
}

static LLVMValueRef apply_reduced(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef *codes)
{
    LLVMBuilderRef b = cg->builder;
    DType t = op->results[0]->type->dtype;
    LLVMValueRef x = build_reduced(b, convert_decode_f32(b, t, codes[0]));
    LLVMValueRef bits = build_bitcast(b, x, cg->i32);
    LLVMValueRef result = call_intrinsic(cg, id, op->loc, &bits, 1);
    return result ? convert_encode_f32(b, t, build_bitcast(b, result, cg->f32)) : NULL;
}

static LLVMValueRef code_sin(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    return apply_reduced(cg, op, INTR_sin_f32, codes);
}

static LLVMValueRef code_cos(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    return apply_reduced(cg, op, INTR_cos_f32, codes);
}

bool emit_sin(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_sin); }
bool emit_cos(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_cos); }

/* ---- the error function ------------------------------------------------------ */

/* erf(x) is x * near(x^2) for |x| up to 1 and, with the sign of x, 1 - 2^(t * far(t)) beyond,
 * t the lesser of |x| and 4, from where on erf rounds to 1. The coefficients, of the highest
 * power first, are fitted at Chebyshev nodes; docs/language.md states the error, and
 * test/unit/test_elementwise.c holds it. */
static const float erf_near[] = {
    0x1.496984p-14f, -0x1.a3f6bep-11f, 0x1.5405a8p-8f, -0x1.b7f90cp-6f,
    0x1.ce2cf8p-4f, -0x1.81273ep-2f, 0x1.20dd74p+0f,
};
static const float erf_far[] = {
    0x1.3df748p-12f, -0x1.2cf672p-8f, 0x1.0d4cd8p-5f,
    -0x1.3685fap-3f, -0x1.d5ac92p-1f, -0x1.a0c7a2p+0f,
};

static LLVMValueRef build_polynomial(LLVMBuilderRef b, LLVMValueRef x, const float *coefficients,
                                     unsigned count)
{
    LLVMValueRef sum = const_real(x, (double)coefficients[0]);
    for (unsigned i = 1; i < count; i++)
        sum = build_fma(b, sum, x, const_real(x, (double)coefficients[i]));
    return sum;
}

#define POLYNOMIAL(b, x, table)                                               \
    build_polynomial(b, x, table, sizeof (table) / sizeof *(table))

/* The value for |x| = `size` above 1, without the sign. NULL after an error. */
static LLVMValueRef build_erf_far(Codegen *cg, const Op *op, LLVMValueRef size)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef t = build_binary(b, "llvm.minimumnum", size, const_real(size, 4));
    LLVMValueRef power = LLVMBuildFMul(b, t, POLYNOMIAL(b, t, erf_far), "");
    LLVMValueRef bits = build_bitcast(b, power, cg->i32);
    LLVMValueRef rest = call_intrinsic(cg, INTR_exp2_f32, op->loc, &bits, 1);
    return rest ? LLVMBuildFSub(b, const_real(size, 1), build_bitcast(b, rest, cg->f32), "") : NULL;
}

static LLVMValueRef code_erf(Codegen *cg, const Op *op, LLVMValueRef *codes)
{
    LLVMBuilderRef b = cg->builder;
    DType t = op->results[0]->type->dtype;
    LLVMValueRef x = convert_decode_f32(b, t, codes[0]), size = build_unary(b, "llvm.fabs", x);
    LLVMValueRef square = LLVMBuildFMul(b, x, x, "");
    LLVMValueRef near = POLYNOMIAL(b, square, erf_near);
    LLVMValueRef far = build_erf_far(cg, op, size);
    if (!far)
        return NULL;
    near = LLVMBuildFMul(b, x, near, "");
    far = build_binary(b, "llvm.copysign", far, x);
    LLVMValueRef is_far = LLVMBuildFCmp(b, LLVMRealOGT, size, const_real(x, 1), "");
    return convert_encode_f32(b, t, build_select(b, is_far, far, near));    /* NaN is near */
}

bool emit_erf(Codegen *cg, const Op *op) { return emit_slots(cg, op, code_erf); }
