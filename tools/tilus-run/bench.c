/* The measurement: what it needs, a graph, its replays, launches between events. */
#include "bench.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- launches ------------------------------------------------------- */

static bool check(tilus_status status)
{
    if (status != TILUS_OK)
        fprintf(stderr, "%s: error: --bench: %s\n", TOOL, tilus_rt_error());
    return status == TILUS_OK;
}

tilus_kernel *bench_load(Run *run, const char *ptx, const tilus_kernel_info *info)
{
    tilus_kernel *kernel = NULL;
    const tilus_artefact artefact = {.info = info, .target = run->target, .ptx = ptx};
    if (!check(tilus_kernel_create(run->rt, &artefact, &kernel)))
        return NULL;
    if (check(tilus_kernel_prepare(kernel, DEVICE)))
        return kernel;
    tilus_kernel_unload(kernel);
    return NULL;
}

bool bench_launch(Bench *b, tilus_kernel *kernel, const tilus_arg *args, size_t count,
                  CUdeviceptr workspace, size_t workspace_size)
{
    return check(tilus_launch(kernel, b->stream, args, count, workspace,
                              workspace_size));
}

/* The program, on a copy of its buffers. One workspace serves all launches, which come
 * one after the other. */
static bool launch_copy(Bench *b, unsigned copy)
{
    copies_choose(b, copy);
    return bench_launch(b, b->kernel, b->args, b->run->info->arg_count, b->workspace,
                        b->workspace_size);
}

/* Microseconds between the events, once the second one has come. */
static bool read_time(Bench *b, double *us)
{
    float ms;
    bool ok = DRIVER_CALL(&b->driver, cuEventSynchronize(b->end)) &&
              DRIVER_CALL(&b->driver, cuEventElapsedTime(&ms, b->start, b->end));
    if (ok)
        *us = 1e3 * (double)ms;
    return ok;
}

static bool time_launch(Bench *b, unsigned copy, double *us)
{
    return DRIVER_CALL(&b->driver, cuEventRecord(b->start, b->stream)) &&
           launch_copy(b, copy) &&
           DRIVER_CALL(&b->driver, cuEventRecord(b->end, b->stream)) && read_time(b, us);
}

/* ---- what it needs -------------------------------------------------- */

static bool open_device(Bench *b)
{
    const Driver *d = &b->driver;
    enum { ORDINAL = 0 };       /* as the runtime was told */
    int l2;
    if (!driver_load(&b->driver) || !DRIVER_CALL(d, cuDeviceGet(&b->device, ORDINAL)) ||
        !DRIVER_CALL(d, cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
                                             b->device)) ||
        !DRIVER_CALL(d, cuDevicePrimaryCtxRetain(&b->context, b->device)))
        return false;
    b->l2 = l2 > 0 ? (size_t)l2 : 0;
    if (!DRIVER_CALL(d, cuCtxPushCurrent(b->context))) {
        d->cuDevicePrimaryCtxRelease(b->device);
        b->context = NULL;
        return false;
    }
    return DRIVER_CALL(d, cuStreamCreate(&b->stream, CU_STREAM_NON_BLOCKING)) &&
           DRIVER_CALL(d, cuEventCreate(&b->start, 0)) &&
           DRIVER_CALL(d, cuEventCreate(&b->end, 0));
}

static bool open_kernel(Bench *b)
{
    const Run *run = b->run;
    int64_t grid[3];
    char message[256];
    b->kernel = bench_load(b->run, run->ptx, run->info);
    if (!b->kernel || !copies_open(b) ||
        !check(tilus_workspace_size(b->kernel, b->args, run->info->arg_count,
                                    &b->workspace_size)))
        return false;
    if (b->workspace_size > 0 &&
        !DRIVER_CALL(&b->driver, cuMemAlloc(&b->workspace, b->workspace_size)))
        return false;
    tilus_kernel_check(run->info, b->args, run->info->arg_count, grid, message,
                       sizeof message);
    if (grid[0] > 0 && grid[1] > 0 && grid[2] > 0)
        return true;
    fprintf(stderr, "%s: error: --bench: the grid is empty, nothing runs\n", TOOL);
    return false;
}

static void close_events(Bench *b)
{
    const Driver *d = &b->driver;
    if (b->exec)
        d->cuGraphExecDestroy(b->exec);
    if (b->graph)
        d->cuGraphDestroy(b->graph);
    if (b->end)
        d->cuEventDestroy(b->end);
    if (b->start)
        d->cuEventDestroy(b->start);
    if (b->stream)
        d->cuStreamDestroy(b->stream);
}

static void bench_close(Bench *b)
{
    if (!b->context)
        return;
    b->driver.cuStreamSynchronize(b->stream);
    close_events(b);
    flush_close(b);
    copies_close(b);
    if (b->workspace)
        b->driver.cuMemFree(b->workspace);
    tilus_kernel_unload(b->kernel);
    b->driver.cuCtxPopCurrent(&b->context);
    b->driver.cuDevicePrimaryCtxRelease(b->device);
}

/* ---- the graph ------------------------------------------------------ */

/* Launches in the graph: whole rounds over the copies, and enough of them that a replay
 * takes milliseconds, of which its own launch is little. */
static bool count_launches(Bench *b)
{
    enum { REPLAY_US = 2000, LAUNCHES_MAX = 8192 };
    double us;
    if (!launch_copy(b, 0) || !DRIVER_CALL(&b->driver, cuStreamSynchronize(b->stream)) ||
        !time_launch(b, 0, &us))
        return false;
    double wanted = fmin(REPLAY_US / fmax(us, 0.1), LAUNCHES_MAX);
    unsigned rounds = (unsigned)ceil(wanted / b->copies);
    b->launches = b->copies * (rounds > 0 ? rounds : 1);
    return true;
}

/* A capture that has begun is ended in any case. */
static bool capture(Bench *b)
{
    const Driver *d = &b->driver;
    if (!DRIVER_CALL(d, cuStreamBeginCapture(b->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
        return false;
    bool ok = true;
    for (unsigned i = 0; ok && i < b->launches; i++)
        ok = launch_copy(b, i % b->copies);
    ok &= DRIVER_CALL(d, cuStreamEndCapture(b->stream, &b->graph));
    return ok && DRIVER_CALL(d, cuGraphInstantiate(&b->exec, b->graph, 0));
}

static bool replay(Bench *b, double *us)
{
    const Driver *d = &b->driver;
    bool ok = DRIVER_CALL(d, cuEventRecord(b->start, b->stream)) &&
              DRIVER_CALL(d, cuGraphLaunch(b->exec, b->stream)) &&
              DRIVER_CALL(d, cuEventRecord(b->end, b->stream)) && read_time(b, us);
    if (ok)
        *us /= b->launches;
    return ok;
}

static bool measure_graph(Bench *b)
{
    enum { WARM_UP = 3 };
    double unused;
    bool ok = count_launches(b) && capture(b);
    for (unsigned i = 0; ok && i < WARM_UP; i++)
        ok = replay(b, &unused);
    for (unsigned i = 0; ok && i < BENCH_REPLAYS; i++)
        ok = replay(b, &b->graph_us[i]);
    return ok;
}

/* ---- events --------------------------------------------------------- */

static bool measure_events(Bench *b)
{
    bool ok = flush_open(b);
    for (unsigned i = 0; ok && i < BENCH_REPLAYS; i++)
        ok = flush_l2(b) && time_launch(b, i % b->copies, &b->events_us[i]);
    return ok;
}

int bench_run(Run *run)
{
    Bench b = {.run = run};
    bool ok = open_device(&b) && open_kernel(&b) && measure_graph(&b) && measure_events(&b);
    if (ok)
        bench_report(&b);
    bench_close(&b);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
