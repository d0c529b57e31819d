/* Replicas: tells whether threads that hold one element hold the same value of it. */
#ifndef TILUS_MEMORY_REPLICAS_H
#define TILUS_MEMORY_REPLICAS_H

#include "ir/ir.h"

/* True is a proof; every op but `view` keeps replicas equal. Uses the scratch
 * arena and leaves it as it was. */
bool replicas_are_equal(Module *m, Value *v);

#endif
