/* Splits thread numbers into what butterflies, shared memory and the result's
 * own layout take care of. */
#include "ir/op_attrs.h"
#include "select/plan.h"

enum { WARP = 32 };

unsigned reduce_bytes(DType t)
{
    return dtype_bits(t) > 32 ? 8 : 4;
}

static bool is_power_of_two(int64_t v)
{
    return (v & (v - 1)) == 0;
}

static void digits_push(ThreadDigits *digits, int64_t weight, int64_t extent)
{
    if (extent == 1)
        return;
    digits->digit[digits->count++] = (ThreadDigit){weight, extent};
    digits->size *= extent;
}

/* Counts the threads of a digit that butterflies join: while it is a whole number of
 * pairs of lanes, lanes that differ in one bit differ in this digit alone. */
static int64_t butterfly_extent(int64_t weight, int64_t extent)
{
    int64_t joined = 1;
    if (is_power_of_two(weight))
        while (extent % (2 * joined) == 0 && weight * joined < WARP)
            joined *= 2;
    return joined;
}

ReducePlan reduce_plan(const Op *op)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    const Layout *l = from->layout;
    uint32_t dims = reduce_dims(op);
    ReducePlan plan = {.partials = {.size = 1}, .places = {.size = 1}};
    int64_t weight = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *d = &l->spatial[i];
        weight /= d->extent;
        if (d->mode < 0 || !(dims >> l->modes[d->mode].dim & 1)) {
            digits_push(&plan.places, weight, d->extent);
            continue;
        }
        int64_t joined = butterfly_extent(weight, d->extent);
        plan.lanes |= (uint32_t)(weight * (joined - 1));
        digits_push(&plan.partials, weight * joined, d->extent / joined);
    }
    if (plan.partials.size > 1)
        plan.scratch = to->layout->slots * plan.partials.size * plan.places.size *
                       reduce_bytes(to->dtype);
    return plan;
}

static bool plan_reduce(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)m;
    (void)sm;
    plan->reduce = reduce_plan(op);
    plan->scratch = plan->reduce.scratch;
    return true;
}

static int64_t reduce_scratch(Module *m, const Op *op)
{
    (void)m;
    return reduce_plan(op).scratch;
}

const Planner planner_reduce = {
    .family = PLAN_reduce, .plan = plan_reduce, .scratch = reduce_scratch,
};
