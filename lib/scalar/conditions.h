/* Proofs from conditions: of the `if`s and loops around an op, and of the `assert`s
 * and `assume`s that the block has passed before it. */
#ifndef TILUS_SCALAR_CONDITIONS_H
#define TILUS_SCALAR_CONDITIONS_H

#include "ir/ir.h"

/* Proves that 0 <= offset and offset + span <= extent follow from conditions whenever `op`
 * runs; span >= 1. True is a proof, false means only that none was found. Pure. */
bool conditions_keep_inside(const Op *op, const Expr *offset, int64_t span,
                            const Expr *extent);

/* Proves 0 <= offset in this way. */
bool conditions_keep_from_zero(const Op *op, const Expr *offset);

#endif
