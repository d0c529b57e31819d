/* Checks whether a loop whose copies an mbarrier counts can be split into two roles, a producer
 * warp and the consumers: the mbarrier's ops, and which ops of the program each role needs. */
#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "passes/pipeline_refuse.h"
#include "passes/pipeline_rewrite.h"

static bool is_mbarrier_op(const Op *op, const Value *mbarrier)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i] == mbarrier)
            return true;
    return false;
}

/* ---- the mbarrier ------------------------------------------------------------------ */

/* Finds the one mbarrier that counts all copies of the loop. */
static bool find_mbarrier(Planner *p)
{
    PipelinePlan *plan = p->plan;
    const Expr *element = NULL;
    for (uint32_t i = 0; i < plan->d.op_count; i++) {
        Op *op = plan->d.ops[i];
        OpAccess written;
        if (!planner_is_copy(p, op) || !op_access_written(op, &written))
            continue;
        const Expr *e = op_expr(op, ATTR_ELEMENT);
        if (!expr_is_constant(e) || (plan->mbarrier && (plan->mbarrier != written.counter ||
                                                        element != e)))
            return CURE(p, "let one mbarrier count all copies of an iteration"),
                   REFUSE(p, op, "%s is not counted by the mbarrier of the copies before it",
                          planner_op_text(p, op));
        plan->mbarrier = written.counter;
        element = e;
    }
    return true;
}

/* Takes the arrival and the wait of the loop's body, one each. */
static bool find_ends(Planner *p)
{
    PipelinePlan *plan = p->plan;
    for (uint32_t i = 0; i < plan->d.op_count; i++) {
        Op *op = plan->d.ops[i];
        bool arrives = op_sync(op) == SYNC_ARRIVE, waits = op_syncs(op, SYNC_WAIT,
                                                                    COMPLETION_MBARRIER);
        if (!arrives && !waits)
            continue;
        Op **found = arrives ? &plan->arrive : &plan->wait;
        if (*found || !is_mbarrier_op(op, plan->mbarrier))
            return REFUSE(p, op, "%s orders more than its copies", planner_op_text(p, op));
        *found = op;
    }
    if (plan->arrive && plan->wait)
        return true;
    return CURE(p, "arrive and wait at that mbarrier behind the copies"),
           REFUSE(p, p->loop, "no %s of %s stands in its body",
                  plan->arrive ? "mbarrier_wait" : "mbarrier_arrive",
                  planner_value_text(p, plan->mbarrier));
}

/* Checks that the wait means the phase of its own iteration. */
static bool check_phase(Planner *p)
{
    const Op *wait = p->plan->wait;
    Rewrite r = rewrite_of((Op *)p->loop);
    const Expr *index = expr_value(&p->m->exprs, for_index(p->loop));
    if (op_expr(wait, ATTR_STATE) == iteration_of(&r, index))
        return true;
    return CURE(p, "wait for the phase of the iteration's number: 0, 1, .."),
           REFUSE(p, wait, "%s is not known to wait for the phase of its iteration",
                  planner_op_text(p, wait));
}

static bool check_arrivals(Planner *p)
{
    const Op *allocation = p->plan->mbarrier->def;
    unsigned warps = p->loop->parent->program->warps;
    if (mbarrier_arrivals(allocation) == warps)
        return true;
    return REFUSE(p, allocation, "a phase of %s takes %lld arrivals, each iteration gives %u",
                  planner_value_text(p, p->plan->mbarrier),
                  (long long)mbarrier_arrivals(allocation), warps);
}

static bool check_mbarrier_use(Op *op, void *data)
{
    Planner *p = data;
    if (!is_mbarrier_op(op, p->plan->mbarrier) || op == p->plan->arrive || op == p->plan->wait ||
        (op->parent == p->loop->regions[0] && planner_is_copy(p, op)))
        return true;
    return CURE(p, "let an mbarrier of its own count the copies"),
           REFUSE(p, op, "%s uses %s, too", planner_op_text(p, op),
                  planner_value_text(p, p->plan->mbarrier));
}

/* ---- the program ------------------------------------------------------------------- */

static bool has_registers(const Op *op)
{
    bool found = false;
    for (unsigned i = 0; i < op->operand_count; i++)
        found |= op->operands[i]->type->kind == TYPE_REG;
    for (unsigned i = 0; i < op->result_count; i++)
        found |= op->results[i]->type->kind == TYPE_REG;
    return found;
}

static bool is_common(const Op *op)
{
    Effect effect = op_info[op->code].effect;
    SyncKind sync = op_sync(op);
    OpAccess read[ACCESSES_MAX];
    if (has_registers(op) || op->region_count)
        return false;
    if (effect == EFFECT_READS)
        return op_accesses(op, read) == 1 && read[0].tile.memory->type->kind == TYPE_GLOBAL;
    return effect == EFFECT_PURE || effect == EFFECT_ALLOC || op->code == OP_assert ||
           op->code == OP_assume || sync == SYNC_LAUNCH_WAIT;
}

/* Returns true when what `op` does must come before the loop's copies. */
static bool precedes_copies(const Op *op)
{
    OpAccess written;
    return op_sync(op) == SYNC_ACQUIRE || op_sync(op) == SYNC_GRID ||
           (op_access_written(op, &written) && written.tile.memory->type->kind == TYPE_GLOBAL);
}

typedef struct RoleCheck {
    Planner *p;
    const Op *user;
} RoleCheck;

/* Values of the program's body come from ops of both roles; Op.mark of others is 1. */
static bool check_value(Value *v, void *data)
{
    RoleCheck *c = data;
    if (!v->def || !v->def->mark || v->def->parent != c->p->loop->parent)
        return true;
    return REFUSE(c->p, c->user, "%s needs %s of %s, which the producer warp does not run",
                  planner_op_text(c->p, c->user), planner_value_text(c->p, v),
                  planner_op_text(c->p, v->def));
}

static bool check_exprs(RoleCheck *c, const Op *op)
{
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (a->expr && !expr_visit_values(a->expr, check_value, c))
            return false;
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            if (!expr_visit_values(a->exprs[j], check_value, c))
                return false;
    }
    return true;
}

/* Checks that `op`, which the producer runs, takes no values of the consumers. */
static bool check_values(Planner *p, const Op *op)
{
    RoleCheck c = {p, op};
    for (unsigned i = 0; op != p->loop && i < op->operand_count; i++)
        if (!check_value(op->operands[i], &c))
            return false;
    for (unsigned i = 0; op != p->loop && i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        for (unsigned d = 0; d < t->rank; d++)
            if (!expr_visit_values(t->extents[d], check_value, &c) ||
                (t->strides && !expr_visit_values(t->strides[d], check_value, &c)))
                return false;
    }
    return check_exprs(&c, op);
}

/* Marks the ops before the loop that the consumers alone run. */
static bool mark_before(Planner *p)
{
    for (Op *op = p->loop->parent->first; op != p->loop; op = op->next) {
        op->mark = !is_common(op);
        if (op->mark && precedes_copies(op))
            return REFUSE(p, op, "%s must come before the copies of the producer warp",
                          planner_op_text(p, op));
        if (!op->mark && !check_values(p, op))
            return false;
    }
    return check_values(p, p->loop);
}

bool plan_producer_values(Planner *p)
{
    for (uint32_t i = 0; i < p->plan->d.op_count; i++)
        if (p->plan->early[i] && !check_values(p, p->plan->d.ops[i]))
            return false;
    return true;
}

/* Checks for what a thread_group cannot hold, and what would have to be for all warps. */
static bool check_op(Op *op, void *data)
{
    Planner *p = data;
    bool exits = op_info[op->code].effect == EFFECT_EXITS && op->code != OP_assert &&
                 op->code != OP_assume;
    if (exits)
        return REFUSE(p, op, "%s ends the whole block, and the producer warp copies for it",
                      planner_op_text(p, op));
    if (op->code == OP_setmaxnreg)
        return REFUSE(p, op, "%s is for whole warpgroups, the producer is a warp",
                      planner_op_text(p, op));
    return true;
}

/* Returns true for an op that only the program's body may have. */
static bool is_for_all_warps(const Op *op)
{
    return op_sync(op) == SYNC_INIT || op_sync(op) == SYNC_LAUNCH_WAIT;
}

static bool check_after(Planner *p)
{
    for (Op *op = p->loop->next; op; op = op->next)
        if (is_for_all_warps(op))
            return CURE(p, "put it before the loop"),
                   REFUSE(p, op, "%s is for all warps, and stands behind the loop",
                          planner_op_text(p, op));
    return true;
}

static bool check_program(Planner *p)
{
    const Program *program = p->loop->parent->program;
    if (p->loop->parent != program->body)
        return REFUSE(p, p->loop->parent->parent, "a producer warp copies for a loop of the "
                      "program's own body, this one is inside of %s",
                      planner_op_text(p, p->loop->parent->parent));
    if (program->cluster_rank)
        return REFUSE(p, p->loop, "a producer warp copies for one block alone, those of @%s are in "
                      "clusters", program->name);
    if (program_threads(program) + 32 > LIMIT_THREADS)
        return REFUSE(p, p->loop, "a block of %u warps has no room for a producer warp",
                      program->warps);
    if (program->min_blocks * (program->warps + 1) > LIMIT_RESIDENT_WARPS)
        return REFUSE(p, p->loop, "%u blocks of %u warps on a multiprocessor leave no room for a "
                      "producer warp each", program->min_blocks, program->warps);
    return region_walk(program->body, check_op, p) && mark_before(p) && check_after(p);
}

bool plan_roles(Planner *p)
{
    return find_mbarrier(p) && find_ends(p) && check_phase(p) && check_arrivals(p) &&
           region_walk(p->loop->parent->program->body, check_mbarrier_use, p) &&
           check_program(p);
}
