/* Instruction selection: writes the plan of each op (select/plan.h) as attributes that a
 * reader can see and that code generation follows. Plans that the text names already are
 * proved and kept. Meanings do not change.
 *
 *   %a = load_shared %s[0, 0] : f16[16, 16] @ A
 *     =>  %a = load_shared %s[0, 0] {via = ldmatrix.x4, width = 16} : f16[16, 16] @ A
 *
 * Remarks say what each access costs, and what keeps it from costing less. */
#include "passes/pass.h"

#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "passes/report.h"
#include "select/plan.h"

typedef struct Select {
    Module *m;
    bool changed, failed;
} Select;

/* ---- the pass --------------------------------------------------------------- */

static void count_choice(Module *m, const Plan *plan)
{
    static const Stat stats[PLAN_FAMILY_COUNT] = {
        [PLAN_access] = STAT_select_instructions_accesses,
        [PLAN_copy] = STAT_select_instructions_copies,
        [PLAN_dot] = STAT_select_instructions_dots,
        [PLAN_cast] = STAT_select_instructions_casts,
    };
    PlanFamily family = plan->planner->family;
    stat_add(m, stats[family], 1);
    if (family == PLAN_access)
        stat_add(m, STAT_select_instructions_matrices, via_info[plan->access.via].matrices > 0);
}

/* Plans an op, reports the plan, and writes it where the text has none. */
static bool select_planned(Select *s, Op *op)
{
    Plan plan;
    if (!select_plan(s->m, op, s->m->target_sm, &plan))
        return false;
    if (remarks_wanted(s->m->remarks))
        plan_remark(s->m, op, &plan);
    if (!plan.planner->write || plan_is_written(op))
        return true;
    plan_warn(s->m, op, &plan);
    plan_write(s->m, op, &plan);
    if (!plan_is_written(op))
        return true;
    count_choice(s->m, &plan);
    s->changed = true;
    return true;
}

/* Returns true when there is something to write, or to report. */
static bool wants_plan(const Select *s, const Op *op)
{
    const Planner *planner = planner_of(op->code);
    return planner && (planner->write || (planner->remark && remarks_wanted(s->m->remarks)));
}

static bool select_op(Op *op, void *data)
{
    Select *s = data;
    diag_check_time(s->m->diag, op->loc);
    ArenaMark mark = arena_mark(&s->m->scratch);
    if (wants_plan(s, op))
        s->failed |= !select_planned(s, op);
    arena_reset(&s->m->scratch, mark);
    return true;
}

/* Code generation adds this barrier. */
static void remark_end(Program *p)
{
    if (program_meets_at_end(p))
        REMARK_AT(p->module->remarks, p->module->diag, p->loc, ClusterEndWaits,
                  R(program_blocks(p)));
}

PassResult pass_select_instructions(Program *p)
{
    Select s = {.m = p->module};
    remark_end(p);
    region_walk(p->body, select_op, &s);
    return s.failed ? PASS_FAILED : s.changed ? PASS_CHANGED : PASS_UNCHANGED;
}
