/* Retargeting: what NVPTX means to a module becomes what this machine has.
 *
 *     kernel         a function that the C calling convention calls
 *     @tilus.x       a thunk: parameters into an array, helper, results out of one
 *     op's place     a store to the running thread, before whatever may fault
 *     load, store    checked before, if asked for (instrument.c)
 *     entry          loads the arguments from an array and calls the program
 *
 * Address spaces need nothing: this machine's pointers are all alike. */
#define _GNU_SOURCE
#include "cpu/host.h"

#include "codegen/product.h"
#include "cpu/bf16.h"
#include "cpu/instrument.h"
#include "cpu/jit.h"
#include "cpu/machine.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* Names that no program can have, as its text has no '$' in names. */
static const char entry_name[] = "tilus$entry", kernel_name[] = "tilus$kernel";

enum { MOST_WORDS = 16 };       /* of a @tilus.* function's parameters, or results */

static LLVMTypeRef words_type(Codegen *cg, unsigned count)
{
    return LLVMArrayType2(cg->i64, count ? count : 1);
}

/* The address of a function or datum of this process. */
static LLVMValueRef host_pointer(Codegen *cg, uintptr_t address)
{
    return LLVMConstIntToPtr(LLVMConstInt(cg->i64, address, 0), cg->any_ptr);
}

static LLVMValueRef word_place(Codegen *cg, LLVMValueRef words, unsigned i)
{
    LLVMValueRef at = const_i64_of(cg, i);
    return LLVMBuildGEP2(cg->builder, cg->i64, words, &at, 1, "");
}

static void store_word(Codegen *cg, LLVMValueRef words, unsigned i, LLVMValueRef v)
{
    LLVMValueRef word = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMPointerTypeKind
                            ? LLVMBuildPtrToInt(cg->builder, v, cg->i64, "")
                            : LLVMBuildZExtOrBitCast(cg->builder, v, cg->i64, "");
    LLVMBuildStore(cg->builder, word, word_place(cg, words, i));
}

static LLVMValueRef load_word(Codegen *cg, LLVMValueRef words, unsigned i, LLVMTypeRef type)
{
    LLVMValueRef v = LLVMBuildLoad2(cg->builder, cg->i64, word_place(cg, words, i), "");
    return LLVMGetTypeKind(type) == LLVMPointerTypeKind
               ? LLVMBuildIntToPtr(cg->builder, v, type, "")
               : LLVMBuildTruncOrBitCast(cg->builder, v, type, "");
}

/* ---- thunks -------------------------------------------------------------- */

static void return_words(Codegen *cg, LLVMTypeRef type, LLVMValueRef words)
{
    LLVMBuilderRef b = cg->builder;
    if (LLVMGetTypeKind(type) == LLVMVoidTypeKind) {
        LLVMBuildRetVoid(b);
    } else if (LLVMGetTypeKind(type) == LLVMStructTypeKind) {
        LLVMValueRef all = LLVMGetPoison(type);
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++) {
            LLVMTypeRef one = LLVMStructGetTypeAtIndex(type, i);
            all = LLVMBuildInsertValue(b, all, load_word(cg, words, i, one), i, "");
        }
        LLVMBuildRet(b, all);
    } else {
        LLVMBuildRet(b, load_word(cg, words, 0, type));
    }
}

static void add_attribute(Codegen *cg, LLVMValueRef f, const char *name)
{
    unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(cg->context, kind, 0));
}

/* Not inlined: programs have many calls and few thunks. */
static void fill_thunk(Codegen *cg, LLVMValueRef f, Helper *helper)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(f));
    LLVMTypeRef pointers[] = {cg->any_ptr, cg->any_ptr};
    LLVMTypeRef callee = LLVMFunctionType(LLVMVoidTypeInContext(cg->context), pointers, 2, 0);
    unsigned count = LLVMCountParams(f);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    add_attribute(cg, f, "noinline");
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cg->context, f, ""));
    LLVMValueRef args[] = {LLVMBuildAlloca(b, words_type(cg, count), ""),
                           LLVMBuildAlloca(b, words_type(cg, MOST_WORDS), "")};
    for (unsigned i = 0; i < count; i++)
        store_word(cg, args[0], i, LLVMGetParam(f, i));
    LLVMBuildCall2(b, callee, host_pointer(cg, (uintptr_t)helper), args, 2, "");
    return_words(cg, type, args[1]);
}

/* The functions of wgmma take, and give, more words than a thunk has room for. */
static void fill_product(Codegen *cg, const ProductFunction *p)
{
    LLVMBuilderRef b = cg->builder;
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(p->function));
    LLVMTypeRef types[] = {cg->any_ptr, cg->any_ptr, cg->i32};
    LLVMTypeRef callee = LLVMFunctionType(LLVMVoidTypeInContext(cg->context), types, 3, 0);
    unsigned count = LLVMCountParams(p->function);
    LLVMSetLinkage(p->function, LLVMInternalLinkage);
    add_attribute(cg, p->function, "noinline");
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cg->context, p->function, ""));
    LLVMValueRef args[] = {LLVMBuildAlloca(b, words_type(cg, count), ""),
                           LLVMBuildAlloca(b, words_type(cg, p->form.words), ""),
                           const_i32_of(cg, p->form.words)};
    for (unsigned i = 0; i < count; i++)
        store_word(cg, args[0], i, LLVMGetParam(p->function, i));
    LLVMBuildCall2(b, callee, host_pointer(cg, (uintptr_t)cpu_product), args, 3, "");
    return_words(cg, type, args[1]);
}

static void fill_intrinsics(Codegen *cg)
{
    for (IntrinsicId id = 0; id < INTR_COUNT; id++)
        if (cg->intrinsics[id])
            fill_thunk(cg, cg->intrinsics[id], cpu_helpers[id]);
    for (const ProductFunction *p = cg->products; p; p = p->next)
        fill_product(cg, p);
}

/* ---- fma of 16-bit floats ------------------------------------------------ */

/* LLVM computes it in f32 and rounds again, which is not always right. Of pairs, as
 * code generation asks for it. */
static uint64_t fma_pair(DType t, const uint64_t *words)
{
    uint64_t pair = 0;
    for (unsigned shift = 0; shift < 32; shift += 16)
        pair |= dtype_fma(t, words[0] >> shift & 0xFFFF, words[1] >> shift & 0xFFFF,
                          words[2] >> shift & 0xFFFF) << shift;
    return pair;
}

static void fma_f16(const uint64_t *args, uint64_t *results)
{
    results[0] = fma_pair(DTYPE_f16, args);
}

static void fma_bf16(const uint64_t *args, uint64_t *results)
{
    results[0] = fma_pair(DTYPE_bf16, args);
}

/* Replaces the intrinsic called `name`, if the module has it. */
static void replace_fma(Codegen *cg, const char *name, Helper *helper)
{
    enum { OPERANDS = 3 };
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef intrinsic = LLVMGetNamedFunction(cg->llvm, name), words[OPERANDS];
    if (!intrinsic)
        return;
    LLVMTypeRef type = LLVMGlobalGetValueType(intrinsic);
    LLVMTypeRef word_types[OPERANDS] = {cg->i32, cg->i32, cg->i32};
    LLVMTypeRef word_type = LLVMFunctionType(cg->i32, word_types, OPERANDS, 0);
    LLVMValueRef thunk = LLVMAddFunction(cg->llvm, "", word_type);
    fill_thunk(cg, thunk, helper);
    LLVMValueRef f = LLVMAddFunction(cg->llvm, "", type);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMPositionBuilderAtEnd(b, LLVMAppendBasicBlockInContext(cg->context, f, ""));
    for (unsigned i = 0; i < OPERANDS; i++)
        words[i] = LLVMBuildBitCast(b, LLVMGetParam(f, i), cg->i32, "");
    LLVMValueRef pair = LLVMBuildCall2(b, word_type, thunk, words, OPERANDS, "");
    LLVMBuildRet(b, LLVMBuildBitCast(b, pair, LLVMGetReturnType(type), ""));
    LLVMReplaceAllUsesWith(intrinsic, f);
    LLVMDeleteFunction(intrinsic);
}

/* ---- places -------------------------------------------------------------- */

static bool may_fault(LLVMValueRef instruction)
{
    LLVMOpcode code = LLVMGetInstructionOpcode(instruction);
    return code == LLVMLoad || code == LLVMStore || code == LLVMCall || code == LLVMUDiv ||
           code == LLVMSDiv || code == LLVMURem || code == LLVMSRem ||
           code == LLVMAtomicRMW || code == LLVMRet;
}

static Place instruction_place(LLVMValueRef instruction)
{
    LLVMMetadataRef location = LLVMInstructionGetDebugLoc(instruction);
    return location ? place_of(lines_location(location)) : 0;
}

/* Before the first instruction of a block that may fault, and where the place
 * changes. Volatile: it keeps its order with what a signal may end. */
static void mark_block(Codegen *cg, LLVMBasicBlockRef block, LLVMValueRef slot)
{
    Place last = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
        Place place = may_fault(i) && i != slot ? instruction_place(i) : 0;
        if (!place || place == last)
            continue;
        LLVMPositionBuilderBefore(cg->builder, i);
        LLVMValueRef v = LLVMConstInt(cg->i64, place, 0);
        LLVMSetVolatile(LLVMBuildStore(cg->builder, v, slot), 1);
        last = place;
    }
}

static void mark_places(Codegen *cg, LLVMValueRef f)
{
    LLVMBasicBlockRef first = LLVMGetEntryBasicBlock(f);
    LLVMTypeRef type = LLVMFunctionType(cg->any_ptr, NULL, 0, 0);
    LLVMPositionBuilderBefore(cg->builder, LLVMGetFirstInstruction(first));
    LLVMValueRef callee = host_pointer(cg, (uintptr_t)thread_begins);
    LLVMValueRef slot = LLVMBuildCall2(cg->builder, type, callee, NULL, 0, "");
    for (LLVMBasicBlockRef b = first; b; b = LLVMGetNextBasicBlock(b))
        mark_block(cg, b, slot);
}

/* ---- the program --------------------------------------------------------- */

/* Renames the program, which may be called like a routine that compiled code calls (memcpy).
 * Large frames touch their pages in order, so that none steps over a guard. */
static void adopt_kernel(Codegen *cg, LLVMValueRef f)
{
    LLVMSetValueName2(f, kernel_name, sizeof kernel_name - 1);
    static const char key[] = "probe-stack", value[] = "inline-asm";
    unsigned byval = LLVMGetEnumAttributeKindForName("byval", strlen("byval"));
    for (unsigned i = 0; i < LLVMCountParams(f); i++)       /* of tensor maps */
        LLVMRemoveEnumAttributeAtIndex(f, i + 1, byval);
    LLVMSetFunctionCallConv(f, LLVMCCallConv);
    LLVMSetLinkage(f, LLVMInternalLinkage);
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateStringAttribute(cg->context, key, sizeof key - 1, value,
                                                      sizeof value - 1));
}

static void build_entry(Codegen *cg, LLVMValueRef kernel)
{
    LLVMTypeRef type = LLVMGlobalGetValueType(kernel);
    LLVMTypeRef none = LLVMVoidTypeInContext(cg->context);
    LLVMValueRef entry = LLVMAddFunction(cg->llvm, entry_name,
                                         LLVMFunctionType(none, &cg->any_ptr, 1, 0));
    unsigned count = LLVMCountParams(kernel);
    LLVMValueRef *args = arena_array(&cg->module->scratch, LLVMValueRef, count);
    LLVMBasicBlockRef block = LLVMAppendBasicBlockInContext(cg->context, entry, "");
    LLVMPositionBuilderAtEnd(cg->builder, block);
    for (unsigned i = 0; i < count; i++)
        args[i] = load_word(cg, LLVMGetParam(entry, 0), i,
                            LLVMTypeOf(LLVMGetParam(kernel, i)));
    LLVMBuildCall2(cg->builder, type, kernel, args, count, "");
    LLVMBuildRetVoid(cg->builder);
}

static void retarget(Codegen *cg, LLVMTargetMachineRef machine, const Program *p,
                     bool check_races)
{
    char *triple = LLVMGetTargetMachineTriple(machine);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(machine);
    LLVMSetTarget(cg->llvm, triple);
    LLVMSetModuleDataLayout(cg->llvm, layout);
    LLVMDisposeTargetData(layout);
    LLVMDisposeMessage(triple);
    LLVMValueRef kernel = LLVMGetNamedFunction(cg->llvm, p->name);
    mark_places(cg, kernel);
    if (check_races)
        instrument_accesses(cg, kernel);
    adopt_kernel(cg, kernel);
    fill_intrinsics(cg);
    replace_fma(cg, "llvm.fma.v2f16", fma_f16);
    replace_fma(cg, "llvm.fma.v2bf16", fma_bf16);
    bf16_legalize(cg->llvm);
    build_entry(cg, kernel);
    LLVMStripModuleDebugInfo(cg->llvm);
}

static bool optimize(Codegen *cg, LLVMTargetMachineRef machine)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMPassBuilderOptionsSetLoopVectorization(options, 0);
    LLVMPassBuilderOptionsSetSLPVectorization(options, 0);
    LLVMPassBuilderOptionsSetLoopUnrolling(options, 0);
    bool ok = llvm_optimize(cg, machine, options);
    LLVMDisposePassBuilderOptions(options);
    return ok;
}

HostCode *host_compile(Codegen *cg, const tilus_cpu_options *options, Program *p,
                       void (**entry)(const uint64_t *args))
{
    uintptr_t address;
    cg->opt_level = options->opt_level;
    llvm_watch(cg);
    lines_open(cg, LINES_NUMBERED);
    LLVMTargetMachineRef machine = jit_machine(cg, cg->opt_level);
    if (!machine)
        return NULL;
    cg->machine = machine;
    if (!codegen_lower(cg, options->cpu, p))
        return NULL;
    retarget(cg, machine, p, options->check_races);
    if (!optimize(cg, machine))
        return NULL;
    HostCode *code = jit_load(cg, llvm_machine_level(cg), entry_name, &address);
    if (code)
        *entry = (void (*)(const uint64_t *))address;
    return code;
}

void host_free(HostCode *code)
{
    jit_unload(code);
}
