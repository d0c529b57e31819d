/* A product on an engine: the weights of a shape, packed as each candidate wants them, and
 * the launches. Failures are in the engine's message. */
#ifndef TILUS_TUNE_PRODUCT_H
#define TILUS_TUNE_PRODUCT_H

#include "data.h"
#include "engine.h"

/* What arguments of the template's programs point to. */
typedef enum Place {
    PLACE_CODES, PLACE_SCALES, PLACE_ZEROS,         /* plain weights */
    PLACE_UNITS, PLACE_UNIT_SCALES, PLACE_UNIT_ZEROS,   /* packed ones, of one copy */
    PLACE_A, PLACE_PREPARED, PLACE_TURNS, PLACE_PARTS, PLACE_C,
    PLACES
} Place;

enum { ROWS_KINDS = 3, COPIES_MAX = 256, ARGUMENTS_MAX = 32 };

/* Weights packed for units of `rows` rows: copies that are more than the L2 cache holds. */
typedef struct Packed {
    int rows;
    unsigned copies;
    uint64_t units[COPIES_MAX], scales, zeros;
} Packed;

/* A shape on an engine. */
typedef struct Shape {
    Engine *engine;
    const Data *data;
    uint64_t codes, scales, zeros, a;
    Packed packed[ROWS_KINDS];
} Shape;

/* Uploads the data, which stays the caller's. shape_close takes it in any case. */
bool shape_open(Shape *shape, Engine *engine, const Data *data);
void shape_close(Shape *shape);

/* The kernels of a candidate. */
typedef struct Kernels {
    EngineKernel *pack, *prepare, *product;     /* prepare may be NULL */
} Kernels;

typedef struct Product {
    Shape *shape;
    const Packed *packed;
    Kernels kernels;
    MatmulConfig config;
    int64_t m;
    uint64_t own[PLACES];       /* memory of this product; 0: none */
    tilus_arg prepare[ARGUMENTS_MAX], product[COPIES_MAX][ARGUMENTS_MAX];
} Product;

/* Packs the weights, where that was not done, and allocates what the launches need; m is at
 * most data->m. product_close takes it in any case. */
bool product_open(Product *p, Shape *shape, const MatmulConfig *config, int64_t m,
                  Kernels kernels);
void product_close(Product *p);

/* Enqueues a product of copy `copy` of the weights; `product` is a Product. */
bool product_launch(void *product, unsigned copy);

/* Runs one with the result filled with something else before, and gets the result, [m, n],
 * which the caller frees. NULL on failure. */
void *product_run(Product *p);

#endif
