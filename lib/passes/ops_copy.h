/* Copies of ops. While ops are copied, each of their values is forwarded
 * (value_forward) to its newest copy, and copies use what operands and expressions are
 * forwarded to. Shared tensors lose their offset: copies need places of their own. */
#ifndef TILUS_PASSES_OPS_COPY_H
#define TILUS_PASSES_OPS_COPY_H

#include "ir/ir.h"

/* Copies `op` with its regions into `to` before `before`, or to the end when NULL. */
void op_copy(Module *m, const Op *op, Region *to, Op *before);

/* Copies all ops of `from`; its last one, the yield, only when `yields`. */
void ops_copy(Module *m, const Region *from, Region *to, Op *before, bool yields);

#endif
