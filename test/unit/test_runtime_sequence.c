/* Sequences: launches by one graph, and one by one where that cannot be, on a fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <pthread.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

#define MAKE                                                                                  \
    "cuThreadExchangeStreamCaptureMode cuGraphCreate cuGraphAddKernelNode_v2 "                 \
    "cuGraphAddKernelNode_v2 cuGraphAddDependencies_v2 cuGraphInstantiateWithFlags "           \
    "cuThreadExchangeStreamCaptureMode "
#define ASK "cuCtxGetCurrent cuStreamIsCapturing "
#define RUN                                                                                   \
    "cuGraphExecKernelNodeSetParams_v2 cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch"
#define ONE_BY_ONE "cuCtxGetCurrent cuLaunchKernel cuCtxGetCurrent cuLaunchKernel"

enum { KERNELS = 2, THREADS = 6, RUNS = 200 };

/* Two kernels that are prepared on device 0, whose context is current, and their sequence. */
typedef struct Fixture {
    tilus_rt *rt;
    tilus_kernel *kernels[KERNELS];
    tilus_sequence *sequence;
} Fixture;

static tilus_kernel *create_for_hopper(tilus_rt *rt, bool waits)
{
    tilus_kernel_info info = scale;
    info.overlaps = waits;
    tilus_artefact artefact = artefact_of(&info, ptx);
    artefact.target = "sm_90";
    tilus_kernel *kernel;
    assert_ok(tilus_kernel_create(rt, &artefact, &kernel));
    assert_ok(tilus_kernel_prepare(kernel, 0));
    return kernel;
}

static Fixture open_sequence(bool second_waits)
{
    fake->capability = 90;
    Fixture f = {.rt = open_fake()};
    f.kernels[0] = create_for_hopper(f.rt, false);
    f.kernels[1] = create_for_hopper(f.rt, second_waits);
    assert_ok(tilus_sequence_create(f.kernels, KERNELS, &f.sequence));
    set_current(0);
    return f;
}

static void close_sequence(Fixture *f)
{
    tilus_sequence_free(f->sequence);
    for (int i = 0; i < KERNELS; i++)
        tilus_kernel_unload(f->kernels[i]);
    tilus_rt_close(f->rt);
    set_current(FAKE_NO_CONTEXT);
    assert_nothing_left();
}

/* Runs it with pointers `p` and `p` + 16, and `rows` of the first kernel. */
static tilus_status run_rows(const Fixture *f, tilus_stream stream, uint64_t p, int64_t rows)
{
    const tilus_arg args[KERNELS][4] = {
        {{.pointer = p}, {.integer = rows}, {.integer = 3}, {.integer = 1}},
        {{.pointer = p + 16}, {.integer = 48}, {.integer = 3}, {.integer = 1}}};
    return tilus_sequence_run(f->sequence, stream,
                              (tilus_sequence_launch[]){{args[0], 4}, {args[1], 4}});
}

static tilus_status run(const Fixture *f, tilus_stream stream, uint64_t p)
{
    return run_rows(f, stream, p, 32);
}

static int set_up_graphs(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA_GRAPHS);
    return 0;
}

/* Checks that launches `first` and the next are of pointers `p` and `p` + 16 on the stream. */
static void check_launches(int first, uint64_t p, const void *stream)
{
    for (int i = 0; i < KERNELS; i++) {
        const FakeLaunch *l = &fake->log[(first + i) % FAKE_LAUNCHES];
        assert_int_equal(l->parameters[0], p + 16 * (uint64_t)i);
        assert_int_equal(l->grid[0], 2 + i);
        assert_int_equal(l->block[0], 64);
        assert_int_equal(l->shared, 96 * 1024);
        assert_ptr_equal(l->stream, stream);
    }
}

static void a_run_sets_and_launches_one_graph(void **state)
{
    (void)state;
    Fixture f = open_sequence(true);
    void *stream = &fake->streams[0];
    assert_calls(run(&f, stream, 0x1000), ASK MAKE RUN);
    assert_calls(run(&f, stream, 0x2000), ASK RUN);
    assert_int_equal(fake->launches, 4);
    assert_int_equal(fake->early, 2);
    check_launches(0, 0x1000, stream);
    check_launches(2, 0x2000, stream);
    assert_calls(run(&f, NULL, 0x3000), ASK MAKE RUN);
    check_launches(4, 0x3000, NULL);
    close_sequence(&f);
}

static void kernels_that_do_not_wait_follow_plainly(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    assert_calls(run(&f, NULL, 0x1000), ASK MAKE RUN);
    assert_int_equal(fake->early, 0);
    close_sequence(&f);
}

static void captures_and_empty_grids_are_launched_one_by_one(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    fake->streams[0].capturing = 1;
    assert_calls(run(&f, &fake->streams[0], 0x1000), ASK ONE_BY_ONE);
    fake->streams[0].capturing = 0;
    check_launches(0, 0x1000, &fake->streams[0]);
    assert_calls(run_rows(&f, NULL, 0x1000, 0), ASK "cuCtxGetCurrent cuLaunchKernel");
    assert_int_equal(fake->launches, 3);
    close_sequence(&f);
}

/* The capture of another stream goes on while a graph is made. */
static void graphs_are_made_beside_captures(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    fake->streams[1].capturing = 1;
    assert_calls(run(&f, &fake->streams[0], 0x1000), ASK MAKE RUN);
    fake->streams[1].capturing = 0;
    assert_int_equal(fake->refused, 0);
    close_sequence(&f);
}

static void what_is_wrong_is_said_as_of_a_launch(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    assert_fails(run_rows(&f, NULL, 0x1000, 33), TILUS_ERROR_ARGUMENT, "argument %m = 33 is not divisible by 16");
    assert_fails(run(&f, NULL, 0x1008), TILUS_ERROR_ARGUMENT, "argument %p");
    assert_int_equal(fake->launches, 0);
    fake->sticky[0] = 700;
    assert_fails(run(&f, NULL, 0x1000), TILUS_ERROR_LOST, "context lost: ");
    close_sequence(&f);
}

/* The first run in a context loads kernels; those of another device are where their stream is. */
static void other_devices_are_served(void **state)
{
    (void)state;
    fake->device_count = 2;
    Fixture f = open_sequence(false);
    fake->streams[1].device = 1;
    assert_ok(run(&f, &fake->streams[0], 0x1000));
    assert_ok(run(&f, &fake->streams[1], 0x2000));
    assert_int_equal(fake->launches_on[0], 2);
    assert_int_equal(fake->launches_on[1], 2);
    assert_ok(run(&f, &fake->streams[0], 0x1000));
    set_current(1);
    assert_ok(run(&f, NULL, 0x3000));
    assert_int_equal(fake->launches_on[0], 4);
    assert_int_equal(fake->launches_on[1], 4);
    close_sequence(&f);
}

static void few_streams_have_graphs(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    for (int i = 0; i < 4; i++)
        assert_calls(run(&f, &fake->streams[i], 0x1000), ASK MAKE RUN);
    assert_calls(run(&f, &fake->streams[4], 0x1000), ASK ONE_BY_ONE);
    assert_calls(run(&f, &fake->streams[3], 0x1000), ASK RUN);
    close_sequence(&f);
}

/* A graph that is not made is not tried again; one that is refused is made anew. */
static void failures_of_graphs_are_no_failures(void **state)
{
    (void)state;
    static const char *const calls[] = {"cuGraphCreate:801", "cuGraphAddKernelNode_v2:801",
                                        "cuGraphAddDependencies_v2:801",
                                        "cuGraphInstantiateWithFlags:2"};
    for (size_t i = 0; i < COUNT(calls); i++) {
        set_up_graphs(NULL);
        Fixture f = open_sequence(false);
        fake->fail = calls[i];
        assert_ok(run(&f, NULL, 0x1000));
        fake->fail = NULL;
        assert_calls(run(&f, NULL, 0x2000), ONE_BY_ONE);
        check_launches(2, 0x2000, NULL);
        close_sequence(&f);
    }
    set_up_graphs(NULL);
    Fixture f = open_sequence(false);
    fake->fail = "cuGraphLaunch:1";
    assert_ok(run(&f, NULL, 0x1000));
    check_launches(0, 0x1000, NULL);
    fake->fail = NULL;
    assert_calls(run(&f, NULL, 0x2000), ASK MAKE RUN);
    close_sequence(&f);
}

static void drivers_without_graphs_launch_one_by_one(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA);
    Fixture f = open_sequence(false);
    assert_calls(run(&f, NULL, 0x1000), ONE_BY_ONE);
    close_sequence(&f);
}

static void counts_are_checked(void **state)
{
    (void)state;
    Fixture f = open_sequence(false);
    tilus_kernel *six[] = {f.kernels[0], f.kernels[0], f.kernels[0],
                           f.kernels[0], f.kernels[0], f.kernels[0]};
    tilus_sequence *none;
    assert_fails(tilus_sequence_create(six, 6, &none), TILUS_ERROR_ARGUMENT,
                 "a sequence of 6 kernels, not 1 to 5");
    assert_null(none);
    assert_fails(tilus_sequence_create(six, 0, &none), TILUS_ERROR_ARGUMENT, "of 0 kernels");
    tilus_sequence_free(NULL);
    close_sequence(&f);
}

typedef struct Worker {
    const Fixture *fixture;
    int stream;
    int failed;
} Worker;

static void *run_often(void *data)
{
    Worker *w = data;
    set_current(0);
    for (int i = 0; i < RUNS; i++)
        w->failed += run(w->fixture, &fake->streams[w->stream], 0x1000) != TILUS_OK;
    set_current(FAKE_NO_CONTEXT);
    return NULL;
}

static void threads_run_at_the_same_time(void **state)
{
    (void)state;
    Fixture f = open_sequence(true);
    Worker workers[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (Worker){.fixture = &f, .stream = i % 5};
        assert_int_equal(pthread_create(&threads[i], NULL, run_often, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failed, 0);
    }
    assert_int_equal(fake->launches, THREADS * RUNS * KERNELS);
    assert_int_equal(fake->streams[0].launches, 2 * RUNS * KERNELS);
    close_sequence(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_run_sets_and_launches_one_graph, set_up_graphs),
        cmocka_unit_test_setup(kernels_that_do_not_wait_follow_plainly, set_up_graphs),
        cmocka_unit_test_setup(captures_and_empty_grids_are_launched_one_by_one, set_up_graphs),
        cmocka_unit_test_setup(graphs_are_made_beside_captures, set_up_graphs),
        cmocka_unit_test_setup(what_is_wrong_is_said_as_of_a_launch, set_up_graphs),
        cmocka_unit_test_setup(other_devices_are_served, set_up_graphs),
        cmocka_unit_test_setup(few_streams_have_graphs, set_up_graphs),
        cmocka_unit_test_setup(failures_of_graphs_are_no_failures, set_up_graphs),
        cmocka_unit_test_setup(drivers_without_graphs_launch_one_by_one, set_up_graphs),
        cmocka_unit_test_setup(counts_are_checked, set_up_graphs),
        cmocka_unit_test_setup(threads_run_at_the_same_time, set_up_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
