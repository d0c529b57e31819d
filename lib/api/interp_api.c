/* tilus_interpret: checks the launch as a launcher does, then interprets. */
#include "api/launch.h"
#include "api/sizes.h"
#include "interp/interp.h"

#include <fenv.h>

static tilus_status interpret(tilus_module *module, const char *program, const tilus_arg *args,
                              size_t arg_count, const tilus_buffer *buffers, size_t buffer_count,
                              const tilus_interpret_options *options)
{
    Program *p = module_find_program(module, program);
    /* An API entry with a guard of its own: it must come before this one's. */
    const tilus_kernel_info *info = p ? tilus_module_kernel_info(module, program) : NULL;
    if (setjmp(module->diag->oom.jump)) {
        if (p)
            interp_discard(p);
        return TILUS_ERROR_MEMORY;
    }
    if (!p) {
        diag_error(module->diag, (Loc){0}, "the module has no program @%s", program);
        return TILUS_ERROR_ARGUMENT;
    }
    if (!info)
        return module->diag->errors ? TILUS_ERROR_PROGRAM : TILUS_ERROR_MEMORY;
    LaunchSizes sizes;
    tilus_interpret_options known;
    if (!API_COPY(module->diag, tilus_interpret_options, &known, options, "options"))
        return TILUS_ERROR_ARGUMENT;
    if (!launch_check(p, info, args, arg_count, buffers, buffer_count, &sizes)) {
        interp_discard(p);
        return TILUS_ERROR_ARGUMENT;
    }
    return interp_program(p, sizes.grid, args, buffers, buffer_count, &known) ? TILUS_OK
                                                                         : TILUS_ERROR_PROGRAM;
}

/* Interprets in the default floating-point environment: the caller's may round differently, or flush
 * subnormal numbers to zero. */
tilus_status tilus_interpret(tilus_module *module, const char *program,
                             const tilus_arg *args, size_t arg_count,
                             const tilus_buffer *buffers, size_t buffer_count,
                             const tilus_interpret_options *options)
{
    fenv_t before;
    if (!module || !program)
        return TILUS_ERROR_ARGUMENT;
    fegetenv(&before);
    fesetenv(FE_DFL_ENV);
    tilus_status status = interpret(module, program, args, arg_count, buffers, buffer_count, options);
    fesetenv(&before);
    return status;
}
