/* The order of ops in a run. */
#ifndef TILUS_SELECT_ORDER_H
#define TILUS_SELECT_ORDER_H

#include "ir/ir.h"

/* Returns true when `op` runs only after `first` in each run of the program: it stands behind it, in no loop with it, and all
 * threads that run it have run `first` before. */
bool op_always_follows(const Op *op, const Op *first);

#endif
