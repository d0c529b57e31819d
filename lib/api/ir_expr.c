/* Scalar expressions. */
#define _GNU_SOURCE
#include "api/ir_handles.h"

#include "ir/text.h"

#include <string.h>

/* Bounds the tree of an expression that callers build, whose equal parts are one: walks visit
 * each part as often as it stands there. */
enum { NODES = 1 << 12 };

tilus_expr_kind tilus_expr_kind_of(const tilus_expr *expr)
{
    static const tilus_expr_kind kinds[] = {[EXPR_CONSTANT] = TILUS_EXPR_CONSTANT,
                                            [EXPR_VALUE] = TILUS_EXPR_VALUE,
                                            [EXPR_OP] = TILUS_EXPR_OPERATION};
    return expr ? kinds[expr_of(expr)->kind] : TILUS_EXPR_CONSTANT;
}

int64_t tilus_expr_integer(const tilus_expr *expr)
{
    return expr && expr_of(expr)->kind == EXPR_CONSTANT ? expr_of(expr)->constant : 0;
}

tilus_value *tilus_expr_value(const tilus_expr *expr)
{
    return expr ? value_handle(expr_of(expr)->value) : NULL;
}

const char *tilus_expr_operator(const tilus_expr *expr)
{
    return expr && expr_of(expr)->kind == EXPR_OP ? scalar_op_info[expr_of(expr)->op].name : NULL;
}

const tilus_expr *tilus_expr_operand(const tilus_expr *expr, size_t i)
{
    if (!expr || i > 1)
        return NULL;
    return expr_handle(i ? expr_of(expr)->b : expr_of(expr)->a);
}

/* ---- making ------------------------------------------------------------ */

const tilus_expr *tilus_expr_of_integer(tilus_module *module, int64_t integer)
{
    const Expr *e = NULL;
    if (module)
        IR_CALL(module, e, NULL, expr_constant(&module->exprs, integer));
    return expr_handle(e);
}

static const Expr *make_value(Module *m, Value *v)
{
    if (v->type->kind == TYPE_SCALAR)
        return expr_value(&m->exprs, v);
    diag_error(m->diag, v->loc, "an expression of a value that is no scalar: %s",
               type_text(m, v->type));
    return NULL;
}

const tilus_expr *tilus_expr_of_value(tilus_value *value)
{
    const Program *p = ir_value_program(value_of(value));
    const Expr *e = NULL;
    if (p)
        IR_CALL(p->module, e, NULL, make_value(p->module, value_of(value)));
    return expr_handle(e);
}

static bool find_operator(const char *name, unsigned operands, ScalarOp *out)
{
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++)
        if (!strcmp(scalar_op_info[op].name, name) && scalar_op_info[op].operands == operands) {
            *out = op;
            return true;
        }
    return false;
}

static bool refuse_float(Value *v, void *data)
{
    (void)data;
    return !dtype_is_float(v->type->dtype);
}

static bool check_operand(Module *m, const char *name, const Expr *e)
{
    if (!ir_check_exprs(m, (Loc){0}, name, &e, 1))
        return false;
    return expr_visit_values(e, refuse_float, NULL) ||
           diag_error(m->diag, (Loc){0}, "%s of a scalar of floats", name);
}

static const Expr *apply(Module *m, const char *name, const Expr *a, const Expr *b)
{
    ScalarOp op;
    const char *why = NULL;
    if (!find_operator(name, b ? 2 : 1, &op)) {
        diag_error(m->diag, (Loc){0}, "no operator %s of %d operands", name, b ? 2 : 1);
        return NULL;
    }
    if (!check_operand(m, name, a) || (b && !check_operand(m, name, b)))
        return NULL;
    const Expr *e = expr_make(&m->exprs, op, a, b, &why);
    if (e && e->nodes <= NODES)
        return e;
    diag_error(m->diag, (Loc){0}, "%s: %s", name, why ? why : "an expression of more than 4096 "
               "operators and values");
    return NULL;
}

const tilus_expr *tilus_expr_apply(tilus_module *module, const char *name, const tilus_expr *a,
                                   const tilus_expr *b)
{
    const Expr *e = NULL;
    if (module && name && a)
        IR_CALL(module, e, NULL, apply(module, name, expr_of(a), expr_of(b)));
    return expr_handle(e);
}

static char *print_text(Module *m, const Expr *e)
{
    ArenaMark mark = arena_mark(&m->arena);
    char *copy = strdup(expr_text(m, e));
    arena_reset(&m->arena, mark);
    return copy;
}

char *tilus_expr_print(tilus_module *module, const tilus_expr *expr)
{
    char *text = NULL;
    if (module && expr)
        IR_CALL(module, text, NULL, print_text(module, expr_of(expr)));
    return text;
}
