/* The planner of dot, and its remarks. */
#include "select/plan.h"

#include "ir/op_attrs.h"
#include "support/remark.h"
#include "target/target.h"

enum { SM_WITHOUT_I4 = 90 };     /* the first target without 4-bit multipliers */

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
    const char *name = op_info[op->code].name;
    int64_t units = plan->units * plan->depth;
    REMARK(m, op, DotChosen, R(name), R(via_info[plan->via].spelling),
           R(plan->mma ? units * plan->mma->parts : units), R(plan->mma ? "warp" : "thread"),
           R(operands_text(m, plan)));
    if (plan->no_mma.why)
        REMARK(m, op, TensorCoresMissed, R(name), R(plan->no_mma.why), R(plan->no_mma.fits));
    if (plan->no_fma.why)
        REMARK(m, op, DotThroughShared, R(name), R(plan->scratch), R(plan->no_fma.why),
               R(plan->no_fma.fits));
}

/* A change of the text that has tensor cores compute the dot. */
static const char *fallback_cure(Module *m, const Op *op, const DotReason *no_mma)
{
    if (no_mma->operand >= 0)
        return no_mma->fits;
    if (dot_numbers(op).is_float)
        return "tensor cores multiply f16, bf16 and tf32 and sum in f32: cast the operands";
    return arena_printf(&m->scratch, "tensor cores multiply %si8 and u8 and sum in i32: cast the "
                        "operands", m->target_sm < SM_WITHOUT_I4 ? "i4, u4, " : "");
}

static void warn_of_fma(Module *m, const Op *op, const DotPlan *plan)
{
    const DotReason *no_mma = &plan->no_mma;
    Loc at = no_mma->operand < 0 ? op->loc : op->operands[no_mma->operand]->loc;
    diag_warning(m->diag, WARNING_DOT_FALLBACK, op->loc,
                 "dot runs on CUDA cores, not on tensor cores: %s", no_mma->why);
    diag_note(m->diag, at, "%s; {via = %s} keeps it on CUDA cores without a warning",
              fallback_cure(m, op, no_mma), via_info[plan->via].spelling);
}

static void warn_of_emulation(Module *m, const Op *op, const DotPlan *plan)
{
    diag_warning(m->diag, WARNING_DOT_FALLBACK, op->loc,
                 "dot of %s and %s is emulated on %s: it has no 4-bit multipliers, and each dot "
                 "unpacks its operands to bytes", dtype_name(plan->mma->types[MMA_A]),
                 dtype_name(plan->mma->types[MMA_B]), target_name_of(m->target_sm));
    diag_note(m->diag, op->loc, "cast operands that several dots use to i8 or u8 once; {via = %s} "
              "keeps it without a warning", via_info[plan->via].spelling);
}

/* Warns of a dot that is slower than its text looks. Tensor cores have nothing of 64 bits, so
 * a dot of such types is no surprise. */
static void warn_of_fallback(Module *m, const Op *op, const Plan *p)
{
    const DotPlan *plan = &p->dot;
    if (plan->mma && plan->mma->parts > 1 && !mma_is_converted(plan->mma))
        warn_of_emulation(m, op, plan);
    if (!plan->mma && dot_numbers(op).bytes < 8 && dot_suits_tensor_cores(op))
        warn_of_fma(m, op, plan);
}

static const char *reason_for_fma(Module *m, const Op *op, const Plan *plan)
{
    (void)m;
    (void)op;
    return plan->dot.no_fma.why ? plan->dot.no_fma.why : plan->dot.no_mma.why;
}

const Planner planner_dot = {
    .family = PLAN_dot, .plan = plan_dot, .write = write_dot, .remark = remark_dot,
    .warn = warn_of_fallback, .reason = reason_for_fma, .scratch = dot_scratch,
};
