/* Putting one value in the place of another. */
#include "reduce.h"

#include "ir/builder.h"

/* The replacement of a value: another value or, in expressions, a constant. */
typedef struct Replacement {
    Module *m;
    const Value *from;
    Value *to;                  /* NULL: only expressions are looked at */
    const Expr *expr;           /* NULL: only operands */
    bool used;                  /* some operand or expression was `from` */
} Replacement;

static const Expr *replace_leaf(Value *v, void *data)
{
    Replacement *r = data;
    r->used |= v == r->from;
    return v == r->from ? r->expr : NULL;
}

static const Expr *replace_in(Replacement *r, const Expr *e)
{
    return e ? expr_substitute(&r->m->exprs, e, replace_leaf, r) : NULL;
}

static const Expr *const *replace_in_all(Replacement *r, const Expr *const *exprs,
                                         unsigned count)
{
    const Expr **all = arena_array(&r->m->arena, const Expr *, count + 1);
    for (unsigned i = 0; exprs && i < count; i++)
        all[i] = replace_in(r, exprs[i]);
    return exprs ? all : NULL;
}

static bool replace_in_op(Op *op, void *data)
{
    Replacement *r = data;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i] == r->from) {
            r->used = true;
            op->operands[i] = r->to ? r->to : op->operands[i];
        }
    for (unsigned i = 0; i < op->attr_count; i++) {
        op->attrs[i].expr = replace_in(r, op->attrs[i].expr);
        op->attrs[i].exprs = replace_in_all(r, op->attrs[i].exprs, op->attrs[i].count);
    }
    for (unsigned i = 0; i < op->result_count; i++) {
        const Type *t = op->results[i]->type;
        if (t->kind == TYPE_GLOBAL)
            op->results[i]->type = type_memory(r->m, t->kind, t->dtype, t->rank,
                                               replace_in_all(r, t->extents, t->rank),
                                               replace_in_all(r, t->strides, t->rank));
    }
    return true;
}

static bool replace_value(Program *p, const Value *from, Value *to, const Expr *expr)
{
    Replacement r = {p->module, from, to, expr, false};
    region_walk(p->body, replace_in_op, &r);
    for (unsigned d = 0; d < p->grid_rank; d++)
        p->grid[d] = replace_in(&r, p->grid[d]);
    return r.used;
}

bool value_is_used(Program *p, const Value *v)
{
    return replace_value(p, v, NULL, NULL);
}

void value_replace(Program *p, const Value *from, Value *to)
{
    bool is_scalar = to->type->kind == TYPE_SCALAR;
    replace_value(p, from, to, is_scalar ? expr_value(&p->module->exprs, to) : NULL);
}

bool value_replace_by_number(Program *p, Value *v, Op *at, int64_t number)
{
    Module *m = p->module;
    bool is_scalar = v->type->kind == TYPE_SCALAR;
    if (!is_scalar && v->type->kind != TYPE_REG)
        return !value_is_used(p, v);
    const Expr *constant = expr_constant(&m->exprs, number);
    OpCode code = is_scalar ? OP_scalar : OP_allocate_register;
    Attr attr = {.kind = is_scalar ? ATTR_VALUE : ATTR_INIT, .number = constant_of_integer(number)};
    attr.expr = is_scalar ? constant : NULL;
    Op *made = build_op(m, code, v->loc, NULL, 0, &attr, 1);
    Value *to = build_result(m, made, v->name, v->loc, v->type);
    op_insert(at ? at->parent : p->body, made, at ? at : p->body->first);
    replace_value(p, v, to, is_scalar ? constant : NULL);
    if (!value_is_used(p, to))
        op_remove(made);
    return true;
}
