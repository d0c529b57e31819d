#include "passes/pipeline_rewrite.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/tile.h"
#include "select/bulk.h"

Rewrite rewrite_of(Op *loop)
{
    Program *program = loop->parent->program;
    const Expr *step = op_expr(loop, ATTR_STEP);
    return (Rewrite){.m = program->module, .program = program, .loop = loop,
                     .stages = for_stages(loop), .lower = op_expr(loop, ATTR_LOWER),
                     .upper = op_expr(loop, ATTR_UPPER),
                     .step = step ? step : expr_constant(&program->module->exprs, 1)};
}

/* ---- expressions ------------------------------------------------------------- */

static bool is_constant(const Expr *e, int64_t value)
{
    return expr_is_constant(e) && e->constant == value;
}

const Expr *rewrite_constant(const Rewrite *r, int64_t value)
{
    return expr_constant(&r->m->exprs, value);
}

const Expr *rewrite_apply(const Rewrite *r, ScalarOp op, const Expr *e, const Expr *by)
{
    const char *why;
    if (!e || !by)
        return NULL;
    if (((op == SCALAR_add || op == SCALAR_sub) && is_constant(by, 0)) ||
        ((op == SCALAR_mul || op == SCALAR_div) && is_constant(by, 1)))
        return e;
    return expr_make(&r->m->exprs, op, e, by, &why);
}

const Expr *iteration_of(const Rewrite *r, const Expr *i)
{
    return rewrite_apply(r, SCALAR_div, rewrite_apply(r, SCALAR_sub, i, r->lower), r->step);
}

const Expr *index_after(const Rewrite *r, const Expr *i, int64_t iterations)
{
    const Expr *distance = rewrite_apply(r, SCALAR_mul, rewrite_constant(r, iterations), r->step);
    return rewrite_apply(r, SCALAR_add, i, distance);
}

const Expr *slot_after(const Rewrite *r, const Expr *i, int64_t iterations)
{
    ScalarOp op = iterations < 0 ? SCALAR_sub : SCALAR_add;
    const Expr *distance = rewrite_constant(r, iterations < 0 ? -iterations : iterations);
    const Expr *other = rewrite_apply(r, op, iteration_of(r, i), distance);
    return rewrite_apply(r, SCALAR_mod, other, rewrite_constant(r, r->stages));
}

/* ---- rings ---------------------------------------------------------------------- */

/* The elements from one tensor of a ring to the next: each begins at a multiple of `align` bytes,
 * and of what a swizzle permutes. */
static int64_t ring_stride(const Type *t, int64_t align)
{
    int64_t bits = dtype_bits(t->dtype);
    int64_t unit = INT64_C(1) << (t->swizzle.base + t->swizzle.bits);
    int64_t aligned = 8 * align / gcd_i64(8 * align, bits);
    unit = unit > aligned ? unit : aligned;
    return (type_shared_bits(t) / bits + unit - 1) / unit * unit;
}

static const Type *ring_type(const Rewrite *r, const Value *tensor, int64_t align)
{
    const Type *t = tensor->type;
    const Expr *extents[LIMIT_RANK] = {rewrite_constant(r, r->stages)};
    const Expr **strides = arena_array(&r->m->arena, const Expr *, t->rank + 1);
    strides[0] = rewrite_constant(r, ring_stride(t, align));
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
                               ring_type(r, tensor, shared_alignment(tensor)));
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
        offsets[i] = i ? rewrite_constant(r, 0) : slot;
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
static bool enter_op(Op *op, void *data)
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

void enter_rings(const Rewrite *r, Region *region, const Expr *slot)
{
    region_walk(region, enter_op, &(Enter){r, slot});
}

void enter_rings_of(const Rewrite *r, Op *op, const Expr *slot)
{
    enter_op(op, &(Enter){r, slot});
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

void build_rings(Rewrite *r)
{
    Sink sink = {r->loop, r->loop->regions[0]->first};
    r->rings = arena_array(&r->m->scratch, Value *, r->plan.tensor_count);
    for (uint32_t i = 0; i < r->plan.tensor_count; i++)
        r->plan.tensors[i]->data = r->rings[i] = build_ring(r, r->plan.tensors[i]);
    region_walk(r->program->body, sink_part, &sink);
}

/* Returns true when a copy of `copies` into the ring goes by a tensor map. */
static bool takes_map(const Rewrite *r, const Region *copies, const Value *ring)
{
    TensorMap map;
    for (const Op *op = copies->first; op; op = op->next)
        if (op_is_bulk_copy(op) && op_memory_operand(op) == ring && bulk_goes_by_map(r->m, op, &map))
            return true;
    return false;
}

void space_rings(const Rewrite *r, const Region *copies)
{
    for (uint32_t i = 0; i < r->plan.tensor_count; i++) {
        Value *tensor = r->plan.tensors[i], *ring = r->rings[i];
        const Type *dense = ring->type;
        ring->type = ring_type(r, tensor, swizzle_alignment(tensor->type));
        if (!takes_map(r, copies, ring))
            ring->type = dense;
    }
}

bool rings_fit(const Rewrite *r)
{
    int64_t left = 8 * (int64_t)LIMIT_SHARED_BYTES;
    for (uint32_t i = 0; i < r->plan.tensor_count; i++) {
        const Type *t = r->plan.tensors[i]->type;
        left -= r->stages * ring_stride(t, swizzle_alignment(t)) * dtype_bits(t->dtype);
    }
    return left >= 0;
}

int64_t rings_bytes(const Rewrite *r)
{
    int64_t bytes = 0;
    for (uint32_t i = 0; i < r->plan.tensor_count; i++) {
        const Type *t = r->rings[i]->type;
        bytes += type_stride(r->m, t, 0)->constant * dtype_bits(t->dtype) / 8;
    }
    return bytes;
}

/* ---- ops that run ahead ---------------------------------------------------------- */

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
    op->shifted = true;
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

void insert_early(const Ahead *a, Region *region, Op *before)
{
    for (uint32_t i = 0; i < a->r->plan.d.op_count; i++) {
        if (!a->r->plan.early[i])
            continue;
        Op *op = clone_op(a, a->r->plan.d.ops[i]);
        op_insert(region, op, before);
        enter_rings_of(a->r, op, a->slot);
    }
}

void insert_plain(const Rewrite *r, OpCode code, Region *into, Op *before)
{
    op_insert(into, build_op(r->m, code, r->loop->loc, NULL, 0, NULL, 0), before);
}
