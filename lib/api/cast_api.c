/* Public API: cast plans as text. */
#define _GNU_SOURCE
#include "cast/plan.h"
#include "codegen/codegen.h"
#include "ir/ir.h"
#include "tilus/tilus.h"
#include "types/storage.h"

#include <string.h>

/* A cast, lookup or decode, as often as a module may have it. */
typedef struct Seen {
    CastQuery query;
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
static bool print_cast(Printer *p, const Seen *cast)
{
    CastPlan plan;
    if (!(cast->codebook ? cast_plan_codebook : cast_plan)(p->arena, &cast->query, &plan))
        return false;
    cast_print_row(&p->out, &plan);
    if (p->operations)
        cast_print_ops(&p->out, &plan);
    return true;
}

static bool is_same_query(const CastQuery *a, const CastQuery *b)
{
    return a->from == b->from && a->to == b->to && a->elements == b->elements &&
           a->packed == b->packed && a->finite == b->finite && a->residual == b->residual;
}

static bool is_seen(Printer *p, const Seen *cast)
{
    for (uint32_t i = 0; i < p->count; i++)
        if (is_same_query(&p->seen[i].query, &cast->query) &&
            p->seen[i].codebook == cast->codebook)
            return true;
    arena_push(p->arena, p->seen, p->count, p->capacity, *cast);
    return false;
}

static void print_once(Printer *p, const Seen *cast)
{
    if (is_seen(p, cast) || print_cast(p, cast))
        return;
    cast_print_query(&p->out, &cast->query);
    text_printf(&p->out, "element by element\n");
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

static bool has_plans(OpCode code)
{
    return code == OP_cast || code == OP_decode || code == OP_dequantize || code == OP_lookup;
}

static bool print_op(Op *op, void *data)
{
    Printer *p = data;
    if (!has_plans(op->code) || (op->code == OP_dequantize && print_dequantize(p, op)))
        return true;
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    bool finite = op->code != OP_decode && op->code != OP_lookup && cast_is_finite(op);
    Seen cast = {{.from = from->dtype, .to = to->dtype, .packed = from->packed, .sm = p->sm,
                  .finite = finite, .residual = op->code == OP_decode},
                 op->code == OP_lookup};
    int64_t slots = type_thread_bits(to) / dtype_bits(to->dtype);
    unsigned runs[] = {slots >= CAST_ELEMENTS_MAX ? CAST_ELEMENTS_MAX : 0,
                       (unsigned)(slots % CAST_ELEMENTS_MAX)};
    for (unsigned i = 0; i < 2; i++) {
        cast.query.elements = runs[i];
        if (runs[i] > 0)
            print_once(p, &cast);
    }
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

/* From plain order, and from the order for the target: the whole cast, that of finite
 * codes where this is another, and decode. */
static void print_pair(Printer *p, DType from, DType to)
{
    Seen cast = {.query = {.from = from, .to = to, .elements = CAST_ELEMENTS_MAX,
                           .sm = p->sm}};
    print_cast(p, &cast);
    if (!cast_has_storage(from, to))
        return;
    cast.query.packed = to;
    print_cast(p, &cast);
    cast.query.finite = true;
    if (dtype_info[from].special != SPECIAL_FINITE && dtype_is_float(from))
        print_cast(p, &cast);
    cast.query.finite = false;
    cast.query.residual = true;
    print_cast(p, &cast);
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
