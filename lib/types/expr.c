/* Hash-consed scalar expressions. */
#include "types/expr.h"

#include "support/limits.h"

#include <assert.h>

static bool expr_equal(const void *x, const void *y)
{
    const Expr *a = x, *b = y;
    return a->kind == b->kind && a->op == b->op && a->constant == b->constant &&
           a->value == b->value && a->a == b->a && a->b == b->b;
}

void expr_table_init(ExprTable *table, Arena *arena)
{
    table->arena = arena;
    intern_init(&table->set, arena, expr_equal);
}

static uint32_t count_nodes(const Expr *e)
{
    uint64_t nodes = 1 + (uint64_t)(e->a ? e->a->nodes : 0) + (e->b ? e->b->nodes : 0);
    return nodes < UINT32_MAX ? (uint32_t)nodes : UINT32_MAX;
}

static const Expr *intern(ExprTable *t, Expr key)
{
    key.nodes = count_nodes(&key);
    uint64_t hash = hash_u64((uint64_t)key.kind, (uint64_t)key.op);
    hash = hash_u64(hash, (uint64_t)key.constant);
    hash = hash_u64(hash, (uint64_t)(uintptr_t)key.value);
    hash = hash_u64(hash, key.a ? key.a->hash : 0);
    hash = hash_u64(hash, key.b ? key.b->hash : 0);
    key.hash = hash;
    const Expr *known = intern_find(&t->set, hash, &key);
    if (known)
        return known;
    const Expr *fresh = arena_copy(t->arena, &key, sizeof key);
    intern_add(&t->set, hash, fresh);
    return fresh;
}

const Expr *expr_constant(ExprTable *t, int64_t value)
{
    return intern(t, (Expr){.kind = EXPR_CONSTANT, .constant = value, .depth = 1});
}

const Expr *expr_value(ExprTable *t, Value *value)
{
    return intern(t, (Expr){.kind = EXPR_VALUE, .value = value, .depth = 1});
}

static const Expr *make_unfolded(ExprTable *t, ScalarOp op, const Expr *a, const Expr *b)
{
    uint32_t depth = b && b->depth > a->depth ? b->depth : a->depth;
    return intern(t, (Expr){.kind = EXPR_OP, .op = op, .a = a, .b = b, .depth = depth + 1});
}

const Expr *expr_make(ExprTable *t, ScalarOp op, const Expr *a, const Expr *b, const char **why)
{
    assert(scalar_op_info[op].operands == (b ? 2 : 1));
    if (expr_is_constant(a) && (!b || expr_is_constant(b))) {
        int64_t folded;
        *why = scalar_apply(op, a->constant, b ? b->constant : 0, &folded);
        return *why ? NULL : expr_constant(t, folded);
    }
    if (b && expr_is_constant(b) && b->constant == 0 &&
        (op == SCALAR_div || op == SCALAR_mod || op == SCALAR_ceil_div)) {
        *why = "division by zero";
        return NULL;
    }
    const Expr *e = make_unfolded(t, op, a, b);
    if (e->depth > LIMIT_DEPTH) {
        *why = "an expression nested deeper than 256";
        return NULL;
    }
    return e;
}

bool expr_visit_values(const Expr *e, bool (*visit)(Value *v, void *data), void *data)
{
    if (e->kind == EXPR_VALUE)
        return visit(e->value, data);
    return e->kind == EXPR_CONSTANT || (expr_visit_values(e->a, visit, data) &&
                                        (!e->b || expr_visit_values(e->b, visit, data)));
}

const Expr *expr_substitute(ExprTable *t, const Expr *e, ExprMap map, void *data)
{
    if (e->kind == EXPR_CONSTANT)
        return e;
    if (e->kind == EXPR_VALUE) {
        const Expr *mapped = map(e->value, data);
        return mapped ? mapped : e;
    }
    const Expr *a = expr_substitute(t, e->a, map, data);
    const Expr *b = e->b ? expr_substitute(t, e->b, map, data) : NULL;
    if (a == e->a && b == e->b)
        return e;
    const char *why;
    const Expr *made = expr_make(t, e->op, a, b, &why);
    return made ? made : make_unfolded(t, e->op, a, b);
}

const char *expr_evaluate(const Expr *e, ExprLookup lookup, void *data, int64_t *out)
{
    if (e->kind == EXPR_CONSTANT) {
        *out = e->constant;
        return NULL;
    }
    if (e->kind == EXPR_VALUE) {
        *out = lookup(e->value, data);
        return NULL;
    }
    int64_t a, b = 0;
    const char *why = expr_evaluate(e->a, lookup, data, &a);
    if (!why && e->b)
        why = expr_evaluate(e->b, lookup, data, &b);
    return why ? why : scalar_apply(e->op, a, b, out);
}
