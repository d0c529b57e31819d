/* The first GPU, by the library's own functions. */
#define _GNU_SOURCE
#include "check.h"

#include "tilus/tilus.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEVICE = 0 };

typedef struct Gpu {
    Engine base;
    tilus_rt *rt;
} Gpu;

static tilus_rt *rt_of(Engine *e)
{
    return ((Gpu *)e)->rt;
}

static tilus_status gpu_start(Engine *e, const char *tunings)
{
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .compile = tilus_matmul_compile, .tunings = tunings};
    return tilus_matmul_open(rt_of(e), &options, &e->matmul);
}

static void gpu_close(Engine *e)
{
    tilus_matmul_close(e->matmul);
    tilus_rt_close(rt_of(e));
    free(e);
}

/* ---- memory ------------------------------------------------------------------- */

static tilus_status gpu_allocate(Engine *e, size_t size, uint64_t *address)
{
    return tilus_rt_allocate(rt_of(e), DEVICE, size, address);
}

static void gpu_release(Engine *e, uint64_t address)
{
    if (address)
        tilus_rt_release(rt_of(e), DEVICE, address);
}

static tilus_status gpu_upload(Engine *e, uint64_t to, const void *from, size_t size)
{
    return tilus_rt_upload(rt_of(e), DEVICE, to, from, size);
}

static tilus_status gpu_download(Engine *e, void *to, uint64_t from, size_t size)
{
    return tilus_rt_download(rt_of(e), DEVICE, to, from, size);
}

static tilus_status gpu_wait(Engine *e, tilus_status status)
{
    return status == TILUS_OK ? tilus_rt_synchronize(rt_of(e), DEVICE) : status;
}

static tilus_status gpu_fill(Engine *e, uint64_t to, unsigned char byte, size_t size)
{
    return gpu_wait(e, tilus_rt_fill(rt_of(e), DEVICE, to, byte, size));
}

/* ---- products ----------------------------------------------------------------- */

static tilus_status gpu_plan(Engine *e, const tilus_matmul_problem *problem,
                             tilus_matmul_plan **out)
{
    tilus_matmul_problem own = *problem;
    own.struct_size = sizeof own;
    return tilus_matmul_plan_create(e->matmul, &own, DEVICE, out);
}

static tilus_status gpu_pack(Engine *e, tilus_matmul_plan *plan,
                             const tilus_matmul_weights *weights, uint64_t packed)
{
    return gpu_wait(e, tilus_matmul_pack_device(plan, NULL, weights, packed));
}

static tilus_status gpu_run(Engine *e, tilus_matmul_plan *plan, const tilus_matmul_call *calls,
                            size_t count)
{
    tilus_status status = tilus_matmul_prepare(plan, calls->m);
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        status = tilus_matmul_run(plan, NULL, &calls[i]);
    return gpu_wait(e, status);
}

Engine *engine_open_gpu(void)
{
    char message[1024] = "out of memory";
    Gpu *g = calloc(1, sizeof *g);
    /* Thousands of kernels are used once each. */
    setenv("CUDA_CACHE_DISABLE", "1", 0);
    if (!g || tilus_rt_open(NULL, &g->rt, message, sizeof message) != TILUS_OK) {
        fprintf(stderr, TOOL ": error: %s\n", message);
        free(g);
        return NULL;
    }
    g->base = (Engine){
        .start = gpu_start, .close = gpu_close, .allocate = gpu_allocate,
        .release = gpu_release, .upload = gpu_upload, .download = gpu_download,
        .fill = gpu_fill, .plan = gpu_plan, .pack = gpu_pack, .run = gpu_run,
        .overlaps = true};
    g->base.device = matmul_device(tilus_rt_device_name(g->rt, DEVICE),
                                   tilus_rt_compute_capability(g->rt, DEVICE),
                                   tilus_rt_multiprocessors(g->rt, DEVICE),
                                   (int64_t)tilus_rt_shared_memory(g->rt, DEVICE));
    return &g->base;
}
