/* `run`: one product through the library, beside a product in f64 of the weights as they are
 * quantized. */
#include "tilus-matmul/codes.h"

#include "support/integer.h"
#include "tilus/tilus.h"

#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Product {
    const Settings *settings;
    Library *library;
    tilus_matmul_problem problem;
    tilus_matmul_plan *plan;
    Codes codes;
    const char *activations, *result;
    int64_t m;
    void *a, *c;                /* as the device has them */
    double *a_values;           /* [m, k] */
    uint64_t memory;            /* of the device */
} Product;

static void *allocate(size_t size)
{
    void *memory = malloc(size ? size : 1);
    if (!memory)
        fail("out of memory: %zu bytes", size);
    return memory;
}

static size_t bytes_of(const char *type, int64_t count)
{
    return tilus_packed_bytes(type, (size_t)count);
}

/* ---- A ------------------------------------------------------------------------- */

static bool is_float_array(const NpyArray *a)
{
    return a->kind == 'f' && a->bytes == 4;
}

/* Takes A from a .npy file: of f4, which is rounded, or of the activations' own bytes. */
static bool read_a(Product *p, const Source *file)
{
    const NpyArray *a = &file->npy;
    const size_t size = bytes_of(p->activations, (int64_t)a->count);
    char message[MESSAGE];
    if (!file->is_npy || a->rank != 2 || a->extents[1] != p->problem.k || a->extents[0] < 1)
        return fail("'%s' is no .npy matrix [m, %" PRId64 "]", file->path, p->problem.k);
    if (!is_float_array(a) && a->count * a->bytes != size)
        return fail("'%s' has elements of %u bytes, not those of %s, nor f4", file->path, a->bytes,
                    p->activations);
    p->m = a->extents[0];
    p->a = allocate(size);
    if (!p->a)
        return false;
    if (!is_float_array(a))
        memcpy(p->a, a->data, size);
    else if (tilus_encode_array(p->activations, "f32", a->data, a->count, p->a, size, 0, message,
                                sizeof message) != TILUS_OK)
        return fail("%s", message);
    return true;
}

/* Makes A up: numbers from -1 to 1. */
static bool make_a(Product *p)
{
    p->m = most_rows(p->settings);
    size_t count = (size_t)(p->m * p->problem.k), size = bytes_of(p->activations, (int64_t)count);
    float *values = allocate(count * sizeof *values);
    uint64_t state = 1;
    char message[MESSAGE];
    p->a = allocate(size);
    for (size_t i = 0; values && i < count; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(int64_t)(state >> 40) * 0x1p-23f - 1;
    }
    bool ok = values && p->a &&
              (tilus_encode_array(p->activations, "f32", values, count, p->a, size, 0, message,
                                  sizeof message) == TILUS_OK || fail("%s", message));
    free(values);
    return ok;
}

/* Rounds rows as products of 8 bits do, in f32, to what is multiplied. */
static void quantize_rows(const Product *p)
{
    const char *type = p->problem.product;
    float range = tilus_type_is_float(type) ? 448 : 127;
    int64_t k = p->problem.k;
    for (double *row = p->a_values; row < p->a_values + p->m * k; row += k) {
        float most = 0x1p-100F;
        for (int64_t i = 0; i < k; i++)
            most = fmaxf(most, fabsf((float)row[i]));
        for (int64_t i = 0; i < k; i++) {
            uint64_t code = tilus_encode(type, (double)((float)row[i] * (range / most)));
            row[i] = tilus_decode(type, code) * (double)(most / range);
        }
    }
}

/* Returns true where A is of the product's 8 bits, so that rows have scales: here 1. */
static bool has_a_scales(const Product *p)
{
    return p->problem.product && strcmp(p->problem.product, p->activations) == 0;
}

static bool get_a(Product *p)
{
    Source file = {0};
    char message[MESSAGE];
    const char *path = p->settings->a;
    bool ok = path ? source_open(&file, path) && read_a(p, &file) : make_a(p);
    source_close(&file);
    size_t count = (size_t)(p->m * p->problem.k);
    p->a_values = ok ? allocate(count * sizeof *p->a_values) : NULL;
    ok = p->a_values &&
         (tilus_decode_array(p->activations, p->a, bytes_of(p->activations, (int64_t)count),
                             count, "f64", p->a_values, 0, message, sizeof message) ==
              TILUS_OK || fail("%s", message));
    if (ok && p->problem.product && !has_a_scales(p))
        quantize_rows(p);
    return ok;
}

/* ---- the product ------------------------------------------------------------------ */

static bool check(tilus_status status)
{
    return status == TILUS_OK || fail("%s: %s", tilus_status_name(status), tilus_rt_error());
}

/* Returns the columns of C. */
static int64_t columns_of(const tilus_matmul_problem *problem)
{
    return problem->gated ? problem->n / 2 : problem->n;
}

/* Makes the call, whose buffers lie one after the other. */
static tilus_matmul_call make_call(const Product *p, size_t *size)
{
    enum { ALIGN = 256 };
    const tilus_matmul_problem *problem = &p->problem;
    size_t weights = tilus_matmul_packed_size(p->plan);
    size_t room = tilus_matmul_workspace_size(p->plan, p->m);
    size_t a = round_up_size(bytes_of(p->activations, p->m * problem->k), ALIGN);
    size_t scales = has_a_scales(p) ? round_up_size((size_t)p->m * sizeof(float), ALIGN) : 0;
    *size = weights + room + a + scales + bytes_of(p->result, p->m * columns_of(problem));
    return (tilus_matmul_call){
        .struct_size = sizeof(tilus_matmul_call), .m = p->m, .weights = p->memory,
        .workspace = p->memory + weights, .workspace_size = room, .a = p->memory + weights + room,
        .a_scales = scales ? p->memory + weights + room + a : 0,
        .c = p->memory + weights + room + a + scales,
        .weights_identity = tilus_matmul_packed_identity(p->plan)};
}

static bool upload_weights(const Product *p, uint64_t to)
{
    size_t size = tilus_matmul_packed_size(p->plan);
    void *packed = allocate(size);
    bool ok = packed && check(tilus_matmul_pack(p->plan, &p->codes.weights, packed)) &&
              check(tilus_rt_upload(p->library->rt, 0, to, packed, size));
    free(packed);
    return ok;
}

/* Fills the scales of rows with 1. */
static bool upload_a_scales(const Product *p, uint64_t to)
{
    float *ones = to ? allocate((size_t)p->m * sizeof *ones) : NULL;
    for (int64_t i = 0; ones && i < p->m; i++)
        ones[i] = 1;
    bool ok = !to || (ones && check(tilus_rt_upload(p->library->rt, 0, to, ones,
                                                    (size_t)p->m * sizeof *ones)));
    free(ones);
    return ok;
}

static bool multiply(Product *p)
{
    size_t size, a = bytes_of(p->activations, p->m * p->problem.k);
    size_t c = bytes_of(p->result, p->m * columns_of(&p->problem));
    tilus_rt *rt = p->library->rt;
    make_call(p, &size);
    p->c = allocate(c);
    if (!p->c || !check(tilus_rt_allocate(rt, 0, size, &p->memory)))
        return false;
    const tilus_matmul_call call = make_call(p, &size);
    return upload_weights(p, call.weights) &&
           check(tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES)) &&
           check(tilus_rt_upload(rt, 0, call.a, p->a, a)) && upload_a_scales(p, call.a_scales) &&
           check(tilus_matmul_prepare(p->plan, p->m)) &&
           check(tilus_matmul_run(p->plan, NULL, &call)) &&
           check(tilus_rt_download(rt, 0, p->c, call.c, c));
}

/* ---- the reference -------------------------------------------------------------------- */

/* Returns the zero point of a scale by its number. */
static double zero_of(const Product *p, size_t scale)
{
    const tilus_matmul_problem *q = &p->problem;
    const void *zeros = p->codes.weights.zeros;
    switch (q->zeros) {
    case TILUS_ZEROS_NONE: return 0;
    case TILUS_ZEROS_INTEGER: break;
    case TILUS_ZEROS_FLOAT: return tilus_decode(scales_of(q), tilus_get_bits(zeros, scale, 16));
    }
    return q->weights[0] == 'i' ? ((const int8_t *)zeros)[scale] : ((const uint8_t *)zeros)[scale];
}

/* Decodes the weights of column n, as they are quantized, to column[k]. */
static void decode_column(const Product *p, int64_t n, const double table[256], double *column)
{
    const tilus_matmul_problem *q = &p->problem;
    const tilus_matmul_weights *w = &p->codes.weights;
    unsigned bits = tilus_type_bits(q->weights);
    int64_t group = q->group ? q->group : q->k, groups = ceil_div_i64(q->k, group);
    for (int64_t g = 0; g < groups; g++) {
        size_t number = (size_t)(w->transposed ? n * groups + g : g * q->n + n);
        double scale = tilus_decode(scales_of(q), tilus_get_bits(w->scales, number, 16));
        double zero = zero_of(p, number);
        for (int64_t k = g * group; k < q->k && k < (g + 1) * group; k++) {
            size_t at = (size_t)(w->transposed ? n * q->k + k : k * q->n + n);
            column[k] = (table[tilus_get_bits(w->codes, at, bits)] - zero) * scale;
        }
    }
}

static double apply(tilus_epilogue function, double x)
{
    const double pi = 3.14159265358979323846;
    switch (function) {
    case TILUS_EPILOGUE_NONE: break;
    case TILUS_EPILOGUE_SILU: return x / (1 + exp(-x));
    case TILUS_EPILOGUE_GELU: return x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    }
    return x;
}

static double multiply_row(const Product *p, int64_t m, const double *column)
{
    double sum = 0;
    for (int64_t k = 0; k < p->problem.k; k++)
        sum += p->a_values[m * p->problem.k + k] * column[k];
    return sum;
}

/* Compares columns of C with their products in f64; the relative error in the Frobenius norm. `column`
 * has room for two columns of B. */
static double find_error(const Product *p, double *column)
{
    const tilus_matmul_problem *q = &p->problem;
    unsigned bits = tilus_type_bits(q->weights), result = tilus_type_bits(p->result);
    double table[256] = {0}, error = 0, norm = 0, *up = column + q->k;
    int64_t columns = columns_of(q);
    for (unsigned code = 0; code >> bits == 0; code++)
        table[code] = tilus_decode(q->weights, code);
    for (int64_t n = 0; n < columns; n++) {
        decode_column(p, n, table, column);
        if (q->gated)
            decode_column(p, columns + n, table, up);
        for (int64_t m = 0; m < p->m; m++) {
            double wanted = apply(q->function, multiply_row(p, m, column));
            wanted *= q->gated ? multiply_row(p, m, up) : 1;
            double c = tilus_decode(p->result, tilus_get_bits(p->c, (size_t)(m * columns + n), result));
            error += (c - wanted) * (c - wanted);
            norm += wanted * wanted;
        }
    }
    return norm > 0 ? sqrt(error / norm) : sqrt(error);
}

static bool compare(const Product *p)
{
    double *columns = allocate(2 * (size_t)p->problem.k * sizeof *columns);
    if (!columns)
        return false;
    double error = find_error(p, columns), most = p->settings->tolerance;
    free(columns);
    printf("%" PRId64 " x %" PRId64 " x %" PRId64 " of %s by %s: an error of %.3g of the norm\n",
           p->m, p->problem.k, p->problem.n, p->activations, p->problem.weights, error);
    return error <= most || fail("the error is %.3g, --tolerance=%g allows less", error, most);
}

/* ---- the command ------------------------------------------------------------------------ */

static bool open_product(Product *p, const Source *source, const Matrix *matrix)
{
    int64_t extents[2];
    CodesJob job = {.settings = p->settings, .source = source, .matrix = matrix};
    if (!codes_extents(&job, p->settings->weights, extents))
        return false;
    p->problem = problem_of(p->settings, extents[0], extents[1]);
    p->activations = p->problem.activations ? p->problem.activations : "f16";
    p->result = p->problem.result ? p->problem.result : scales_of(&p->problem);
    p->plan = library_plan(p->library, &p->problem);
    job.problem = &p->problem;
    return p->plan && codes_make(&job, &p->codes);
}

static void close_product(Product *p)
{
    if (p->memory)
        tilus_rt_release(p->library->rt, 0, p->memory);
    tilus_matmul_plan_free(p->plan);
    codes_free(&p->codes);
    free(p->a);
    free(p->c);
    free(p->a_values);
}

static bool run(Product *p, const Source *source)
{
    Matrix *matrices;
    size_t count;
    if (!source_matrices(source, p->settings, &matrices, &count))
        return false;
    bool ok = count == 1 || fail("'%s' has %zu such matrices; --tensor chooses one", source->path,
                                 count);
    ok = ok && open_product(p, source, matrices) && get_a(p) && multiply(p) && compare(p);
    free(matrices);
    return ok;
}

int command_run(const Settings *s)
{
    Library l;
    Source source = {0};
    Product p = {.settings = s, .library = &l};
    bool ok = library_open(&l, s, true) && source_open(&source, s->words.items[1]) &&
              run(&p, &source);
    close_product(&p);
    source_close(&source);
    library_close(&l);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
