/* What the written choice of a load, store or asynchronous copy promises: that its
 * checks are enough, and that its tile has units or chunks of the written width. The
 * proofs lean on the program around the op, which passes change. */
#ifndef TILUS_ANALYSIS_PROMISE_H
#define TILUS_ANALYSIS_PROMISE_H

#include "ir/ir.h"

/* Whether `op` carries a choice of which all is proved. */
bool promise_holds(Module *m, const Op *op);

/* Makes a written choice that is not proved where `op` stands now one that is: with
 * more checks, and, where that is not enough, with the widest instructions that are
 * proved. Without a choice, or with one that holds, nothing changes. */
void promise_repair(Module *m, Op *op);

#endif
