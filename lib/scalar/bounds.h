/* Proofs that an access stays inside its tensor, so that no check is needed. */
#ifndef TILUS_SCALAR_BOUNDS_H
#define TILUS_SCALAR_BOUNDS_H

#include "ir/ir.h"

/* Proves that 0 <= offset and offset + span <= extent hold whenever `op` runs; span >= 1.
 * Proofs use ranges, the structure of blocks and loops, and the conditions around `op`
 * and before it (conditions.h). True is a proof, false means only that none was found.
 * Pure. */
bool bounds_proved(const Op *op, const Expr *offset, int64_t span, const Expr *extent);

/* Proves that 0 <= offset holds whenever `op` runs, by ranges and conditions. */
bool bounds_from_zero(const Op *op, const Expr *offset);

#endif
