/* Products of rows of several experts on a software device with the CPU engine, by public calls
 * alone, against sums of f64; and what is refused. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "matmul/internal.h"
#include "matmul_device.h"
#include "tilus/types.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { EXPERTS_MOST = 128 };

/* ---- numbers ----------------------------------------------------------------------- */

/* Elements of a type, and what they stand for. */
typedef struct Numbers {
    void *bytes;
    double *values;
    size_t size;
} Numbers;

static double uniform(void)
{
    static uint32_t seed = 12345;
    seed = seed * 1664525 + 1013904223;
    return (seed >> 8) / 8388608.0 - 1;
}

static Numbers numbers(const char *type, int64_t count, double scale)
{
    unsigned bits = tilus_type_bits(type);
    Numbers n = {.size = ((size_t)count * bits + 7) / 8 + 1};
    n.bytes = calloc(n.size, 1);
    n.values = calloc((size_t)count + 1, sizeof *n.values);
    for (int64_t i = 0; i < count; i++) {
        uint64_t code = tilus_encode(type, scale * uniform());
        n.values[i] = tilus_decode(type, code);
        tilus_set_bits(n.bytes, (size_t)i, bits, code);
    }
    return n;
}

static void numbers_free(Numbers *n)
{
    free(n->bytes);
    free(n->values);
}

static uint64_t place(const void *bytes, size_t size)
{
    uint64_t address;
    assert_ok(tilus_rt_allocate(rt, 0, size, &address));
    if (bytes)
        assert_ok(tilus_rt_upload(rt, 0, address, bytes, size));
    return address;
}

/* ---- cases --------------------------------------------------------------------------- */

/* Products are computed as the plan chooses, or by mma in blocks that share tiles. */
enum { CHOSEN = 0, SHARED = -1, FEW = -2, COMBINED = -3, LAST = 256 };

/* Rows 0 to `before` - 1 and the last `behind` are no expert's. */
typedef struct Case {
    tilus_matmul_problem problem;
    int32_t before, behind, rows[EXPERTS_MOST];
    double scale;               /* of codes */
    int how;                    /* CHOSEN, SHARED, FEW: in blocks, COMBINED there, or tiles of 8 rows, by
                                   wgmma, plus LAST times those for last rows that are no more */
} Case;

typedef struct Operands {
    const Case *c;
    tilus_matmul_plan *plan;
    int64_t m, top, results;    /* rows of C */
    int32_t *ids, offsets[EXPERTS_MOST + 1];
    Numbers a, bias, residual, route;
    double *b;                  /* [experts, n, k], dequantized */
    tilus_matmul_call call;
} Operands;

static const char *or(const char *type, const char *usual)
{
    return type ? type : usual;
}

/* Packs the weights of an expert, and writes them down as numbers. */
static void pack_expert(const Operands *o, int64_t expert, unsigned char *packed)
{
    const tilus_matmul_problem *p = &o->c->problem;
    int64_t group = p->group ? p->group : p->k, groups = (p->k - 1) / group + 1;
    const char *zero_types[] = {"u8", "u8", "f16"};
    bool factored = matmul_has_factor(&o->plan->spec);
    float factor = factored ? 0.0004F * (float)(1 + expert) : 1;
    Numbers codes = numbers(p->weights, p->n * p->k, o->c->scale);
    Numbers scales = numbers(or(p->scales, "f16"), p->n * groups, factored ? 50 : 0.02);
    Numbers zeros = numbers(zero_types[p->zeros], p->n * groups, p->zeros ? 3 : 0);
    const tilus_matmul_weights weights = {sizeof weights, codes.bytes, scales.bytes,
                                          p->zeros ? zeros.bytes : NULL, .transposed = true,
                                          .factor = factored ? &factor : NULL};
    assert_ok(tilus_matmul_pack(o->plan, &weights, packed));
    double *b = o->b + expert * p->n * p->k;
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < p->k; k++) {
            int64_t g = n * groups + k / group;
            b[n * p->k + k] = (codes.values[n * p->k + k] - zeros.values[g]) * scales.values[g] *
                              (double)factor;
        }
    numbers_free(&codes);
    numbers_free(&scales);
    numbers_free(&zeros);
}

static uint64_t pack(const Operands *o)
{
    size_t size = tilus_matmul_packed_size(o->plan), all = size * (size_t)o->c->problem.experts;
    unsigned char *packed = malloc(all);
    for (int64_t e = 0; e < o->c->problem.experts; e++)
        pack_expert(o, e, packed + (size_t)e * size);
    uint64_t address = place(packed, all);
    free(packed);
    return address;
}

/* Shuffles 0 .. m - 1. */
static int32_t *make_ids(int64_t m)
{
    int32_t *ids = calloc((size_t)m, sizeof *ids);
    for (int64_t i = 0; i < m; i++) {
        int64_t other = (int64_t)((uniform() + 1) / 2 * (double)(i + 1));
        ids[i] = ids[other];
        ids[other] = (int32_t)i;
    }
    return ids;
}

/* Makes a workspace whose semaphores are zero, and the rest NaN. */
static uint64_t make_workspace(size_t size)
{
    uint64_t address = place(NULL, size);
    assert_ok(tilus_rt_fill(rt, 0, address, 0xff, size));
    assert_ok(tilus_rt_fill(rt, 0, address, 0, TILUS_MATMUL_SEMAPHORES));
    return address;
}

static void make_rows(Operands *o)
{
    o->m = o->offsets[0] = o->c->before;
    for (int64_t e = 0; e < o->c->problem.experts; e++) {
        o->m += o->c->rows[e];
        o->offsets[e + 1] = (int32_t)o->m;
    }
    o->m += o->c->behind;
    o->ids = make_ids(o->m);
}

/* Makes weights of tokens' rows, 0 for those that no expert has. */
static Numbers make_route(const Operands *o)
{
    Numbers route = numbers("f32", o->m, 1);
    for (int64_t r = 0; r < o->m; r++)
        if (r < o->offsets[0] || r >= o->offsets[o->c->problem.experts]) {
            route.values[o->ids[r]] = 0;
            tilus_set_bits(route.bytes, (size_t)o->ids[r], 32, 0);
        }
    return route;
}

static Kernel *find_kernel(const tilus_matmul_plan *plan, const MatmulConfig *config,
                           MatmulProgram program)
{
    Kernel *kernel = kernel_find(matmul, &plan->spec, config, program, plan->target);
    assert_non_null(kernel);
    return kernel;
}

/* Has the plan multiply m rows by wgmma, which the cost model takes for larger products: with single
 * fragments in tiles of more than 16 times 8 rows. */
static void use_wgmma(tilus_matmul_plan *plan, int64_t m, int tiles, bool scale_weights, int rest)
{
    Choice *choice = (Choice *)plan_choice(plan, m);
    int rows = plan->packed.rows, tile_n = tiles > 16 ? 128 : 256;
    MatmulConfig config = {.rows = rows, .warps_n = tile_n / rows, .warps_k = 1, .stage_k_tiles = 1,
                           .stages = 2, .columns = 8, .tiles = tiles, .prearranged_a = 3,
                           .scale_weights = scale_weights, .per_sm = 1, .register_reallocation = 1};
    assert_true(matmul_config_fits(&plan->spec, &config, &plan->device));
    choice->config = config;
    choice->find_tiles = find_kernel(plan, &config, MATMUL_FIND_TILES);
    choice->prepare = find_kernel(plan, &config, MATMUL_ARRANGE_EXPERTS);
    choice->product = find_kernel(plan, &config, MATMUL_WGMMA_EXPERTS);
    config.tiles = rest;
    choice->rest = rest ? config : (MatmulConfig){0};
    choice->last = rest ? find_kernel(plan, &config, MATMUL_WGMMA_LAST) : NULL;
}

/* Has the plan multiply m rows in tiles of one warp, by one block on each multiprocessor: of a
 * wide n there are more tiles than blocks, which share them. */
static void share_tiles(tilus_matmul_plan *plan, int64_t m)
{
    enum { BLOCKS = 4, SHARED_BYTES = 50000 };  /* as @matmul_experts has them */
    Choice *choice = (Choice *)plan_choice(plan, m);
    MatmulConfig config = {.rows = plan->packed.rows, .warps_n = 1, .warps_k = 1,
                           .stage_k_tiles = 1, .stages = 2, .columns = 8, .tiles = 1,
                           .prearranged_a = 2, .per_sm = 1};
    assert_true(matmul_config_fits(&plan->spec, &config, &plan->device));
    *choice = (Choice){.config = config,
                       .prepare = find_kernel(plan, &config, MATMUL_PREPARE_EXPERTS),
                       .product = find_kernel(plan, &config, MATMUL_PRODUCT_EXPERTS)};
    plan->device.multiprocessors = BLOCKS;
    int64_t blocks = product_of(plan, choice, m).blocks, tiles = plan->spec.n / config.rows;
    assert_true(blocks == BLOCKS && tiles == BLOCKS + 1);
    assert_true((BLOCKS - 1) * plan->packed.slices * (int64_t)plan->packed.block > BLOCKS * SHARED_BYTES);
}

static Operands make_operands(const Case *c)
{
    const tilus_matmul_problem *p = &c->problem;
    Operands o = {.c = c, .top = p->top ? p->top : 1};
    tilus_matmul_problem problem = *p;
    problem.struct_size = sizeof problem;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &o.plan));
    make_rows(&o);
    if (c->how == SHARED)
        share_tiles(o.plan, o.m);
    else if (c->how == FEW)
        assert_true(matmul_arranges_in_blocks(&plan_choice(o.plan, o.m)->config));
    else if (c->how == COMBINED)
        assert_true(matmul_combines(&plan_choice(o.plan, o.m)->config));
    else if (c->how != CHOSEN)
        use_wgmma(o.plan, o.m, c->how % LAST, p->group < 128 || c->how % LAST > 16, c->how / LAST);
    o.results = p->combine ? o.m / o.top : o.m;
    const char *result = or(p->result, or(p->scales, "f16"));
    o.a = numbers(or(p->activations, "f16"), (p->gather ? o.m / o.top : o.m) * p->k, 1);
    o.bias = numbers(result, p->experts * p->n, 1);
    o.residual = numbers(result, o.results * p->n, 1);
    o.route = make_route(&o);
    o.b = calloc((size_t)(p->experts * p->n * p->k), sizeof *o.b);
    size_t room = tilus_matmul_workspace_size(o.plan, o.m), ids = (size_t)o.m * sizeof *o.ids;
    o.call = (tilus_matmul_call){
        .struct_size = sizeof o.call, .m = o.m, .a = place(o.a.bytes, o.a.size),
        .weights = pack(&o), .bias = p->bias ? place(o.bias.bytes, o.bias.size) : 0,
        .residual = p->residual ? place(o.residual.bytes, o.residual.size) : 0,
        .c = place(NULL, o.residual.size), .workspace = make_workspace(room),
        .workspace_size = room, .weights_identity = tilus_matmul_packed_identity(o.plan),
        .offsets = place(o.offsets, sizeof o.offsets),
        .ids = p->gather || p->scatter || p->combine ? place(o.ids, ids) : 0,
        .route = p->combine ? place(o.route.bytes, o.route.size) : 0};
    return o;
}

static void free_operands(Operands *o)
{
    const tilus_matmul_call *c = &o->call;
    const uint64_t all[] = {c->a, c->weights, c->bias, c->residual, c->c, c->workspace,
                            c->offsets, c->ids, c->route};
    for (size_t i = 0; i < COUNT(all); i++)
        assert_ok(tilus_rt_release(rt, 0, all[i]));
    tilus_matmul_plan_free(o->plan);
    numbers_free(&o->a);
    numbers_free(&o->bias);
    numbers_free(&o->residual);
    numbers_free(&o->route);
    free(o->b);
    free(o->ids);
}

/* ---- the product in f64 ----------------------------------------------------------------- */

static double multiply(const Operands *o, int64_t expert, int64_t row, int64_t n)
{
    const tilus_matmul_problem *p = &o->c->problem;
    int64_t from = p->gather ? o->ids[row] / o->top : row;
    double sum = p->bias ? o->bias.values[expert * p->n + n] : 0;
    for (int64_t k = 0; k < p->k; k++)
        sum += o->a.values[from * p->k + k] * o->b[(expert * p->n + n) * p->k + k];
    return p->function == TILUS_EPILOGUE_SILU ? sum / (1 + exp(-sum)) : sum;
}

/* Adds the rows of an expert to what C is. `touched` rows are those that it stores. */
static void add_expert(const Operands *o, int64_t expert, double *c, bool *touched)
{
    const tilus_matmul_problem *p = &o->c->problem;
    for (int64_t row = o->offsets[expert]; row < o->offsets[expert + 1]; row++) {
        int64_t to = p->combine ? o->ids[row] / o->top : p->scatter ? o->ids[row] : row;
        double weight = p->combine ? o->route.values[o->ids[row]] : 1;
        touched[to] = true;
        for (int64_t n = 0; n < p->n; n++)
            c[to * p->n + n] += weight * multiply(o, expert, row, n);
    }
}

static double *find_result(const Operands *o, bool *touched)
{
    const tilus_matmul_problem *p = &o->c->problem;
    double *c = calloc((size_t)(o->results * p->n), sizeof *c);
    for (int64_t e = 0; e < p->experts; e++)
        add_expert(o, e, c, touched);
    for (int64_t i = 0; i < o->results * p->n; i++) {
        touched[i / p->n] |= p->combine;
        c[i] = p->multiply ? c[i] * o->residual.values[i]
                           : c[i] + (p->residual ? o->residual.values[i] : 0);
    }
    return c;
}

/* Compares: rows that nobody has keep their bytes, of 0xff. */
static void compare(const Operands *o, const void *got, const char *result)
{
    const tilus_matmul_problem *p = &o->c->problem;
    bool *touched = calloc((size_t)o->results, sizeof *touched);
    double *want = find_result(o, touched), error = 0, norm = 0;
    unsigned bits = tilus_type_bits(result);
    for (int64_t i = 0; i < o->results * p->n; i++) {
        uint64_t code = tilus_get_bits(got, (size_t)i, bits);
        if (!touched[i / p->n]) {
            assert_int_equal(code, bits == 32 ? 0xffffffff : 0xffff);
            continue;
        }
        error += pow(tilus_decode(result, code) - want[i], 2);
        norm += want[i] * want[i];
    }
    double most = strcmp(result, "bf16") ? 0.002 : 0.01;
    if (!(norm > 0 && sqrt(error / norm) < most))
        fail_msg("%s, %s: %g of the norm %g", p->weights, result, sqrt(error / norm), norm);
    free(want);
    free(touched);
}

static void assert_semaphores_are_zero(const Operands *o)
{
    static unsigned char got[TILUS_MATMUL_SEMAPHORES], zero[TILUS_MATMUL_SEMAPHORES];
    assert_ok(tilus_rt_download(rt, 0, got, o->call.workspace, sizeof got));
    assert_memory_equal(got, zero, sizeof got);
}

static void check_product(const Case *c)
{
    Operands o = make_operands(c);
    const char *result = or(c->problem.result, or(c->problem.scales, "f16"));
    size_t size = o.residual.size - 1;
    void *got = malloc(size);
    assert_ok(tilus_matmul_prepare(o.plan, o.m));
    for (int pass = 0; pass < 2; pass++) {      /* the workspace serves again */
        assert_ok(tilus_rt_fill(rt, 0, o.call.c, 0xff, size));
        assert_ok(tilus_matmul_run(o.plan, NULL, &o.call));
        assert_ok(tilus_rt_download(rt, 0, got, o.call.c, size));
        compare(&o, got, result);
        assert_semaphores_are_zero(&o);
    }
    free(got);
    free_operands(&o);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void multiplies_sorted_rows(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u4", .n = 72, .k = 256, .group = 128, .experts = 4,
                           .zeros = TILUS_ZEROS_INTEGER, .bias = true}, 2, 3, {5, 0, 1, 17}, 15, 0});
    check_product(&(Case){{.weights = "f6e3m2", .activations = "bf16", .scales = "bf16", .n = 40, .k = 136,
                           .experts = 1, .residual = true}, 0, 0, {9}, 10, 0});
}

static void gathers_and_scatters_rows(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "i3", .n = 48, .k = 256, .group = 64, .experts = 5, .top = 4,
                           .gather = true, .function = TILUS_EPILOGUE_SILU},
                          1, 2, {0, 3, 1, 0, 5}, 3, 0});
    check_product(&(Case){{.weights = "u8", .scales = "bf16", .result = "f32", .n = 64, .k = 192,
                           .experts = 3, .scatter = true, .residual = true, .bias = true},
                          1, 1, {3, 0, 8}, 100, 0});
    check_product(&(Case){{.weights = "u1", .n = 32, .k = 128, .group = 32, .experts = 2, .top = 3,
                           .zeros = TILUS_ZEROS_FLOAT, .gather = true, .scatter = true},
                          0, 0, {2, 4}, 1, 0});
}

/* Tokens some of whose rows, or all, no expert has. */
static void combines_rows_of_tokens(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u4", .n = 72, .k = 128, .group = 128, .experts = 3,
                           .top = 2, .combine = true}, 3, 4, {2, 0, 3}, 15, 0});
    check_product(&(Case){{.weights = "f4e2m1", .n = 41, .k = 128, .experts = 2, .top = 3,
                           .gather = true, .combine = true, .residual = true, .result = "f32"},
                          0, 0, {4, 5}, 6, 0});
    /* Many rows of a token. */
    check_product(&(Case){{.weights = "u4", .n = 40, .k = 128, .experts = 12, .top = 11, .combine = true},
                          1, 2, {3, 0, 1, 2, 0, 4, 1, 1, 2, 3, 1, 1}, 15, 0});
    check_product(&(Case){{.weights = "u4", .n = 24, .k = 128, .experts = 16, .top = 16, .combine = true},
                          0, 0, {4, 4, 4, 4}, 15, 0});
}

/* Up to 32 rows: blocks find their experts, and arrange A. A block may have tiles of several rows. */
static void arranges_few_rows_in_blocks(void **state)
{
    (void)state;
    const Case cases[] = {
        {{.weights = "u4", .n = 72, .k = 1024, .group = 128, .experts = 40, .top = 4, .gather = true},
         0, 0, {[3] = 1, [17] = 1, [18] = 1, [39] = 1}, 15, FEW},
        {{.weights = "u4", .n = 40, .k = 1000, .group = 32, .experts = 5, .top = 8,
          .zeros = TILUS_ZEROS_INTEGER, .bias = true, .residual = true}, 1, 2, {2, 0, 0, 0, 3}, 15, FEW},
        {{.weights = "f4e2m1", .activations = "bf16", .scales = "bf16", .n = 64, .k = 1024, .group = 128,
          .experts = 3, .top = 6, .gather = true, .combine = true, .residual = true}, 0, 0, {1, 5, 0}, 15, FEW},
        {{.weights = "i8", .n = 71, .k = 1024, .experts = 2, .top = 2, .scatter = true}, 0, 0, {1, 1}, 255, FEW},
        {{.weights = "u3", .n = 64, .k = 1024, .group = 128, .experts = 4, .bias = true,
          .function = TILUS_EPILOGUE_SILU}, 0, 0, {0, 0, 0, 1}, 7, FEW},
        {{.weights = "u4", .n = 4480, .k = 1024, .group = 128, .n_tile = 32, .experts = 3,
          .top = 6, .zeros = TILUS_ZEROS_FLOAT}, 1, 1, {1, 2, 1}, 15, FEW},
        {{.weights = "u4", .n = 72, .k = 1024, .group = 128, .experts = 40, .top = 20, .gather = true}, 1, 2,
         {[0] = 1, [15] = 2, [16] = 1, [30] = 9, [31] = 1, [32] = 1, [39] = 2}, 15, FEW},
        {{.weights = "u2", .n = 64, .k = 1024, .group = 128, .experts = 32, .top = 32}, 0, 0, {[31] = 32}, 3, FEW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_product(&cases[i]);
}

/* Few tokens, whose rows the product combines: in clusters of 1 to 8 blocks, some of which have rows that no expert
 * has, all of a token's rows, or rows of one expert. */
static void combines_few_rows_in_blocks(void **state)
{
    (void)state;
    const Case cases[] = {
        {{.weights = "u4", .n = 72, .k = 768, .group = 128, .experts = 40, .top = 8, .combine = true},
         0, 0, {[3] = 1, [17] = 1, [18] = 2, [22] = 1, [23] = 1, [38] = 1, [39] = 1}, 15, COMBINED},
        {{.weights = "u4", .n = 72, .k = 768, .group = 128, .experts = 40, .top = 8, .combine = true,
          .zeros = TILUS_ZEROS_INTEGER, .bias = true, .residual = true, .early_routing = true},
         1, 2, {[0] = 2, [17] = 1, [31] = 1, [32] = 1}, 15, COMBINED},
        {{.weights = "f4e2m1", .activations = "bf16", .scales = "bf16", .n = 64, .k = 1024, .group = 32,
          .experts = 4, .top = 6, .gather = true, .combine = true, .residual = true, .bias = true},
         0, 0, {1, 5, 0}, 15, COMBINED},
        {{.weights = "f4e2m1", .scales = "f8e4m3", .n = 70, .k = 512, .group = 16, .experts = 8, .top = 4,
          .combine = true, .bias = true, .result = "f32"}, 0, 0, {0, 1, 0, 2, 0, 0, 0, 1}, 15, COMBINED},
        {{.weights = "i5", .n = 41, .k = 200, .group = 64, .experts = 5, .top = 1, .combine = true},
         0, 0, {[4] = 1}, 15, COMBINED},
        {{.weights = "u3", .n = 64, .k = 640, .group = 128, .experts = 7, .top = 3, .combine = true,
          .zeros = TILUS_ZEROS_FLOAT}, 0, 1, {1, 0, 0, 0, 0, 0, 1}, 7, COMBINED},
        {{.weights = "u4", .n = 40, .k = 256, .group = 128, .experts = 128, .top = 8, .combine = true,
          .residual = true}, 0, 0, {[0] = 3, [5] = 4, [6] = 1, [30] = 8, [31] = 9, [32] = 3, [39] = 4}, 15, COMBINED},
        {{.weights = "u1", .n = 4200, .k = 128, .group = 128, .experts = 3, .top = 2, .combine = true,
          .n_tile = 128}, 0, 0, {0, 1, 1}, 1, COMBINED},
        {{.weights = "u4", .n = 3200, .k = 768, .group = 128, .experts = 4, .top = 4, .n_tile = 32, .combine = true},
         0, 0, {1, 1, 0, 2}, 15, COMBINED},         /* a stage has slices of several rows */
        {{.weights = "u8", .n = 8, .k = 128, .group = 128, .experts = 32, .top = 32, .combine = true},
         0, 0, {[31] = 32}, 255, COMBINED},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_product(&cases[i]);
}

/* A row of NaN whose weight is 0 counts nothing, by the product and by a launch behind it. */
static void leaves_out_rows_of_weight_0(void **state)
{
    (void)state;
    const Case cases[] = {
        {{.weights = "u4", .n = 72, .k = 256, .group = 128, .experts = 8, .top = 4, .combine = true},
         0, 0, {[1] = 1, [2] = 1, [5] = 1, [7] = 1}, 15, COMBINED},
        {{.weights = "u4", .n = 72, .k = 256, .experts = 8, .top = 4, .combine = true},
         0, 0, {[1] = 1, [2] = 1, [5] = 1, [7] = 1}, 15, CHOSEN},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Operands o = make_operands(&cases[i]);
        int64_t row = 1, id = o.ids[row], k = o.c->problem.k;
        uint16_t got[72], nan[256];
        memset(nan, 0x7e, sizeof nan);
        o.route.values[id] = 0;
        tilus_set_bits(o.route.bytes, (size_t)id, 32, 0);
        assert_ok(tilus_rt_upload(rt, 0, o.call.route, o.route.bytes, o.route.size));
        assert_ok(tilus_rt_upload(rt, 0, o.call.a + (uint64_t)(row * k) * sizeof *nan, nan, sizeof nan));
        assert_ok(tilus_matmul_run(o.plan, NULL, &o.call));
        assert_ok(tilus_rt_download(rt, 0, got, o.call.c, sizeof got));
        compare(&o, got, "f16");
        free_operands(&o);
    }
}

/* Nobody has a row: nothing is stored. */
static void leaves_rows_of_nobody(void **state)
{
    (void)state;
    Case c = {{.weights = "u4", .n = 72, .k = 1024, .group = 128, .experts = 3, .top = 5},
              3, 2, {0, 0, 0}, 15, FEW};
    Operands o = make_operands(&c);
    unsigned char got[5 * 72 * 2], same[sizeof got];
    memset(same, 0xff, sizeof same);
    assert_ok(tilus_rt_fill(rt, 0, o.call.c, 0xff, sizeof got));
    assert_ok(tilus_matmul_run(o.plan, NULL, &o.call));
    assert_ok(tilus_rt_download(rt, 0, got, o.call.c, sizeof got));
    assert_memory_equal(got, same, sizeof got);
    free_operands(&o);
}

/* More tiles along n than blocks, each of which has iterations of two or three of them. */
static void shares_out_iterations(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u8", .n = 160, .k = 4096, .group = 128, .n_tile = 32,
                           .experts = 2}, 0, 0, {5, 0}, 255, SHARED});
}

/* As many rows as a call may have, each a token of its own: more than a grid has along y. */
static void combines_the_most_tokens(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u1", .n = 8, .k = 32, .experts = 1, .combine = true,
                           .residual = true}, 65535, 0, {1}, 1, 0});
}

/* Tiles of many rows, where scales act on weights. */
static void multiplies_many_rows(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u4", .n = 64, .k = 256, .group = 128, .experts = 3,
                           .zeros = TILUS_ZEROS_INTEGER, .gather = true},
                          0, 5, {130, 1, 200}, 15, 0});
}

/* A layer's gate: silu(A x B) times what another product has stored. */
static void multiplies_by_the_residual(void **state)
{
    (void)state;
    Case c = {{.weights = "u4", .n = 72, .k = 256, .group = 128, .experts = 3, .gather = true, .top = 2,
               .function = TILUS_EPILOGUE_SILU, .residual = true, .multiply = true},
              1, 0, {2, 0, 15}, 15, 0};
    check_product(&c);
    c.how = 2;
    check_product(&c);
}

static void multiplies_by_wgmma(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u4", .n = 264, .k = 256, .group = 128, .experts = 3,
                           .gather = true, .combine = true, .top = 2, .residual = true},
                          1, 0, {20, 0, 39}, 15, 4});
    check_product(&(Case){{.weights = "i6", .n = 71, .k = 200, .group = 32, .experts = 2,
                           .scatter = true, .bias = true, .residual = true},
                          1, 2, {17, 3}, 30, 2});
    check_product(&(Case){{.weights = "u5", .n = 136, .k = 256, .group = 128, .experts = 3,
                           .zeros = TILUS_ZEROS_INTEGER, .gather = true, .residual = true},
                          1, 0, {150, 0, 39}, 15, 24});
}

/* Last rows of experts by a kernel of smaller tiles: as many as its tiles have, one more, none, and of an expert that has no
 * others. */
static void multiplies_last_rows_apart(void **state)
{
    (void)state;
    const Case cases[] = {
        {{.weights = "u4", .n = 264, .k = 256, .group = 128, .experts = 7, .gather = true, .combine = true, .top = 3,
          .residual = true}, 1, 4, {48, 49, 0, 32, 33, 16, 3}, 15, 4 + LAST * 2},
        {{.weights = "u4", .n = 72, .k = 256, .group = 64, .experts = 3, .zeros = TILUS_ZEROS_INTEGER, .bias = true},
         2, 0, {5, 17, 16}, 15, 4 + LAST * 2},
        {{.weights = "i6", .n = 71, .k = 200, .group = 32, .experts = 2, .scatter = true}, 0, 3, {64, 64}, 30, 4 + LAST * 2},
        {{.weights = "u4", .n = 72, .k = 256, .group = 128, .experts = 2}, 0, 0, {0, 2}, 15, 8 + LAST * 4},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        check_product(&cases[i]);
}

/* Groups of 16 with scales of 8 bits, and a factor of each expert. */
static void multiplies_by_factors(void **state)
{
    (void)state;
    Case c = {{.weights = "f4e2m1", .scales = "f8e4m3", .result = "f32", .n = 72, .k = 256, .group = 16,
               .experts = 3, .bias = true}, 1, 0, {2, 0, 15}, 5, 0};
    check_product(&c);
    c.how = 2;
    check_product(&c);
}

/* k that the group does not divide: the last group is short. */
static void multiplies_a_short_last_group(void **state)
{
    (void)state;
    check_product(&(Case){{.weights = "u4", .n = 32, .k = 232, .group = 64, .experts = 2,
                           .zeros = TILUS_ZEROS_INTEGER}, 0, 0, {2, 1}, 15, 0});
    check_product(&(Case){{.weights = "i5", .n = 32, .k = 328, .group = 256, .experts = 2},
                          0, 0, {2, 1}, 15, 0});
}

/* An expert is packed as one matrix is. */
static void packs_an_expert_as_a_matrix(void **state)
{
    (void)state;
    tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 768,
                                    .k = 2048, .group = 128, .experts = 128, .top = 8};
    tilus_matmul_plan *experts, *one;
    int64_t k_tile;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &experts));
    tilus_matmul_tile(experts, &problem.n_tile, &k_tile);
    problem.experts = problem.top = 0;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &one));
    assert_int_equal(tilus_matmul_packed_identity(one), tilus_matmul_packed_identity(experts));
    assert_int_equal(tilus_matmul_packed_size(one), tilus_matmul_packed_size(experts));
    tilus_matmul_plan_free(one);
    tilus_matmul_plan_free(experts);
}

/* Groups of 16 want for registers in packed blocks of 128 rows, which the model alone would choose. */
static void packs_small_groups_in_narrow_blocks(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u1",
                                          .n = 131072, .k = 256, .group = 16, .experts = 1};
    tilus_matmul_plan *plan;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    assert_true(plan->packed.rows <= 64);
    tilus_matmul_plan_free(plan);
}

static void runs_no_rows(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 64,
                                          .k = 128};
    const tilus_matmul_call call = {.struct_size = sizeof call};
    tilus_matmul_plan *plan;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    assert_ok(tilus_matmul_run(plan, NULL, &call));
    tilus_matmul_plan_free(plan);
}

static void describes_experts(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 768,
                                          .k = 2048, .group = 128, .experts = 128, .top = 8,
                                          .gather = true, .combine = true};
    tilus_matmul_plan *plan;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    char *text = tilus_matmul_describe(plan, 64), *kernels = tilus_matmul_kernels(plan, 64);
    assert_non_null(strstr(text, "128 experts, 8 rows a token, rows of A gathered, rows of C "
                                 "combined"));
    assert_non_null(strstr(text, ", combine-f16-d8-sm_90a"));
    assert_non_null(strstr(kernels, "\tmatmul_experts\t"));
    assert_non_null(strstr(kernels, "EXPERTS=128 GATHER=1"));
    assert_non_null(strstr(kernels, "EXPERTS=128 SCATTER=1"));
    assert_non_null(strstr(kernels, "\tcombine\t"));
    assert_null(strstr(kernels, "\tmatmul\t"));
    tilus_free(text);
    text = tilus_matmul_describe(plan, 8);
    assert_non_null(strstr(text, ", rows of a token combined in blocks; "));
    assert_null(strstr(text, ", combine-"));
    assert_non_null(strstr(kernels, " SPLITS=8 CHOICES=1 EARLY=0\n"));
    tilus_free(text);
    tilus_free(kernels);
    tilus_matmul_plan_free(plan);
}

/* ---- refusals ------------------------------------------------------------------------------ */

static void refuse_problem(tilus_matmul_problem problem, const char *part)
{
    tilus_matmul_plan *plan;
    problem.struct_size = sizeof problem;
    problem.weights = "u4";
    problem.n = problem.n ? problem.n : 64;
    problem.k = problem.k ? problem.k : 128;
    assert_refused(tilus_matmul_plan_create(matmul, &problem, 0, &plan), part);
}

static void refuses_problems(void **state)
{
    (void)state;
    refuse_problem((tilus_matmul_problem){.experts = -1}, "experts is -1, not 0 to 1024");
    refuse_problem((tilus_matmul_problem){.experts = 1025}, "experts is 1025, not 0 to 1024");
    refuse_problem((tilus_matmul_problem){.experts = 1, .top = 65537}, "top is 65537, not 0 to 65536");
    refuse_problem((tilus_matmul_problem){.top = 2}, "top is given, but experts is 0");
    refuse_problem((tilus_matmul_problem){.gather = true}, "gather is given, but experts is 0");
    refuse_problem((tilus_matmul_problem){.scatter = true}, "scatter is given, but experts is 0");
    refuse_problem((tilus_matmul_problem){.combine = true}, "combine is given, but experts is 0");
    refuse_problem((tilus_matmul_problem){.experts = 2, .scatter = true, .combine = true},
                   "scatter and combine are both given");
    refuse_problem((tilus_matmul_problem){.multiply = true}, "multiply is given, but residual is not");
    refuse_problem((tilus_matmul_problem){.reserved = {7}}, "reserved[0] is 7, not 0");
    refuse_problem((tilus_matmul_problem){.experts = 2, .gather = true, .early_routing = true},
                   "early_routing is given, but combine is not");
    refuse_problem((tilus_matmul_problem){.experts = 2, .residual = true, .multiply = true,
                                          .combine = true}, "multiply is given, but combine is, too");
    refuse_problem((tilus_matmul_problem){.experts = 2, .n = 1 << 20, .k = 1 << 15},
                   "packed bytes each, more than 8589934588");
}

static void refuses_calls(void **state)
{
    (void)state;
    static const Case c = {{.weights = "u4", .n = 32, .k = 128, .experts = 2, .top = 2,
                            .gather = true, .combine = true}, 0, 0, {2, 2}, 15, 0};
    Operands o = make_operands(&c);
    tilus_matmul_call call = o.call;
    call.m = 3;
    assert_refused(tilus_matmul_run(o.plan, NULL, &call), "m is 3, not a multiple of the problem's top, 2");
    call = o.call;
    call.offsets = 0;
    assert_refused(tilus_matmul_run(o.plan, NULL, &call), "offsets is 0");
    call.offsets = 2;
    assert_refused(tilus_matmul_run(o.plan, NULL, &call), "offsets is 0x2, not a multiple of 4");
    call = o.call;
    call.ids = 0;
    assert_refused(tilus_matmul_run(o.plan, NULL, &call), "ids is 0");
    call = o.call;
    call.route = 0;
    assert_refused(tilus_matmul_run(o.plan, NULL, &call), "route is 0");
    free_operands(&o);
}

static void refuses_what_one_matrix_has_not(void **state)
{
    (void)state;
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4", .n = 64,
                                          .k = 128};
    tilus_matmul_call call = {.struct_size = sizeof call, .m = 1, .a = 256, .weights = 256,
                              .c = 256, .workspace = 256, .workspace_size = 1 << 30,
                              .offsets = 256};
    tilus_matmul_plan *plan;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    assert_refused(tilus_matmul_run(plan, NULL, &call), "offsets is given, but the problem has none");
    tilus_matmul_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplies_sorted_rows),
        cmocka_unit_test(gathers_and_scatters_rows),
        cmocka_unit_test(arranges_few_rows_in_blocks),
        cmocka_unit_test(leaves_rows_of_nobody),
        cmocka_unit_test(combines_rows_of_tokens),
        cmocka_unit_test(combines_few_rows_in_blocks),
        cmocka_unit_test(leaves_out_rows_of_weight_0),
        cmocka_unit_test(combines_the_most_tokens),
        cmocka_unit_test(shares_out_iterations),
        cmocka_unit_test(multiplies_many_rows),
        cmocka_unit_test(multiplies_by_the_residual),
        cmocka_unit_test(multiplies_by_wgmma),
        cmocka_unit_test(multiplies_last_rows_apart),
        cmocka_unit_test(multiplies_by_factors),
        cmocka_unit_test(multiplies_a_short_last_group),
        cmocka_unit_test(packs_an_expert_as_a_matrix),
        cmocka_unit_test(packs_small_groups_in_narrow_blocks),
        cmocka_unit_test(runs_no_rows),
        cmocka_unit_test(describes_experts),
        cmocka_unit_test(refuses_problems),
        cmocka_unit_test(refuses_calls),
        cmocka_unit_test(refuses_what_one_matrix_has_not),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
