/* The table of planners, and what all families have in common. */
#include "select/plan.h"

static const Planner *const planners[OP_COUNT] = {
#define PLANNED(op, family) [OP_##op] = &planner_##family,
#include "select/planners.def"
};

enum {
    ROWS = 0
#define PLANNED(op, family) + 1
#define PLAIN(op) + 1
#include "select/planners.def"
};

_Static_assert((int)ROWS == (int)OP_COUNT, "planners.def lacks a row of ops.def");

const Planner *planner_of(OpCode code)
{
    return planners[code];
}

bool select_plan(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    const Planner *planner = planner_of(op->code);
    *plan = (Plan){.planner = planner};
    return !planner || planner->plan(m, op, sm, plan);
}

void plan_write(Module *m, Op *op, const Plan *plan)
{
    if (plan->planner->write)
        plan->planner->write(m, op, plan);
}

const char *plan_reason(Module *m, const Op *op, const Plan *plan)
{
    return plan->planner->reason ? plan->planner->reason(m, op, plan) : NULL;
}

void plan_remark(Module *m, const Op *op, const Plan *plan)
{
    if (plan->planner->remark)
        plan->planner->remark(m, op, plan);
}

void plan_warn(Module *m, const Op *op, const Plan *plan)
{
    if (plan->planner->warn)
        plan->planner->warn(m, op, plan);
}

int64_t plan_operations(const Op *op, const Plan *plan)
{
    const Planner *planner = plan->planner;
    return planner && planner->operations ? planner->operations(op, plan) : 0;
}

int64_t plan_scratch(Module *m, const Op *op)
{
    const Planner *planner = planner_of(op->code);
    return planner && planner->scratch ? planner->scratch(m, op) : 0;
}
