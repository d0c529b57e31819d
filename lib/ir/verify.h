/* The verifier: what the language demands beyond syntax. Reports everything
 * it finds to the module's diag; each message names both values. */
#ifndef TILUS_IR_VERIFY_H
#define TILUS_IR_VERIFY_H

#include "ir/ir.h"

bool verify_module(Module *m);

/* The number and kinds of `op`'s operands, against its row in ops.def. The
 * parser asks before it infers result types. */
bool verify_operands(Module *m, const Op *op);

/* The type that a `reduce` with checked operands gives; NULL after an error in
 * its attributes. */
const Type *verify_reduce_type(Module *m, const Op *op);

/* One function an op, found by name from ops.def: what its row cannot say. */
#define OP(id, out, operands, attrs, effect, type, summary)                   \
    bool verify_##id(Module *m, const Op *op);
#include "ir/ops.def"

#endif
