/* Places the tensors of a program's workspace. */
#include "memory/workspace.h"

#include "ir/op_attrs.h"
#include "ir/text.h"

/* ---- order ---------------------------------------------------------------- */

typedef struct Collection {
    Arena *arena;
    Op **ops;
    uint32_t count, capacity;
} Collection;

static bool has_constant_size(const Op *op)
{
    const Type *t = op->results[0]->type;
    for (unsigned d = 0; d < t->rank; d++)
        if (!expr_is_constant(t->extents[d]))
            return false;
    return true;
}

/* Returns true when the tensor of `a` lies before that of `b`, whose op comes first. */
static bool lies_before(const Op *a, const Op *b)
{
    const Attr *x = op_attr(a, ATTR_PLACE), *y = op_attr(b, ATTR_PLACE);
    if (workspace_is_zeroed(a) != workspace_is_zeroed(b))
        return workspace_is_zeroed(a);
    if (x || y)
        return x && (!y || x->integer < y->integer);
    return has_constant_size(a) && !has_constant_size(b);
}

/* Inserts after those that come first and need not give way. */
static bool collect(Op *op, void *data)
{
    Collection *c = data;
    if (op->code != OP_allocate_global)
        return true;
    arena_push(c->arena, c->ops, c->count, c->capacity, op);
    for (uint32_t i = c->count - 1; i > 0 && lies_before(op, c->ops[i - 1]); i--) {
        c->ops[i] = c->ops[i - 1];
        c->ops[i - 1] = op;
    }
    return true;
}

Workspace workspace_of(Program *p, Arena *arena)
{
    Collection c = {.arena = arena};
    region_walk(p->body, collect, &c);
    return (Workspace){.count = c.count, .ops = c.ops};
}

/* ---- offsets -------------------------------------------------------------- */

/* An expression that grows; once `why` is set, NULL. */
typedef struct Formula {
    ExprTable *table;
    const Expr *e;
    const char *why;
} Formula;

static void apply(Formula *f, ScalarOp op, const Expr *b)
{
    f->e = f->e ? expr_make(f->table, op, f->e, b, &f->why) : NULL;
}

static void apply_constant(Formula *f, ScalarOp op, int64_t b)
{
    if (b != 1)
        apply(f, op, expr_constant(f->table, b));
}

/* Adds the bytes from this tensor's first to the next one's to `*end`; NULL, or why
 * that fails. */
static const char *add_tensor(Module *m, const Type *t, const Expr **end)
{
    Formula f = {.table = &m->exprs, .e = t->extents[0]};
    unsigned bits = dtype_bits(t->dtype);
    for (unsigned d = 1; d < t->rank; d++)
        apply(&f, SCALAR_mul, t->extents[d]);
    apply_constant(&f, SCALAR_mul, bits % 8 ? bits : bits / 8);
    apply_constant(&f, SCALAR_ceil_div, bits % 8 ? 8 : 1);
    apply_constant(&f, SCALAR_ceil_div, TILUS_WORKSPACE_ALIGN);
    apply_constant(&f, SCALAR_mul, TILUS_WORKSPACE_ALIGN);
    if (f.e && (!expr_is_constant(*end) || (*end)->constant))
        f.e = expr_make(&m->exprs, SCALAR_add, *end, f.e, &f.why);
    *end = f.e;
    return f.e ? NULL : f.why;
}

bool workspace_place(Module *m, Workspace *w, Arena *arena)
{
    w->offsets = arena_array(arena, const Expr *, w->count + 1);
    w->offsets[0] = w->zeroed = expr_constant(&m->exprs, 0);
    for (unsigned i = 0; i < w->count; i++) {
        const Op *op = w->ops[i];
        const Type *t = op->results[0]->type;
        w->offsets[i + 1] = w->offsets[i];
        const char *why = add_tensor(m, t, &w->offsets[i + 1]);
        if (why)
            return diag_error(m->diag, op->loc, "the bytes of the workspace up to this tensor, "
                              "%s: %s", type_text(m, t), why);
        if (workspace_is_zeroed(op))
            w->zeroed = w->offsets[i + 1];
    }
    return true;
}
