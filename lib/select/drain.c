/* Plans of for, while, if and thread_group: where they wait for products. */
#include "select/drain.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "select/plan.h"
#include "support/remark.h"

/* Finds the newest product with a in registers that may be in flight behind `op`, in its
 * region; NULL: none. Ops with regions leave none in flight, and none is where a region begins. */
static const Op *find_in_flight(const Op *op)
{
    int64_t most = INT64_MAX;   /* of the groups up to here, the newest that may be in flight */
    bool in_flight = true;      /* the group of the next product found; an open one is */
    for (; op && !op->region_count; op = op->prev) {
        if (op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT) && op_wait_pending(op) < most)
            most = op_wait_pending(op);
        if (op_completion(op) != COMPLETION_PRODUCT)
            continue;
        if (op_commits_product(op)) {
            in_flight = most > 0;
            most -= in_flight;
        }
        if (in_flight && op->operands[0]->type->kind == TYPE_REG)
            return op;
    }
    return NULL;
}

static DrainPlan needed_drain(const Op *op)
{
    DrainPlan plan = {.product = find_in_flight(op->prev)};
    plan.before = plan.product;
    for (unsigned i = 0; i < op->region_count; i++) {
        const Op *product = find_in_flight(op->regions[i]->last);
        plan.end |= product != NULL;
        plan.product = product ? product : plan.product;
    }
    return plan;
}

static Drain drain_of(const DrainPlan *plan)
{
    return plan->before && plan->end ? DRAIN_BOTH
           : plan->before            ? DRAIN_BEFORE
           : plan->end               ? DRAIN_END
                                     : DRAIN_NONE;
}

static const char *drain_text(Drain drain)
{
    return attr_info[ATTR_DRAIN].words[drain];
}

static bool refuse_drain(Module *m, const Op *op, const DrainPlan *plan)
{
    Drain needed = drain_of(plan);
    const char *name = op_info[op->code].name, *written = drain_text(op_drain(op));
    if (needed == DRAIN_NONE)
        return diag_error(m->diag, op->loc, "drain(%s) of %s does not fit: no product with a in "
                          "registers is in flight there", written, name);
    diag_error(m->diag, op->loc, "drain(%s) of %s does not fit: it needs drain(%s)", written, name,
               drain_text(needed));
    return diag_note(m->diag, plan->product->loc, "this product may be in flight there, and has a "
                     "in registers");
}

static bool plan_drain(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    plan->drain = needed_drain(op);
    return op_drain(op) == DRAIN_NONE || op_drain(op) == drain_of(&plan->drain) ||
           refuse_drain(m, op, &plan->drain);
}

static void write_drain(Module *m, Op *op, const Plan *plan)
{
    Drain drain = drain_of(&plan->drain);
    if (drain != DRAIN_NONE)
        op_set_attr(m, op, (Attr){.kind = ATTR_DRAIN, .word = drain});
}

static void remark_drain(Module *m, const Op *op, const Plan *plan)
{
    const char *name = op_info[op->code].name;
    if (plan->drain.before)
        REMARK(m, op, DrainBefore, R(name));
    if (plan->drain.end && op_is_loop(op))
        REMARK(m, op, DrainEachIteration, R(name));
    else if (plan->drain.end)
        REMARK(m, op, DrainAtEnd, R(name));
}

static bool drain_holds(Module *m, const Op *op)
{
    (void)m;
    DrainPlan plan = needed_drain(op);
    return op_drain(op) == drain_of(&plan);
}

const Planner planner_drain = {
    .family = PLAN_drain, .plan = plan_drain, .write = write_drain, .remark = remark_drain,
    .holds = drain_holds,
};
