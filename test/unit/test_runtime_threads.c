/* The runtime in many threads, on a fake driver with two devices. Built with
 * -fsanitize=thread (preset tsan) it finds what is not ordered. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

#include <pthread.h>

enum { LAUNCHERS = 6, PREPARERS = 4, LAUNCHES = 400, ROUNDS = 40 };

/* State that all threads share. */
typedef struct Shared {
    tilus_rt *rt;
    tilus_kernel *kernel;
    atomic_int failures;
} Shared;

typedef struct Thread {
    Shared *shared;
    int number;
    pthread_t id;
} Thread;

/* cmocka's assertions are for the main thread. */
static void expect(Shared *s, bool is_so)
{
    if (!is_so)
        s->failures++;
}

static void *launch_often(void *data)
{
    const Thread *t = data;
    int device = t->number % 2;
    set_current(t->number % 3 < 2 ? t->number % 3 : FAKE_NO_CONTEXT);
    for (int i = 0; i < LAUNCHES; i++) {
        expect(t->shared, tilus_launch(t->shared->kernel, &fake->streams[device], good_args,
                                       COUNT(good_args), 0, 0) == TILUS_OK);
    }
    return NULL;
}

/* Kernels of its own, on both devices, and one failure, whose text is its own. */
static void *prepare_often(void *data)
{
    const Thread *t = data;
    char expected[64];
    tilus_arg args[COUNT(good_args)];
    memcpy(args, good_args, sizeof args);
    args[1].integer = 32 + 1 + t->number;
    snprintf(expected, sizeof expected, "%%m = %d is not divisible", 33 + t->number);
    for (int i = 0; i < ROUNDS; i++) {
        const tilus_artefact artefact = artefact_of(&scale, ptx);
        tilus_kernel *kernel = NULL;
        expect(t->shared, tilus_kernel_create(t->shared->rt, &artefact, &kernel) == TILUS_OK);
        expect(t->shared, tilus_launch(kernel, NULL, args, COUNT(args), 0, 0) != TILUS_OK);
        expect(t->shared, tilus_kernel_prepare(kernel, i % 2) == TILUS_OK);
        expect(t->shared, tilus_kernel_prepare(t->shared->kernel, i % 2) == TILUS_OK);
        expect(t->shared, tilus_launch(kernel, &fake->streams[i % 2], good_args,
                                       COUNT(good_args), 0, 0) == TILUS_OK);
        expect(t->shared, strstr(tilus_rt_error(), expected) != NULL);
        tilus_kernel_unload(kernel);
    }
    return NULL;
}

static void run_threads(Shared *s)
{
    Thread threads[LAUNCHERS + PREPARERS];
    for (int i = 0; i < LAUNCHERS + PREPARERS; i++) {
        threads[i] = (Thread){.shared = s, .number = i};
        assert_int_equal(pthread_create(&threads[i].id, NULL,
                                        i < LAUNCHERS ? launch_often : prepare_often,
                                        &threads[i]), 0);
    }
    for (int i = 0; i < LAUNCHERS + PREPARERS; i++)
        pthread_join(threads[i].id, NULL);
    assert_int_equal(s->failures, 0);
}

/* One kernel is launched on two devices, prepared by whoever comes first, while others
 * come and go. */
static void threads_share_a_kernel(void **state)
{
    (void)state;
    static const char *const drivers[] = {TILUS_FAKE_CUDA, TILUS_FAKE_CUDA_OLD};
    for (size_t i = 0; i < COUNT(drivers); i++) {
        use_driver(drivers[i]);
        fake->device_count = 2;
        fake->streams[1].device = 1;
        Shared s = {.rt = open_fake()};
        s.kernel = create(s.rt, &scale, ptx);
        run_threads(&s);
        assert_int_equal(fake->launches, LAUNCHERS * LAUNCHES + PREPARERS * ROUNDS);
        assert_int_equal(fake->streams[0].launches, fake->launches_on[0]);
        assert_int_equal(fake->streams[1].launches, fake->launches_on[1]);
        assert_int_equal(fake->retained, 2);
        tilus_kernel_unload(s.kernel);
        tilus_rt_close(s.rt);
        assert_nothing_left();
    }
}

/* Launches on device 0 until it is lost, and some more; device 1 goes on. */
static void *launch_until_lost(void *data)
{
    static const char lost[] = "context lost: kernel @scale, grid [2, 1, 1]";
    const Thread *t = data;
    for (int i = 0; i < LAUNCHES; i++) {
        if (t->number == 0 && i == LAUNCHES / 2)
            fake->sticky[0] = 700;
        tilus_status status = tilus_launch(t->shared->kernel, &fake->streams[t->number % 2],
                                           good_args, COUNT(good_args), 0, 0);
        expect(t->shared, status == TILUS_OK ||
                          (t->number % 2 == 0 && status == TILUS_ERROR_LOST &&
                           strstr(tilus_rt_error(), lost)));
    }
    return NULL;
}

static void threads_lose_a_device(void **state)
{
    (void)state;
    fake->device_count = 2;
    fake->streams[1].device = 1;
    Shared s = {.rt = open_fake()};
    s.kernel = create(s.rt, &scale, ptx);
    Thread threads[LAUNCHERS];
    for (int i = 0; i < LAUNCHERS; i++) {
        threads[i] = (Thread){.shared = &s, .number = i};
        assert_int_equal(pthread_create(&threads[i].id, NULL, launch_until_lost, &threads[i]),
                         0);
    }
    for (int i = 0; i < LAUNCHERS; i++)
        pthread_join(threads[i].id, NULL);
    assert_int_equal(s.failures, 0);
    assert_fails(tilus_rt_synchronize(s.rt, 0), TILUS_ERROR_LOST, "context lost");
    assert_ok(tilus_rt_synchronize(s.rt, 1));
    tilus_kernel_unload(s.kernel);
    tilus_rt_close(s.rt);
    assert_nothing_left();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_share_a_kernel, set_up),
        cmocka_unit_test_setup(threads_lose_a_device, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
