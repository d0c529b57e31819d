/* Building IR: the one way in which the parser and passes make ops. */
#ifndef TILUS_IR_BUILDER_H
#define TILUS_IR_BUILDER_H

#include "ir/ir.h"

Program *build_program(Module *m, const char *name, Loc loc);
Value *build_argument(Program *p, const char *name, Loc loc, const Type *type);

/* A new empty region owned by `parent` (NULL: a program's body). */
Region *build_region(Program *p, Op *parent);
Value *build_region_argument(Region *r, const char *name, Loc loc, const Type *type);

/* A detached op with copies of the arrays; results are added afterwards. */
Op *build_op(Module *m, OpCode code, Loc loc, Value *const *operands, unsigned operand_count,
             const Attr *attrs, unsigned attr_count);
Value *build_result(Module *m, Op *op, const char *name, Loc loc, const Type *type);
void build_op_region(Module *m, Op *op, Region *r);

#endif
