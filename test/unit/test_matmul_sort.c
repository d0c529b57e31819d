/* Rows sorted by the experts that they chose, by the matmul library on the CPU engine, beside a stable sort. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "matmul/internal.h"
#include "matmul_device.h"

enum { ROWS_MOST = 1600, EXPERTS_MOST = 1024 };

typedef struct Case {
    int m, experts;
    int odd;                    /* one number in so many is no expert's; 0: none */
    int words;                  /* of a number */
} Case;

typedef struct Rows {
    tilus_matmul_plan *plan;
    tilus_matmul_sort sort;
    int32_t chosen[2 * ROWS_MOST], ids[ROWS_MOST], offsets[EXPERTS_MOST + 1];
} Rows;

static uint32_t draw(void)
{
    static uint32_t seed = 2463534242u;
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

static int32_t draw_expert(const Case *c)
{
    static const int32_t odd[] = {-1, INT32_MIN, INT32_MAX};
    int kind = (int)(draw() % 4);
    if (c->odd && draw() % (unsigned)c->odd == 0)
        return kind == 3 ? c->experts : odd[kind];
    return (int32_t)(draw() % (unsigned)c->experts);
}

/* Returns the place of a number among experts: 0 before them, experts + 1 behind. */
static int bucket_of(const Case *c, int32_t expert)
{
    return expert < 0 ? 0 : expert >= c->experts ? c->experts + 1 : expert + 1;
}

/* Draws what rows chose, and sorts them. Upper halves of long numbers are no zeros. */
static void draw_rows(Rows *r, const Case *c)
{
    int next = 0;
    for (int i = 0; i < c->m; i++) {
        r->chosen[i * c->words] = draw_expert(c);
        if (c->words == 2)
            r->chosen[2 * i + 1] = (int32_t)draw();
    }
    for (int bucket = 0; bucket < c->experts + 2; bucket++) {
        if (bucket > 0)
            r->offsets[bucket - 1] = next;
        for (int i = 0; i < c->m; i++)
            if (bucket_of(c, r->chosen[i * c->words]) == bucket)
                r->ids[next++] = i;
    }
}

static uint64_t place(const void *bytes, size_t size)
{
    uint64_t address;
    assert_ok(tilus_rt_allocate(rt, 0, size, &address));
    if (bytes)
        assert_ok(tilus_rt_upload(rt, 0, address, bytes, size));
    return address;
}

static void make_rows(Rows *r, const Case *c)
{
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 32, .k = 128,
                                          .experts = c->experts};
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &r->plan));
    draw_rows(r, c);
    size_t size = tilus_matmul_workspace_size(r->plan, c->m), rows = (size_t)c->m * sizeof *r->ids;
    r->sort = (tilus_matmul_sort){
        .struct_size = sizeof r->sort, .m = c->m, .chosen_stride = c->words, .workspace = place(NULL, size),
        .workspace_size = size, .chosen = place(r->chosen, (size_t)c->words * rows), .ids = place(NULL, rows),
        .offsets = place(NULL, sizeof r->offsets)};
}

static void free_rows(Rows *r)
{
    const uint64_t all[] = {r->sort.workspace, r->sort.chosen, r->sort.ids, r->sort.offsets};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_ok(tilus_rt_release(rt, 0, all[i]));
    tilus_matmul_plan_free(r->plan);
}

static void check(const Case *c)
{
    static Rows r;
    int32_t ids[ROWS_MOST], offsets[EXPERTS_MOST + 1];
    size_t rows = (size_t)c->m * sizeof *ids, ends = (size_t)(c->experts + 1) * sizeof *offsets;
    make_rows(&r, c);
    assert_ok(tilus_matmul_prepare(r.plan, c->m));
    assert_ok(tilus_matmul_sort_rows(r.plan, NULL, &r.sort));
    assert_ok(tilus_rt_download(rt, 0, ids, r.sort.ids, rows));
    assert_ok(tilus_rt_download(rt, 0, offsets, r.sort.offsets, ends));
    assert_memory_equal(ids, r.ids, rows);
    assert_memory_equal(offsets, r.offsets, ends);
    free_rows(&r);
}

static void sorts_rows_of_one_block(void **state)
{
    (void)state;
    const Case cases[] = {{1, 1, 0, 1}, {8, 128, 0, 1}, {5, 3, 2, 2}, {64, 60, 9, 1}, {65, 256, 0, 2}, {300, 1024, 20, 1},
                          {512, 128, 5, 2}, {511, 1, 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void sorts_rows_of_several_blocks(void **state)
{
    (void)state;
    const Case cases[] = {{513, 128, 0, 1}, {1024, 40, 7, 2}, {1500, 1000, 9, 1}, {1600, 2, 3, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check(&cases[i]);
}

static void counts_its_kernels(void **state)
{
    (void)state;
    static Rows r;
    make_rows(&r, &(Case){8, 40, 0, 1});
    char *few = tilus_matmul_kernels(r.plan, 8), *many = tilus_matmul_kernels(r.plan, 1000);
    assert_non_null(strstr(few, "sort_rows-n64-one1-experts64-sm_90a\tsort_rows\t"));
    assert_null(strstr(few, "count_rows"));
    assert_non_null(strstr(many, "count_rows-n512-experts64-sm_90a\tcount_rows\t"));
    assert_non_null(strstr(many, "sort_rows-n512-experts64-sm_90a\tsort_rows\t"));
    tilus_free(few);
    tilus_free(many);
    free_rows(&r);
}

static void refuses_wrong_fields(void **state)
{
    (void)state;
    static Rows r;
    make_rows(&r, &(Case){8, 40, 0, 1});
    tilus_matmul_sort sort = r.sort;
    sort.m = 65537;
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "sort: m is 65537, not 0 to 65536");
    sort = r.sort;
    sort.chosen_stride = 3;
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "sort: chosen_stride is 3, not 0 to 2");
    sort = r.sort;
    sort.chosen += 2;
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "chosen is 0x");
    sort = r.sort;
    sort.ids = 0;
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "ids is 0");
    sort = r.sort;
    sort.workspace_size = TILUS_MATMUL_SEMAPHORES - 1;
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "8 rows need");
    sort = r.sort;
    sort.m = 0;
    sort.chosen = sort.ids = 0;
    assert_ok(tilus_matmul_sort_rows(r.plan, NULL, &sort));
    free_rows(&r);
}

static void refuses_one_matrix(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 32, .k = 128};
    const tilus_matmul_sort sort = {.struct_size = sizeof sort, .m = 1};
    Rows r;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &r.plan));
    assert_refused(tilus_matmul_sort_rows(r.plan, NULL, &sort), "the problem has no experts");
    tilus_matmul_plan_free(r.plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sorts_rows_of_one_block), cmocka_unit_test(sorts_rows_of_several_blocks),
        cmocka_unit_test(counts_its_kernels),      cmocka_unit_test(refuses_wrong_fields),
        cmocka_unit_test(refuses_one_matrix),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
