/* Unrolling for other passes. */
#ifndef TILUS_PASSES_UNROLL_LOOPS_H
#define TILUS_PASSES_UNROLL_LOOPS_H

#include "ir/ir.h"

/* Unrolls inner loops of loops marked `pipelined` whose iterations are all to be copied and that
 * copy to shared memory, as pipelined copies stand in the loop's own body. Canonicalizes and
 * returns true when there were some. */
bool unroll_copying_loops(Program *p);

#endif
