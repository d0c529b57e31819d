/* A table of the expressions and their parts, of which more and more are found to be equal at
 * both times:
 *
 *     x op y          from x and y
 *     x, from x + y   and y; of products, where y is not 0
 *     x and y         from x * c + y with y in 0 .. c - 1
 *     x               from x / c and x mod c
 *     lower           from the index of `for .. in lower .. step c` with lower in 0 .. c - 1
 *     block           from block / c and cluster_rank, in clusters of c blocks */
#include "scalar/determine.h"

#include "ir/loop.h"
#include "scalar/facts.h"

enum { NODES = 128, EXPANDED = 64 };

typedef struct Node {
    const Expr *expr;
    int a, b;                   /* the nodes of the parts; -1: none */
    bool equal;
} Node;

typedef struct Table {
    Module *m;
    Node nodes[NODES];
    int count;
    unsigned expanded;
    ValueFixed fixed;
    void *data;
    bool full, changed;
} Table;

static const Expr *expanded_value(Value *v, void *data)
{
    Table *t = data;
    if (!v->def || v->def->code != OP_scalar || t->expanded++ >= EXPANDED)
        return NULL;
    return expr_substitute(&t->m->exprs, op_expr(v->def, ATTR_VALUE), expanded_value, t);
}

/* Leaves out factors and divisors of 1, which passes leave out of the body, not of the grid. */
static const Expr *without_ones(Table *t, const Expr *e)
{
    const char *why;
    if (e->kind != EXPR_OP || !e->b)
        return e;
    const Expr *a = without_ones(t, e->a), *b = without_ones(t, e->b);
    bool one = expr_is_constant(b) && b->constant == 1;
    if (one && (e->op == SCALAR_mul || e->op == SCALAR_div || e->op == SCALAR_ceil_div))
        return a;
    const Expr *made = a == e->a && b == e->b ? e : expr_make(&t->m->exprs, e->op, a, b, &why);
    return made ? made : e;
}

static const Expr *expand(Table *t, const Expr *e)
{
    t->expanded = 0;
    return without_ones(t, expr_substitute(&t->m->exprs, e, expanded_value, t));
}

static int find_node(const Table *t, const Expr *e)
{
    int i = t->count;
    while (--i >= 0 && t->nodes[i].expr != e)
        ;
    return i;
}

/* The index that a `for` gives to its body, or NULL. */
static const Op *loop_of_index(const Expr *e)
{
    const Op *op = e->kind == EXPR_VALUE && e->value->region ? e->value->region->parent : NULL;
    return op && op->code == OP_for && for_index(op) == e->value ? op : NULL;
}

/* Adds the expression and its parts; of a loop's index, the lower bound and the step. -1: the
 * table is full. */
static int add_node(Table *t, const Expr *e)
{
    int a = -1, b = -1, known = find_node(t, e);
    const Op *loop = loop_of_index(e);
    if (known >= 0)
        return known;
    if (e->kind == EXPR_OP) {
        a = add_node(t, e->a);
        b = e->b ? add_node(t, e->b) : -1;
        t->full |= a < 0 || (e->b && b < 0);
    } else if (loop && op_expr(loop, ATTR_STEP)) {
        a = add_node(t, expand(t, op_expr(loop, ATTR_LOWER)));
        b = add_node(t, expand(t, op_expr(loop, ATTR_STEP)));
    }
    if (t->full || t->count == NODES) {
        t->full = true;
        return -1;
    }
    bool fixed = e->kind == EXPR_CONSTANT || (e->kind == EXPR_VALUE && t->fixed(e->value, t->data));
    t->nodes[t->count] = (Node){e, a, b, fixed};
    return t->count++;
}

static bool is_equal(const Table *t, int i)
{
    return i >= 0 && t->nodes[i].equal;
}

static void set_equal(Table *t, int i)
{
    t->changed |= i >= 0 && !t->nodes[i].equal;
    if (i >= 0)
        t->nodes[i].equal = true;
}

/* The constant factor of a product or divisor of a quotient, and the other side. */
static int64_t constant_side(const Expr *e, ScalarOp op, const Expr **other)
{
    bool is_op = e->kind == EXPR_OP && e->op == op && expr_is_constant(e->b);
    *other = is_op ? e->a : e;
    return is_op ? e->b->constant : 1;
}

static const Op *op_of_block_index(const Expr *e)
{
    const Op *def = e->kind == EXPR_VALUE ? e->value->def : NULL;
    return def && def->code == OP_block_indices ? def : NULL;
}

/* Returns true for index / c, of the program's blocks in a dimension of which limit * c, or less,
 * is the extent. */
static bool is_below_grid(const Expr *e, const Expr *limit, Table *t)
{
    const Expr *index, *blocks;
    int64_t by = constant_side(e, SCALAR_div, &index);
    const Op *def = op_of_block_index(index);
    if (!def)
        return false;
    const Expr *grid = expand(t, def->parent->program->grid[index->value->index]);
    if (grid == limit)
        return by >= 1;
    int64_t factor = constant_side(grid, SCALAR_mul, &blocks);
    return blocks == limit && factor >= 1 && factor <= by;
}

/* Returns true when the expression is in 0 .. limit - 1, both times. */
static bool is_within(Table *t, const Expr *e, const Expr *limit)
{
    ScalarFacts f = facts_of_expr(e);
    return f.min >= 0 && (f.max < facts_of_expr(limit).min || is_below_grid(e, limit, t));
}

/* x * c + y: finds out x * c and y. */
static void split_sum(Table *t, const Node *sum, int product, int rest)
{
    const Node *p = &t->nodes[product];
    if (!is_equal(t, (int)(sum - t->nodes)) || p->expr->kind != EXPR_OP ||
        p->expr->op != SCALAR_mul)
        return;
    const int factors[] = {p->a, p->b};
    for (unsigned i = 0; i < 2; i++)
        if (is_equal(t, factors[i]) &&
            is_within(t, t->nodes[rest].expr, t->nodes[factors[i]].expr)) {
            set_equal(t, product);
            set_equal(t, rest);
        }
}

/* Finds a part of a sum, difference or product from the whole and the other part. */
static void find_part(Table *t, const Node *whole, int part, int other)
{
    ScalarOp op = whole->expr->op;
    ScalarFacts f = facts_of_expr(t->nodes[other].expr);
    bool undone = op == SCALAR_add || op == SCALAR_sub ||
                  (op == SCALAR_mul && (f.min > 0 || f.max < 0));
    if (undone && whole->equal && is_equal(t, other))
        set_equal(t, part);
}

/* Returns true for an expression that is x mod c where x / c is the quotient. */
static bool is_remainder(const Node *n, const Node *quotient)
{
    const Op *index = op_of_block_index(quotient->expr->a);
    if (n->expr->kind == EXPR_OP)
        return n->expr->op == SCALAR_mod && n->a == quotient->a && n->b == quotient->b;
    if (!index || n->expr->kind != EXPR_VALUE || !n->expr->value->def ||
        n->expr->value->def->code != OP_cluster_rank)
        return false;
    const Program *p = index->parent->program;
    unsigned blocks = p->cluster[quotient->expr->a->value->index];
    const Expr *by = quotient->expr->b;
    return program_blocks(p) == blocks && expr_is_constant(by) && by->constant == blocks;
}

/* Finds x from x / c, this node, and x mod c. */
static void join_quotient(Table *t, const Node *quotient)
{
    if (quotient->expr->op != SCALAR_div || !quotient->equal || !is_equal(t, quotient->b))
        return;
    for (int i = 0; i < t->count; i++) {
        if (t->nodes[i].equal && is_remainder(&t->nodes[i], quotient))
            set_equal(t, quotient->a);
    }
}

static void visit_op(Table *t, int i)
{
    const Node *n = &t->nodes[i];
    if (is_equal(t, n->a) && (n->b < 0 || is_equal(t, n->b)))
        set_equal(t, i);
    if (n->b < 0) {
        if (n->equal && n->expr->op == SCALAR_neg)
            set_equal(t, n->a);
        return;
    }
    find_part(t, n, n->a, n->b);
    find_part(t, n, n->b, n->a);
    join_quotient(t, n);
    if (n->expr->op == SCALAR_add) {
        split_sum(t, n, n->a, n->b);
        split_sum(t, n, n->b, n->a);
    }
}

static void visit_index(Table *t, const Node *index)
{
    if (index->equal && is_equal(t, index->b) &&
        is_within(t, t->nodes[index->a].expr, t->nodes[index->b].expr))
        set_equal(t, index->a);
}

static void visit_all(Table *t)
{
    t->changed = false;
    for (int i = 0; i < t->count; i++)
        if (t->nodes[i].expr->kind == EXPR_OP)
            visit_op(t, i);
        else if (t->nodes[i].a >= 0)
            visit_index(t, &t->nodes[i]);
}

bool exprs_determine(Module *m, const Expr *const *equal, unsigned count, const Expr *goal,
                     ValueFixed fixed, void *data)
{
    Table t = {.m = m, .fixed = fixed, .data = data};
    int target = add_node(&t, expand(&t, goal));
    for (unsigned i = 0; i < count; i++) {
        int n = add_node(&t, expand(&t, equal[i]));
        if (n >= 0)
            t.nodes[n].equal = true;
    }
    do
        visit_all(&t);
    while (t.changed && !t.full);
    return !t.full && is_equal(&t, target);
}
