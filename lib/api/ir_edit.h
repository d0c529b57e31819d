/* Parts that building and changing share. */
#ifndef TILUS_API_IR_EDIT_H
#define TILUS_API_IR_EDIT_H

#include "api/ir_handles.h"

/* Returns true for an op of a program; false after an error for one in an erased region. */
bool ir_check_live(Module *m, const Op *op);

/* Makes an attribute of an op called `code`; false after an error at `loc`. */
bool ir_take_attr(Module *m, OpCode code, Loc loc, const tilus_attr *a, Attr *out);

/* Checks that an operand is a live value of `p`. */
bool ir_check_value(Program *p, Loc loc, const Value *v);

/* A place for an op: in `r`, before `before`, or at the end when NULL. */
typedef struct Place {
    Region *r;
    Op *before;
} Place;

/* Checks that ops may stand there, and that regions do not nest too deep when the op has
 * `levels` of them; at the end of a region means before its yield. */
bool ir_check_place(Loc loc, Place *place, unsigned levels);

/* The levels of regions in an op, 0 for none. */
unsigned ir_levels(Op *op);

#endif
