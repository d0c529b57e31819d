/* Matrices a[m, k] and b[k, n] of dot_async. One in shared memory may have m, n or k in two
 * dimensions, blocks and the elements of a block:
 *
 *     a[m, k / R, R]    a[m / R, R, k]    b[k / R, R, n]    b[k, n / R, R]
 */
#ifndef TILUS_IR_PRODUCT_H
#define TILUS_IR_PRODUCT_H

#include "ir/ir.h"

/* Dimensions `first` .. `last` of an operand, at most two. */
typedef struct MatrixSide {
    unsigned first, last;
} MatrixSide;

/* Gives k of operand i of a dot_async, whose sums' type is `sums`, or its m or n. */
MatrixSide product_side(const Op *op, const Type *sums, unsigned i, bool k);

/* The product of a side's extents. */
int64_t side_extent(const Type *t, MatrixSide side);

#endif
