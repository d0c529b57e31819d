/* Visiting the cast plans of a module. */
#include "select/cast_plans.h"

#include "select/plan.h"

typedef struct Visit {
    Module *m;
    unsigned sm;
    TakeCastPlan *take;
    void *data;
    bool failed;
    CastQuery *seen;            /* as often as a module may have them */
    uint32_t count, capacity;
} Visit;

static bool is_same_query(const CastQuery *a, const CastQuery *b)
{
    return a->from == b->from && a->to == b->to && a->elements == b->elements &&
           a->packed == b->packed && a->families == b->families && a->finite == b->finite &&
           a->deferred == b->deferred;
}

static bool is_seen(Visit *v, const CastQuery *query)
{
    for (uint32_t i = 0; i < v->count; i++)
        if (is_same_query(&v->seen[i], query))
            return true;
    arena_push(&v->m->arena, v->seen, v->count, v->capacity, *query);
    return false;
}

static void visit_run(Visit *v, const Op *op, const CastRuns *runs, unsigned i)
{
    CastQuery query = {.from = runs->from, .to = runs->to, .packed = runs->packed,
                       .elements = cast_run_length(runs, i)};
    const CastPlan *plan = runs->planned ? runs->plans[i] : NULL;
    if (plan)
        query = plan->query;
    if (plan && plan->family == CAST_FAMILY_codebook)
        query.families = 1u << plan->family;
    if ((plan && plan->less != DTYPE_none) || !is_seen(v, &query))
        v->take(v->data, op, &query, plan);
}

static bool visit_op(Op *op, void *data)
{
    Visit *v = data;
    const Planner *planner = planner_of(op->code);
    Plan plan;
    if (!planner || planner->family != PLAN_cast)
        return true;
    v->failed |= !select_plan(v->m, op, v->sm, &plan);
    const CastRuns *runs = &plan.cast.codes;
    if (v->failed)
        return false;
    visit_run(v, op, runs, 0);
    if (runs->count > 1 && cast_run_length(runs, runs->count - 1) < CAST_ELEMENTS_MAX)
        visit_run(v, op, runs, runs->count - 1);
    return true;
}

bool cast_plans_visit(Module *m, unsigned sm, TakeCastPlan *take, void *data)
{
    Visit v = {.m = m, .sm = sm, .take = take, .data = data};
    for (Program *program = m->programs; program && !v.failed; program = program->next)
        region_walk(program->body, visit_op, &v);
    return !v.failed;
}
