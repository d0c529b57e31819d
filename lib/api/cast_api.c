/* Public API: cast plans as text. */
#define _GNU_SOURCE
#include "cast/plan.h"
#include "codegen/codegen.h"
#include "ir/op_attrs.h"
#include "ir/structure.h"
#include "select/plan.h"
#include "tilus/tilus.h"
#include "types/storage.h"

#include <string.h>

typedef struct Printer {
    Text out;
    Module *m;
    unsigned sm;
    bool operations, failed;
    CastQuery *seen;            /* printed, as often as a module may have them */
    uint32_t count, capacity;
} Printer;

static Printer printer_of(Module *m, unsigned sm, bool operations)
{
    Printer p = {.m = m, .sm = sm, .operations = operations};
    text_init(&p.out, &m->arena);
    cast_print_heading(&p.out);
    return p;
}

static void print_plan(Printer *p, const CastPlan *plan)
{
    cast_print_row(&p->out, plan);
    if (p->operations)
        cast_print_ops(&p->out, plan);
}

static bool is_same_query(const CastQuery *a, const CastQuery *b)
{
    return a->from == b->from && a->to == b->to && a->elements == b->elements &&
           a->packed == b->packed && a->families == b->families && a->finite == b->finite &&
           a->deferred == b->deferred;
}

static bool is_seen(Printer *p, const CastQuery *query)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (is_same_query(&p->seen[i], query))
            return true;
    arena_push(&p->m->arena, p->seen, p->count, p->capacity, *query);
    return false;
}

/* The plan of run `i`, or that there is none, once for all casts that have one query; what
 * zero points cost depends on who shares them. */
static void print_run(Printer *p, const CastRuns *runs, unsigned i)
{
    CastQuery query = {.from = runs->from, .to = runs->to, .packed = runs->packed,
                       .elements = cast_run_length(runs, i)};
    const CastPlan *plan = runs->planned ? runs->plans[i] : NULL;
    if (plan)
        query = plan->query;
    if (plan && plan->family == CAST_FAMILY_codebook)
        query.families = 1u << plan->family;
    if ((!plan || plan->less == DTYPE_none) && is_seen(p, &query))
        return;
    if (plan) {
        print_plan(p, plan);
        return;
    }
    cast_print_query(&p->out, &query);
    text_printf(&p->out, "element by element\n");
}

/* The first run, and the last one when that is shorter. */
static bool print_op(Op *op, void *data)
{
    Printer *p = data;
    const Planner *planner = planner_of(op->code);
    Plan plan;
    if (!planner || planner->family != PLAN_cast)
        return true;
    p->failed |= !select_plan(p->m, op, p->sm, &plan);
    const CastRuns *runs = &plan.cast.codes;
    if (p->failed)
        return false;
    print_run(p, runs, 0);
    if (runs->count > 1 && cast_run_length(runs, runs->count - 1) < CAST_ELEMENTS_MAX)
        print_run(p, runs, runs->count - 1);
    return true;
}

char *tilus_cast_plans(tilus_module *module, const char *cpu, bool operations)
{
    if (setjmp(module->diag->oom.jump))
        return NULL;
    unsigned sm = codegen_target_sm(module, cpu);
    if (!sm || !verify_edited(module))
        return NULL;
    Printer p = printer_of(module, sm, operations);
    for (Program *program = module->programs; program; program = program->next)
        region_walk(program->body, print_op, &p);
    return p.failed ? NULL : strdup(text_string(&p.out));
}

static void print_query(Printer *p, const CastQuery *query)
{
    CastPlan plan;
    if (cast_plan(&p->m->arena, query, &plan))
        print_plan(p, &plan);
}

/* Prints the cast from plain order and from the order for the target: of all codes, of
 * finite codes where that plan differs, and decode. */
static void print_pair(Printer *p, DType from, DType to)
{
    CastQuery query = {.from = from, .to = to, .elements = CAST_ELEMENTS_MAX, .sm = p->sm};
    print_query(p, &query);
    if (!cast_has_storage(from, to))
        return;
    query.packed = to;
    print_query(p, &query);
    query.finite = true;
    if (dtype_info[from].special != SPECIAL_FINITE && dtype_is_float(from))
        print_query(p, &query);
    query.finite = false;
    query.deferred = true;
    print_query(p, &query);
}

static char *print_all(Module *m, const char *cpu, bool operations)
{
    unsigned sm = codegen_target_sm(m, cpu);
    if (!sm)
        return NULL;
    Printer p = printer_of(m, sm, operations);
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++)
            print_pair(&p, from, to);
    return strdup(text_string(&p.out));
}

char *tilus_all_cast_plans(tilus_diag *diag, const char *cpu, bool operations)
{
    Module *m = module_new(diag);
    if (!m)
        return NULL;
    char *text = setjmp(diag->oom.jump) == 0 ? print_all(m, cpu, operations) : NULL;
    module_free(m);
    return text;
}
