/* Tunings: configurations that were measured to be best for a problem, and the choice among
 * them and the cost model's. Look-ups are pure: the same table gives the same answer
 * each time. Thread safe. */
#ifndef TILUS_MATMUL_TABLE_H
#define TILUS_MATMUL_TABLE_H

#include "matmul/config.h"

enum { MATMUL_TEMPLATE_MAX = 24, MATMUL_DEVICE_MAX = 96, MATMUL_DRIVER_MAX = 24 };

/* A measurement. `spec` has what its problem decides (no epilogue). Texts name the machine;
 * the driver is a note. */
typedef struct MatmulTuning {
    char template[MATMUL_TEMPLATE_MAX];     /* hash of the template's text */
    char device[MATMUL_DEVICE_MAX], driver[MATMUL_DRIVER_MAX];
    MatmulSpec spec;
    int64_t m;                  /* a bucket: a power of two */
    MatmulConfig config;
    double us;                  /* of a product, all of its launches */
} MatmulTuning;

typedef struct MatmulTunings {
    MatmulTuning *items;        /* freed with free() */
    size_t count;
} MatmulTunings;

/* Reads the JSON text that matmul_tunings_write makes. False: message[0..size) says what is
 * wrong, with line and column of text that is no JSON, else with the entry and its field, and
 * is empty when memory ran out; `*out` has nothing then. */
bool matmul_tunings_read(const char *json, MatmulTunings *out, char *message, size_t size);

/* Writes the tunings as JSON, one a line, in their order; freed with free(). NULL: out of
 * memory. */
char *matmul_tunings_write(const MatmulTunings *tunings);

/* Returns the first digits of the SHA-256 of the template that this library is for. */
const char *matmul_template_hash(void);

typedef struct MatmulTable MatmulTable;

/* Opens a table of the user's tunings (`json`, or NULL) before those that are built in. Fails as
 * matmul_tunings_read does; the caller frees it. */
bool matmul_table_open(const char *json, MatmulTable **out, char *message, size_t size);
void matmul_table_free(MatmulTable *table);

typedef enum MatmulSource {
    MATMUL_FROM_USER,           /* tunings that were given */
    MATMUL_FROM_BUILT_IN,
    MATMUL_FROM_MODEL
} MatmulSource;

typedef struct MatmulChoice {
    MatmulConfig config;
    MatmulSource source;
    bool exact;                 /* measured for this template, these types and this bucket */
    double us;                  /* as measured, of another problem in proportion to the read
                                   floors; or as the model says */
} MatmulChoice;

/* Chooses the best for `m` rows with packed blocks of `rows` rows; false: nothing fits.
 *
 * Tunings of the same device, n and k count, except that those of groups of 16 and those of groups
 * of 32 and 64 do not serve each other: those of the same type of weights before those
 * of others of as many bits (i4 and u4, f4e2m1), of one bit less, of one bit more. Then those
 * of the user go before all others; then those of the bucket, of the nearest group, of the same
 * template, of the same type of the product, zero points, types of scales, A and result,
 * the faster one. Up to m = 8 a bucket without tunings takes those of the next larger one that
 * has some, else of the next smaller one. What does not fit is passed over, and where nothing
 * is left the cost model chooses, without zeros_by_mma and register_reallocation. From m = 17 on
 * a product by wgmma goes before a built-in tuning if the model says that it is faster. */
bool matmul_table_config(const MatmulTable *table, const MatmulSpec *spec, int rows, int64_t m,
                         const MatmulDevice *device, MatmulChoice *choice);

/* Returns the rows of packed blocks of a plan: those with the least sum, over buckets, of the
 * square of how many times as long as the best rows of the bucket they take. The buckets are
 * those of 1 to 16 that have tunings, or all of these where none has; and those of 32 to 256
 * that have some of weights of as many bits, which count a quarter. In a bucket that has
 * tunings, rows that have none of weights as near count twice the best tuning, as the tuner had
 * its reasons to leave them out. 0: nothing fits the device. */
int matmul_table_rows(const MatmulTable *table, const MatmulSpec *spec,
                      const MatmulDevice *device);

#endif
