/* Batch invariant products on software devices with the CPU engine: a row of C has the same bits
 * alone and among any others; and how plans make it so. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "matmul/internal.h"
#include "sweep.h"
#include "tilus/tilus.h"

enum { N = 264, K = 512, M_MOST = 136 };

typedef struct Session {
    tilus_rt *rt;
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
} Session;

static void assert_ok(tilus_status status)
{
    if (status != TILUS_OK)
        fail_msg("%s: %s", tilus_status_name(status), tilus_rt_error());
}

static Session session_open(const char *device, tilus_matmul_problem problem)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device(device), .device_count = 1,
                                      .engine = tilus_cpu_engine()};
    const tilus_matmul_options own = {.struct_size = sizeof own, .compile = tilus_matmul_compile};
    char message[256];
    Session s;
    problem.struct_size = sizeof problem;
    assert_int_equal(tilus_rt_open(&options, &s.rt, message, sizeof message), TILUS_OK);
    assert_ok(tilus_matmul_open(s.rt, &own, &s.matmul));
    assert_ok(tilus_matmul_plan_create(s.matmul, &problem, 0, &s.plan));
    return s;
}

static void session_close(Session *s)
{
    tilus_matmul_plan_free(s->plan);
    tilus_matmul_close(s->matmul);
    tilus_rt_close(s->rt);
}

static double uniform(void)
{
    static uint32_t seed = 12345;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) / 8388608.0 - 1;
}

static uint64_t place(const Session *s, const void *bytes, size_t size)
{
    uint64_t address;
    assert_ok(tilus_rt_allocate(s->rt, 0, size, &address));
    assert_ok(bytes ? tilus_rt_upload(s->rt, 0, address, bytes, size)
                    : tilus_rt_fill(s->rt, 0, address, 0, size));
    return address;
}

/* Returns numbers of f16 from -scale to scale. */
static uint16_t *numbers(size_t count, double scale)
{
    uint16_t *all = calloc(count, sizeof *all);
    for (size_t i = 0; i < count; i++)
        all[i] = (uint16_t)tilus_encode("f16", scale * uniform());
    return all;
}

static uint64_t pack_random(const Session *s)
{
    size_t size = tilus_matmul_packed_size(s->plan);
    unsigned char codes[N * K / 2], *packed = malloc(size);
    uint16_t *scales = numbers(N * K / 128, 0.1);
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (unsigned char)(128 * (uniform() + 1));
    const tilus_matmul_weights weights = {sizeof weights, codes, scales, NULL, .transposed = true};
    assert_ok(tilus_matmul_pack(s->plan, &weights, packed));
    uint64_t address = place(s, packed, size);
    free(scales);
    free(packed);
    return address;
}

/* Multiplies `m` rows of A into `c`, of f32, whose bits tell orders of sums apart. */
static void run(const Session *s, uint64_t weights, const uint16_t *a, int64_t m, float *c)
{
    size_t room = tilus_matmul_workspace_size(s->plan, m), size = (size_t)m * N * sizeof *c;
    const tilus_matmul_call call = {
        .struct_size = sizeof call, .m = m, .a = place(s, a, (size_t)m * K * 2), .weights = weights,
        .c = place(s, NULL, size), .workspace = place(s, NULL, room), .workspace_size = room};
    assert_ok(tilus_matmul_prepare(s->plan, m));
    for (int pass = 0; pass < 2; pass++)        /* the workspace serves again */
        assert_ok(tilus_matmul_run(s->plan, (tilus_stream)0x1000, &call));
    assert_ok(tilus_rt_download(s->rt, 0, c, call.c, size));
    const uint64_t all[] = {call.a, call.c, call.workspace};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        assert_ok(tilus_rt_release(s->rt, 0, all[i]));
}

/* Compares C with that of the usual plan, of the same packed weights. */
static void check_against_usual(const Session *s, tilus_matmul_problem problem, uint64_t packed,
                                const uint16_t *a, const float *c)
{
    Session usual = *s;
    float *other = calloc((size_t)M_MOST * N, sizeof *other);
    double error = 0, norm = 0;
    problem.struct_size = sizeof problem;
    problem.batch_invariant = false;
    assert_ok(tilus_matmul_plan_create(s->matmul, &problem, 0, &usual.plan));
    assert_int_equal(usual.plan->packed.identity, s->plan->packed.identity);
    run(&usual, packed, a, M_MOST, other);
    for (size_t i = 0; i < (size_t)M_MOST * N; i++) {
        error += (c[i] - other[i]) * (c[i] - other[i]);
        norm += other[i] * other[i];
    }
    assert_true(error < 1e-6 * norm);
    tilus_matmul_plan_free(usual.plan);
    free(other);
}

/* Compares rows of calls of several m, around the edges of tiles, with those of one call. */
static void check_rows(const char *device, const char *weights, const int *sizes)
{
    const tilus_matmul_problem problem = {.weights = weights, .result = "f32", .n = N, .k = K,
                                          .group = 128, .batch_invariant = true};
    Session s = session_open(device, problem);
    uint64_t packed = pack_random(&s);
    uint16_t *a = numbers((size_t)M_MOST * K, 1);
    size_t count = (size_t)M_MOST * N;
    float *all = calloc(count, sizeof *all), *c = calloc(count, sizeof *c);
    run(&s, packed, a, M_MOST, all);
    check_against_usual(&s, problem, packed, a, all);
    for (size_t i = 0; *sizes; sizes++, i++) {
        if (!sweep_takes(i))
            continue;
        int first = M_MOST - *sizes;
        run(&s, packed, a + first * K, *sizes, c);
        if (memcmp(c, all + first * N, (size_t)*sizes * N * sizeof *c) != 0)
            fail_msg("%s on %s: rows of m = %d differ", weights, device, *sizes);
    }
    assert_ok(tilus_rt_release(s.rt, 0, packed));
    free(a);
    free(all);
    free(c);
    session_close(&s);
}

static void rows_do_not_depend_on_m(void **state)
{
    (void)state;
    check_rows("h200", "u4", (const int[]){1, 7, 17, 33, 65, 97, 0});
    check_rows("a100", "i4", (const int[]){1, 9, 33, 0});
}

static void expect_described(const Session *s, int64_t m, const char *part)
{
    char *text = tilus_matmul_describe(s->plan, m);
    if (!strstr(text, part))
        fail_msg("no \"%s\" in:\n%s", part, text);
    tilus_free(text);
}

/* All buckets have the same parts of k, types and scales; on other devices one configuration. */
static void plans_have_one_order(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "i4", "u8", "f6e3m2"};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        tilus_matmul_problem problem = {.weights = types[i], .n = 8192, .k = 8192, .group = 128,
                                        .batch_invariant = true};
        Session h200 = session_open("h200", problem), a100 = session_open("a100", problem);
        assert_int_equal(matmul_split(&h200.plan->spec), 4);
        for (int64_t m = 1; m <= MATMUL_M_MAX; m *= 2) {
            const MatmulConfig *c = &plan_choice(h200.plan, m)->config;
            assert_true(matmul_by_wgmma(c) && c->scale_weights);
            assert_true(plan_choice(h200.plan, m)->floor ==
                        matmul_floor(&h200.plan->spec, m, &h200.plan->device));
            c = &plan_choice(a100.plan, m)->config;
            assert_memory_equal(c, &a100.plan->choices->config, sizeof *c);
            assert_int_equal(c->columns, 8);
            assert_false(dense_serves(a100.plan, m));
        }
        expect_described(&h200, 16, "batch invariant, 4 parts of k: ");
        expect_described(&a100, 16, "batch invariant: ");
        session_close(&h200);
        session_close(&a100);
    }
}

/* Configurations are for the rows that weights are packed by. */
static void plans_are_of_their_packing(void **state)
{
    (void)state;
    static const char *const devices[] = {"h200", "a100"};
    for (int i = 0; i < 6; i++) {
        int rows = 32 << i / 2;
        Session s = session_open(devices[i % 2], (tilus_matmul_problem){
            .weights = "u4", .n = 4096, .k = 4096, .group = 128, .n_tile = rows,
            .batch_invariant = true});
        assert_int_equal(s.plan->packed.rows, rows);
        for (int64_t m = 1; m <= MATMUL_M_MAX; m *= 2)
            assert_int_equal(plan_choice(s.plan, m)->config.rows, rows);
        session_close(&s);
    }
}

/* Tiles of all products together, or pairs of neighbors where blocks have clusters, have every part once. */
static void parts_are_shared_out(void **state)
{
    (void)state;
    static const int64_t ns[] = {64, 264, 3000, 8192, 57344};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        Session s = session_open("h200", (tilus_matmul_problem){
            .weights = "u4", .n = ns[i], .k = 4096, .group = 128, .batch_invariant = true});
        int split = matmul_split(&s.plan->spec);
        assert_true(split >= 1 && s.plan->packed.slices % split == 0);
        for (int64_t m = 1; m <= MATMUL_M_MAX; m = 3 * m + 1) {
            const Choice *c = plan_choice(s.plan, m);
            Product p = product_of(s.plan, c, m);
            int64_t rows = p.rows < m ? p.rows : m;
            int cluster = matmul_cluster(&s.plan->spec, &c->config);
            int64_t tile_n = (int64_t)cluster * c->config.warps_n * c->config.rows;
            int64_t tiles = ((rows - 1) / (8 * c->config.tiles) + 1) * ((ns[i] - 1) / tile_n + 1);
            assert_int_equal(p.blocks % cluster, 0);
            assert_int_equal(p.blocks / cluster * (p.whole * split + p.share) + p.extra, tiles * split);
            assert_in_range(p.blocks, 1, 132);
        }
        session_close(&s);
    }
}

/* Parts of k of a tile cost as much as its sums: of 128 of n x 256 rows as of 256 x 128. */
static void many_rows_take_single_fragments(void **state)
{
    (void)state;
    static const int64_t ns[] = {8192, 57344};
    for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
        Session s = session_open("h200", (tilus_matmul_problem){
            .weights = "u4", .n = ns[i], .k = 8192, .group = 128, .batch_invariant = true});
        assert_false(matmul_has_single_fragments(&plan_choice(s.plan, 64)->config));
        assert_true(matmul_has_single_fragments(&plan_choice(s.plan, 256)->config));
        assert_true(matmul_has_single_fragments(&plan_choice(s.plan, 4096)->config));
        session_close(&s);
    }
}

/* Experts have whole tiles; devices without wgmma do not serve them. */
static void experts_by_wgmma_alone(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 512,
                                          .k = 512, .group = 128, .experts = 4,
                                          .batch_invariant = true};
    Session s = session_open("h200", problem);
    for (int64_t m = 1; m <= MATMUL_M_MAX; m *= 2)
        assert_true(matmul_by_wgmma(&plan_choice(s.plan, m)->config) &&
                    plan_choice(s.plan, m)->config.scale_weights);
    session_close(&s);
    s = session_open("a100", (tilus_matmul_problem){.weights = "u4", .n = 64, .k = 128});
    tilus_matmul_plan *plan;
    assert_int_equal(tilus_matmul_plan_create(s.matmul, &problem, 0, &plan),
                     TILUS_ERROR_UNSUPPORTED);
    session_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_do_not_depend_on_m),
        cmocka_unit_test(plans_have_one_order),
        cmocka_unit_test(plans_are_of_their_packing),
        cmocka_unit_test(parts_are_shared_out),
        cmocka_unit_test(many_rows_take_single_fragments),
        cmocka_unit_test(experts_by_wgmma_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
