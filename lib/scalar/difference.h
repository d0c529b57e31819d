/* The possible differences of two scalar expressions: offsets of two accesses, of
 * which one may be of an earlier iteration of a loop. */
#ifndef TILUS_SCALAR_DIFFERENCE_H
#define TILUS_SCALAR_DIFFERENCE_H

#include "ir/ir.h"

/* The difference is one of `values` plus a rest, which is a multiple of
 * rest_divisor in [rest_min, rest_max] (INT64_MIN, INT64_MAX: no bound).
 * rest_divisor = 0: the rest is 0. */
enum { DIFFERENCE_VALUES = 8 };

typedef struct Difference {
    unsigned count;             /* 0 only after difference_narrow */
    int64_t values[DIFFERENCE_VALUES];
    int64_t rest_min, rest_max, rest_divisor;
} Difference;

/* The difference b - a, wherever both can be computed. Pure. */
Difference difference_of(const Expr *a, const Expr *b);

/* Returns true when the rest is 0. */
static inline bool difference_is_exact(const Difference *d)
{
    return d->rest_divisor == 0;
}

/* Leaves exactly the differences d with -below < d < above, both bounds positive, as
 * an exact difference, which may be empty. Returns false, with `d` as it was, when
 * they are more than DIFFERENCE_VALUES. */
bool difference_narrow(Difference *d, int64_t below, int64_t above);

#endif
