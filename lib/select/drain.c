/* Plans of for, while, if and thread_group: where they wait for products. */
#include "select/drain.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "select/plan.h"
#include "support/remark.h"

/* Returns true for a product with a in registers. */
static bool reads_registers(const Op *op)
{
    return op_completion(op) == COMPLETION_PRODUCT && op->operands[0]->type->kind == TYPE_REG;
}

/* Returns true for an `if` that neither starts products nor waits for them, nor has control flow. */
static bool is_plain_if(const Op *op)
{
    for (unsigned i = 0; i < op->region_count; i++)
        for (const Op *in = op->regions[i]->first; in; in = in->next)
            if (in->region_count || op_completion(in) == COMPLETION_PRODUCT ||
                op_syncs(in, SYNC_WAIT, COMPLETION_PRODUCT))
                return false;
    return op->code == OP_if;
}

static bool keeps_in_flight(const Op *op);

/* Finds the newest product with a in registers that may be in flight after `op`, in its
 * region; NULL: none. None is where a region begins, except a loop's next iteration. */
static const Op *find_in_flight(const Op *op)
{
    int64_t most = INT64_MAX;   /* of the groups up to here, the newest that may be in flight */
    bool in_flight = true;      /* the group of the next product found; an open one is */
    while (op) {
        if (op->region_count && !is_plain_if(op)) {
            op = keeps_in_flight(op) ? op->regions[0]->last : NULL;
            continue;
        }
        if (op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT) && op_wait_pending(op) < most)
            most = op_wait_pending(op);
        if (op_commits_product(op)) {
            in_flight = most > 0;
            most -= in_flight;
        }
        if (in_flight && reads_registers(op))
            return op;
        op = op->prev;
    }
    return NULL;
}

/* The op that computes the registers of a; NULL where another op may have made them. */
static const Op *maker_of(const Op *product)
{
    const Op *op = product->operands[0]->def;
    while (op && (op->code == OP_view || op->code == OP_slice || op->code == OP_reshape ||
                  op->code == OP_permute))
        op = op->operands[0]->def;
    bool is_moved = !op || op->region_count || op->code == OP_concat || op->code == OP_interleave ||
                    op->code == OP_convert_layout || op->code == OP_dot_wait;
    return is_moved ? NULL : op->parent == product->parent ? op : product;
}

/* Walks from `op` up to `end`; `newer`, the groups after a product's own, goes up by those
 * made on the way. Returns true when a wait ends the product's. */
static bool ends_between(const Op *op, const Op *end, int64_t *newer)
{
    for (; op != end; op = op->next) {
        if (*newer >= 0 && op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT) &&
            op_wait_pending(op) <= *newer)
            return true;
        *newer += op_commits_product(op);
    }
    return false;
}

/* Returns true when an `if` comes before the iteration's first product, while a product of the
 * iteration before may be in flight, `newer` groups after which were made: ptxas follows its
 * registers over a branch only after a product, and else serializes all of them (C7515). */
static bool meets_if(const Op *product, int64_t newer)
{
    const Op *op = product->parent->first;
    for (; op_completion(op) != COMPLETION_PRODUCT && !op->region_count; op = op->next)
        if (op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT) && op_wait_pending(op) <= newer)
            return false;
    return op->region_count;
}

/* Returns true when `product`, in a loop, ends before the next iteration writes its registers:
 * in its own iteration, or by a wait before the op that computes them. */
static bool ends_before_writes(const Op *product)
{
    const Op *maker = maker_of(product);
    int64_t newer = -1;         /* its own group is open until the first commit */
    return ends_between(product, NULL, &newer) ||
           (maker && newer >= 0 && !meets_if(product, newer) &&
            ends_between(product->parent->first, maker, &newer));
}

/* Returns true for a loop whose products may be in flight from one iteration to the next. */
static bool keeps_in_flight(const Op *op)
{
    if (!op_is_loop(op))
        return false;
    for (const Op *in = op->regions[0]->first; in; in = in->next)
        if (in->region_count ? !is_plain_if(in) : reads_registers(in) && !ends_before_writes(in))
            return false;
    return true;
}

static DrainPlan needed_drain(const Op *op)
{
    DrainPlan plan = {0};
    if (is_plain_if(op))
        return plan;
    plan.product = find_in_flight(op->prev);
    plan.before = plan.product;
    for (unsigned i = 0; i < op->region_count && !keeps_in_flight(op); i++) {
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
