/* The product in f64, of columns that stand for all. */
#include "bench.h"

#include "support/integer.h"
#include "support/parallel.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* One column of each of as many parts of n, at any place in it: equal distances would meet
 * the same row of each tile. The first and the last are among them. */
static void choose_columns(Reference *r, unsigned seed)
{
    int64_t n = matmul_columns_of_c(r->data->spec, r->data->spec->n);
    uint64_t state = seed;
    r->count = n < CHECKED_COLUMNS ? (size_t)n : CHECKED_COLUMNS;
    for (size_t i = 0; i < r->count; i++) {
        int64_t first = (int64_t)i * n / (int64_t)r->count;
        int64_t last = (int64_t)(i + 1) * n / (int64_t)r->count;
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        r->columns[i] = first + (int64_t)((state >> 33) % (uint64_t)(last - first));
    }
    r->columns[0] = 0;
    r->columns[r->count - 1] = n - 1;
}

/* Decodes columns of B, those of C from column `first` on. */
static void decode_columns(const Reference *r, int64_t first, double *column, double *to)
{
    size_t k = (size_t)r->data->spec->k;
    for (size_t i = 0; i < r->count; i++) {
        data_column(r->data, first + r->columns[i], column);
        for (size_t j = 0; j < k; j++)
            to[j * CHECKED_COLUMNS + i] = column[j];
    }
}

bool reference_make(Reference *r, const Data *data, unsigned seed)
{
    const MatmulSpec *s = data->spec;
    size_t k = (size_t)s->k;
    double *column = malloc(k * sizeof *column);
    *r = (Reference){.data = data, .weights = calloc(k * CHECKED_COLUMNS, sizeof(double)),
                     .up = s->gated ? calloc(k * CHECKED_COLUMNS, sizeof(double)) : NULL};
    bool ok = column && r->weights && (r->up || !s->gated);
    if (ok) {
        choose_columns(r, seed);
        decode_columns(r, 0, column, r->weights);
    }
    if (ok && s->gated)
        decode_columns(r, s->n / 2, column, r->up);
    free(column);
    return ok;
}

void reference_free(Reference *r)
{
    free(r->weights);
    free(r->up);
}

static double result_at(DType type, const void *c, size_t index)
{
    uint16_t half;
    uint32_t word;
    if (dtype_bits(type) == 32) {
        memcpy(&word, (const char *)c + index * sizeof word, sizeof word);
        return dtype_decode(type, word);
    }
    memcpy(&half, (const char *)c + index * sizeof half, sizeof half);
    return dtype_decode(type, half);
}

/* C[m, columns] in f64: the innermost loop is over columns, so that it needs no order of
 * sums. */
static void multiply(const Reference *r, const double *a, const double *b, double sums[CHECKED_COLUMNS])
{
    memset(sums, 0, CHECKED_COLUMNS * sizeof *sums);
    for (int64_t k = 0; k < r->data->spec->k; k++) {
        const double *weights = b + k * CHECKED_COLUMNS;
        for (int i = 0; i < CHECKED_COLUMNS; i++)
            sums[i] += a[k] * weights[i];
    }
}

/* A row of C: of gated products silu(a x gate) * (a x up), as the command line has no other function. */
static void compute_row(const Reference *r, const double *a, double sums[CHECKED_COLUMNS])
{
    double up[CHECKED_COLUMNS];
    multiply(r, a, r->weights, sums);
    if (!r->up)
        return;
    multiply(r, a, r->up, up);
    for (int i = 0; i < CHECKED_COLUMNS; i++)
        sums[i] *= up[i] / (1 + exp(-sums[i]));
}

/* PART_ROWS is how many rows a thread takes at a time. */
enum { PART_ROWS = 16 };

typedef struct Comparison {
    const Reference *r;
    int64_t m;
    const void *c;
    struct { double wrong, all; } *parts;       /* squares: of differences, and of what C should be */
} Comparison;

static void compare_row(const Comparison *comparison, int64_t row, const double *a, double *wrong, double *all)
{
    const Reference *r = comparison->r;
    const MatmulSpec *s = r->data->spec;
    int64_t columns = matmul_columns_of_c(s, s->n);
    double sums[CHECKED_COLUMNS];
    compute_row(r, a, sums);
    for (size_t i = 0; i < r->count; i++) {
        double is = result_at(s->result, comparison->c, (size_t)(row * columns + r->columns[i]));
        *wrong += (is - sums[i]) * (is - sums[i]);
        *all += sums[i] * sums[i];
    }
}

static void compare_part(void *data, size_t part)
{
    const Comparison *comparison = data;
    double *a = malloc((size_t)comparison->r->data->spec->k * sizeof *a);
    double wrong = 0, all = 0;
    int64_t first = (int64_t)part * PART_ROWS, end = first + PART_ROWS;
    for (int64_t row = first; a && row < end && row < comparison->m; row++) {
        data_row(comparison->r->data, row, a);
        compare_row(comparison, row, a, &wrong, &all);
    }
    comparison->parts[part].wrong = a ? wrong : NAN;
    comparison->parts[part].all = all;
    free(a);
}

double reference_error(const Reference *r, int64_t m, const void *c)
{
    const unsigned every_processor = 0;
    size_t count = (size_t)ceil_div_i64(m, PART_ROWS);
    Comparison comparison = {r, m, c, calloc(count, sizeof *comparison.parts)};
    double wrong = 0, all = 0;
    if (!comparison.parts)
        return NAN;
    parallel_for(every_processor, count, compare_part, &comparison);
    for (size_t i = 0; i < count; i++) {
        wrong += comparison.parts[i].wrong;
        all += comparison.parts[i].all;
    }
    free(comparison.parts);
    return sqrt(wrong / all);
}

double reference_tolerance(const MatmulSpec *spec)
{
    bool bf16 = spec->product == DTYPE_bf16 || spec->result == DTYPE_bf16;
    return bf16 ? 1e-2 : 2e-3;
}
