/* Making programs, regions, ops and values. */
#include "ir/builder.h"

static void *copy_array(Module *m, const void *items, size_t count, size_t size)
{
    return count ? arena_copy(&m->arena, items, count * size) : NULL;
}

static Value *new_value(Module *m, const char *name, Loc loc, const Type *type, unsigned index)
{
    Value *v = arena_new(&m->arena, Value);
    *v = (Value){.type = type, .name = name, .loc = loc, .index = index,
                 .facts = {.divisible = 1, .min = INT64_MIN, .max = INT64_MAX, .align = 1}};
    m->value_count++;
    return v;
}

/* Appends to an array that is grown one by one: values of an op or region are
 * few, so a fresh copy each time is fine. */
static Value **append(Module *m, Value **values, unsigned count, Value *v)
{
    Value **longer = arena_array(&m->arena, Value *, count + 1);
    for (unsigned i = 0; i < count; i++)
        longer[i] = values[i];
    longer[count] = v;
    return longer;
}

Program *build_program(Module *m, const char *name, Loc loc)
{
    Program *p = arena_new(&m->arena, Program);
    *p = (Program){.name = name, .loc = loc, .module = m, .warps = 1,
                    .cluster = {1, 1, 1}};
    p->body = build_region(p, NULL);
    *(m->last_program ? &m->last_program->next : &m->programs) = p;
    m->last_program = p;
    return p;
}

Value *build_argument(Program *p, const char *name, Loc loc, const Type *type)
{
    Value *v = new_value(p->module, name, loc, type, p->arg_count);
    v->program = p;
    p->args = append(p->module, p->args, p->arg_count, v);
    p->arg_count++;
    return v;
}

Region *build_region(Program *p, Op *parent)
{
    Region *r = arena_new(&p->module->arena, Region);
    *r = (Region){.parent = parent, .program = p};
    return r;
}

Value *build_region_argument(Region *r, const char *name, Loc loc, const Type *type)
{
    Module *m = r->program->module;
    Value *v = new_value(m, name, loc, type, r->arg_count);
    v->region = r;
    r->args = append(m, r->args, r->arg_count, v);
    r->arg_count++;
    return v;
}

Op *build_op(Module *m, OpCode code, Loc loc, Value *const *operands, unsigned operand_count,
             const Attr *attrs, unsigned attr_count)
{
    Op *op = arena_new(&m->arena, Op);
    *op = (Op){.code = code, .loc = loc, .operand_count = operand_count,
               .attr_count = attr_count};
    op->operands = copy_array(m, operands, operand_count, sizeof *operands);
    op->attrs = copy_array(m, attrs, attr_count, sizeof *attrs);
    return op;
}

Value *build_result(Module *m, Op *op, const char *name, Loc loc, const Type *type)
{
    Value *v = new_value(m, name, loc, type, op->result_count);
    v->def = op;
    op->results = append(m, op->results, op->result_count, v);
    op->result_count++;
    return v;
}

void build_op_region(Module *m, Op *op, Region *r)
{
    Region **longer = arena_array(&m->arena, Region *, op->region_count + 1);
    for (unsigned i = 0; i < op->region_count; i++)
        longer[i] = op->regions[i];
    longer[op->region_count++] = r;
    op->regions = longer;
}
