/* tilus_compile: the guard around one compile. */
#include "codegen/codegen.h"
#include "passes/pass.h"
#include "target/target.h"
#include "tilus/tilus.h"

static bool check_level(tilus_module *module, const tilus_compile_options *options)
{
    return options->opt_level <= 3 ||
           diag_error(module->diag, (Loc){0}, "optimisation level %u; there are 0 .. 3",
                      options->opt_level);
}

char *tilus_compile(tilus_module *module, const tilus_compile_options *options,
                    tilus_compile_times *times)
{
    Codegen *cg = codegen_new(module);
    if (!cg)
        return NULL;
    if (setjmp(module->diag->oom.jump)) {
        codegen_free(cg);
        return NULL;
    }
    char *text = check_level(module, options) ? codegen_module(cg, options, times) : NULL;
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
