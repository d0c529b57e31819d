/* Edits of a module: ops, regions, values, attributes. */
#include "reduce.h"

#include "ir/loop.h"

/* ---- places -------------------------------------------------------------------- */

/* The ops of a module, parents before their regions; no yields. */
typedef struct Ops {
    Module *m;
    Op **items;
    uint32_t count, capacity;
} Ops;

static bool collect_op(Op *op, void *data)
{
    Ops *ops = data;
    if (op->code != OP_yield)
        arena_push(&ops->m->arena, ops->items, ops->count, ops->capacity, op);
    return true;
}

static Ops collect(Module *m)
{
    Ops ops = {.m = m};
    for (Program *p = m->programs; p; p = p->next)
        region_walk(p->body, collect_op, &ops);
    return ops;
}

/* The `site`-th op from the end that is `wanted`, or NULL. */
static Op *find_op(Module *m, unsigned site, bool (*wanted)(const Op *op))
{
    Ops ops = collect(m);
    while (ops.count-- > 0)
        if (wanted(ops.items[ops.count]) && site-- == 0)
            return ops.items[ops.count];
    return NULL;
}

static Program *program_of(const Op *op)
{
    return op->parent->program;
}

/* ---- ops ----------------------------------------------------------------------- */

/* Returns true when removing the op would only bring another like it. */
static bool is_number(const Op *op)
{
    return op->code == OP_allocate_register ||
           (op->code == OP_scalar && expr_is_constant(op_expr(op, ATTR_VALUE)));
}

static void drop_op(Op *op)
{
    Program *p = program_of(op);
    for (unsigned i = 0; i < op->result_count; i++) {
        TypeKind kind = op->results[i]->type->kind;
        bool replaceable = (kind == TYPE_REG || kind == TYPE_SCALAR) && !is_number(op);
        if (!replaceable && value_is_used(p, op->results[i]))
            return;
    }
    for (unsigned i = 0; i < op->result_count; i++)
        value_replace_by_number(p, op->results[i], op, 0);
    op_remove(op);
}

/* Drops ops from the last one on: users go before their operands. */
bool edit_drop_ops(Module *m, unsigned site, unsigned count)
{
    Ops ops = collect(m);
    if (site >= ops.count)
        return false;
    for (unsigned i = site; i < site + count && i < ops.count; i++)
        drop_op(ops.items[ops.count - 1 - i]);
    return true;
}

static Value *operand_alike(const Op *op)
{
    if (op->result_count != 1 || op->region_count)
        return NULL;
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i]->type == op->results[0]->type)
            return op->operands[i];
    return NULL;
}

static bool has_operand_alike(const Op *op)
{
    return operand_alike(op) != NULL;
}

bool edit_forward(Module *m, unsigned site)
{
    Op *op = find_op(m, site, has_operand_alike);
    if (!op)
        return false;
    value_replace(program_of(op), op->results[0], operand_alike(op));
    op_remove(op);
    return true;
}

/* ---- regions --------------------------------------------------------------------- */

/* The ops of `r` in the place of `op`, whose results are what `r` yields. */
static bool inline_region(Op *op, Region *r)
{
    Op *yield = region_yield(r);
    for (unsigned i = 0; i < op->result_count; i++)
        value_replace(program_of(op), op->results[i], yield->operands[i]);
    for (Op *inner = r->first, *next; inner; inner = next) {
        next = inner->next;
        op_remove(inner);
        if (inner != yield)
            op_insert(op->parent, inner, op);
    }
    op_remove(op);
    return true;
}

static bool holds_once(const Op *op)
{
    return op_is_loop(op) || op->code == OP_thread_group;
}

bool edit_run_once(Module *m, unsigned site)
{
    Op *op = find_op(m, site, holds_once);
    if (!op)
        return false;
    Program *p = program_of(op);
    if (op->code == OP_for) {
        const Expr *lower = op_expr(op, ATTR_LOWER);
        value_replace_by_number(p, for_index(op), op, lower && expr_is_constant(lower)
                                                          ? lower->constant : 0);
    }
    for (unsigned i = 0; op_is_loop(op) && i < op->result_count; i++)
        value_replace(p, loop_carried(op, i), op->operands[i]);
    return inline_region(op, op->regions[0]);
}

static bool is_if(const Op *op)
{
    return op->code == OP_if;
}

bool edit_take_branch(Module *m, unsigned site)
{
    Op *op = find_op(m, site / 2, is_if);
    return op && inline_region(op, op->regions[site % 2]);
}

static bool carries(const Op *op)
{
    return op->region_count && op->result_count;
}

/* The last one: what needs it gets its first value, or a zero. */
bool edit_drop_carried(Module *m, unsigned site)
{
    Op *op = find_op(m, site, carries);
    if (!op)
        return false;
    Program *p = program_of(op);
    unsigned i = op->result_count - 1;
    if (op_is_loop(op)) {
        value_replace(p, loop_carried(op, i), op->operands[i]);
        value_replace(p, op->results[i], op->operands[i]);
    } else if (!value_replace_by_number(p, op->results[i], op, 0)) {
        return true;
    }
    op_drop_carried(op, i);
    return true;
}

/* ---- expressions --------------------------------------------------------------------- */

/* The `site`-th attribute that is an expression or several. */
static Attr *find_expression(Module *m, unsigned site)
{
    Ops ops = collect(m);
    for (uint32_t i = 0; i < ops.count; i++)
        for (unsigned j = 0; j < ops.items[i]->attr_count; j++) {
            Attr *a = &ops.items[i]->attrs[j];
            if ((a->expr || a->exprs) && site-- == 0)
                return a;
        }
    return NULL;
}

bool edit_zero_expression(Module *m, unsigned site)
{
    Attr *a = find_expression(m, site);
    if (!a)
        return false;
    const Expr *zero = expr_constant(&m->exprs, 0), **zeros;
    zeros = arena_array(&m->arena, const Expr *, a->count + 1);
    for (unsigned i = 0; i < a->count; i++)
        zeros[i] = zero;
    a->expr = a->expr ? zero : NULL;
    a->exprs = a->exprs ? zeros : NULL;
    return true;
}

/* ---- arguments ----------------------------------------------------------------------- */

/* A scalar is what it is divisible by, often a size that fits. */
bool edit_drop_argument(Module *m, unsigned site)
{
    Program *p = m->programs;
    for (; p && site >= p->arg_count; p = p->next)
        site -= p->arg_count;
    if (!p)
        return false;
    Value *v = p->args[site];
    if (!value_replace_by_number(p, v, NULL, v->facts.has_divisible ? v->facts.divisible : 1))
        return true;
    p->arg_count--;
    for (unsigned i = site; i < p->arg_count; i++)
        p->args[i] = p->args[i + 1];
    return true;
}
