/* Layouts as plain functions, (thread, slot) -> element, computed point by point from
 * the definitions: what the algebra of lib/types/layout.h is compared with. */
#ifndef TILUS_FUZZ_LAYOUT_MAP_H
#define TILUS_FUZZ_LAYOUT_MAP_H

#include "types/layout.h"

enum { MAP_POINTS = 2048 };     /* the most that a map has */

/* Elements are numbered in row-major order. */
typedef struct Map {
    unsigned rank;
    int64_t shape[LIMIT_RANK];
    int64_t threads, slots;
    int64_t *at;                /* [thread * slots + slot] */
} Map;

/* A map without its points, which are zero. */
Map *map_new(Arena *a, unsigned rank, const int64_t *shape, int64_t threads, int64_t slots);
/* The function that a layout computes. */
Map *map_of(Arena *a, const Layout *l);
bool map_equal(const Map *a, const Map *b);

int64_t map_number(unsigned rank, const int64_t *shape, const int64_t *index);
void map_index(unsigned rank, const int64_t *shape, int64_t number, int64_t *index);

/* Slots, or threads, in row-major order, or with the first dimension fastest. */
Map *map_dense(Arena *a, unsigned rank, const int64_t *shape, bool spatial, bool column);
Map *map_product(Arena *a, const Map *f, const Map *g);
Map *map_permute(Arena *a, const Map *m, const int64_t *order);
Map *map_concat(Arena *a, const Map *f, const Map *g);
/* Reshapes: equal numbers under another shape. */
Map *map_reshape(Arena *a, const Map *m, unsigned rank, const int64_t *shape);
/* After a reduction over `dims`, a bit mask: they get extent 1. */
Map *map_reduce(Arena *a, const Map *m, uint32_t dims);
/* The elements that threads hold of the tile at `origin`; NULL where some hold none of it, or
 * threads hold different numbers of its elements. */
Map *map_slice(Arena *a, const Map *m, const int64_t *shape, const int64_t *origin);

#endif
