/* The planner of copy_async, and its remarks. */
#include "ir/tile.h"
#include "select/checks.h"
#include "select/plan.h"
#include "select/traffic.h"

#include "support/remark.h"

static bool plan_copy(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    return copy_follow(m, op, &plan->copy);
}

static void write_copy(Module *m, Op *op, const Plan *plan)
{
    copy_write(m, op, &plan->copy);
}

/* ---- remarks ----------------------------------------------------------------- */

static const char *copy_instruction(const CopyPlan *plan)
{
    return plan->bytes == 16                ? "cp.async.cg"
           : plan->bytes >= CP_ASYNC_LEAST  ? "cp.async.ca"
                                            : "registers";
}

/* "16 bytes a lane by cp.async.cg" */
static const char *copy_moves(Module *m, const Op *op, const CopyPlan *plan)
{
    unsigned bits = dtype_bits(op->operands[0]->type->dtype);
    unsigned count = plan->bytes ? plan->bytes : bits;
    return arena_printf(&m->arena, "%u %s%s a lane by %s", count,
                        plan->bytes ? "byte" : "bit", count == 1 ? "" : "s",
                        copy_instruction(plan));
}

/* Bytes of the next wider chunks. */
static unsigned wider(const CopyPlan *plan)
{
    return plan->bytes ? 2 * plan->bytes : 1;
}

static const char *reason_for_chunks(Module *m, const Op *op, const Plan *plan)
{
    return plan->copy.bytes == 16 ? NULL : copy_reason(m, op, wider(&plan->copy));
}

static void remark_width(Module *m, const Op *op, const Plan *plan)
{
    unsigned bytes = wider(&plan->copy);
    const char *why = plan_reason(m, op, plan);
    if (why)
        REMARK(m, op, CopyNarrow, R(op_info[op->code].name), R(copy_moves(m, op, &plan->copy)),
               R(bytes), R(why), R(plan->copy.bytes));
}

static void remark_copy(Module *m, const Op *op, const Plan *p)
{
    const CopyPlan *plan = &p->copy;
    unsigned least, sectors = copy_sectors(m, op, plan, &least);
    unsigned ways = copy_conflict_ways(m, op, plan);
    const char *name = op_info[op->code].name;
    REMARK(m, op, CopyChosen, R(name), R(copy_moves(m, op, plan)), R(plan->iterations),
           R(sectors), R(conflicts_text(m, ways)), R(plan->bytes), R(copy_instruction(plan)),
           R(least), R(ways));
    if (ways > 1)
        REMARK(m, op, BankConflicts, R(name), R(ways));
    if (sectors > least)
        REMARK(m, op, SectorsWasted, R(name), R(sectors), R(least));
    MemoryTile source = op_source_tile(op);
    remark_checked(m, op, &source, plan->checked);
    remark_hints(m, op, plan->bytes);
    remark_width(m, op, p);
}

/* Warns of a copy in a loop that passes through registers: each iteration waits for its loads. */
static void warn_of_registers(Module *m, const Op *op, const Plan *plan)
{
    bool written = op_attr(op, ATTR_WIDTH) || op_attr(op, ATTR_VIA);
    if (written || plan->copy.bytes >= CP_ASYNC_LEAST || !loop_around(op))
        return;
    diag_warning(m->diag, WARNING_PIPELINE, op->loc, "copy_async goes by registers, so that each "
                 "iteration waits for its loads, not by cp.async, which takes %d bytes: %s",
                 CP_ASYNC_LEAST, copy_reason(m, op, CP_ASYNC_LEAST));
    diag_note(m->diag, op->operands[0]->loc, "{align = 16} of the pointer and {divisible = N} of "
              "the extents would prove wider chunks");
}

static bool copy_holds(Module *m, const Op *op)
{
    const Attr *width = op_attr(op, ATTR_WIDTH);
    return !(select_needed_checks(op) & ~select_read_checked(op)) &&
           (!width || width->integer <= copy_plan(m, op).bytes);
}

const Planner planner_copy = {
    .family = PLAN_copy, .plan = plan_copy, .write = write_copy, .remark = remark_copy,
    .warn = warn_of_registers, .reason = reason_for_chunks, .holds = copy_holds,
};
