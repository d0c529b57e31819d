/* Graphs, their replays, launches between events. */
#define _POSIX_C_SOURCE 200809L
#include "common/measure.h"

#include "support/clock.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* ---- the device ----------------------------------------------------- */

bool measure_open(Measure *m, const char *user, int ordinal)
{
    const Driver *d = &m->driver;
    int l2;
    if (!driver_load(&m->driver, user) || !DRIVER_CALL(d, cuDeviceGet(&m->device, ordinal)) ||
        !DRIVER_CALL(d, cuDeviceGetAttribute(&l2, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE,
                                             m->device)) ||
        !DRIVER_CALL(d, cuDevicePrimaryCtxRetain(&m->context, m->device)))
        return false;
    m->l2 = l2 > 0 ? (size_t)l2 : 0;
    if (!DRIVER_CALL(d, cuCtxPushCurrent(m->context))) {
        d->cuDevicePrimaryCtxRelease(m->device);
        m->context = NULL;
        return false;
    }
    return DRIVER_CALL(d, cuStreamCreate(&m->stream, CU_STREAM_NON_BLOCKING)) &&
           DRIVER_CALL(d, cuEventCreate(&m->start, 0)) &&
           DRIVER_CALL(d, cuEventCreate(&m->end, 0));
}

void measure_close(Measure *m)
{
    const Driver *d = &m->driver;
    if (!m->context)
        return;
    if (m->end)
        d->cuEventDestroy(m->end);
    if (m->start)
        d->cuEventDestroy(m->start);
    if (m->stream)
        d->cuStreamDestroy(m->stream);
    d->cuCtxPopCurrent(&m->context);
    d->cuDevicePrimaryCtxRelease(m->device);
}

/* ---- times ---------------------------------------------------------- */

/* Microseconds between the events, once the second one has come. */
static bool read_time(const Measure *m, double *us)
{
    float ms;
    bool ok = DRIVER_CALL(&m->driver, cuEventSynchronize(m->end)) &&
              DRIVER_CALL(&m->driver, cuEventElapsedTime(&ms, m->start, m->end));
    if (ok)
        *us = 1e3 * (double)ms;
    return ok;
}

static bool time_launch(const Measure *m, const MeasureWork *work, unsigned copy, double *us)
{
    return DRIVER_CALL(&m->driver, cuEventRecord(m->start, m->stream)) &&
           work->launch(work->data, copy) &&
           DRIVER_CALL(&m->driver, cuEventRecord(m->end, m->stream)) && read_time(m, us);
}

bool measure_events(Measure *m, const MeasureWork *work, const MeasureWork *flush,
                    MeasureTimes *times)
{
    bool ok = true;
    *times = (MeasureTimes){.count = MEASURE_REPLAYS, .launches = 1};
    for (unsigned i = 0; ok && i < times->count; i++)
        ok = flush->launch(flush->data, i % flush->copies) &&
             time_launch(m, work, i % work->copies, &times->us[i]);
    return ok;
}

/* ---- the graph ------------------------------------------------------ */

enum { WARM_UP = 3 };          /* replays */

#define MILLISECOND INT64_C(1000000)
#define SECOND (1000 * MILLISECOND)

static void rest(int64_t ns)
{
    const struct timespec t = {ns / SECOND, ns % SECOND};
    if (ns > 0)
        nanosleep(&t, NULL);
}

typedef struct Graph {
    CUgraph graph;
    CUgraphExec exec;
    unsigned launches;
} Graph;

/* Launches in the graph: a multiple of the copies, and enough that a replay
 * takes a millisecond, of which its own launch is a small part. */
static bool count_launches(const Measure *m, const MeasureWork *work, unsigned *launches)
{
    enum { REPLAY_US = 1000, LAUNCHES_MAX = 8192 };
    double us;
    if (!work->launch(work->data, 0) ||
        !DRIVER_CALL(&m->driver, cuStreamSynchronize(m->stream)) ||
        !time_launch(m, work, 0, &us))
        return false;
    double wanted = fmin(REPLAY_US / fmax(us, 0.1), LAUNCHES_MAX);
    unsigned rounds = (unsigned)ceil(wanted / work->copies);
    *launches = work->copies * (rounds > 0 ? rounds : 1);
    return true;
}

/* A capture that has begun is ended in any case. */
static bool capture(const Measure *m, const MeasureWork *work, Graph *g)
{
    const Driver *d = &m->driver;
    if (!DRIVER_CALL(d, cuStreamBeginCapture(m->stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)))
        return false;
    bool ok = true;
    for (unsigned i = 0; ok && i < g->launches; i++)
        ok = work->launch(work->data, i % work->copies);
    ok &= DRIVER_CALL(d, cuStreamEndCapture(m->stream, &g->graph));
    return ok && DRIVER_CALL(d, cuGraphInstantiate(&g->exec, g->graph, 0));
}

static bool replay(const Measure *m, const Graph *g, double *us)
{
    const Driver *d = &m->driver;
    bool ok = DRIVER_CALL(d, cuEventRecord(m->start, m->stream)) &&
              DRIVER_CALL(d, cuGraphLaunch(g->exec, m->stream)) &&
              DRIVER_CALL(d, cuEventRecord(m->end, m->stream)) && read_time(m, us);
    if (ok)
        *us /= g->launches;
    return ok;
}

/* Frees a graph, also a part of one; waits for its launches. */
static void graph_close(const Measure *m, Graph *g)
{
    m->driver.cuStreamSynchronize(m->stream);
    if (g->exec)
        m->driver.cuGraphExecDestroy(g->exec);
    if (g->graph)
        m->driver.cuGraphDestroy(g->graph);
}

static bool replays(const Measure *m, const Graph *g, unsigned count, double *us)
{
    bool ok = true;
    for (unsigned i = 0; ok && i < count; i++)
        ok = replay(m, g, &us[i]);
    return ok;
}

static bool load(const Measure *m, const Graph *g)
{
    int64_t end = clock_nanoseconds() + MEASURE_LOAD_MS * MILLISECOND;
    double unused;
    bool ok = true;
    while (ok && clock_nanoseconds() < end)
        ok = replay(m, g, &unused);
    return ok;
}

static bool replays_loaded(const Measure *m, const Graph *g, MeasureTimes *times)
{
    times->count = MEASURE_REPLAYS;
    return load(m, g) && replays(m, g, times->count, times->us);
}

/* Replays in bursts, each after a rest; the first replay of a burst wakes the device and does
 * not count. However long one replay takes, what ran since the last rest is a burst at most. */
static bool replays_rested(const Measure *m, const Graph *g, MeasureTimes *times)
{
    unsigned *count = &times->count;
    double unused;
    bool ok = replay(m, g, &unused);            /* brings the graph to the device */
    for (unsigned burst = 0; ok && burst < MEASURE_BURSTS && *count < MEASURE_REPLAYS; burst++) {
        rest(MEASURE_REST_MS * MILLISECOND);
        int64_t end = clock_nanoseconds() + MEASURE_BURST_MS * MILLISECOND;
        ok = replay(m, g, &unused);
        do
            ok = ok && replay(m, g, &times->us[(*count)++]);
        while (ok && *count < MEASURE_REPLAYS && clock_nanoseconds() < end);
    }
    return ok;
}

bool measure_graph(Measure *m, const MeasureWork *work, MeasureState state, MeasureTimes *times)
{
    Graph g = {0};
    *times = (MeasureTimes){0};
    bool ok = count_launches(m, work, &g.launches) && capture(m, work, &g) &&
              (state == MEASURE_LOADED ? replays_loaded : replays_rested)(m, &g, times);
    times->launches = g.launches;
    graph_close(m, &g);
    return ok;
}

static double least(const double *us, unsigned count)
{
    double result = us[0];
    for (unsigned i = 1; i < count; i++)
        result = fmin(result, us[i]);
    return result;
}

/* Replays that go on only while the least of them is near enough to `best`. */
static bool replays_below(const Measure *m, const Graph *g, double best, double *us,
                          bool *whole)
{
    /* The first replay also brings the graph to the device. */
    static const struct {
        unsigned skip, count;
        double most;            /* times the best */
    } stages[] = {{1, WARM_UP, 1.25}, {0, 10, 1.05}};
    MeasureTimes times = {.count = MEASURE_REPLAYS};
    *whole = true;
    for (size_t i = 0; *whole && i < sizeof stages / sizeof *stages; i++) {
        if (!replays(m, g, stages[i].count, times.us))
            return false;
        *us = least(times.us + stages[i].skip, stages[i].count - stages[i].skip);
        *whole = best == 0 || *us <= stages[i].most * best;
    }
    if (!*whole)
        return true;
    bool ok = replays(m, g, times.count, times.us);
    *us = ok ? measure_summary(&times).median : 0;
    return ok;
}

bool measure_graph_below(Measure *m, const MeasureWork *work, double best, double *us,
                         bool *whole)
{
    Graph g = {0};
    *us = 0;
    *whole = false;
    bool ok = count_launches(m, work, &g.launches) && capture(m, work, &g);
    rest(m->ended - m->began - (clock_nanoseconds() - m->ended));
    m->began = clock_nanoseconds();
    ok = ok && replays_below(m, &g, best, us, whole);
    m->ended = clock_nanoseconds();
    graph_close(m, &g);
    return ok;
}

/* ---- what they say -------------------------------------------------- */

static int compare_times(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

Summary measure_summary(MeasureTimes *times)
{
    const double *us = times->us;
    unsigned count = times->count, last = count - 1;
    qsort(times->us, count, sizeof *us, compare_times);
    return (Summary){(us[last / 2] + us[count / 2]) / 2, us[(last + 5) / 10],
                     us[(9 * last + 5) / 10]};
}
