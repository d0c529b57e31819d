/* Checks of a launch. */
#include "api/launch.h"

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
bool launch_check(Program *p, const tilus_kernel_info *info, const tilus_arg *args,
                  size_t count, size_t buffer_count, LaunchSizes *sizes)
{
    Module *m = p->module;
    char message[512];
    tilus_arg *checked = arena_array(&m->scratch, tilus_arg, count);
    for (size_t i = 0; i < count; i++) {
        checked[i] = args[i];
        if (i < p->arg_count && p->args[i]->type->kind == TYPE_PTR)
            checked[i].pointer = BUFFER_ADDRESS;
    }
    if (tilus_kernel_check(info, checked, count, sizes->grid, message, sizeof message) ||
        tilus_kernel_workspace_size(info, checked, &sizes->workspace, &sizes->zeroed, message,
                                    sizeof message))
        return diag_error(m->diag, (Loc){0}, "%s", message);
    return check_buffers(p, args, buffer_count);
}
