/* An op as if its operands and results had other types: what would be chosen then. The
 * program is not touched. */
#ifndef TILUS_SELECT_TRIAL_H
#define TILUS_SELECT_TRIAL_H

#include "ir/ir.h"

enum { TRIAL_VALUES = 8 };

typedef struct OpTrial {
    Op op;                          /* a copy, in the place of the op that is tried */
    Value values[TRIAL_VALUES];     /* its operands, then its results */
    Value *pointers[TRIAL_VALUES];
} OpTrial;

/* Begins with the types that `op` has; it has TRIAL_VALUES operands and results at most. */
void op_trial_open(OpTrial *t, const Op *op);

/* Gives `type` to every operand and result that is `value` in the program. */
void op_trial_set_type(OpTrial *t, const Op *op, const Value *value, const Type *type);

#endif
