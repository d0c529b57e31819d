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
    void *module, *function, *stream;
    Buffers buffers;
    double *samples;
} Timing;

/* Launch `i` of a series; 0 when it went well. */
typedef int LaunchOne(const Timing *t, int i);

static void open_timing(Timing *t, const char *name, tilus_kernel *kernel, const char *ptx)
{
    Check *c = t->c;
    t->kernel = kernel;
    t->stream = c->streams[0];
    t->buffers = make_buffers(c, name, 0);
    t->samples = calloc(SAMPLES, sizeof *t->samples);
    expect_raw(c, name, c->raw.cuModuleLoadData(&t->module, ptx));
    if (!c->failed)
        expect_raw(c, name, c->raw.cuModuleGetFunction(
                                &t->function, t->module,
                                tilus_kernel_artefact(kernel)->info->name));
    if (!t->samples)
        fail_check(c, name, "no memory");
}

static void close_timing(Timing *t)
{
    tilus_rt_synchronize(t->c->rt, 0);
    if (t->module)
        t->c->raw.cuModuleUnload(t->module);
    free_buffers(t->c, &t->buffers);
    free(t->samples);
    tilus_kernel_unload(t->kernel);
}

/* The median of so many launches, ns; waits, outside of the time, before the queue fills. */
static double time_launches(const Timing *t, const char *name, LaunchOne *launch_one)
{
    for (int i = 0; i < SAMPLES && !t->c->failed; i++) {
        if (i % BATCH == 0)
            expect_raw(t->c, name, t->c->raw.cuStreamSynchronize(t->stream));
        double start = nanoseconds_now();
        int result = launch_one(t, i);
        t->samples[i] = nanoseconds_now() - start;
        if (result != 0)
            fail_check(t->c, name, "a launch gives %d", result);
    }
    return median(t->samples, SAMPLES);
}

/* Prints PREFIX_by_driver, PREFIX_by_runtime and PREFIX_overhead; returns the driver's time. */
static double compare_launches(const Timing *t, const char *name, const char *prefix,
                               LaunchOne *by_driver, LaunchOne *by_runtime)
{
    char label[64];
    time_launches(t, name, by_driver);      /* warms up */
    double raw = time_launches(t, name, by_driver);
    double ours = time_launches(t, name, by_runtime);
    if (t->c->failed)
        return raw;
    snprintf(label, sizeof label, "%s_by_driver", prefix);
    number(label, raw, "ns");
    snprintf(label, sizeof label, "%s_by_runtime", prefix);
    number(label, ours, "ns");
    snprintf(label, sizeof label, "%s_overhead", prefix);
    number(label, ours - raw, "ns");
    if (ours - raw > overhead_limit)
        fail_check(t->c, name, "%.0f ns more than the driver's launch, over %.0f", ours - raw,
                   overhead_limit);
    return raw;
}

/* ---- launches of programs.tilus ------------------------------------------- */

static int launch_raw(const Timing *t, int i)
{
    (void)i;
    int32_t n = N;
    uint64_t x = t->buffers.x, y = t->buffers.y;
    void *params[] = {&x, &y, &n};
    return t->c->raw.cuLaunchKernel(t->function, N / BLOCK, 1, 1, 32, 1, 1, 0, t->stream,
                                    params, NULL);
}

static int launch_ours(const Timing *t, int i)
{
    (void)i;
    return (int)launch(t->kernel, t->stream, &t->buffers);
}

void measures_launches(Check *c, const char *name)
{
    Timing t = {.c = c};
    tilus_kernel *kernel = prepare_kernel(c, name, &accumulate, 0);
    if (!kernel)
        return;
    open_timing(&t, name, kernel, c->ptx);
    if (!c->failed) {
        double raw = compare_launches(&t, name, "launch", launch_raw, launch_ours);
        c->raw.cuCtxSetCurrent(NULL);
        if (!c->failed)
            number("launch_overhead_context_not_current",
                   time_launches(&t, name, launch_ours) - raw, "ns");
        c->raw.cuCtxSetCurrent(c->context);
    }
    close_timing(&t);
}

/* ---- launches of programs_sm90.tilus -------------------------------------- */

enum {
    COPIED_ROWS = 64,           /* half of a buffer, so that pointers can move on in it */
    POINTERS = 16               /* that take turns: more than the maps that a kernel keeps */
};

/* Maps of x and y, encoded before the launches. */
static _Alignas(64) unsigned char raw_maps[2][128];

static int encode_raw(const Timing *t)
{
    static const uint32_t box[] = {COLUMNS, 32}, steps[] = {1, 1};
    const uint64_t extents[] = {COLUMNS, COPIED_ROWS}, strides[] = {COLUMNS};
    const uint64_t addresses[] = {t->buffers.x, t->buffers.y};
    int result = 0;
    for (int i = 0; i < 2 && result == 0; i++)
        result = t->c->raw.cuTensorMapEncodeTiled(
            raw_maps[i], MAP_UINT8, 2, (void *)(uintptr_t)addresses[i], extents, strides, box,
            steps, 0, MAP_SWIZZLE_128, MAP_PROMOTION_256, 0);
    return result;
}

/* With maps, where the program has them, and with clusters, where it has these. */
static int launch_copy_raw(const Timing *t, int i)
{
    (void)i;
    const tilus_kernel_info *info = tilus_kernel_artefact(t->kernel)->info;
    int32_t m = COPIED_ROWS, n = COLUMNS;
    uint64_t x = t->buffers.x, y = t->buffers.y;
    void *params[] = {&x, &y, &m, &n, raw_maps[0], raw_maps[1]};
    RawAttribute cluster = {.id = ATTRIBUTE_CLUSTER, .value.cluster = {info->cluster[0], 1, 1}};
    const RawLaunch config = {.grid = {COPIED_ROWS / 32, 1, 1}, .block = {info->threads, 1, 1},
                              .shared = (unsigned)info->shared_bytes, .stream = t->stream,
                              .attributes = &cluster, .attribute_count = info->cluster[0] > 0};
    return t->c->raw.cuLaunchKernelEx(&config, t->function, params, NULL);
}

static int launch_copy_ours(const Timing *t, int i)
{
    (void)i;
    return (int)launch_copy(t->kernel, t->stream, &t->buffers, COPIED_ROWS, COLUMNS);
}

/* Each launch has other pointers than those before it: its maps are encoded anew. */
static int launch_copy_elsewhere(const Timing *t, int i)
{
    Buffers b = t->buffers;
    b.x += 16 * (uint64_t)(i % POINTERS);
    b.y += 16 * (uint64_t)(i % POINTERS);
    return (int)launch_copy(t->kernel, t->stream, &b, COPIED_ROWS, COLUMNS);
}

/* False where this device or driver has nothing to compare, which skips the check. */
static bool open_copies(Timing *t, const char *name, const File *file)
{
    Check *c = t->c;
    tilus_kernel *kernel = prepare_file(c, name, file);
    if (!kernel)
        return false;
    open_timing(t, name, kernel, tilus_kernel_artefact(kernel)->ptx);
    if (!c->raw.cuLaunchKernelEx || !c->raw.cuTensorMapEncodeTiled)
        skip_check(c, name, "the driver has no cuLaunchKernelEx or cuTensorMapEncodeTiled");
    else
        expect_raw(c, name, encode_raw(t));
    return !c->failed && !c->skipped;
}

void measures_launches_with_maps(Check *c, const char *name)
{
    Timing t = {.c = c};
    if (open_copies(&t, name, &c->boxes)) {
        double raw = compare_launches(&t, name, "launch_with_maps", launch_copy_raw,
                                      launch_copy_ours);
        if (!c->failed)
            number("launch_with_new_maps_overhead",
                   time_launches(&t, name, launch_copy_elsewhere) - raw, "ns");
    }
    if (t.kernel)
        close_timing(&t);
}

void measures_launches_of_clusters(Check *c, const char *name)
{
    Timing t = {.c = c};
    if (open_copies(&t, name, &c->pairs))
        compare_launches(&t, name, "launch_of_clusters", launch_copy_raw, launch_copy_ours);
    if (t.kernel)
        close_timing(&t);
}
