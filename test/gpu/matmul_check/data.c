/* Random operands, and their product in f64. Codes are all that the type has but for
 * infinities and NaNs, each as often; integer zero points are codes, too, and floats lie
 * anywhere between the least and the largest weight. Scales bring C to about 10. */
#include "check.h"

#include "support/bits.h"
#include "support/integer.h"
#include "support/scalar.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- randomness --------------------------------------------------------------- */

typedef uint64_t Random;

static uint64_t draw(Random *r)
{
    uint64_t z = (*r += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static double draw_between(Random *r, double least, double most)
{
    return least + (most - least) * (double)(draw(r) >> 11) * 0x1p-53;
}

/* A case has the same data in whatever share it is. */
static Random seed_of(const char *name)
{
    Random r = 0xcbf29ce484222325;
    for (; *name; name++)
        r = (r ^ (unsigned char)*name) * 0x100000001b3;
    return r;
}

/* ---- codes -------------------------------------------------------------------- */

/* The finite codes of a type of up to 8 bits, and moments of their numbers. */
typedef struct Codes {
    unsigned count;
    unsigned char list[256];
    double values[256];             /* of each code */
    double mean, square;
} Codes;

static Codes list_codes(DType type)
{
    Codes c = {0};
    for (unsigned code = 0; code < 1u << dtype_bits(type); code++) {
        double value = c.values[code] = dtype_decode(type, code);
        if (!isfinite(value))
            continue;
        c.list[c.count++] = (unsigned char)code;
        c.mean += value;
        c.square += value * value;
    }
    c.mean /= c.count;
    c.square /= c.count;
    return c;
}

/* Returns the usual size of weights less their zero points. */
static double usual_weight(const MatmulSpec *s, const Codes *c)
{
    double least = dtype_min(s->weights), most = dtype_max(s->weights);
    double mean = c->mean, square = c->square;
    if (s->zeros == TILUS_ZEROS_NONE)
        return sqrt(square);
    if (s->zeros == TILUS_ZEROS_FLOAT) {
        mean = (least + most) / 2;
        square = (least * least + least * most + most * most) / 3;
    }
    return sqrt(c->square - 2 * c->mean * mean + square);
}

/* ---- weights ------------------------------------------------------------------ */

static double usual_activation(const MatmulSpec *s)
{
    return dtype_is_integer(s->activations) ? 100 : 1;
}

/* Holds the random data of one matrix. */
typedef struct Matrix {
    unsigned char *codes, *scales, *zeros;
    double *weights;
} Matrix;

static double draw_zero(const Data *d, const Matrix *to, const Codes *codes, size_t at, Random *r)
{
    const MatmulSpec *s = &d->spec;
    if (s->zeros == TILUS_ZEROS_NONE)
        return 0;
    if (s->zeros == TILUS_ZEROS_INTEGER) {
        double value = codes->values[codes->list[draw(r) % codes->count]];
        to->zeros[at] = (unsigned char)(int)value;
        return value;
    }
    double value = draw_between(r, dtype_min(s->weights), dtype_max(s->weights));
    uint64_t code = dtype_encode(s->scales, value);
    bits_set(to->zeros, at, 16, code);
    return dtype_decode(s->scales, code);
}

/* The codes k of column n, which have one scale and one zero point. */
static void draw_codes(const Data *d, const Matrix *to, const Trial *t, const Codes *codes, int64_t n,
                       int64_t first, int64_t end, double zero, double scale, Random *r)
{
    const MatmulSpec *s = &d->spec;
    for (int64_t k = first; k < end; k++) {
        unsigned code = codes->list[draw(r) % codes->count];
        int64_t at = t->transposed ? n * s->k + k : k * s->n + n;
        bits_set(to->codes, (size_t)at, dtype_bits(s->weights), code);
        to->weights[n * s->k + k] = (codes->values[code] - zero) * scale;
    }
}

static void draw_matrix(const Data *d, const Matrix *to, const Trial *t, const Codes *codes,
                        double usual_scale, Random *r)
{
    const MatmulSpec *s = &d->spec;
    int64_t group = s->group ? s->group * s->repeats : s->k;
    for (int64_t n = 0; n < s->n; n++)
        for (int64_t g = 0; g < d->groups; g++) {
            size_t at = (size_t)(t->transposed ? n * d->groups + g : g * s->n + n);
            int64_t first = g * group, end = first + group < s->k ? first + group : s->k;
            uint64_t scale = dtype_encode(s->scales, draw_between(r, 0.5, 1.5) * usual_scale);
            double zero = draw_zero(d, to, codes, at, r);
            bits_set(to->scales, at, dtype_bits(s->scales), scale);
            draw_codes(d, to, t, codes, n, first, end, zero,
                       dtype_decode(s->scales, scale) * (double)d->factor, r);
        }
}

static void draw_weights(Data *d, const Trial *t, Random *r)
{
    const MatmulSpec *s = &d->spec;
    enum { FACTORED = 100 };    /* what scales are before a factor */
    const Codes codes = list_codes(s->weights);
    double usual = usual_weight(s, &codes) * usual_activation(s) * sqrt((double)s->k) / 20;
    d->factor = matmul_has_factor(s) ? (float)(1 / (FACTORED * usual)) : 1;
    double usual_scale = matmul_has_factor(s) ? FACTORED : 1 / usual;
    for (size_t i = 0; i < (size_t)d->matrices; i++) {
        const Matrix to = {d->codes + i * d->code_bytes, d->scales + i * d->scale_bytes,
                           d->zeros + i * d->zero_bytes, d->weights + (int64_t)i * s->n * s->k};
        draw_matrix(d, &to, t, &codes, usual_scale, r);
    }
}

/* ---- what is not packed ------------------------------------------------------- */

/* [rows, columns] of a type of whole bytes, both signs, `stride` elements between rows. What
 * lies between them has all bits set, which of a float is a NaN. */
static void draw_elements(DType type, int64_t rows, int64_t columns, int64_t stride,
                          double most, unsigned char *bytes, size_t size, double *values,
                          Random *r)
{
    memset(bytes, 0xff, size);
    for (int64_t row = 0; row < rows; row++)
        for (int64_t i = 0; i < columns; i++) {
            uint64_t code = dtype_encode(type, draw_between(r, -most, most));
            bits_set(bytes, (size_t)(row * stride + i), dtype_bits(type), code);
            values[row * columns + i] = dtype_decode(type, code);
        }
}

/* Gives rows of 8 bits scales, from 1/2 to 2. */
static void draw_a_scales(Data *d, Random *r)
{
    for (int64_t row = 0; row < d->rows; row++) {
        d->a_scales[row] = (float)draw_between(r, 0.5, 2);
        for (int64_t k = 0; k < d->spec.k; k++)
            d->a_values[row * d->spec.k + k] *= (double)d->a_scales[row];
    }
}

/* Rounds rows as @quantize does, in f32. */
static void quantize_rows(Data *d)
{
    const MatmulSpec *s = &d->spec;
    float range = dtype_is_integer(s->product) ? 127 : 448;
    for (double *row = d->a_values; row < d->a_values + d->rows * s->k; row += s->k) {
        float most = 0x1p-100F;
        for (int64_t k = 0; k < s->k; k++)
            most = fmaxf(most, fabsf((float)row[k]));
        for (int64_t k = 0; k < s->k; k++) {
            uint64_t code = dtype_encode(s->product, (double)((float)row[k] * (range / most)));
            row[k] = dtype_decode(s->product, code) * (double)(most / range);
        }
    }
}

static void draw_rest(Data *d, const Trial *t, Random *r)
{
    const MatmulSpec *s = &d->spec;
    int64_t n = t->problem.n;
    draw_elements(s->activations, d->rows, s->k, d->stride, usual_activation(s), d->a,
                  d->a_bytes, d->a_values, r);
    if (matmul_has_a_scales(s))
        draw_a_scales(d, r);
    else if (matmul_is_a8(s))
        quantize_rows(d);
    if (s->bias)
        draw_elements(s->result, d->matrices, n, n, 10, d->bias, d->bias_bytes, d->bias_values, r);
    int64_t columns = matmul_columns_of_c(s, n);
    if (s->residual)
        draw_elements(s->result, d->rows, columns, columns, 10, d->residual, d->residual_bytes,
                      d->residual_values, r);
}

/* ---- the product -------------------------------------------------------------- */

/* Four sums, as one would wait for each addition. */
static double dot(const double *a, const double *b, int64_t count)
{
    double sums[4] = {0};
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            sums[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sums[0] += a[i] * b[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static double apply(tilus_epilogue function, double x)
{
    const double pi = 3.14159265358979323846;
    switch (function) {
    case TILUS_EPILOGUE_NONE: return x;
    case TILUS_EPILOGUE_SILU: return x / (1 + exp(-x));
    case TILUS_EPILOGUE_GELU:
        return x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)));
    }
    return NAN;
}

/* Returns A's row `m` times column `n` of B, with its bias: of the half `half` of a gated product. */
static double biased(const Data *d, const Trial *t, int64_t matrix, int64_t m, int64_t n, int half)
{
    const MatmulSpec *s = &d->spec;
    int64_t row = half * s->n / 2 + matmul_columns_of_c(s, t->n_first) + n;
    const double *b = d->weights + (matrix * s->n + row) * s->k + t->k_first;
    double sum = dot(d->a_values + m * s->k + t->k_first, b, t->problem.k);
    return sum + (s->bias ? d->bias_values[matrix * t->problem.n + half * t->problem.n / 2 + n] : 0);
}

static void multiply_matrix(Data *d, const Trial *t, int64_t matrix)
{
    const MatmulSpec *s = &d->spec;
    int64_t columns = matmul_columns_of_c(s, t->problem.n);
    double *c = d->c + matrix * d->rows * columns;
    for (int64_t m = 0; m < d->rows; m++)
        for (int64_t n = 0; n < columns; n++) {
            double x = apply(s->function, biased(d, t, matrix, m, n, 0));
            c[m * columns + n] = x * (s->gated ? biased(d, t, matrix, m, n, 1) : 1);
        }
}

/* ---- experts ------------------------------------------------------------------ */

int32_t data_offset(const Data *d, int64_t expert, int64_t m)
{
    enum { BEFORE = 8, BEHIND = 16 };   /* parts of the rows that nobody has */
    int64_t first = m / BEFORE, rows = m - m / BEHIND - first;
    return (int32_t)(first + rows * expert * expert / (d->matrices * d->matrices));
}

/* Returns the matrix that row `row` of m is multiplied by, -1 for none. */
static int64_t matrix_of(const Data *d, int64_t row, int64_t m)
{
    if (d->spec.experts == 0)
        return 0;
    int64_t matrix = d->matrices;
    while (matrix >= 0 && data_offset(d, matrix, m) > row)
        matrix--;
    return matrix < d->matrices ? matrix : -1;
}

int32_t data_id(int64_t row, int64_t m)
{
    enum { LEAST = 5 };
    int64_t step = LEAST;
    while (gcd_i64(m, step) > 1)
        step++;
    return (int32_t)((row * step + m / 3) % m);
}

void data_route(const Data *d, int64_t m, int32_t *ids, float *route)
{
    enum { NONE_EACH = 7, KINDS = 5 };
    for (int64_t row = 0; row < m; row++) {
        int32_t id = data_id(row, m);
        bool counts = matrix_of(d, row, m) >= 0 && id % NONE_EACH;
        ids[row] = id;
        route[id] = counts ? 0.25F + 0.125F * (float)(id % KINDS) : 0;
    }
}

int64_t data_result_rows(const Data *d, int64_t m)
{
    return d->spec.combine ? m / d->spec.top : m;
}

/* ---- all ---------------------------------------------------------------------- */

static size_t element_bytes(DType type, int64_t count)
{
    return (size_t)count * dtype_bits(type) / 8;
}

static void measure(Data *d, const Trial *t)
{
    const MatmulSpec *s = &d->spec;
    d->matrices = s->experts ? s->experts : 1;
    d->rows = t->sizes[t->size_count - 1];
    d->stride = t->a_stride ? t->a_stride : s->k;
    d->groups = packed_groups(s);
    d->code_bytes = ceil_div_size((size_t)(s->n * s->k) * dtype_bits(s->weights), 8);
    d->scale_bytes = packed_scale_bytes(s) * (size_t)(s->n * d->groups);
    d->zero_bytes = packed_zero_bytes(s) * (size_t)(s->n * d->groups);
    d->a_bytes = element_bytes(s->activations, d->rows * d->stride);
    d->bias_bytes = element_bytes(s->result, s->bias ? d->matrices * t->problem.n : 0);
    d->residual_bytes = element_bytes(s->result, s->residual ? d->rows * matmul_columns_of_c(s, t->problem.n) : 0);
}

static double *numbers(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

static bool allocate(Data *d, const Trial *t)
{
    const MatmulSpec *s = &d->spec;
    int64_t n = t->problem.n;
    size_t matrices = (size_t)d->matrices;
    d->codes = calloc(matrices, d->code_bytes + 1);
    d->scales = calloc(matrices, d->scale_bytes + 1);
    d->zeros = calloc(matrices, d->zero_bytes + 1);
    d->a = calloc(d->a_bytes + 1, 1);
    d->a_scales = calloc((size_t)d->rows, sizeof *d->a_scales);
    d->bias = calloc(d->bias_bytes + 1, 1);
    d->residual = calloc(d->residual_bytes + 1, 1);
    d->weights = numbers(d->matrices * s->n * s->k);
    d->a_values = numbers(d->rows * s->k);
    d->bias_values = numbers(d->matrices * n);
    d->residual_values = numbers(s->residual ? d->rows * n : 0);
    d->c = numbers(d->matrices * d->rows * n);
    return d->codes && d->scales && d->zeros && d->a && d->a_scales && d->bias && d->residual &&
           d->weights && d->a_values && d->bias_values && d->residual_values && d->c;
}

bool data_make(Data *d, const Trial *trial, char *message, size_t size)
{
    tilus_matmul_problem whole = trial->problem;
    Random r = seed_of(trial->name);
    *d = (Data){0};
    if (trial->packing == PACK_PART) {
        whole.n = trial->n_whole;
        whole.k = trial->k_whole;
    }
    if (!matmul_spec(&whole, &d->spec, message, size))
        return false;
    measure(d, trial);
    if (!allocate(d, trial)) {
        snprintf(message, size, "out of memory");
        return false;
    }
    draw_weights(d, trial, &r);
    draw_rest(d, trial, &r);
    for (int64_t i = 0; i < d->matrices; i++)
        multiply_matrix(d, trial, i);
    return true;
}

void data_free(Data *d)
{
    free(d->codes);
    free(d->scales);
    free(d->zeros);
    free(d->a);
    free(d->a_scales);
    free(d->bias);
    free(d->residual);
    free(d->weights);
    free(d->a_values);
    free(d->bias_values);
    free(d->residual_values);
    free(d->c);
}

/* Wanted is what C is compared with: `rows` has the row of each id, and `route` its weight. */
typedef struct Wanted {
    const Data *data;
    Order order;
    int64_t m, n;               /* n: columns of C */
    int64_t *rows;
    int32_t *ids;
    float *route;
} Wanted;

static int64_t in_order(const Wanted *w, int64_t row)
{
    return w->order == FORWARDS ? row : w->data->rows - 1 - row;
}

/* Returns an element of row `row` of those of experts, which is not nobody's. */
static double find_product(const Wanted *w, int64_t row, int64_t column)
{
    const Data *d = w->data;
    int64_t of_a = in_order(w, d->spec.gather ? w->ids[row] / d->spec.top : row);
    return d->c[(matrix_of(d, row, w->m) * d->rows + of_a) * w->n + column];
}

/* Finds an element of C. False: nobody writes it. */
static bool find_wanted(const Wanted *w, int64_t row, int64_t column, double *wanted)
{
    const Data *d = w->data;
    const MatmulSpec *s = &d->spec;
    *wanted = s->residual ? d->residual_values[in_order(w, row) * w->n + column] : 0;
    if (!s->combine) {
        row = s->scatter ? w->rows[row] : row;
        bool written = matrix_of(d, row, w->m) >= 0;
        *wanted += written ? find_product(w, row, column) : 0;
        return written;
    }
    for (int64_t id = row * s->top; id < (row + 1) * s->top; id++)
        if (w->route[id] > 0)
            *wanted += (double)w->route[id] * find_product(w, w->rows[id], column);
    return true;
}

static Difference compare_with(const Wanted *w, const void *c)
{
    DType type = w->data->spec.result;
    int64_t count = data_result_rows(w->data, w->m) * w->n;
    double squares = 0, norm = 0, largest = 0, wanted;
    unsigned bits = dtype_bits(type);
    for (int64_t i = 0; i < count; i++) {
        uint64_t code = bits_get(c, (size_t)i, bits);
        if (!find_wanted(w, i / w->n, i % w->n, &wanted)) {
            largest = code == UINT64_MAX >> (64 - bits) ? largest : INFINITY;
            continue;
        }
        double got = dtype_decode(type, code);
        squares += (got - wanted) * (got - wanted);
        norm += wanted * wanted;
        largest = fmax(largest, fabs(got - wanted));
    }
    return (Difference){sqrt(squares / norm), largest / sqrt(norm / (double)count)};
}

Difference data_compare(const Data *d, const Trial *trial, int64_t m, Order order,
                        const void *c)
{
    size_t rows = (size_t)m;
    Wanted w = {d, order, m, matmul_columns_of_c(&d->spec, trial->problem.n), calloc(rows, sizeof *w.rows),
                calloc(rows, sizeof *w.ids), calloc(rows, sizeof *w.route)};
    Difference difference = {NAN, NAN};         /* out of memory */
    if (w.rows && w.ids && w.route) {
        data_route(d, m, w.ids, w.route);
        for (int64_t i = 0; i < m; i++)
            w.rows[w.ids[i]] = i;
        difference = compare_with(&w, c);
    }
    free(w.rows);
    free(w.ids);
    free(w.route);
    return difference;
}

Difference data_bounds(const MatmulSpec *s)
{
    bool bf16 = s->product == DTYPE_bf16 || s->result == DTYPE_bf16 || s->scales == DTYPE_bf16;
    double norm = bf16 ? 1e-2 : 2e-3;
    return (Difference){norm, 16 * norm};
}
