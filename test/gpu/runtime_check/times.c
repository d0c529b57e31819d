/* Processor time of launching and loading on this machine. */
#define _GNU_SOURCE
#include "check.h"

#include <stdlib.h>
#include <time.h>

enum {
    SAMPLES = 100000,       /* launches whose median counts */
    BATCH = 200,            /* launches between two waits: fewer than the driver queues */
    LOADS = 9
};

/* The limit of a launch's time beside the driver's own, ns. */
static const double overhead_limit = 1000;

static void number(const char *name, double value, const char *unit)
{
    printf("NUMBER %s %.1f %s\n", name, value, unit);
}

static double nanoseconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare_doubles);
    return values[count / 2];
}

/* ---- times ---------------------------------------------------------------- */

/* From the bytes of an artefact to a kernel that can be launched. */
static void time_load(Check *c, const char *name, const char *what, bool with_cubin)
{
    double times[LOADS];
    void *bytes = NULL;
    size_t size = 0;
    const tilus_artefact artefact = make_artefact(c, &accumulate, with_cubin);
    if (tilus_artefact_write(&artefact, &bytes, &size) != TILUS_OK)
        fail_check(c, name, "the artefact cannot be written");
    for (int i = 0; i < LOADS && !c->failed; i++) {
        tilus_kernel *kernel = NULL;
        double start = nanoseconds_now();
        expect_ok(c, name, tilus_kernel_load(c->rt, bytes, size, &kernel));
        if (kernel)
            expect_ok(c, name, tilus_kernel_prepare(kernel, 0));
        times[i] = nanoseconds_now() - start;
        tilus_kernel_unload(kernel);
    }
    free(bytes);
    if (!c->failed)
        number(what, 1e-3 * median(times, LOADS), "us");
}

/* Without the driver's own cache, which main turns off. */
void measures_loading(Check *c, const char *name)
{
    time_load(c, name, "load_ptx", false);
    if (c->cubin)
        time_load(c, name, "load_cubin", true);
}

/* One launch, by the driver and by the runtime, to be compared. */
typedef struct Timing {
    Check *c;
    tilus_kernel *kernel;
    void *function, *stream;
    Buffers buffers;
    double *samples;
} Timing;

static int launch_raw(const Timing *t)
{
    int32_t n = N;
    uint64_t x = t->buffers.x, y = t->buffers.y;
    void *params[] = {&x, &y, &n};
    return t->c->raw.cuLaunchKernel(t->function, N / BLOCK, 1, 1, 32, 1, 1, 0, t->stream,
                                    params, NULL);
}

static int launch_ours(const Timing *t)
{
    return (int)launch(t->kernel, t->stream, &t->buffers);
}

/* The median of so many launches, ns; waits, outside of the time, before the queue fills. */
static double time_launches(const Timing *t, const char *name,
                            int (*launch_one)(const Timing *t))
{
    for (int i = 0; i < SAMPLES && !t->c->failed; i++) {
        if (i % BATCH == 0)
            expect_raw(t->c, name, t->c->raw.cuStreamSynchronize(t->stream));
        double start = nanoseconds_now();
        int result = launch_one(t);
        t->samples[i] = nanoseconds_now() - start;
        if (result != 0)
            fail_check(t->c, name, "a launch gives %d", result);
    }
    return median(t->samples, SAMPLES);
}

static void compare_launches(const Timing *t, const char *name)
{
    time_launches(t, name, launch_raw);     /* warms up */
    double raw = time_launches(t, name, launch_raw);
    double ours = time_launches(t, name, launch_ours);
    number("launch_by_driver", raw, "ns");
    number("launch_by_runtime", ours, "ns");
    number("launch_overhead", ours - raw, "ns");
    if (ours - raw > overhead_limit)
        fail_check(t->c, name, "%.0f ns more than the driver's launch, over %.0f", ours - raw,
                   overhead_limit);
    t->c->raw.cuCtxSetCurrent(NULL);
    number("launch_overhead_context_not_current",
           time_launches(t, name, launch_ours) - raw, "ns");
    t->c->raw.cuCtxSetCurrent(t->c->context);
}

void measures_launches(Check *c, const char *name)
{
    void *module = NULL;
    Timing t = {.c = c, .stream = c->streams[0], .buffers = make_buffers(c, name, 0),
                .kernel = prepare_kernel(c, name, &accumulate, 0),
                .samples = calloc(SAMPLES, sizeof *t.samples)};
    expect_raw(c, name, c->raw.cuModuleLoadData(&module, c->ptx));
    if (!c->failed)
        expect_raw(c, name, c->raw.cuModuleGetFunction(&t.function, module, accumulate.name));
    if (!c->failed && t.samples)
        compare_launches(&t, name);
    tilus_rt_synchronize(c->rt, 0);
    if (module)
        c->raw.cuModuleUnload(module);
    free_buffers(c, &t.buffers);
    free(t.samples);
    tilus_kernel_unload(t.kernel);
}
