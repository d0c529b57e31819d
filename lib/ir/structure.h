/* The structure of ops, which the parser gives every op: as many operands, results, regions and
 * attributes as its row in ops.def names, each of its kind. The printer, the verifier and all
 * behind them lean on it; what changes IR for callers of the library checks it at once. */
#ifndef TILUS_IR_STRUCTURE_H
#define TILUS_IR_STRUCTURE_H

#include "ir/ir.h"

/* Returns true when the text of an op cannot do without the attribute. */
bool op_needs_attr(OpCode code, AttrKind kind);

/* Checks an op of program `p`, which may be detached; false after an error at its place. */
bool verify_op_structure(Program *p, const Op *op);

/* Checks each op of the module, and that regions end with their only `yield`. */
bool verify_structure(Module *m);

/* Verifies a module that callers have changed since it was verified; true for others. */
bool verify_edited(Module *m);

#endif
