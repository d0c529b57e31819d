/* The matmul library on software devices: plans, kernels, packing and shards as on such
 * devices. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_kernels.h"

static tilus_rt *open_device(const char *name)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device(name), .device_count = 1};
    char message[256];
    tilus_rt *rt;
    assert_int_equal(tilus_rt_open(&options, &rt, message, sizeof message), TILUS_OK);
    return rt;
}

/* A driver whose device is the one described. */
static tilus_rt *open_such_a_driver(const char *name)
{
    const tilus_device_description *d = tilus_find_device(name);
    fake->capability = d->capability;
    fake->device_name = d->name;
    fake->multiprocessors = d->multiprocessors;
    fake->shared_memory = (int)d->shared_memory;
    return open_fake();
}

static tilus_matmul_plan *plan_on(tilus_rt *rt, tilus_matmul_problem problem,
                                  tilus_matmul **matmul)
{
    assert_ok(tilus_matmul_open(rt, NULL, matmul));
    return plan_of(*matmul, problem);
}

static void assert_same_text(char *a, char *b)
{
    assert_non_null(a);
    assert_string_equal(a, b);
    free(a);
    free(b);
}

static void assert_same_packed(tilus_matmul_plan *a, tilus_matmul_plan *b)
{
    Plain plain = plain_random(a);
    const tilus_matmul_weights weights = weights_of(&plain, true);
    size_t size = tilus_matmul_packed_size(a);
    void *one = malloc(size), *other = malloc(size);
    assert_int_equal(size, tilus_matmul_packed_size(b));
    assert_ok(tilus_matmul_pack(a, &weights, one));
    assert_ok(tilus_matmul_pack(b, &weights, other));
    assert_memory_equal(one, other, size);
    free(one);
    free(other);
    plain_free(&plain);
}

/* Compares all that a plan tells on a software device and on a driver's. */
static void assert_same(const char *device, tilus_matmul_problem problem, bool packs)
{
    tilus_matmul *soft, *hard;
    tilus_rt *rt = open_device(device), *driver = open_such_a_driver(device);
    tilus_matmul_plan *a = plan_on(rt, problem, &soft), *b = plan_on(driver, problem, &hard);
    for (int64_t m = 1; m <= MATMUL_M_MAX; m *= 16) {
        assert_same_text(tilus_matmul_describe(a, m), tilus_matmul_describe(b, m));
        assert_int_equal(tilus_matmul_workspace_size(a, m), tilus_matmul_workspace_size(b, m));
    }
    for (int64_t m = 0; m <= 256; m += 16)
        assert_same_text(tilus_matmul_kernels(a, m), tilus_matmul_kernels(b, m));
    if (packs)
        assert_same_packed(a, b);
    tilus_matmul_plan_free(a);
    tilus_matmul_plan_free(b);
    tilus_matmul_close(soft);
    tilus_matmul_close(hard);
    tilus_rt_close(rt);
    tilus_rt_close(driver);
}

static void plans_as_on_such_a_device(void **state)
{
    (void)state;
    assert_same("h200", (tilus_matmul_problem){.weights = "u4", .n = 57344, .k = 8192,
                                               .group = 128}, false);
    assert_same("h200", (tilus_matmul_problem){.weights = "f6e3m2", .n = 200, .k = 1100,
                                               .group = 128}, true);
    assert_same("a100", (tilus_matmul_problem){.weights = "i3", .n = 200, .k = 1100,
                                               .zeros = TILUS_ZEROS_INTEGER}, true);
    assert_same("l40s", (tilus_matmul_problem){.weights = "u4", .n = 256, .k = 512, .group = 64,
                                               .zeros = TILUS_ZEROS_FLOAT}, true);
}

/* 33 columns of tiles are shared at some m, and at others whole tiles go round on 132
 * multiprocessors. */
static void needs_more_for_more_rows(void **state)
{
    (void)state;
    const char *const products[] = {NULL, "f8e4m3"};
    tilus_rt *rt = open_device("h200");
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        tilus_matmul *matmul;
        tilus_matmul_plan *plan = plan_on(rt, (tilus_matmul_problem){
            .weights = "u4", .n = 8448, .k = 4096, .group = 128, .product = products[i]}, &matmul);
        size_t before = 0, size;
        for (int64_t m = 1; m <= 2048; m++, before = size) {
            size = tilus_matmul_workspace_size(plan, m);
            if (size < before)
                fail_msg("%zu bytes for %d rows, %zu for one less", size, (int)m, before);
        }
        tilus_matmul_plan_free(plan);
        tilus_matmul_close(matmul);
    }
    tilus_rt_close(rt);
}

/* Tunings are found by the device's name. */
static void finds_its_tunings(void **state)
{
    (void)state;
    tilus_matmul *matmul;
    tilus_rt *rt = open_device("h200");
    tilus_matmul_plan *plan = plan_on(rt, (tilus_matmul_problem){
        .weights = "u4", .n = 57344, .k = 8192, .group = 128}, &matmul);
    char *text = tilus_matmul_describe(plan, 1);
    assert_contains(text, "by the built-in tunings");
    free(text);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

static void expect_described(const tilus_matmul_plan *plan, int64_t m, const char *part)
{
    char *text = tilus_matmul_describe(plan, m);
    assert_contains(text, part);
    free(text);
}

/* Up to 3/4 of a bucket tiles by wgmma have 3/4 of its rows, where they are faster so. */
static void plans_between_powers_of_two(void **state)
{
    (void)state;
    static const struct {
        int64_t m;
        const char *tiles;
    } cases[] = {{33, "256 x 48,"}, {48, "256 x 48,"}, {49, "256 x 64,"}, {65, "256 x 96,"},
                 {96, "256 x 96,"}, {97, "256 x 128,"}, {129, "128 x 192,"}, {193, "128 x 256,"},
                 {257, "128 x 192,"}, {385, "128 x 256,"}, {4096, "128 x 256,"}};
    tilus_matmul *matmul;
    tilus_rt *rt = open_device("h200");
    tilus_matmul_plan *plan = plan_on(rt, (tilus_matmul_problem){
        .weights = "u4", .n = 57344, .k = 8192, .group = 128}, &matmul);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_described(plan, cases[i].m, cases[i].tiles);
    char *kernels = tilus_matmul_kernels(plan, 128);
    assert_contains(kernels, "-m48-");
    assert_contains(kernels, "-m96-");
    free(kernels);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

/* Every device that is known has plans. */
static void plans_for_known_devices(void **state)
{
    (void)state;
    const tilus_device_description *d;
    for (size_t i = 0; (d = tilus_known_device(i)); i++) {
        tilus_matmul *matmul;
        tilus_rt *rt = open_device(d->key);
        tilus_matmul_plan_free(plan_on(rt, (tilus_matmul_problem){
            .weights = "i6", .n = 256, .k = 256, .group = 128}, &matmul));
        tilus_matmul_close(matmul);
        tilus_rt_close(rt);
    }
}

/* A device may have cuBLAS: then it also needs the kernel that unpacks. */
static void lists_kernels_of_devices_with_cublas(void **state)
{
    (void)state;
    tilus_matmul *matmul;
    tilus_rt *rt = open_device("a100");
    tilus_matmul_plan *plan = plan_on(rt, (tilus_matmul_problem){
        .weights = "u4", .n = 256, .k = 256, .group = 128}, &matmul);
    char *few = tilus_matmul_kernels(plan, 256), *many = tilus_matmul_kernels(plan, 4096);
    assert_null(strstr(few, "\tunpack\t"));
    assert_contains(many, "\tunpack\t");
    assert_contains(many, "\tmatmul\t");
    free(many);
    many = tilus_matmul_kernels(plan, 65536);
    char *all = tilus_matmul_kernels(plan, INT64_MAX);
    assert_string_equal(all, many);
    free(all);
    free(few);
    free(many);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

static void runs_nothing(void **state)
{
    (void)state;
    FakeCompiler compiler = {0};
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .compile = fake_compile, .compile_data = &compiler};
    tilus_matmul *matmul;
    tilus_rt *rt = open_device("h200");
    assert_ok(tilus_matmul_open(rt, &options, &matmul));
    tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){.weights = "u4", .n = 256,
                                                                     .k = 256});
    const tilus_matmul_call call = call_for(plan, 1);
    assert_fails(tilus_matmul_prepare(plan, 1), TILUS_ERROR_NO_DRIVER, "a software device");
    assert_fails(tilus_matmul_run(plan, NULL, &call), TILUS_ERROR_NO_DRIVER,
                 "a software device");
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(plans_as_on_such_a_device, set_up_matmul),
        cmocka_unit_test_setup(needs_more_for_more_rows, set_up_matmul),
        cmocka_unit_test_setup(finds_its_tunings, set_up_matmul),
        cmocka_unit_test_setup(plans_between_powers_of_two, set_up_matmul),
        cmocka_unit_test_setup(plans_for_known_devices, set_up_matmul),
        cmocka_unit_test_setup(lists_kernels_of_devices_with_cublas, set_up_matmul),
        cmocka_unit_test_setup(runs_nothing, set_up_matmul),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
