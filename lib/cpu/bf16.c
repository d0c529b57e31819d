/* LLVM 22 computes bf16 in f32 where a processor has no instructions for it, and errs over NaNs
 * on AArch64:
 *
 *     fptrunc      drops its test for NaN where the operand is known not to be signaling; a
 *                  quiet NaN such as 0x7fff8000 then rounds up to -0
 *     maximumnum   widens the operands by a shift, which it takes for an instruction that
 *     minimumnum   quiets NaNs; fmaxnm and fminnm give NaN where an operand is signaling
 *
 * So they are computed here, in integers and in f32, and give what the interpreter gives. */
#include "cpu/bf16.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "codegen/convert_build.h"

enum { BF16_NAN = 0x7FC0, HALF = 0x7FFF };      /* HALF: just below half of a bf16's last bit */
static const uint32_t high_half = 0xFFFF0000;

/* ---- rounding -------------------------------------------------------------- */

/* Rounds an f32, ties to even. */
static LLVMValueRef round_float(LLVMBuilderRef b, LLVMValueRef value)
{
    LLVMValueRef bits = build_bitcast(b, value, type_i32(b));
    LLVMValueRef odd = build_and(b, build_lshr(b, bits, 16), 1);
    LLVMValueRef sum = LLVMBuildAdd(b, build_add(b, bits, HALF), odd, "");
    LLVMValueRef code = build_select(b, build_is_nan(b, value), const_int(bits, BF16_NAN),
                                     build_lshr(b, sum, 16));
    code = LLVMBuildTrunc(b, code, type_i16(b), "");
    return build_bitcast(b, code, type_bf16(b));
}

static LLVMValueRef round_vector(LLVMBuilderRef b, LLVMValueRef vector, LLVMTypeRef type)
{
    LLVMValueRef result = LLVMGetPoison(type);
    for (unsigned i = 0; i < LLVMGetVectorSize(type); i++) {
        LLVMValueRef at = const_i32(b, i);
        LLVMValueRef v = round_float(b, LLVMBuildExtractElement(b, vector, at, ""));
        result = LLVMBuildInsertElement(b, result, v, at, "");
    }
    return result;
}

static bool is_vector(LLVMTypeRef type)
{
    return LLVMGetTypeKind(type) == LLVMVectorTypeKind;
}

/* Returns the kind of a float or of a vector's elements. */
static LLVMTypeKind element_kind(LLVMTypeRef type)
{
    return LLVMGetTypeKind(is_vector(type) ? LLVMGetElementType(type) : type);
}

static bool rounds_to_bf16(LLVMValueRef i)
{
    return LLVMGetInstructionOpcode(i) == LLVMFPTrunc &&
           element_kind(LLVMTypeOf(i)) == LLVMBFloatTypeKind &&
           element_kind(LLVMTypeOf(LLVMGetOperand(i, 0))) == LLVMFloatTypeKind;
}

static void replace_rounding(LLVMBuilderRef b, LLVMValueRef i)
{
    LLVMTypeRef type = LLVMTypeOf(i);
    LLVMValueRef value = LLVMGetOperand(i, 0);
    LLVMPositionBuilderBefore(b, i);
    LLVMReplaceAllUsesWith(i, is_vector(type) ? round_vector(b, value, type)
                                              : round_float(b, value));
    LLVMInstructionEraseFromParent(i);
}

static void replace_roundings(LLVMBuilderRef b, LLVMValueRef f)
{
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block), next; i; i = next) {
            next = LLVMGetNextInstruction(i);
            if (rounds_to_bf16(i))
                replace_rounding(b, i);
        }
}

/* ---- maxima and minima ----------------------------------------------------- */

/* Widens the low or the high bf16 of a pair. */
static LLVMValueRef widen(LLVMBuilderRef b, LLVMValueRef pair, bool high)
{
    LLVMValueRef word = build_bitcast(b, pair, type_i32(b));
    return build_bitcast(b, high ? build_and(b, word, high_half) : build_shl(b, word, 16),
                         type_f32(b));
}

/* Gives `f` a body: the intrinsic `wide` of each half, in f32, which is exact. */
static void define_extreme(LLVMBuilderRef b, LLVMValueRef f, const char *wide)
{
    LLVMValueRef codes[2];
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(LLVMGetBuilderContext(b), f, ""));
    for (unsigned high = 0; high < 2; high++) {
        LLVMValueRef x = widen(b, LLVMGetParam(f, 0), high);
        LLVMValueRef y = widen(b, LLVMGetParam(f, 1), high);
        codes[high] = build_bitcast(b, build_binary(b, wide, x, y), type_i32(b));
    }
    LLVMValueRef v = build_or(b, build_lshr(b, codes[0], 16), build_and(b, codes[1], high_half));
    LLVMBuildRet(b, build_bitcast(b, v, LLVMTypeOf(LLVMGetParam(f, 0))));
}

static void replace_extreme(LLVMBuilderRef b, LLVMModuleRef m, const char *name,
                            const char *wide)
{
    LLVMValueRef intrinsic = LLVMGetNamedFunction(m, name);
    if (!intrinsic)
        return;
    LLVMValueRef f = LLVMAddFunction(m, "", LLVMGlobalGetValueType(intrinsic));
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMReplaceAllUsesWith(intrinsic, f);
    LLVMDeleteFunction(intrinsic);
    define_extreme(b, f, wide);
}

void bf16_legalize(LLVMModuleRef m)
{
    LLVMBuilderRef b = LLVMCreateBuilderInContext(LLVMGetModuleContext(m));
    for (LLVMValueRef f = LLVMGetFirstFunction(m); f; f = LLVMGetNextFunction(f))
        replace_roundings(b, f);
    replace_extreme(b, m, "llvm.maximumnum.v2bf16", "llvm.maximumnum");
    replace_extreme(b, m, "llvm.minimumnum.v2bf16", "llvm.minimumnum");
    LLVMDisposeBuilder(b);
}
