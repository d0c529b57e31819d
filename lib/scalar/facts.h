/* Facts about scalar expressions: a divisor and a range, computed from what
 * arguments state, from the grid, from loop bounds and from what the types of
 * loaded and carried values hold. Facts come before
 * checks: a bounds check, or a narrower vector, is what remains when a fact is
 * missing. */
#ifndef TILUS_SCALAR_FACTS_H
#define TILUS_SCALAR_FACTS_H

#include "ir/ir.h"

typedef struct ScalarFacts {
    int64_t divisor;    /* the value is a multiple of this; 0: the value is 0 */
    int64_t min, max;   /* inclusive; INT64_MIN and INT64_MAX when unknown */
} ScalarFacts;

ScalarFacts facts_of_value(const Value *v);
ScalarFacts facts_of_expr(const Expr *e);

/* Returns true when `e` has a value whatever happens: no division by zero, no number of more
 * than 64 bits. So it may be evaluated where the program does not do so. */
bool expr_never_fails(const Expr *e);

/* The greatest power of two, at most `limit`, that divides `e` always. */
int64_t facts_alignment(const Expr *e, int64_t limit);

#endif
