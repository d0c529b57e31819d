/* Scalar expressions as sums: factor * leaf + .. + constant, over all integers. */
#ifndef TILUS_SCALAR_LINEAR_H
#define TILUS_SCALAR_LINEAR_H

#include "ir/ir.h"

enum { LINEAR_TERMS = 8 };

/* A leaf is a scalar value, or an expression that is no sum; its factor may be 0. */
typedef struct LinearTerm {
    const Expr *leaf;
    int64_t factor;
} LinearTerm;

typedef struct LinearSum {
    LinearTerm terms[LINEAR_TERMS];
    unsigned count;
    unsigned scalars;       /* results of `scalar` ops that were looked through */
    int64_t constant;
} LinearSum;

/* Adds factor * e to `s`, through `scalar` ops too; false, with `s` useless, when that
 * does not fit. */
bool linear_add(LinearSum *s, const Expr *e, int64_t factor);

/* Adds factor * t to `s` in the same way. */
bool linear_add_sum(LinearSum *s, const LinearSum *t, int64_t factor);

/* The factor of a leaf, 0 for one that `s` lacks. */
int64_t linear_factor(const LinearSum *s, const Expr *leaf);

/* The range of all terms but number `skip` (LINEAR_TERMS: none is skipped), and the
 * constant; false when it is unknown. */
bool linear_range(const LinearSum *s, unsigned skip, int64_t *min, int64_t *max);

#endif
