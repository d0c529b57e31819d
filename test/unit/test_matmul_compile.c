/* tilus_matmul_compile, and the matmul library with it: what it compiles is loaded and
 * launched. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_kernels.h"
#include "tilus/tilus.h"

#include <unistd.h>

/* Compiles what runs of 1 and of 16 rows need, and packing, and launches all of it. */
static void run_compiled(const tilus_matmul_problem *problem, void *cache)
{
    const tilus_matmul_options options = {.compile = tilus_matmul_compile,
                                          .compile_data = cache};
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, &options);
    tilus_matmul_plan *plan = plan_of(matmul, *problem);
    const tilus_matmul_weights weights = {sizeof weights, (void *)0x1000, (void *)0x2000,
                                          problem->zeros ? (void *)0x3000 : NULL,
                                          .transposed = true};
    int expected = fake->launches + 1;
    for (int64_t m = 1; m <= 16; m += 15) {
        const tilus_matmul_call call = call_for(plan, m);
        assert_ok(tilus_matmul_run(plan, &fake->streams[0], &call));
        expected += launches_of(plan, m);
    }
    assert_ok(tilus_matmul_pack_device(plan, &fake->streams[0], &weights, 0x100000));
    assert_int_equal(fake->launches, expected);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
}

static void compiles_what_is_launched(void **state)
{
    (void)state;
    static const tilus_matmul_problem problems[] = {
        {.weights = "u4", .n = 200, .k = 1100, .group = 128, .zeros = TILUS_ZEROS_INTEGER},
        {.weights = "f6e3m2", .activations = "bf16", .n = 64, .k = 512},
        {.weights = "i1", .n = 200, .k = 4096, .group = 32, .result = "f32"},
    };
    for (size_t i = 0; i < COUNT(problems); i++)
        run_compiled(&problems[i], NULL);
    fake->capability = 80;      /* without bulk copies */
    run_compiled(&problems[0], NULL);
}

static void keeps_artefacts_in_a_cache(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.weights = "u4", .n = 200, .k = 1100, .group = 128};
    char directory[] = "/tmp/tilus-matmul-XXXXXX", command[64];
    assert_non_null(mkdtemp(directory));
    const tilus_cache_options options = {.struct_size = sizeof options, .directory = directory};
    tilus_cache *cache = tilus_cache_open(&options);
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    run_compiled(&problem, cache);
    tilus_cache_get_stats(cache, &stats);
    assert_true(stats.hits == 0 && stats.stored == stats.misses && stats.stored > 2);
    run_compiled(&problem, cache);
    tilus_cache_get_stats(cache, &stats);
    assert_int_equal(stats.hits, stats.stored);
    tilus_cache_close(cache);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    assert_int_equal(system(command), 0);
}

/* A line of tilus_matmul_kernels to a file, as docs/matmul.md does it. */
static void compile_line(char *line, const char *directory)
{
    char command[2048];
    const char *name = strsep(&line, "\t"), *program = strsep(&line, "\t");
    size_t at = (size_t)snprintf(command, sizeof command, TILUS_LLC " --mcpu=sm_90a "
                                 "--cubin=never --program=%s " TILUS_KERNELS "/matmul.tilus "
                                 "-o %s/%s.tilusk", program, directory, name);
    for (const char *word = strsep(&line, " "); word; word = strsep(&line, " "))
        at += (size_t)snprintf(command + at, sizeof command - at, " -D %s", word);
    assert_int_equal(system(command), 0);
}

/* Runs and packing need no other kernels than tilus-llc makes of the list. */
static void a_directory_of_the_listed_kernels_suffices(void **state)
{
    (void)state;
    char directory[] = "/tmp/tilus-matmul-XXXXXX", command[64];
    const tilus_matmul_problem problem = {.weights = "u4", .n = 200, .k = 1104, .group = 128,
                                          .zeros = TILUS_ZEROS_FLOAT};
    const tilus_matmul_options options = {.directory = directory};
    const tilus_matmul_weights weights = {sizeof weights, (void *)0x1000, (void *)0x2000,
                                          (void *)0x3000, .transposed = true};
    assert_non_null(mkdtemp(directory));
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, &options);
    tilus_matmul_plan *plan = plan_of(matmul, problem);
    assert_int_equal(tilus_matmul_prepare(plan, 1), TILUS_ERROR_NO_KERNEL);
    for (int64_t m = 0; m <= 4; m += 4) {
        char *list = tilus_matmul_kernels(plan, m), *rest = list;
        for (char *line = strsep(&rest, "\n"); line && *line; line = strsep(&rest, "\n"))
            compile_line(line, directory);
        free(list);
    }
    for (int64_t m = 1; m <= 4; m++)
        assert_ok(tilus_matmul_prepare(plan, m));
    assert_ok(tilus_matmul_pack_device(plan, &fake->streams[0], &weights, 0x100000));
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    assert_int_equal(system(command), 0);
}

static void says_what_is_wrong(void **state)
{
    (void)state;
    static const struct {
        const char *program, *parameters, *target;
        tilus_status status;
        const char *message;
    } cases[] = {
        {"matmul", "W=u4 ROWS", "sm_90a", TILUS_ERROR_ARGUMENT, "\"W=u4 ROWS\" is not NAME="},
        {"matmul", "=4", "sm_90a", TILUS_ERROR_ARGUMENT, "is not NAME=VALUE"},
        {"matmul", "W=u9", "sm_90a", TILUS_ERROR_PROGRAM, "u9"},
        {"multiply", "W=u4", "sm_90a", TILUS_ERROR_PROGRAM, "multiply"},
        {"matmul", "W=u4", "sm_1", TILUS_ERROR_PROGRAM, "sm_1"},
        {"matmul", "W=u8", "sm_90a", TILUS_ERROR_PROGRAM, "matmul.tilus:"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        char message[256];
        void *bytes = message;
        size_t size = 1;
        tilus_status status = tilus_matmul_compile(NULL, cases[i].program, cases[i].parameters,
                                                   cases[i].target, &bytes, &size, message,
                                                   sizeof message);
        if (status != cases[i].status)
            fail_msg("%s: %s", cases[i].parameters, tilus_status_name(status));
        assert_contains(message, cases[i].message);
        assert_true(bytes == NULL && size == 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(compiles_what_is_launched, set_up_matmul),
        cmocka_unit_test_setup(keeps_artefacts_in_a_cache, set_up_matmul),
        cmocka_unit_test_setup(a_directory_of_the_listed_kernels_suffices, set_up_matmul),
        cmocka_unit_test(says_what_is_wrong),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
