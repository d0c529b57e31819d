/* The planner of atomic ops: words of the tile are words of memory, of which pairs of
 * 16-bit elements must be proved to be some. */
#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "select/plan.h"

enum { WORD_BYTES = 4 };

/* Returns the bytes of a word from each thread, for the replicas of its elements. */
static int64_t scratch_of(Module *m, const Op *op)
{
    (void)m;
    const Layout *l = op->operands[0]->type->layout;
    return op->result_count && layout_replicas(l) > 1 ? WORD_BYTES * l->threads : 0;
}

static bool plan_atomic(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    const Type *t = op_tile_type(op);
    MemoryTile tile = op_memory_tile(op);
    int64_t unit = 8 * WORD_BYTES / dtype_bits(t->dtype);
    plan->scratch = scratch_of(m, op);
    plan->atomic = (Access){.via = VIA_units, .unit = unit, .bytes = WORD_BYTES,
                            .checked = access_checked_dims(op, &tile)};
    if (unit == 1)
        return true;
    if (t->layout->slots % unit)
        return diag_error(m->diag, op->loc, "%s of %s goes by pairs, a thread holds %lld of "
                          "these elements", op_info[op->code].name, dtype_name(t->dtype),
                          (long long)t->layout->slots);
    const char *why = access_reason(m, op, unit, WORD_BYTES);
    return !why || diag_error(m->diag, op->loc, "%s of %s goes by pairs of %d bytes: %s",
                              op_info[op->code].name, dtype_name(t->dtype), WORD_BYTES, why);
}

const Planner planner_atomic = {
    .family = PLAN_atomic, .plan = plan_atomic, .scratch = scratch_of,
};
