/* Uses of values: as operands, in expressions of attributes, in the extents and strides of a
 * result. Nothing lists them: each question walks. */
#ifndef TILUS_IR_USES_H
#define TILUS_IR_USES_H

#include "ir/ir.h"

/* Calls visit(value, data) for each use by `op`, not by ops in its regions; stops when it
 * returns false, and returns false then. */
bool op_visit_uses(const Op *op, bool (*visit)(Value *v, void *data), void *data);

/* Returns true when `op` itself uses `v`. */
bool op_uses(const Op *op, const Value *v);

/* Returns true when `op` lies in `around`, at any depth, or is it. */
bool op_is_within(const Op *op, const Op *around);

/* Returns true when `op`, or an op in its regions, defines `v`. */
bool op_defines(const Op *op, const Value *v);

/* The first op of the program outside of `op` that uses a value which `op` defines, with that
 * value in `*value`; or NULL. `results` or not: those of `op` itself count. */
Op *op_find_outer_user(const Op *op, bool results, Value **value);

#endif
