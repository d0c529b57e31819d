/* Uses of values. */
#include "ir/uses.h"

static bool visit_exprs(const Expr *const *exprs, unsigned count,
                        bool (*visit)(Value *v, void *data), void *data)
{
    for (unsigned i = 0; exprs && i < count; i++)
        if (!expr_visit_values(exprs[i], visit, data))
            return false;
    return true;
}

bool op_visit_uses(const Op *op, bool (*visit)(Value *v, void *data), void *data)
{
    for (unsigned i = 0; i < op->operand_count; i++)
        if (!visit(op->operands[i], data))
            return false;
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if ((a->expr && !expr_visit_values(a->expr, visit, data)) ||
            !visit_exprs(a->exprs, a->count, visit, data))
            return false;
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        if (!visit_exprs(t->extents, t->rank, visit, data) ||
            !visit_exprs(t->strides, t->rank, visit, data))
            return false;
    }
    return true;
}

static bool is_another(Value *v, void *data)
{
    return v != data;
}

bool op_uses(const Op *op, const Value *v)
{
    return !op_visit_uses(op, is_another, (void *)v);
}

bool op_is_within(const Op *op, const Op *around)
{
    while (op && op != around)
        op = op->parent ? op->parent->parent : NULL;
    return op;
}

bool op_defines(const Op *op, const Value *v)
{
    const Op *def = v->def ? v->def : v->region ? v->region->parent : NULL;
    return def && op_is_within(def, op);
}

typedef struct Search {
    const Op *around;
    bool results;
    Op *user;           /* that is looked at; NULL: none found */
    Value *value;
} Search;

static bool is_of_others(Value *v, void *data)
{
    Search *s = data;
    s->value = v;
    return !op_defines(s->around, v) || (v->def == s->around && !s->results);
}

static bool look_at(Op *op, void *data)
{
    Search *s = data;
    if (op_is_within(op, s->around))
        return true;
    s->user = op;
    return op_visit_uses(op, is_of_others, s);
}

Op *op_find_outer_user(const Op *op, bool results, Value **value)
{
    Search s = {.around = op, .results = results};
    if (region_walk(op->parent->program->body, look_at, &s))
        return NULL;
    *value = s.value;
    return s.user;
}
