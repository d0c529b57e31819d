/* The NVPTX back end: target machine, bodies of @tilus.* functions,
 * optimization, PTX.
 *
 * LLVM's fatal errors end the process, so everything that it would refuse is
 * refused before it is called; other errors arrive at llvm_watch's handler, also
 * when the call that caused one reports success. */
#define _GNU_SOURCE
#include "codegen/internal.h"
#include "codegen/product.h"

#include <llvm-c/Support.h>
#include <llvm-c/Target.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

static const char triple[] = "nvptx64-nvidia-cuda";

/* ---- opening --------------------------------------------------------- */

/* Shared memory is addressed with 32 bits: half the address registers. The
 * option is one of the whole process and must precede any target machine. */
static void initialize(void)
{
    const char *const options[] = {"tilus", "--nvptx-short-ptr"};
    LLVMParseCommandLineOptions(2, options, "");
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
}

void nvptx_initialize(void)
{
    static once_flag once = ONCE_FLAG_INIT;
    call_once(&once, initialize);
}

/* Options of the process, too, which passes and the back end's own look at. */
void codegen_print_llvm_passes(bool before, bool after)
{
    const char *options[3] = {"tilus"};
    int count = 1;
    nvptx_initialize();
    if (before)
        options[count++] = "--print-before-all";
    if (after)
        options[count++] = "--print-after-all";
    LLVMParseCommandLineOptions(count, options, "");
}

static void set_layout(Codegen *cg)
{
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(cg->machine);
    LLVMSetTarget(cg->llvm, triple);
    LLVMSetModuleDataLayout(cg->llvm, layout);
    LLVMDisposeTargetData(layout);
}

bool nvptx_open(Codegen *cg, unsigned ptx)
{
    static const LLVMCodeGenOptLevel levels[] = {LLVMCodeGenLevelNone, LLVMCodeGenLevelLess,
                                                 LLVMCodeGenLevelDefault,
                                                 LLVMCodeGenLevelAggressive};
    char features[16], *why = NULL;
    LLVMTargetRef target;
    llvm_watch(cg);
    if (LLVMGetTargetFromTriple(triple, &target, &why)) {
        diag_error(cg->diag, (Loc){0}, "this LLVM has no NVPTX target: %s", why);
        LLVMDisposeMessage(why);
        return false;
    }
    snprintf(features, sizeof features, "+ptx%u", ptx);
    cg->machine = LLVMCreateTargetMachine(target, triple, cg->target->name, features,
                                          levels[llvm_machine_level(cg)], LLVMRelocDefault,
                                          LLVMCodeModelDefault);
    if (!cg->machine)
        return diag_error(cg->diag, (Loc){0}, "LLVM has no target machine for %s",
                          cg->target->name);
    set_layout(cg);
    return true;
}

/* ---- bodies ------------------------------------------------------------ */

enum { MOST_PARAMETERS = 16 };

static LLVMAttributeRef attribute(Codegen *cg, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    return LLVMCreateEnumAttribute(cg->context, kind, 0);
}

static void return_value(Codegen *cg, LLVMValueRef f, LLVMValueRef v)
{
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(f));
    LLVMBuilderRef b = cg->builder;
    if (LLVMGetTypeKind(type) == LLVMVoidTypeKind) {
        LLVMBuildRetVoid(b);
        return;
    }
    if (LLVMGetTypeKind(type) != LLVMStructTypeKind) {
        LLVMBuildRet(b, LLVMBuildBitCast(b, v, type, ""));
        return;
    }
    LLVMValueRef all = LLVMGetPoison(type);
    for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++) {
        LLVMValueRef word = LLVMBuildExtractValue(b, v, i, "");
        word = LLVMBuildBitCast(b, word, cg->i32, "");
        all = LLVMBuildInsertValue(b, all, word, i, "");
    }
    LLVMBuildRet(b, all);
}

/* Calls LLVM's intrinsic with the words cast to its parameter types. One that is
 * overloaded is so on its first parameter, a pointer. */
static void fill_nvvm(Codegen *cg, const IntrinsicInfo *info, LLVMValueRef f)
{
    LLVMTypeRef types[MOST_PARAMETERS];
    LLVMValueRef args[MOST_PARAMETERS];
    unsigned id = LLVMLookupIntrinsicID(info->text, strlen(info->text));
    unsigned count = LLVMCountParams(f);
    LLVMTypeRef pointer = count ? LLVMTypeOf(LLVMGetParam(f, 0)) : NULL;
    unsigned overloads = LLVMIntrinsicIsOverloaded(id) ? 1 : 0;
    LLVMTypeRef type = LLVMIntrinsicGetType(cg->context, id, &pointer, overloads);
    LLVMValueRef callee = LLVMGetIntrinsicDeclaration(cg->llvm, id, &pointer, overloads);
    LLVMGetParamTypes(type, types);
    for (unsigned i = 0; i < count; i++)
        args[i] = LLVMBuildBitCast(cg->builder, LLVMGetParam(f, i), types[i], "");
    LLVMValueRef call = LLVMBuildCall2(cg->builder, type, callee, args, count, "");
    if (info->convergent)
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(cg, "convergent"));
    return_value(cg, f, call);
}

/* Calls a function that is linked in when the driver loads the PTX. */
static void fill_call(Codegen *cg, const IntrinsicInfo *info, LLVMValueRef f)
{
    LLVMValueRef args[MOST_PARAMETERS];
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    LLVMValueRef callee = LLVMAddFunction(cg->llvm, info->text, type);
    LLVMGetParams(f, args);
    return_value(cg, f, LLVMBuildCall2(cg->builder, type, callee, args, LLVMCountParams(f), ""));
}

/* The dynamic shared memory of all kernels: its size is a launch parameter. */
static LLVMValueRef shared_memory(Codegen *cg)
{
    enum { ALIGN = 1024 };      /* what bulk copies and swizzles will want */
    LLVMTypeRef bytes = LLVMArrayType2(cg->i8, 0);
    LLVMValueRef v = LLVMAddGlobalInAddressSpace(cg->llvm, bytes, "tilus$shared", SPACE_SHARED);
    LLVMSetLinkage(v, LLVMExternalLinkage);
    LLVMSetAlignment(v, ALIGN);
    return v;
}

static void fill_shared(Codegen *cg, const IntrinsicInfo *info, LLVMValueRef f)
{
    (void)info;
    return_value(cg, f, shared_memory(cg));
}

/* NVPTX drops the ordering of atomicrmw: it is relaxed, of scope gpu. */
static void fill_atomic(Codegen *cg, const IntrinsicInfo *info, LLVMValueRef f)
{
    LLVMValueRef v = LLVMBuildAtomicRMW(cg->builder, info->atomic, LLVMGetParam(f, 0),
                                        LLVMGetParam(f, 1), LLVMAtomicOrderingMonotonic, 0);
    LLVMSetAlignment(v, 4);
    return_value(cg, f, v);
}

/* PTX text. BODY_ASM computes its result from its operands alone, so that calls
 * may be merged, moved and dropped; BODY_VOLATILE_ASM keeps its place among accesses. */
static void fill_asm(Codegen *cg, const IntrinsicInfo *info, LLVMValueRef f)
{
    enum { NO_MEMORY = 0 };
    bool is_volatile = info->body == BODY_VOLATILE_ASM;
    LLVMTypeRef type = LLVMGlobalGetValueType(f);
    LLVMValueRef args[MOST_PARAMETERS];
    LLVMGetParams(f, args);
    LLVMValueRef text = LLVMGetInlineAsm(type, info->text, strlen(info->text), info->constraints,
                                         strlen(info->constraints), is_volatile, 0,
                                         LLVMInlineAsmDialectATT, 0);
    LLVMValueRef call = LLVMBuildCall2(cg->builder, type, text, args, LLVMCountParams(f), "");
    unsigned memory = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
    if (!is_volatile)
        LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex,
                                 LLVMCreateEnumAttribute(cg->context, memory, NO_MEMORY));
    LLVMAddCallSiteAttribute(call, LLVMAttributeFunctionIndex, attribute(cg, "nounwind"));
    return_value(cg, f, call);
}

void nvptx_fill_intrinsics(Codegen *cg)
{
    static void (*const fill[])(Codegen *, const IntrinsicInfo *, LLVMValueRef) = {
        [BODY_NVVM] = fill_nvvm, [BODY_CALL] = fill_call, [BODY_SHARED] = fill_shared,
        [BODY_ATOMIC] = fill_atomic, [BODY_ASM] = fill_asm, [BODY_VOLATILE_ASM] = fill_asm};
    for (IntrinsicId id = 0; id < INTR_COUNT; id++) {
        const IntrinsicInfo *info = &intrinsic_info[id];
        LLVMValueRef f = cg->intrinsics[id];
        if (!f)
            continue;
        LLVMSetLinkage(f, LLVMInternalLinkage);
        LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex, attribute(cg, "alwaysinline"));
        LLVMBasicBlockRef entry = LLVMAppendBasicBlockInContext(cg->context, f, "");
        LLVMPositionBuilderAtEnd(cg->builder, entry);
        fill[info->body](cg, info, f);
    }
    product_fill(cg);
}

/* ---- optimization and printing ------------------------------------------- */

bool nvptx_optimize(Codegen *cg)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    bool ok = llvm_optimize(cg, cg->machine, options);
    LLVMDisposePassBuilderOptions(options);
    return ok;
}

/* The PTX in the buffer as a text; NULL when memory runs out. */
static char *copy_ptx(Codegen *cg, LLVMMemoryBufferRef buffer)
{
    char *text = strndup(LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
    if (!text || !cg->lines)
        return text;
    char *placed = lines_write(cg->diag, text);
    free(text);
    return placed;
}

char *nvptx_print(Codegen *cg)
{
    char *why = NULL, *text = NULL;
    LLVMMemoryBufferRef buffer = NULL;
    if (cg->lines)      /* for comments, from which lines_write has the frames */
        LLVMSetTargetMachineAsmVerbosity(cg->machine, 1);
    if (LLVMTargetMachineEmitToMemoryBuffer(cg->machine, cg->llvm, LLVMAssemblyFile, &why,
                                            &buffer)) {
        diag_error(cg->diag, (Loc){0}, "LLVM failed while writing PTX: %s", why);
        LLVMDisposeMessage(why);
        return NULL;
    }
    if (llvm_check(cg, "writing PTX"))
        text = copy_ptx(cg, buffer);
    LLVMDisposeMemoryBuffer(buffer);
    return text;
}
