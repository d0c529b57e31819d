/* Checks of a launch. */
#include "api/launch.h"

/* A plausible address of every buffer, aligned as a driver aligns. */
enum { BUFFER_ADDRESS = 256 };

/* Checks that buffer `number`, which the argument is, could be memory. */
static bool check_buffer(Program *p, const char *argument, const tilus_buffer *buffer, uint64_t number)
{
    if (!buffer->data && buffer->size)
        return diag_error(p->module->diag, (Loc){0},
                          "argument %%%s is buffer %llu, whose data is NULL and size %zu", argument,
                          (unsigned long long)number, buffer->size);
    return buffer->size <= PTRDIFF_MAX ||
           diag_error(p->module->diag, (Loc){0},
                      "argument %%%s is buffer %llu, whose size is %zu, more than memory has",
                      argument, (unsigned long long)number, buffer->size);
}

static bool check_buffers(Program *p, const tilus_arg *args, const tilus_buffer *buffers,
                          size_t buffer_count)
{
    for (unsigned i = 0; i < p->arg_count; i++) {
        const char *name = p->args[i]->name;
        if (p->args[i]->type->kind != TYPE_PTR)
            continue;
        if (args[i].pointer >= buffer_count)
            return diag_error(p->module->diag, (Loc){0},
                              "argument %%%s is buffer %llu, but there are %zu buffers", name,
                              (unsigned long long)args[i].pointer, buffer_count);
        if (!check_buffer(p, name, &buffers[args[i].pointer], args[i].pointer))
            return false;
    }
    return true;
}

/* Checks every fact; pointers are buffer numbers, so addresses stand in. */
bool launch_check(Program *p, const tilus_kernel_info *info, const tilus_arg *args,
                  size_t count, const tilus_buffer *buffers, size_t buffer_count,
                  LaunchSizes *sizes)
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
    return check_buffers(p, args, buffers, buffer_count);
}
