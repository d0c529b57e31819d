#include "select/order.h"

#include "ir/loop.h"

/* Returns the op of `region`, or of none around it, in which `op` lies. */
static const Op *op_within(const Op *op, const Region *region)
{
    while (op && op->parent != region)
        op = op->parent->parent;
    return op;
}

static bool is_in_loop(const Region *region)
{
    const Op *around = region->parent;
    while (around && !op_is_loop(around))
        around = around->parent->parent;
    return around;
}

static bool has_threads_of(const Region *all, const Region *some)
{
    ThreadRange a = region_threads(all), s = region_threads(some);
    return a.begin <= s.begin && s.begin + s.count <= a.begin + a.count;
}

static bool stands_behind(const Op *op, const Op *first)
{
    while (op && op != first)
        op = op->prev;
    return op;
}

bool op_always_follows(const Op *op, const Op *first)
{
    const Region *both = first->parent;
    while (!op_within(op, both))
        both = both->parent->parent;
    const Op *later = op_within(op, both), *earlier = op_within(first, both);
    return later != earlier && stands_behind(later, earlier) && !is_in_loop(both) &&
           has_threads_of(first->parent, op->parent);
}
