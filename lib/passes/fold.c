/* Folding: expressions are simplified with facts; ops whose result is known
 * give way to it; decided branches and empty loops dissolve.
 *
 *   %y = cast %x : f16   (%x is f16)     =>    %x
 *   %y = view (view %x)                  =>    view %x            reshape, convert_layout, too
 *   neg (neg %x), not (not %x)           =>    %x
 *   %i * 16 mod 16, (%k * 4) / 4         =>    0, %k
 *   0 and %i < 4, %n == %n               =>    0, 1
 *   if 1 { A } else { B }                =>    A
 *   assert 1                             =>    nothing
 *   %j = scalar %i : i64 (%i is i64)     =>    %i
 *   %x = splat 3 : i32[32]               =>    %x = allocate_register 3 : i32[32]
 *   for %i in 4 .. 4 iter(%s = %x)       =>    %x
 *   while %p < 4 iter(%p = %four)        =>    %four    (%four = scalar 4)
 */
#include "ir/builder.h"
#include "ir/loop.h"
#include "ir/op_attrs.h"
#include "ir/part.h"
#include "ir/tile.h"
#include "passes/report.h"
#include "scalar/facts.h"

#include <string.h>

typedef struct Fold {
    Module *m;
    bool changed;
} Fold;

/* Something changed, which `stat` counts. */
static void note_change(Fold *fold, Stat stat)
{
    fold->changed = true;
    stat_add(fold->m, stat, 1);
}

/* ---- expressions ----------------------------------------------------------- */

static bool is_constant(const Expr *e, int64_t value)
{
    return e && expr_is_constant(e) && e->constant == value;
}

/* (x * c) / c, when that is what `a` divided by `b` is. */
static const Expr *cancel_product(const Expr *a, const Expr *b)
{
    if (a->kind != EXPR_OP || a->op != SCALAR_mul || !expr_is_constant(b) || b->constant == 0)
        return NULL;
    return a->a == b ? a->b : a->b == b ? a->a : NULL;
}

static bool is_bool(const Expr *e)
{
    ScalarFacts f = facts_of_expr(e);
    return f.min >= 0 && f.max <= 1;
}

/* Returns the one of two bools that `and` or `or` equals; `ignored` is 1 or 0, which the operator leaves out. */
static const Expr *by_logic(const Expr *a, const Expr *b, int64_t ignored)
{
    if (a == b || is_constant(b, ignored))
        return is_bool(a) ? a : NULL;
    return is_constant(a, ignored) && is_bool(b) ? b : NULL;
}

/* Returns true when `a` compared with itself, or subtracted, gives `*value`. */
static bool is_known_of_equals(ScalarOp op, const Expr *a, int64_t *value)
{
    *value = op == SCALAR_eq || op == SCALAR_le || op == SCALAR_ge;
    bool known = *value || op == SCALAR_ne || op == SCALAR_lt || op == SCALAR_gt || op == SCALAR_sub;
    return known && expr_never_fails(a);
}

/* An operand that equals op(a, b), by the operator's own laws. */
static const Expr *by_law(ScalarOp op, const Expr *a, const Expr *b)
{
    switch (op) {
    case SCALAR_add: return is_constant(a, 0) ? b : is_constant(b, 0) ? a : NULL;
    case SCALAR_sub: return is_constant(b, 0) ? a : NULL;
    case SCALAR_mul: return is_constant(a, 1) ? b : is_constant(b, 1) ? a : NULL;
    case SCALAR_div:
    case SCALAR_ceil_div: return is_constant(b, 1) ? a : cancel_product(a, b);
    case SCALAR_min:
    case SCALAR_max: return a == b ? a : NULL;
    case SCALAR_and: return by_logic(a, b, 1);
    case SCALAR_or: return by_logic(a, b, 0);
    default: return NULL;
    }
}

/* An operand that equals op(a, b), by the operands' ranges. */
static const Expr *by_range(ScalarOp op, const Expr *a, const Expr *b)
{
    ScalarFacts fa = facts_of_expr(a), fb = facts_of_expr(b);
    if (op == SCALAR_mod && expr_is_constant(b) && fa.min >= 0 && fa.max < b->constant)
        return a;
    if (op == SCALAR_min || op == SCALAR_max) {
        if (fa.max <= fb.min)
            return op == SCALAR_min ? a : b;
        if (fb.max <= fa.min)
            return op == SCALAR_min ? b : a;
    }
    return NULL;
}

static const Expr *simplify(Module *m, const Expr *e)
{
    const char *why;
    int64_t value;
    if (e->kind == EXPR_CONSTANT)
        return e;
    ScalarFacts facts = facts_of_expr(e);
    if (facts.min == facts.max)
        return expr_constant(&m->exprs, facts.min);
    if (e->kind == EXPR_VALUE)
        return e;
    const Expr *a = simplify(m, e->a), *b = e->b ? simplify(m, e->b) : NULL;
    if (a == b && is_known_of_equals(e->op, a, &value))
        return expr_constant(&m->exprs, value);
    if (e->op == SCALAR_not && a->kind == EXPR_OP && a->op == SCALAR_not && is_bool(a->a))
        return a->a;
    const Expr *known = b ? by_law(e->op, a, b) : NULL;
    known = b && !known ? by_range(e->op, a, b) : known;
    if (known)
        return known;
    const Expr *made = expr_make(&m->exprs, e->op, a, b, &why);
    return made ? made : e;
}

/* Returns true when the tile, moved to constant `offset` of dimension `dim`, leaves its
 * shared or register tensor, or does not begin at a multiple of a slice of registers. */
static bool leaves_tensor(const Op *op, MemoryTile t, unsigned dim, int64_t offset)
{
    TypeKind kind = t.memory->type->kind;
    if (kind != TYPE_SHARED)
        return kind == TYPE_REG && op->code == OP_slice && !slice_has_offset(op, dim, offset);
    int d = memory_tile_find(&t, dim);
    int64_t extent = d < 0 ? 1 : t.extents[d];
    int64_t last = type_extent(t.memory->type, dim) - extent;
    return offset < 0 || offset > last;
}

/* Returns true when the type of the op's result cannot hold the constant. */
static bool leaves_type(const Op *op, int64_t value)
{
    return (op->code == OP_scalar || op->code == OP_iota || op->code == OP_splat) &&
           !value_holds(op, value);
}

/* Returns true when the verifier refuses `e` in the op: undefined behavior came to
 * light, but maybe in a branch that never runs, so the program stays legal. */
static bool is_refused(const Op *op, AttrKind kind, unsigned i, const Expr *e)
{
    if (!expr_is_constant(e))
        return false;
    switch (kind) {
    case ATTR_STEP: return e->constant < 1;
    case ATTR_STATE: return !semaphore_holds(op, e->constant);
    case ATTR_VALUE: return leaves_type(op, e->constant);
    case ATTR_OFFSETS: return leaves_tensor(op, op_memory_tile(op), i, e->constant);
    case ATTR_SOURCE_OFFSETS: return leaves_tensor(op, op_source_tile(op), i, e->constant);
    case ATTR_ELEMENT: return !mbarrier_has(op, e->constant);
    case ATTR_RANK: return !cluster_has_rank(op->parent->program, e->constant);
    case ATTR_MULTICAST: return !cluster_has_ranks(op->parent->program, e->constant);
    default: return false;
    }
}

/* The i-th expression of an attribute. */
static const Expr *simplify_attr(Fold *fold, const Op *op, AttrKind kind, unsigned i,
                                 const Expr *e)
{
    const Expr *simple = simplify(fold->m, e);
    if (is_refused(op, kind, i, simple))
        return e;
    if (simple != e)
        note_change(fold, STAT_fold_expressions);
    return simple;
}

static void simplify_attrs(Fold *fold, Op *op)
{
    for (unsigned i = 0; i < op->attr_count; i++) {
        Attr *a = &op->attrs[i];
        if (a->expr)
            a->expr = simplify_attr(fold, op, a->kind, 0, a->expr);
        if (!a->exprs)
            continue;
        const Expr **exprs = arena_array(&fold->m->arena, const Expr *, a->count);
        for (unsigned j = 0; j < a->count; j++)
            exprs[j] = simplify_attr(fold, op, a->kind, j, a->exprs[j]);
        a->exprs = exprs;
    }
}

/* ---- ops ---------------------------------------------------------------------- */

/* The op that defines v, if it is a `code`. */
static Op *defined_by(const Value *v, OpCode code)
{
    return v->def && v->def->code == code ? v->def : NULL;
}

/* Folds the cast of a filled tensor into a filled tensor, unless it goes into a storage
 * order: a fill does not give such tensors. */
static bool fold_cast_of_fill(Fold *fold, Op *op)
{
    Op *fill = defined_by(op->operands[0], OP_allocate_register);
    const Attr *init = fill ? op_attr(fill, ATTR_INIT) : NULL;
    DType from = op->operands[0]->type->dtype, to = op->results[0]->type->dtype;
    if (!init || op->results[0]->type->packed)
        return false;
    Attr attr = *init;
    attr.number = constant_decode(to, dtype_cast(to, from, constant_encode(from, init->number)));
    Op *made = build_op(fold->m, OP_allocate_register, op->loc, NULL, 0, &attr, 1);
    Value *old = op->results[0];
    op_insert(op->parent, made, op);
    value_forward(old, build_result(fold->m, made, old->name, old->loc, old->type));
    return true;
}

/* Replaces a splat of a constant by a tensor filled with the number. */
static bool fold_splat(Fold *fold, Op *op)
{
    const Expr *e = op->code == OP_splat ? op_expr(op, ATTR_VALUE) : NULL;
    if (!e || !expr_is_constant(e))
        return false;
    Attr attr = {.kind = ATTR_INIT, .number = constant_of_integer(e->constant)};
    Op *made = build_op(fold->m, OP_allocate_register, op->loc, NULL, 0, &attr, 1);
    Value *old = op->results[0];
    op_insert(op->parent, made, op);
    value_forward(old, build_result(fold->m, made, old->name, old->loc, old->type));
    op_remove(op);
    note_change(fold, STAT_fold_ops);
    return true;
}

/* Returns true when applying the op twice changes nothing: neg makes each NaN the same
 * one, not of a bool makes it 0 or 1. */
static bool is_involution(const Op *op)
{
    DType t = op->results[0]->type->dtype;
    return (op->code == OP_neg && !dtype_has_nan(t)) ||
           (op->code == OP_not && t != DTYPE_bool);
}

/* Replaces a one-result op by a value that equals it; true if it did. */
static bool fold_op(Fold *fold, Op *op)
{
    if (op_info[op->code].effect != EFFECT_PURE || op->operand_count != 1 ||
        op->result_count != 1)
        return false;
    Value *x = op->operands[0], *result = op->results[0];
    Op *inner = x->def;
    bool views = op->code == OP_view || op->code == OP_reshape || op->code == OP_convert_layout;
    bool converts = views || op->code == OP_cast;
    if (converts && x->type == result->type) {
        value_forward(result, x);
    } else if (is_involution(op) && inner && inner->code == op->code) {
        value_forward(result, inner->operands[0]);
    } else if (op->code == OP_cast && fold_cast_of_fill(fold, op)) {
        /* Forwarded there. */
    } else {
        if (views && inner && inner->code == op->code) {
            op->operands[0] = inner->operands[0];
            note_change(fold, STAT_fold_views);
        }
        return false;
    }
    op_remove(op);
    note_change(fold, STAT_fold_ops);
    return true;
}

/* A scalar that is another one of its type; true if it gave way to it. */
static bool fold_scalar(Fold *fold, Op *op)
{
    const Expr *e = op->code == OP_scalar ? op_expr(op, ATTR_VALUE) : NULL;
    if (!e || e->kind != EXPR_VALUE || e->value->type != op->results[0]->type)
        return false;
    value_forward(op->results[0], e->value);
    op_remove(op);
    note_change(fold, STAT_fold_ops);
    return true;
}

/* Moves the ops of `r` before `op`, forwards op's results to what `r` yields,
 * and removes op. */
static void inline_region(Op *op, Region *r)
{
    Op *yield = region_yield(r);
    for (unsigned i = 0; i < op->result_count; i++)
        value_forward(op->results[i], yield->operands[i]);
    op_remove(yield);
    for (Op *inner = r->first, *next; inner; inner = next) {
        next = inner->next;
        op_remove(inner);
        op_insert(op->parent, inner, op);
    }
    op_remove(op);
}

static void fold_if(Fold *fold, Op *op)
{
    const Expr *cond = op_expr(op, ATTR_COND);
    if (!expr_is_constant(cond))
        return;
    inline_region(op, op->regions[cond->constant ? 0 : 1]);
    note_change(fold, STAT_fold_branches);
}

/* A condition that holds needs no check. */
static bool fold_check(Fold *fold, Op *op)
{
    if (op->code != OP_assert && op->code != OP_assume)
        return false;
    const Expr *cond = op_expr(op, ATTR_COND);
    if (!expr_is_constant(cond) || !cond->constant)
        return false;
    op_remove(op);
    note_change(fold, STAT_fold_checks);
    return true;
}

/* Returns the initial value of `v`, which the loop `data` carries. */
static const Expr *initial_value(Value *v, void *data)
{
    const Op *loop = data;
    if (v->region != loop->regions[0])
        return NULL;
    return expr_value(&v->region->program->module->exprs,
                      loop->operands[loop_carried_number(v)]);
}

/* Returns true when a loop runs no iteration. */
static bool never_runs(Fold *fold, Op *op)
{
    if (op->code == OP_while) {
        const Expr *first = expr_substitute(&fold->m->exprs, op_expr(op, ATTR_COND),
                                            initial_value, op);
        ScalarFacts cond = facts_of_expr(first);
        return cond.min == 0 && cond.max == 0;
    }
    return op->code == OP_for && facts_of_expr(op_expr(op, ATTR_UPPER)).max <=
                                     facts_of_expr(op_expr(op, ATTR_LOWER)).min;
}

/* A loop that never runs gives its initial values. */
static bool fold_loop(Fold *fold, Op *op)
{
    if (!never_runs(fold, op))
        return false;
    for (unsigned i = 0; i < op->result_count; i++)
        value_forward(op->results[i], op->operands[i]);
    op_remove(op);
    note_change(fold, STAT_fold_loops);
    return true;
}

/* A carried value that the body hands on unchanged is its initial value. */
static void fold_invariants(Fold *fold, Op *op)
{
    for (unsigned i = op->result_count; i-- > 0;) {
        Value *carried = loop_carried(op, i);
        Value *yielded = region_yield(op->regions[0])->operands[i];
        if (yielded != carried && yielded != op->operands[i])
            continue;
        value_forward(op->results[i], op->operands[i]);
        value_forward(carried, op->operands[i]);
        op_drop_carried(op, i);
        note_change(fold, STAT_fold_carried);
    }
}

static void fold_region(Fold *fold, Region *r);

static void fold_one(Fold *fold, Op *op)
{
    op_resolve(fold->m, op);
    if (op_is_loop(op)) {
        fold_invariants(fold, op);
        op_resolve(fold->m, op);    /* the condition of a while uses what it carries */
    }
    simplify_attrs(fold, op);
    if (fold_op(fold, op) || fold_scalar(fold, op) || fold_splat(fold, op) ||
        fold_check(fold, op) || (op_is_loop(op) && fold_loop(fold, op)))
        return;
    for (unsigned i = 0; i < op->region_count; i++)
        fold_region(fold, op->regions[i]);
    if (op->code == OP_if)
        fold_if(fold, op);
}

static void fold_region(Fold *fold, Region *r)
{
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        diag_check_time(fold->m->diag, op->loc);
        fold_one(fold, op);
    }
}

PassResult pass_fold(Program *p)
{
    Fold fold = {.m = p->module};
    fold_region(&fold, p->body);
    program_clear_data(p);
    return fold.changed ? PASS_CHANGED : PASS_UNCHANGED;
}
