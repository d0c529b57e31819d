/* Checks before the loads and stores of a module. */
#ifndef TILUS_CPU_INSTRUMENT_H
#define TILUS_CPU_INSTRUMENT_H

#include "codegen/internal.h"

/* Puts a call before each load and store of shared or global memory in `f`, that
 * checks its address and notes it (shadow.h). The module has this machine's layout. */
void instrument_accesses(Codegen *cg, LLVMValueRef f);

#endif
