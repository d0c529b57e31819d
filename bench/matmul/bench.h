/* matmul_bench: what a product of the matmul library costs on a device, beside cuBLAS and
 * beside the least time that reading its operands takes. Checked before it is measured. */
#ifndef TILUS_MATMUL_BENCH_H
#define TILUS_MATMUL_BENCH_H

#include "common/measure.h"
#include "common/options.h"
#include "matmul/config.h"
#include "tilus/matmul.h"

#include <stdint.h>

#define TOOL "matmul_bench"
#define BENCH_USER TOOL ": error"       /* begins messages */

enum { M_MAX = 65536, SIZES_MAX = 32 };

/* The command line. Strings point into argv. */
typedef struct Settings {
    tilus_matmul_problem problem;
    int64_t sizes[SIZES_MAX];   /* m */
    size_t size_count;
    const char *kernels;        /* folder of artefacts; NULL: none */
    const char *tunings;        /* file; NULL: none */
    const char *revision;       /* of the sources, for the rows */
    unsigned rotate_mb;         /* of all copies of the weights; two at least */
    unsigned seed;
    MeasureState state;
    bool no_cublas, dry_run, list_kernels, list_space, print_device;
    char *tunings_text;
} Settings;

/* The measurements of one m, in microseconds; NAN: not measured. */
typedef struct Row {
    const char *device, *driver;        /* driver: "" when nothing runs */
    const char *configuration;
    int64_t m;
    double us, kernel_us, flush_us, chain_us, cublas_us, error;
    const char *cublas_layout;          /* of B, of the faster cuBLAS; "": not measured */
} Row;

/* ---- data.c: random operands on the host ------------------------------------- */

/* Plain operands: weights are [n, k], scales and zero points [n, groups], A [m, k]. */
typedef struct Data {
    const MatmulSpec *spec;
    int64_t group, groups;      /* of k with one scale, and how many */
    uint8_t *codes, *scales, *zeros, *a;        /* zeros: NULL where there are none */
    size_t code_bytes, scale_bytes, zero_bytes, a_bytes;
    float factor;               /* of all of C; 1 where the problem has none */
} Data;

/* False: no memory, which stands on stderr. data_free takes what there is, and {0}. */
bool data_make(Data *data, const MatmulSpec *spec, int64_t m_max, unsigned seed);
void data_free(Data *data);

/* Numbers that the operands mean: B[0..k) of column `n`, and A[m, 0..k), rounded to the product's 8
 * bits where it has those. */
void data_column(const Data *data, int64_t n, double *values);
void data_row(const Data *data, int64_t m, double *values);

/* ---- reference.c: what C should be --------------------------------------------- */

/* Columns of C that are compared, in all rows. */
enum { CHECKED_COLUMNS = 64 };

/* B of these columns of C as numbers: of gated products the gate's, and what it multiplies. */
typedef struct Reference {
    const Data *data;
    size_t count;               /* of columns: all of C's where there are fewer */
    int64_t columns[CHECKED_COLUMNS];
    double *weights, *up;       /* [k, CHECKED_COLUMNS]; up: NULL of other products */
} Reference;

bool reference_make(Reference *r, const Data *data, unsigned seed);
void reference_free(Reference *r);

/* The relative Frobenius error of C, m rows, which is of the result's type. NAN when C has a
 * NaN, or memory runs out. */
double reference_error(const Reference *r, int64_t m, const void *c);
double reference_tolerance(const MatmulSpec *spec);

/* ---- cublas.c: the same product in f16 ---------------------------------------- */

/* C[m, n] = A[m, k] x B[k, n] in f16 with sums in f32. *out is NULL where there is no cuBLAS,
 * which stderr says; false after a failure, which stands there. The settings outlive it. */
typedef struct Cublas Cublas;
bool cublas_open(Measure *measure, const Settings *settings, Cublas **out);
/* Microseconds of a launch, by the graph, with B as [n, k] or as [k, n], whichever is faster;
 * *layout names that one, "nk" or "kn". */
bool cublas_measure(Cublas *cublas, int64_t m, double *us, const char **layout);
void cublas_close(Cublas *cublas);

/* ---- helper.c: the kernels beside the products ------------------------------------ */

/* The artefact NAME.tilusk of the folder; NULL after a failure, which stands on stderr.
 * Unloaded by tilus_kernel_unload. */
tilus_kernel *helper_load(tilus_rt *rt, const char *folder, const char *name);
/* False after a failure, which stands on stderr. */
bool helper_launch(tilus_kernel *kernel, const Measure *measure, const tilus_arg *args,
                   size_t count);

/* ---- flush.c: fills the L2 cache by reading ------------------------------------ */

/* NULL after a failure, which stands on stderr. flush_launch is a MeasureLaunch, `flush` a
 * Flush. */
typedef struct Flush Flush;
Flush *flush_open(const Measure *measure, tilus_rt *rt, const char *folder);
bool flush_launch(void *flush, unsigned copy);
void flush_close(Flush *flush);

/* ---- row.c: CSV --------------------------------------------------------------- */

void row_print_header(void);
void row_print(const Settings *settings, const MatmulSpec *spec, const Row *row);

/* Describes how products of `m` rows are computed: the kernel that multiplies, and its blocks. */
enum { CONFIGURATION_MAX = MATMUL_NAME_MAX + 32 };
void row_configuration(const tilus_matmul_plan *plan, int64_t m, char text[CONFIGURATION_MAX]);

/* Bytes that a product reads and writes at least: codes, scales, zero points, A and C. */
double row_bytes(const MatmulSpec *spec, int64_t m);

/* ---- device.c: measures on the GPU --------------------------------------------- */

/* Copies of `bytes` bytes that a graph goes around over: as many as --rotate holds, two at
 * least. */
unsigned device_copies(const Settings *settings, size_t bytes);

/* Print, and return an exit code: "NAME,DRIVER"; rows. */
int device_print(void);
int device_measure(const Settings *settings, const MatmulSpec *spec);

/* ---- dry.c: without a GPU, as if there were an H200 ------------------------------- */

/* All print, and return an exit code: the rows that would be measured; the kernels that
 * they take; those of all configurations. */
int dry_rows(const Settings *settings);
int dry_kernels(const Settings *settings);
int dry_space(const Settings *settings, const MatmulSpec *spec);

#endif
