/* The planner of dot, and its remarks. */
#include "select/plan.h"

#include "ir/op_attrs.h"
#include "support/remark.h"

static bool plan_dot(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    bool ok = dot_follow(m, op, sm, &plan->dot);
    plan->scratch = plan->dot.scratch;
    return ok;
}

static void write_dot(Module *m, Op *op, const Plan *plan)
{
    op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = plan->dot.via});
}

/* Describes the conversion of words of a and b before they are multiplied. */
static const char *operands_text(Module *m, const DotPlan *plan)
{
    if (!plan->mma || plan->mma->parts == 1)
        return "";
    if (!mma_is_converted(plan->mma))
        return ", of unpacked operands";
    return arena_printf(&m->arena, ", of operands converted to f16: mma of %s is slower here",
                        dtype_name(plan->mma->types[MMA_A]));
}

static void remark_dot(Module *m, const Op *op, const Plan *p)
{
    const DotPlan *plan = &p->dot;
    int64_t units = plan->units * plan->depth;
    REMARK(m, op, PASSED, "dot goes by %s, %lld a %s%s", via_info[plan->via].spelling,
           (long long)(plan->mma ? units * plan->mma->parts : units),
           plan->mma ? "warp" : "thread", operands_text(m, plan));
    if (plan->no_mma.why)
        REMARK(m, op, MISSED, "dot does not go by mma: %s; %s", plan->no_mma.why,
               plan->no_mma.fits);
    if (plan->no_fma.why)
        REMARK(m, op, MISSED, "dot goes through %lld bytes of shared memory: %s; %s",
               (long long)plan->scratch, plan->no_fma.why, plan->no_fma.fits);
}

/* Warns of a dot that tensor cores would compute in other layouts. */
static void warn_of_fma(Module *m, const Op *op, const Plan *p)
{
    const DotReason *no_mma = &p->dot.no_mma;
    if (p->dot.mma || no_mma->operand < 0 || !dot_suits_tensor_cores(m, op, m->target_sm))
        return;
    diag_warning(m->diag, op->loc, "dot runs on CUDA cores, not on tensor cores: %s",
                 no_mma->why);
    diag_note(m->diag, op->operands[no_mma->operand]->loc, "%s; {via = %s} keeps it on CUDA "
              "cores without a warning", no_mma->fits, via_info[p->dot.via].spelling);
}

static const char *reason_for_fma(Module *m, const Op *op, const Plan *plan)
{
    (void)m;
    (void)op;
    return plan->dot.no_fma.why ? plan->dot.no_fma.why : plan->dot.no_mma.why;
}

const Planner planner_dot = {
    .family = PLAN_dot, .plan = plan_dot, .write = write_dot, .remark = remark_dot,
    .warn = warn_of_fma, .reason = reason_for_fma, .scratch = dot_scratch,
};
