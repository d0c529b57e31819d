/* tilus_run_on_cpu: the guard around one run of the CPU engine. */
#include "api/launch.h"
#include "cpu/cpu.h"

static bool check_level(tilus_module *module, const tilus_cpu_options *options)
{
    return options->opt_level <= 3 ||
           diag_error(module->diag, (Loc){0}, "optimisation level %u; there are 0 .. 3",
                      options->opt_level);
}

/* Checks and runs; the caller has set the guard. */
static tilus_status launch(CpuRun *run, CpuLaunch *launch, size_t arg_count,
                           const tilus_cpu_options *options, tilus_cpu_times *times)
{
    Program *p = launch->program;
    LaunchSizes sizes;
    if (!check_level(p->module, options) ||
        !launch_check(p, launch->info, launch->args, arg_count, launch->buffer_count, &sizes))
        return TILUS_ERROR_ARGUMENT;
    for (unsigned d = 0; d < 3; d++)
        launch->grid[d] = sizes.grid[d];
    launch->workspace_bytes = sizes.workspace;
    launch->workspace_zeroed = sizes.zeroed;
    return cpu_run(run, launch, options, times);
}

tilus_status tilus_run_on_cpu(tilus_module *module, const char *program, const tilus_arg *args,
                              size_t arg_count, const tilus_buffer *buffers,
                              size_t buffer_count, const tilus_cpu_options *options,
                              tilus_cpu_times *times)
{
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
