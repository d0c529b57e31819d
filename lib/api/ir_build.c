/* Building ops. */
#include "api/ir_edit.h"

#include "ir/builder.h"
#include "ir/structure.h"
#include "support/sized.h"

#include <string.h>

/* The place that a description names, and where in the text it is; false when it is not one. */
static bool find_place(const tilus_op_description *d, Place *place, Loc *loc)
{
    const Op *beside = op_of(d->before ? d->before : d->after);
    const Region *in = region_of(d->in);
    if ((d->before != NULL) + (d->after != NULL) + (d->in != NULL) != 1)
        return false;
    if (in) {
        const Op *near = in->last ? in->last : in->parent;
        *place = (Place){region_of(d->in), NULL};
        *loc = near ? near->loc : in->program->loc;
        return ir_region_program(in);
    }
    *place = (Place){beside->parent, d->before ? op_of(d->before) : beside->next};
    *loc = beside->loc;
    return ir_op_program(beside) && (d->before || beside->code != OP_yield);
}

/* ---- what a description names ------------------------------------------- */

static bool check_operands(Program *p, Loc loc, const tilus_op_description *d)
{
    if (d->operand_count > LIMIT_NAMES || (d->operand_count && !d->operands))
        return diag_error(p->module->diag, loc, "%zu operands of %s, at most %d", d->operand_count,
                          d->name, LIMIT_NAMES);
    for (size_t i = 0; i < d->operand_count; i++)
        if (!ir_check_value(p, loc, value_of(d->operands[i])))
            return false;
    return true;
}

static bool check_results(Module *m, Loc loc, const tilus_op_description *d)
{
    if (d->result_count > LIMIT_NAMES || (d->result_count && !d->results))
        return diag_error(m->diag, loc, "%zu results of %s, at most %d", d->result_count, d->name,
                          LIMIT_NAMES);
    for (size_t i = 0; i < d->result_count; i++)
        if (!ir_has_type(m, type_of(d->results[i])))
            return diag_error(m->diag, loc, "the type of result %zu is not of this module", i);
    int64_t most = diag_limit(m->diag, LIMIT_ID_VALUES);
    return m->value_count + d->result_count < (uint64_t)most ||
           diag_error(m->diag, loc, "more than %lld values", (long long)most);
}

static bool take_attrs(Module *m, OpCode code, Loc loc, const tilus_op_description *d, Attr *attrs)
{
    if (d->attr_count > ATTR_COUNT || (d->attr_count && !d->attrs))
        return diag_error(m->diag, loc, "%zu attributes of %s", d->attr_count, d->name);
    for (size_t i = 0; i < d->attr_count; i++) {
        if (!ir_take_attr(m, code, loc, &d->attrs[i], &attrs[i]))
            return false;
        for (size_t j = 0; j < i; j++)
            if (attrs[j].kind == attrs[i].kind)
                return diag_error(m->diag, loc, "attribute %s is given twice", d->attrs[i].name);
    }
    return true;
}

/* ---- regions ---------------------------------------------------------------- */

static void add_yield(Module *m, Region *r, Loc loc, bool carries)
{
    unsigned first = r->parent->code == OP_for, count = carries ? r->arg_count - first : 0;
    Value *const *values = count ? r->args + first : NULL;
    op_insert(r, build_op(m, OP_yield, loc, values, count, NULL, 0), NULL);
}

static void add_region(Program *p, Op *op)
{
    Region *r = build_region(p, op);
    bool loops = op->code == OP_for || op->code == OP_while;
    build_op_region(p->module, op, r);
    if (op->code == OP_for)
        build_region_argument(r, NULL, op->loc, type_scalar(p->module, DTYPE_i64));
    for (unsigned i = 0; loops && i < op->operand_count; i++)
        build_region_argument(r, NULL, op->loc, op->operands[i]->type);
    add_yield(p->module, r, op->loc, loops);
}

static void add_regions(Program *p, Op *op)
{
    if (op_info[op->code].effect != EFFECT_CONTROL || op->code == OP_yield)
        return;
    add_region(p, op);
    if (op->code == OP_if)
        add_region(p, op);
}

/* ---- ops -------------------------------------------------------------------- */

static OpCode find_code(Module *m, Loc loc, const char *name)
{
    OpCode code = name ? op_find(name, strlen(name)) : OP_COUNT;
    if (code == OP_COUNT)
        diag_error(m->diag, loc, "no op is called %s", name ? name : "(none)");
    else if (code == OP_yield)
        diag_error(m->diag, loc, "a yield comes with its region");
    return code == OP_yield ? OP_COUNT : code;
}

static Op *make_op(Program *p, OpCode code, Loc loc, const tilus_op_description *d,
                   const Attr *attrs)
{
    Module *m = p->module;
    Op *op = build_op(m, code, loc, (Value *const *)d->operands, (unsigned)d->operand_count,
                      attrs, (unsigned)d->attr_count);
    for (size_t i = 0; i < d->result_count; i++)
        build_result(m, op, NULL, loc, type_of(d->results[i]));
    add_regions(p, op);
    return op;
}

static Op *build(Program *p, const tilus_op_description *d, Place place, Loc loc)
{
    Module *m = p->module;
    Attr attrs[ATTR_COUNT];
    OpCode code = find_code(m, loc, d->name);
    if (code == OP_COUNT || !check_operands(p, loc, d) || !check_results(m, loc, d) ||
        !take_attrs(m, code, loc, d, attrs))
        return NULL;
    Op *op = make_op(p, code, loc, d, attrs);
    if (!verify_op_structure(p, op) || !ir_check_place(loc, &place, op->region_count ? 1 : 0))
        return NULL;
    op_insert(place.r, op, place.before);
    m->edits++;
    return op;
}

/* The module in which a description is meant to build. */
static Module *described_module(const tilus_op_description *d)
{
    if (d->in)
        return region_of(d->in)->program->module;
    return ir_op_module(op_of(d->before ? d->before : d->after));
}

static Op *build_described(Module *m, const tilus_op_description *d)
{
    Place place;
    Loc loc = {0};
    if (!find_place(d, &place, &loc)) {
        diag_error(m->diag, loc, "%s has no place: it takes one of before, after and in, which "
                   "is in a program, and not behind a yield", d->name ? d->name : "an op");
        return NULL;
    }
    return build(place.r->program, d, place, loc);
}

tilus_op *tilus_op_build(const tilus_op_description *description)
{
    tilus_op_description d;
    Op *op = NULL;
    const Report silent = {NULL, 0};
    if (!description)
        return NULL;
    bool ok = SIZED_COPY(tilus_op_description, &d, description, "description", silent);
    Module *m = ok ? described_module(&d) : NULL;
    if (m)
        IR_CALL(m, op, NULL, build_described(m, &d));
    return op_handle(op);
}

tilus_value *tilus_value_build_constant(tilus_op *before, const tilus_type *type, double number)
{
    const tilus_attr init = {.name = "init", .kind = TILUS_ATTR_NUMBER, .number = number};
    const tilus_op_description d = {sizeof d, "allocate_register", NULL, 0, &type, 1, &init, 1,
                                    before, NULL, NULL};
    return tilus_op_result(tilus_op_build(&d), 0);
}
