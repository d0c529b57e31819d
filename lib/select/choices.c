/* Proofs of written choices, by the planners of their ops. */
#include "select/choices.h"

#include "select/plan.h"

static bool is_proved(Module *m, const Op *op)
{
    const Planner *planner = planner_of(op->code);
    return !planner || !planner->holds || !plan_is_written(op) || planner->holds(m, op);
}

static bool op_holds(Op *op, void *data)
{
    return is_proved(data, op);
}

bool choices_hold(Program *p)
{
    return region_walk(p->body, op_holds, p->module);
}

static bool drop(Op *op, void *data)
{
    if (!is_proved(data, op))
        plan_drop(op);
    return true;
}

void choices_drop(Program *p)
{
    region_walk(p->body, drop, p->module);
}
