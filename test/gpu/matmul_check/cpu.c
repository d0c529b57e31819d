/* The CPU engine: launches as the library computes them, from the template's text. Device
 * memory is host memory. */
#define _GNU_SOURCE
#include "check.h"

#include "common/cpu_memory.h"
#include "common/cpu_module.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern const char matmul_template[];
extern const size_t matmul_template_size;

typedef struct Cpu {
    Engine base;
    CpuMemory memory;
} Cpu;

static tilus_status cpu_start(Engine *e, const char *tunings)
{
    const tilus_matmul_options options = {.struct_size = sizeof options, .tunings = tunings};
    return matmul_open_absent(&options, &e->matmul);
}

/* ---- memory ------------------------------------------------------------------- */

static void *data_at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

static tilus_status cpu_allocate(Engine *e, size_t size, uint64_t *address)
{
    Cpu *c = (Cpu *)e;
    return cpu_memory_allocate(&c->memory, size, address)
               ? TILUS_OK : tilus_rt_fail(TILUS_ERROR_MEMORY, "out of memory");
}

static void cpu_release(Engine *e, uint64_t address)
{
    cpu_memory_release(&((Cpu *)e)->memory, address);
}

static tilus_status cpu_upload(Engine *e, uint64_t to, const void *from, size_t size)
{
    (void)e;
    memcpy(data_at(to), from, size);
    return TILUS_OK;
}

static tilus_status cpu_download(Engine *e, void *to, uint64_t from, size_t size)
{
    (void)e;
    memcpy(to, data_at(from), size);
    return TILUS_OK;
}

static tilus_status cpu_fill(Engine *e, uint64_t to, unsigned char byte, size_t size)
{
    (void)e;
    memset(data_at(to), byte, size);
    return TILUS_OK;
}

/* ---- programs ----------------------------------------------------------------- */

static tilus_status fail(const Kernel *kernel, tilus_status status, const char *why)
{
    char text[512];
    snprintf(text, sizeof text, "%s: %s", kernel->name, why);
    return tilus_rt_fail(status, text);
}

static tilus_status run_module(Cpu *c, const KernelLaunch *l, tilus_module *module,
                               const tilus_diag *diag)
{
    const char *program = l->kernel->program;
    const tilus_kernel_info *info = tilus_module_kernel_info(module, program);
    CpuCall call;
    if (!info)
        return fail(l->kernel, TILUS_ERROR_INTERNAL, "the template has no such program");
    ArgumentOrder order;
    if (!argument_order(info, &order))
        return fail(l->kernel, TILUS_ERROR_ARGUMENT, info->args[order.count].name);
    tilus_arg args[MATMUL_ARGUMENTS];
    argument_order_apply(&order, l->args, args);
    const char *wrong = cpu_call_make(&call, &c->memory, info, args, order.count);
    if (wrong)
        return fail(l->kernel, TILUS_ERROR_ARGUMENT, wrong);
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = l->kernel->target, .host_threads = 1,
                                       .check_races = true};
    tilus_status status = tilus_run_on_cpu(module, program, call.args, order.count,
                                           call.buffers, order.count, &options, NULL);
    return status == TILUS_OK ? status
                              : fail(l->kernel, status, cpu_module_reason(diag, status));
}

static tilus_status cpu_launch(Engine *e, const KernelLaunch *l)
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = diag ? cpu_module_parse(diag, matmul_template, matmul_template_size,
                                                   l->kernel->parameters, l->kernel->target)
                                : NULL;
    tilus_status status = module ? run_module((Cpu *)e, l, module, diag)
                                 : fail(l->kernel, TILUS_ERROR_PROGRAM,
                                        cpu_module_reason(diag, TILUS_ERROR_MEMORY));
    tilus_module_free(module);
    tilus_diag_free(diag);
    return status;
}

/* ---- products ----------------------------------------------------------------- */

static tilus_status cpu_plan(Engine *e, const tilus_matmul_problem *problem,
                             tilus_matmul_plan **out)
{
    return plan_create_absent(e->matmul, problem, &e->device, out);
}

static tilus_status cpu_pack(Engine *e, tilus_matmul_plan *plan,
                             const tilus_matmul_weights *weights, uint64_t packed)
{
    const KernelLaunch l = pack_launch(plan, weights, packed);
    packed_put_identity(plan, data_at(packed));
    return cpu_launch(e, &l);
}

static tilus_status run_call(Engine *e, tilus_matmul_plan *plan, const tilus_matmul_call *call)
{
    const Choice choice = call_choice(plan, call);
    const Product p = product_of(plan, &choice, call->m);
    tilus_status status = TILUS_OK;
    if (plan->spec.experts)         /* whose tables lie behind the blocks of each */
        cpu_memory_share(&((Cpu *)e)->memory, call->weights);
    for (int64_t first = 0; first < call->m && status == TILUS_OK; first += p.rows) {
        KernelLaunch launches[MATMUL_LAUNCHES];
        size_t count = product_launches(plan, call, &p, first, launches);
        for (size_t i = 0; i < count && status == TILUS_OK; i++)
            status = cpu_launch(e, &launches[i]);
    }
    return status;
}

static tilus_status cpu_run(Engine *e, tilus_matmul_plan *plan, const tilus_matmul_call *calls,
                            size_t count)
{
    tilus_status status = TILUS_OK;
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        status = run_call(e, plan, &calls[i]);
    return status;
}

static void cpu_close(Engine *e)
{
    Cpu *c = (Cpu *)e;
    cpu_memory_free(&c->memory);
    tilus_matmul_close(e->matmul);
    free(c);
}

/* Describes a device with so few multiprocessors that blocks share tiles of small products. */
Engine *engine_open_cpu(void)
{
    enum { CAPABILITY = 90, MULTIPROCESSORS = 5, SHARED_BYTES = 227 * 1024 };
    Cpu *c = calloc(1, sizeof *c);
    if (!c) {
        fprintf(stderr, TOOL ": error: out of memory\n");
        return NULL;
    }
    c->base = (Engine){
        .start = cpu_start, .close = cpu_close, .allocate = cpu_allocate,
        .release = cpu_release, .upload = cpu_upload, .download = cpu_download,
        .fill = cpu_fill, .plan = cpu_plan, .pack = cpu_pack, .run = cpu_run};
    c->base.device = matmul_device("CPU engine", CAPABILITY, MULTIPROCESSORS, SHARED_BYTES);
    return &c->base;
}
