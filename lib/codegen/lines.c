/* Places in the program text, as LLVM's debug locations: `.loc` lines in PTX, and
 * what lib/cpu reports faults with. */
#include "codegen/internal.h"

#include <llvm-c/DebugInfo.h>
#include <string.h>

/* LLVM's DICompileUnit::DebugDirectivesOnly, which llvm-c does not name: `.loc`
 * lines without tables, so that ptxas optimizes as ever. */
enum { DIRECTIVES_ONLY = 3 };

/* Finds the last slash of `path`, which ends the directory: 0 without one. */
static size_t directory_length(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? (size_t)(slash - path) : 0;
}

void lines_open(Codegen *cg)
{
    static const char key[] = "Debug Info Version";
    const char *path = cg->diag->source.file ? cg->diag->source.file : "";
    size_t directory = directory_length(path);
    const char *name = path + directory + (directory > 0);
    LLVMValueRef version = const_i32_of(cg, LLVMDebugMetadataVersion());
    LLVMAddModuleFlag(cg->llvm, LLVMModuleFlagBehaviorWarning, key, sizeof key - 1,
                      LLVMValueAsMetadata(version));
    cg->lines = LLVMCreateDIBuilder(cg->llvm);
    cg->text_file = LLVMDIBuilderCreateFile(cg->lines, name, strlen(name), path, directory);
    LLVMDIBuilderCreateCompileUnit(cg->lines, LLVMDWARFSourceLanguageC, cg->text_file, "tilus",
                                   strlen("tilus"), 1, "", 0, 0, "", 0,
                                   (LLVMDWARFEmissionKind)DIRECTIVES_ONLY, 0, 0, 0, "", 0, "",
                                   0);
}

void lines_close(Codegen *cg)
{
    if (cg->lines)
        LLVMDIBuilderFinalize(cg->lines);
}

void lines_program(Codegen *cg, const Program *p)
{
    if (!cg->lines)
        return;
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(cg->lines, cg->text_file, NULL, 0,
                                                             LLVMDIFlagZero);
    cg->scope = LLVMDIBuilderCreateFunction(cg->lines, cg->text_file, p->name, strlen(p->name),
                                            p->name, strlen(p->name), cg->text_file,
                                            p->loc.line, type, 0, 1, p->loc.line,
                                            LLVMDIFlagZero, 1);
    LLVMSetSubprogram(cg->function, cg->scope);
    LLVMSetCurrentDebugLocation2(cg->builder, LLVMDIBuilderCreateDebugLocation(
        cg->context, p->loc.line, p->loc.column, cg->scope, NULL));
}

void lines_op(Codegen *cg, const Op *op)
{
    if (!cg->lines || !op->loc.line)
        return;
    Loc loc = diag_root(cg->diag, op->loc);     /* of an op of a function, the call */
    LLVMSetCurrentDebugLocation2(cg->builder, LLVMDIBuilderCreateDebugLocation(
        cg->context, loc.line, loc.column, cg->scope, NULL));
}
