/* Unrolling: a loop marked `unroll(n)` runs n iterations in one; what is left over runs
 * in a loop of its own. `unroll` alone copies all iterations of a loop whose bounds are
 * constant. LLVM cannot cut loops with barriers or tensor core instructions, as it
 * does not know that all threads run the same iterations.
 *
 *   %s = for %i in 0 .. %n unroll(2) iter(%a = %x) { A }
 *     =>
 *   %m = for %i in 0 .. %n / 2 * 2 step 2 iter(%a = %x) { A  %j = scalar %i + 1  A' }
 *   %s = for %i in %n / 2 * 2 .. %n iter(%a = %m) { A }
 *
 * The result is canonicalized. */
#include "passes/unroll_loops.h"

#include "ir/builder.h"
#include "ir/loop.h"
#include "ir/op_access.h"
#include "passes/ops_copy.h"
#include "passes/pass.h"
#include "passes/report.h"
#include "scalar/facts.h"

typedef struct Unroll {
    Module *m;
    int64_t ops;            /* of the program, with those that were copied */
    bool changed;
} Unroll;

/* The plan of one unrolled loop. */
typedef struct Cut {
    const Expr *lower, *upper;
    const Expr *split;      /* where the whole iterations of copies end; NULL: at `upper` */
    int64_t step;
    int64_t copies;         /* of the body in one iteration */
    bool whole;             /* all iterations are copied, and no loop is left */
} Cut;

#define SAY(u, op, name, ...) \
    REMARK_AT((u)->m->remarks, (u)->m->diag, (op)->loc, name, __VA_ARGS__)

/* Says why the loop stays; false. */
static bool missed(Unroll *u, const Op *op, const char *why)
{
    SAY(u, op, LoopNotUnrolled, R(why));
    return false;
}

/* ---- where to cut ------------------------------------------------------------ */

static bool count_op(Op *op, void *data)
{
    (void)op;
    ++*(int64_t *)data;
    return true;
}

/* Returns true when the loop would become too much, or the program; else counts its ops. */
static bool too_large(Unroll *u, const Op *op, int64_t copies)
{
    int64_t ops = 0, most = diag_limit(u->m->diag, LIMIT_ID_UNROLLED);
    int64_t left = diag_limit(u->m->diag, LIMIT_ID_OPERATIONS) - u->ops;
    region_walk(op->regions[0], count_op, &ops);
    if (copies > most / ops)
        return !missed(u, op, arena_printf(&u->m->scratch, "its copies would be more than "
                                           "%lld ops", (long long)most));
    if (copies * ops > left)
        return !missed(u, op, arena_printf(&u->m->scratch, "with its copies the program would "
                                           "be more than %lld ops", (long long)(u->ops + left)));
    u->ops += copies * ops;
    return false;
}

/* op(a, b), or `a` where that is the same. */
static const Expr *make(Module *m, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    bool product = op == SCALAR_mul || op == SCALAR_div || op == SCALAR_ceil_div;
    if (b && expr_is_constant(b) && b->constant == (product ? 1 : 0) && op != SCALAR_max)
        return a;
    return a && b ? expr_make(&m->exprs, op, a, b, &why) : NULL;
}

/* The number of iterations, at least 0; NULL when it may be over 64 bits, or its
 * expression too deep. */
static const Expr *iterations_of(Module *m, const Cut *cut)
{
    ScalarFacts lower = facts_of_expr(cut->lower), upper = facts_of_expr(cut->upper);
    const Expr *end = cut->upper;
    int64_t most;
    if (lower.min < 0 && __builtin_sub_overflow(upper.max, lower.min, &most))
        return NULL;
    if (upper.min < lower.max)
        end = make(m, SCALAR_max, cut->upper, cut->lower);
    return make(m, SCALAR_ceil_div, make(m, SCALAR_sub, end, cut->lower),
                expr_constant(&m->exprs, cut->step));
}

/* Sets `split`, lower + iterations / copies * (copies * step), where iterations are left
 * over. */
static bool find_split(Module *m, Cut *cut)
{
    const Expr *iterations = iterations_of(m, cut);
    int64_t by;
    if (!iterations || __builtin_mul_overflow(cut->copies, cut->step, &by))
        return false;
    if (facts_of_expr(iterations).divisor % cut->copies == 0)
        return true;
    const Expr *whole = make(m, SCALAR_div, iterations, expr_constant(&m->exprs, cut->copies));
    cut->split = make(m, SCALAR_mul, whole, expr_constant(&m->exprs, by));
    if (cut->split && !(expr_is_constant(cut->lower) && cut->lower->constant == 0))
        cut->split = make(m, SCALAR_add, cut->lower, cut->split);
    return cut->split;
}

/* Returns true when the loop can be cut; else a remark says why not. */
static bool find_cut(Unroll *u, const Op *op, Cut *cut)
{
    const Expr *step = op_expr(op, ATTR_STEP), *copies = op_expr(op, ATTR_UNROLL);
    *cut = (Cut){.lower = op_expr(op, ATTR_LOWER), .upper = op_expr(op, ATTR_UPPER), .step = 1};
    if (step && !expr_is_constant(step))
        return missed(u, op, "its step is not a constant");
    cut->step = step ? step->constant : 1;
    int64_t iterations = for_iterations(op);
    if (!copies && iterations < 0)
        return missed(u, op, "its bounds are not constants");
    cut->whole = for_unrolls_all(op);
    int64_t factor = pass_option(u->m, PASS_OPTION_unroll_loops_factor);
    cut->copies = cut->whole ? iterations : factor ? factor : copies->constant;
    if (!cut->whole && !find_split(u->m, cut))
        return missed(u, op, "no expression of 64 bits counts its iterations");
    return !too_large(u, op, cut->copies);
}

/* ---- copies ---------------------------------------------------------------- */

static bool mark_shifted(Op *op, void *data)
{
    (void)data;
    op->shifted = true;
    return true;
}

/* Marks the ops from `first` up to `end`, and those inside. */
static void mark_ops(Op *first, const Op *end)
{
    for (Op *op = first; op != end; op = op->next) {
        op->shifted = true;
        for (unsigned i = 0; i < op->region_count; i++)
            region_walk(op->regions[i], mark_shifted, NULL);
    }
}

/* Copies the body of `loop` once: `index` is its index, `carried` what enters and
 * then what it hands on. */
static void copy_iteration(Module *m, const Op *loop, Region *to, Op *before, Value *index,
                           Value **carried)
{
    const Op *yield = region_yield(loop->regions[0]);
    value_forward(for_index(loop), index);
    for (unsigned i = 0; i < loop->result_count; i++)
        value_forward(loop_carried(loop, i), carried[i]);
    ops_copy(m, loop->regions[0], to, before, false);
    for (unsigned i = 0; i < loop->result_count; i++)
        carried[i] = value_resolve(yield->operands[i]);
}

/* A name for the index `past` after `base`. */
static Value *build_index(Module *m, const Op *loop, Region *to, Op *before, const Expr *base,
                          int64_t past)
{
    const char *why;
    const Expr *e = past ? expr_make(&m->exprs, SCALAR_add, base,
                                     expr_constant(&m->exprs, past), &why) : base;
    const Value *index = for_index(loop);
    Op *op = build_op(m, OP_scalar, loop->loc, NULL, 0,
                      &(Attr){.kind = ATTR_VALUE, .expr = e}, 1);
    op_insert(to, op, before);
    return build_result(m, op, index->name, index->loc, index->type);
}

/* ---- loops --------------------------------------------------------------------- */

static void copy_all_iterations(Module *m, const Cut *cut, Op *loop, Value **carried)
{
    for (int64_t i = 0; i < cut->copies; i++) {
        Value *index = build_index(m, loop, loop->parent, loop, cut->lower, i * cut->step);
        copy_iteration(m, loop, loop->parent, loop, index, carried);
    }
}

/* A loop of `copies` iterations of `loop` in one, before it; `carried` enters, and is
 * then what it gives. */
static void build_loop(Module *m, const Cut *cut, Op *loop, const Expr *lower,
                       const Expr *upper, int64_t copies, Value **carried)
{
    unsigned count = loop->result_count;
    Attr attrs[] = {{.kind = ATTR_LOWER, .expr = lower}, {.kind = ATTR_UPPER, .expr = upper},
                    {.kind = ATTR_STEP, .expr = expr_constant(&m->exprs, copies * cut->step)}};
    bool unit = attrs[2].expr->constant == 1;
    Op *made = build_op(m, OP_for, loop->loc, carried, count, attrs, unit ? 2 : 3);
    Region *body = build_region(loop->parent->program, made);
    build_op_region(m, made, body);
    for (unsigned i = 0; i < loop->regions[0]->arg_count; i++) {
        Value *v = loop->regions[0]->args[i];
        build_region_argument(body, v->name, v->loc, v->type);
    }
    for (unsigned i = 0; i < count; i++)
        carried[i] = loop_carried(made, i);
    const Expr *base = expr_value(&m->exprs, for_index(made));
    copy_iteration(m, loop, body, NULL, for_index(made), carried);
    const Op *own = body->last;
    for (int64_t i = 1; i < copies; i++)
        copy_iteration(m, loop, body, NULL, build_index(m, loop, body, NULL, base, i * cut->step),
                       carried);
    mark_ops(own ? own->next : body->first, NULL);
    op_insert(body, build_op(m, OP_yield, loop->loc, carried, count, NULL, 0), NULL);
    for (unsigned i = 0; i < count; i++) {
        Value *v = loop->results[i];
        carried[i] = build_result(m, made, v->name, v->loc, v->type);
    }
    op_insert(loop->parent, made, loop);
}

static void unroll(Unroll *u, Op *loop)
{
    Cut cut;
    if (!find_cut(u, loop, &cut))
        return;
    Value **carried = arena_array(&u->m->arena, Value *, loop->result_count);
    for (unsigned i = 0; i < loop->result_count; i++)
        carried[i] = loop->operands[i];
    if (cut.whole)
        copy_all_iterations(u->m, &cut, loop, carried);
    else
        build_loop(u->m, &cut, loop, cut.lower, cut.split ? cut.split : cut.upper, cut.copies,
                   carried);
    if (cut.split)
        build_loop(u->m, &cut, loop, cut.split, cut.upper, 1, carried);
    for (unsigned i = 0; i < loop->result_count; i++)
        value_forward(loop->results[i], carried[i]);
    op_remove(loop);
    if (cut.whole)
        SAY(u, loop, LoopUnrolledWhole, R(cut.copies));
    else
        SAY(u, loop, LoopUnrolled, R(cut.copies));
    stat_add(u->m, STAT_unroll_loops_loops, 1);
    stat_add(u->m, STAT_unroll_loops_copies, (uint64_t)cut.copies);
    u->changed = true;
}

/* Returns true for a loop that is to be copied: `unroll(1)` asks for the loop as it is. */
static bool wants_copies(const Op *op)
{
    const Expr *copies = op_expr(op, ATTR_UNROLL);
    return op->code == OP_for && op_attr(op, ATTR_UNROLL) && !(copies && copies->constant == 1);
}

/* Inner loops come first, so that copies of them are unrolled already. */
static void unroll_region(Unroll *u, Region *r)
{
    for (Op *op = r->first, *next; op; op = next) {
        next = op->next;
        diag_check_time(u->m->diag, op->loc);
        op_resolve(u->m, op);
        for (unsigned i = 0; i < op->region_count; i++)
            unroll_region(u, op->regions[i]);
        if (wants_copies(op))
            unroll(u, op);
    }
}

/* ---- pipelined loops --------------------------------------------------------------- */

static bool goes_on_without_copy(Op *op, void *data)
{
    OpAccess written;
    (void)data;
    return !op_is_async(op) || !op_access_written(op, &written) ||
           written.tile.memory->type->kind != TYPE_SHARED;
}

/* Returns true when a loop of `r` that is unrolled whole copies to shared memory. */
static bool has_copying_loop(const Region *r)
{
    for (const Op *op = r->first; op; op = op->next)
        if (wants_copies(op) && for_unrolls_all(op) &&
            !region_walk(op->regions[0], goes_on_without_copy, NULL))
            return true;
    return false;
}

static bool unroll_in_pipelined(Op *op, void *data)
{
    if (op->code == OP_for && for_stages(op) > 1 && has_copying_loop(op->regions[0]))
        unroll_region(data, op->regions[0]);
    return true;
}

bool unroll_copying_loops(Program *p)
{
    Unroll u = {.m = p->module};
    ArenaMark mark = arena_mark(&u.m->scratch);
    region_walk(p->body, count_op, &u.ops);
    region_walk(p->body, unroll_in_pipelined, &u);
    arena_reset(&u.m->scratch, mark);
    program_clear_data(p);
    if (u.changed)
        pass_canonicalize(p);
    return u.changed;
}

/* ---- the pass ------------------------------------------------------------------------ */

static bool is_unmarked(Op *op, void *data)
{
    (void)data;
    return !wants_copies(op);
}

PassResult pass_unroll_loops(Program *p)
{
    Unroll u = {.m = p->module};
    if (region_walk(p->body, is_unmarked, NULL))
        return PASS_UNCHANGED;
    ArenaMark mark = arena_mark(&u.m->scratch);
    region_walk(p->body, count_op, &u.ops);
    unroll_region(&u, p->body);
    arena_reset(&u.m->scratch, mark);
    program_clear_data(p);
    if (!u.changed)
        return PASS_UNCHANGED;
    pass_canonicalize(p);
    return PASS_CHANGED;
}
