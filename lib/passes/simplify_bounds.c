/* Takes bounds checks out of loops, in two ways. In dimensions that the loop does not move
 * along, a condition, the same for the whole block, tells blocks at the edge from those
 * inside, whose loop is a copy that needs no such checks (lib/scalar/conditions.h).
 *
 *   for %i in 0 .. %n {                      if %bi * 16 <= %m - 16 {
 *     %x = load_global %g[%bi * 16, %i] ..     for %i in 0 .. %n { .. }  rows proved
 *   }                                   =>   } else {
 *                                              for %i in 0 .. %n { .. }
 *                                            }
 *
 * In dimensions that it does move along, a loop ends where its tiles begin to leave the
 * view, and one for the iterations that are left follows.
 *
 *   for %i in 0 .. ceil_div(%n, 16) {        for %i in 0 .. %n / 16 {
 *     %x = load_global %g[%i * 16] ..          %x = load_global %g[%i * 16] ..    is proved
 *   }                                   =>   }
 *                                            for %i in max(%n / 16, 0) .. ceil_div(%n, 16) {
 *                                              %x = load_global %g[%i * 16] ..
 *                                            }
 *
 * A loop marked `pipelined` stays until pipeline-loops has run: both copies would use its
 * tensors, which cannot become two rings. */
#include "ir/builder.h"
#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "passes/ops_copy.h"
#include "passes/report.h"
#include "scalar/facts.h"
#include "scalar/linear.h"
#include "select/access.h"

enum {
    CONDITIONS = 8,         /* of one loop */
    FEW_ROUNDS = 8,         /* this many cost less than their copy */
    SCALARS = 16            /* ops that an offset is followed through */
};

typedef struct Split {
    Module *m;
    Op *loop;
    const Expr *conditions[CONDITIONS];
    unsigned count;
    unsigned checks;        /* that they save: pairs of an access and a dimension */
    const Expr *end;        /* of the iterations whose tiles are inside; NULL: not known */
    unsigned end_checks;    /* that these iterations save */
    unsigned scalars;
    int64_t ops;
    bool allocates;
} Split;

#define SAY(m, op, name, ...) REMARK_AT((m)->remarks, (m)->diag, (op)->loc, name, __VA_ARGS__)

/* ---- conditions --------------------------------------------------------------- */

static bool is_inside(const Region *r, const Op *loop)
{
    for (; r && r->parent; r = r->parent->parent)
        if (r->parent == loop)
            return true;
    return false;
}

static bool is_outer(Value *v, void *data)
{
    const Region *r = v->def ? v->def->parent : v->region;
    return !r || !is_inside(r, data);
}

/* `scalar` ops of the loop become their expressions. */
static const Expr *expand_leaf(Value *v, void *data)
{
    Split *s = data;
    if (is_outer(v, s->loop) || !v->def || v->def->code != OP_scalar ||
        s->scalars++ >= SCALARS)
        return NULL;
    return expr_substitute(&s->m->exprs, op_expr(v->def, ATTR_VALUE), expand_leaf, s);
}

/* a <= b, a new condition of the loop if it says anything; false when it cannot be one: it
 * is evaluated where the access may not be. */
static bool add_condition(Split *s, const Expr *a, const Expr *b)
{
    const char *why;
    if (facts_of_expr(a).max <= facts_of_expr(b).min)
        return true;
    const Expr *cond = expr_make(&s->m->exprs, SCALAR_le, a, b, &why);
    if (!cond || expr_is_constant(cond) || !expr_never_fails(cond) ||
        !expr_visit_values(cond, is_outer, s->loop))
        return false;
    for (unsigned i = 0; i < s->count; i++)
        if (s->conditions[i] == cond)
            return true;
    if (s->count == CONDITIONS)
        return false;
    s->conditions[s->count++] = cond;
    return true;
}

/* The conditions under which the tile stays inside dimension `d` of its view. */
static void add_dimension(Split *s, const MemoryTile *t, unsigned d)
{
    const char *why;
    int dim = memory_tile_find(t, d);
    unsigned before = s->count;
    int64_t span = dim < 0 ? 1 : t->extents[dim];
    const Expr *offset = expr_substitute(&s->m->exprs, t->offsets->exprs[d], expand_leaf, s);
    const Expr *last = expr_make(&s->m->exprs, SCALAR_sub, t->memory->type->extents[d],
                                 expr_constant(&s->m->exprs, span), &why);
    if (last && add_condition(s, expr_constant(&s->m->exprs, 0), offset) &&
        add_condition(s, offset, last))
        s->checks++;
    else
        s->count = before;
}

static const Expr *make(const Split *s, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    return a && b ? expr_make(&s->m->exprs, op, a, b, &why) : NULL;
}

/* The iterations below the result keep a tile at `c` times the index and at most `rest` more,
 * of `span` elements, inside the extent. */
static const Expr *inner_iterations(const Split *s, const Expr *extent, int64_t c,
                                    int64_t rest, int64_t span)
{
    int64_t taken;
    if (__builtin_add_overflow(rest, span, &taken) || __builtin_sub_overflow(taken, c, &taken))
        return NULL;
    const Expr *sum = taken ? make(s, SCALAR_sub, extent, expr_constant(&s->m->exprs, taken))
                            : extent;
    return c == 1 ? sum : make(s, SCALAR_div, sum, expr_constant(&s->m->exprs, c));
}

/* Lowers the end of the loop so that the tile stays inside dimension `d` of its view. */
static void add_end(Split *s, const MemoryTile *t, unsigned d)
{
    const Expr *index = expr_value(&s->m->exprs, for_index(s->loop));
    const Expr *offset = expr_substitute(&s->m->exprs, t->offsets->exprs[d], expand_leaf, s);
    const Expr *extent = t->memory->type->extents[d];
    int dim = memory_tile_find(t, d);
    int64_t min, max;
    LinearSum sum = {.count = 0};
    if (!linear_add(&sum, offset, 1))
        return;
    unsigned at = 0;
    while (at < sum.count && sum.terms[at].leaf != index)
        at++;
    if (at == sum.count || sum.terms[at].factor < 1 || !linear_range(&sum, at, &min, &max) ||
        min < 0 || !expr_visit_values(extent, is_outer, s->loop))
        return;
    const Expr *end = inner_iterations(s, extent, sum.terms[at].factor, max,
                                       dim < 0 ? 1 : t->extents[dim]);
    const Expr *both = s->end && end != s->end ? make(s, SCALAR_min, s->end, end) : end;
    if (!both || !expr_never_fails(both))
        return;
    s->end = both;
    s->end_checks++;
}

static void add_checks(Split *s, const Op *op, const MemoryTile *t)
{
    uint32_t checked = access_checked_dims(op, t);
    for (unsigned d = 0; checked >> d; d++)
        if (checked >> d & 1 && !memory_tile_is_indexed(t, d)) {
            add_dimension(s, t, d);
            add_end(s, t, d);
        }
}

/* Adds the checks of a tile; of an indexed one, those of its other dimensions. */
static void add_tile_checks(Split *s, const Op *op, const OpAccess *access)
{
    bool has_source = op_info[op->code].attrs & op_attr_bit(ATTR_SOURCE_OFFSETS);
    MemoryTile t = !access->data_dependent ? access->tile
                   : has_source            ? op_source_tile(op)
                                           : op_memory_tile(op);
    add_checks(s, op, &t);
}

static bool visit_op(Op *op, void *data)
{
    Split *s = data;
    s->ops++;
    s->allocates |= op_info[op->code].effect == EFFECT_ALLOC &&
                    op->code != OP_allocate_register;
    if (!(op_info[op->code].attrs & op_attr_bit(ATTR_CHECKED)))
        return true;
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].tile.memory->type->kind == TYPE_GLOBAL)
            add_tile_checks(s, op, &accesses[i]);
    return true;
}

static const Expr *conjunction(const Split *s)
{
    const char *why;
    const Expr *all = s->conditions[0];
    for (unsigned i = 1; i < s->count; i++)
        all = expr_make(&s->m->exprs, SCALAR_and, all, s->conditions[i], &why);
    return all;
}

/* ---- splitting ---------------------------------------------------------------- */

static void build_yield(Split *s, Region *r)
{
    unsigned count = s->loop->result_count;
    Value **yielded = arena_array(&s->m->arena, Value *, count);
    for (unsigned i = 0; i < count; i++)
        yielded[i] = value_resolve(s->loop->results[i]);
    op_insert(r, build_op(s->m, OP_yield, s->loop->loc, yielded, count, NULL, 0), NULL);
}

static bool resolve_op(Op *op, void *data)
{
    op_resolve(data, op);
    return true;
}

/* Gives all ops after `op` the values that its are forwarded to. */
static void resolve_after(Module *m, const Op *op)
{
    for (Op *next = op->next; next; next = next->next) {
        op_resolve(m, next);
        for (unsigned i = 0; i < next->region_count; i++)
            region_walk(next->regions[i], resolve_op, m);
    }
}

/* Returns the copy of the loop for blocks inside. */
static Op *split_loop(Split *s)
{
    Module *m = s->m;
    Op *loop = s->loop;
    Program *p = loop->parent->program;
    Attr cond = {.kind = ATTR_COND, .expr = conjunction(s)};
    Op *branch = build_op(m, OP_if, loop->loc, NULL, 0, &cond, 1);
    Region *inside = build_region(p, branch), *edge = build_region(p, branch);
    build_op_region(m, branch, inside);
    build_op_region(m, branch, edge);
    op_insert(loop->parent, branch, loop);
    op_copy(m, loop, inside, NULL);
    build_yield(s, inside);
    program_clear_data(p);
    op_remove(loop);
    op_insert(edge, loop, NULL);
    build_yield(s, edge);
    for (unsigned i = 0; i < loop->result_count; i++) {
        Value *v = loop->results[i];
        value_forward(v, build_result(m, branch, v->name, v->loc, v->type));
    }
    resolve_after(m, branch);
    program_clear_data(p);
    return inside->first;
}

/* The upper bound of the iterations inside: the end, but not past the loop's own. */
static const Expr *inner_upper(const Split *s)
{
    const Expr *upper = op_expr(s->loop, ATTR_UPPER), *end = s->end;
    bool not_past = end == upper ||
                    (end->kind == EXPR_OP && upper->kind == EXPR_OP && end->op == SCALAR_div &&
                     upper->op == SCALAR_ceil_div && end->a == upper->a && end->b == upper->b);
    return not_past ? end : make(s, SCALAR_min, upper, end);
}

/* The first index that is not below `upper`, of a loop from 0 on. */
static const Expr *rest_lower(const Split *s, const Expr *upper)
{
    const Expr *step = op_expr(s->loop, ATTR_STEP);
    const Expr *from = make(s, SCALAR_max, upper, expr_constant(&s->m->exprs, 0));
    if (!step || step->constant == 1)
        return from;
    return make(s, SCALAR_mul, make(s, SCALAR_ceil_div, from, step), step);
}

/* Returns true when the loop was cut in two, a copy for the iterations inside and itself
 * for the rest. */
static bool cut_loop(Split *s)
{
    Module *m = s->m;
    Op *loop = s->loop;
    const Expr *lower = op_expr(loop, ATTR_LOWER), *step = op_expr(loop, ATTR_STEP);
    if (!s->end || !expr_is_constant(lower) || lower->constant != 0 ||
        (step && !expr_is_constant(step)))
        return false;
    const Expr *upper = inner_upper(s), *rest = upper ? rest_lower(s, upper) : NULL;
    if (!rest || !expr_never_fails(rest))
        return false;
    op_copy(m, loop, loop->parent, loop);
    program_clear_data(loop->parent->program);
    Op *inside = loop->prev;
    op_set_attr(m, inside, (Attr){.kind = ATTR_UPPER, .expr = upper});
    op_set_attr(m, loop, (Attr){.kind = ATTR_LOWER, .expr = rest});
    for (unsigned i = 0; i < loop->result_count; i++)
        loop->operands[i] = inside->results[i];
    SAY(m, loop, LoopCut, R(expr_text(m, upper)), R(s->end_checks));
    stat_add(m, STAT_simplify_bounds_cuts, 1);
    stat_add(m, STAT_simplify_bounds_checks, s->end_checks);
    return true;
}

/* ---- the pass ----------------------------------------------------------------- */

/* Tells whether the loop's bounds leave few iterations, if any. Of a loop of one canonicalize
 * writes its index out in both copies, of which only one runs: check-hazards, which knows no
 * correlation of the two, would take them for a race. */
static bool has_few_iterations(const Op *loop)
{
    const Expr *step = op_expr(loop, ATTR_STEP);
    int64_t most;
    return !__builtin_sub_overflow(facts_of_expr(op_expr(loop, ATTR_UPPER)).max,
                                   facts_of_expr(op_expr(loop, ATTR_LOWER)).min, &most) &&
           most / (step && expr_is_constant(step) ? step->constant : 1) <= FEW_ROUNDS;
}

/* Why a loop with conditions is not worth two copies, or cannot have them; or NULL. */
static const char *obstacle(const Split *s)
{
    if (for_stages(s->loop) > 1)
        return "it is marked pipelined; its copies run ahead first";
    if (for_unrolls_all(s->loop))
        return "it is marked unroll; its copies have constant indices";
    if (s->allocates)
        return "it allocates memory";
    int64_t most = pass_option(s->m, PASS_OPTION_simplify_bounds_ops);
    if (s->ops > most)
        return arena_printf(&s->m->scratch, "it has more than %lld ops", (long long)most);
    if (op_depth(s->loop) == LIMIT_NESTING)
        return "its copies would be nested too deeply";
    return has_few_iterations(s->loop) ? "it has 8 iterations or less" : NULL;
}

static Split read_loop(Op *loop)
{
    Split s = {.m = loop->parent->program->module, .loop = loop};
    region_walk(loop->regions[0], visit_op, &s);
    return s;
}

/* By a condition; the loop is then the copy for blocks inside. */
static void split_by_condition(Split *s)
{
    SAY(s->m, s->loop, LoopSplit, R(expr_text(s->m, conjunction(s))), R(s->checks));
    stat_add(s->m, STAT_simplify_bounds_splits, 1);
    stat_add(s->m, STAT_simplify_bounds_checks, s->checks);
    s->loop = split_loop(s);
}

/* Returns true when the loop was split. */
static bool try_loop(Op *loop)
{
    Split s = read_loop(loop);
    unsigned checks = s.checks + s.end_checks;
    bool split = s.count > 0;
    if (!split && !s.end)
        return false;
    const char *why = obstacle(&s);
    if (why) {
        SAY(s.m, loop, LoopNotSplit, R(checks), R(why));
        return false;
    }
    if (split) {
        split_by_condition(&s);
        s = read_loop(s.loop);
    }
    return cut_loop(&s) || split;
}

/* The outermost loop that can be split is; loops in it stay as they are. */
static bool split_region(const Region *r)
{
    bool changed = false;
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        diag_check_time(op->parent->program->module->diag, op->loc);
        bool split = op->code == OP_for && try_loop(op);
        for (unsigned i = 0; !split && i < op->region_count; i++)
            changed |= split_region(op->regions[i]);
        changed |= split;
    }
    return changed;
}

PassResult pass_simplify_bounds(Program *p)
{
    return split_region(p->body) ? PASS_CHANGED : PASS_UNCHANGED;
}
