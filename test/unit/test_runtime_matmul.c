/* The matmul library on a fake driver, with artefacts that only that takes: what it plans, and
 * which kernels it finds. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_kernels.h"

#include <sys/stat.h>
#include <unistd.h>

static const tilus_matmul_problem u4 = {.struct_size = sizeof u4, .weights = "u4", .n = 200, .k = 1100,
                                        .group = 128};

#define OPTIONS .struct_size = sizeof(tilus_matmul_options)
#define PROBLEM .struct_size = sizeof(tilus_matmul_problem)

/* ---- opening ---------------------------------------------------------------- */

static void says_what_is_wrong_with_kernels(void **state)
{
    (void)state;
    static const tilus_matmul_kernel kernels[] = {{"name", "bytes", 5}, {NULL, "bytes", 5},
                                                  {"name", NULL, 5}};
    static const struct {
        tilus_matmul_options options;
        const char *message;
    } cases[] = {
        {{OPTIONS, .kernels = kernels, .kernel_count = 2}, "kernels[1] of 2 has no name"},
        {{OPTIONS, .kernels = kernels + 2, .kernel_count = 1}, "kernels[0] of 1 has no bytes"},
        {{OPTIONS, .kernel_count = 3}, "kernels[0] of 3 has no name"},
        {{.kernel_count = 0}, "options: struct_size is 0, not sizeof(tilus_matmul_options)"},
    };
    tilus_rt *rt = open_fake();
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul *matmul = (tilus_matmul *)rt;
        assert_fails(tilus_matmul_open(rt, &cases[i].options, &matmul), TILUS_ERROR_ARGUMENT,
                     cases[i].message);
        assert_null(matmul);
    }
    assert_string_equal(tilus_matmul_version(), tilus_rt_version());
    tilus_matmul_close(NULL);
    tilus_matmul_plan_free(NULL);
    tilus_rt_close(rt);
}

static void says_what_is_wrong_with_a_problem(void **state)
{
    (void)state;
    static const struct {
        tilus_matmul_problem problem;
        const char *message;
    } cases[] = {
        {{.n = 1, .k = 1}, "problem: struct_size is 0, not sizeof(tilus_matmul_problem)"},
        {{PROBLEM, .n = 1, .k = 1}, "problem: weights is NULL"},
        {{PROBLEM, .weights = "u9", .n = 1, .k = 1}, "weights is \"u9\""},
        {{PROBLEM, .weights = "u4", .k = 1}, "problem: n is 0"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .group = 40}, "group is 40"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .prologue = 2}, "prologue is 2"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .eps = -1}, "eps is -1"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .prologue = 1, .eps = 1e39}, "eps is 1e+39"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .eps = 1}, "eps is 1, but there is no prologue"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .experts = 2, .prologue = 1},
         "prologue is given, but experts are, too"},
        {{PROBLEM, .weights = "u4", .activations = "i8", .n = 1, .k = 1, .prologue = 1},
         "activations is \"i8\", neither f16 nor bf16"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .n_tile = 48}, "n_tile is 48, not 0, 32, 64"},
        {{PROBLEM, .weights = "u4", .n = 1, .k = 1, .group = INT64_C(1) << 38},
         "group is 274877906944, not at most 8388608"},
    };
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan = (tilus_matmul_plan *)rt;
    for (size_t i = 0; i < COUNT(cases); i++)
        assert_fails(tilus_matmul_plan_create(matmul, &cases[i].problem, 0, &plan),
                     TILUS_ERROR_ARGUMENT, cases[i].message);
    assert_null(plan);
    assert_fails(tilus_matmul_plan_create(matmul, NULL, 0, &plan), TILUS_ERROR_ARGUMENT,
                 "problem is NULL");
    assert_fails(tilus_matmul_plan_create(matmul, &u4, 1, &plan), TILUS_ERROR_NO_DEVICE,
                 "no CUDA device 1, the process has 1");
    assert_fails(tilus_matmul_plan_create(matmul, &u4, -1, &plan), TILUS_ERROR_NO_DEVICE,
                 "no CUDA device -1");
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

static void refuses_old_devices(void **state)
{
    (void)state;
    tilus_rt *rt;
    fake->capability = 75;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan;
    assert_fails(tilus_matmul_plan_create(matmul, &u4, 0, &plan), TILUS_ERROR_UNSUPPORTED,
                 "device 0 (Fake 100) has compute capability 7.5; kernels need 8.0");
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* Problems that only products by wgmma serve are refused on other devices, by name. */
static void refuses_other_than_hopper(void **state)
{
    (void)state;
    tilus_rt *rt;
    fake->capability = 89;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan;
    tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 256,
                                    .k = 256, .group = 128, .product = "f8e4m3"};
    assert_fails(tilus_matmul_plan_create(matmul, &problem, 0, &plan), TILUS_ERROR_UNSUPPORTED,
                 "device 0 (Fake 100) has compute capability 8.9; products of 8 bits need 9.0");
    problem.product = NULL;
    problem.experts = 4;
    problem.batch_invariant = true;
    assert_fails(tilus_matmul_plan_create(matmul, &problem, 0, &plan), TILUS_ERROR_UNSUPPORTED,
                 "capability 8.9; batch invariant products of experts need 9.0");
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* ---- choices ----------------------------------------------------------------- */

/* One form for all m, that may be another plan's; bulk copies only where there are such. */
static void packs_one_way(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "i2", "f4e2m1", "u8"};
    for (fake->capability = 80; fake->capability <= 90; fake->capability += 10) {
        tilus_rt *rt;
        tilus_matmul *matmul = open_matmul(&rt, NULL);
        for (size_t i = 0; i < COUNT(types); i++)
            for (int64_t n_tile = 0; n_tile <= 128; n_tile += n_tile ? n_tile : 32) {
                int64_t tile, k_tile;
                tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){
                    .weights = types[i], .n = 3000, .k = 4000, .n_tile = n_tile});
                tilus_matmul_tile(plan, &tile, &k_tile);
                assert_true(n_tile == 0 || tile == n_tile);
                assert_int_equal(k_tile, 128);
                for (int b = 0; b < MATMUL_BUCKETS; b++) {
                    assert_int_equal(plan->choices[b].config.rows, tile);
                    assert_true(fake->capability >= 90 ||
                                plan->choices[b].config.stages == 0);
                }
                tilus_matmul_plan_free(plan);
            }
        tilus_matmul_close(matmul);
        tilus_rt_close(rt);
    }
}

/* Tunings of this device go before the cost model. */
static void takes_tunings(void **state)
{
    (void)state;
    char message[256];
    tilus_rt *rt;
    tilus_matmul *matmul;
    MatmulTuning tuning = {.template = "any", .device = "Fake 100", .driver = "1", .m = 1,
                           .config = prearranged_config, .us = 12.5};
    tuning.config.columns = 1;
    assert_true(matmul_spec(&u4, &tuning.spec, message, sizeof message));
    char *json = matmul_tunings_write(&(MatmulTunings){&tuning, 1});
    const tilus_matmul_options options = {.tunings = json};
    matmul = open_matmul(&rt, &options);
    memset(json, 'x', strlen(json));    /* it is needed no more */
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    MatmulConfig expected = tuning.config;
    matmul_arrange_in_blocks(&plan->spec, &expected, &plan->device);
    assert_memory_equal(&plan->choices->config, &expected, sizeof expected);
    char *text = tilus_matmul_describe(plan, 1);
    assert_contains(text, "by the given tunings of similar products: 12.5 us for 1 rows");
    free(text);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    const tilus_matmul_options bad = {OPTIONS, .tunings = json};
    assert_fails(tilus_matmul_open(rt, &bad, &matmul), TILUS_ERROR_ARGUMENT, "tunings: ");
    assert_null(matmul);
    tilus_rt_close(rt);
    free(json);
}

/* A plan of an equal problem is as the first; more problems than are kept do no harm. */
static void keeps_plans(void **state)
{
    (void)state;
    tilus_rt *rt;
    fake->device_count = 2;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *first = plan_of(matmul, u4), *again = plan_of(matmul, u4), *other;
    assert_ok(tilus_matmul_plan_create(matmul, &u4, 1, &other));
    assert_memory_equal(first->choices, again->choices, sizeof first->choices);
    assert_int_equal(other->ordinal, 1);
    tilus_matmul_problem wide = u4;
    wide.n_tile = first->packed.rows == 32 ? 64 : 32;
    tilus_matmul_plan *wider = plan_of(matmul, wide);
    assert_int_equal(wider->packed.rows, wide.n_tile);
    tilus_matmul_plan_free(first);      /* each has its own */
    assert_int_equal(again->packed.size, tilus_matmul_packed_size(again));
    tilus_matmul_plan_free(again);
    tilus_matmul_plan_free(other);
    for (int64_t n = 1; n <= 70; n++) {
        wider->spec.n = n;
        assert_ok(plan_keep(wider, 0));
    }
    assert_true(plan_find(wider, 0));
    assert_int_equal(wider->spec.n, 70);
    wider->spec.n = 1;
    assert_false(plan_find(wider, 0));  /* the least recent ones have gone */
    tilus_matmul_plan_free(wider);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* A plan of a fixed configuration asks no device. */
static void takes_a_configuration(void **state)
{
    (void)state;
    char message[256];
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
    MatmulSpec spec;
    MatmulDevice device = matmul_device("Fake 100", CAPABILITY, 132, 232448);
    assert_true(matmul_spec(&u4, &spec, message, sizeof message));
    assert_ok(matmul_open_absent(NULL, &matmul));
    assert_ok(plan_create_fixed(matmul, &spec, &prearranged_config, &device, &plan));
    const Choice *choice = plan_choice(plan, 8);
    assert_memory_equal(&choice->config, &prearranged_config, sizeof prearranged_config);
    assert_int_equal(plan->packed.rows, prearranged_config.rows);
    assert_int_equal(product_of(plan, choice, 8).rows, 8);
    assert_int_equal(launches_of(plan, 8), 2);
    assert_string_equal(plan->target, "sm_90a");
    tilus_matmul_plan_free(plan);
    device.shared_block = 100;
    assert_fails(plan_create_fixed(matmul, &spec, &prearranged_config, &device, &plan),
                 TILUS_ERROR_UNSUPPORTED, "the configuration does not fit Fake 100");
    assert_null(plan);
    tilus_matmul_close(matmul);
}

/* An artefact may have more arguments than the programs of the template, all of names that are
 * known. */
static void refuses_too_many_arguments(void **state)
{
    (void)state;
    enum { MANY = 60 };
    tilus_arg_info args[MANY];
    struct {
        ArgumentOrder order;
        unsigned char behind[MANY];
    } place = {.behind = {0}};
    for (int i = 0; i < MANY; i++)
        args[i] = (tilus_arg_info){.name = "extra"};
    tilus_kernel_info info = {.name = "matmul", .args = args, .arg_count = MATMUL_ARGUMENTS};
    assert_true(argument_order(&info, &place.order));
    info.arg_count = MANY;
    assert_false(argument_order(&info, &place.order));
    for (int i = 0; i < MANY; i++)
        assert_int_equal(place.behind[i], 0);
}

static void describes_a_choice(void **state)
{
    (void)state;
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    static const char *const parts[] = {
        "C[m, 200] f16 = A[m, 1100] f16 x B u4, multiplied as f16", "groups of 128",
        "device 0, Fake 100, 132 multiprocessors, sm_90a", "m = 3: ", "by the cost model: ",
        "launches ", "workspace of "};
    char *text = tilus_matmul_describe(plan, 3);
    for (size_t i = 0; i < COUNT(parts); i++)
        assert_contains(text, parts[i]);
    free(text);
    text = tilus_matmul_describe(plan, 0);
    assert_contains(text, "m = 0: not 1 to 65536");
    free(text);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* The workspace grows with m, and suffices for each run. */
static void workspaces_grow(void **state)
{
    (void)state;
    static const tilus_matmul_problem problems[] = {
        {.weights = "u4", .n = 200, .k = 1100, .group = 128},
        {.weights = "u1", .n = 8192, .k = 8192, .group = 32, .zeros = TILUS_ZEROS_INTEGER},
        {.weights = "f8e4m3", .n = 1, .k = 65536},
    };
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    for (size_t i = 0; i < COUNT(problems); i++) {
        tilus_matmul_plan *plan = plan_of(matmul, problems[i]);
        size_t before = 0;
        for (int64_t m = 1; m <= 65536; m += 1 + m / 16) {
            size_t size = tilus_matmul_workspace_size(plan, m);
            assert_true(size >= before && size % 256 == 0);
            assert_true(size >= product_of(plan, plan_choice(plan, m), m).size);
            before = size;
        }
        assert_true(tilus_matmul_workspace_size(plan, 65536) >= before);
        assert_int_equal(tilus_matmul_workspace_size(plan, 0), 0);
        tilus_matmul_plan_free(plan);
    }
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* ---- finding kernels ---------------------------------------------------------- */

/* The artefact of one line of tilus_matmul_kernels, as bytes. */
static void *artefact_of_line(char *line, char **name, size_t *size)
{
    char message[64];
    void *bytes = NULL;
    FakeCompiler compiler = {0};
    *name = strsep(&line, "\t");
    char *program = strsep(&line, "\t");
    assert_int_equal(fake_compile(&compiler, program, line, "sm_90a", &bytes, size, message,
                                  sizeof message), TILUS_OK);
    return bytes;
}

static void write_file(const char *directory, const char *name, const void *bytes, size_t size)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s.tilusk", directory, name);
    FILE *out = fopen(path, "wb");
    assert_non_null(out);
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
}

static void make_directory(char path[64])
{
    snprintf(path, 64, "/tmp/tilus-matmul-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static void remove_directory(const char *path)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

/* One kernel is in memory, one in a file, and a compiler is asked for the others. */
static void looks_in_memory_then_files_then_compiles(void **state)
{
    (void)state;
    FakeCompiler compiler = {0};
    char directory[64], *first, *second;
    size_t first_size, second_size;
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    use_config(plan, 1, prearranged_config);
    char *list = tilus_matmul_kernels(plan, 1), *rest = list;
    void *in_memory = artefact_of_line(strsep(&rest, "\n"), &first, &first_size);
    void *in_file = artefact_of_line(strsep(&rest, "\n"), &second, &second_size);
    assert_string_equal(rest, "");
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);

    make_directory(directory);
    write_file(directory, first, "not looked at", 13);
    write_file(directory, second, in_file, second_size);
    const tilus_matmul_kernel kernels[] = {{"other", "x", 1}, {first, in_memory, first_size}};
    const tilus_matmul_options options = {
        .kernels = kernels, .kernel_count = 2, .directory = directory,
        .compile = fake_compile, .compile_data = &compiler};
    matmul = open_matmul(&rt, &options);
    plan = plan_of(matmul, u4);
    use_config(plan, 1, prearranged_config);
    assert_ok(tilus_matmul_prepare(plan, 1));
    assert_int_equal(compiler.calls, 0);
    assert_ok(tilus_matmul_prepare(plan, 65536));
    assert_int_equal(compiler.calls, launches_of(plan, 65536));
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
    remove_directory(directory);
    free(in_memory);
    free(in_file);
    free(list);
}

/* Plans of equal types share what is loaded; no kernel comes twice. */
static void loads_each_kernel_once(void **state)
{
    (void)state;
    FakeCompiler compiler = {0};
    const tilus_matmul_options options = {.compile = fake_compile, .compile_data = &compiler};
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, &options);
    tilus_matmul_plan *plans[] = {plan_of(matmul, u4), plan_of(matmul, u4)};
    assert_int_equal(compiler.calls, 0);
    for (size_t i = 0; i < COUNT(plans); i++)
        use_config(plans[i], 8, prearranged_config);
    for (int round = 0; round < 3; round++)
        for (size_t i = 0; i < COUNT(plans); i++)
            assert_ok(tilus_matmul_prepare(plans[i], 8));
    assert_int_equal(compiler.calls, 2);
    assert_int_equal(fake->loads, 2);
    for (size_t i = 0; i < COUNT(plans); i++)
        tilus_matmul_plan_free(plans[i]);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
}

/* All that runs of 1 to m rows ask a compiler for is in the list, and nothing else. */
static void lists_the_kernels_that_it_needs(void **state)
{
    (void)state;
    FakeCompiler compiler = {0};
    const tilus_matmul_options options = {.compile = fake_compile, .compile_data = &compiler};
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, &options);
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    for (int64_t m = 1; m <= 65536; m *= 4) {
        char *list = tilus_matmul_kernels(plan, m);
        int lines = 0;
        for (const char *at = list; (at = strchr(at, '\n')); at++)
            lines++;
        for (int64_t rows = 1; rows <= m; rows = rows < m && 2 * rows > m ? m : 2 * rows)
            assert_ok(tilus_matmul_prepare(plan, rows));
        assert_int_equal(compiler.calls, lines);
        free(list);
    }
    char *list = tilus_matmul_kernels(plan, 0);
    assert_contains(list, "\tpack\tW=u4 U=u4");
    assert_contains(list, "TRANSPOSED=1\n");
    free(list);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* Opens with `options`, and expects that preparing fails like this. */
static void assert_prepare_fails(const tilus_matmul_options *options, tilus_status status,
                                 const char *part)
{
    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, options);
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    use_config(plan, 1, prearranged_config);
    tilus_status got = tilus_matmul_prepare(plan, 1);
    assert_fails(got, status, part);
    assert_contains(tilus_rt_error(), plan->choices->prepare->name);
    const tilus_matmul_call call = call_for(plan, 1);
    assert_fails(tilus_matmul_run(plan, NULL, &call), status, part);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    assert_nothing_left();
    assert_int_equal(fake->launches, 0);
}

static void names_what_it_does_not_find(void **state)
{
    (void)state;
    FakeCompiler compiler = {.refuse = "matmul.tilus:1:1: no"};
    char directory[64], path[512];
    tilus_matmul_options options = {0};
    assert_prepare_fails(&options, TILUS_ERROR_NO_KERNEL, "no directory, and there is no");
    assert_prepare_fails(&options, TILUS_ERROR_NO_KERNEL, "(@prepare of W=u4 U=u4");
    make_directory(directory);
    options.directory = directory;
    assert_prepare_fails(&options, TILUS_ERROR_NO_KERNEL, directory);
    options.compile = fake_compile;
    options.compile_data = &compiler;
    assert_prepare_fails(&options, TILUS_ERROR_PROGRAM, "matmul.tilus:1:1: no");
    compiler.refuse = NULL;
    compiler.program = "pack";
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, "is of @pack, not of @prepare");
    compiler.program = NULL;
    compiler.parameters = "W=u3";
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, "was compiled with \"W=u3\", not");
    compiler.parameters = NULL;
    compiler.argument = "activations";
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, "takes %activations, which");
    compiler.argument = NULL;

    tilus_rt *rt;
    tilus_matmul *matmul = open_matmul(&rt, NULL);
    tilus_matmul_plan *plan = plan_of(matmul, u4);
    use_config(plan, 1, prearranged_config);
    const char *name = plan->choices->prepare->name;
    write_file(directory, name, "damaged", 7);
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, "artefact of 7 bytes");
    snprintf(path, sizeof path, "%s/%s.tilusk", directory, name);
    unlink(path);
    mkdir(path, 0700);
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, ".tilusk is no regular file");
    rmdir(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, ".tilusk is no regular file");
    unlink(path);
    assert_int_equal(symlink(path, path), 0);
    assert_prepare_fails(&options, TILUS_ERROR_ARTEFACT, "symbolic links");
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    remove_directory(directory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(says_what_is_wrong_with_kernels, set_up_matmul),
        cmocka_unit_test_setup(says_what_is_wrong_with_a_problem, set_up_matmul),
        cmocka_unit_test_setup(refuses_old_devices, set_up_matmul),
        cmocka_unit_test_setup(refuses_other_than_hopper, set_up_matmul),
        cmocka_unit_test_setup(packs_one_way, set_up_matmul),
        cmocka_unit_test_setup(takes_tunings, set_up_matmul),
        cmocka_unit_test_setup(keeps_plans, set_up_matmul),
        cmocka_unit_test_setup(takes_a_configuration, set_up_matmul),
        cmocka_unit_test(refuses_too_many_arguments),
        cmocka_unit_test_setup(describes_a_choice, set_up_matmul),
        cmocka_unit_test_setup(workspaces_grow, set_up_matmul),
        cmocka_unit_test_setup(looks_in_memory_then_files_then_compiles, set_up_matmul),
        cmocka_unit_test_setup(loads_each_kernel_once, set_up_matmul),
        cmocka_unit_test_setup(lists_the_kernels_that_it_needs, set_up_matmul),
        cmocka_unit_test_setup(names_what_it_does_not_find, set_up_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
