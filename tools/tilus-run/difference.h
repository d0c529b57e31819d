/* Measures and prints how far a buffer is from its reference. */
#ifndef TILUS_RUN_DIFFERENCE_H
#define TILUS_RUN_DIFFERENCE_H

#include "run.h"

/* Two buffers of `count` elements of `type`. */
typedef struct Pair {
    const char *name;
    const char *type;
    const void *got, *reference;
    size_t count;
    const Shape *shape;         /* rank 0: one dimension */
} Pair;

/* Sums leave NaN and infinity out. */
typedef struct Difference {
    size_t unequal;         /* codes, of which one at least is no NaN */
    size_t first;           /* the first of them */
    size_t mismatches;      /* NaN or infinity, in one of the two only */
    size_t nans;            /* in both */
    double largest;         /* absolute difference ... */
    size_t largest_at;      /* ... and its element */
    double norm;            /* Frobenius, of the reference */
    double relative;        /* Frobenius norm of the difference / norm */
} Difference;

Difference difference_measure(const Pair *p);

/* One line, to stdout. */
void difference_print(const Pair *p, const Difference *d);

/* The first element that is not equal, and the one that is farthest off. */
void difference_print_elements(const Pair *p, const Difference *d);

#endif
