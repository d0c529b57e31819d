/* tilus_interpret: checks the launch as a launcher does, then interprets. */
#include "tilus/tilus.h"

#include "interp/interp.h"

/* A plausible address of every buffer, aligned as a driver aligns. */
enum { BUFFER_ADDRESS = 256 };

static bool check_buffers(Program *p, const tilus_arg *args, size_t buffer_count)
{
    for (unsigned i = 0; i < p->arg_count; i++)
        if (p->args[i]->type->kind == TYPE_PTR && args[i].pointer >= buffer_count)
            return diag_error(p->module->diag, (Loc){0},
                              "argument %%%s is buffer %llu, but there are %zu buffers",
                              p->args[i]->name, (unsigned long long)args[i].pointer,
                              buffer_count);
    return true;
}

/* Checks every fact; pointers are buffer numbers, so addresses stand in. */
static bool check_launch(Program *p, const tilus_kernel_info *info, const tilus_arg *args,
                         size_t count, size_t buffer_count, int64_t grid[3])
{
    Module *m = p->module;
    char message[512];
    tilus_arg *checked = arena_array(&m->scratch, tilus_arg, count);
    for (size_t i = 0; i < count; i++) {
        checked[i] = args[i];
        if (i < p->arg_count && p->args[i]->type->kind == TYPE_PTR)
            checked[i].pointer = BUFFER_ADDRESS;
    }
    size_t bytes, zeroed;
    if (tilus_kernel_check(info, checked, count, grid, message, sizeof message) != TILUS_OK ||
        tilus_kernel_workspace_size(info, checked, &bytes, &zeroed, message, sizeof message))
        return diag_error(m->diag, (Loc){0}, "%s", message);
    return check_buffers(p, args, buffer_count);
}

tilus_status tilus_interpret(tilus_module *module, const char *program,
                             const tilus_arg *args, size_t arg_count,
                             const tilus_buffer *buffers, size_t buffer_count,
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
    int64_t grid[3];
    if (!check_launch(p, info, args, arg_count, buffer_count, grid)) {
        interp_discard(p);
        return TILUS_ERROR_ARGUMENT;
    }
    return interp_program(p, grid, args, buffers, buffer_count, options) ? TILUS_OK
                                                                         : TILUS_ERROR_PROGRAM;
}
