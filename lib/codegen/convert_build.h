/* Short names for the LLVM instructions that casts and arithmetic are made of.
 * Types follow the builder's context. */
#ifndef TILUS_CODEGEN_CONVERT_BUILD_H
#define TILUS_CODEGEN_CONVERT_BUILD_H

#include <llvm-c/Core.h>
#include <stdint.h>
#include <string.h>

enum { F32_MANTISSA = 23, F32_BIAS = 127 };     /* of the format f32 */

static inline LLVMTypeRef type_i16(LLVMBuilderRef b)
{
    return LLVMInt16TypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_i32(LLVMBuilderRef b)
{
    return LLVMInt32TypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_i64(LLVMBuilderRef b)
{
    return LLVMInt64TypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_f16(LLVMBuilderRef b)
{
    return LLVMHalfTypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_bf16(LLVMBuilderRef b)
{
    return LLVMBFloatTypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_f32(LLVMBuilderRef b)
{
    return LLVMFloatTypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMTypeRef type_f64(LLVMBuilderRef b)
{
    return LLVMDoubleTypeInContext(LLVMGetBuilderContext(b));
}

static inline LLVMValueRef const_i32(LLVMBuilderRef b, uint32_t v)
{
    return LLVMConstInt(type_i32(b), v, 0);
}

/* `v` in the type of `like`, an integer or a float. */
static inline LLVMValueRef const_int(LLVMValueRef like, uint64_t v)
{
    return LLVMConstInt(LLVMTypeOf(like), v, 0);
}

static inline LLVMValueRef const_real(LLVMValueRef like, double v)
{
    return LLVMConstReal(LLVMTypeOf(like), v);
}

static inline LLVMValueRef build_bitcast(LLVMBuilderRef b, LLVMValueRef v, LLVMTypeRef to)
{
    return LLVMBuildBitCast(b, v, to, "");
}

static inline LLVMValueRef build_and(LLVMBuilderRef b, LLVMValueRef v, uint64_t mask)
{
    return LLVMBuildAnd(b, v, const_int(v, mask), "");
}

static inline LLVMValueRef build_or(LLVMBuilderRef b, LLVMValueRef v, LLVMValueRef w)
{
    return LLVMBuildOr(b, v, w, "");
}

static inline LLVMValueRef build_add(LLVMBuilderRef b, LLVMValueRef v, uint64_t addend)
{
    return LLVMBuildAdd(b, v, const_int(v, addend), "");
}

static inline LLVMValueRef build_shl(LLVMBuilderRef b, LLVMValueRef v, unsigned by)
{
    return by ? LLVMBuildShl(b, v, const_int(v, by), "") : v;
}

static inline LLVMValueRef build_lshr(LLVMBuilderRef b, LLVMValueRef v, unsigned by)
{
    return by ? LLVMBuildLShr(b, v, const_int(v, by), "") : v;
}

static inline LLVMValueRef build_select(LLVMBuilderRef b, LLVMValueRef when, LLVMValueRef then,
                                        LLVMValueRef otherwise)
{
    return LLVMBuildSelect(b, when, then, otherwise, "");
}

/* Compares with a constant, unsigned or by equality. */
static inline LLVMValueRef build_test(LLVMBuilderRef b, LLVMIntPredicate is, LLVMValueRef v,
                                      uint64_t bound)
{
    return LLVMBuildICmp(b, is, v, const_int(v, bound), "");
}

static inline LLVMValueRef build_is_nan(LLVMBuilderRef b, LLVMValueRef v)
{
    return LLVMBuildFCmp(b, LLVMRealUNO, v, v, "");
}

/* Calls the intrinsic `name`, overloaded on `overloads`. */
static inline LLVMValueRef build_overloaded(LLVMBuilderRef b, const char *name,
                                            LLVMTypeRef *overloads, unsigned overload_count,
                                            LLVMValueRef *args, unsigned arg_count)
{
    LLVMModuleRef m = LLVMGetGlobalParent(LLVMGetBasicBlockParent(LLVMGetInsertBlock(b)));
    unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
    LLVMTypeRef type = LLVMIntrinsicGetType(LLVMGetBuilderContext(b), id, overloads,
                                            overload_count);
    LLVMValueRef f = LLVMGetIntrinsicDeclaration(m, id, overloads, overload_count);
    return LLVMBuildCall2(b, type, f, args, arg_count, "");
}

/* name(v) and name(v, w), overloaded on the type of `v`. */
static inline LLVMValueRef build_unary(LLVMBuilderRef b, const char *name, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    return build_overloaded(b, name, &type, 1, &v, 1);
}

static inline LLVMValueRef build_binary(LLVMBuilderRef b, const char *name, LLVMValueRef v,
                                        LLVMValueRef w)
{
    LLVMTypeRef type = LLVMTypeOf(v);
    return build_overloaded(b, name, &type, 1, (LLVMValueRef[]){v, w}, 2);
}

#endif
