/* The printer: canonical text, from the same tables that the parser reads. */
#include "ir/loop.h"
#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "support/limits.h"
#include "syntax/syntax.h"

#include <stdio.h>
#include <string.h>

/* ---- names ----------------------------------------------------------- */

/* Names in use where the printer stands, innermost last. A value keeps its
 * name unless that is taken there; a value without one gets a number. */
typedef struct Printer {
    Text *out;
    Module *m;
    InternSet names;        /* of NameUse */
    struct NameUse **scope;
    uint32_t scope_count, scope_capacity;
    unsigned next_number;
} Printer;

/* A name. `base`_`suffix` is a variant of `base`, of whose variants those below `next` are live: so
 * that n values of one name are named in n steps. */
typedef struct NameUse {
    const char *name;
    bool live;
    struct NameUse *base;       /* NULL: never tried as a variant */
    unsigned suffix, next;
} NameUse;

static bool name_equal(const void *x, const void *y)
{
    return !strcmp(((const NameUse *)x)->name, ((const NameUse *)y)->name);
}

static NameUse *find_name(Printer *pr, const char *name)
{
    NameUse key = {.name = name, .next = 1};
    uint64_t hash = hash_bytes(0, name, strlen(name));
    const NameUse *known = intern_find(&pr->names, hash, &key);
    if (known)
        return (NameUse *)known;
    NameUse *use = arena_copy(&pr->m->scratch, &key, sizeof key);
    intern_add(&pr->names, hash, use);
    return use;
}

/* Returns the first variant of a name, NAME_1 and so on, that is free here. */
static const char *free_variant(Printer *pr, NameUse *base)
{
    for (;; base->next++) {
        NameUse *use = find_name(pr, arena_printf(&pr->m->scratch, "%s_%u", base->name, base->next));
        use->base = base;
        use->suffix = base->next;
        if (!use->live)
            return use->name;
    }
}

/* Chooses v's name among those that are free here; a number where a variant would be too long to be
 * read. */
static void choose_name(Printer *pr, Value *v)
{
    if (v->name) {
        NameUse *use = find_name(pr, v->name);
        v->printed = use->live ? free_variant(pr, use) : v->name;
        if ((int64_t)strlen(v->printed) <= diag_limit(pr->m->diag, LIMIT_ID_IDENTIFIER))
            return;
    }
    do
        v->printed = arena_printf(&pr->m->scratch, "%u", pr->next_number++);
    while (find_name(pr, v->printed)->live);
}

static void bring_into_scope(Printer *pr, const Value *v)
{
    NameUse *use = find_name(pr, v->printed);
    use->live = true;
    arena_push(&pr->m->scratch, pr->scope, pr->scope_count, pr->scope_capacity, use);
}

static void name_value(Printer *pr, Value *v)
{
    choose_name(pr, v);
    bring_into_scope(pr, v);
}

static void leave_scope(Printer *pr, uint32_t mark)
{
    while (pr->scope_count > mark) {
        NameUse *use = pr->scope[--pr->scope_count];
        use->live = false;
        if (use->base && use->suffix < use->base->next)
            use->base->next = use->suffix;
    }
}

/* ---- ops -------------------------------------------------------------- */

static void print_region(Printer *pr, Region *r, unsigned indent);

static void print_results(Printer *pr, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++) {
        text_add(pr->out, i ? ", " : "");
        name_value(pr, op->results[i]);
        print_value_name(pr->out, op->results[i]);
    }
    text_add(pr->out, op->result_count ? " = " : "");
}

static void print_result_types(Printer *pr, const Op *op)
{
    for (unsigned i = 0; i < op->result_count; i++) {
        text_add(pr->out, i ? ", " : " : ");
        print_type(pr->out, op->results[i]->type);
    }
}

/* [%i * 16, %rows]: offsets, and the register tensor `index` among them, unless NULL. */
static void print_offsets(Printer *pr, const Op *op, const Attr *offsets, const Value *index)
{
    for (unsigned d = 0; d < offsets->count; d++) {
        text_add(pr->out, d ? ", " : "[");
        if (index && op_attr(op, ATTR_INDEXED)->integer == d)
            print_value_name(pr->out, index);
        else
            print_expr(pr->out, offsets->exprs[d]);
    }
    text_add(pr->out, offsets->count ? "]" : "[]");
}

/* The i-th operand, with the brackets after it. */
static void print_operand(Printer *pr, const Op *op, unsigned i)
{
    bool is_memory = i == op_memory_number(op);
    const Attr *source = op_attr(op, ATTR_SOURCE_OFFSETS);
    const Attr *offsets = op_attr(op, is_memory ? ATTR_OFFSETS : ATTR_SOURCE_OFFSETS);
    print_value_name(pr->out, op->operands[i]);
    if (op->operands[i]->type->kind == TYPE_MBARRIER && op_expr(op, ATTR_ELEMENT)) {
        text_add(pr->out, "[");
        print_expr(pr->out, op_expr(op, ATTR_ELEMENT));
        text_add(pr->out, "]");
    } else if (offsets && (is_memory || i == 0)) {
        print_offsets(pr, op, offsets, !source || offsets == source ? op_index(op) : NULL);
    }
}

static void print_operands(Printer *pr, const Op *op)
{
    unsigned count = op->operand_count - (op_index(op) ? 1 : 0);
    for (unsigned i = 0; i < count; i++) {
        text_add(pr->out, i ? ", " : " ");
        print_operand(pr, op, i);
    }
}

static void print_attr_value(Text *out, const Attr *a)
{
    if (attr_info[a->kind].value == ATTR_VALUE_INT) {
        text_printf(out, "%lld", (long long)a->integer);
    } else if (attr_info[a->kind].value == ATTR_VALUE_WORD) {
        text_add(out, attr_word_text(a));
    } else if (attr_info[a->kind].value == ATTR_VALUE_SCALAR) {
        print_expr(out, a->expr);
    } else {
        text_add(out, "[");
        for (unsigned j = 0; j < a->count; j++)
            text_printf(out, "%s%lld", j ? ", " : "", (long long)a->ints[j]);
        text_add(out, "]");
    }
}

static void print_attr_dictionary(Printer *pr, const Op *op)
{
    bool any = false;
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (!attr_in_dictionary(a->kind))
            continue;
        text_printf(pr->out, "%s%s = ", any ? ", " : " {", attr_info[a->kind].spelling);
        print_attr_value(pr->out, a);
        any = true;
    }
    text_add(pr->out, any ? "}" : "");
}

/* The attributes that are words before the operands. */
static void print_words(Printer *pr, const Op *op)
{
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (attr_is_leading_word(a->kind))
            text_printf(pr->out, " %s", attr_word_text(a));
    }
}

static void print_plain_op(Printer *pr, const Op *op)
{
    const Attr *init = op_attr(op, ATTR_INIT), *message = op_attr(op, ATTR_MESSAGE);
    text_add(pr->out, op_info[op->code].name);
    if (init) {
        text_add(pr->out, " ");
        constant_print(pr->out, init->number, dtype_is_float(op->results[0]->type->dtype));
    }
    if (op_expr(op, ATTR_COND)) {
        text_add(pr->out, " ");
        print_expr(pr->out, op_expr(op, ATTR_COND));
    }
    if (message)
        text_printf(pr->out, ", \"%s\"", message->text);
    if (op_attr(op, ATTR_LABEL))
        text_printf(pr->out, " \"%s\",", op_attr(op, ATTR_LABEL)->text);
    if (op_expr(op, ATTR_VALUE)) {
        text_add(pr->out, " ");
        print_expr(pr->out, op_expr(op, ATTR_VALUE));
    }
    if (op_expr(op, ATTR_COUNTER)) {
        text_add(pr->out, ", ");
        print_expr(pr->out, op_expr(op, ATTR_COUNTER));
    }
    if (op_expr(op, ATTR_NUMBER)) {
        text_add(pr->out, " ");
        print_expr(pr->out, op_expr(op, ATTR_NUMBER));
    }
    print_words(pr, op);
    print_operands(pr, op);
    if (op_expr(op, ATTR_STATE)) {
        text_add(pr->out, ", ");
        print_expr(pr->out, op_expr(op, ATTR_STATE));
    }
    print_attr_dictionary(pr, op);
    print_result_types(pr, op);
    text_add(pr->out, "\n");
}

static void print_unroll(Printer *pr, const Op *op)
{
    if (!op_attr(op, ATTR_UNROLL))
        return;
    text_add(pr->out, " unroll");
    if (op_expr(op, ATTR_UNROLL)) {
        text_add(pr->out, "(");
        print_expr(pr->out, op_expr(op, ATTR_UNROLL));
        text_add(pr->out, ")");
    }
}

static void print_drain(Printer *pr, const Op *op)
{
    const Attr *drain = op_attr(op, ATTR_DRAIN);
    if (drain)
        text_printf(pr->out, " drain(%s)", attr_word_text(drain));
}

/* The values that a loop carries, named before. */
static void print_iter(Printer *pr, const Op *op)
{
    for (unsigned i = 0; i < op->operand_count; i++) {
        text_add(pr->out, i ? ", " : " iter(");
        print_value_name(pr->out, loop_carried(op, i));
        text_add(pr->out, " = ");
        print_value_name(pr->out, op->operands[i]);
    }
    text_add(pr->out, op->operand_count ? ")" : "");
}

static void print_for(Printer *pr, const Op *op, unsigned indent)
{
    Region *body = op->regions[0];
    for (unsigned i = 0; i < body->arg_count; i++)
        name_value(pr, body->args[i]);
    text_add(pr->out, "for ");
    print_value_name(pr->out, body->args[0]);
    text_add(pr->out, " in ");
    print_expr(pr->out, op_expr(op, ATTR_LOWER));
    text_add(pr->out, " .. ");
    print_expr(pr->out, op_expr(op, ATTR_UPPER));
    if (op_expr(op, ATTR_STEP)) {
        text_add(pr->out, " step ");
        print_expr(pr->out, op_expr(op, ATTR_STEP));
    }
    if (op_expr(op, ATTR_PIPELINED)) {
        text_add(pr->out, " pipelined(");
        print_expr(pr->out, op_expr(op, ATTR_PIPELINED));
        text_add(pr->out, ")");
    }
    print_unroll(pr, op);
    print_drain(pr, op);
    print_iter(pr, op);
    print_result_types(pr, op);
    print_region(pr, body, indent);
    text_add(pr->out, "\n");
}

static void print_while(Printer *pr, const Op *op, unsigned indent)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        name_value(pr, loop_carried(op, i));
    text_add(pr->out, "while ");
    print_expr(pr->out, op_expr(op, ATTR_COND));
    print_drain(pr, op);
    print_iter(pr, op);
    print_result_types(pr, op);
    print_region(pr, op->regions[0], indent);
    text_add(pr->out, "\n");
}

static void print_if(Printer *pr, const Op *op, unsigned indent)
{
    text_add(pr->out, "if ");
    print_expr(pr->out, op_expr(op, ATTR_COND));
    print_drain(pr, op);
    print_result_types(pr, op);
    print_region(pr, op->regions[0], indent);
    const Region *other = op->regions[1];
    if (op->result_count || other->first != region_yield(other)) {
        text_add(pr->out, " else");
        print_region(pr, op->regions[1], indent);
    }
    text_add(pr->out, "\n");
}

static void print_thread_group(Printer *pr, const Op *op, unsigned indent)
{
    text_add(pr->out, "thread_group(");
    print_expr(pr->out, op_expr(op, ATTR_BEGIN));
    text_add(pr->out, ", ");
    print_expr(pr->out, op_expr(op, ATTR_THREADS));
    text_add(pr->out, ")");
    print_drain(pr, op);
    print_region(pr, op->regions[0], indent);
    text_add(pr->out, "\n");
}

/* Results are named before the op's regions are printed, but live only after
 * them, so that an inner value may have the same name. */
static void print_structured_op(Printer *pr, Op *op, unsigned indent)
{
    uint32_t mark = pr->scope_count;
    print_results(pr, op);
    leave_scope(pr, mark);
    if (op->code == OP_for)
        print_for(pr, op, indent);
    else if (op->code == OP_thread_group)
        print_thread_group(pr, op, indent);
    else if (op->code == OP_while)
        print_while(pr, op, indent);
    else
        print_if(pr, op, indent);
    leave_scope(pr, mark);
    for (unsigned i = 0; i < op->result_count; i++)
        bring_into_scope(pr, op->results[i]);
}

static void print_region(Printer *pr, Region *r, unsigned indent)
{
    uint32_t mark = pr->scope_count;
    text_add(pr->out, " {\n");
    for (Op *op = r->first; op; op = op->next) {
        if (op->code == OP_yield && !op->operand_count)
            continue;
        text_indent(pr->out, indent + 2);
        if (op->region_count) {
            print_structured_op(pr, op, indent + 2);
        } else {
            print_results(pr, op);
            print_plain_op(pr, op);
        }
    }
    text_indent(pr->out, indent);
    text_add(pr->out, "}");
    leave_scope(pr, mark);
}

/* ---- programs ---------------------------------------------------------- */

static void print_facts(Text *out, const Value *v)
{
    const Facts *f = &v->facts;
    const char *separator = " {";
    if (f->has_divisible) {
        text_printf(out, "%sdivisible = %lld", separator, (long long)f->divisible);
        separator = ", ";
    }
    if (f->has_range) {
        text_printf(out, "%srange = [%lld, %lld]", separator, (long long)f->min,
                    (long long)f->max);
        separator = ", ";
    }
    if (f->has_align) {
        text_printf(out, "%salign = %lld", separator, (long long)f->align);
        separator = ", ";
    }
    text_add(out, *separator == ',' ? "}" : "");
}

static void print_program_header(Printer *pr, Program *p)
{
    for (unsigned i = 0; i < p->arg_count; i++) {
        name_value(pr, p->args[i]);
    }
    text_printf(pr->out, "program @%s<", p->name);
    for (unsigned i = 0; i < p->grid_rank; i++) {
        text_add(pr->out, i ? ", " : "");
        print_expr_within(pr->out, p->grid[i], scalar_op_info[SCALAR_add].precedence);
    }
    text_add(pr->out, ">(");
    for (unsigned i = 0; i < p->arg_count; i++) {
        text_add(pr->out, i ? ", " : "");
        print_value_name(pr->out, p->args[i]);
        text_add(pr->out, ": ");
        print_type(pr->out, p->args[i]->type);
        print_facts(pr->out, p->args[i]);
    }
    text_printf(pr->out, ") warps(%u)", p->warps);
    if (p->min_blocks)
        text_printf(pr->out, " min_blocks(%u)", p->min_blocks);
    for (unsigned d = 0; d < p->cluster_rank; d++)
        text_printf(pr->out, "%s%u%s", d ? ", " : " cluster(", p->cluster[d],
                    d + 1 == p->cluster_rank ? ")" : "");
    if (p->cooperative)
        text_add(pr->out, " cooperative");
    if (p->contract)
        text_add(pr->out, " contract");
}

static void forget_region(Region *r)
{
    for (unsigned i = 0; i < r->arg_count; i++)
        r->args[i]->printed = NULL;
    for (Op *op = r->first; op; op = op->next) {
        for (unsigned i = 0; i < op->result_count; i++)
            op->results[i]->printed = NULL;
        for (unsigned i = 0; i < op->region_count; i++)
            forget_region(op->regions[i]);
    }
}

static void forget_names(Program *p)
{
    forget_region(p->body);
    for (unsigned i = 0; i < p->arg_count; i++)
        p->args[i]->printed = NULL;
}

void print_forget_names(Module *m)
{
    for (Program *p = m->programs; p; p = p->next)
        forget_names(p);
}

void print_program(Text *out, Program *p)
{
    Printer pr = {.out = out, .m = p->module};
    ArenaMark mark = arena_mark(&p->module->scratch);
    intern_init(&pr.names, &p->module->scratch, name_equal);
    print_program_header(&pr, p);
    print_region(&pr, p->body, 0);
    text_add(out, "\n");
    forget_names(p);
    arena_reset(&p->module->scratch, mark);
}

void print_module(Text *out, Module *m)
{
    text_add(out, "tilus 1\n");
    for (Program *p = m->programs; p; p = p->next) {
        text_add(out, "\n");
        print_program(out, p);
    }
}
