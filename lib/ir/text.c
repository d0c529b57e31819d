/* Text of types and expressions. */
#include "ir/text.h"

#include "ir/op_info.h"

void print_value_name(Text *out, const Value *v)
{
    const char *name = v->printed ? v->printed : v->name;
    const Expr *value = v->def && v->def->code == OP_scalar ? op_expr(v->def, ATTR_VALUE) : NULL;
    if (!name && value && expr_is_constant(value))
        text_printf(out, "%lld", (long long)value->constant);
    else if (!name && v->def)
        text_printf(out, "%s(..)", op_info[v->def->code].name);
    else
        text_printf(out, "%%%s", name ? name : "?");
}

/* Returns true of a comparison, which takes no other one as an operand without parentheses. */
static bool is_comparison(ScalarOp op)
{
    return scalar_op_info[op].precedence == scalar_op_info[SCALAR_eq].precedence;
}

void print_expr_within(Text *out, const Expr *e, unsigned precedence)
{
    if (e->kind == EXPR_CONSTANT) {
        text_printf(out, "%lld", (long long)e->constant);
        return;
    }
    if (e->kind == EXPR_VALUE) {
        print_value_name(out, e->value);
        return;
    }
    const ScalarOpInfo *op = &scalar_op_info[e->op];
    if (!op->precedence) {
        text_printf(out, "%s(", op->spelling);
        print_expr_within(out, e->a, 0);
        text_add(out, ", ");
        print_expr_within(out, e->b, 0);
        text_add(out, ")");
        return;
    }
    bool parentheses = op->precedence < precedence;
    text_add(out, parentheses ? "(" : "");
    if (op->operands == 1) {
        text_printf(out, "%s%s", op->spelling, e->op == SCALAR_not ? " " : "");
        print_expr_within(out, e->a, op->precedence);
    } else {
        print_expr_within(out, e->a, op->precedence + is_comparison(e->op));
        text_printf(out, " %s ", op->spelling);
        print_expr_within(out, e->b, op->precedence + 1);
    }
    text_add(out, parentheses ? ")" : "");
}

void print_expr(Text *out, const Expr *e)
{
    print_expr_within(out, e, 0);
}

void print_exprs(Text *out, const Expr *const *exprs, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        text_add(out, i ? ", " : "");
        print_expr(out, exprs[i]);
    }
}

/* Storage order and deferred scales. */
static void print_form(Text *out, const Type *t)
{
    const Scaling *s = t->scaling;
    if (t->packed)
        text_printf(out, " packed(%s)", dtype_name(t->packed));
    if (!s)
        return;
    text_add(out, " scaled(");
    if (s->count > 1)
        text_printf(out, "%u: ", s->dim);
    for (unsigned i = 0; i < s->count; i++)
        text_printf(out, "%s%d", i ? ", " : "", s->exponents[i]);
    text_add(out, ")");
}

void print_type(Text *out, const Type *t)
{
    if (t->kind == TYPE_SCALAR || t->kind == TYPE_PTR) {
        text_printf(out, t->kind == TYPE_PTR ? "ptr<%s>" : "%s", dtype_name(t->dtype));
        return;
    }
    if (t->kind == TYPE_MBARRIER) {
        text_printf(out, "mbarrier[%lld]", (long long)type_extent(t, 0));
        return;
    }
    text_add(out, dtype_name(t->dtype));
    print_form(out, t);
    text_add(out, "[");
    print_exprs(out, t->extents, t->rank);
    text_add(out, t->kind == TYPE_REG ? "]" : t->kind == TYPE_SHARED ? "] shared" : "] global");
    if (t->layout) {
        text_add(out, " @ ");
        layout_print(out, t->layout);
    }
    text_add(out, t->pending ? " pending" : "");
    if (t->strides) {
        text_add(out, " strides(");
        print_exprs(out, t->strides, t->rank);
        text_add(out, ")");
    }
    if (t->swizzle_open)
        text_add(out, " swizzle(auto)");
    if (t->swizzle.bits)
        text_printf(out, " swizzle(%d, %d, %d)", t->swizzle.bits, t->swizzle.base,
                    t->swizzle.shift);
}

const char *expr_text(Module *m, const Expr *e)
{
    Text text;
    text_init(&text, &m->arena);
    print_expr(&text, e);
    return text_string(&text);
}

const char *type_text(Module *m, const Type *t)
{
    Text text;
    text_init(&text, &m->arena);
    print_type(&text, t);
    return text_string(&text);
}

const char *value_text(Module *m, const Value *v)
{
    const Attr *init = v->def ? op_attr(v->def, ATTR_INIT) : NULL;
    Text number;
    text_init(&number, &m->arena);
    if (!v->name && init) {
        constant_print(&number, init->number, dtype_is_float(v->type->dtype));
        return arena_printf(&m->arena, "the tensor of %s", text_string(&number));
    }
    if (!v->name && v->def)
        return arena_printf(&m->arena, "the result of %s", op_info[v->def->code].name);
    return arena_printf(&m->arena, "%%%s", v->name ? v->name : "?");
}
