/* Reduction in strength: a slot of a ring and its round, `e mod c` and `e / c`, where e grows by one with each
 * iteration of a `for` and c is a constant but no power of two, are numbers that the loop carries. Dividing takes
 * some ten instructions, the step of both numbers four. */
#ifndef TILUS_CODEGEN_RECURRENCE_H
#define TILUS_CODEGEN_RECURRENCE_H

#include "codegen/internal.h"

typedef struct Recurrence Recurrence;

/* A `for` whose body is being lowered. */
struct OpenLoop {
    OpenLoop *outer;
    const Op *op;
    LLVMBasicBlockRef before, header;   /* the block in front of it, and the one of its phis */
    Recurrence *recurrences;
};

/* Makes `l` the innermost loop; ends it where the builder stands, after the body. */
void open_loop(Codegen *cg, OpenLoop *l);
void close_loop(Codegen *cg);

/* Returns the value of `e`, a division or its rest, as a number that an open loop carries, or NULL
 * where none can. */
LLVMValueRef carried_division(Codegen *cg, const Expr *e);

#endif
