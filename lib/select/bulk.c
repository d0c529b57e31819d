/* Proofs for bulk copies. The address of the first element is, in bits,
 *
 *     base + (first + sum over dimensions d of offset[d] * stride[d]) * bits
 *
 * and it is aligned when every term is. */
#include "select/bulk.h"

#include "ir/op_access.h"
#include "ir/part.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "scalar/facts.h"
#include "select/checks.h"
#include "select/plan.h"
#include "support/remark.h"

enum { ALIGN_BITS = 8 * BULK_ALIGN };

static const char *value_name(const Value *v)
{
    return v->name ? v->name : "?";
}

/* The elements of the tile follow each other in row-major order. */
static bool check_contiguous(Module *m, const Op *op, const MemoryTile *t)
{
    int64_t expected = 1;
    if (t->memory->type->swizzle.bits)
        return diag_error(m->diag, op->loc, "copy_async_bulk copies bytes as they lie, %%%s has a "
                          "swizzle: %s", value_name(t->memory), type_text(m, t->memory->type));
    for (unsigned i = t->rank; i-- > 0;) {
        unsigned d = memory_tile_dim(t, i);
        const Expr *stride = type_stride(m, t->memory->type, d);
        if (t->extents[i] == 1)
            continue;
        if (!expr_is_constant(stride) || stride->constant != expected)
            return diag_error(m->diag, op->loc, "copy_async_bulk copies elements that follow each "
                              "other: in dimension %u of %%%s the stride is %s, it must be %lld",
                              d, value_name(t->memory), expr_text(m, stride),
                              (long long)expected);
        expected *= t->extents[i];
    }
    return true;
}

static bool check_aligned(Module *m, const Op *op, const MemoryTile *t)
{
    const Type *type = t->memory->type;
    int64_t bits = dtype_bits(type->dtype), whole = bits & -bits;
    int64_t base = access_base_alignment(t->memory);
    int64_t first = access_first_alignment(m, t->memory) * whole;
    if (base < ALIGN_BITS || first < ALIGN_BITS)
        return diag_error(m->diag, op->loc, "copy_async_bulk needs addresses that are multiples "
                          "of %d bytes, %%%s is known to begin at one of %lld bits", BULK_ALIGN,
                          value_name(t->memory), (long long)(base < first ? base : first));
    for (unsigned d = 0; d < type->rank; d++) {
        const Expr *offset = t->offsets->exprs[d], *stride = type_stride(m, type, d);
        int64_t known = facts_alignment(offset, ALIGN_BITS) *
                        facts_alignment(stride, ALIGN_BITS) * whole;
        if (known < ALIGN_BITS)
            return diag_error(m->diag, op->loc, "copy_async_bulk needs addresses that are "
                              "multiples of %d bytes: in dimension %u of %%%s, offset %s and "
                              "stride %s of %lld-bit elements give multiples of %lld bits",
                              BULK_ALIGN, d, value_name(t->memory), expr_text(m, offset),
                              expr_text(m, stride), (long long)bits, (long long)known);
    }
    return true;
}

static bool check_copy(Module *m, const Op *op, const MemoryTile *source)
{
    MemoryTile target = op_memory_tile(op);
    return check_contiguous(m, op, source) && check_contiguous(m, op, &target) &&
           check_aligned(m, op, source) && check_aligned(m, op, &target);
}

/* ---- fences -------------------------------------------------------------- */

/* Returns the value that stands for a tensor's memory: its allocation, or the pointer. */
static const Value *memory_origin(const Value *memory)
{
    const Value *root = memory_root(memory);
    return root->def && root->def->code == OP_view_global ? root->def->operands[0] : root;
}

/* The bytes of shared memory from `*first` up to `*end` that a tensor was given. */
static bool find_place(const Value *tensor, int64_t *first, int64_t *end)
{
    const Attr *offset = tensor->def ? op_attr(tensor->def, ATTR_OFFSET) : NULL;
    if (!offset)
        return false;
    *first = offset->integer;
    *end = *first + (type_shared_bits(tensor->type) + 7) / 8;
    return true;
}

/* Shared tensors may have been placed over each other. */
static bool may_meet(const Value *a, const Value *b)
{
    int64_t first[2], end[2];
    return a == b || (find_place(a, &first[0], &end[0]) && find_place(b, &first[1], &end[1]) &&
                      first[0] < end[1] && first[1] < end[0]);
}

static bool is_by_async_proxy(const Op *op)
{
    return completion_is_async_proxy(op_completion(op));
}

static bool is_memory(const Type *t)
{
    return t->kind == TYPE_SHARED || t->kind == TYPE_GLOBAL;
}

/* Returns false when the threads write, by `op`, memory that the copy `data` accesses. */
static bool leaves_alone(Op *op, void *data)
{
    const Op *copy = data;
    if (op_info[op->code].effect != EFFECT_WRITES || is_by_async_proxy(op) ||
        !op->operand_count || !is_memory(op_memory_operand(op)->type))
        return true;
    const Value *written = memory_origin(op_memory_operand(op));
    return !may_meet(written, memory_origin(op_memory_operand(copy))) &&
           !may_meet(written, memory_origin(copy->operands[0]));
}

/* The async proxy must be kept behind writes of the program's threads: where some op other
 * than a bulk copy writes the copy's source or target, or bytes that may be theirs. Reads
 * of the threads need no fence: what a thread has read is in its registers when it arrives.
 * Programs write a copy's source through the copy's own pointer only (docs/language.md). */
static bool has_writers(const Op *op)
{
    return !region_walk(op->parent->program->body, leaves_alone, (void *)op);
}

/* Returns true when a bulk copy right before `op`, but for pure ops, has had the fence of
 * both. */
static bool is_fenced(const Op *op)
{
    do
        op = op->prev;
    while (op && (op_info[op->code].effect == EFFECT_PURE ||
                  (is_by_async_proxy(op) && !has_writers(op))));
    return op && is_by_async_proxy(op);
}

/* ---- plans -------------------------------------------------------------------- */

bool bulk_plan(Module *m, const Op *op, BulkPlan *plan)
{
    MemoryTile source = op_source_tile(op);
    *plan = (BulkPlan){.bytes = bulk_bytes(op), .checked = access_checked_dims(op, &source),
                       .fence = has_writers(op) && !is_fenced(op)};
    return check_copy(m, op, &source);
}

static bool plan_bulk(Module *m, const Op *op, unsigned sm, Plan *plan)
{
    (void)sm;
    return bulk_plan(m, op, &plan->bulk);
}

static void remark_bulk(Module *m, const Op *op, const Plan *plan)
{
    REMARK(m, op, PASSED, "copy_async_bulk moves %lld bytes by one thread%s",
           (long long)plan->bulk.bytes,
           plan->bulk.fence ? ", behind a fence: threads write its source or target too" : "");
    MemoryTile source = op_source_tile(op);
    remark_checked(m, op, &source, plan->bulk.checked);
}

const Planner planner_bulk = {
    .family = PLAN_bulk, .plan = plan_bulk, .remark = remark_bulk,
};
