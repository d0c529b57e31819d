/* The CPU engine. It compiles the program text that artefacts carry. */
#define _GNU_SOURCE
#include "engine.h"

#include "common/cpu_memory.h"
#include "common/cpu_module.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The time that a fault adds to a launch, and the time from which on a candidate is clearly
 * slower: beyond the noise of a busy machine. */
static const double fault_slower = 1e6, clearly_slower = 1e5;

/* Addresses are those of the host. */
typedef struct Cpu {
    Engine base;
    CpuMemory memory;
    double run_seconds;         /* of launches so far */
} Cpu;

typedef struct CpuKernel {
    EngineKernel base;
    tilus_artefact *artefact;
    tilus_diag *diag;
    tilus_module *module;
} CpuKernel;

static bool fail(Engine *e, const char *why)
{
    snprintf(e->message, sizeof e->message, "%s", why);
    return false;
}

/* ---- memory ----------------------------------------------------------- */

static bool cpu_allocate(Engine *e, size_t size, uint64_t *address)
{
    Cpu *c = (Cpu *)e;
    return cpu_memory_allocate(&c->memory, size, address) || fail(e, "out of memory");
}

static void cpu_release(Engine *e, uint64_t address)
{
    cpu_memory_release(&((Cpu *)e)->memory, address);
}

static bool cpu_upload(Engine *e, uint64_t to, const void *from, size_t size)
{
    (void)e;
    memcpy((void *)(uintptr_t)to, from, size);
    return true;
}

static bool cpu_download(Engine *e, void *to, uint64_t from, size_t size)
{
    (void)e;
    memcpy(to, (const void *)(uintptr_t)from, size);
    return true;
}

static bool cpu_fill(Engine *e, uint64_t to, unsigned char byte, size_t size)
{
    (void)e;
    memset((void *)(uintptr_t)to, byte, size);
    return true;
}

/* ---- kernels ---------------------------------------------------------- */

static bool parse(CpuKernel *k)
{
    const tilus_artefact *a = k->artefact;
    k->diag = tilus_diag_new();
    if (k->diag)
        k->module = cpu_module_parse(k->diag, a->source, strlen(a->source), a->parameters,
                                     a->target);
    if (k->module)
        k->base.info = tilus_module_kernel_info(k->module, a->info->name);
    return k->base.info;
}

static void cpu_unload(Engine *e, EngineKernel *kernel)
{
    CpuKernel *k = (CpuKernel *)kernel;
    (void)e;
    if (!k)
        return;
    tilus_module_free(k->module);
    tilus_diag_free(k->diag);
    free(k->artefact);
    free(k);
}

static EngineKernel *cpu_load(Engine *e, const void *artefact, size_t size, char *message,
                              size_t message_size)
{
    CpuKernel *k = calloc(1, sizeof *k);
    if (!k) {
        snprintf(message, message_size, "out of memory");
        return NULL;
    }
    if (tilus_artefact_read(artefact, size, &k->artefact, message, message_size) == TILUS_OK) {
        if (parse(k))
            return &k->base;
        snprintf(message, message_size, "%s", cpu_module_reason(k->diag, TILUS_ERROR_MEMORY));
    }
    cpu_unload(e, &k->base);
    return NULL;
}

static void raise_faults(const CpuKernel *k)
{
    if (tune_has_fault(k->artefact->parameters, "kill:"))
        raise(SIGKILL);
    if (tune_has_fault(k->artefact->parameters, "term:"))
        raise(SIGTERM);
}

/* Seconds of a launch, where the engine took `seconds`. */
static double add_faults(const CpuKernel *k, double seconds)
{
    return tune_has_fault(k->artefact->parameters, "slow:") ? fault_slower * seconds : seconds;
}

static bool cpu_launch(Engine *e, EngineKernel *kernel, const tilus_arg *args, size_t count)
{
    Cpu *c = (Cpu *)e;
    CpuKernel *k = (CpuKernel *)kernel;
    const tilus_kernel_info *info = kernel->info;
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = k->artefact->target, .host_threads = 1};
    tilus_cpu_times times = {.struct_size = sizeof times};
    CpuCall call;
    const char *wrong = cpu_call_make(&call, &c->memory, info, args, count);
    if (wrong)
        return fail(e, wrong);
    raise_faults(k);
    tilus_status status = tilus_run_on_cpu(k->module, info->name, call.args, count,
                                           call.buffers, count, &options, &times);
    c->run_seconds += add_faults(k, times.run_seconds);
    return status == TILUS_OK || fail(e, cpu_module_reason(k->diag, status));
}

static bool cpu_wait(Engine *e)
{
    (void)e;
    return true;
}

static bool cpu_time(Engine *e, const EngineWork *work, double best, double *us, bool *whole)
{
    Cpu *c = (Cpu *)e;
    double before = c->run_seconds;
    bool ok = work->launch(work->data, 0);
    *us = 1e6 * (c->run_seconds - before);
    *whole = best == 0 || *us < clearly_slower * best;
    return ok;
}

static void cpu_close(Engine *e)
{
    Cpu *c = (Cpu *)e;
    cpu_memory_free(&c->memory);
    free(c);
}

/* Describes the engine as a small GPU. */
Engine *engine_open_cpu(void)
{
    enum { CAPABILITY = 90, MULTIPROCESSORS = 4, SHARED_BYTES = 232448 };
    Cpu *c = calloc(1, sizeof *c);
    if (!c) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return NULL;
    }
    c->base = (Engine){
        .device_name = "CPU engine", .target = "sm_90a", .close = cpu_close,
        .allocate = cpu_allocate, .release = cpu_release, .upload = cpu_upload,
        .download = cpu_download, .fill = cpu_fill, .load = cpu_load, .unload = cpu_unload,
        .launch = cpu_launch, .wait = cpu_wait, .time = cpu_time};
    c->base.device = matmul_device(c->base.device_name, CAPABILITY, MULTIPROCESSORS,
                                   SHARED_BYTES);
    return &c->base;
}
