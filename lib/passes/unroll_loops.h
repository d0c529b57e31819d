/* Unrolling for other passes. */
#ifndef TILUS_PASSES_UNROLL_LOOPS_H
#define TILUS_PASSES_UNROLL_LOOPS_H

#include "ir/ir.h"

/* Unrolls the inner loops of each loop marked `pipelined` in whose body a loop that is unrolled
 * whole copies to shared memory: pipelined copies stand in the loop's own body. Canonicalizes, and
 * returns true when something changed. */
bool unroll_copying_loops(Program *p);

#endif
