/* Codes, scales and zero points of one matrix of a file. Functions that fail have said why. */
#ifndef TILUS_MATMUL_CODES_H
#define TILUS_MATMUL_CODES_H

#include "tilus-matmul/tool.h"

typedef struct CodesJob {
    const Settings *settings;
    const Source *source;
    const Matrix *matrix;
    const tilus_matmul_problem *problem;    /* codes_make: of it */
} CodesJob;

/* What tilus_matmul_pack takes; the memory is its own, or the file's. */
typedef struct Codes {
    tilus_matmul_weights weights;
    void *owned[3];
} Codes;

/* Sets n and k, of a matrix of floats or of codes of `type`. */
bool codes_extents(const CodesJob *job, const char *type, int64_t extents[static 2]);

/* codes_free also takes what was made in part. */
bool codes_make(const CodesJob *job, Codes *out);
void codes_free(Codes *codes);

/* The scales' type of a problem. */
const char *scales_of(const tilus_matmul_problem *problem);

#endif
