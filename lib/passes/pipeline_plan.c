/* The plan of a pipelined loop: what is copied, the form of the body, the tensors, the
 * order that dependences ask for, the barriers, the end; each step may refuse. */
#include "passes/pipeline_refuse.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "scalar/facts.h"
#include "select/select.h"

enum { GHOST_SCALARS = 16 };

const char *planner_op_text(const Planner *p, const Op *op)
{
    return arena_printf(&p->m->scratch, "%s at %u:%u", op_info[op->code].name, op->loc.line,
                        op->loc.column);
}

const char *planner_value_text(const Planner *p, const Value *v)
{
    return v->name ? arena_printf(&p->m->scratch, "%%%s", v->name) : "the tensor";
}

bool planner_is_copy(const Planner *p, const Op *op)
{
    return op_completion(op) == p->plan->completion;
}

/* Returns true for an op that makes the copies complete: of a group, commit and wait; of an
 * mbarrier, its arrival and wait. */
static bool is_copy_barrier(const Planner *p, const Op *op)
{
    Completion c = p->plan->completion;
    return op_syncs(op, SYNC_COMMIT, c) || op_syncs(op, SYNC_ARRIVE, c) ||
           op_syncs(op, SYNC_WAIT, c);
}

static bool is_copy_into(const Planner *p, const Op *op, const Value *tensor)
{
    OpAccess written;
    return planner_is_copy(p, op) && op_access_written(op, &written) &&
           written.tile.memory == tensor;
}

/* ---- what is copied --------------------------------------------------------- */

static bool has_tensor(const PipelinePlan *plan, const Value *v)
{
    for (uint32_t i = 0; i < plan->tensor_count; i++)
        if (plan->tensors[i] == v)
            return true;
    return false;
}

/* Returns how the loop's copies are complete: where some are in groups, these run ahead. */
static Completion find_completion(const LoopDependences *d)
{
    Completion found = COMPLETION_GROUP;
    for (uint32_t i = 0; i < d->op_count; i++) {
        OpAccess written;
        if (!op_is_async(d->ops[i]) || !op_access_written(d->ops[i], &written) ||
            written.tile.memory->type->kind != TYPE_SHARED)
            continue;
        found = op_completion(d->ops[i]);
        if (found == COMPLETION_GROUP)
            break;
    }
    return found;
}

static void find_copies(Planner *p)
{
    PipelinePlan *plan = p->plan;
    for (uint32_t i = 0; i < plan->d.op_count; i++) {
        const Op *op = plan->d.ops[i];
        OpAccess written;
        if (!planner_is_copy(p, op) || !op_access_written(op, &written))
            continue;
        plan->early[i] = true;
        Value *tensor = memory_source(written.tile.memory);
        if (!has_tensor(plan, tensor))
            arena_push(&p->m->scratch, plan->tensors, plan->tensor_count,
                       plan->tensor_capacity, tensor);
    }
}

static const Op *find_op(const LoopDependences *d, OpCode code)
{
    for (uint32_t i = 0; i < d->op_count; i++)
        if (d->ops[i]->code == code)
            return d->ops[i];
    return NULL;
}

/* A tile that goes through registers would need registers for every stage. */
static bool check_copies(Planner *p)
{
    if (p->plan->tensor_count)
        return true;
    const Op *load = find_op(&p->plan->d, OP_load_global);
    const Op *store = find_op(&p->plan->d, OP_store_shared);
    CURE(p, "copy the tiles to shared memory by copy_async");
    if (!load || !store)
        return REFUSE(p, p->loop, "its body has no copy_async that could run ahead");
    return REFUSE(p, load, "%s and %s keep a tile in registers, which would take as many "
                  "registers for each stage; copy_async would not", planner_op_text(p, load),
                  planner_op_text(p, store));
}

/* ---- the form of the body ----------------------------------------------------- */

static bool waits_for_products(const Op *op)
{
    return op_syncs(op, SYNC_WAIT, COMPLETION_PRODUCT);
}

static bool check_nested(Op *op, void *data)
{
    const Planner *p = data;
    const Effect effect = op_info[op->code].effect;
    bool inside = op->parent != p->loop->regions[0];
    if (inside && (planner_is_copy(p, op) || is_copy_barrier(p, op)))
        return CURE(p, op->parent->parent->code == OP_for
                           ? "give the inner loop constant bounds and mark it unroll"
                           : "move it into the loop's own body"),
               REFUSE(p, op, "%s is inside of another op of its body", planner_op_text(p, op));
    if (effect == EFFECT_BARRIER && !is_copy_barrier(p, op) && op_sync(op) != SYNC_BARRIER &&
        !(p->plan->completion == COMPLETION_MBARRIER && waits_for_products(op)))
        return REFUSE(p, op, "%s orders more than its copies", planner_op_text(p, op));
    if (effect == EFFECT_EXITS && op->code != OP_assert && op->code != OP_assume)
        return REFUSE(p, op, "%s would leave copies in flight", planner_op_text(p, op));
    return true;
}

/* Barriers are for the whole block only in regions that all of it goes through. */
static bool check_form(Planner *p)
{
    for (const Op *op = p->loop->parent->parent; op; op = op->parent->parent)
        if (!op_is_loop(op) && op->code != OP_if)
            return REFUSE(p, op, "it is inside of %s", planner_op_text(p, op));
    return region_walk(p->loop->regions[0], check_nested, p);
}

/* Returns true for an op that reads a number or an index of global memory. */
static bool reads_global(const Op *op)
{
    OpAccess read[ACCESSES_MAX];
    return op_info[op->code].effect == EFFECT_READS && op_accesses(op, read) == 1 &&
           read[0].tile.memory->type->kind == TYPE_GLOBAL;
}

/* Operands of copies must be free to run early, too: pure, or read where the loop does not write
 * (check_edges). */
static bool find_early(Planner *p)
{
    PipelinePlan *plan = p->plan;
    for (uint32_t i = plan->d.edge_count; i-- > 0;) {
        const Dependence *e = &plan->d.edges[i];
        if (e->kind != DEPENDENCE_VALUE || !plan->early[e->to_top] ||
            plan->early[e->from_top] || has_tensor(plan, e->through))
            continue;
        bool fixed = op_info[e->from->code].effect == EFFECT_PURE || reads_global(e->from);
        if (e->distance || !fixed ||
            e->from != plan->d.ops[e->from_top])
            return REFUSE(p, e->to, "%s needs the result of %s, which cannot run ahead",
                          planner_op_text(p, e->to), planner_op_text(p, e->from));
        plan->early[e->from_top] = true;
        i = plan->d.edge_count;
    }
    return true;
}

/* ---- tensors ------------------------------------------------------------------- */

typedef struct UseCheck {
    Planner *p;
    const Value *tensor;
} UseCheck;

static bool op_is_inside(const Op *op, const Op *loop)
{
    while (op && op != loop)
        op = op->parent->parent;
    return op == loop;
}

/* Returns true when `op` stands before the loop, in its region or in one around it. */
static bool stands_before(const Op *op, const Op *loop)
{
    while (loop && loop->parent != op->parent)
        loop = loop->parent->parent;
    while (loop && op && op != loop)
        op = op->next;
    return loop && op;
}

static bool is_accessed(const Op *op, unsigned operand)
{
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].operand == operand)
            return true;
    return false;
}

/* Returns true for a product of the loop's own body after which all are waited for. */
static bool is_retired(const Planner *p, const Op *op)
{
    bool found = false;
    if (p->plan->completion != COMPLETION_MBARRIER || op->parent != p->loop->regions[0])
        return false;
    for (; op; op = op->next)
        found |= waits_for_products(op) && !op_wait_pending(op);
    return found;
}

/* An op that accesses the tensor, or a part of it, in the loop. */
static bool check_access(Planner *p, const Op *op, unsigned operand, const Value *tensor)
{
    if (op_completion(op) == COMPLETION_MBARRIER && !planner_is_copy(p, op))
        return REFUSE(p, op, "an mbarrier counts what %s copies into %s", planner_op_text(p, op),
                      planner_value_text(p, tensor));
    if (op_completion(op) == COMPLETION_PRODUCT && !is_retired(p, op))
        return CURE(p, "wait for all of them behind it, by dot_wait"),
               REFUSE(p, op, "%s reads %s until a dot_wait", planner_op_text(p, op),
                      planner_value_text(p, tensor));
    if (!is_accessed(op, operand))
        return REFUSE(p, op, "%s uses %s as a value", planner_op_text(p, op),
                      planner_value_text(p, tensor));
    if (planner_is_copy(p, op) && op->operands[operand] != tensor)
        return CURE(p, "copy into the tensor itself, and take the part where it is loaded"),
               REFUSE(p, op, "%s copies into a part of %s", planner_op_text(p, op),
                      planner_value_text(p, tensor));
    if (plan_is_written(op))
        return CURE(p, "leave the attributes to the passes"),
               REFUSE(p, op, "the instructions of %s are chosen already, for where it is",
                      planner_op_text(p, op));
    return true;
}

/* A use that a place in the ring can be given to: an access in the loop, or an op that makes
 * a part of the tensor and can move there. */
static bool check_use(Op *op, void *data)
{
    UseCheck *c = data;
    bool inside = op_is_inside(op, c->p->loop);
    for (unsigned i = 0; i < op->operand_count; i++) {
        if (op->operands[i]->type->kind != TYPE_SHARED ||
            memory_source(op->operands[i]) != c->tensor)
            continue;
        bool is_part = op_info[op->code].result == RESULT_TENSOR;
        if (!inside && !(is_part && stands_before(op, c->p->loop)))
            return CURE(c->p, "copy into a tensor that only the loop uses"),
                   REFUSE(c->p, op, "%s uses %s outside of the loop", planner_op_text(c->p, op),
                          planner_value_text(c->p, c->tensor));
        if (!is_part && !check_access(c->p, op, i, c->tensor))
            return false;
    }
    return true;
}

/* Returns the range that the copy writes in dimension `d` of its tensor; false if that
 * varies. */
static bool copy_range(const Op *copy, unsigned d, int64_t *begin, int64_t *extent)
{
    MemoryTile t = op_memory_tile(copy);
    int dim = memory_tile_find(&t, d);
    *extent = dim < 0 ? 1 : t.extents[dim];
    *begin = 0;
    if (!expr_is_constant(t.offsets->exprs[d]))
        return false;
    *begin = t.offsets->exprs[d]->constant;
    return true;
}

static bool copies_overlap(const Op *a, const Op *b)
{
    for (unsigned d = 0; d < op_memory_operand(a)->type->rank; d++) {
        int64_t x, y, m, n;
        if (copy_range(a, d, &x, &m) && copy_range(b, d, &y, &n) && (x + m <= y || y + n <= x))
            return false;
    }
    return true;
}

static int64_t tensor_elements(const Type *t)
{
    int64_t count = 1;
    for (unsigned d = 0; d < t->rank; d++)
        count *= type_extent(t, d);
    return count;
}

/* Counts the elements of the tensor that a copy writes; 0 if its place varies. */
static int64_t copy_elements(const Op *copy)
{
    int64_t count = 1, begin, extent;
    for (unsigned d = 0; d < op_memory_operand(copy)->type->rank; d++)
        count *= copy_range(copy, d, &begin, &extent) ? extent : 0;
    return count;
}

/* Returns true when each iteration's copies write the whole tensor, so that nothing is
 * left of the iteration before: disjoint tiles, as many elements as it has. */
static bool copies_fill(const Planner *p, const Value *tensor)
{
    const LoopDependences *d = &p->plan->d;
    int64_t count = 0;
    for (uint32_t i = 0; i < d->op_count; i++) {
        if (!is_copy_into(p, d->ops[i], tensor))
            continue;
        count += copy_elements(d->ops[i]);
        for (uint32_t j = 0; j < i; j++)
            if (is_copy_into(p, d->ops[j], tensor) && copies_overlap(d->ops[j], d->ops[i]))
                return false;
    }
    return count == tensor_elements(tensor->type);
}

/* The progress of the copies into a tensor in an iteration. */
typedef enum CopyState { NOT_COPIED, STARTED, COMMITTED, WAITED, SEEN } CopyState;

static CopyState next_state(const Planner *p, CopyState state, const Op *op)
{
    if (op == p->plan->arrive && state == STARTED)
        return COMMITTED;
    if (op == p->plan->wait && state == COMMITTED)
        return SEEN;
    if (op_syncs(op, SYNC_COMMIT, COMPLETION_GROUP) && state == STARTED)
        return COMMITTED;
    if (op_syncs(op, SYNC_WAIT, COMPLETION_GROUP) && state == COMMITTED &&
        op_expr(op, ATTR_NUMBER)->constant == 0)
        return WAITED;
    return op_sync(op) == SYNC_BARRIER && state == WAITED ? SEEN : state;
}

/* The first access to the tensor by or inside of the op with number `top`. */
static const Op *find_access(const LoopDependences *d, const Value *tensor, uint32_t top)
{
    for (uint32_t i = 0; i < d->access_count; i++)
        if (d->accesses[i].top == top && d->accesses[i].memory == tensor)
            return d->accesses[i].op;
    return NULL;
}

/* Refuses a loop in which `use` may come before the copies have ended. */
static bool refuse_unfinished(Planner *p, const Op *copy, const Op *use, const Op *early)
{
    const char *copy_text = planner_op_text(p, copy);
    if (early)
        return REFUSE(p, use, "%s is in no group: no copy_async_commit_group lies between it and "
                      "%s", copy_text, planner_op_text(p, early));
    return REFUSE(p, use, "no %s lie between %s and %s",
                  p->plan->arrive ? "mbarrier_arrive and mbarrier_wait"
                                  : "copy_async_wait_group 0 and synchronize",
                  copy_text, planner_op_text(p, use));
}

/* In an iteration, a tensor is copied into, waited for, and only then looked at. */
static bool check_order(Planner *p, const Value *tensor)
{
    const LoopDependences *d = &p->plan->d;
    const Op *copy = NULL, *use = NULL, *early = NULL;  /* early: a wait before the commit */
    CopyState state = NOT_COPIED;
    for (uint32_t i = 0; i < d->op_count; i++) {
        const Op *access = find_access(d, tensor, i);
        if (op_syncs(d->ops[i], SYNC_WAIT, COMPLETION_GROUP))
            early = state == STARTED ? d->ops[i] : NULL;
        state = next_state(p, state, d->ops[i]);
        if (access && planner_is_copy(p, access)) {
            if (use)
                return REFUSE(p, access, "%s follows %s of the same iteration",
                              planner_op_text(p, access), planner_op_text(p, use));
            copy = access;
            state = STARTED;
        } else if (access) {
            use = access;
            if (!copy)
                return REFUSE(p, use, "%s sees what an earlier iteration left in %s",
                              planner_op_text(p, use), planner_value_text(p, tensor));
            if (state != SEEN)
                return refuse_unfinished(p, copy, use, early);
        }
    }
    return true;
}

/* The first read of the tensor in the body, or a copy into it. */
static const Op *find_reader(const LoopDependences *d, const Value *tensor)
{
    const Op *other = NULL;
    for (uint32_t i = 0; i < d->access_count; i++) {
        if (d->accesses[i].memory != tensor)
            continue;
        if (!d->accesses[i].writes)
            return d->accesses[i].op;
        other = d->accesses[i].op;
    }
    return other;
}

static bool check_tensor(Planner *p, Value *tensor)
{
    const char *name = planner_value_text(p, tensor);
    if (tensor->def->code != OP_allocate_shared || op_attr(tensor->def, ATTR_OFFSET))
        return REFUSE(p, tensor->def, "%s already has its place", name);
    if (tensor->type->rank == LIMIT_RANK)
        return REFUSE(p, tensor->def, "%s has %d dimensions, a ring needs one more", name,
                      LIMIT_RANK);
    if (!region_walk(p->loop->parent->program->body, check_use, &(UseCheck){p, tensor}) ||
        !check_order(p, tensor))
        return false;
    if (copies_fill(p, tensor))
        return true;
    const Op *reader = find_reader(&p->plan->d, tensor);
    return REFUSE(p, reader, "%s may see what an earlier iteration left: the copies of an "
                  "iteration are not proved to fill %s", planner_op_text(p, reader), name);
}

static bool check_tensors(Planner *p)
{
    for (uint32_t i = 0; i < p->plan->tensor_count; i++)
        if (!check_tensor(p, p->plan->tensors[i]))
            return false;
    return true;
}

/* ---- order ---------------------------------------------------------------------- */

/* An op of iteration i runs in iteration i, or stages - 1 iterations before it. Rings lie
 * before the loop, and have met already what lies iterations apart. */
static bool edge_holds(const Planner *p, const Dependence *e)
{
    const PipelinePlan *plan = p->plan;
    int64_t ahead = for_stages(p->loop) - 1;
    if (has_tensor(plan, e->through) && (e->distance || e->kind == DEPENDENCE_VALUE))
        return true;
    int64_t from = plan->early[e->from_top] ? 0 : ahead;
    int64_t to = e->distance + (plan->early[e->to_top] ? 0 : ahead);
    return from < to || (from == to && plan->early[e->from_top] == plan->early[e->to_top]);
}

static bool check_edges(Planner *p)
{
    static const char *const what[] = {
        [DEPENDENCE_VALUE] = "needs the result of",
        [DEPENDENCE_RAW] = "may read what is written by",
        [DEPENDENCE_WAR] = "may overwrite what is read by",
        [DEPENDENCE_WAW] = "may overwrite what is written by"};
    for (uint32_t i = 0; i < p->plan->d.edge_count; i++) {
        const Dependence *e = &p->plan->d.edges[i];
        if (!edge_holds(p, e))
            return REFUSE(p, e->to, "%s %s %s in %s iteration", planner_op_text(p, e->to),
                          what[e->kind], planner_op_text(p, e->from),
                          e->distance ? "an earlier" : "the same");
    }
    return true;
}

/* ---- barriers -------------------------------------------------------------------- */

/* Returns true when accesses of the ops begin .. at and at .. end need a barrier between. */
static bool needs_barrier(const PipelinePlan *plan, int64_t begin, int64_t at, int64_t end)
{
    const LoopDependences *d = &plan->d;
    for (uint32_t i = 0; i < d->access_count; i++) {
        const BodyAccess *a = &d->accesses[i];
        for (uint32_t j = i + 1; a->top > begin && a->top < at && !plan->early[a->top] &&
                                 j < d->access_count; j++) {
            const BodyAccess *b = &d->accesses[j];
            if (b->top > at && b->top < end && !plan->early[b->top] && accesses_conflict(a, b))
                return true;
        }
    }
    return false;
}

/* An iteration will end with a barrier. Of those inside, one stays when without it accesses
 * since the last one would meet those up to the next. */
static void drop_barriers(const Planner *p)
{
    PipelinePlan *plan = p->plan;
    int64_t last = -1;
    for (uint32_t i = 0; i < plan->d.op_count; i++) {
        const Op *op = plan->d.ops[i];
        uint32_t next = i + 1;
        plan->dropped[i] = is_copy_barrier(p, op);
        if (op_sync(op) != SYNC_BARRIER)
            continue;
        while (next < plan->d.op_count && op_sync(plan->d.ops[next]) != SYNC_BARRIER)
            next++;
        plan->dropped[i] = !needs_barrier(plan, last, i, next);
        last = plan->dropped[i] ? last : i;
    }
}

/* ---- the end ----------------------------------------------------------------------- */

static bool is_other(Value *v, void *index)
{
    return v != index;
}

/* Returns true when `e` is no less than 0 and the same in each iteration. */
static bool is_fixed_rest(Value *index, const Expr *e)
{
    return expr_visit_values(e, is_other, index) && facts_of_expr(e).min >= 0;
}

/* The c > 0 of an offset %i * c + r with r >= 0; 0 if it is none. */
static int64_t index_factor(Value *index, const Expr *e)
{
    if (e->kind == EXPR_VALUE)
        return e->value == index;
    if (e->kind != EXPR_OP || (e->op != SCALAR_add && e->op != SCALAR_mul))
        return 0;
    for (int side = 0; side < 2; side++) {
        const Expr *x = side ? e->b : e->a, *other = side ? e->a : e->b;
        if (e->op == SCALAR_mul && x->kind == EXPR_VALUE && x->value == index &&
            expr_is_constant(other) && other->constant > 0)
            return other->constant;
        int64_t factor = e->op == SCALAR_add ? index_factor(index, x) : 0;
        if (factor && is_fixed_rest(index, other))
            return factor;
    }
    return 0;
}

/* Returns true when upper * factor >= extent. */
static bool reaches(const Expr *upper, int64_t factor, const Expr *extent)
{
    int64_t product;
    if (upper == extent)
        return true;
    if (expr_is_constant(upper) && expr_is_constant(extent))
        return !__builtin_mul_overflow(upper->constant, factor, &product) &&
               product >= extent->constant;
    if (upper->kind != EXPR_OP || upper->a != extent || !expr_is_constant(upper->b) ||
        upper->b->constant != factor)
        return false;
    return upper->op == SCALAR_ceil_div ||
           (upper->op == SCALAR_div && facts_of_expr(extent).divisor % factor == 0);
}

/* Returns true when the tile that the copy would read in an iteration past the last lies
 * outside of its view, in one dimension: nothing is read, and nobody reads the zeros. */
static bool copy_ends_outside(const Op *loop, const Op *copy)
{
    const Attr *offsets = op_attr(copy, ATTR_SOURCE_OFFSETS);
    const Type *view = copy->operands[0]->type;
    for (unsigned d = 0; d < view->rank; d++) {
        int64_t factor = index_factor(for_index(loop), offsets->exprs[d]);
        if (factor && reaches(op_expr(loop, ATTR_UPPER), factor, view->extents[d]))
            return true;
    }
    return false;
}

/* An iteration that may not exist, but whose early ops run. */
typedef struct Ghost {
    const Planner *p;
    const Expr *index;
    unsigned scalars;       /* of the body that were looked through */
} Ghost;

static const Expr *ghost_leaf(Value *v, void *data)
{
    Ghost *g = data;
    if (v == for_index(g->p->loop))
        return g->index;
    if (!v->def || v->def->parent != g->p->loop->regions[0] || v->def->code != OP_scalar ||
        g->scalars++ >= GHOST_SCALARS)
        return NULL;
    return expr_substitute(&g->p->m->exprs, op_expr(v->def, ATTR_VALUE), ghost_leaf, g);
}

/* Returns true when `e` has a value in the iteration; `*f` are its facts there. */
static bool ghost_never_fails(Ghost *g, const Expr *e, ScalarFacts *f)
{
    g->scalars = 0;
    const Expr *there = expr_substitute(&g->p->m->exprs, e, ghost_leaf, g);
    *f = facts_of_expr(there);
    return g->scalars <= GHOST_SCALARS && expr_never_fails(there);
}

/* Returns true when an early op does no harm in the iteration. Copies read nothing there, and loads
 * outside of their views give 0; a view or a slice may be none. */
static bool ghost_runs(Ghost *g, const Op *op)
{
    ScalarFacts f;
    if (op->code == OP_scalar)
        return ghost_never_fails(g, op_expr(op, ATTR_VALUE), &f) && value_holds(op, f.min) &&
               value_holds(op, f.max);
    if (!planner_is_copy(g->p, op) && !reads_global(op))
        return op->code == OP_permute;
    for (unsigned i = 0; i < op->attr_count; i++) {
        const Attr *a = &op->attrs[i];
        if (a->expr && !ghost_never_fails(g, a->expr, &f))
            return false;
        for (unsigned j = 0; a->exprs && j < a->count; j++)
            if (!ghost_never_fails(g, a->exprs[j], &f))
                return false;
    }
    return true;
}

/* The index `iterations` after `index`; NULL: there is none. */
static const Expr *later_index(const Planner *p, const Expr *index, int64_t iterations)
{
    const char *why;
    ExprTable *t = &p->m->exprs;
    const Expr *step = op_expr(p->loop, ATTR_STEP), *distance = expr_constant(t, iterations);
    if (!iterations)
        return index;
    distance = step ? expr_make(t, SCALAR_mul, step, distance, &why) : distance;
    return distance ? expr_make(t, SCALAR_add, index, distance, &why) : NULL;
}

/* Returns true when early ops do no harm in iterations that do not exist: the first ones of a loop that
 * runs fewer, or none, and those past the last. */
static bool ghosts_run(const Planner *p)
{
    const Expr *index = expr_value(&p->m->exprs, for_index(p->loop));
    int64_t ahead = for_stages(p->loop) - 1;
    for (int64_t n = 0; n <= ahead; n++) {
        const Expr *from = n < ahead ? op_expr(p->loop, ATTR_LOWER) : index;
        Ghost g = {.p = p, .index = later_index(p, from, n)};
        for (uint32_t i = 0; i < p->plan->d.op_count; i++)
            if (p->plan->early[i] && (!g.index || !ghost_runs(&g, p->plan->d.ops[i])))
                return false;
    }
    return true;
}

static void plan_end(Planner *p)
{
    for (uint32_t i = 0; i < p->plan->d.op_count; i++)
        if (planner_is_copy(p, p->plan->d.ops[i]))
            p->plan->guarded |= !copy_ends_outside(p->loop, p->plan->d.ops[i]);
    p->plan->guarded = p->plan->guarded || !ghosts_run(p);
}

bool pipeline_plan(Module *m, const Op *loop, PipelinePlan *plan)
{
    *plan = (PipelinePlan){.d = loop_dependences(loop)};
    Planner p = {m, loop, plan};
    plan->early = arena_array(&m->scratch, bool, plan->d.op_count);
    plan->dropped = arena_array(&m->scratch, bool, plan->d.op_count);
    plan->completion = find_completion(&plan->d);
    find_copies(&p);
    if (!check_form(&p) || !check_copies(&p) ||
        (plan->completion == COMPLETION_MBARRIER && !plan_roles(&p)) || !check_tensors(&p) ||
        !find_early(&p) || !plan_producer_values(&p) ||
        !check_edges(&p))
        return false;
    if (plan->mbarrier)
        return true;
    drop_barriers(&p);
    plan_end(&p);
    return true;
}
