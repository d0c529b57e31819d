/* The order of ops in a run. */
#ifndef TILUS_SELECT_ORDER_H
#define TILUS_SELECT_ORDER_H

#include "ir/ir.h"

/* Returns true when `op` never comes before `first`: it stands behind it, in no loop with it, and threads that run it run
 * `first`, too, where anything does. */
bool op_always_follows(const Op *op, const Op *first);

#endif
