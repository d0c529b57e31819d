/* The functions by which reduce and scan combine elements. */
#ifndef TILUS_INTERP_FOLD_H
#define TILUS_INTERP_FOLD_H

#include "ir/op_attrs.h"
#include "types/dtype.h"

/* Returns the combination of two values, by sum, product, max or min: a number wins over a
 * NaN, 0.0 is above -0.0. */
double fold_float(ReduceKind kind, double a, double b);

/* Returns the value that leaves every other one as it is: -0.0 + x is x, also for x = -0.0. */
double fold_neutral_float(ReduceKind kind);

/* Returns the combination of two integers; signed ones have all bits above the type's width
 * equal to the sign. */
uint64_t fold_integer(ReduceKind kind, bool is_signed, uint64_t a, uint64_t b);
uint64_t fold_neutral_integer(ReduceKind kind, bool is_signed);

/* Returns an integer's code, sign-extended if `t` is signed. */
uint64_t fold_extend(DType t, uint64_t code);

/* Returns the value before the first of an exclusive scan: 0, 1, the least or the greatest value
 * of the type; of integers sign-extended. */
double fold_start_float(ReduceKind kind, DType t);
uint64_t fold_start_integer(ReduceKind kind, DType t);

#endif
