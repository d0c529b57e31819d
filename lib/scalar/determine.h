/* Scalar expressions that other ones determine: tiles whose numbers follow from their offsets are
 * different where their numbers are.
 *
 *     offsets    %t / n * 8 + %t mod n mod h     and     %t mod n / h     with h up to 8
 *     determine  %t / n,  %t mod n mod h,  %t mod n / h,  so  %t mod n,  so  %t */
#ifndef TILUS_SCALAR_DETERMINE_H
#define TILUS_SCALAR_DETERMINE_H

#include "ir/ir.h"

/* Returns true for values that are the same at both times of a question. */
typedef bool (*ValueFixed)(const Value *v, void *data);

/* Considers two times of one program, at which each of the `count` expressions has equal values:
 * returns true when `goal` has, too. Looks through `scalar` ops. */
bool exprs_determine(Module *m, const Expr *const *equal, unsigned count, const Expr *goal,
                     ValueFixed fixed, void *data);

#endif
