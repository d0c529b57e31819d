/* The verifier's view of layouts that are left open. */
#include "ir/text.h"
#include "ir/verify.h"

/* A register tensor's type with its layout left open; others as they are. */
static const Type *without_layout(Module *m, const Type *t)
{
    return t->kind == TYPE_REG ? type_with_layout(m, t, NULL) : t;
}

bool verify_types_agree(Module *m, const Type *a, const Type *b)
{
    bool open = type_is_open(a) || type_is_open(b);
    return a == b || (open && without_layout(m, a) == without_layout(m, b));
}

/* Returns true when a register tensor among the values has no layout yet. */
static bool any_open(Value *const *values, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        if (values[i]->type->kind == TYPE_REG && type_is_open(values[i]->type))
            return true;
    return false;
}

/* Gives the values their types without layouts; returns their former types. */
static const Type **hide_layouts(Module *m, Value **values, unsigned count)
{
    const Type **types = arena_array(&m->scratch, const Type *, count);
    for (unsigned i = 0; i < count; i++)
        types[i] = values[i]->type;
    for (unsigned i = 0; i < count; i++)
        values[i]->type = without_layout(m, types[i]);
    return types;
}

static void restore_types(Value **values, unsigned count, const Type *const *types)
{
    for (unsigned i = 0; i < count; i++)
        values[i]->type = types[i];
}

bool verify_rules(Module *m, Op *op, OpVerifier verifier)
{
    if (!any_open(op->operands, op->operand_count) && !any_open(op->results, op->result_count))
        return verifier(m, op);
    ArenaMark mark = arena_mark(&m->scratch);
    const Type **operands = hide_layouts(m, op->operands, op->operand_count);
    const Type **results = hide_layouts(m, op->results, op->result_count);
    bool ok = verifier(m, op);
    restore_types(op->operands, op->operand_count, operands);
    restore_types(op->results, op->result_count, results);
    arena_reset(&m->scratch, mark);
    return ok;
}

static bool check_chosen(Op *op, void *data)
{
    const char *user = data;
    Module *m = op->parent->program->module;
    for (unsigned i = 0; i < op->result_count; i++) {
        const Value *v = op->results[i];
        if (type_is_open(v->type))
            return diag_error(m->diag, v->loc, "the %s of %s, which %s gives, is left open: "
                              "infer-layouts must choose it before %s",
                              v->type->kind == TYPE_REG ? "layout" : "swizzle",
                              value_text(m, v), op_info[op->code].name, user);
    }
    return true;
}

bool verify_chosen(Program *p, const char *user)
{
    return region_walk(p->body, check_chosen, (void *)user);
}
