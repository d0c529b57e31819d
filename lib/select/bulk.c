/* Proofs for bulk copies. The address of the first element is, in bits,
 *
 *     base + (first + sum over dimensions d of offset[d] * stride[d]) * bits
 *
 * and it is aligned when every term is. */
#include "select/bulk.h"

#include "ir/part.h"
#include "ir/text.h"
#include "scalar/facts.h"
#include "select/access.h"

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

bool bulk_check(Module *m, const Op *op)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    return check_contiguous(m, op, &source) && check_contiguous(m, op, &target) &&
           check_aligned(m, op, &source) && check_aligned(m, op, &target);
}

/* ---- fences -------------------------------------------------------------- */

/* What tells a tensor's memory from other memory: its allocation, or the pointer. */
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

static bool is_memory(const Type *t)
{
    return t->kind == TYPE_SHARED || t->kind == TYPE_GLOBAL;
}

/* Whether `op` is no write, by the threads, of what the copy `data` accesses. */
static bool leaves_alone(Op *op, void *data)
{
    const Op *copy = data;
    if (op_info[op->code].effect != EFFECT_WRITES || op->code == OP_copy_async_bulk ||
        !op->operand_count || !is_memory(op_memory_operand(op)->type))
        return true;
    const Value *written = memory_origin(op_memory_operand(op));
    return !may_meet(written, memory_origin(op_memory_operand(copy))) &&
           !may_meet(written, memory_origin(copy->operands[0]));
}

bool bulk_needs_fence(const Op *op)
{
    return !region_walk(op->parent->program->body, leaves_alone, (void *)op);
}
