/* The planner of print: register tensors go through shared memory. */
#include "ir/print_op.h"
#include "select/plan.h"

static int64_t scratch_of(Module *m, const Op *op)
{
    (void)m;
    return print_scratch(op);
}

static bool plan_print(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    plan->scratch = scratch_of(m, op);
    return true;
}

const Planner planner_print = {
    .family = PLAN_print, .plan = plan_print, .scratch = scratch_of,
};
