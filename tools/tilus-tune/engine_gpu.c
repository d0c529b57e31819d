/* The first GPU, through the runtime. */
#include "engine.h"

#include "common/measure.h"
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICE = 0 };

typedef struct Gpu {
    Engine base;
    tilus_rt *rt;
    Measure measure;
} Gpu;

typedef struct GpuKernel {
    EngineKernel base;
    tilus_kernel *kernel;
} GpuKernel;

static bool check_into(Gpu *g, tilus_status status, char *message, size_t size)
{
    if (status == TILUS_OK)
        return true;
    if (status == TILUS_ERROR_LOST)
        g->base.lost = true;
    snprintf(message, size, "%s", tilus_rt_error());
    return false;
}

static bool check(Gpu *g, tilus_status status)
{
    return check_into(g, status, g->base.message, sizeof g->base.message);
}

/* The message for a failure that driver_check has printed on stderr. */
static bool check_driver(Gpu *g, bool ok)
{
    if (!ok)
        snprintf(g->base.message, sizeof g->base.message, "a call of the driver failed");
    return ok;
}

static void gpu_close(Engine *e)
{
    Gpu *g = (Gpu *)e;
    measure_close(&g->measure);
    tilus_rt_close(g->rt);
    free(g);
}

/* ---- memory ----------------------------------------------------------- */

static bool gpu_allocate(Engine *e, size_t size, uint64_t *address)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_rt_allocate(g->rt, DEVICE, size, address));
}

static void gpu_release(Engine *e, uint64_t address)
{
    Gpu *g = (Gpu *)e;
    if (address)
        tilus_rt_release(g->rt, DEVICE, address);
}

static bool gpu_upload(Engine *e, uint64_t to, const void *from, size_t size)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_rt_upload(g->rt, DEVICE, to, from, size));
}

static bool gpu_download(Engine *e, void *to, uint64_t from, size_t size)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_rt_download(g->rt, DEVICE, to, from, size));
}

static bool gpu_fill(Engine *e, uint64_t to, unsigned char byte, size_t size)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_rt_fill(g->rt, DEVICE, to, byte, size)) &&
           check(g, tilus_rt_synchronize(g->rt, DEVICE));
}

/* ---- kernels ---------------------------------------------------------- */

static EngineKernel *gpu_load(Engine *e, const void *artefact, size_t size, char *message,
                              size_t message_size)
{
    Gpu *g = (Gpu *)e;
    GpuKernel *k = calloc(1, sizeof *k);
    if (!k) {
        snprintf(message, message_size, "out of memory");
        return NULL;
    }
    if (check_into(g, tilus_kernel_load(g->rt, artefact, size, &k->kernel), message,
                   message_size)) {
        if (check_into(g, tilus_kernel_prepare(k->kernel, DEVICE), message, message_size)) {
            k->base.info = tilus_kernel_artefact(k->kernel)->info;
            return &k->base;
        }
        tilus_kernel_unload(k->kernel);
    }
    free(k);
    return NULL;
}

static void gpu_unload(Engine *e, EngineKernel *kernel)
{
    (void)e;
    if (kernel)
        tilus_kernel_unload(((GpuKernel *)kernel)->kernel);
    free(kernel);
}

static bool gpu_launch(Engine *e, EngineKernel *kernel, const tilus_arg *args, size_t count)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_launch(((GpuKernel *)kernel)->kernel, g->measure.stream, args, count,
                                 0, 0));
}

static bool gpu_wait(Engine *e)
{
    Gpu *g = (Gpu *)e;
    return check(g, tilus_rt_synchronize(g->rt, DEVICE));
}

static bool gpu_time(Engine *e, const EngineWork *work, double best, double *us, bool *whole)
{
    Gpu *g = (Gpu *)e;
    const MeasureWork measured = {work->launch, work->data, work->copies};
    return check_driver(g, measure_graph_below(&g->measure, &measured, best, us, whole)) &&
           gpu_wait(e);
}

/* ---- opening ---------------------------------------------------------- */

static void describe(Gpu *g)
{
    Engine *e = &g->base;
    int version = tilus_rt_driver_version(g->rt);
    int capability = tilus_rt_compute_capability(g->rt, DEVICE);
    snprintf(e->device_name, sizeof e->device_name, "%s", tilus_rt_device_name(g->rt, DEVICE));
    snprintf(e->driver, sizeof e->driver, "CUDA %d.%d", version / 1000, version % 1000 / 10);
    e->target = tilus_target_for(capability);
    e->device = matmul_device(e->device_name, capability,
                              tilus_rt_multiprocessors(g->rt, DEVICE),
                              (int64_t)tilus_rt_shared_memory(g->rt, DEVICE));
    e->cache = g->measure.l2;
}

Engine *engine_open_gpu(void)
{
    char message[1024];
    Gpu *g = calloc(1, sizeof *g);
    tilus_status status = g ? tilus_rt_open(NULL, &g->rt, message, sizeof message)
                            : TILUS_ERROR_MEMORY;
    if (status != TILUS_OK) {
        fprintf(stderr, "%s: error: %s\n", TOOL, g ? message : "out of memory");
        free(g);
        return NULL;
    }
    g->base = (Engine){
        .close = gpu_close, .allocate = gpu_allocate, .release = gpu_release,
        .upload = gpu_upload, .download = gpu_download, .fill = gpu_fill, .load = gpu_load,
        .unload = gpu_unload, .launch = gpu_launch, .wait = gpu_wait, .time = gpu_time};
    if (measure_open(&g->measure, TOOL ": error", DEVICE)) {
        describe(g);
        if (g->base.target)
            return &g->base;
        fprintf(stderr, "%s: error: no code can be made for %s\n", TOOL, g->base.device_name);
    }
    gpu_close(&g->base);
    return NULL;
}

Engine *engine_open(EngineKind kind)
{
    return kind == ENGINE_CPU ? engine_open_cpu() : engine_open_gpu();
}
