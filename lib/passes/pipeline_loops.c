/* Loops marked `pipelined(stages)`: their copies to shared memory start stages - 1
 * iterations before the iteration that computes with them. What is copied becomes a ring of
 * tensors; one wait and one barrier end each iteration.
 *
 *   for %i in 0 .. %n pipelined(3) {            %s = allocate_shared : f16[3, 64]
 *     copy_async %g[%i, 0], %s[0] ..            for %i in 0 .. 2 {
 *     copy_async_commit_group                     copy_async %g[%i, 0], %s[%i, 0] ..
 *     copy_async_wait_group 0                     copy_async_commit_group
 *     synchronize                               }
 *     A(%s[0])                                  copy_async_wait_group 1
 *     synchronize                               synchronize
 *   }                                     =>    for %i in 0 .. %n {
 *                                                 copy_async %g[%i + 2, 0],
 *                                                            %s[(%i + 2) mod 3, 0] ..
 *                                                 copy_async_commit_group
 *                                                 A(%s[%i mod 3, 0])
 *                                                 copy_async_wait_group 1
 *                                                 synchronize
 *                                               }
 *                                               copy_async_wait_group 0
 *
 * An iteration's copies go into the tensor that the iteration before has used: its last
 * barrier lies between. They come first in the iteration and have all of it to end.
 * Groups and tiles have one number: when iteration i ends, groups 0 .. i + stages - 1 exist,
 * and all but the newest stages - 2 have ended, so tile i + 1 is there.
 *
 * The last iterations copy tiles that do not exist. Where these lie outside of their views
 * (a view of %n rows above) they read nothing, and nobody reads the zeros. Where they may not,
 * or where what they are made from may fail, an `if` holds them back, and only the groups
 * stay, which waits count. */
#include "passes/pass.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "passes/pipeline_rewrite.h"
#include "passes/report.h"
#include "passes/unroll_loops.h"
#include "scalar/facts.h"

#define SAY(m, loc, name, ...) REMARK_AT((m)->remarks, (m)->diag, loc, name, __VA_ARGS__)

/* ---- expressions ------------------------------------------------------------- */

/* The index of iteration `n`. */
static const Expr *index_of(const Rewrite *r, const Expr *n)
{
    const Expr *distance = rewrite_apply(r, SCALAR_mul, n, r->step);
    bool from_zero = expr_is_constant(r->lower) && !r->lower->constant;
    return from_zero ? distance : rewrite_apply(r, SCALAR_add, distance, r->lower);
}

static const Expr *is_below_upper(const Rewrite *r, const Expr *index)
{
    return rewrite_apply(r, SCALAR_lt, index, r->upper);
}

/* The guard of the copies that are `ahead` iterations before their own: i + ahead * step < upper, or,
 * where that sum may leave 64 bits, ahead * step < upper - i, whose difference is at least 1 in the
 * loop. */
static const Expr *is_inside_after(const Rewrite *r, const Expr *i, int64_t ahead)
{
    const Expr *later = index_after(r, i, ahead);
    if (!later || expr_never_fails(later))
        return is_below_upper(r, later);
    const Expr *distance = rewrite_apply(r, SCALAR_mul, rewrite_constant(r, ahead), r->step);
    return rewrite_apply(r, SCALAR_lt, distance, rewrite_apply(r, SCALAR_sub, r->upper, i));
}

/* Returns true when everything above exists: not when nested very deeply. */
static bool expressions_exist(const Rewrite *r)
{
    const Expr *i = expr_value(&r->m->exprs, for_index(r->loop));
    return is_below_upper(r, index_of(r, i)) && is_below_upper(r, r->lower) &&
           is_inside_after(r, i, r->stages - 1) && slot_after(r, i, r->stages - 1);
}

/* Returns true when no number of the new loop leaves 64 bits, as one may where bounds are near 2^63:
 * the distance of two indices, the guards of the first iterations, and of those in the loop. */
static bool numbers_fit(const Rewrite *r)
{
    int64_t most;
    const Expr *ahead = rewrite_apply(r, SCALAR_mul, rewrite_constant(r, r->stages - 1), r->step);
    const Expr *last = index_of(r, rewrite_constant(r, r->stages - 2));
    if (__builtin_sub_overflow(facts_of_expr(r->upper).max, facts_of_expr(r->lower).min, &most))
        return false;
    return r->plan.mbarrier || !r->plan.guarded ||
           ((r->stages == 2 || (last && expr_never_fails(last))) && ahead && expr_never_fails(ahead));
}

/* ---- copies --------------------------------------------------------------------- */

/* The region of ops that an `if` of the condition guards; `into` itself without one. */
static Region *build_guard(const Rewrite *r, const Expr *condition, Region *into, Op *before)
{
    if (!r->plan.guarded)
        return into;
    Attr cond = {.kind = ATTR_COND, .expr = condition};
    Op *op = build_op(r->m, OP_if, r->loop->loc, NULL, 0, &cond, 1);
    for (int i = 0; i < 2; i++) {
        Region *branch = build_region(r->program, op);
        build_op_region(r->m, op, branch);
        op_insert(branch, build_op(r->m, OP_yield, op->loc, NULL, 0, NULL, 0), NULL);
    }
    op_insert(into, op, before);
    return op->regions[0];
}

static void insert_wait(const Rewrite *r, int64_t pending, Region *into, Op *before)
{
    Attr attr = {.kind = ATTR_NUMBER, .expr = rewrite_constant(r, pending)};
    op_insert(into, build_op(r->m, OP_copy_async_wait_group, r->loop->loc, NULL, 0, &attr, 1),
              before);
}

/* The copies of one iteration, which there is under the condition `exists`, into `into` before
 * `before`, and their group. */
static void insert_copies(const Rewrite *r, const Expr *index, const Expr *exists, const Expr *slot,
                          Region *into, Op *before)
{
    Ahead a = {r, index, slot};
    Region *region = build_guard(r, exists, into, before);
    Op *place = region == into ? before : region->first;
    insert_early(&a, region, place);
    insert_plain(r, OP_copy_async_commit_group, into, before);
}

/* ---- the new loop ------------------------------------------------------------------ */

static void build_prologue(const Rewrite *r)
{
    Region *around = r->loop->parent;
    const Expr *zero = rewrite_constant(r, 0), *iterations = rewrite_constant(r, r->stages - 1);
    if (r->stages == 2) {
        insert_copies(r, r->lower, is_below_upper(r, r->lower), zero, around, r->loop);
    } else {
        Value *old = for_index(r->loop);
        Attr bounds[] = {{.kind = ATTR_LOWER, .expr = zero},
                         {.kind = ATTR_UPPER, .expr = iterations}};
        Op *op = build_op(r->m, OP_for, r->loop->loc, NULL, 0, bounds, 2);
        Region *body = build_region(r->program, op);
        build_op_region(r->m, op, body);
        Value *iteration = build_region_argument(body, old->name, old->loc, old->type);
        const Expr *n = expr_value(&r->m->exprs, iteration);
        const Expr *index = index_of(r, n);
        insert_copies(r, index, is_below_upper(r, index), n, body, NULL);
        insert_plain(r, OP_yield, body, NULL);
        op_insert(around, op, r->loop);
    }
    insert_wait(r, r->stages - 2, around, r->loop);
    insert_plain(r, OP_synchronize, around, r->loop);
}

/* Leaves the rest of the body, which computes; the copies of a later iteration come
 * before it. */
static void build_body(Rewrite *r)
{
    Region *body = r->loop->regions[0];
    const Expr *i = expr_value(&r->m->exprs, for_index(r->loop));
    int64_t ahead = r->stages - 1;
    for (uint32_t k = 0; k < r->plan.d.op_count; k++) {
        Op *op = r->plan.d.ops[k];
        bool moved = op_completion(op) == COMPLETION_GROUP;
        if (op->parent && (r->plan.dropped[k] || moved))
            op_remove(op);
    }
    enter_rings(r, body, slot_after(r, i, 0));
    insert_copies(r, index_after(r, i, ahead), is_inside_after(r, i, ahead), slot_after(r, i, ahead),
                  body, body->first);
    insert_wait(r, r->stages - 2, body, region_yield(body));
    insert_plain(r, OP_synchronize, body, region_yield(body));
}

/* Zeros may still be in flight. Where the loop comes again, its first copies must not
 * meet them. */
static void build_drain(const Rewrite *r)
{
    Region *around = r->loop->parent;
    const Op *outer = around->parent;
    insert_wait(r, 0, around, r->loop->next);
    while (outer && !op_is_loop(outer))
        outer = outer->parent->parent;
    if (outer && !r->plan.guarded)
        insert_plain(r, OP_synchronize, around, r->loop->next->next);
}

static void drop_mark(Op *loop)
{
    unsigned kept = 0;
    for (unsigned i = 0; i < loop->attr_count; i++)
        if (loop->attrs[i].kind != ATTR_PIPELINED)
            loop->attrs[kept++] = loop->attrs[i];
    loop->attr_count = kept;
}

static void rewrite(Rewrite *r)
{
    drop_mark(r->loop);
    if (r->plan.mbarrier) {
        rewrite_roles(r);
        return;
    }
    build_rings(r);
    build_prologue(r);
    build_body(r);
    build_drain(r);
}

/* ---- the pass ------------------------------------------------------------------------ */

static void say_pipelined(const Rewrite *r)
{
    int64_t bytes = rings_bytes(r);
    if (r->plan.mbarrier) {
        SAY(r->m, r->loop->loc, LoopPipelinedByRoles, R(r->stages), R(bytes * r->stages), R(bytes));
        return;
    }
    SAY(r->m, r->loop->loc, LoopPipelined, R(r->stages - 1), R(bytes * r->stages), R(bytes),
        R(r->plan.guarded ? "; an if ends them" : ""));
}

/* Warns of a mark that had no effect: somebody counts on it. */
static void warn(const Rewrite *r)
{
    const PipelinePlan *plan = &r->plan;
    diag_warning(r->m->diag, WARNING_PIPELINE, r->loop->loc,
                 "the loop is not pipelined, although it is marked: %s", plan->why);
    if (plan->cure)
        diag_note(r->m->diag, plan->at ? plan->at->loc : r->loop->loc, "to have it pipelined, %s",
                  plan->cure);
}

/* Returns false, with the reason in the plan, for a loop that has no new form. */
static bool check_new_loop(Rewrite *r)
{
    PipelinePlan *plan = &r->plan;
    if (region_depth(r->loop->regions[0]) >= LIMIT_NESTING) {
        plan->why = "the guards of its copies would be nested too deeply";
    } else if (!rings_fit(r)) {
        plan->why = arena_printf(&r->m->scratch, "its rings would take more than %d bytes of shared "
                                 "memory", LIMIT_SHARED_BYTES);
    } else if (!expressions_exist(r)) {
        plan->why = "its indices leave 64 bits, or are nested too deeply";
    } else if (!numbers_fit(r)) {
        plan->why = "its bounds may be so far apart, or so near 2^63, that a guard of its copies would "
                    "leave 64 bits";
        plan->cure = "bound them: by an argument's `range`, or by the type i32";
    } else {
        return true;
    }
    return false;
}

/* Returns true when the loop was changed. */
static bool pipeline_loop(Program *program, Op *loop)
{
    Module *m = program->module;
    ArenaMark mark = arena_mark(&m->scratch);
    Rewrite r = rewrite_of(loop);
    bool ok = pipeline_plan(m, loop, &r.plan) && check_new_loop(&r);
    if (ok) {
        rewrite(&r);
        say_pipelined(&r);
        stat_add(m, STAT_pipeline_loops_loops, 1);
    } else {
        SAY(m, loop->loc, LoopNotPipelined, R(r.plan.why));
        warn(&r);
    }
    program_clear_data(program);
    arena_reset(&m->scratch, mark);
    return ok;
}

typedef struct Marked {
    Arena *arena;
    Op **loops;
    uint32_t count, capacity;
} Marked;

static bool find_marked(Op *op, void *data)
{
    Marked *marked = data;
    if (op->code == OP_for && for_stages(op) > 1)
        arena_push(marked->arena, marked->loops, marked->count, marked->capacity, op);
    return true;
}

/* Writes the stages of option `stages`; true where they are other ones. */
static bool write_stages(Module *m, Op *loop)
{
    int64_t stages = pass_option(m, PASS_OPTION_pipeline_loops_stages);
    if (!stages || stages == for_stages(loop))
        return false;
    op_set_attr(m, loop, (Attr){.kind = ATTR_PIPELINED, .expr = expr_constant(&m->exprs, stages)});
    return true;
}

/* Inner loops first: an outer one then sees what became of them. */
PassResult pass_pipeline_loops(Program *p)
{
    Marked marked = {.arena = &p->module->scratch};
    ArenaMark mark = arena_mark(marked.arena);
    bool changed = unroll_copying_loops(p);
    region_walk(p->body, find_marked, &marked);
    for (uint32_t i = marked.count; i-- > 0;) {
        changed |= write_stages(p->module, marked.loops[i]);
        if (for_stages(marked.loops[i]) > 1)
            changed |= pipeline_loop(p, marked.loops[i]);
    }
    arena_reset(marked.arena, mark);
    return changed ? PASS_CHANGED : PASS_UNCHANGED;
}
