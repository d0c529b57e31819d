/* dot by tensor cores and without. */
#ifndef TILUS_CODEGEN_DOT_H
#define TILUS_CODEGEN_DOT_H

#include "codegen/internal.h"
#include "select/plan.h"

/* The instruction of a row of mma.def. */
IntrinsicId mma_intrinsic(const Mma *mma);

/* Emits the dot `op` by the plan, which goes by fma. False after an error. */
bool emit_dot_fma(Codegen *cg, const Op *op, const Plan *plan);

#endif
