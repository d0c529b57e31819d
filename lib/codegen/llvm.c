/* LLVM's part of every back end: its errors, and its optimizer. */
#include "codegen/internal.h"

#include <llvm-c/Analysis.h>
#include <stdlib.h>
#include <string.h>

/* The text is malloc'ed: this runs below LLVM's frames, which an arena's jump must
 * not cross. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *data)
{
    Codegen *cg = data;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || cg->failure)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    size_t size = strlen(text) + 1;
    cg->failure = malloc(size);
    if (cg->failure)
        memcpy(cg->failure, text, size);
    cg->failed = true;
    LLVMDisposeMessage(text);
}

void llvm_watch(Codegen *cg)
{
    LLVMContextSetDiagnosticHandler(cg->context, on_diagnostic, cg);
}

bool llvm_check(Codegen *cg, const char *doing)
{
    if (!cg->failed)
        return true;
    cg->failed = false;
    return diag_error(cg->diag, (Loc){0}, "LLVM failed while %s: %s", doing,
                      cg->failure ? cg->failure : "out of memory");
}

bool llvm_succeeded(Codegen *cg, const char *doing, LLVMErrorRef error)
{
    if (!error)
        return true;
    char *why = LLVMGetErrorMessage(error);
    diag_error(cg->diag, (Loc){0}, "LLVM failed while %s: %s", doing, why);
    LLVMDisposeErrorMessage(why);
    return false;
}

static bool verify(Codegen *cg)
{
    char *why = NULL;
    bool broken = LLVMVerifyModule(cg->llvm, LLVMReturnStatusAction, &why);
    if (broken)
        diag_error(cg->diag, (Loc){0}, "internal error: the LLVM module is broken: %s", why);
    LLVMDisposeMessage(why);
    return !broken;
}

/* ---- large functions ------------------------------------------------- */

int64_t llvm_count_instructions(LLVMValueRef f)
{
    int64_t count = 0;
    for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
        for (LLVMValueRef i = LLVMGetFirstInstruction(b); i; i = LLVMGetNextInstruction(i))
            count += LLVMGetInstructionOpcode(i) != LLVMExtractValue;
    return count;
}

static unsigned attribute_kind(const char *name)
{
    return LLVMGetEnumAttributeKindForName(name, strlen(name));
}

static void add_attribute(Codegen *cg, LLVMValueRef f, const char *name)
{
    LLVMAddAttributeAtIndex(f, LLVMAttributeFunctionIndex,
                            LLVMCreateEnumAttribute(cg->context, attribute_kind(name), 0));
}

/* Adds LLVM's `optnone`, which keeps passes out of this function alone; the verifier wants
 * `noinline` beside it. */
void llvm_mark_large(Codegen *cg, LLVMValueRef f)
{
    cg->large = true;
    add_attribute(cg, f, "optnone");
    add_attribute(cg, f, "noinline");
}

/* Code generation has analyses that run in spite of `optnone`, in quadratic time and deep
 * recursion (IVUsers), so that one large function, or one with long chains, decides for its
 * module. */
unsigned llvm_machine_level(const Codegen *cg)
{
    return cg->large || cg->chained ? 0 : cg->opt_level;
}

/* Runs passes that take linear time on the functions marked as large, which lose their mark
 * meanwhile: it would keep these passes out, too. */
static LLVMErrorRef optimize_large(Codegen *cg, LLVMTargetMachineRef machine,
                                   LLVMPassBuilderOptionsRef options)
{
    unsigned mark = attribute_kind("optnone");
    LLVMErrorRef error = NULL;
    for (LLVMValueRef f = LLVMGetFirstFunction(cg->llvm); f && !error; f = LLVMGetNextFunction(f)) {
        if (!LLVMGetEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, mark))
            continue;
        LLVMRemoveEnumAttributeAtIndex(f, LLVMAttributeFunctionIndex, mark);
        error = LLVMRunPassesOnFunction(f, "sroa,early-cse,simplifycfg,adce", machine, options);
        add_attribute(cg, f, "optnone");
    }
    return error;
}

/* ---- optimization ------------------------------------------------------ */

bool llvm_optimize(Codegen *cg, LLVMTargetMachineRef machine, LLVMPassBuilderOptionsRef options)
{
    char pipeline[] = "default<O?>";
    *strchr(pipeline, '?') = (char)('0' + cg->opt_level);
    if (!verify(cg))
        return false;
    LLVMErrorRef error = LLVMRunPasses(cg->llvm, pipeline, machine, options);
    if (!error)
        error = optimize_large(cg, machine, options);
    if (!error && !llvm_machine_level(cg))
        llvm_split_blocks(cg);
    return llvm_succeeded(cg, "optimizing", error) && llvm_check(cg, "optimizing") &&
           verify(cg);
}
