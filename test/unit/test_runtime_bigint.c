/* The library of big integers on the fake driver: what threads share, and artefacts that are not
 * the library's. Built with -fsanitize=thread (preset tsan) it finds what is not ordered. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

#include "bigint/internal.h"

enum { ARGUMENTS_MAX = 8, THREADS = 6, PRODUCTS = 20 };

/* Arguments of each program: pointers, then 32-bit integers. */
static const struct {
    const char *name;
    size_t pointers, count;
    const char *arguments[ARGUMENTS_MAX];
} programs[] = {
    {"product", 5, 8, {"a", "b", "c", "overflows", "firsts", "batch", "na", "nb"}},
    {"carry", 3, 5, {"c", "overflows", "firsts", "batch", "nc"}},
    {"spread", 2, 5, {"a", "x", "batch", "n", "l"}},
    {"forward", 2, 5, {"x", "table", "points", "inner", "unit"}},
    {"backward", 3, 7, {"x", "y", "table", "points", "inner", "unit", "scale"}},
    {"gather", 4, 7, {"x", "c", "overflows", "firsts", "batch", "n", "l"}},
};

/* How artefacts differ from those that were asked for; NULL: not. */
typedef struct Fault {
    const char *program, *parameters, *argument;
    bool nothing;               /* the compiler gives no bytes */
} Fault;

static tilus_status write_artefact(size_t number, const Fault *f, const char *parameters,
                                   const char *target, void **bytes, size_t *size)
{
    static const tilus_code one = C(1);
    const char *name = f->program ? f->program : programs[number].name;
    tilus_arg_info args[ARGUMENTS_MAX];
    char text[1024];
    size_t count = programs[number].count;
    size_t at = (size_t)snprintf(text, sizeof text, ".entry %s(", name);
    for (size_t i = 0; i < count; i++) {
        bool pointer = i < programs[number].pointers;
        const char *argument = f->argument && !i ? f->argument : programs[number].arguments[i];
        args[i] = (tilus_arg_info){argument, pointer ? TILUS_ARG_POINTER : TILUS_ARG_I32,
                                   pointer ? "u8" : "i32", 1, INT32_MIN, INT32_MAX,
                                   pointer ? 16 : 1};
        at += (size_t)snprintf(text + at, sizeof text - at, ".param .u%d %s ", pointer ? 64 : 32,
                               argument);
    }
    const tilus_kernel_info info = {.name = name, .arg_count = count, .args = args, .grid_rank = 1,
                                    .grid_length = {1}, .grid = {&one}, .threads = 32};
    const tilus_artefact artefact = {.info = &info, .target = target, .ptx_version = 80,
                                     .ptx = text,
                                     .parameters = f->parameters ? f->parameters : parameters};
    return tilus_artefact_write(&artefact, bytes, size);
}

/* Compiles by writing down what was asked for, but for the fault. */
static tilus_status compile(void *data, const char *program, const char *parameters,
                            const char *target, void **bytes, size_t *size, char *message,
                            size_t message_size)
{
    const Fault *fault = data;
    if (fault->nothing)
        return TILUS_OK;
    for (size_t i = 0; i < COUNT(programs); i++)
        if (!strcmp(programs[i].name, program))
            return write_artefact(i, fault, parameters, target, bytes, size);
    snprintf(message, message_size, "there is no @%s", program);
    return TILUS_ERROR_PROGRAM;
}

static tilus_bigint *open_bigint(tilus_rt **rt, Fault *fault)
{
    const tilus_bigint_options options = {.struct_size = sizeof options, .compile = compile,
                                          .compile_data = fault};
    tilus_bigint *bigint;
    *rt = open_fake();
    assert_ok(tilus_bigint_open(*rt, &options, &bigint));
    return bigint;
}

static tilus_bigint_plan *plan_of(tilus_bigint *bigint, tilus_bigint_method method)
{
    const tilus_bigint_problem problem = {.struct_size = sizeof problem, .a_bytes = 4096,
                                          .b_bytes = 4096, .method = method};
    tilus_bigint_plan *plan;
    assert_ok(tilus_bigint_plan_create(bigint, &problem, 0, &plan));
    return plan;
}

static int set_up_bigint(void **state)
{
    set_up(state);
    fake->capability = 90;
    return 0;
}

/* ---- threads ------------------------------------------------------------ */

typedef struct Shared {
    tilus_bigint_plan *plan;
    atomic_int failures;
} Shared;

static void *prepare_and_multiply(void *data)
{
    Shared *s = data;
    const tilus_bigint_call call = {.struct_size = sizeof call, .a = 0x10000, .b = 0x20000,
                                    .c = 0x30000, .workspace = 0x100000,
                                    .workspace_size = tilus_bigint_workspace_size(s->plan)};
    set_current(FAKE_NO_CONTEXT);
    s->failures += tilus_bigint_prepare(s->plan) != TILUS_OK;
    for (int i = 0; i < PRODUCTS; i++) {
        char *text = tilus_bigint_kernels(s->plan);
        s->failures += !text || tilus_bigint_mul(s->plan, &fake->streams[0], &call) != TILUS_OK;
        tilus_free(text);
    }
    return NULL;
}

static void threads_share_a_plan(void **state)
{
    (void)state;
    Fault none = {0};
    tilus_rt *rt;
    tilus_bigint *bigint = open_bigint(&rt, &none);
    Shared shared = {.plan = plan_of(bigint, TILUS_BIGINT_TRANSFORM)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, prepare_and_multiply, &shared), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.failures, 0);
    assert_int_equal(fake->allocations, 1);     /* roots, once for all */
    tilus_bigint_plan_free(shared.plan);
    tilus_bigint_close(bigint);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* ---- artefacts ---------------------------------------------------------- */

static void artefacts_of_others_are_refused(void **state)
{
    (void)state;
    static const struct {
        Fault fault;
        const char *why;
    } cases[] = {
        {{.program = "carry"}, "bigint_product_1024_sm_90a is of @carry, not of @product"},
        {{.parameters = "M=1"},
         "bigint_product_1024_sm_90a was compiled with \"M=1\", not with \"M=16 "},
        {{.argument = "x"},
         "bigint_product_1024_sm_90a takes other arguments than this library gives"},
        {{.nothing = true}, "bigint_product_1024_sm_90a: "},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Fault fault = cases[i].fault;
        tilus_rt *rt;
        tilus_bigint *bigint = open_bigint(&rt, &fault);
        tilus_bigint_plan *plan = plan_of(bigint, TILUS_BIGINT_SCHOOLBOOK);
        assert_fails(tilus_bigint_prepare(plan), TILUS_ERROR_ARTEFACT, cases[i].why);
        fault = (Fault){0};
        assert_ok(tilus_bigint_prepare(plan));
        tilus_bigint_plan_free(plan);
        tilus_bigint_close(bigint);
        tilus_rt_close(rt);
        assert_nothing_left();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(threads_share_a_plan, set_up_bigint),
        cmocka_unit_test_setup(artefacts_of_others_are_refused, set_up_bigint),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
