/* tilus_compile: the guard around one compile. */
#include "api/ir_handles.h"
#include "api/sizes.h"
#include "codegen/codegen.h"
#include "ir/structure.h"
#include "passes/pass.h"
#include "target/target.h"
#include "tilus/tilus.h"

static bool check_options(Diag *diag, const tilus_compile_options *options)
{
    if (!options->cpu)
        return diag_error(diag, (Loc){0}, "options: cpu is NULL, not a target");
    if ((unsigned)options->output > TILUS_OUTPUT_LLVM_IR)
        return diag_error(diag, (Loc){0}, "options: output is %d, not a tilus_output_kind",
                          (int)options->output);
    return options->opt_level <= 3 ||
           diag_error(diag, (Loc){0}, "optimization level %u; there are 0 .. 3",
                      options->opt_level);
}

/* Compiles under the caller's guard. */
static char *compile(Codegen *cg, Diag *diag, const tilus_compile_options *options,
                     tilus_compile_times *times)
{
    tilus_compile_options known;
    tilus_compile_times spent = {.struct_size = sizeof spent};
    if (!API_COPY(diag, tilus_compile_options, &known, options, "options") ||
        !API_CLEAR(diag, tilus_compile_times, times, "times") || !check_options(diag, &known))
        return NULL;
    char *text = codegen_module(cg, &known, &spent);
    API_FILL(tilus_compile_times, times, &spent);
    return text;
}

char *tilus_compile(tilus_module *module, const tilus_compile_options *options,
                    tilus_compile_times *times)
{
    Codegen *cg = codegen_new(module);
    if (!cg)
        return NULL;
    if (setjmp(module->diag->oom.jump)) {
        codegen_free(cg);
        ir_abandon(module);
        return NULL;
    }
    char *text = verify_edited(module) ? compile(cg, module->diag, options, times) : NULL;
    codegen_free(cg);
    return text;
}

const char *tilus_default_pipeline(void)
{
    return PASS_DEFAULT_PIPELINE;
}

void tilus_print_llvm_passes(bool before, bool after)
{
    codegen_print_llvm_passes(before, after);
}

const char *tilus_target_name(size_t i)
{
    const Target *target = target_at(i);
    return target ? target->name : NULL;
}

const char *tilus_target_for(int capability)
{
    return target_name_for(capability);
}
