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
 * (a view of %n rows above) they read nothing, and nobody reads the zeros; else an `if`
 * holds them back, and only the groups stay, which waits count. */
#include "passes/pass.h"

#include "ir/builder.h"
#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/tile.h"
#include "passes/pipeline_plan.h"
#include "passes/report.h"

typedef struct Rewrite {
    Module *m;
    Program *program;
    Op *loop;
    int64_t stages;
    const Expr *lower, *upper, *step;
    PipelinePlan plan;
} Rewrite;

#define SAY(m, loc, kind, ...)                                                \
    remark_emit((m)->remarks, REMARK_##kind, "pipeline-loops", (m)->diag, loc, __VA_ARGS__)

/* ---- expressions ------------------------------------------------------------- */

static bool is_constant(const Expr *e, int64_t value)
{
    return expr_is_constant(e) && e->constant == value;
}

static const Expr *constant(const Rewrite *r, int64_t value)
{
    return expr_constant(&r->m->exprs, value);
}

/* `e` op `by`, or `e` where that is the same; NULL where there is no such number, or
 * for one of NULL. */
static const Expr *apply(const Rewrite *r, ScalarOp op, const Expr *e, const Expr *by)
{
    const char *why;
    if (!e || !by)
        return NULL;
    if (((op == SCALAR_add || op == SCALAR_sub) && is_constant(by, 0)) ||
        ((op == SCALAR_mul || op == SCALAR_div) && is_constant(by, 1)))
        return e;
    return expr_make(&r->m->exprs, op, e, by, &why);
}

/* The iteration of index `i`: 0, 1, .. */
static const Expr *iteration_of(const Rewrite *r, const Expr *i)
{
    return apply(r, SCALAR_div, apply(r, SCALAR_sub, i, r->lower), r->step);
}

/* The index `iterations` iterations after `i`. */
static const Expr *index_after(const Rewrite *r, const Expr *i, int64_t iterations)
{
    return apply(r, SCALAR_add, i, apply(r, SCALAR_mul, constant(r, iterations), r->step));
}

/* The place in the ring of the iteration `iterations` after that of index `i`. */
static const Expr *slot_after(const Rewrite *r, const Expr *i, int64_t iterations)
{
    const Expr *later = apply(r, SCALAR_add, iteration_of(r, i), constant(r, iterations));
    return apply(r, SCALAR_mod, later, constant(r, r->stages));
}

/* The index of iteration `n`. */
static const Expr *index_of(const Rewrite *r, const Expr *n)
{
    const Expr *distance = apply(r, SCALAR_mul, n, r->step);
    return is_constant(r->lower, 0) ? distance : apply(r, SCALAR_add, distance, r->lower);
}

static const Expr *is_below_upper(const Rewrite *r, const Expr *index)
{
    return apply(r, SCALAR_lt, index, r->upper);
}

/* Returns true when everything above exists: not with bounds near 2^63 or nested very
 * deeply. */
static bool expressions_exist(const Rewrite *r)
{
    const Expr *i = expr_value(&r->m->exprs, for_index(r->loop));
    return is_below_upper(r, index_of(r, i)) && is_below_upper(r, r->lower) &&
           is_below_upper(r, index_after(r, i, r->stages - 1)) &&
           slot_after(r, i, r->stages - 1);
}

/* ---- rings ---------------------------------------------------------------------- */

/* Elements from one tensor of a ring to the next: each begins at a multiple of
 * its shared_alignment, and of what a swizzle permutes. */
static int64_t ring_stride(const Value *tensor)
{
    const Type *t = tensor->type;
    int64_t align = 8 * shared_alignment(tensor), bits = dtype_bits(t->dtype);
    int64_t unit = INT64_C(1) << (t->swizzle.base + t->swizzle.bits);
    int64_t aligned = align / gcd_i64(align, bits);
    unit = unit > aligned ? unit : aligned;
    return (type_shared_bits(t) / bits + unit - 1) / unit * unit;
}

static const Type *ring_type(const Rewrite *r, const Value *tensor)
{
    const Type *t = tensor->type;
    const Expr *extents[LIMIT_RANK] = {constant(r, r->stages)};
    const Expr **strides = arena_array(&r->m->arena, const Expr *, t->rank + 1);
    strides[0] = constant(r, ring_stride(tensor));
    for (unsigned d = 0; d < t->rank; d++) {
        extents[d + 1] = t->extents[d];
        strides[d + 1] = type_stride(r->m, t, d);
    }
    const Type *ring = type_memory(r->m, TYPE_SHARED, t->dtype, t->rank + 1, extents, strides);
    return type_swizzled(r->m, ring, t->swizzle);
}

/* Stands where the tensor stood, or before the loop. */
static Value *build_ring(const Rewrite *r, Value *tensor)
{
    Op *old = tensor->def;
    Op *op = build_op(r->m, OP_allocate_shared, old->loc, NULL, 0, NULL, 0);
    Value *ring = build_result(r->m, op, tensor->name, tensor->loc,
                               ring_type(r, tensor));
    bool inside = old->parent == r->loop->regions[0];
    op_insert(inside ? r->loop->parent : old->parent, op, inside ? r->loop : old);
    op_remove(old);
    return ring;
}

/* Gives an op its ring, at tensor `slot` of it. */
static void enter_ring(const Rewrite *r, Op *op, Value *ring, const Expr *slot)
{
    const Attr *offsets = op_attr(op, ATTR_OFFSETS), *dims = op_attr(op, ATTR_DIMS);
    const Expr **longer = arena_array(&r->m->arena, const Expr *, offsets->count + 1);
    longer[0] = slot;
    for (unsigned i = 0; i < offsets->count; i++)
        longer[i + 1] = offsets->exprs[i];
    op->operands[op_memory_number(op)] = ring;
    op_set_attr(r->m, op, (Attr){.kind = ATTR_OFFSETS, .count = offsets->count + 1,
                                 .exprs = longer});
    if (op_memory_tile(op).index)
        op_set_attr(r->m, op, (Attr){.kind = ATTR_INDEXED,
                                     .integer = op_attr(op, ATTR_INDEXED)->integer + 1});
    if (!dims)
        return;
    int64_t *moved = arena_array(&r->m->arena, int64_t, dims->count);
    for (unsigned i = 0; i < dims->count; i++)
        moved[i] = dims->ints[i] + 1;
    op_set_attr(r->m, op, (Attr){.kind = ATTR_DIMS, .count = dims->count, .ints = moved});
}

/* Builds tensor `slot` of the ring of `tensor` before `op`, as a part of the ring. */
static Value *build_slot(const Rewrite *r, Op *op, const Value *tensor, const Expr *slot)
{
    unsigned rank = tensor->type->rank + 1;
    const Expr **offsets = arena_array(&r->m->arena, const Expr *, rank);
    Attr attr = {.kind = ATTR_OFFSETS, .count = rank, .exprs = offsets};
    Value *ring = tensor->data;
    for (unsigned i = 0; i < rank; i++)
        offsets[i] = i ? constant(r, 0) : slot;
    Op *part = build_op(r->m, OP_slice, op->loc, &ring, 1, &attr, 1);
    op_insert(op->parent, part, op);
    return build_result(r->m, part, NULL, op->loc, tensor->type);
}

typedef struct Enter {
    const Rewrite *r;
    const Expr *slot;
} Enter;

/* Value.data of a tensor points to its ring. An op that has offsets in the tensor gets a
 * longer list of them; another, as `permute`, gets a part of the ring. */
static bool enter_rings(Op *op, void *data)
{
    const Enter *e = data;
    for (unsigned i = 0; i < op->operand_count; i++) {
        Value *v = op->operands[i];
        if (v->type->kind != TYPE_SHARED || !v->data)
            continue;
        if (i == op_memory_number(op) && op_attr(op, ATTR_OFFSETS))
            enter_ring(e->r, op, v->data, e->slot);
        else
            op->operands[i] = build_slot(e->r, op, v, e->slot);
    }
    return true;
}

typedef struct Sink {
    Op *loop, *first;       /* of the loop's body */
} Sink;

/* Moves a part of a ring's tensor that stands before the loop to the beginning of its body. */
static bool sink_part(Op *op, void *data)
{
    const Sink *s = data;
    if (op == s->loop)
        return false;
    bool is_part = op_info[op->code].result == RESULT_TENSOR &&
                   op->operands[0]->type->kind == TYPE_SHARED;
    if (!is_part || !memory_source(op->operands[0])->data)
        return true;
    op_remove(op);
    op_insert(s->loop->regions[0], op, s->first);
    return true;
}

/* ---- copies --------------------------------------------------------------------- */

/* Early ops for the iteration of index `index`; Value.data of their results points to
 * those of the copies, as that of tensors to rings. */
typedef struct Ahead {
    const Rewrite *r;
    const Expr *index, *slot;
} Ahead;

static const Expr *map_leaf(Value *v, void *data)
{
    const Ahead *a = data;
    if (v == for_index(a->r->loop))
        return a->index;
    return v->data ? expr_value(&a->r->m->exprs, v->data) : NULL;
}

static const Expr *const *map_exprs(const Ahead *a, const Expr *const *exprs, unsigned count)
{
    const Expr **mapped = arena_array(&a->r->m->arena, const Expr *, count);
    for (unsigned i = 0; i < count; i++)
        mapped[i] = expr_substitute(&a->r->m->exprs, exprs[i], map_leaf, (void *)a);
    return mapped;
}

static const Type *map_type(const Ahead *a, const Type *t)
{
    if (t->kind != TYPE_GLOBAL)
        return t;
    return type_memory(a->r->m, TYPE_GLOBAL, t->dtype, t->rank,
                       map_exprs(a, t->extents, t->rank),
                       t->strides ? map_exprs(a, t->strides, t->rank) : NULL);
}

/* Rings are entered later, by their own offsets. */
static Op *clone_op(const Ahead *a, const Op *from)
{
    Module *m = a->r->m;
    Op *op = build_op(m, from->code, from->loc, from->operands, from->operand_count,
                      from->attrs, from->attr_count);
    for (unsigned i = 0; i < op->operand_count; i++)
        if (op->operands[i]->data && op->operands[i]->type->kind != TYPE_SHARED)
            op->operands[i] = op->operands[i]->data;
    for (unsigned i = 0; i < op->attr_count; i++) {
        Attr *attr = &op->attrs[i];
        if (attr->expr)
            attr->expr = expr_substitute(&m->exprs, attr->expr, map_leaf, (void *)a);
        if (attr->exprs)
            attr->exprs = map_exprs(a, attr->exprs, attr->count);
    }
    for (unsigned i = 0; i < from->result_count; i++) {
        Value *v = from->results[i];
        v->data = build_result(m, op, v->name, v->loc, map_type(a, v->type));
    }
    return op;
}

/* The end of a region of ops that an `if` makes of the condition index < upper; `into`
 * itself without one. */
static Region *build_guard(const Ahead *a, Region *into, Op *before)
{
    const Rewrite *r = a->r;
    if (!r->plan.guarded)
        return into;
    Attr cond = {.kind = ATTR_COND, .expr = is_below_upper(r, a->index)};
    Op *op = build_op(r->m, OP_if, r->loop->loc, NULL, 0, &cond, 1);
    for (int i = 0; i < 2; i++) {
        Region *branch = build_region(r->program, op);
        build_op_region(r->m, op, branch);
        op_insert(branch, build_op(r->m, OP_yield, op->loc, NULL, 0, NULL, 0), NULL);
    }
    op_insert(into, op, before);
    return op->regions[0];
}

static void insert_plain(const Rewrite *r, OpCode code, Region *into, Op *before)
{
    op_insert(into, build_op(r->m, code, r->loop->loc, NULL, 0, NULL, 0), before);
}

static void insert_wait(const Rewrite *r, int64_t pending, Region *into, Op *before)
{
    Attr attr = {.kind = ATTR_NUMBER, .expr = constant(r, pending)};
    op_insert(into, build_op(r->m, OP_copy_async_wait_group, r->loop->loc, NULL, 0, &attr, 1),
              before);
}

/* The copies of one iteration into `into` before `before`, and their group. */
static void insert_copies(const Rewrite *r, const Expr *index, const Expr *slot, Region *into,
                          Op *before)
{
    Ahead a = {r, index, slot};
    Region *region = build_guard(&a, into, before);
    Op *place = region == into ? before : region->first;
    for (uint32_t i = 0; i < r->plan.d.op_count; i++) {
        if (!r->plan.early[i])
            continue;
        Op *op = clone_op(&a, r->plan.d.ops[i]);
        op_insert(region, op, place);
        enter_rings(op, &(Enter){r, slot});
    }
    insert_plain(r, OP_copy_async_commit_group, into, before);
}

/* ---- the new loop ------------------------------------------------------------------ */

static void build_prologue(const Rewrite *r)
{
    Region *around = r->loop->parent;
    const Expr *zero = constant(r, 0), *iterations = constant(r, r->stages - 1);
    if (r->stages == 2) {
        insert_copies(r, r->lower, zero, around, r->loop);
    } else {
        Value *old = for_index(r->loop);
        Attr bounds[] = {{.kind = ATTR_LOWER, .expr = zero},
                         {.kind = ATTR_UPPER, .expr = iterations}};
        Op *op = build_op(r->m, OP_for, r->loop->loc, NULL, 0, bounds, 2);
        Region *body = build_region(r->program, op);
        build_op_region(r->m, op, body);
        Value *iteration = build_region_argument(body, old->name, old->loc, old->type);
        const Expr *n = expr_value(&r->m->exprs, iteration);
        insert_copies(r, index_of(r, n), n, body, NULL);
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
    region_walk(body, enter_rings, &(Enter){r, slot_after(r, i, 0)});
    insert_copies(r, index_after(r, i, ahead), slot_after(r, i, ahead), body, body->first);
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
    Sink sink = {r->loop, r->loop->regions[0]->first};
    for (uint32_t i = 0; i < r->plan.tensor_count; i++)
        r->plan.tensors[i]->data = build_ring(r, r->plan.tensors[i]);
    region_walk(r->program->body, sink_part, &sink);
    build_prologue(r);
    build_body(r);
    build_drain(r);
    drop_mark(r->loop);
}

/* ---- the pass ------------------------------------------------------------------------ */

static void say_pipelined(const Rewrite *r)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < r->plan.tensor_count; i++)
        bytes += ring_stride(r->plan.tensors[i]) *
                 dtype_bits(r->plan.tensors[i]->type->dtype) / 8;
    SAY(r->m, r->loop->loc, PASSED, "copies run %lld iteration%s ahead, in %lld bytes of shared "
        "memory instead of %lld%s", (long long)r->stages - 1, r->stages == 2 ? "" : "s",
        (long long)(bytes * r->stages), (long long)bytes,
        r->plan.guarded ? "; an if ends them" : "");
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

/* Returns true when the loop was changed. */
static bool pipeline_loop(Program *program, Op *loop)
{
    Module *m = program->module;
    ArenaMark mark = arena_mark(&m->scratch);
    const Expr *step = op_expr(loop, ATTR_STEP);
    Rewrite r = {.m = m, .program = program, .loop = loop, .stages = for_stages(loop),
                 .lower = op_expr(loop, ATTR_LOWER), .upper = op_expr(loop, ATTR_UPPER),
                 .step = step ? step : expr_constant(&m->exprs, 1)};
    bool ok = pipeline_plan(m, loop, &r.plan);
    if (ok && region_depth(loop->regions[0]) >= LIMIT_NESTING) {
        r.plan.why = "the guards of its copies would be nested too deeply";
        ok = false;
    }
    if (ok && !expressions_exist(&r)) {
        r.plan.why = "its indices leave 64 bits, or are nested too deeply";
        ok = false;
    }
    if (ok) {
        say_pipelined(&r);
        rewrite(&r);
        stat_add(m, STAT_pipeline_loops_loops, 1);
    } else {
        SAY(m, loop->loc, MISSED, "this loop is not pipelined: %s", r.plan.why);
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

/* Inner loops first: an outer one then sees what became of them. */
PassResult pass_pipeline_loops(Program *p)
{
    Marked marked = {.arena = &p->module->scratch};
    ArenaMark mark = arena_mark(marked.arena);
    bool changed = false;
    region_walk(p->body, find_marked, &marked);
    for (uint32_t i = marked.count; i-- > 0;)
        changed |= pipeline_loop(p, marked.loops[i]);
    arena_reset(marked.arena, mark);
    return changed ? PASS_CHANGED : PASS_UNCHANGED;
}
