/* The program: parsed, chosen, compiled. */
#include "run.h"

#include "common/defines.h"
#include "common/file.h"
#include "common/limits.h"
#include "common/warnings.h"
#include "support/kernel_info.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of the largest PTX text that is read. */
enum { PTX_MAX = 1 << 28 };

/* ---- parsing -------------------------------------------------------- */

/* A failure without a diagnostic is one of memory. */
static int report(const Source *source)
{
    tilus_diag_write(source->diag, NULL, NULL);
    if (tilus_diag_errors(source->diag) == 0)
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
    return EXIT_DIAGNOSTICS;
}

static int parse(Run *run, Source *source)
{
    const Options *o = &run->options;
    const char *file = strcmp(o->inputs.items[0], "-") == 0 ? "<stdin>" : o->inputs.items[0];
    source->diag = tilus_diag_new();
    if (!source->diag) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return EXIT_DIAGNOSTICS;
    }
    limits_set(TOOL, &o->limits, source->diag);
    import_paths_set(&o->import_paths, source->diag);
    warnings_set(TOOL, &o->warnings, source->diag);
    source->module = tilus_parse(source->diag, file, run->text, run->text_size, 1,
                                 run->defines, o->defines.count);
    return source->module ? EXIT_OK : report(source);
}

/* Layouts that the text leaves open: the interpreter needs them, too. */
static int infer_layouts(Source *source)
{
    const tilus_pass_options options = {.struct_size = sizeof options, .verify_each = true};
    return tilus_run_passes(source->module, "infer-layouts", &options) ? EXIT_OK
                                                                        : report(source);
}

int program_load(Run *run)
{
    const Options *o = &run->options;
    if (!defines_parse(TOOL, &o->defines, &run->defines))
        return EXIT_USAGE;
    if (!file_read(TOOL, o->inputs.items[0], TEXT_SIZE_MAX, &run->text, &run->text_size))
        return EXIT_DIAGNOSTICS;
    int status = parse(run, &run->plain);
    if (status == EXIT_OK)
        status = infer_layouts(&run->plain);
    if (status == EXIT_OK && tilus_diag_count(run->plain.diag) > 0)
        tilus_diag_write(run->plain.diag, NULL, NULL);      /* warnings */
    return status == EXIT_OK ? parse(run, &run->compiled) : status;
}

/* ---- choosing ------------------------------------------------------- */

static void list_argument(const tilus_arg_info *arg)
{
    if (arg->kind == TILUS_ARG_POINTER) {
        printf("  %%%s: ptr<%s> {align = %" PRId64 "}\n", arg->name, arg->dtype, arg->align);
        return;
    }
    if (kernel_arg_is_float(arg->kind)) {
        printf("  %%%s: %s\n", arg->name, arg->dtype);
        return;
    }
    printf("  %%%s: %s {divisible = %" PRId64 ", range = [%" PRId64 ", %" PRId64 "]}\n",
           arg->name, arg->dtype, arg->divisible, arg->min, arg->max);
}

void program_list(const Run *run)
{
    tilus_module *module = run->plain.module;
    for (size_t i = 0; i < tilus_program_count(module); i++) {
        const char *name = tilus_program_name(module, i);
        const tilus_kernel_info *info = tilus_module_kernel_info(module, name);
        printf("@%s\n", name);
        for (size_t j = 0; info && j < info->arg_count; j++)
            list_argument(&info->args[j]);
    }
}

int program_select(Run *run)
{
    tilus_module *module = run->plain.module;
    const char *wanted = run->options.program;
    if (wanted && wanted[0] == '@')
        wanted++;
    if (!wanted && tilus_program_count(module) == 1)
        wanted = tilus_program_name(module, 0);
    if (!wanted) {
        fprintf(stderr, "%s: error: the file has %zu programs, choose with --program=@name\n",
                TOOL, tilus_program_count(module));
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < tilus_program_count(module); i++)
        if (strcmp(tilus_program_name(module, i), wanted) == 0)
            run->program = tilus_program_name(module, i);
    if (!run->program) {
        fprintf(stderr, "%s: error: the file has no program @%s, see --list\n", TOOL, wanted);
        return EXIT_USAGE;
    }
    run->info = tilus_module_kernel_info(module, run->program);
    return run->info ? EXIT_OK : report(&run->plain);
}

/* ---- compiling ------------------------------------------------------ */

/* The CPU engine compiles, and prints warnings, itself. */
static bool is_for_cpu(const Options *o)
{
    return o->engine == ENGINE_CPU || o->reference == REFERENCE_CPU;
}

/* The target: what was asked for, else the device's; of the CPU engine the one that
 * is tested on a device, else the oldest. */
static const char *choose_target(const Run *run)
{
    if (run->options.cpu)
        return run->options.cpu;
    if (run->options.engine == ENGINE_CPU || (!run->rt && is_for_cpu(&run->options)))
        return "sm_90a";
    if (!run->rt)
        return tilus_target_name(0);
    const char *name = tilus_target_for(tilus_rt_compute_capability(run->rt, DEVICE));
    if (!name)
        fprintf(stderr, "%s: error: no target for a device of capability %d\n", TOOL,
                tilus_rt_compute_capability(run->rt, DEVICE));
    return name;
}

static int run_passes(Run *run)
{
    tilus_module *module = run->compiled.module;
    run->target = choose_target(run);
    if (!run->target)
        return EXIT_DIAGNOSTICS;
    const tilus_pass_options passes = {.struct_size = sizeof passes,
                                       .verify_each = true, .target = run->target};
    if (!tilus_run_passes(module, NULL, &passes))
        return report(&run->compiled);
    run->info = tilus_module_kernel_info(module, run->program);
    return run->info ? EXIT_OK : report(&run->compiled);
}

static int compile(Run *run)
{
    enum { LEVEL = 3 };
    unsigned level = run->options.opt_level;
    const tilus_compile_options options = {.struct_size = sizeof options,
        .cpu = run->target, .opt_level = level == OPT_BY_ENGINE ? LEVEL : level,
        .output = TILUS_OUTPUT_PTX, .program = run->program};
    run->ptx = tilus_compile(run->compiled.module, &options, NULL);
    return run->ptx ? EXIT_OK : report(&run->compiled);
}

int program_compile(Run *run)
{
    const Options *o = &run->options;
    size_t size;
    if (o->ptx) {
        run->target = choose_target(run);
        return run->target && file_read(TOOL, o->ptx, PTX_MAX, &run->ptx, &size)
                   ? EXIT_OK : EXIT_DIAGNOSTICS;
    }
    if (o->engine == ENGINE_INTERP && !o->save_ptx && o->reference != REFERENCE_CPU)
        return EXIT_OK;
    int status = run_passes(run);
    if (status == EXIT_OK && (run->rt || o->save_ptx))
        status = compile(run);
    if (status == EXIT_OK && !is_for_cpu(o))
        tilus_diag_write(run->compiled.diag, NULL, NULL);
    if (status == EXIT_OK && o->save_ptx &&
        (!file_check_output(TOOL, o->inputs.items[0], o->save_ptx) ||
         !file_write(TOOL, o->save_ptx, run->ptx, strlen(run->ptx))))
        status = EXIT_DIAGNOSTICS;
    return status;
}
