/* Cast plans as LLVM IR: each operation becomes one PTX instruction. prmt and
 * lop3 are @tilus.* functions, and so are conversions of 8-bit floats; the rest
 * is plain IR on i32, <2 x half>, <2 x bfloat> and float. Words of at most
 * CAST_ELEMENTS_MAX elements are planned at a time. */
#include "codegen/cast.h"

#include "codegen/convert_build.h"

/* State of a plan's words while it is emitted. */
typedef struct Emission {
    Codegen *cg;
    Loc at;
    const CastPlan *plan;
    LLVMValueRef *value;        /* of each operation, i32 */
    LLVMValueRef *in;           /* the source's words */
} Emission;

/* An operand in the LLVM type that an operation computes in. */
static LLVMValueRef operand(Emission *e, const CastOp *op, unsigned i, LLVMTypeRef type)
{
    return build_bitcast(e->cg->builder, e->value[op->in[i]], type);
}

static LLVMValueRef word_call(Emission *e, IntrinsicId id, const CastOp *op, unsigned count)
{
    LLVMValueRef args[4];
    for (unsigned i = 0; i < count; i++)
        args[i] = e->value[op->in[i]];
    if (op->code == CAST_lop3)
        args[count++] = const_i32_of(e->cg, op->imm);
    return call_intrinsic(e->cg, id, e->at, args, count);
}

static LLVMValueRef word_funnel(Emission *e, const CastOp *op)
{
    LLVMTypeRef type = e->cg->i32;
    LLVMValueRef args[] = {e->value[op->in[1]], e->value[op->in[0]],
                           const_i32_of(e->cg, op->imm)};
    return build_overloaded(e->cg->builder, "llvm.fshr", &type, 1, args, 3);
}

static LLVMValueRef word_binary(Emission *e, const CastOp *op, LLVMOpcode code,
                                LLVMTypeRef type)
{
    return LLVMBuildBinOp(e->cg->builder, code, operand(e, op, 0, type),
                          operand(e, op, 1, type), "");
}

static LLVMValueRef word_extreme(Emission *e, const CastOp *op, const char *name,
                                 LLVMTypeRef type)
{
    return build_binary(e->cg->builder, name, operand(e, op, 0, type),
                        operand(e, op, 1, type));
}

static LLVMValueRef word_fma(Emission *e, const CastOp *op, LLVMTypeRef type)
{
    LLVMValueRef args[] = {operand(e, op, 0, type), operand(e, op, 1, type),
                           operand(e, op, 2, type)};
    return build_overloaded(e->cg->builder, "llvm.fma", &type, 1, args, 3);
}

static LLVMValueRef word_narrow(Emission *e, const CastOp *op)
{
    LLVMBuilderRef b = e->cg->builder;
    LLVMValueRef pair = LLVMGetPoison(LLVMVectorType(e->cg->f32, 2));
    for (unsigned i = 0; i < 2; i++)
        pair = LLVMBuildInsertElement(b, pair, operand(e, op, i, e->cg->f32),
                                      const_i32_of(e->cg, i), "");
    return LLVMBuildFPTrunc(b, pair, LLVMVectorType(e->cg->f16, 2), "");
}

static LLVMValueRef word_widen(Emission *e, const CastOp *op)
{
    LLVMBuilderRef b = e->cg->builder;
    LLVMValueRef halves = operand(e, op, 0, LLVMVectorType(e->cg->f16, 2));
    LLVMValueRef low = LLVMBuildExtractElement(b, halves, const_i32_of(e->cg, 0), "");
    return LLVMBuildFPExt(b, low, e->cg->f32, "");
}

static LLVMValueRef emit_plan_op(Emission *e, const CastOp *op)
{
    Codegen *cg = e->cg;
    LLVMTypeRef f16 = LLVMVectorType(cg->f16, 2), bf16 = LLVMVectorType(cg->bf16, 2);
    switch (op->code) {
    case CAST_input: return e->in[op->imm];
    case CAST_constant: return const_i32_of(cg, op->imm);
    case CAST_prmt: return word_call(e, INTR_prmt, op, 3);
    case CAST_lop3: return word_call(e, INTR_lop3, op, 3);
    case CAST_shl: return build_shl(cg->builder, e->value[op->in[0]], op->imm);
    case CAST_shr: return build_lshr(cg->builder, e->value[op->in[0]], op->imm);
    case CAST_shf: return word_funnel(e, op);
    case CAST_add: return word_binary(e, op, LLVMAdd, cg->i32);
    case CAST_mad: return word_call(e, INTR_mad, op, 3);
    case CAST_sub: return word_binary(e, op, LLVMSub, cg->i32);
    case CAST_f16_add: return word_binary(e, op, LLVMFAdd, f16);
    case CAST_f16_sub: return word_binary(e, op, LLVMFSub, f16);
    case CAST_f16_mul: return word_binary(e, op, LLVMFMul, f16);
    case CAST_f16_fma: return word_fma(e, op, f16);
    case CAST_f16_min: return word_extreme(e, op, "llvm.minimumnum", f16);
    case CAST_f16_max: return word_extreme(e, op, "llvm.maximumnum", f16);
    case CAST_f16_min_nan: return word_extreme(e, op, "llvm.minimum", f16);
    case CAST_f16_max_nan: return word_extreme(e, op, "llvm.maximum", f16);
    case CAST_bf16_add: return word_binary(e, op, LLVMFAdd, bf16);
    case CAST_bf16_sub: return word_binary(e, op, LLVMFSub, bf16);
    case CAST_bf16_mul: return word_binary(e, op, LLVMFMul, bf16);
    case CAST_bf16_fma: return word_fma(e, op, bf16);
    case CAST_bf16_min: return word_extreme(e, op, "llvm.minimumnum", bf16);
    case CAST_bf16_min_nan: return word_extreme(e, op, "llvm.minimum", bf16);
    case CAST_bf16_max_nan: return word_extreme(e, op, "llvm.maximum", bf16);
    case CAST_bf16_max: return word_extreme(e, op, "llvm.maximumnum", bf16);
    case CAST_f32_add: return word_binary(e, op, LLVMFAdd, cg->f32);
    case CAST_f32_sub: return word_binary(e, op, LLVMFSub, cg->f32);
    case CAST_f32_mul: return word_binary(e, op, LLVMFMul, cg->f32);
    case CAST_f32_fma: return word_fma(e, op, cg->f32);
    case CAST_f32_min: return word_extreme(e, op, "llvm.minimumnum", cg->f32);
    case CAST_f32_min_nan: return word_extreme(e, op, "llvm.minimum", cg->f32);
    case CAST_f32_max_nan: return word_extreme(e, op, "llvm.maximum", cg->f32);
    case CAST_widen_f16: return word_widen(e, op);
    case CAST_f32_max: return word_extreme(e, op, "llvm.maximumnum", cg->f32);
    case CAST_narrow_f16: return word_narrow(e, op);
    case CAST_from_e4m3: return word_call(e, INTR_from_e4m3, op, 1);
    case CAST_pair_e4m3: return word_call(e, INTR_pair_e4m3, op, 3);
    case CAST_to_e4m3: return word_call(e, INTR_to_e4m3, op, 1);
    case CAST_to_e5m2: return word_call(e, INTR_to_e5m2, op, 1);
    case CAST_OP_COUNT: break;
    }
    return NULL;
}

bool emit_cast_plan(Codegen *cg, Loc at, const CastPlan *plan, LLVMValueRef *in,
                    LLVMValueRef *out)
{
    LLVMValueRef *values = arena_array(&cg->module->scratch, LLVMValueRef, plan->count);
    Emission e = {cg, at, plan, values, in};
    for (uint32_t i = 0; i < plan->count; i++) {
        LLVMValueRef v = emit_plan_op(&e, &plan->ops[i]);
        if (!v)
            return false;
        e.value[i] = build_bitcast(cg->builder, v, cg->i32);
    }
    for (unsigned i = 0; i < plan->out_words; i++)
        out[i] = e.value[plan->out[i]];
    return true;
}
