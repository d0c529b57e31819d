/* Loops: their index, carried values and stages. */
#ifndef TILUS_IR_LOOP_H
#define TILUS_IR_LOOP_H

#include "ir/ir.h"

/* For `for`: the stages of attribute PIPELINED, from 1 to LIMIT_STAGES; 0 without
 * it. */
int64_t for_stages(const Op *op);

/* For `for`: the iterations of a loop whose bounds and step are constants, at most
 * INT64_MAX; -1 for others. */
int64_t for_iterations(const Op *op);
/* Returns true for a `for` that is marked to become copies of its body, one for each
 * iteration, in which the index is a constant. */
bool for_unrolls_all(const Op *op);

/* For `for`: its index value, and the i-th carried value inside the body.
 * A missing STEP attribute means 1. */
Value *for_index(const Op *op);
Value *for_carried(const Op *op, unsigned i);
/* Returns true for a `for` or `while`; the i-th carried value inside its body. */
bool op_is_loop(const Op *op);
Value *loop_carried(const Op *op, unsigned i);
/* Which carried value of the loop around it an argument of its body is; -1: the index. */
int loop_carried_number(const Value *argument);

/* Takes the i-th carried value out of a `for`, `while` or `if`: its result, initial
 * value, region argument and yielded values. Nothing may use them any more. */
void op_drop_carried(Op *op, unsigned i);

#endif
