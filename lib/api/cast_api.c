/* Public API: cast plans as text. */
#define _GNU_SOURCE
#include "cast/plan.h"
#include "codegen/codegen.h"
#include "ir/ir.h"
#include "tilus/tilus.h"

#include <string.h>

/* A cast or lookup, as often as a module may have it. */
typedef struct Seen {
    DType from, to;
    unsigned elements;
    bool codebook;
} Seen;

typedef struct Printer {
    Text out;
    Arena *arena;
    unsigned sm;
    bool operations;
    Seen *seen;
    uint32_t count, capacity;
} Printer;

static Printer printer_of(Module *m, unsigned sm, bool operations)
{
    Printer p = {.arena = &m->arena, .sm = sm, .operations = operations};
    text_init(&p.out, &m->arena);
    cast_print_heading(&p.out);
    return p;
}

/* False when it has no plan. */
static bool print_cast(Printer *p, Seen cast)
{
    CastPlan plan;
    CastQuery query = {.from = cast.from, .to = cast.to, .elements = cast.elements,
                       .sm = p->sm};
    if (!(cast.codebook ? cast_plan_codebook : cast_plan)(p->arena, &query, &plan))
        return false;
    cast_print_row(&p->out, &plan);
    if (p->operations)
        cast_print_ops(&p->out, &plan);
    return true;
}

static bool is_seen(Printer *p, Seen cast)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (p->seen[i].from == cast.from && p->seen[i].to == cast.to &&
            p->seen[i].elements == cast.elements && p->seen[i].codebook == cast.codebook)
            return true;
    arena_push(p->arena, p->seen, p->count, p->capacity, cast);
    return false;
}

/* Code generation plans so many elements at a time, and the rest. */
static void print_once(Printer *p, Seen cast)
{
    if (cast.elements == 0 || is_seen(p, cast) || print_cast(p, cast))
        return;
    text_printf(&p->out, "%-7s %-7s %8u  element by element\n", dtype_name(cast.from),
                dtype_name(cast.to), cast.elements);
}

/* The plan of a dequantize's elements from slot `first` on; false when its zero points
 * are of no plan. */
static bool print_less_zeros(Printer *p, const Op *op, int64_t first, unsigned elements)
{
    const Type *codes = op->operands[0]->type, *zero = op->operands[2]->type;
    CastQuery query = {.from = codes->dtype, .to = op->results[0]->type->dtype,
                       .packed = codes->packed, .elements = elements, .sm = p->sm};
    CastZeros zeros = cast_zeros_of(zero->dtype, zero->layout, codes->layout, first, elements);
    CastPlan plan;
    if (!cast_plan_zeros(p->arena, &query, &zeros, &plan))
        return false;
    cast_print_row(&p->out, &plan);
    if (p->operations)
        cast_print_ops(&p->out, &plan);
    return true;
}

/* The first run of elements, and the rest: what zero points cost depends on who shares
 * them. */
static bool print_dequantize(Printer *p, const Op *op)
{
    int64_t slots = op->results[0]->type->layout->slots;
    unsigned rest = (unsigned)(slots % CAST_ELEMENTS_MAX);
    if (op->operand_count < 3 || (slots >= CAST_ELEMENTS_MAX &&
                                  !print_less_zeros(p, op, 0, CAST_ELEMENTS_MAX)))
        return false;
    return rest == 0 || print_less_zeros(p, op, slots - rest, rest);
}

static bool print_op(Op *op, void *data)
{
    Printer *p = data;
    if (op->code != OP_cast && op->code != OP_lookup && op->code != OP_dequantize)
        return true;
    if (op->code == OP_dequantize && print_dequantize(p, op))
        return true;
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    int64_t slots = type_thread_bits(to) / dtype_bits(to->dtype);
    Seen cast = {from->dtype, to->dtype, CAST_ELEMENTS_MAX, op->code == OP_lookup};
    if (slots >= CAST_ELEMENTS_MAX)
        print_once(p, cast);
    cast.elements = (unsigned)(slots % CAST_ELEMENTS_MAX);
    print_once(p, cast);
    return true;
}

char *tilus_cast_plans(tilus_module *module, const char *cpu, bool operations)
{
    if (setjmp(module->diag->oom.jump))
        return NULL;
    unsigned sm = codegen_target_sm(module, cpu);
    if (!sm)
        return NULL;
    Printer p = printer_of(module, sm, operations);
    for (Program *program = module->programs; program; program = program->next)
        region_walk(program->body, print_op, &p);
    return strdup(text_string(&p.out));
}

static char *print_all(Module *m, const char *cpu, bool operations)
{
    unsigned sm = codegen_target_sm(m, cpu);
    if (!sm)
        return NULL;
    Printer p = printer_of(m, sm, operations);
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++)
            print_cast(&p, (Seen){from, to, CAST_ELEMENTS_MAX, false});
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
