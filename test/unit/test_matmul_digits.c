/* Products of one row by digits of 8 bits, run on the CPU engine from the template's text: of all types of
 * weights, groups and zero points, by 1 to 8 warps, and of rows that are hard to have as digits. Results are f32,
 * and may differ from sums of f64 by what rounding A to 22 bits of its largest element explains. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_engine.h"
#include "matmul_library.h"

#include <math.h>

typedef enum Row {
    UNIFORM,
    ZEROS,
    ONE_OF_ZEROS,               /* the last element alone */
    SUBNORMAL,                  /* f16: subnormals; bf16: 1e-30 at most */
    LEAST,                      /* f16: its least number, and 0; bf16: 1e-32 at most */
    OUTLIER,                    /* an element 10000 times the others */
    LARGEST,                    /* the largest numbers of f16, and of both signs; bf16: 1e36 */
    MOST_NEGATIVE,              /* -128 among small ones */
    LARGE_NEIGHBORS,            /* the largest numbers of f16, which lie side by side; bf16: 1e38 */
    FINITE_ROWS,
    NAN_AMONG = FINITE_ROWS,
    INFINITY_AMONG,
    MINUS_INFINITY_AMONG,
    BOTH_INFINITIES,
    NAN_OF_ZEROS,
    INFINITY_OF_ZEROS,
    ROWS
} Row;

typedef struct Case {
    tilus_matmul_problem problem;
    int rows, warps_n, warps_k; /* of the configuration */
    Row row;
    int multiprocessors;        /* 0: as the device has */
} Case;

typedef struct Data {
    tilus_matmul_plan *plan;
    double *weights;            /* [n, k], less zero points, times scales */
    double *a;                  /* behind the prologue */
    Region packed, row, norm, c, workspace;
} Data;

/* ---- data ----------------------------------------------------------------------- */

/* Returns a number in [-1, 1). */
static double random_unit(void)
{
    return (double)(int32_t)random_u32() * 0x1p-31;
}

static double random_zero_point(const MatmulSpec *s, unsigned char *zeros, size_t i)
{
    if (s->zeros == TILUS_ZEROS_NONE)
        return 0;
    uint64_t code = random_u32() & bits_mask(dtype_bits(s->weights));
    double value = dtype_decode(s->weights, code);
    if (s->zeros == TILUS_ZEROS_INTEGER) {
        zeros[i] = (unsigned char)(int)value;
        return value;
    }
    code = dtype_encode(s->scales, value * random_unit());
    bits_set(zeros, i, 16, code);
    return dtype_decode(s->scales, code);
}

static void draw_weights(Data *d, Plain *plain)
{
    const MatmulSpec *s = &d->plan->spec;
    int64_t groups = packed_groups(s), group = s->group ? s->group * s->repeats : s->k;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t k = 0, g; k < s->k; k++) {
            size_t at = (size_t)(n * groups + (g = k / group));
            static double zero, scale;
            if (k % group == 0) {
                uint64_t code = dtype_encode(s->scales, 0.02 + 0.01 * random_unit());
                bits_set(plain->scales, (size_t)(n * groups + g), 16, code);
                scale = dtype_decode(s->scales, code);
                zero = random_zero_point(s, plain->zeros, at);
            }
            uint64_t code = random_u32() & bits_mask(dtype_bits(s->weights));
            bits_set(plain->codes, (size_t)(n * s->k + k), dtype_bits(s->weights), code);
            d->weights[n * s->k + k] = (dtype_decode(s->weights, code) - zero) * scale;
        }
}

static void pack_weights(Data *d)
{
    Plain plain = plain_random(d->plan);
    draw_weights(d, &plain);
    const tilus_matmul_weights weights = weights_of(&plain, true);
    d->packed.size = tilus_matmul_packed_size(d->plan);
    d->packed.data = device_block(d->packed.size);
    assert_ok(tilus_matmul_pack(d->plan, &weights, d->packed.data));
    plain_free(&plain);
}

/* Returns an element of a row of k elements. */
static double element(Row row, DType type, int64_t i, int64_t k)
{
    bool special = i == k / 3;
    double x = random_unit(), sign = x < 0 ? -1 : 1;
    switch (row) {
    case ZEROS: return 0;
    case ONE_OF_ZEROS: return i == k - 1 ? -3 : 0;
    case SUBNORMAL: return x * (type == DTYPE_f16 ? 0x1p-15 : 1e-30);
    case LEAST: return x * (type == DTYPE_f16 ? 0x1p-24 : 1e-32);
    case OUTLIER: return special ? 1e4 : x;
    case LARGEST: return sign * dtype_max(type) * (type == DTYPE_f16 ? 1 : 0x1p-8);
    case MOST_NEGATIVE: return i == k - 1 ? -128 : 5 * x;
    case LARGE_NEIGHBORS: return i / 32 != 7 ? x : type == DTYPE_f16 ? 65504 : 1e38;
    case NAN_AMONG: return special ? NAN : x;
    case INFINITY_AMONG: return special ? INFINITY : x;
    case MINUS_INFINITY_AMONG: return i == k - 1 ? -INFINITY : x;
    case BOTH_INFINITIES: return i == 0 ? INFINITY : i == 1 ? -INFINITY : x;
    case NAN_OF_ZEROS: return i == k - 1 ? NAN : 0;
    case INFINITY_OF_ZEROS: return special ? INFINITY : 0;
    default: return x;
    }
}

/* Draws A, and does the prologue, with these weights of the norm. */
static void draw_row(Data *d, Row row)
{
    const MatmulSpec *s = &d->plan->spec;
    double squares = 0;
    for (int64_t i = 0; i < s->k; i++) {
        uint64_t code = dtype_encode(s->activations, element(row, s->activations, i, s->k));
        bits_set(d->row.data, (size_t)i, dtype_bits(s->activations), code);
        d->a[i] = dtype_decode(s->activations, code);
        squares += d->a[i] * d->a[i];
    }
    double factor = 1 / sqrt(squares / (double)s->k + s->eps);
    for (int64_t i = 0; i < s->k; i++) {
        uint64_t code = dtype_encode(s->activations, 1 + 0.5 * random_unit());
        bits_set(d->norm.data, (size_t)i, dtype_bits(s->activations), code);
        double x = d->a[i] * factor * dtype_decode(s->activations, code);
        if (s->prologue)
            d->a[i] = dtype_decode(s->activations, dtype_encode(s->activations, x));
    }
}

static Region make_region(size_t size)
{
    return (Region){device_block(size), size};
}

/* Has A arranged in blocks, as digits. */
static void use_digits(const Data *d, const Case *c)
{
    const MatmulConfig config = {.rows = c->rows, .warps_n = c->warps_n, .warps_k = c->warps_k, .stage_k_tiles = 1,
                                 .stages = 2, .columns = 1, .tiles = 1, .prearranged_a = MATMUL_ARRANGED_IN_BLOCKS,
                                 .per_sm = 1};
    if (c->multiprocessors)
        d->plan->device.multiprocessors = c->multiprocessors;
    use_config(d->plan, 1, config);
    assert_true(matmul_has_digits(&d->plan->spec, &config));
    assert_non_null(strstr(plan_choice(d->plan, 1)->product->parameters, "DIGITS=1"));
}

static Data make_data(const Case *c)
{
    tilus_matmul_problem problem = c->problem;
    problem.result = "f32";
    Data d = {.plan = plan_of(matmul, problem)};
    size_t n = (size_t)problem.n, k = (size_t)problem.k;
    use_digits(&d, c);
    d.weights = calloc(n * k, sizeof(double));
    d.a = calloc(k, sizeof(double));
    d.row = make_region(2 * k);
    d.norm = make_region(2 * k);
    d.c = make_region(n * sizeof(float));
    memset(d.c.data, 0xff, d.c.size);
    d.workspace = make_region(tilus_matmul_workspace_size(d.plan, 1));
    pack_weights(&d);
    draw_row(&d, c->row);
    return d;
}

static void free_data(Data *d)
{
    Region *const regions[] = {&d->packed, &d->row, &d->norm, &d->c, &d->workspace};
    for (size_t i = 0; i < COUNT(regions); i++)
        free(regions[i]->data);
    free(d->weights);
    free(d->a);
    tilus_matmul_plan_free(d->plan);
}

/* ---- products ------------------------------------------------------------------- */

static void multiply(const Data *d)
{
    const Region regions[] = {d->packed, d->row, d->norm, d->c, d->workspace};
    const tilus_matmul_call call = {
        .struct_size = sizeof call, .m = 1, .a = (uintptr_t)d->row.data, .weights = (uintptr_t)d->packed.data,
        .norm = (uintptr_t)d->norm.data, .c = (uintptr_t)d->c.data, .workspace = (uintptr_t)d->workspace.data,
        .workspace_size = d->workspace.size};
    Product p = product_of(d->plan, plan_choice(d->plan, 1), 1);
    KernelLaunch launches[MATMUL_LAUNCHES];
    size_t count = product_launches(d->plan, &call, &p, 0, launches);
    assert_int_equal(count, 1);
    run_on_cpu(&launches[0], regions, COUNT(regions));
}

/* Compares the shared memory that the library counts on with the program's. */
static void check_shared_memory(const tilus_matmul_plan *plan)
{
    enum { ALIGN = 16 };
    const Choice *choice = plan_choice(plan, 1);
    const Kernel *kernel = choice->product;
    tilus_diag *diag = tilus_diag_new();
    tilus_module *module = module_of(kernel, diag);
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = kernel->target};
    if (!tilus_run_passes(module, NULL, &passes))
        fail_msg("%s: %s", kernel->name, tilus_diag_text(diag, 0));
    int64_t needed = (int64_t)tilus_module_kernel_info(module, kernel->program)->shared_bytes;
    int64_t counted = matmul_shared_bytes(&plan->spec, &choice->config);
    if (needed > counted || needed + ALIGN < counted)
        fail_msg("%s: a block needs %d bytes of shared memory, the library counts on %d", kernel->name, (int)needed,
                 (int)counted);
    tilus_module_free(module);
    tilus_diag_free(diag);
}

/* Returns the error of column n, as a part of the row's largest element, which counts as 2^-95 at least, times
 * the norm of the column. */
static double find_error(const Data *d, int64_t n)
{
    const MatmulSpec *s = &d->plan->spec;
    const double *w = d->weights + n * s->k;
    double sum = 0, squares = 0, largest = 0x1p-95;
    for (int64_t k = 0; k < s->k; k++) {
        sum += d->a[k] * w[k];
        squares += w[k] * w[k];
        largest = fmax(largest, fabs(d->a[k]));
    }
    double difference = fabs((double)((const float *)d->c.data)[n] - sum);
    return difference / (largest * sqrt(squares));
}

static void run_case(const Case *c)
{
    Data d = make_data(c);
    const MatmulSpec *s = &d.plan->spec;
    check_shared_memory(d.plan);
    multiply(&d);
    /* Prologues may round elements to the next number. */
    double bound = !s->prologue ? 0x1p-20 : s->product == DTYPE_bf16 ? 0x1p-8 : 0x1p-11;
    for (int64_t n = 0; n < c->problem.n; n++) {
        double error = find_error(&d, n);
        bool right = c->row < FINITE_ROWS ? error <= bound : !isfinite(((const float *)d.c.data)[n]);
        if (!right)
            fail_msg("%s x %s, group %d, zeros %d, %d x %d warps, row %d: column %d is %g, an error of %.1e",
                     dtype_name(s->weights), dtype_name(s->activations), (int)c->problem.group, (int)s->zeros,
                     c->warps_n, c->warps_k, (int)c->row, (int)n, (double)((const float *)d.c.data)[n], error);
    }
    free_data(&d);
}

/* ---- cases ---------------------------------------------------------------------- */

/* Each type of weights with each group whose fields of a byte are of one group, and each kind of zero points. */
static void computes_every_group(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"};
    static const int64_t groups[] = {0, 128, 64, 32};
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t g = 0; g < COUNT(groups); g++) {
            if (groups[g] && groups[g] * tilus_type_bits(types[t]) < MATMUL_PACKED_K)
                continue;
            const Case c = {{.weights = types[t], .activations = (t / 2 + g) % 2 ? "bf16" : "f16", .n = 40, .k = 509,
                             .group = groups[g], .zeros = (tilus_zeros)((t + g) % 3)},
                            .rows = 32, .warps_n = 1, .warps_k = 1};
            run_case(&c);
        }
}

/* Warps that share a row: evenly, and with slices that are added for that; an even number of parts, which have
 * neighbors, and an odd one; several blocks, which share a tile. */
static void shares_a_row(void **state)
{
    (void)state;
    static const Case cases[] = {
        {{.weights = "u4", .n = 70, .k = 1100, .group = 32}, 32, 2, 2, UNIFORM, 3},
        {{.weights = "u2", .n = 70, .k = 1700, .group = 64}, 64, 2, 2, UNIFORM, 3},
        {{.weights = "u1", .n = 70, .k = 4096, .group = 128}, 32, 1, 4, UNIFORM, 2},
        {{.weights = "i8", .n = 300, .k = 300, .group = 64}, 32, 8, 1, UNIFORM, 0},
        {{.weights = "u4", .n = 300, .k = 1500, .group = 128}, 64, 4, 2, UNIFORM, 2},
        {{.weights = "u2", .n = 40, .k = 3900, .group = 128}, 128, 1, 8, UNIFORM, 3},
        {{.weights = "i1", .n = 150, .k = 1700, .group = 0}, 128, 2, 1, UNIFORM, 0},
        {{.weights = "u8", .n = 40, .k = 700, .group = 32}, 32, 1, 2, UNIFORM, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        Case c = cases[i];
        c.problem.activations = i % 2 ? "bf16" : "f16";
        c.problem.zeros = (tilus_zeros)(i % 3);
        run_case(&c);
        if (i % 2 == 0) {
            c.problem.prologue = TILUS_PROLOGUE_RMS_NORM;
            c.problem.eps = 0.25;
            run_case(&c);
        }
    }
}

/* Activations of 8 bits, and the least i8, of which no i8 is the magnitude. */
static void takes_other_activations(void **state)
{
    (void)state;
    static const Case cases[] = {
        {{.weights = "u4", .activations = "i8", .n = 40, .k = 509, .group = 128}, 32, 1, 1, MOST_NEGATIVE, 0},
        {{.weights = "i8", .activations = "i8", .n = 40, .k = 1000, .group = 32}, 32, 1, 2, ONE_OF_ZEROS, 0},
        {{.weights = "u2", .activations = "f8e4m3", .n = 40, .k = 1000, .group = 64}, 32, 1, 2, UNIFORM, 0},
        {{.weights = "u1", .activations = "f8e5m2", .n = 40, .k = 509, .group = 0}, 32, 1, 1, OUTLIER, 0},
        {{.weights = "i4", .activations = "f8e4m3", .n = 40, .k = 509, .group = 128}, 32, 1, 1, NAN_AMONG, 0},
        {{.weights = "u8", .activations = "f8e5m2", .n = 40, .k = 509, .group = 128}, 32, 1, 1, INFINITY_AMONG, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++)
        run_case(&cases[i]);
}

/* Rows of zeros, tiny and huge elements, and those of which one is no number. Of u1 sums of 32 times 1e38 are
 * finite. */
static void computes_hard_rows(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i2", "u1", "i8"};
    for (int row = ZEROS; row < ROWS; row++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            int turn = 2 * row + bf16;
            const char *type = row == LARGE_NEIGHBORS ? "u1" : types[(turn + row / 2) % COUNT(types)];
            const Case c = {{.weights = type, .activations = bf16 ? "bf16" : "f16",
                             .scales = "f16", .n = 40, .k = 1000, .group = turn % 3 ? 128 : 0,
                             .zeros = (tilus_zeros)(turn % 3)},
                            32, 1, 1 + row % 2, (Row)row, 0};
            run_case(&c);
        }
}

/* Checks what plans choose for large matrices. */
static void has_room(void **state)
{
    (void)state;
    static const char *const types[] = {"u1", "u2", "u4", "u8"};
    static const int64_t ks[] = {2048, 5120, 8192, 14336, 28672};
    int digits = 0;
    for (size_t t = 0; t < COUNT(types); t++)
        for (size_t i = 0; i < COUNT(ks); i++) {
            tilus_matmul_plan *plan = plan_of(matmul, (tilus_matmul_problem){
                .weights = types[t], .n = i % 2 ? 8192 : 6144, .k = ks[i], .group = t + i % 3 ? 128 : 0,
                .zeros = (tilus_zeros)(i % 3),
                .prologue = t % 2 ? TILUS_PROLOGUE_RMS_NORM : TILUS_PROLOGUE_NONE});
            const MatmulConfig *config = &plan_choice(plan, 1)->config;
            if (matmul_has_digits(&plan->spec, config)) {
                check_shared_memory(plan);
                digits++;
            }
            tilus_matmul_plan_free(plan);
        }
    assert_true(digits >= 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(computes_every_group, open_library, close_library),
        cmocka_unit_test_setup_teardown(shares_a_row, open_library, close_library),
        cmocka_unit_test_setup_teardown(takes_other_activations, open_library, close_library),
        cmocka_unit_test_setup_teardown(computes_hard_rows, open_library, close_library),
        cmocka_unit_test_setup_teardown(has_room, open_library, close_library),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
