/* Public API: one program compiled into an artefact. */
#include "api/sizes.h"
#include "ir/ir.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The program that the artefact is of when nobody has said; NULL after an error. */
static const char *only_program(tilus_module *module)
{
    size_t count = tilus_program_count(module);
    if (setjmp(module->diag->oom.jump))
        return NULL;
    if (count != 1)
        diag_error(module->diag, (Loc){0}, "%zu programs, an artefact has one", count);
    return count == 1 ? tilus_program_name(module, 0) : NULL;
}

/* 83 of the line `.version 8.3`; 0 when there is none. */
static unsigned ptx_version(const char *ptx)
{
    unsigned major, minor;
    const char *line = strstr(ptx, "\n.version ");
    return line && sscanf(line, "\n.version %2u.%1u", &major, &minor) == 2
               ? 10 * major + minor : 0;
}

static void name_compiler(char *name, size_t size)
{
    snprintf(name, size, "tilus %s (%s), LLVM %s", tilus_version(), tilus_git_revision(),
             tilus_llvm_version());
}

/* Adds machine code to `a`, if there is somebody who makes it. */
static tilus_status assemble(tilus_artefact *a, const tilus_artefact_options *extra)
{
    if (!extra->assemble)
        return TILUS_OK;
    a->cubin = extra->assemble(extra->assembler, a->target, a->ptx, &a->cubin_size);
    return a->cubin ? TILUS_OK : TILUS_ERROR_UNSUPPORTED;
}

/* Returns the status of a failure that left no artefact. */
static tilus_status module_status(const tilus_module *module)
{
    return tilus_diag_errors(module->diag) ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
}

/* Takes the options as this library knows them; false after an error. */
static bool take_options(Diag *diag, const tilus_compile_options *options,
                         const tilus_artefact_options *extra, tilus_compile_options *one,
                         tilus_artefact_options *more)
{
    if (setjmp(diag->oom.jump))
        return false;
    return API_COPY(diag, tilus_compile_options, one, options, "options") &&
           API_COPY(diag, tilus_artefact_options, more, extra, "extra");
}

tilus_status tilus_compile_artefact(tilus_module *module, const tilus_compile_options *options,
                                    const tilus_artefact_options *extra,
                                    tilus_compile_times *times, void **bytes, size_t *size)
{
    tilus_compile_options one;
    tilus_artefact_options more;
    char compiler[256], *ptx = NULL;
    if (!bytes || !size)
        return TILUS_ERROR_ARGUMENT;
    *bytes = NULL;
    *size = 0;
    if (!module)
        return TILUS_ERROR_ARGUMENT;
    if (!take_options(module->diag, options, extra, &one, &more))
        return module_status(module);
    one.output = TILUS_OUTPUT_PTX;
    if (!one.program)
        one.program = only_program(module);
    if (one.program)
        ptx = tilus_compile(module, &one, times);
    const tilus_kernel_info *info = ptx ? tilus_module_kernel_info(module, one.program) : NULL;
    if (!info) {
        free(ptx);
        return module_status(module);
    }
    name_compiler(compiler, sizeof compiler);
    tilus_artefact a = {
        .info = info, .target = one.cpu, .ptx_version = ptx_version(ptx), .ptx = ptx,
        .source = module->edits ? "" : diag_texts(module->diag), .parameters = more.parameters,
        .compiler = compiler};
    tilus_status status = assemble(&a, &more);
    if (status == TILUS_OK)
        status = tilus_artefact_write(&a, bytes, size);
    free((void *)a.cubin);
    free(ptx);
    return status;
}
