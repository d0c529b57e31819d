/* The measurement: what it needs, and its launches. */
#include "bench.h"

#include <stdio.h>

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
    return check(tilus_launch(kernel, b->measure.stream, args, count, workspace,
                              workspace_size));
}

/* The program, on a copy of its buffers. One workspace serves all launches, which come
 * one after the other. */
static bool launch_copy(void *bench, unsigned copy)
{
    Bench *b = bench;
    copies_choose(b, copy);
    return bench_launch(b, b->kernel, b->args, b->run->info->arg_count, b->workspace,
                        b->workspace_size);
}

/* ---- what it needs -------------------------------------------------- */

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
        !DRIVER_CALL(&b->measure.driver, cuMemAlloc(&b->workspace, b->workspace_size)))
        return false;
    tilus_kernel_check(run->info, b->args, run->info->arg_count, grid, message,
                       sizeof message);
    if (grid[0] > 0 && grid[1] > 0 && grid[2] > 0)
        return true;
    fprintf(stderr, "%s: error: --bench: the grid is empty, nothing runs\n", TOOL);
    return false;
}

static void bench_close(Bench *b)
{
    const Driver *d = &b->measure.driver;
    if (!b->measure.context)
        return;
    d->cuStreamSynchronize(b->measure.stream);
    flush_close(b);
    copies_close(b);
    if (b->workspace)
        d->cuMemFree(b->workspace);
    tilus_kernel_unload(b->kernel);
    measure_close(&b->measure);
}

static bool measure(Bench *b)
{
    const MeasureWork work = {launch_copy, b, b->copies}, flush = {flush_l2, b, 1};
    return measure_graph(&b->measure, &work, MEASURE_RESTED, &b->graph) &&
           flush_open(b) && measure_events(&b->measure, &work, &flush, &b->events);
}

int bench_run(Run *run)
{
    enum { ORDINAL = 0 };       /* as the runtime was told */
    Bench b = {.run = run};
    bool ok = measure_open(&b.measure, BENCH_USER, ORDINAL) && open_kernel(&b) && measure(&b);
    if (ok)
        bench_report(&b);
    bench_close(&b);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
