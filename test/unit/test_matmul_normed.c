/* RMS norms of A in the order that a product reads, on the CPU engine from the template's text: one program
 * writes the bytes that @norm_rows and then @prepare or @arrange write. Elements of A are small integers, whose
 * squares have the same sum in any order. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_engine.h"
#include "matmul_library.h"

typedef struct Case {
    tilus_matmul_problem problem;
    int64_t m, stride;          /* stride 0: k */
    MatmulConfig config;
} Case;

typedef struct Data {
    tilus_matmul_plan *plan;
    MatmulConfig config;
    Region a, norm, plain, two, one;    /* what two programs prepare, and one */
} Data;

static Region region_of(int64_t size, int fill)
{
    Region r = {device_block((size_t)size), (size_t)size};
    memset(r.data, fill, r.size);
    return r;
}

/* Makes `count` elements from `first` to `first` + 8. */
static Region small_integers(DType type, int64_t count, int first)
{
    Region r = region_of(count * dtype_bits(type) / 8, 0);
    for (int64_t i = 0; i < count; i++)
        bits_set(r.data, (size_t)i, dtype_bits(type), dtype_encode(type, first + (int)(random_u32() % 9)));
    return r;
}

/* Counts the bytes of A in the product's order. */
static int64_t prepared_bytes(const tilus_matmul_plan *plan, const MatmulConfig *c, int64_t m)
{
    int64_t slices = plan->packed.slices, tile = c->columns * c->tiles;
    if (matmul_by_wgmma(c))
        return m * slices * matmul_arranged_k(&plan->spec, c) * 2;
    return (m + tile - 1) / tile * slices * c->tiles * matmul_packed_form(&plan->spec, c->rows, c->columns).panel;
}

static Data make_data(const Case *c)
{
    Data d = {.plan = plan_of(matmul, c->problem), .config = c->config};
    const MatmulSpec *s = &d.plan->spec;
    use_rows(d.plan, c->config.rows);
    int64_t stride = c->stride ? c->stride : s->k, bytes = prepared_bytes(d.plan, &d.config, c->m);
    d.a = small_integers(s->activations, (c->m - 1) * stride + s->k, -4);
    d.norm = small_integers(s->activations, s->k, 1);
    d.plain = region_of(c->m * s->k * dtype_bits(s->activations) / 8, 0xff);
    d.two = region_of(bytes, 0xff);
    d.one = region_of(bytes, 0xff);
    return d;
}

static void free_data(Data *d)
{
    Region *const regions[] = {&d->a, &d->norm, &d->plain, &d->two, &d->one};
    for (size_t i = 0; i < COUNT(regions); i++)
        free(regions[i]->data);
    tilus_matmul_plan_free(d->plan);
}

/* Runs a program on rows of A that lie `stride` apart. */
static void run(const Data *d, MatmulProgram program, const Region *from, int64_t m, int64_t stride,
                const Region *to)
{
    MatmulSpec spec = d->plan->spec;
    spec.a_stride = stride;
    KernelLaunch l = {.kernel = kernel_find(matmul, &spec, &d->config, program, "sm_90a")};
    l.args[MATMUL_ARGUMENT_a].pointer = (uintptr_t)from->data;
    l.args[MATMUL_ARGUMENT_norm].pointer = (uintptr_t)d->norm.data;
    l.args[MATMUL_ARGUMENT_to].pointer = (uintptr_t)to->data;
    l.args[MATMUL_ARGUMENT_prearranged].pointer = (uintptr_t)to->data;
    l.args[MATMUL_ARGUMENT_m].integer = m;
    l.args[MATMUL_ARGUMENT_k].integer = spec.k;
    l.args[MATMUL_ARGUMENT_stride].integer = stride;
    l.args[MATMUL_ARGUMENT_slices].integer = d->plan->packed.slices;
    l.args[MATMUL_ARGUMENT_eps].real = spec.eps;
    const Region regions[] = {d->a, d->norm, d->plain, d->two, d->one};
    run_on_cpu(&l, regions, COUNT(regions));
}

static void check(const Case *c)
{
    Data d = make_data(c);
    const MatmulSpec *s = &d.plan->spec;
    int64_t stride = c->stride ? c->stride : s->k;
    assert_true(matmul_prepares_normed(s, &d.config));
    run(&d, MATMUL_NORM, &d.a, c->m, stride, &d.plain);
    run(&d, matmul_prepare_program(&d.config), &d.plain, c->m, s->k, &d.two);
    run(&d, matmul_normed_program(&d.config), &d.a, c->m, stride, &d.one);
    assert_memory_equal(d.one.data, d.two.data, d.two.size);
    free_data(&d);
}

#define NORMED .prologue = TILUS_PROLOGUE_RMS_NORM, .eps = 0.25, .n = 64

/* Panels for mma, of 1 to 8 columns and several tiles, with sums of groups and without. */
static void prepares_panels(void **state)
{
    (void)state;
    const Case cases[] = {
        {{NORMED, .weights = "u4", .k = 512, .group = 128}, 5, 0, {32, 1, 4, 1, 2, 8, 1, 2, 0, 1, 0, 0}},
        {{NORMED, .weights = "u4", .k = 1024, .group = 64, .zeros = TILUS_ZEROS_INTEGER}, 19, 1031,
         {32, 1, 4, 1, 2, 8, 2, 2, 0, 1, 0, 0}},
        {{NORMED, .weights = "u4", .k = 2000, .group = 128, .zeros = TILUS_ZEROS_INTEGER}, 8, 0,
         {32, 1, 4, 1, 2, 8, 1, 2, 0, 1, 1, 0}},
        {{NORMED, .weights = "i3", .activations = "bf16", .k = 300, .group = 32}, 2, 0,
         {32, 1, 2, 1, 2, 2, 1, 2, 0, 1, 0, 0}},
        {{NORMED, .weights = "u5", .k = 5120}, 3, 5128, {32, 1, 2, 1, 2, 4, 1, 2, 0, 1, 0, 0}},
        {{NORMED, .weights = "f6e3m2", .k = 3584, .group = 128}, 9, 0, {64, 1, 2, 1, 2, 8, 2, 2, 1, 1, 0, 0}},
        {{NORMED, .weights = "f4e2m1", .scales = "f8e4m3", .k = 1000, .group = 16}, 4, 0,
         {32, 1, 2, 1, 2, 8, 1, 2, 1, 1, 0, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i]);
}

/* Rows for wgmma. */
static void arranges_rows(void **state)
{
    (void)state;
    const Case cases[] = {
        {{NORMED, .weights = "u4", .k = 1024, .group = 128}, 20, 0, {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}},
        {{NORMED, .weights = "u4", .k = 700, .group = 128, .zeros = TILUS_ZEROS_INTEGER}, 35, 704,
         {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 1, 1}},
        {{NORMED, .weights = "i5", .activations = "bf16", .k = 5120, .group = 128}, 33, 0,
         {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}},
        {{NORMED, .weights = "f4e2m1", .scales = "f8e4m3", .k = 640, .group = 16}, 18, 0,
         {64, 4, 1, 1, 4, 8, 8, 3, 1, 1, 0, 1}},
        {{NORMED, .weights = "u6", .k = 1000, .group = 128}, 17, 1003, {64, 4, 1, 1, 4, 8, 16, 3, 1, 1, 0, 1}},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check(&cases[i]);
}

/* Blocks that arrange a row take its norm themselves; rows that copies read, and long ones, have one before. */
static void leaves_other_norms(void **state)
{
    (void)state;
    const Case cases[] = {
        {{NORMED, .weights = "u4", .k = 1024, .group = 128}, 1, 0, {32, 1, 4, 1, 2, 1, 1, 4, 0, 1, 0, 0}},
        {{NORMED, .weights = "u4", .k = 1024, .group = 128}, 64, 0, {64, 4, 1, 1, 4, 8, 8, 3, 1, 1, 0, 1}},
        {{NORMED, .weights = "u4", .k = 16512, .group = 128}, 4, 0, {32, 1, 4, 1, 2, 8, 1, 2, 0, 1, 0, 0}},
        {{.n = 64, .weights = "u4", .k = 1024, .group = 128}, 4, 0, {32, 1, 4, 1, 2, 8, 1, 2, 0, 1, 0, 0}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_plan *plan = plan_of(matmul, cases[i].problem);
        assert_false(matmul_prepares_normed(&plan->spec, &cases[i].config));
        tilus_matmul_plan_free(plan);
    }
}

/* A row's launch comes before the product alone, for any stride, and has no place for a plain norm. */
static void takes_one_launch(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){NORMED, .weights = "u4", .k = 1024, .group = 128});
    const Choice *choice = plan_choice(plan, 16);
    assert_null(choice->prologue);
    assert_string_equal(choice->prepare->program, "prepare_normed");
    for (int i = 0; i < MATMUL_LOOSER; i++) {
        assert_null(choice->looser[i].prologue);
        assert_string_equal(choice->looser[i].prepare->program, "prepare_normed");
    }
    const Product p = product_of(plan, choice, 16);
    assert_int_equal(p.plain_a, p.prearranged_a);
    tilus_matmul_plan_free(plan);
}

/* Rows of 11 and of 16 slices have as many in registers, but not as many warps. */
static void names_differ_with_warps(void **state)
{
    (void)state;
    const MatmulConfig config = {32, 1, 4, 1, 2, 8, 1, 2, 0, 1, 0, 0};
    const MatmulProgram programs[] = {MATMUL_PREPARE_NORMED, MATMUL_ARRANGE_NORMED};
    MatmulSpec short_row = {0}, long_row = {0};
    char message[128], names[2][MATMUL_NAME_MAX], texts[2][MATMUL_TEXT_MAX];
    tilus_matmul_problem problem = {.struct_size = sizeof problem, NORMED, .weights = "u4", .k = 1300, .group = 128};
    assert_true(matmul_spec(&problem, &short_row, message, sizeof message));
    problem.k = 2048;
    assert_true(matmul_spec(&problem, &long_row, message, sizeof message));
    for (size_t i = 0; i < COUNT(programs); i++) {
        const MatmulSpec *const specs[] = {&short_row, &long_row};
        for (int s = 0; s < 2; s++) {
            matmul_name(specs[s], &config, programs[i], "sm_90a", names[s]);
            matmul_parameters(specs[s], &config, programs[i], texts[s]);
            assert_non_null(strstr(texts[s], "A_SLICES=16"));
        }
        assert_string_not_equal(texts[0], texts[1]);
        assert_string_not_equal(names[0], names[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(prepares_panels, open_library, close_library),
        cmocka_unit_test_setup_teardown(arranges_rows, open_library, close_library),
        cmocka_unit_test_setup_teardown(leaves_other_norms, open_library, close_library),
        cmocka_unit_test_setup_teardown(takes_one_launch, open_library, close_library),
        cmocka_unit_test(names_differ_with_warps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
