/* How long measuring rests or loads the device before, on a driver made for the tests, whose
 * replays take no time. */
#define _POSIX_C_SOURCE 200809L
#include "common/measure.h"

#include "tilus/runtime.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

enum { NS_OF_MS = 1000000 };

static tilus_rt *rt;
static Measure measure;

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static bool launch(void *data, unsigned copy)
{
    (void)data;
    (void)copy;
    return true;
}

static const MeasureWork work = {launch, NULL, 1};

static int open_device(void **state)
{
    (void)state;
    char message[256];
    setenv("TILUS_LIBCUDA", TILUS_FAKE_CUDA_BENCH, 1);
    bool ok = tilus_rt_open(NULL, &rt, message, sizeof message) == TILUS_OK &&
              measure_open(&measure, "test_measure", 0);
    return ok ? 0 : -1;
}

static int close_device(void **state)
{
    (void)state;
    measure_close(&measure);
    tilus_rt_close(rt);
    return 0;
}

static double milliseconds_of(MeasureState state, unsigned *count)
{
    MeasureTimes times;
    int64_t begin = now();
    assert_true(measure_graph(&measure, &work, state, &times));
    assert_true(times.launches > 0 && times.count <= MEASURE_REPLAYS);
    *count = times.count;
    return (double)(now() - begin) / NS_OF_MS;
}

static void test_states(void **state)
{
    (void)state;
    unsigned count;
    assert_true(milliseconds_of(MEASURE_RESTED, &count) >= MEASURE_REST_MS);
    assert_int_equal(count, MEASURE_REPLAYS);
    assert_true(milliseconds_of(MEASURE_LOADED, &count) >= MEASURE_LOAD_MS);
    assert_int_equal(count, MEASURE_REPLAYS);
}

/* Replays of 8 ms: the one that wakes the device and two that count begin within a burst. The last
 * burst ends what takes long. */
static void test_bursts(void **state)
{
    (void)state;
    enum { A_BURST = 2 };
    unsigned count;
    setenv("TILUS_FAKE_REPLAY_MS", "8", 1);
    double ms = milliseconds_of(MEASURE_RESTED, &count);
    unsetenv("TILUS_FAKE_REPLAY_MS");
    assert_in_range(count, MEASURE_BURSTS, MEASURE_BURSTS * A_BURST);
    assert_true(ms >= MEASURE_BURSTS * (MEASURE_REST_MS + 8.0 * 2));
}

static void test_summary(void **state)
{
    (void)state;
    MeasureTimes few = {.us = {9, 1, 8, 2, 7, 3, 6, 4, 5, 10}, .count = 10};
    Summary s = measure_summary(&few);
    assert_true(s.median == 5.5 && s.low == 2 && s.high == 9);
}

/* As long as the replays before took, less what has passed since. */
static void test_rest_between(void **state)
{
    (void)state;
    enum { BUSY_MS = 200, SINCE_MS = 50 };
    double us;
    bool whole;
    int64_t begin = now();
    measure.ended = begin - SINCE_MS * (int64_t)NS_OF_MS;
    measure.began = measure.ended - BUSY_MS * (int64_t)NS_OF_MS;
    assert_true(measure_graph_below(&measure, &work, 0, &us, &whole));
    int64_t rested = now() - begin;
    assert_true(whole && isfinite(us));
    assert_true(rested >= (BUSY_MS - SINCE_MS) * (int64_t)NS_OF_MS);
    assert_true(measure.began >= begin + (BUSY_MS - SINCE_MS) * (int64_t)NS_OF_MS);
    assert_true(measure.ended >= measure.began && measure.ended <= now());
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_states),
                                       cmocka_unit_test(test_bursts), cmocka_unit_test(test_summary),
                                       cmocka_unit_test(test_rest_between)};
    return cmocka_run_group_tests(tests, open_device, close_device);
}
