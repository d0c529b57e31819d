/* Public API: cast plans as text. */
#define _GNU_SOURCE
#include "cast/plan.h"
#include "codegen/codegen.h"
#include "ir/structure.h"
#include "select/cast_plans.h"
#include "tilus/tilus.h"
#include "types/storage.h"

#include <string.h>

typedef struct Printer {
    Text out;
    Module *m;
    unsigned sm;
    bool operations;
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

static void take_plan(void *data, const Op *op, const CastQuery *query, const CastPlan *plan)
{
    Printer *p = data;
    (void)op;
    if (plan) {
        print_plan(p, plan);
        return;
    }
    cast_print_query(&p->out, query);
    text_printf(&p->out, "element by element\n");
}

char *tilus_cast_plans(tilus_module *module, const char *cpu, bool operations)
{
    if (setjmp(module->diag->oom.jump))
        return NULL;
    unsigned sm = codegen_target_sm(module, cpu);
    if (!sm || !verify_edited(module))
        return NULL;
    Printer p = printer_of(module, sm, operations);
    return cast_plans_visit(module, sm, take_plan, &p) ? strdup(text_string(&p.out)) : NULL;
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
