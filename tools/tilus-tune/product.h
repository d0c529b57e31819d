/* Products on an engine: the weights of a shape, packed as each candidate wants them, and the
 * launches, which are those of a plan of the library. Failures are in the engine's message. */
#ifndef TILUS_TUNE_PRODUCT_H
#define TILUS_TUNE_PRODUCT_H

#include "data.h"
#include "engine.h"

enum { ROWS_KINDS = 3 };

/* Weights in packed blocks of `rows` rows, 0 for none: copies, one after the other, that are
 * much more than the L2 cache holds. */
typedef struct Weights {
    int rows;
    unsigned copies;
    size_t stride;              /* bytes of a copy */
    uint64_t packed;
} Weights;

/* A shape on an engine. */
typedef struct Shape {
    Engine *engine;
    const Data *data;
    tilus_matmul *matmul;       /* names of kernels; it has none */
    uint64_t codes, scales, zeros, factor, a, c, workspace;
    size_t workspace_size;      /* which grows as candidates want it */
    Weights weights[ROWS_KINDS];
} Shape;

/* Uploads the data, which stays the caller's. shape_close takes it in any case. */
bool shape_open(Shape *shape, Engine *engine, const Data *data);
void shape_close(Shape *shape);

/* The kernels of a candidate, by the template's programs; NULL: the candidate needs none. */
typedef EngineKernel *const Kernels[MATMUL_PROGRAMS];

/* A candidate's product of `m` rows. */
typedef struct Trial {
    Shape *shape;
    EngineKernel *kernels[MATMUL_PROGRAMS];
    tilus_matmul_plan *plan;
    const Weights *weights;
    tilus_matmul_call call;
} Trial;

/* Packs the weights, where that was not done, and allocates what the launches need; m is at
 * most data->m. One trial of a shape is open at a time. trial_close takes it in any case. */
bool trial_open(Trial *trial, Shape *shape, const MatmulConfig *config, int64_t m,
                Kernels kernels);
void trial_close(Trial *trial);

/* Enqueues the product with copy `copy` of the weights; `trial` is a Trial. */
bool trial_launch(void *trial, unsigned copy);

/* Runs it with the result filled with something else before, and gets the result, [m, n],
 * which the caller frees. NULL on failure. */
void *trial_run(Trial *trial);

#endif
