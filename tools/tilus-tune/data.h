/* Inputs of a product with the expected result.
 *
 * Whole rows of the result are checked, at the cost of reading the weights once: with signs
 * r[n] drawn at random, sum_n C[m, n] r[n] must be sum_k A[m, k] y[k], where
 * y[k] = sum_n B[k, n] r[n] serves all rows of A (Freivalds). A wrong element shifts the sum
 * by its error. The roundings of all others do, too, so a sum may be off by 8e-3 of a row's
 * usual norm, 4e-2 where anything is bf16: of n elements, one that is wrong by less than
 * 8e-3 sqrt(n) (4e-2 sqrt(n)) of the usual size is not seen. That holds of 64 rows, the first
 * and the last among them; with more, the others are not looked at. Some columns of B are
 * checked one by one in these rows, which also says how large elements are. All in f64. */
#ifndef TILUS_TUNE_DATA_H
#define TILUS_TUNE_DATA_H

#include "tune.h"

enum { DATA_COLUMNS = 16 };     /* that are checked one by one */

typedef struct Data {
    MatmulSpec spec;
    int64_t m;                  /* rows of A that there are */
    int64_t groups;
    int zero_bytes;             /* of a zero point, 0: there are none */
    void *codes, *scales, *zeros, *a;       /* [n, k] without gaps, [n, groups], [m, k] */
    size_t codes_size, scales_size, zeros_size, a_size;
    float factor;               /* of all of C, with scales of f8e4m3; else 1 */
    double *sums;               /* y */
    int columns;                /* min(n, DATA_COLUMNS) */
    float *weights;             /* [columns, k], those of B */
    float *code_values, *a_values;          /* that repeat: element e is e mod their count */
    signed char *signs;         /* r */
    float *result_values;       /* of all codes of a result of 16 bits */
    struct Expected *expected;  /* [m]: of rows that were checked before */
} Data;

/* Makes the data of a shape, for `m` rows of A. False: out of memory, after a message;
 * data_free takes it in any case. */
bool data_make(Data *data, const MatmulSpec *spec, int64_t m);
void data_free(Data *data);

/* Checks up to 64 rows of `c`, [m, n] of the result's type, m at most data->m; what a row must be
 * is computed at its first check. False, with the reason, when it is wrong; `*error` is the
 * relative error of what was checked one by one. */
bool data_check(Data *data, int64_t m, const void *c, double *error, char *message,
                size_t size);

#endif
