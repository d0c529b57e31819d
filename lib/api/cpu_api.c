/* tilus_run_on_cpu: the guard around one run of the CPU engine. */
#include "api/launch.h"
#include "api/sizes.h"
#include "cpu/cpu.h"

static bool check_options(Diag *diag, const tilus_cpu_options *options)
{
    if (!options->cpu)
        return diag_error(diag, (Loc){0}, "options: cpu is NULL, not a target");
    return options->opt_level <= 3 ||
           diag_error(diag, (Loc){0}, "optimization level %u; there are 0 .. 3",
                      options->opt_level);
}

/* Checks and runs; the caller has set the guard. */
static tilus_status launch(CpuRun *run, CpuLaunch *launch, size_t arg_count,
                           const tilus_cpu_options *options, tilus_cpu_times *times)
{
    Program *p = launch->program;
    Diag *diag = p->module->diag;
    LaunchSizes sizes;
    tilus_cpu_options known;
    tilus_cpu_times spent = {.struct_size = sizeof spent};
    if (!API_COPY(diag, tilus_cpu_options, &known, options, "options") ||
        !API_CLEAR(diag, tilus_cpu_times, times, "times") || !check_options(diag, &known) ||
        !launch_check(p, launch->info, launch->args, arg_count, launch->buffers,
                      launch->buffer_count, &sizes))
        return TILUS_ERROR_ARGUMENT;
    for (unsigned d = 0; d < 3; d++)
        launch->grid[d] = sizes.grid[d];
    launch->workspace_bytes = sizes.workspace;
    launch->workspace_zeroed = sizes.zeroed;
    tilus_status status = cpu_run(run, launch, &known, &spent);
    API_FILL(tilus_cpu_times, times, &spent);
    return status;
}

tilus_status tilus_run_on_cpu(tilus_module *module, const char *program, const tilus_arg *args,
                              size_t arg_count, const tilus_buffer *buffers,
                              size_t buffer_count, const tilus_cpu_options *options,
                              tilus_cpu_times *times)
{
    if (!module || !program)
        return TILUS_ERROR_ARGUMENT;
    Program *p = module_find_program(module, program);
    /* An API entry with a guard of its own: it must come before this one's. */
    const tilus_kernel_info *info = p ? tilus_module_kernel_info(module, program) : NULL;
    CpuRun *run = info ? cpu_new(module) : NULL;
    if (setjmp(module->diag->oom.jump)) {
        cpu_free(run);
        return module->diag->errors ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
    }
    if (!p) {
        diag_error(module->diag, (Loc){0}, "the module has no program @%s", program);
        return TILUS_ERROR_ARGUMENT;
    }
    if (!run)
        return module->diag->errors ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
    CpuLaunch what = {.program = p, .info = info, .args = args, .buffers = buffers,
                      .buffer_count = buffer_count};
    tilus_status status = launch(run, &what, arg_count, options, times);
    cpu_free(run);
    return status;
}
