/* Facts that a program lacks: one about an argument, with which a proof would be found.
 *
 *     %n: i32                         for %i in 0 .. ceil_div(%n, 64)
 *     load_global %g[%i * 64] ..      is not proved; it would be by {divisible = 64} of %n
 */
#ifndef TILUS_SCALAR_MISSING_H
#define TILUS_SCALAR_MISSING_H

#include "ir/ir.h"

typedef struct MissingFact {
    const Value *argument;  /* of the program; NULL: no fact about one argument suffices */
    Facts facts;            /* those that it would have, ... */
    bool range;             /* ... of which the range is new, else the divisor */
} MissingFact;

/* Finds a fact of which bounds_proved(op, offset, span, extent) would follow: the least
 * divisor of an argument, or else a range. `op` is in a program; its facts are as before
 * afterwards. */
MissingFact missing_fact(const Op *op, const Expr *offset, int64_t span, const Expr *extent);

/* Finds a fact of which follows that `offset` is a multiple of `divisor`, a power of two;
 * that it is not negative where `op` runs. */
MissingFact missing_divisor(const Op *op, const Expr *offset, int64_t divisor);
MissingFact missing_sign(const Op *op, const Expr *offset);

/* "{divisible = 64} of %n", on the module's scratch arena: of a fact that was found. */
const char *missing_fact_text(Module *m, const MissingFact *fact);

#endif
