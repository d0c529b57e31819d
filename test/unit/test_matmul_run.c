/* Products, as the library launches them, run on the CPU engine from the template's text,
 * against sums in f64. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_engine.h"
#include "matmul_library.h"

#include <math.h>

/* A product, how it is computed (rows 0: as the plan says), on how many multiprocessors (0:
 * as the device has), and how many rows of A at once (0: as there are semaphores for). */
typedef struct Case {
    tilus_matmul_problem problem;
    int64_t m, a_stride;
    MatmulConfig config;
    int multiprocessors;
    int64_t at_once;
    bool transposed;
    bool hard;                  /* integer zero points at the ends of their range, A > 0 */
    double magnitude;           /* of A; 0: 1, of integers 100 */
} Case;

/* The operands of one, as numbers and as bytes. */
typedef struct Data {
    tilus_matmul_plan *plan;
    int64_t stride;
    double *weights;            /* [n, k], less zero points, times scales */
    double *a, *bias, *residual;    /* a: behind the prologue, in rows of `stride` */
    Region packed, a_bytes, norm_bytes, bias_bytes, residual_bytes, c, workspace;
} Data;

/* ---- data --------------------------------------------------------------- */

/* In [-1, 1). */
static double random_unit(void)
{
    return (double)(int32_t)random_u32() * 0x1p-31;
}

static double magnitude(DType type)
{
    return fmax(dtype_max(type), -dtype_min(type));
}

static uint64_t random_code(DType type)
{
    uint64_t code = random_u32() & bits_mask(dtype_bits(type));
    return isfinite(dtype_decode(type, code)) ? code : 0;
}

/* `count` elements of `type` around `middle`, of which `values` gets the numbers. */
static Region random_elements(DType type, size_t count, double scale, double middle,
                              double *values)
{
    size_t bytes = dtype_bits(type) / 8;
    Region r = {device_block(count * bytes), count * bytes};
    for (size_t i = 0; i < count; i++) {
        uint64_t code = dtype_encode(type, middle + scale * random_unit());
        bits_set(r.data, i, dtype_bits(type), code);
        values[i] = dtype_decode(type, code);
    }
    return r;
}

static double random_zero_point(const MatmulSpec *s, bool at_end, unsigned char *zeros,
                                size_t i)
{
    if (s->zeros == TILUS_ZEROS_NONE)
        return 0;
    if (s->zeros == TILUS_ZEROS_INTEGER) {
        double value = !at_end ? dtype_decode(s->weights, random_code(s->weights))
                       : i % 2 ? dtype_max(s->weights) : dtype_min(s->weights);
        zeros[i] = (unsigned char)(int)value;
        return value;
    }
    uint64_t code = dtype_encode(s->scales, random_unit() * magnitude(s->weights) / 4);
    bits_set(zeros, i, 16, code);
    return dtype_decode(s->scales, code);
}

/* Scales and zero points of all groups, then codes; what they stand for. */
static void random_weights(Data *d, Plain *plain, const Case *c)
{
    bool transposed = c->transposed;
    const MatmulSpec *s = &d->plan->spec;
    int64_t groups = packed_groups(s), group = s->group ? s->group * s->repeats : s->k;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t g = 0; g < groups; g++) {
            size_t i = (size_t)(transposed ? n * groups + g : g * s->n + n);
            uint64_t scale = dtype_encode(s->scales, (1.5 + 0.5 * random_unit()) /
                                                     (100 * magnitude(s->weights)));
            double zero = random_zero_point(s, c->hard, plain->zeros, i);
            bits_set(plain->scales, i, 16, scale);
            for (int64_t k = g * group; k < s->k && k < (g + 1) * group; k++) {
                size_t at = (size_t)(transposed ? n * s->k + k : k * s->n + n);
                uint64_t code = random_code(s->weights);
                bits_set(plain->codes, at, dtype_bits(s->weights), code);
                d->weights[n * s->k + k] = (dtype_decode(s->weights, code) - zero) *
                                           dtype_decode(s->scales, scale);
            }
        }
}

static void pack_weights(Data *d, const Case *c)
{
    Plain plain = plain_random(d->plan);
    random_weights(d, &plain, c);
    const tilus_matmul_weights weights = weights_of(&plain, c->transposed);
    d->packed.size = tilus_matmul_packed_size(d->plan);
    d->packed.data = device_block(d->packed.size);
    assert_ok(tilus_matmul_pack(d->plan, &weights, d->packed.data));
    plain_free(&plain);
}

/* Returns the number of A's type that is nearest. */
static double rounded(const MatmulSpec *s, double x)
{
    return dtype_decode(s->activations, dtype_encode(s->activations, x));
}

/* Does the prologue of a row in place, with these weights of the norm. */
static void prepare_row(const MatmulSpec *s, double *a, const double *norm)
{
    double squares = 0;
    for (int64_t k = 0; k < s->k; k++)
        squares += a[k] * a[k];
    double factor = 1 / sqrt(squares / (double)s->k + s->eps);
    for (int64_t k = 0; k < s->k; k++)
        a[k] = rounded(s, a[k] * factor * norm[k]);
}

static void prepare_rows(Data *d, int64_t m)
{
    const MatmulSpec *s = &d->plan->spec;
    double *norm = calloc((size_t)s->k, sizeof(double));
    d->norm_bytes = random_elements(s->activations, (size_t)s->k, 0.5, 1, norm);
    for (int64_t i = 0; i < m && s->prologue; i++)
        prepare_row(s, d->a + i * d->stride, norm);
    free(norm);
}

static double *numbers(int64_t count)
{
    return calloc((size_t)count, sizeof(double));
}

static Data make_data(const Case *c)
{
    Data d = {.plan = plan_of(matmul, c->problem)};
    const MatmulSpec *s = &d.plan->spec;
    if (c->config.rows)
        use_config(d.plan, c->m, c->config);
    if (c->multiprocessors)
        d.plan->device.multiprocessors = c->multiprocessors;
    d.stride = c->a_stride ? c->a_stride : s->k;
    int64_t a = (c->m - 1) * d.stride + s->k, all = c->m * s->n;
    d.weights = numbers(s->n * s->k);
    d.a = numbers(a);
    d.bias = numbers(s->n);
    d.residual = numbers(all);
    pack_weights(&d, c);
    double most = c->magnitude ? c->magnitude : dtype_is_integer(s->activations) ? 100 : 1;
    d.a_bytes = random_elements(s->activations, (size_t)a, most, c->hard, d.a);
    prepare_rows(&d, c->m);
    d.bias_bytes = random_elements(s->result, (size_t)s->n, 1, 0, d.bias);
    d.residual_bytes = random_elements(s->result, (size_t)all, 1, 0, d.residual);
    d.c.size = (size_t)all * dtype_bits(s->result) / 8;
    d.c.data = device_block(d.c.size);
    d.workspace.size = tilus_matmul_workspace_size(d.plan, c->m);
    d.workspace.data = device_block(d.workspace.size);
    memset((char *)d.workspace.data + TILUS_MATMUL_SEMAPHORES, 0xff,
           d.workspace.size - TILUS_MATMUL_SEMAPHORES);
    return d;
}

static void free_data(Data *d)
{
    Region *const regions[] = {&d->packed, &d->a_bytes, &d->norm_bytes, &d->bias_bytes, &d->residual_bytes,
                               &d->c, &d->workspace};
    for (size_t i = 0; i < COUNT(regions); i++)
        free(regions[i]->data);
    free(d->weights);
    free(d->a);
    free(d->bias);
    free(d->residual);
    tilus_matmul_plan_free(d->plan);
}

/* ---- products ----------------------------------------------------------- */

static double function_of(tilus_epilogue function, double x)
{
    switch (function) {
    case TILUS_EPILOGUE_NONE: return x;
    case TILUS_EPILOGUE_SILU: return x / (1 + exp(-x));
    case TILUS_EPILOGUE_GELU:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
    }
    return NAN;
}

static double expected(const Data *d, int64_t m, int64_t n)
{
    const MatmulSpec *s = &d->plan->spec;
    double sum = s->bias ? d->bias[n] : 0;
    for (int64_t k = 0; k < s->k; k++)
        sum += d->a[m * d->stride + k] * d->weights[n * s->k + k];
    return function_of(s->function, sum) + (s->residual ? d->residual[m * s->n + n] : 0);
}

/* The error's norm, as a part of the result's. */
static double error_of(const Data *d, int64_t rows)
{
    const MatmulSpec *s = &d->plan->spec;
    double error = 0, norm = 0;
    for (int64_t m = 0; m < rows; m++)
        for (int64_t n = 0; n < s->n; n++) {
            double want = expected(d, m, n);
            double got = dtype_decode(s->result, bits_get(d->c.data, (size_t)(m * s->n + n),
                                                          dtype_bits(s->result)));
            error += (got - want) * (got - want);
            norm += want * want;
        }
    return sqrt(error / norm);
}

static tilus_matmul_call call_of(const Case *c, const Data *d)
{
    return (tilus_matmul_call){
        .struct_size = sizeof(tilus_matmul_call),
        .m = c->m, .a = (uintptr_t)d->a_bytes.data, .a_stride = c->a_stride,
        .weights = (uintptr_t)d->packed.data, .bias = (uintptr_t)d->bias_bytes.data,
        .residual = (uintptr_t)d->residual_bytes.data, .c = (uintptr_t)d->c.data,
        .workspace = (uintptr_t)d->workspace.data, .workspace_size = d->workspace.size,
        .norm = (uintptr_t)d->norm_bytes.data};
}

/* Checks that semaphores are 0, as the next product needs. */
static void assert_semaphores_zero(const Data *d)
{
    for (size_t i = 0; i < TILUS_MATMUL_SEMAPHORES; i++)
        assert_int_equal(((char *)d->workspace.data)[i], 0);
}

static void run_case(const Case *c)
{
    Data d = make_data(c);
    const Region regions[] = {d.packed, d.a_bytes, d.norm_bytes, d.bias_bytes, d.residual_bytes,
                              d.c, d.workspace};
    const tilus_matmul_call call = call_of(c, &d);
    Product p = product_of(d.plan, plan_choice(d.plan, c->m), c->m);
    if (c->at_once)
        p.rows = c->at_once;
    for (int64_t first = 0; first < c->m; first += p.rows) {
        KernelLaunch launches[MATMUL_LAUNCHES];
        size_t count = product_launches(d.plan, &call, &p, first, launches);
        for (size_t i = 0; i < count; i++)
            run_on_cpu(&launches[i], regions, COUNT(regions));
    }
    assert_semaphores_zero(&d);
    const MatmulSpec *s = &d.plan->spec;
    bool bf16 = s->product == DTYPE_bf16 || s->result == DTYPE_bf16;
    double error = error_of(&d, c->m);
    if (!(error < (bf16 ? 1e-2 : 1e-3)))
        fail_msg("%s x %s to %s, m %d, group %d, zeros %d: an error of %.1e",
                 dtype_name(s->weights), dtype_name(s->activations), dtype_name(s->result),
                 (int)c->m, (int)c->problem.group, (int)s->zeros, error);
    free_data(&d);
}

/* Weights of each kind and width, for both products, by configurations that the plan
 * chose. */
static void computes_every_width(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "u2", "u3", "u4", "u5", "u6", "u7", "u8", "i1",
                                        "i2", "i4", "i8", "f3e1m1", "f4e2m1", "f6e3m2",
                                        "f8e4m3", "f7e6m0"};
    static const int64_t rows[] = {1, 3, 16, 33};
    for (size_t i = 0; i < COUNT(types); i++) {
        /* f16 has no scales for the largest weights. */
        bool wide = tilus_type_max(types[i]) > tilus_type_max("f16");
        const Case c = {{.weights = types[i], .activations = i % 3 ? "f16" : "bf16",
                         .scales = wide ? "bf16" : NULL, .n = 72, .k = 300,
                         .group = i % 2 ? 128 : 32}, .m = rows[i % COUNT(rows)],
                        .transposed = true};
        run_case(&c);
    }
}

/* Floats with one exponent bit, which are packed as integers: by scales on sums and on weights,
 * with A through a ring and directly. */
static void computes_floats_as_integers(void **state)
{
    (void)state;
    static const char *const types[] = {"f3e1m1", "f4e1m2", "f6e1m4", "f8e1m6"};
    static const MatmulConfig configs[] = {{64, 1, 2, 1, 2, 8, 1, 2, 0, 1, 0, 0},
                                           {32, 2, 1, 1, 0, 8, 2, 1, 0, 1, 0, 0},
                                           {32, 4, 1, 2, 2, 8, 4, 1, 1, 1, 0, 0}};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t i = 0; i < COUNT(configs); i++)
            for (int zeros = 0; zeros < 2; zeros++) {
                const Case c = {{.weights = types[t], .activations = t % 2 ? "bf16" : "f16",
                                 .n = 70, .k = 300, .group = 64,
                                 .zeros = zeros ? TILUS_ZEROS_FLOAT : TILUS_ZEROS_NONE},
                                .m = 9, .config = configs[i], .transposed = i % 2};
                run_case(&c);
            }
}

/* Groups, zero points and plain orders, for few and many rows. */
static void computes_every_group(void **state)
{
    (void)state;
    static const int64_t groups[] = {0, 32, 64, 128, 384}, rows[] = {1, 3, 16, 33};
    static const char *const types[] = {"u4", "i3"};
    for (size_t g = 0; g < COUNT(groups); g++)
        for (int zeros = 0; zeros < 3; zeros++) {
            size_t turn = 3 * g + (size_t)zeros;
            const Case c = {{.weights = types[turn % 2], .n = 65 + (int64_t)turn, .k = 515,
                             .group = groups[g], .zeros = (tilus_zeros)zeros},
                            .m = rows[turn % 4], .transposed = turn % 3 == 0};
            run_case(&c);
        }
}

/* Groups that do not divide 128, the last one short, of small and odd n. */
static void computes_odd_groups(void **state)
{
    (void)state;
    static const Case cases[] = {
        {{.weights = "u4", .n = 1, .k = 515, .group = 96, .zeros = TILUS_ZEROS_INTEGER}, .m = 1},
        {{.weights = "i6", .n = 7, .k = 400, .group = 160}, .m = 3, .transposed = true},
        {{.weights = "f6e3m2", .n = 100, .k = 515, .group = 192, .zeros = TILUS_ZEROS_FLOAT},
         .m = 16},
        {{.weights = "u2", .activations = "bf16", .n = 7, .k = 1, .group = 192,
          .zeros = TILUS_ZEROS_FLOAT}, .m = 16, .transposed = true},
        {{.weights = "u8", .n = 100, .k = 389, .group = 288, .zeros = TILUS_ZEROS_INTEGER},
         .m = 33},
        {{.weights = "f5e1m3", .n = 1, .k = 300, .group = 224}, .m = 2, .transposed = true},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        run_case(&cases[i]);
}

/* Blocks that share tiles, that have one each, and that have several. */
static void shares_tiles_out(void **state)
{
    (void)state;
    static const MatmulConfig configs[] = {
        {32, 1, 2, 1, 3, 8, 1, 2, 0, 1, 1, 0}, {64, 1, 4, 1, 2, 8, 2, 1, 0, 2, 0, 1},
        {64, 2, 4, 2, 2, 8, 1, 1, 0, 0, 0, 1}, {128, 2, 2, 1, 0, 8, 4, 1, 0, 1, 1, 0},
        {32, 4, 1, 4, 2, 8, 4, 2, 0, 1, 0, 0}, {32, 1, 8, 1, 2, 8, 4, 1, 0, 1, 1, 1},
        {32, 4, 1, 2, 2, 8, 8, 2, 1, 1, 1, 0},
    };
    for (size_t i = 0; i < COUNT(configs); i++) {
        const Case c = {{.weights = "u4", .n = 200, .k = 2000, .group = 128,
                         .zeros = TILUS_ZEROS_INTEGER}, .m = 33, .config = configs[i],
                        .multiprocessors = 3};
        run_case(&c);
    }
}

/* Zero points that act by mma: the largest ones beside 0, large sums of A, each number of
 * columns and size of groups, tiles of 512 rows. */
static void lifts_zero_points(void **state)
{
    (void)state;
    static const char *const types[] = {"u8", "i8", "u1", "i4"};
    static const MatmulConfig configs[] = {
        {64, 1, 2, 1, 2, 1, 1, 2, 0, 1, 1, 0}, {64, 1, 2, 1, 2, 2, 1, 2, 0, 1, 1, 0},
        {32, 2, 1, 1, 0, 4, 1, 1, 0, 1, 1, 0}, {64, 8, 1, 1, 2, 8, 2, 2, 0, 1, 1, 1},
    };
    static const int64_t rows[] = {1, 2, 3, 16}, groups[] = {32, 64, 128, 0};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t i = 0; i < COUNT(configs); i++) {
            bool wide = configs[i].warps_n == 8;
            const Case c = {{.weights = types[t], .activations = (t + i) % 3 ? "f16" : "bf16",
                             .result = "f32", .n = wide ? 1000 : 70, .k = 300,
                             .group = groups[(t + i) % 4],
                             .zeros = t == 3 ? TILUS_ZEROS_NONE : TILUS_ZEROS_INTEGER},
                            .m = rows[i], .config = configs[i], .hard = true};
            run_case(&c);
        }
}

/* A in f16 of the largest numbers, and of small ones: by zero points on sums, which would act by
 * mma without it, and with A through a ring and directly. */
static void computes_in_a_wide_range(void **state)
{
    (void)state;
    static const MatmulConfig configs[] = {{64, 1, 2, 1, 2, 8, 1, 2, 0, 1, 1, 0},
                                           {32, 2, 1, 1, 0, 8, 2, 1, 0, 1, 0, 0}};
    static const Case cases[] = {
        {{.weights = "u4", .group = 96, .zeros = TILUS_ZEROS_INTEGER}, .magnitude = 65504},
        {{.weights = "u4", .group = 128, .zeros = TILUS_ZEROS_INTEGER}, .magnitude = 0x1p-6},
        {{.weights = "i6", .group = 128}, .magnitude = 65504},
        {{.weights = "f6e3m2", .group = 32, .zeros = TILUS_ZEROS_FLOAT}, .magnitude = 65504},
        {{.weights = "f6e3m2", .group = 64}, .magnitude = 0x1p-13},
        {{.weights = "u2", .group = 64, .zeros = TILUS_ZEROS_FLOAT}, .magnitude = 65504},
        {{.weights = "u2", .group = 128, .zeros = TILUS_ZEROS_INTEGER}, .magnitude = 0x1p-4},
        {{.weights = "u8", .zeros = TILUS_ZEROS_INTEGER}, .magnitude = 65504},
        {{.weights = "u8", .group = 128}, .magnitude = 0x1p-13},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Case c = cases[i];
        c.problem.n = 65;
        c.problem.k = 300;
        c.problem.result = "f32";
        c.problem.wide_range = true;
        c.m = 5;
        c.config = configs[i % COUNT(configs)];
        run_case(&c);
    }
}

/* A problem and the same one in a wide range, of one library, which has kernels of both. */
static void computes_in_both_ranges(void **state)
{
    (void)state;
    Case c = {{.weights = "f8e5m2", .n = 65, .k = 300, .group = 128, .result = "f32"}, .m = 5,
              .config = {64, 1, 2, 1, 2, 8, 1, 2, 0, 1, 1, 0}};
    run_case(&c);
    c.problem.wide_range = true;
    c.magnitude = 65504;
    run_case(&c);
}

/* Epilogues: bias, function, residual. */
static void computes_epilogues(void **state)
{
    (void)state;
    for (int function = 0; function < 3; function++)
        for (int rest = 0; rest < 4; rest++) {
            const Case c = {{.weights = "u4", .n = 70, .k = 256, .group = 128,
                             .result = rest == 3 ? "f32" : NULL,
                             .function = (tilus_epilogue)function, .bias = rest % 2,
                             .residual = rest / 2}, .m = 5};
            run_case(&c);
        }
}

/* A behind a norm and without: one row in blocks that arrange it, with sums of groups and without; and by
 * a program of its own. */
static void computes_prologues(void **state)
{
    (void)state;
    static const MatmulConfig configs[] = {
        {64, 1, 2, 1, 2, 1, 1, 4, 0, 1, 1, 0}, {64, 1, 2, 1, 2, 1, 1, 4, 0, 1, 0, 0},
        {32, 2, 1, 1, 2, 1, 1, 4, 0, 1, 1, 0}, {64, 1, 2, 1, 2, 1, 1, 4, 0, 1, 0, 0},
        {32, 2, 1, 1, 0, 4, 1, 1, 0, 1, 1, 0}, {32, 2, 1, 1, 2, 8, 2, 1, 0, 1, 0, 0},
        {64, 1, 2, 1, 2, 1, 1, 2, 0, 1, 1, 0}, {32, 2, 1, 1, 0, 8, 2, 1, 0, 1, 0, 0},
    };
    static const int64_t rows[] = {1, 1, 1, 1, 4, 16, 1, 9};
    static const struct {
        int64_t k, a_stride;
    } sizes[] = {{512, 0}, {1300, 0}, {1018, 1031}, {2048, 2176}};
    for (int prologue = TILUS_PROLOGUE_NONE; prologue <= TILUS_PROLOGUE_RMS_NORM; prologue++)
        for (size_t i = 0; i < COUNT(configs); i++) {
            size_t turn = i + (size_t)prologue;
            const Case c = {{.weights = turn % 2 ? "u4" : "f6e3m2",
                             .activations = turn % 3 ? "f16" : "bf16", .n = 70, .result = "f32",
                             .k = sizes[turn % COUNT(sizes)].k, .group = turn % 2 ? 64 : 128,
                             .zeros = turn % 2 ? TILUS_ZEROS_INTEGER : TILUS_ZEROS_NONE,
                             .prologue = (tilus_prologue)prologue, .eps = prologue ? 0.25 : 0},
                            .m = rows[i], .a_stride = sizes[turn % COUNT(sizes)].a_stride,
                            .config = configs[i], .at_once = rows[i] == 9 ? 8 : 0};
            run_case(&c);
        }
}

/* More rows than are computed at once. */
static void computes_in_pieces(void **state)
{
    (void)state;
    const Case c = {{.weights = "u4", .n = 100, .k = 512, .group = 128, .bias = true,
                     .zeros = TILUS_ZEROS_INTEGER}, .m = 41, .a_stride = 640, .at_once = 16,
                    .config = {64, 1, 2, 1, 2, 8, 1, 1, 0, 1}, .multiprocessors = 3};
    run_case(&c);
}

/* Types of A and of the result; a bias; rows of A with gaps: with A through a ring, and
 * directly. */
static void takes_other_types(void **state)
{
    (void)state;
    static const MatmulConfig configs[] = {{64, 1, 2, 1, 2, 8, 1, 2, 0, 1, 1, 0},
                                           {32, 2, 1, 1, 0, 8, 2, 1, 0, 1, 0, 0}};
    static const Case cases[] = {
        {{.weights = "u4", .activations = "f8e4m3", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "u4", .activations = "f8e5m2", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "i4", .activations = "i8", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "u4", .result = "f32", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "u4", .result = "bf16", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "u4", .scales = "bf16", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "f8e7m0", .scales = "bf16", .n = 64, .k = 256, .group = 128}, .m = 3},
        {{.weights = "u4", .n = 70, .k = 256, .group = 128, .bias = true}, .m = 9},
        {{.weights = "u4", .n = 64, .k = 250, .group = 128}, .m = 5, .a_stride = 307},
        {{.weights = "u4", .n = 64, .k = 248, .group = 128}, .m = 9, .a_stride = 264},
        {{.weights = "u8", .n = 1, .k = 1, .group = 128}, .m = 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t j = 0; j < COUNT(configs); j++) {
            Case c = cases[i];
            c.config = configs[j];
            run_case(&c);
        }
}

/* The weights as cuBLAS gets them. */
static void check_unpacked(const Case *c)
{
    Data d = make_data(c);
    const MatmulSpec *s = &d.plan->spec;
    size_t count = (size_t)(s->n * s->k);
    Region unpacked = {device_block(2 * count), 2 * count};
    const Region regions[] = {d.packed, unpacked};
    const KernelLaunch l = unpack_launch(d.plan, s->product, (uintptr_t)d.packed.data, 0, d.plan->packed.slices, s->k,
                                         (uintptr_t)unpacked.data);
    run_on_cpu(&l, regions, COUNT(regions));
    double error = 0, norm = 0;
    for (size_t i = 0; i < count; i++) {
        double got = dtype_decode(s->product, bits_get(unpacked.data, i, 16));
        error += (got - d.weights[i]) * (got - d.weights[i]);
        norm += d.weights[i] * d.weights[i];
    }
    if (!(sqrt(error / norm) < (s->product == DTYPE_bf16 ? 6e-3 : 1e-3)))
        fail_msg("%s to %s, group %d, zeros %d: unpacked with an error of %.1e",
                 dtype_name(s->weights), dtype_name(s->product), (int)c->problem.group,
                 (int)s->zeros, sqrt(error / norm));
    free(unpacked.data);
    free_data(&d);
}

static void unpacks_weights(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i3", "f6e3m2", "u8", "i1", "f5e1m3"};
    static const int64_t groups[] = {0, 32, 64, 128, 384};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t g = 0; g < COUNT(groups); g++) {
            size_t turn = t + g;
            const Case c = {{.weights = types[t], .activations = turn % 2 ? "bf16" : "f16",
                             .n = 40 + 40 * (int64_t)g, .k = 100 + 150 * (int64_t)g,
                             .group = groups[g],
                             .zeros = tilus_type_is_float(types[t])
                                          ? 2 * (tilus_zeros)(turn % 2)
                                          : (tilus_zeros)(turn % 3)}, .m = 1};
            check_unpacked(&c);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(computes_every_width, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_every_group, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_odd_groups, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_floats_as_integers, open_library,
                                        close_library),
        cmocka_unit_test_setup_teardown(shares_tiles_out, open_library, close_library),
        cmocka_unit_test_setup_teardown(lifts_zero_points, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_in_a_wide_range, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_in_both_ranges, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_epilogues, open_library, close_library),
        cmocka_unit_test_setup_teardown(unpacks_weights, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_prologues, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_in_pieces, open_library, close_library),
        cmocka_unit_test_setup_teardown(takes_other_types, open_library, close_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
