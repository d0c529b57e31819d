/* Which kernels a plan of experts chooses, on devices that need not be there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "matmul/internal.h"
#include "matmul_device.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* Tiles of n are as wide as the columns fill: a wide one reads panels of A less often. */
static void tiles_are_wide_where_columns_fill_them(void **state)
{
    (void)state;
    const struct {
        const char *weights;
        int64_t n, k, top, group;
        int tile_n;
    } cases[] = {{"u4", 1536, 2048, 8, 128, 256}, {"f4e2m1", 2880, 2880, 4, 32, 128}};
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tilus_matmul_problem problem = {
            .struct_size = sizeof problem, .weights = cases[i].weights, .n = cases[i].n, .k = cases[i].k,
            .group = cases[i].group, .experts = 128, .top = cases[i].top, .gather = true};
        tilus_matmul_plan *plan;
        assert_ok(plan_create_absent(matmul, &problem, &device, &plan));
        const MatmulConfig *c = &plan_choice(plan, 16 * cases[i].top)->config;
        assert_int_equal(c->warps_n * c->rows, cases[i].tile_n);
        tilus_matmul_plan_free(plan);
    }
}

/* Where rows of a token are combined: as many blocks as keep a multiprocessor busy share them, and what comes behind a
 * sum, or needs another order of sums, is not combined in the product. */
static void combines_where_it_can(void **state)
{
    (void)state;
    const struct {
        tilus_matmul_problem problem;
        int64_t rows;
        int splits, per_sm;         /* splits 0: a launch of its own combines */
    } cases[] = {
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8}, 8, 2, 1},
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8}, 16, 1, 1},
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8}, 24, 1, 2},
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8}, 64, 0, 0},
        {{.n = 2048, .k = 768, .group = 128, .experts = 64, .top = 8}, 32, 0, 0},
        {{.n = 7168, .k = 2048, .group = 128, .experts = 256, .top = 8, .n_tile = 64}, 8, 1, 1},
        {{.n = 7168, .k = 2048, .group = 128, .experts = 256, .top = 8, .n_tile = 64}, 32, 0, 0},
        {{.n = 4096, .k = 14336, .group = 128, .experts = 8, .top = 2, .n_tile = 64}, 2, 2, 1},
        {{.n = 2048, .k = 768, .experts = 128, .top = 8}, 8, 0, 0},
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8, .function = TILUS_EPILOGUE_SILU}, 8, 0, 0},
        {{.n = 2048, .k = 768, .group = 128, .experts = 128, .top = 8, .batch_invariant = true}, 8, 0, 0},
        {{.n = 64, .k = 128, .group = 128, .experts = 1024, .top = 33}, 33, 0, 0},
    };
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_problem problem = cases[i].problem;
        problem.struct_size = sizeof problem;
        problem.weights = "u4";
        problem.combine = true;
        tilus_matmul_plan *plan;
        assert_ok(plan_create_absent(matmul, &problem, &device, &plan));
        const Choice *c = plan_choice(plan, cases[i].rows);
        int splits = matmul_combines(&c->config) ? matmul_splits(&c->config) : 0;
        if (splits != cases[i].splits || (splits && c->config.per_sm != cases[i].per_sm))
            fail_msg("case %zu: %d blocks share a token, %d a multiprocessor", i, splits, c->config.per_sm);
        assert_true(!c->combine == (splits > 0));
        tilus_matmul_plan_free(plan);
    }
}

/* Where each of three blocks of a multiprocessor has a few tiles, they are small. */
static void spreads_few_tiles(void **state)
{
    (void)state;
    const struct {
        int64_t n, rows;
        bool small;
    } cases[] = {{1536, 8, true}, {1536, 32, true}, {1536, 64, false}, {5760, 8, true}, {5760, 16, false}, {64, 8, false}};
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tilus_matmul_problem problem = {
            .struct_size = sizeof problem, .weights = "u4", .n = cases[i].n, .k = 2048, .group = 128,
            .experts = 1024, .top = 8, .n_tile = 32, .gather = true};
        tilus_matmul_plan *plan;
        assert_ok(plan_create_absent(matmul, &problem, &device, &plan));
        const MatmulConfig *c = &plan_choice(plan, cases[i].rows)->config;
        if ((c->per_sm == 3) != cases[i].small)
            fail_msg("case %zu: %d blocks a multiprocessor", i, c->per_sm);
        tilus_matmul_plan_free(plan);
    }
}

/* Rows that may well have the same expert are tiles together. */
static void shares_experts_of_many_rows(void **state)
{
    (void)state;
    const struct {
        int experts, top, rows;
        bool few;
    } cases[] = {{128, 8, 8, true}, {8, 8, 8, true}, {8, 2, 4, false}, {32, 1, 8, true}, {28, 1, 8, true}, {27, 1, 8, false},
                 {128, 8, 32, true}, {64, 8, 32, false}, {256, 8, 64, false}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tilus_matmul_problem problem = {
            .struct_size = sizeof problem, .weights = "u4", .n = 256, .k = 1024, .group = 128,
            .experts = cases[i].experts, .top = cases[i].top, .gather = true};
        tilus_matmul_plan *plan;
        assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
        assert_int_equal(matmul_arranges_in_blocks(&plan_choice(plan, cases[i].rows)->config), cases[i].few);
        tilus_matmul_plan_free(plan);
    }
}

/* The model has a kernel for last rows where experts have more rows than few, in tiles of which some are nearly empty. */
static void chooses_tiles_for_last_rows(void **state)
{
    (void)state;
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 4096, .k = 7168, .group = 128,
                                          .experts = 256, .top = 8, .gather = true};
    tilus_matmul_plan *plan;
    assert_ok(plan_create_absent(matmul, &problem, &device, &plan));
    assert_null(plan_choice(plan, 8)->last);
    assert_null(plan_choice(plan, 1024)->last);
    const Choice *c = plan_choice(plan, 8192);
    assert_true(c->last && c->rest.tiles > 0 && c->rest.tiles < c->config.tiles);
    assert_true(c->rest.scale_weights == c->config.scale_weights && c->rest.rows == c->config.rows);
    char *text = tilus_matmul_describe(plan, 8192), tiles[64];
    snprintf(tiles, sizeof tiles, "tiles of 256 x %d, of %d for last rows", 8 * c->config.tiles, 8 * c->rest.tiles);
    assert_non_null(strstr(text, tiles));
    assert_non_null(strstr(text, c->last->name));
    free(text);
    tilus_matmul_plan_free(plan);
}

static void assert_deep(const tilus_matmul_plan *plan, MatmulConfig c)
{
    enum { MOST = 6 };
    assert_in_range(c.stages, 3, MOST);
    c.stages++;
    assert_true(c.stages > MOST || !matmul_config_fits(&plan->spec, &c, &plan->device));
}

/* Rings of both kernels have as many stages as fit, up to six, where A has a slot in each. */
static void gives_rings_the_stages_that_fit(void **state)
{
    (void)state;
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    const struct {
        const char *weights;
        int64_t experts, m;
    } cases[] = {{"u4", 128, 2048}, {"u4", 128, 8192}, {"u4", 256, 32768}, {"f8e4m3", 256, 8192}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = cases[i].weights, .n = 4096,
                                              .k = 7168, .group = 128, .experts = cases[i].experts, .top = 8};
        tilus_matmul_plan *plan;
        assert_ok(plan_create_absent(matmul, &problem, &device, &plan));
        const Choice *c = plan_choice(plan, cases[i].m);
        assert_true(matmul_by_wgmma(&c->config) && !matmul_has_single_fragments(&c->config));
        assert_deep(plan, c->config);
        if (c->last)
            assert_deep(plan, c->rest);
        tilus_matmul_plan_free(plan);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tiles_are_wide_where_columns_fill_them),
        cmocka_unit_test(combines_where_it_can),
        cmocka_unit_test(spreads_few_tiles),
        cmocka_unit_test(shares_experts_of_many_rows),
        cmocka_unit_test(chooses_tiles_for_last_rows),
        cmocka_unit_test(gives_rings_the_stages_that_fit),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
