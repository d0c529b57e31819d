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

bool llvm_optimize(Codegen *cg, LLVMTargetMachineRef machine, unsigned opt_level,
                   LLVMPassBuilderOptionsRef options)
{
    char pipeline[] = "default<O?>";
    *strchr(pipeline, '?') = (char)('0' + opt_level);
    if (!verify(cg))
        return false;
    LLVMErrorRef error = LLVMRunPasses(cg->llvm, pipeline, machine, options);
    return llvm_succeeded(cg, "optimising", error) && llvm_check(cg, "optimising") &&
           verify(cg);
}
