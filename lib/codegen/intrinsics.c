/* The table of @tilus.* functions, and calls of them. */
#include "codegen/internal.h"

#include <string.h>

const IntrinsicInfo intrinsic_info[INTR_COUNT] = {
#define NVVM(name) .body = BODY_NVVM, .text = name
#define CALL(name) .body = BODY_CALL, .text = name
#define SHARED() .body = BODY_SHARED
#define ATOMIC(op) .body = BODY_ATOMIC, .atomic = LLVMAtomicRMWBinOp##op
#define ASM(ptx, operands) .body = BODY_ASM, .text = ptx, .constraints = operands
#define VOLATILE_ASM(ptx, operands) .body = BODY_VOLATILE_ASM, .text = ptx, .constraints = operands
#define INTRINSIC(id, name, signature, sm, ptx, convergent, ...)              \
    [INTR_##id] = {name, signature, sm, ptx, convergent, __VA_ARGS__},
#include "codegen/intrinsics.def"
#undef NVVM
#undef CALL
#undef SHARED
#undef ATOMIC
#undef ASM
#undef VOLATILE_ASM
};

static LLVMTypeRef letter_type(Codegen *cg, char letter)
{
    return letter == 'g'   ? cg->global_ptr
           : letter == 's' ? cg->shared_ptr
           : letter == 'c' ? cg->cluster_ptr
           : letter == 'p' ? cg->any_ptr
           : letter == 'b' ? cg->i1
           : letter == 'h' ? cg->i16
           : letter == 'l' ? cg->i64
                           : cg->i32;
}

/* The function type that a signature spells. */
static LLVMTypeRef signature_type(Codegen *cg, const char *signature)
{
    enum { MOST = 16 };
    LLVMTypeRef results[MOST], parameters[MOST];
    unsigned result_count = 0, parameter_count = 0;
    const char *s = signature;
    for (; *s != ':'; s++)
        results[result_count++] = letter_type(cg, *s);
    for (s++; *s; s++)
        parameters[parameter_count++] = letter_type(cg, *s);
    LLVMTypeRef result = result_count == 0   ? LLVMVoidTypeInContext(cg->context)
                         : result_count == 1 ? results[0]
                                             : LLVMStructTypeInContext(cg->context, results,
                                                                       result_count, 0);
    return LLVMFunctionType(result, parameters, parameter_count, 0);
}

static LLVMAttributeRef attribute(Codegen *cg, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMCreateEnumAttribute(cg->context, kind, 0);
}

static LLVMValueRef declare(Codegen *cg, IntrinsicId id)
{
    const IntrinsicInfo *info = &intrinsic_info[id];
    LLVMValueRef f = LLVMAddFunction(cg->llvm, info->name, signature_type(cg, info->signature));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, attribute(cg, "nounwind"));
    if (info->convergent)
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, attribute(cg, "convergent"));
    return f;
}

/* Reports a function that the target lacks, without the prefix of its name. */
static void report_target(Codegen *cg, Loc at, const IntrinsicInfo *info)
{
    diag_error(cg->diag, at, "%s needs sm_%u or later for %s, the target is %s",
               cg->op ? op_info[cg->op->code].name : "the program", info->sm,
               info->name + strlen("tilus."), cg->target->name);
}

LLVMValueRef call_intrinsic(Codegen *cg, IntrinsicId id, Loc at, LLVMValueRef *args,
                            unsigned count)
{
    const IntrinsicInfo *info = &intrinsic_info[id];
    if (cg->target->sm < info->sm) {
        report_target(cg, at, info);
        return NULL;
    }
    if (!cg->intrinsics[id])
        cg->intrinsics[id] = declare(cg, id);
    LLVMValueRef f = cg->intrinsics[id];
    return LLVMBuildCall2(cg->builder, LLVMGlobalGetValueType(f), f, args, count, "");
}
