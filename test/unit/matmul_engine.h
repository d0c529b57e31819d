/* Launches of the matmul library on the CPU engine: device memory is host memory there.
 * Include after cmocka. */
#ifndef TILUS_TEST_MATMUL_ENGINE_H
#define TILUS_TEST_MATMUL_ENGINE_H

#include "common/cpu_module.h"
#include "matmul_fixture.h"
#include "tilus/tilus.h"

extern const char matmul_template[];
extern const size_t matmul_template_size;

typedef struct Region {
    void *data;
    size_t size;
} Region;

static inline uintptr_t region_end(const Region *r)
{
    return (uintptr_t)r->data + r->size;
}

/* Returns the bytes up to the next pointer of the launch, of the region that holds the address or
 * ends there: what lies behind is not the program's. */
static inline tilus_buffer buffer_at(const tilus_arg *args, const tilus_kernel_info *info,
                                     uintptr_t address, const Region *regions, size_t count)
{
    const Region *in = NULL;
    for (size_t i = 0; i < count; i++)
        if (address >= (uintptr_t)regions[i].data &&
            (address < region_end(&regions[i]) || (!in && address == region_end(&regions[i]))))
            in = &regions[i];
    if (!in)
        fail_msg("@%s gets an address of no memory", info->name);
    uintptr_t end = region_end(in);
    for (size_t i = 0; i < info->arg_count; i++)
        if (info->args[i].kind == TILUS_ARG_POINTER && args[i].pointer > address &&
            args[i].pointer < end)
            end = (uintptr_t)args[i].pointer;
    return (tilus_buffer){(void *)address, end - address};
}

/* The engine keeps buffers apart, so equal addresses are one. */
static inline size_t first_with(const tilus_arg *args, const tilus_kernel_info *info,
                                uint64_t address)
{
    size_t i = 0;
    while (info->args[i].kind != TILUS_ARG_POINTER || args[i].pointer != address)
        i++;
    return i;
}

static inline tilus_module *module_of(const Kernel *kernel, tilus_diag *diag)
{
    tilus_module *module = cpu_module_parse(diag, matmul_template, matmul_template_size,
                                            kernel->parameters, kernel->target);
    tilus_diag_write(diag, NULL, NULL);
    assert_non_null(module);
    return module;
}

/* Runs the launch's program from its text, as the device would run the artefact. */
static inline void run_on_cpu(const KernelLaunch *l, const Region *regions, size_t region_count)
{
    const char *program = l->kernel->program;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = module_of(l->kernel, diag);
    const tilus_kernel_info *info = tilus_module_kernel_info(module, program);
    tilus_arg values[MATMUL_ARGUMENTS], args[MATMUL_ARGUMENTS];
    ArgumentOrder order;
    tilus_buffer buffers[MATMUL_ARGUMENTS] = {{0}};
    assert_true(argument_order(info, &order));
    argument_order_apply(&order, l->args, values);
    for (size_t i = 0; i < order.count; i++) {
        args[i] = values[i];
        if (info->args[i].kind != TILUS_ARG_POINTER)
            continue;
        buffers[i] = buffer_at(values, info, (uintptr_t)values[i].pointer, regions, region_count);
        assert_int_equal(values[i].pointer % (uint64_t)info->args[i].align, 0);
        args[i].pointer = first_with(values, info, values[i].pointer);
    }
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = l->kernel->target, .opt_level = 0};
    tilus_status status = tilus_run_on_cpu(module, program, args, order.count, buffers,
                                           order.count, &options, NULL);
    tilus_diag_write(diag, NULL, NULL);
    assert_int_equal(status, TILUS_OK);
    tilus_module_free(module);
    tilus_diag_free(diag);
}

#endif
