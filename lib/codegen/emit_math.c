/* Element-wise functions: the machine's approximations in f32, rounded to the
 * type. f16 and bf16 go through f32 too: PTX has some functions of their own for
 * them, but those miss by more than the rounding does. */
#include "codegen/convert.h"
#include "codegen/convert_build.h"
#include "codegen/internal.h"

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
