/* The matmul library on a fake driver: what it launches, and what it refuses to; failing
 * allocations, and threads. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "failing_memory.h"
#include "matmul_kernels.h"

static const tilus_matmul_problem u4 = {.struct_size = sizeof u4, .weights = "u4", .n = 200,
                                        .k = 1100, .group = 128};

/* ---- locks ------------------------------------------------------------------ */

int __real_pthread_mutex_lock(pthread_mutex_t *mutex);
int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex);

static _Thread_local int locks;

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex)
{
    locks++;
    return __real_pthread_mutex_lock(mutex);
}

/* ---- running ------------------------------------------------------------------- */

typedef struct Session {
    tilus_rt *rt;
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
    FakeCompiler compiler;
} Session;

static void session_open(Session *s, tilus_matmul_problem problem)
{
    const tilus_matmul_options options = {.struct_size = sizeof options, .compile = fake_compile,
                                          .compile_data = &s->compiler};
    s->matmul = open_matmul(&s->rt, &options);
    s->plan = plan_of(s->matmul, problem);
}

static void session_close(Session *s)
{
    tilus_matmul_plan_free(s->plan);
    tilus_matmul_close(s->matmul);
    tilus_rt_close(s->rt);
    assert_nothing_left();
}

/* Arguments of the two launches, as the template orders them. */
static void launches_the_right_arguments(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "u4", .n = 8192, .k = 1500,
                                            .group = 128, .bias = true, .residual = true});
    use_config(s.plan, 33, (MatmulConfig){.rows = 64, .warps_n = 2, .warps_k = 1,
                                          .stage_k_tiles = 2, .stages = 2, .columns = 8,
                                          .tiles = 2, .prearranged_a = 1, .per_sm = 2});
    assert_ok(tilus_matmul_prepare(s.plan, 33));
    tilus_matmul_call call = call_for(s.plan, 33);
    call.a_stride = 1600;
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));

    /* 3 columns of 16 rows of A; 64 tiles of 6 iterations for 264 blocks; 12 slices. */
    uint64_t prepared = 0x100000 + TILUS_MATMUL_SEMAPHORES;
    uint64_t parts = prepared + 3 * 12 * 2 * (512 + 8) * 4;
    const uint64_t prepare[] = {0x10000, prepared, 33, 1500, 1600, 12};
    const uint64_t product[] = {0x20000, 0x20000, 0x20000, 0x10000, prepared, 0x100000, parts,
                                0x30000, 0x40000, 0x50000, 33, 8192, 1500, 1600, 12, 264, 1,
                                120};
    assert_int_equal(fake->launches, 2);
    const FakeLaunch *first = &fake->log[0], *second = &fake->log[1];
    assert_string_equal(first->name, "prepare");
    assert_string_equal(second->name, "matmul");
    assert_memory_equal(first->parameters, prepare, sizeof prepare);
    assert_memory_equal(second->parameters, product, sizeof product);
    assert_memory_equal(first->grid, ((unsigned[]){12, 6, 1}), sizeof first->grid);
    assert_memory_equal(second->grid, ((unsigned[]){264, 3, 1}), sizeof second->grid);
    assert_ptr_equal(first->stream, &fake->streams[0]);
    assert_ptr_equal(second->stream, &fake->streams[0]);
    assert_true(parts + 3 * 264 * 128 * 16 * 4 <= 0x100000 + call.workspace_size);
    session_close(&s);
}

/* Where each block has whole tiles, they do not meet, and need no place for that. */
static void blocks_of_whole_tiles_need_no_parts(void **state)
{
    (void)state;
    MatmulConfig config = {.rows = 64, .warps_n = 1, .warps_k = 4, .stage_k_tiles = 1,
                           .stages = 2, .columns = 8, .tiles = 1, .prearranged_a = 2};
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "u4", .n = 200, .k = 1500});
    use_config(s.plan, 8, config);
    Product p = product_of(s.plan, plan_choice(s.plan, 8), 8);
    assert_true(!p.shares_tiles && p.blocks == 4);
    assert_int_equal(p.size, p.partials);
    const tilus_matmul_call call = call_for(s.plan, 8);
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
    assert_int_equal(fake->launches, 2);
    assert_string_equal(fake->log[1].name, "matmul");
    config.per_sm = 1;
    use_config(s.plan, 8, config);
    p = product_of(s.plan, plan_choice(s.plan, 8), 8);
    assert_true(p.shares_tiles && p.blocks == 12);
    assert_int_equal(p.size - p.partials, 12 * 64 * 8 * 4);
    session_close(&s);
}

static void check_many_rows(bool gated)
{
    enum { M = 3000, N = 8192, K = 4096, COLUMNS = 65536 / 396 / 2 * 2, ROWS = 8 * COLUMNS };
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "u4", .n = N, .k = K, .group = 128,
                                            .residual = true, .result = "f32", .gated = gated});
    uint64_t columns = gated ? N / 2 : N;
    use_config(s.plan, M, (MatmulConfig){.rows = 64, .warps_n = 1, .warps_k = 4,
                                         .stage_k_tiles = 1, .stages = 2, .columns = 8, .tiles = 1, .prearranged_a = 1,
                                     .per_sm = 3});
    const tilus_matmul_call call = call_for(s.plan, M);
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
    assert_int_equal(fake->launches, 6);
    for (int i = 0; i < 3; i++) {
        const FakeLaunch *prepare = &fake->log[2 * i], *product = prepare + 1;
        int64_t m = i < 2 ? ROWS : M - 2 * ROWS;
        assert_int_equal(prepare->parameters[0], 0x10000 + 2 * i * ROWS * K);
        assert_int_equal(prepare->parameters[2], m);
        assert_int_equal(product->parameters[3], 0x10000 + 2 * i * ROWS * K);
        assert_int_equal(product->parameters[8], 0x40000 + 4 * columns * i * ROWS);
        assert_int_equal(product->parameters[9], 0x50000 + 4 * columns * i * ROWS);
        assert_int_equal(product->parameters[10], m);
        assert_true(product->grid[0] * product->grid[1] <= 65536);
    }
    session_close(&s);
}

/* More rows than there are semaphores for are several products. */
static void cuts_many_rows(void **state)
{
    (void)state;
    check_many_rows(false);
}

static void cuts_many_rows_of_gates(void **state)
{
    (void)state;
    check_many_rows(true);
}

/* Tables of scales and zero points, where all of k has one scale. */
static void launches_with_tables(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "i4", .n = 200, .k = 1100,
                                            .zeros = TILUS_ZEROS_INTEGER});
    const Packed *p = &s.plan->packed;
    const tilus_matmul_call call = call_for(s.plan, 1);
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
    const FakeLaunch *product = &fake->log[fake->launches - 1];
    assert_int_equal(product->parameters[1], 0x20000 + p->scales);
    assert_int_equal(product->parameters[2], 0x20000 + p->zeros);
    assert_true(p->scales % 256 == 0 && p->zeros % 256 == 0 && p->scales < p->zeros);
    assert_int_equal(p->zeros - p->scales, (size_t)(p->tiles * p->rows * 2 + 255) / 256 * 256);
    session_close(&s);
}

static void refuses_bad_calls(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "u4", .n = 200, .k = 1104, .group = 128,
                                            .bias = true, .residual = true});
    const tilus_matmul_call good = call_for(s.plan, 5);
    char small[64];
    snprintf(small, sizeof small, "workspace_size is %zu; 5 rows need %zu",
             good.workspace_size - 1, good.workspace_size);
    const char *messages[] = {
        "m is -1, not 0 to 65536", "m is 65537", "a is 0", "a is 0x10008, not a multiple of 16",
        "a_stride is 1096, not 0 or k, 1104, to 8388608", "a_stride is -8",
        "a_stride is 8388616", "weights is 0",
        "weights is 0x20010, not a multiple of 256", "bias is 0", "residual is 0x40004",
        "c is 0", "c is 0x50002", "workspace is 0",
        "workspace is 0x100080, not a multiple of 256", small};
    tilus_matmul_call bad[COUNT(messages)], *next = bad;
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    (next++)->m = -1;
    (next++)->m = 65537;
    (next++)->a = 0;
    (next++)->a += 8;
    (next++)->a_stride = 1096;
    (next++)->a_stride = -8;
    (next++)->a_stride = 8388616;
    (next++)->weights = 0;
    (next++)->weights += 16;
    (next++)->bias = 0;
    (next++)->residual += 4;
    (next++)->c = 0;
    (next++)->c += 2;
    (next++)->workspace = 0;
    (next++)->workspace += 128;
    (next++)->workspace_size--;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_fails(tilus_matmul_run(s.plan, &fake->streams[0], &bad[i]),
                     TILUS_ERROR_ARGUMENT, messages[i]);
    assert_fails(tilus_matmul_run(s.plan, NULL, NULL), TILUS_ERROR_ARGUMENT, "call is NULL");
    tilus_matmul_call unsized = good;
    unsized.struct_size = 0;
    assert_fails(tilus_matmul_run(s.plan, NULL, &unsized), TILUS_ERROR_ARGUMENT,
                 "call: struct_size is 0, not sizeof(tilus_matmul_call)");
    assert_fails(tilus_matmul_prepare(s.plan, 0), TILUS_ERROR_ARGUMENT, "m is 0");
    assert_fails(tilus_matmul_prepare(s.plan, 65537), TILUS_ERROR_ARGUMENT, "m is 65537");
    assert_int_equal(fake->launches, 0);
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &good));
    assert_int_equal(fake->launches, launches_of(s.plan, 5));
    session_close(&s);
}

/* Refuses operands that the problem does not have, which would be ignored. */
static void refuses_what_is_too_much(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, u4);
    tilus_matmul_call call = call_for(s.plan, 1);
    tilus_matmul_weights w = {sizeof w, (void *)0x1000, (void *)0x2000, (void *)0x3000,
                              .transposed = true};
    call.bias = 0x30000;
    assert_fails(tilus_matmul_run(s.plan, NULL, &call), TILUS_ERROR_ARGUMENT,
                 "call: bias is given, but the problem has none: give 0");
    call.bias = 0;
    call.residual = 0x30000;
    assert_fails(tilus_matmul_run(s.plan, NULL, &call), TILUS_ERROR_ARGUMENT,
                 "call: residual is given");
    assert_fails(tilus_matmul_pack_device(s.plan, NULL, &w, 0x100000), TILUS_ERROR_ARGUMENT,
                 "weights: zeros is given, but the problem has none: give NULL");
    assert_int_equal(fake->launches, 0);
    session_close(&s);
}

static void refuses_other_weights(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, u4);
    tilus_matmul_call call = call_for(s.plan, 1);
    call.weights_identity = tilus_matmul_packed_identity(s.plan) ^ 1;
    assert_fails(tilus_matmul_run(s.plan, NULL, &call), TILUS_ERROR_ARGUMENT,
                 "call: weights_identity is 0x");
    call.weights_identity ^= 1;
    assert_ok(tilus_matmul_run(s.plan, NULL, &call));
    session_close(&s);
}

/* Kernels of their own compute with strides that have fewer divisors than the problem's. */
static void takes_any_stride(void **state)
{
    (void)state;
    static const struct {
        int64_t k, planned, stride;
        const char *divisor;
    } cases[] = {
        {1024, 0, 0, "DIVISOR=128"},  {1024, 0, 1152, "DIVISOR=128"},
        {1024, 0, 1032, "DIVISOR=8"}, {1024, 0, 1025, "DIVISOR=1"},
        {1104, 0, 1152, "DIVISOR=8"}, {1104, 0, 1106, "DIVISOR=1"},
        {1101, 0, 1104, "DIVISOR=1"}, {1024, 1032, 1032, "DIVISOR=8"},
        {1024, 1032, 1033, "DIVISOR=1"}, {1024, 1032, 1152, "DIVISOR=8"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char last[MATMUL_TEXT_MAX] = "";
        Session s = {.compiler.last = last};
        session_open(&s, (tilus_matmul_problem){.weights = "u4", .n = 200, .k = cases[i].k,
                                                .group = 128, .a_stride = cases[i].planned});
        tilus_matmul_call call = call_for(s.plan, 1);
        call.a_stride = cases[i].stride;
        assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
        assert_string_equal(strstr(last, "DIVISOR="), cases[i].divisor);
        if (cases[i].stride == cases[i].planned) {
            int calls = s.compiler.calls;
            assert_ok(tilus_matmul_prepare(s.plan, 1));
            assert_int_equal(s.compiler.calls, calls);
        }
        session_close(&s);
    }
}

/* A run of a plan that is prepared launches, and does nothing else. */
static void a_run_only_launches(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, u4);
    use_config(s.plan, 7, prearranged_config);
    assert_ok(tilus_matmul_prepare(s.plan, 7));
    const tilus_matmul_call call = call_for(s.plan, 7);
    set_current(0);
    locks = 0;
    allocations_left = 0;
    tilus_status status = tilus_matmul_run(s.plan, &fake->streams[0], &call);
    allocations_left = -1;
    assert_ok(status);
    assert_int_equal(locks, 0);
    assert_calls(tilus_matmul_run(s.plan, &fake->streams[0], &call),
                 "cuCtxGetCurrent cuLaunchKernel cuCtxGetCurrent cuLaunchKernel");
    session_close(&s);
}

/* Launches of a short product are one graph, those of a long one begin early instead. */
static void a_short_product_is_launched_at_once(void **state)
{
    (void)state;
    use_driver(TILUS_FAKE_CUDA_GRAPHS);
    for (int us = 9; us <= 10; us++) {
        Session s = {0};
        session_open(&s, u4);
        use_config(s.plan, 7, prearranged_config);
        ((Choice *)plan_choice(s.plan, 7))->us = us;
        assert_ok(tilus_matmul_prepare(s.plan, 7));
        assert_ok(tilus_matmul_prepare(s.plan, 7));
        const tilus_matmul_call call = call_for(s.plan, 7);
        set_current(0);
        assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
        locks = 0;
        allocations_left = 0;
        tilus_status status = tilus_matmul_run(s.plan, &fake->streams[0], &call);
        allocations_left = -1;
        assert_ok(status);
        assert_int_equal(locks, 0);
        assert_calls(tilus_matmul_run(s.plan, &fake->streams[0], &call),
                     us == 9 ? "cuCtxGetCurrent cuStreamIsCapturing "
                               "cuGraphExecKernelNodeSetParams_v2 "
                               "cuGraphExecKernelNodeSetParams_v2 cuGraphLaunch"
                             : "cuCtxGetCurrent cuLaunchKernel cuCtxGetCurrent cuLaunchKernel");
        assert_string_equal(fake->log[5].name, "matmul");
        session_close(&s);
        set_current(FAKE_NO_CONTEXT);
        fake->launches = 0;
    }
}

/* While a stream is captured nothing can be loaded, and what is prepared runs. */
static void runs_in_a_capture(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, u4);
    const tilus_matmul_call call = call_for(s.plan, 7);
    fake->streams[0].capturing = 1;
    assert_fails(tilus_matmul_run(s.plan, &fake->streams[0], &call), TILUS_ERROR_STATE,
                 "before the capture begins");
    fake->streams[0].capturing = 0;
    assert_ok(tilus_matmul_prepare(s.plan, 7));
    fake->streams[0].capturing = 1;
    assert_ok(tilus_matmul_run(s.plan, &fake->streams[0], &call));
    fake->streams[0].capturing = 0;
    assert_int_equal(fake->refused, 0);
    session_close(&s);
}

static void packs_on_the_device(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, (tilus_matmul_problem){.weights = "i4", .n = 200, .k = 1100,
                                            .zeros = TILUS_ZEROS_INTEGER});
    tilus_matmul_weights w = {sizeof w, (void *)0x1000, (void *)0x2000, (void *)0x3000,
                              .transposed = true};
    assert_ok(tilus_matmul_pack_device(s.plan, &fake->streams[0], &w, 0x100000));
    const Packed *p = &s.plan->packed;
    const uint64_t expected[] = {0x1000, 0x2000, 0x3000, 0x100000, 0x100000 + p->scales,
                                 0x100000 + p->zeros, 200, 1100, (uint64_t)p->slices};
    assert_string_equal(fake->log[0].name, "pack");
    assert_memory_equal(fake->log[0].parameters, expected, sizeof expected);
    assert_int_equal(fake->log[0].grid[0], p->slices);
    assert_fails(tilus_matmul_pack_device(s.plan, NULL, &w, 0x100001), TILUS_ERROR_ARGUMENT,
                 "packed is 0x100001, not a multiple of 256");
    assert_fails(tilus_matmul_pack_device(s.plan, NULL, NULL, 0x100000), TILUS_ERROR_ARGUMENT,
                 "weights is NULL");
    w.zeros = NULL;
    assert_fails(tilus_matmul_pack_device(s.plan, NULL, &w, 0x100000), TILUS_ERROR_ARGUMENT,
                 "zeros is NULL");
    session_close(&s);
}

/* Whatever context is current, if any, the plan says on which device. */
static void the_null_stream_is_of_the_device(void **state)
{
    (void)state;
    Session s = {0};
    session_open(&s, u4);
    const tilus_matmul_weights w = {sizeof w, (void *)0x1000, (void *)0x2000,
                                    .transposed = false};
    assert_ok(tilus_matmul_pack_device(s.plan, NULL, &w, 0x100000));
    assert_string_equal(fake->log[0].name, "pack");
    assert_null(fake->log[0].stream);
    const tilus_matmul_call call = call_for(s.plan, 7);
    assert_ok(tilus_matmul_run(s.plan, NULL, &call));       /* nothing was prepared */
    int launches = 1 + launches_of(s.plan, 7);
    assert_int_equal(fake->launches, launches);
    assert_string_equal(fake->log[launches - 1].name, "matmul");
    fake->fail = "cuLaunchKernel:1";
    assert_int_equal(tilus_matmul_run(s.plan, NULL, &call), TILUS_ERROR_DRIVER);
    fake->fail = NULL;
    session_close(&s);
}

static void the_null_stream_on_two_devices(void **state)
{
    (void)state;
    Session s = {0};
    fake->device_count = 2;
    session_open(&s, u4);
    tilus_matmul_plan *other;
    assert_ok(tilus_matmul_plan_create(s.matmul, &u4, 1, &other));
    const tilus_matmul_call call = call_for(s.plan, 7);
    int launches = launches_of(s.plan, 7);
    for (int current = FAKE_NO_CONTEXT; current < 2; current++) {
        set_current(current);
        assert_ok(tilus_matmul_run(s.plan, NULL, &call));
        assert_ok(tilus_matmul_run(other, (tilus_stream)2, &call));
        int runs = current - FAKE_NO_CONTEXT + 1;
        assert_int_equal(fake->launches_on[0], runs * launches);
        assert_int_equal(fake->launches_on[1], runs * launches);
    }
    set_current(FAKE_NO_CONTEXT);
    tilus_matmul_plan_free(other);
    session_close(&s);
}

/* ---- when things fail ---------------------------------------------------------------- */

/* All that a user does, with nothing left behind wherever it ends. */
static tilus_status use_everything(FakeCompiler *compiler, tilus_rt *rt)
{
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .directory = "/nowhere", .compile = fake_compile,
                                          .compile_data = compiler};
    static unsigned char codes[100], scales[4], zeros[2];
    const tilus_matmul_problem problem = {.struct_size = sizeof problem,
                                          .weights = "u4", .n = 2, .k = 100, .group = 128,
                                          .zeros = TILUS_ZEROS_INTEGER};
    const tilus_matmul_weights weights = {sizeof weights, codes, scales, zeros, .transposed = true};
    tilus_matmul *matmul;
    tilus_matmul_plan *plan = NULL;
    unsigned char packed[65536], part[65536];
    tilus_status status = tilus_matmul_open(rt, &options, &matmul);
    if (status == TILUS_OK)
        status = tilus_matmul_plan_create(matmul, &problem, 0, &plan);
    if (status == TILUS_OK)
        status = tilus_matmul_pack(plan, &weights, packed);
    if (status == TILUS_OK)
        status = tilus_matmul_shard(plan, packed, plan, 0, 0, part);
    if (status == TILUS_OK)
        status = tilus_matmul_prepare(plan, 1);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    tilus_rt *rt = open_fake();
    tilus_status status = TILUS_ERROR_MEMORY;
    long allocations = 0;
    for (; status != TILUS_OK; allocations++) {
        FakeCompiler compiler = {0};
        allocations_left = allocations;
        status = use_everything(&compiler, rt);
        allocations_left = -1;
        if (status != TILUS_OK && status != TILUS_ERROR_MEMORY)
            fail_msg("allocation %ld: %s: %s", allocations, tilus_status_name(status),
                     tilus_rt_error());
        if (status != TILUS_OK)
            assert_contains(tilus_rt_error(), "out of memory");
    }
    assert_true(allocations > 10);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- threads ---------------------------------------------------------------------------- */

enum { THREADS = 6, RUNS = 60 };

typedef struct Thread {
    Session *session;
    int number;
    atomic_int *failures, *launches;
    pthread_t id;
} Thread;

/* On one plan that all have, and on one of its own. */
static void *run_often(void *data)
{
    const Thread *t = data;
    Session *s = t->session;
    tilus_matmul_plan *own = NULL;
    *t->failures += tilus_matmul_plan_create(s->matmul, &u4, 0, &own) != TILUS_OK;
    for (int i = 0; i < RUNS && own; i++) {
        int64_t m = 1 + (t->number + i) % 5;
        const tilus_matmul_call call = call_for(s->plan, m);
        *t->failures += tilus_matmul_prepare(s->plan, m) != TILUS_OK;
        *t->failures += tilus_matmul_run(s->plan, &fake->streams[t->number], &call) != TILUS_OK;
        *t->failures += tilus_matmul_run(own, &fake->streams[t->number], &call) != TILUS_OK;
        *t->launches += 2 * launches_of(own, m);
    }
    tilus_matmul_plan_free(own);
    return NULL;
}

static void threads_share_kernels(void **state)
{
    (void)state;
    Session s = {0};
    atomic_int failures = 0, launches = 0;
    Thread threads[THREADS];
    session_open(&s, u4);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (Thread){.session = &s, .number = i, .failures = &failures,
                              .launches = &launches};
        assert_int_equal(pthread_create(&threads[i].id, NULL, run_often, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(fake->launches, launches);
    assert_int_equal(s.compiler.calls, fake->loads);
    char *list = tilus_matmul_kernels(s.plan, 5);
    int lines = 0;
    for (const char *at = list; (at = strchr(at, '\n')); at++)
        lines++;
    assert_int_equal(s.compiler.calls, lines);
    free(list);
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(launches_the_right_arguments, set_up_matmul),
        cmocka_unit_test_setup(blocks_of_whole_tiles_need_no_parts, set_up_matmul),
        cmocka_unit_test_setup(cuts_many_rows, set_up_matmul),
        cmocka_unit_test_setup(cuts_many_rows_of_gates, set_up_matmul),
        cmocka_unit_test_setup(launches_with_tables, set_up_matmul),
        cmocka_unit_test_setup(refuses_bad_calls, set_up_matmul),
        cmocka_unit_test_setup(refuses_what_is_too_much, set_up_matmul),
        cmocka_unit_test_setup(refuses_other_weights, set_up_matmul),
        cmocka_unit_test_setup(takes_any_stride, set_up_matmul),
        cmocka_unit_test_setup(a_run_only_launches, set_up_matmul),
        cmocka_unit_test_setup(a_short_product_is_launched_at_once, set_up_matmul),
        cmocka_unit_test_setup(runs_in_a_capture, set_up_matmul),
        cmocka_unit_test_setup(packs_on_the_device, set_up_matmul),
        cmocka_unit_test_setup(the_null_stream_is_of_the_device, set_up_matmul),
        cmocka_unit_test_setup(the_null_stream_on_two_devices, set_up_matmul),
        cmocka_unit_test_setup(any_allocation_may_fail, set_up_matmul),
        cmocka_unit_test_setup(threads_share_kernels, set_up_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
