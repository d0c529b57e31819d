/* Queries of loops, and taking a carried value away. */
#include "ir/loop.h"

int64_t for_stages(const Op *op)
{
    const Expr *stages = op_expr(op, ATTR_PIPELINED);
    return stages ? stages->constant : 0;
}

int64_t for_iterations(const Op *op)
{
    const Expr *lower = op_expr(op, ATTR_LOWER), *upper = op_expr(op, ATTR_UPPER);
    const Expr *step = op_expr(op, ATTR_STEP);
    if (!expr_is_constant(lower) || !expr_is_constant(upper) ||
        (step && !expr_is_constant(step)))
        return -1;
    if (upper->constant <= lower->constant)
        return 0;
    uint64_t last = (uint64_t)upper->constant - (uint64_t)lower->constant - 1;
    last /= step ? (uint64_t)step->constant : 1;
    return last < INT64_MAX ? (int64_t)last + 1 : INT64_MAX;
}

bool for_unrolls_all(const Op *op)
{
    const Expr *copies = op_expr(op, ATTR_UNROLL);
    int64_t iterations = for_iterations(op);
    return op_attr(op, ATTR_UNROLL) && iterations >= 0 &&
           (!copies || (copies->constant > 1 && iterations <= copies->constant));
}

Value *for_index(const Op *op)
{
    return op->regions[0]->args[0];
}

Value *for_carried(const Op *op, unsigned i)
{
    return op->regions[0]->args[1 + i];
}

bool op_is_loop(const Op *op)
{
    return op->code == OP_for || op->code == OP_while;
}

/* Arguments of a loop's body before the carried values. */
static unsigned index_count(const Op *op)
{
    return op->code == OP_for ? 1 : 0;
}

Value *loop_carried(const Op *op, unsigned i)
{
    return op->regions[0]->args[index_count(op) + i];
}

int loop_carried_number(const Value *argument)
{
    return (int)argument->index - (int)index_count(argument->region->parent);
}

static void drop_value(Value **values, unsigned *count, unsigned i)
{
    for (unsigned j = i; j + 1 < *count; j++) {
        values[j] = values[j + 1];
        values[j]->index = j;
    }
    --*count;
}

static void drop_operand(Op *op, unsigned i)
{
    for (unsigned j = i; j + 1 < op->operand_count; j++)
        op->operands[j] = op->operands[j + 1];
    op->operand_count--;
}

void op_drop_carried(Op *op, unsigned i)
{
    drop_value(op->results, &op->result_count, i);
    if (op_is_loop(op)) {
        drop_operand(op, i);
        drop_value(op->regions[0]->args, &op->regions[0]->arg_count, index_count(op) + i);
    }
    for (unsigned r = 0; r < op->region_count; r++)
        drop_operand(region_yield(op->regions[r]), i);
}
