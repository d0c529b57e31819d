/* Products of many rows by a fake cuBLAS. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "fake_cublas.h"
#include "matmul_kernels.h"

enum { N = 200, K = 1104, ROWS = 300, UNPACKED = 0x100000 + TILUS_MATMUL_SEMAPHORES };

static const tilus_matmul_problem plain = {.weights = "u4", .n = N, .k = K, .group = 128};

static FakeCublas *cublas;
static tilus_rt *rt;
static tilus_matmul *matmul;
static FakeCompiler compiler;

static int open_library(void **state)
{
    set_up_matmul(state);
    void *library = dlopen(TILUS_FAKE_CUBLAS, RTLD_NOW | RTLD_LOCAL);
    assert_non_null(library);
    cublas = dlsym(library, "fake_cublas");
    memset(cublas, 0, sizeof *cublas);
    setenv("TILUS_LIBCUBLAS", TILUS_FAKE_CUBLAS, 1);
    const tilus_matmul_options options = {.compile = fake_compile, .compile_data = &compiler};
    matmul = open_matmul(&rt, &options);
    return 0;
}

static int close_library(void **state)
{
    (void)state;
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
    assert_int_equal(cublas->handles, 0);
    assert_int_equal(cublas->overlaps, 0);
    return 0;
}

static void unpacks_and_multiplies(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, plain);
    tilus_matmul_call call = call_for(plan, ROWS);
    call.a_stride = 1200;
    assert_ok(tilus_matmul_prepare(plan, ROWS));
    assert_int_equal(cublas->handles, 1);
    assert_ok(tilus_matmul_prepare(plan, 2 * ROWS));
    assert_int_equal(cublas->handles, 1);
    assert_ok(tilus_matmul_run(plan, &fake->streams[1], &call));
    const uint64_t unpack[] = {0x20000, 0x20000, 0x20000, UNPACKED, N, K, (uint64_t)plan->packed.slices,
                               (uint64_t)plan->packed.slices};
    assert_int_equal(fake->launches, 1);
    assert_string_equal(fake->log[0].name, "unpack");
    assert_memory_equal(fake->log[0].parameters, unpack, sizeof unpack);
    assert_int_equal(cublas->products, 1);
    assert_ptr_equal(cublas->stream, &fake->streams[1]);
    assert_int_equal((uintptr_t)cublas->workspace, UNPACKED + (2 * N * K + 255) / 256 * 256);
    assert_int_equal(0x100000 + call.workspace_size,
                     (uintptr_t)cublas->workspace + cublas->workspace_size);
    assert_true(cublas->op_a == 1 && cublas->op_b == 0 && cublas->compute == 68);
    assert_true(cublas->m == N && cublas->n == ROWS && cublas->k == K);
    assert_true((uintptr_t)cublas->a == UNPACKED && cublas->a_stride == K);
    assert_true((uintptr_t)cublas->b == 0x10000 && cublas->b_stride == 1200);
    assert_true((uintptr_t)cublas->c == 0x50000 && cublas->c_stride == N);
    assert_true(cublas->a_type == 2 && cublas->b_type == 2 && cublas->c_type == 2);
    assert_true(cublas->alpha == 1 && cublas->beta == 0);
    tilus_matmul_plan_free(plan);
}

static void knows_its_types(void **state)
{
    (void)state;
    static const struct {
        tilus_matmul_problem problem;
        int type, c_type;
    } cases[] = {
        {{.weights = "u4", .activations = "bf16", .n = N, .k = K}, 14, 14},
        {{.weights = "u4", .activations = "bf16", .result = "f32", .n = N, .k = K}, 14, 0},
        {{.weights = "u4", .result = "f32", .n = N, .k = K}, 2, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_plan *plan = plan_of(matmul, cases[i].problem);
        const tilus_matmul_call call = call_for(plan, ROWS);
        assert_ok(tilus_matmul_prepare(plan, ROWS));
        assert_ok(tilus_matmul_run(plan, &fake->streams[0], &call));
        assert_true(cublas->a_type == cases[i].type && cublas->b_type == cases[i].type &&
                    cublas->c_type == cases[i].c_type);
        tilus_matmul_plan_free(plan);
    }
}

/* Products that cuBLAS alone does not compute, and few rows, take the fused kernels. */
static void leaves_the_rest_alone(void **state)
{
    (void)state;
    static const tilus_matmul_problem problems[] = {
        {.weights = "u4", .n = N, .k = K, .bias = true},
        {.weights = "u4", .n = N, .k = K, .residual = true},
        {.weights = "u4", .n = N, .k = K, .function = TILUS_EPILOGUE_SILU},
        {.weights = "u4", .activations = "i8", .n = N, .k = K},
        {.weights = "f8e7m0", .n = N, .k = K},
        {.weights = "f8e5m2", .n = N, .k = K, .zeros = TILUS_ZEROS_FLOAT},
        {.weights = "u4", .activations = "bf16", .result = "f16", .n = N, .k = K},
    };
    for (size_t i = 0; i <= COUNT(problems); i++) {
        tilus_matmul_plan *plan = plan_of(matmul, i < COUNT(problems) ? problems[i] : plain);
        const tilus_matmul_call call = call_for(plan, i < COUNT(problems) ? ROWS : 256);
        int before = fake->launches;
        assert_ok(tilus_matmul_run(plan, &fake->streams[0], &call));
        assert_int_equal(fake->launches, before + launches_of(plan, call.m));
        tilus_matmul_plan_free(plan);
    }
    assert_int_equal(cublas->products, 0);
}

static void does_without(void **state)
{
    (void)state;
    static const char *const paths[] = {"", "/nowhere/libcublas.so", TILUS_FAKE_CUDA};
    for (size_t i = 0; i < COUNT(paths); i++) {
        tilus_rt *other_rt;
        setenv("TILUS_LIBCUBLAS", paths[i], 1);
        tilus_matmul *other = open_matmul(&other_rt, NULL);
        tilus_matmul_plan *plan = plan_of(other, plain);
        assert_false(dense_serves(plan, 65536));
        tilus_matmul_plan_free(plan);
        tilus_matmul_close(other);
        tilus_rt_close(other_rt);
    }
}

static void says_so(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, plain);
    char *text = tilus_matmul_describe(plan, ROWS);
    assert_contains(text, "m = 300: from 257 rows on by cuBLAS, after unpack-u4-");
    free(text);
    char *kernels = tilus_matmul_kernels(plan, 256);
    assert_null(strstr(kernels, "\tunpack\t"));
    free(kernels);
    char *more = tilus_matmul_kernels(plan, 257);
    assert_contains(more, "\tunpack\t");
    free(more);
    size_t before = 0;
    for (int64_t m = 1; m <= 65536; m += 1 + m / 16) {
        assert_true(tilus_matmul_workspace_size(plan, m) >= before);
        before = tilus_matmul_workspace_size(plan, m);
    }
    tilus_matmul_plan_free(plan);
}

/* cuBLAS allocates when a handle is made, which a run does not do. */
static void must_be_prepared(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, plain);
    const tilus_matmul_call call = call_for(plan, ROWS);
    assert_fails(tilus_matmul_run(plan, &fake->streams[0], &call), TILUS_ERROR_STATE,
                 "call tilus_matmul_prepare for 300 rows first: from 257 on cuBLAS");
    assert_int_equal(fake->launches, 0);
    tilus_matmul_plan_free(plan);
}

static void names_the_call_that_failed(void **state)
{
    (void)state;
    static const struct {
        const char *fail, *message;
    } cases[] = {
        {"stream", "cublasSetStream: cuBLAS status 13"},
        {"workspace", "cublasSetWorkspace: cuBLAS status 13"},
        {"multiply", "cublasGemmEx: cuBLAS status 13"},
    };
    tilus_matmul_plan *plan = plan_of(matmul, plain);
    const tilus_matmul_call call = call_for(plan, ROWS);
    cublas->fail = "create";
    assert_fails(tilus_matmul_prepare(plan, ROWS), TILUS_ERROR_DRIVER,
                 "cublasCreate: cuBLAS status 13");
    cublas->fail = NULL;
    assert_ok(tilus_matmul_prepare(plan, ROWS));
    for (size_t i = 0; i < COUNT(cases); i++) {
        cublas->fail = cases[i].fail;
        assert_fails(tilus_matmul_run(plan, &fake->streams[0], &call), TILUS_ERROR_DRIVER,
                     cases[i].message);
        assert_int_equal(fake->current, 0);
    }
    cublas->fail = NULL;
    tilus_matmul_plan_free(plan);
}

/* ---- threads ------------------------------------------------------------------- */

enum { THREADS = 4, RUNS = 50 };

typedef struct Thread {
    tilus_matmul_plan *plan;
    int number;
    atomic_int *failures;
    pthread_t id;
} Thread;

static void *run_often(void *data)
{
    const Thread *t = data;
    const tilus_matmul_call call = call_for(t->plan, ROWS);
    for (int i = 0; i < RUNS; i++) {
        *t->failures += tilus_matmul_prepare(t->plan, ROWS) != TILUS_OK;
        *t->failures += tilus_matmul_run(t->plan, &fake->streams[t->number], &call) != TILUS_OK;
    }
    return NULL;
}

static void threads_take_turns(void **state)
{
    (void)state;
    atomic_int failures = 0;
    Thread threads[THREADS];
    tilus_matmul_plan *plan = plan_of(matmul, plain);
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (Thread){.plan = plan, .number = i, .failures = &failures};
        assert_int_equal(pthread_create(&threads[i].id, NULL, run_often, &threads[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i].id, NULL);
    assert_int_equal(failures, 0);
    assert_int_equal(cublas->products, THREADS * RUNS);
    tilus_matmul_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(unpacks_and_multiplies, open_library, close_library),
        cmocka_unit_test_setup_teardown(knows_its_types, open_library, close_library),
        cmocka_unit_test_setup_teardown(leaves_the_rest_alone, open_library, close_library),
        cmocka_unit_test_setup_teardown(does_without, open_library, close_library),
        cmocka_unit_test_setup_teardown(says_so, open_library, close_library),
        cmocka_unit_test_setup_teardown(must_be_prepared, open_library, close_library),
        cmocka_unit_test_setup_teardown(names_the_call_that_failed, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(threads_take_turns, open_library, close_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
