/* Inputs that repeat with a period that no tile has, so that large ones are made quickly. */
#include "data.h"

#include "support/bits.h"
#include "support/integer.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PERIOD = 8 * 65521 };    /* elements: whole bytes, and 65521 is prime */

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* From 0 to 1. */
static double draw_real(uint64_t *state)
{
    return (double)(draw(state) >> 11) * 0x1p-53;
}

/* ---- codes and activations -------------------------------------------- */

/* Fills bytes[0..size) with what bytes[0..period) has. */
static void repeat(unsigned char *bytes, size_t period, size_t size)
{
    for (size_t at = period; at < size; at += period)
        memcpy(bytes + at, bytes, size - at < period ? size - at : period);
}

/* Codes of a type that mean numbers of at most 8, or all of an integer type's. */
static unsigned list_codes(DType t, uint64_t list[static 256])
{
    unsigned count = 0;
    for (uint64_t code = 0; code < (uint64_t)1 << dtype_bits(t); code++)
        if (!dtype_is_float(t) || fabs(dtype_decode(t, code)) <= 8)
            list[count++] = code;
    return count;
}

static void make_codes(Data *d, uint64_t *random)
{
    DType t = d->spec.weights;
    unsigned bits = dtype_bits(t);
    uint64_t list[256];
    unsigned count = list_codes(t, list);
    size_t period = (size_t)PERIOD * bits / 8;
    unsigned char *bytes = malloc(period + 8);
    if (!bytes)
        return;
    memset(bytes, 0, period);
    for (size_t e = 0; e < PERIOD; e++) {
        uint64_t code = list[draw(random) % count];
        bits_set(bytes, e, bits, code);
        d->code_values[e] = (float)dtype_decode(t, code);
    }
    d->codes = malloc(d->codes_size + period);
    if (d->codes) {
        memcpy(d->codes, bytes, period);
        repeat(d->codes, period, d->codes_size);
    }
    free(bytes);
}

/* About normal, of variance 1; integers 25 times that. */
static void make_activations(Data *d, uint64_t *random)
{
    DType t = d->spec.activations;
    unsigned bits = dtype_bits(t);
    size_t period = (size_t)PERIOD * bits / 8;
    double factor = dtype_is_float(t) ? 1 : 25;
    d->a = malloc(d->a_size + period);
    if (!d->a)
        return;
    for (size_t e = 0; e < PERIOD; e++) {
        double x = 0;
        for (int i = 0; i < 12; i++)
            x += draw_real(random);
        uint64_t code = dtype_encode(t, (x - 6) * factor);
        memcpy((char *)d->a + e * (bits / 8), &code, bits / 8);
        d->a_values[e] = (float)dtype_decode(t, code);
    }
    repeat(d->a, period, d->a_size);
}

/* ---- scales and zero points ------------------------------------------- */

static double deviation(const Data *d)
{
    double squares = 0;
    for (size_t e = 0; e < PERIOD; e++)
        squares += (double)d->code_values[e] * d->code_values[e];
    return sqrt(squares / PERIOD);
}

static size_t scale_bytes(const Data *d)
{
    return dtype_bits(d->spec.scales) / 8;
}

/* Makes results of about the size of 1. Scales of 8 bits leave that to the factor. */
static void make_scales(Data *d, uint64_t *random)
{
    double a = dtype_is_float(d->spec.activations) ? 1 : 25;
    double size = 1 / (sqrt((double)d->spec.k) * a * (deviation(d) + 0.3));
    size_t bytes = scale_bytes(d);
    char *scales = d->scales = malloc(d->scales_size);
    d->factor = matmul_has_factor(&d->spec) ? (float)size : 1;
    size /= (double)d->factor;
    for (size_t i = 0; scales && i < d->scales_size; i += bytes) {
        uint64_t code = dtype_encode(d->spec.scales, size * (0.5 + draw_real(random)));
        memcpy(scales + i, &code, bytes);
    }
}

/* Integers from the middle of the codes, or floats of their size. */
static void make_zeros(Data *d, uint64_t *random)
{
    int bits = (int)dtype_bits(d->spec.weights);
    int64_t range = (int64_t)1 << bits, least = d->spec.offset ? -range / 2 : 0;
    double size = deviation(d);
    size_t count = d->zero_bytes ? (size_t)d->groups * (size_t)d->spec.n : 0;
    char *zeros = d->zeros = malloc(d->zeros_size + 1);
    for (size_t i = 0; zeros && i < count; i++)
        if (d->zero_bytes == 1)
            zeros[i] = (char)(least + (int64_t)(draw(random) % (uint64_t)range));
        else
            ((uint16_t *)d->zeros)[i] =
                (uint16_t)dtype_encode(d->spec.scales, size * (2 * draw_real(random) - 1));
}

static double scale_at(const Data *d, int64_t n, int64_t group)
{
    uint64_t code = 0;
    memcpy(&code, (const char *)d->scales + (size_t)(n * d->groups + group) * scale_bytes(d),
           scale_bytes(d));
    return (double)d->factor * dtype_decode(d->spec.scales, code);
}

static double zero_at(const Data *d, int64_t n, int64_t group)
{
    int64_t i = n * d->groups + group;
    if (d->zero_bytes == 0)
        return 0;
    if (d->zero_bytes == 2)
        return dtype_decode(d->spec.scales, ((const uint16_t *)d->zeros)[i]);
    return d->spec.offset ? ((const int8_t *)d->zeros)[i] : ((const uint8_t *)d->zeros)[i];
}

/* ---- references ------------------------------------------------------- */

/* The expected row of a result: its sum with signs, and single columns. */
typedef struct Expected {
    bool known;
    double sum, columns[DATA_COLUMNS];
} Expected;

/* Adds factor * (B[k, n] - zero point) to y[k], for k of a group. */
static void add_group(const Data *d, int64_t n, int64_t group, double factor, double *y)
{
    int64_t size = d->spec.group ? d->spec.group * d->spec.repeats : d->spec.k;
    int64_t first = group * size, end = first + size < d->spec.k ? first + size : d->spec.k;
    double shift = factor * zero_at(d, n, group);
    while (first < end) {
        int64_t from = (n * d->spec.k + first) % PERIOD;
        int64_t count = end - first < PERIOD - from ? end - first : PERIOD - from;
        const float *values = d->code_values + from;
        for (int64_t i = 0; i < count; i++)
            y[first + i] += factor * (double)values[i] - shift;
        first += count;
    }
}

static void add_column(const Data *d, int64_t n, double factor, double *y)
{
    for (int64_t g = 0; g < d->groups; g++)
        add_group(d, n, g, factor * scale_at(d, n, g), y);
}

static int64_t column_at(const Data *d, int i)
{
    return d->columns > 1 ? i * (d->spec.n - 1) / (d->columns - 1) : 0;
}

static void make_signs(Data *d, uint64_t *random)
{
    d->signs = malloc((size_t)d->spec.n);
    for (int64_t n = 0; d->signs && n < d->spec.n; n++)
        d->signs[n] = draw(random) & 1 ? 1 : -1;
}

/* To look numbers up: each is decoded for every candidate. */
static bool make_result_values(Data *d)
{
    enum { CODES = 1 << 16 };
    if (dtype_bits(d->spec.result) != 16)
        return true;
    d->result_values = malloc(CODES * sizeof *d->result_values);
    for (uint64_t code = 0; d->result_values && code < CODES; code++)
        d->result_values[code] = (float)dtype_decode(d->spec.result, code);
    return d->result_values;
}

static bool make_references(Data *d)
{
    int64_t k = d->spec.k;
    double *column = calloc((size_t)k, sizeof *column);
    d->sums = calloc((size_t)k, sizeof *d->sums);
    d->weights = malloc((size_t)(d->columns * k) * sizeof *d->weights);
    d->expected = calloc((size_t)d->m, sizeof *d->expected);
    bool ok = column && d->sums && d->weights && d->expected && make_result_values(d);
    for (int64_t n = 0; ok && n < d->spec.n; n++)
        add_column(d, n, d->signs[n], d->sums);
    for (int i = 0; ok && i < d->columns; i++) {
        memset(column, 0, (size_t)k * sizeof *column);
        add_column(d, column_at(d, i), 1, column);
        for (int64_t j = 0; j < k; j++)
            d->weights[i * k + j] = (float)column[j];
    }
    free(column);
    return ok;
}

bool data_make(Data *d, const MatmulSpec *spec, int64_t m)
{
    uint64_t random = 1;
    *d = (Data){.spec = *spec, .m = m};
    int64_t group = spec->group ? spec->group * spec->repeats : spec->k;
    d->groups = ceil_div_i64(spec->k, group);
    d->zero_bytes = (int[]){0, 1, 2}[spec->zeros];
    size_t bits = (size_t)spec->n * (size_t)spec->k * dtype_bits(spec->weights);
    d->codes_size = ceil_div_size(bits, 8);
    d->scales_size = (size_t)spec->n * (size_t)d->groups * scale_bytes(d);
    d->zeros_size = (size_t)spec->n * (size_t)d->groups * (size_t)d->zero_bytes;
    d->a_size = (size_t)m * (size_t)spec->k * dtype_bits(spec->activations) / 8;
    d->columns = spec->n < DATA_COLUMNS ? (int)spec->n : DATA_COLUMNS;
    d->code_values = malloc(PERIOD * sizeof *d->code_values);
    d->a_values = malloc(PERIOD * sizeof *d->a_values);
    if (d->code_values && d->a_values) {
        make_codes(d, &random);
        make_activations(d, &random);
        make_scales(d, &random);
        make_zeros(d, &random);
        make_signs(d, &random);
    }
    if (d->codes && d->a && d->scales && d->zeros && d->signs && make_references(d))
        return true;
    fprintf(stderr, "%s: error: out of memory\n", TOOL);
    return false;
}

void data_free(Data *d)
{
    free(d->codes);
    free(d->scales);
    free(d->zeros);
    free(d->a);
    free(d->sums);
    free(d->weights);
    free(d->code_values);
    free(d->a_values);
    free(d->signs);
    free(d->result_values);
    free(d->expected);
    *d = (Data){0};
}

/* ---- checks ----------------------------------------------------------- */

static double result_at(const Data *d, const void *c, int64_t i)
{
    return (double)(d->result_values ? d->result_values[((const uint16_t *)c)[i]]
                                     : ((const float *)c)[i]);
}

static double a_at(const Data *d, int64_t row, int64_t k)
{
    return d->a_values[(row * d->spec.k + k) % PERIOD];
}

static const Expected *expect_row(Data *d, int64_t row)
{
    Expected *e = &d->expected[row];
    for (int64_t k = 0; !e->known && k < d->spec.k; k++) {
        double a = a_at(d, row, k);
        e->sum += a * d->sums[k];
        for (int i = 0; i < d->columns; i++)
            e->columns[i] += a * (double)d->weights[i * d->spec.k + k];
    }
    e->known = true;
    return e;
}

/* Squares of the single columns and of their errors, and the worst sum with signs. */
typedef struct Found {
    double size, error, sum_error;
    int64_t sum_row;
} Found;

static void check_row(Data *d, int64_t row, const void *c, Found *f)
{
    const Expected *e = expect_row(d, row);
    double sum = 0;
    for (int64_t n = 0; n < d->spec.n; n++)
        sum += d->signs[n] * result_at(d, c, row * d->spec.n + n);
    for (int i = 0; i < d->columns; i++) {
        double difference = result_at(d, c, row * d->spec.n + column_at(d, i)) - e->columns[i];
        f->size += e->columns[i] * e->columns[i];
        f->error += difference * difference;
    }
    double off = fabs(sum - e->sum);
    /* A NaN stays, as it compares with nothing. */
    if (!isnan(f->sum_error) && !(off <= f->sum_error)) {
        f->sum_error = off;
        f->sum_row = row;
    }
}

/* Chooses rows to check, the first ones and last ones among them. */
bool data_check(Data *d, int64_t m, const void *c, double *error, char *message,
                size_t size)
{
    enum { ROWS_MAX = 64 };
    bool narrow = d->spec.product == DTYPE_bf16 || d->spec.result == DTYPE_bf16 ||
                  d->spec.scales == DTYPE_bf16;
    double tolerance = narrow ? 1e-2 : 2e-3;
    int64_t rows = m < ROWS_MAX ? m : ROWS_MAX;
    Found f = {0};
    for (int64_t i = 0; i < rows; i++)
        check_row(d, rows > 1 ? i * (m - 1) / (rows - 1) : 0, c, &f);
    *error = sqrt(f.error / f.size);
    double usual = sqrt(f.size / (double)(rows * d->columns) * (double)d->spec.n);
    if (f.size > 0 && *error <= tolerance && f.sum_error <= 4 * tolerance * usual)
        return true;
    snprintf(message, size, "relative error %.2g of single columns (at most %g is right), "
             "%.2g of the sum of row %" PRId64 " (%g)", *error, tolerance, f.sum_error / usual,
             f.sum_row, 4 * tolerance);
    return false;
}
