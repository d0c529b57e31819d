/* Places in the program text, as LLVM's debug locations: `.loc` lines in PTX, and
 * what lib/cpu reports faults with. An op of a function is on the function's line, inlined
 * at the call (DILocation, inlinedAt). */
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

static LLVMMetadataRef create_file(Codegen *cg, const SourceText *text)
{
    const char *path = cg->line_form == LINES_NUMBERED ? LINES_FILE : text->file ? text->file : "";
    size_t directory = directory_length(path);
    const char *name = path + directory + (directory > 0);
    return LLVMDIBuilderCreateFile(cg->lines, name, strlen(name), path, directory);
}

void lines_open(Codegen *cg, LineForm form)
{
    static const char key[] = "Debug Info Version";
    LLVMValueRef version = const_i32_of(cg, LLVMDebugMetadataVersion());
    LLVMAddModuleFlag(cg->llvm, LLVMModuleFlagBehaviorWarning, key, sizeof key - 1,
                      LLVMValueAsMetadata(version));
    cg->lines = LLVMCreateDIBuilder(cg->llvm);
    cg->line_form = form;
    cg->function_scopes = arena_array(&cg->module->scratch, LLVMMetadataRef,
                                      cg->diag->frame_count);
    LLVMDIBuilderCreateCompileUnit(cg->lines, LLVMDWARFSourceLanguageC,
                                   create_file(cg, &cg->diag->source), "tilus",
                                   strlen("tilus"), 1, "", 0, 0, "", 0,
                                   (LLVMDWARFEmissionKind)DIRECTIVES_ONLY, 0, 0, 0, "", 0, "",
                                   0);
}

void lines_close(Codegen *cg)
{
    if (!cg->lines)
        return;
    LLVMSetCurrentDebugLocation2(cg->builder, NULL);    /* bodies of intrinsics get their calls' */
    LLVMDIBuilderFinalize(cg->lines);
}

/* A program or a function, which begins on `line` of `text`. */
static LLVMMetadataRef create_subprogram(Codegen *cg, const SourceText *text, const char *name,
                                         unsigned line)
{
    LLVMMetadataRef file = create_file(cg, text);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(cg->lines, file, NULL, 0,
                                                             LLVMDIFlagZero);
    return LLVMDIBuilderCreateFunction(cg->lines, file, name, strlen(name), name, strlen(name),
                                       file, line, type, 0, 1, line, LLVMDIFlagZero, 1);
}

/* The subprogram of the function that is called in frame `i`: one for all of its calls. */
static LLVMMetadataRef function_scope(Codegen *cg, uint32_t i)
{
    const SourceFrame *f = &cg->diag->frames[i];
    LLVMMetadataRef *scope = &cg->function_scopes[f->first ? f->first : i];
    if (!*scope)
        *scope = create_subprogram(cg, f->source, f->function, f->line);
    return *scope;
}

static LLVMMetadataRef create_location(Codegen *cg, unsigned line, unsigned column,
                                       LLVMMetadataRef scope, LLVMMetadataRef inlined_at)
{
    return LLVMDIBuilderCreateDebugLocation(cg->context, line, column, scope, inlined_at);
}

/* The location of an op of a program, or of a function that the program calls. */
static LLVMMetadataRef location_of(Codegen *cg, Loc loc)
{
    const SourceFrame *f = loc.frame ? &cg->diag->frames[loc.frame] : NULL;
    if (!f || !f->function)
        return create_location(cg, loc.line, loc.column, cg->scope, NULL);
    return create_location(cg, loc.line, loc.column, function_scope(cg, loc.frame),
                           location_of(cg, f->from));
}

/* The location whose frame stands as the line that it is inlined at: its number and 1. */
static LLVMMetadataRef numbered_location(Codegen *cg, Loc loc)
{
    LLVMMetadataRef frame = create_location(cg, loc.frame + 1, 0, cg->scope, NULL);
    return create_location(cg, loc.line, loc.column, cg->scope, frame);
}

Loc lines_location(LLVMMetadataRef location)
{
    LLVMMetadataRef frame = LLVMDILocationGetInlinedAt(location);
    return (Loc){.line = LLVMDILocationGetLine(location),
                 .column = LLVMDILocationGetColumn(location),
                 .frame = frame ? LLVMDILocationGetLine(frame) - 1 : 0};
}

static void set_location(Codegen *cg, Loc loc)
{
    LLVMSetCurrentDebugLocation2(cg->builder, cg->line_form == LINES_NUMBERED
                                                  ? numbered_location(cg, loc)
                                                  : location_of(cg, loc));
}

void lines_program(Codegen *cg, const Program *p)
{
    if (!cg->lines)
        return;
    cg->scope = create_subprogram(cg, diag_source(cg->diag, p->loc), p->name, p->loc.line);
    LLVMSetSubprogram(cg->function, cg->scope);
    set_location(cg, p->loc);
}

void lines_op(Codegen *cg, const Op *op)
{
    if (cg->lines && op->loc.line)
        set_location(cg, op->loc);
}
