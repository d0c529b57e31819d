/* Functions of a driver beyond fake_cuda.c for `tilus-run --bench`: graphs, events, a clock.
 *
 * A launch takes 10 microseconds, and a graph's k-th replay k mod 10 more. The stream that
 * is made is the default one. Environment: TILUS_FAKE_FAIL as in fake_cuda.c, by name;
 * TILUS_FAKE_FREE, bytes of memory that are free; TILUS_FAKE_NAME, of the device;
 * TILUS_FAKE_REPLAY_MS, milliseconds of the host that a replay takes. Printed
 * are how many values the first parameter of captured launches has, and what is left when
 * the process ends. */
#define _POSIX_C_SOURCE 200809L
#include "fake_cuda.h"

#include "cuda_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* fake_cuda.c has these under other names here. */
#undef cuDeviceGetAttribute
#undef cuDeviceGetName
#undef cuLaunchKernel

typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent;

struct CUgraph_st { int launches; };
struct CUgraphExec_st { int launches, replays; };
struct CUevent_st { double us; };

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    L2_CACHE_SIZE = 38,         /* the attribute */
    L2_BYTES = 1 << 20,
    COPIES_MAX = 64,
    LAUNCH_US = 10
};

extern FakeCuda fake_cuda;
CUresult base_cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult base_cuDeviceGetName(char *name, int size, CUdevice device);
CUresult base_cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y,
                             unsigned grid_z, unsigned block_x, unsigned block_y,
                             unsigned block_z, unsigned shared_bytes, CUstream stream,
                             void **params, void **extra);

static int captured_from = -1;          /* launches when the capture began, or -1 */
static uint64_t copies[COPIES_MAX];     /* first parameters of captured launches */
static int copy_count;
static int not_run;                     /* launches that were only captured */
static double extra_us;                 /* that replays took beside their launches */
static int graphs, execs, events;

static CUresult fails(const char *symbol)
{
    const char *spec = getenv("TILUS_FAKE_FAIL"), *colon = spec ? strchr(spec, ':') : NULL;
    size_t len = strlen(symbol);
    if (!colon || (size_t)(colon - spec) != len || memcmp(spec, symbol, len) != 0)
        return CUDA_SUCCESS;
    return atoi(colon + 1);
}

#define CALLED_IN_CONTEXT()                                                   \
    do {                                                                      \
        CUresult error_ = fails(__func__);                                    \
        if (error_)                                                           \
            return error_;                                                    \
        if (fake_cuda.current == 0)                                           \
            return INVALID_CONTEXT;                                           \
    } while (0)

__attribute__((destructor)) static void report_leaks(void)
{
    if (graphs || execs || events || fake_cuda.allocations || fake_cuda.modules ||
        fake_cuda.retained || captured_from >= 0)
        fprintf(stderr, "fake_bench: %d graphs, %d executable, %d events, %d allocations, %d "
                "modules, %d contexts are left\n", graphs, execs, events,
                (int)fake_cuda.allocations, (int)fake_cuda.modules, (int)fake_cuda.retained);
}

/* ---- the device -------------------------------------------------------- */

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device);
CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CUresult error = fails(__func__);
    if (error || attribute != L2_CACHE_SIZE)
        return error ? error : base_cuDeviceGetAttribute(value, attribute, device);
    *value = L2_BYTES;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device);
CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    const char *wanted = getenv("TILUS_FAKE_NAME");
    if (!wanted)
        return base_cuDeviceGetName(name, size, device);
    snprintf(name, (size_t)size, "%s", wanted);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total);
CUresult cuMemGetInfo_v2(size_t *available, size_t *total)
{
    const char *bytes = getenv("TILUS_FAKE_FREE");
    CALLED_IN_CONTEXT();
    *total = (size_t)1 << 30;
    *available = bytes ? strtoull(bytes, NULL, 10) : *total;
    return CUDA_SUCCESS;
}

static void note_copy(void)
{
    int i = 0;
    while (i < copy_count && copies[i] != fake_cuda.parameters[0])
        i++;
    if (i == copy_count && i < COPIES_MAX)
        copies[copy_count++] = fake_cuda.parameters[0];
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream stream, void **params, void **extra)
{
    CUresult error = fails(__func__);
    if (!error)
        error = base_cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y,
                                    block_z, shared_bytes, stream, params, extra);
    if (!error && captured_from >= 0)
        note_copy();
    return error;
}

/* ---- streams and graphs ------------------------------------------------ */

CUresult cuStreamCreate(CUstream *stream, unsigned flags);
CUresult cuStreamCreate(CUstream *stream, unsigned flags)
{
    (void)flags;
    CALLED_IN_CONTEXT();
    *stream = NULL;
    return CUDA_SUCCESS;
}

CUresult cuStreamDestroy_v2(CUstream stream);
CUresult cuStreamDestroy_v2(CUstream stream)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuStreamSynchronize(CUstream stream);
CUresult cuStreamSynchronize(CUstream stream)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    return captured_from >= 0 ? INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    if (captured_from >= 0 || mode < 0 || mode > 2)
        return INVALID_VALUE;
    captured_from = fake_cuda.launches;
    return CUDA_SUCCESS;
}

CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph);
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph)
{
    (void)stream;
    int launches = fake_cuda.launches - captured_from;
    if (captured_from < 0)
        return INVALID_VALUE;
    fprintf(stderr, "fake_bench: %d launches on %d copies\n", launches, copy_count);
    not_run += launches;
    captured_from = -1;
    CALLED_IN_CONTEXT();
    *graph = malloc(sizeof **graph);
    (*graph)->launches = launches;
    graphs++;
    return CUDA_SUCCESS;
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                     unsigned long long flags);
CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
                                     unsigned long long flags)
{
    CALLED_IN_CONTEXT();
    if (flags)
        return INVALID_VALUE;
    *exec = malloc(sizeof **exec);
    **exec = (struct CUgraphExec_st){graph->launches, 0};
    execs++;
    return CUDA_SUCCESS;
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream);
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    (void)stream;
    const char *ms = getenv("TILUS_FAKE_REPLAY_MS");
    const struct timespec busy = {.tv_nsec = ms ? atol(ms) * 1000000 : 0};
    CALLED_IN_CONTEXT();
    nanosleep(&busy, NULL);
    extra_us += exec->launches * (LAUNCH_US + exec->replays++ % 10);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecDestroy(CUgraphExec exec);
CUresult cuGraphExecDestroy(CUgraphExec exec)
{
    free(exec);
    execs--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph);
CUresult cuGraphDestroy(CUgraph graph)
{
    free(graph);
    graphs--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

/* ---- events ------------------------------------------------------------ */

CUresult cuEventCreate(CUevent *event, unsigned flags);
CUresult cuEventCreate(CUevent *event, unsigned flags)
{
    (void)flags;
    CALLED_IN_CONTEXT();
    *event = calloc(1, sizeof **event);
    events++;
    return CUDA_SUCCESS;
}

CUresult cuEventRecord(CUevent event, CUstream stream);
CUresult cuEventRecord(CUevent event, CUstream stream)
{
    (void)stream;
    CALLED_IN_CONTEXT();
    event->us = LAUNCH_US * (fake_cuda.launches - not_run) + extra_us;
    return CUDA_SUCCESS;
}

CUresult cuEventSynchronize(CUevent event);
CUresult cuEventSynchronize(CUevent event)
{
    (void)event;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end);
CUresult cuEventElapsedTime(float *ms, CUevent start, CUevent end)
{
    CALLED_IN_CONTEXT();
    *ms = (float)(1e-3 * (end->us - start->us));
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event);
CUresult cuEventDestroy_v2(CUevent event)
{
    free(event);
    events--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}
