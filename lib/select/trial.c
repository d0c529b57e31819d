/* Copies of ops. */
#include "select/trial.h"

#include <assert.h>

static const Value *value_at(const Op *op, unsigned i)
{
    return i < op->operand_count ? op->operands[i] : op->results[i - op->operand_count];
}

void op_trial_open(OpTrial *t, const Op *op)
{
    unsigned count = op->operand_count + op->result_count;
    assert(count <= TRIAL_VALUES);
    t->op = *op;
    t->op.operands = t->pointers;
    t->op.results = t->pointers + op->operand_count;
    for (unsigned i = 0; i < count; i++) {
        t->values[i] = *value_at(op, i);
        t->pointers[i] = &t->values[i];
    }
}

void op_trial_set_type(OpTrial *t, const Op *op, const Value *value, const Type *type)
{
    for (unsigned i = 0; i < op->operand_count + op->result_count; i++)
        if (value_at(op, i) == value)
            t->values[i].type = type;
}
