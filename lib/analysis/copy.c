/* Chunks of copies. A chunk's address in bits is, in each of the two memories,
 *
 *     base + sum over dimensions d of (offset[d] + step[d]) * stride[d] * bits
 *
 * and along the contiguous dimension a chunk more for each step. It is aligned
 * when every term is, also after a swizzle that keeps it together. */
#include "analysis/copy.h"

#include "analysis/access.h"
#include "analysis/bounds.h"
#include "analysis/facts.h"

enum { CHUNK_MOST = 16, ALIGN_LIMIT = 8 * CHUNK_MOST };     /* bytes, bits */

static bool has_unit_stride(Module *m, const MemoryTile *t, unsigned d)
{
    const Expr *stride = type_stride(m, t->memory->type, memory_tile_dim(t, d));
    return expr_is_constant(stride) && stride->constant == 1;
}

/* The longest dimension whose elements follow each other in both memories. */
static int contiguous_dim(Module *m, const MemoryTile *source, const MemoryTile *target)
{
    int along = -1;
    int64_t longest = 1;
    for (unsigned d = 0; d < source->rank; d++)
        if (source->extents[d] > longest && has_unit_stride(m, source, d) &&
            has_unit_stride(m, target, d)) {
            along = (int)d;
            longest = source->extents[d];
        }
    return along;
}

/* Proved alignment, in bits, of every chunk in one of the memories. */
static int64_t chunk_alignment(Module *m, const MemoryTile *t, int along)
{
    const Type *type = t->memory->type;
    int64_t least = access_base_alignment(t->memory), bits = dtype_bits(type->dtype);
    for (unsigned d = 0; d < type->rank; d++) {
        int dim = memory_tile_find(t, d);
        bool steps = dim >= 0 && dim != along && t->extents[dim] > 1;
        int64_t index = steps ? 1 : facts_alignment(t->offsets->exprs[d], ALIGN_LIMIT);
        int64_t stride = facts_alignment(type_stride(m, type, d), ALIGN_LIMIT);
        int64_t term = index * stride * (bits & -bits);
        least = term < least ? term : least;
    }
    return least;
}

/* Whether the part of the source that lies inside along dimension `d` of its
 * view is a multiple of `bits` bits. */
static bool end_is_multiple(const MemoryTile *source, unsigned d, int64_t bits)
{
    int64_t width = dtype_bits(source->memory->type->dtype);
    int64_t extent = facts_alignment(source->memory->type->extents[d], ALIGN_LIMIT);
    return extent * (width & -width) % bits == 0;
}

/* Whether a swizzle of the target keeps chunks of so many bytes together: they
 * are whole elements, aligned, and no more than its runs. */
static bool swizzle_keeps(const Type *target, int64_t bytes)
{
    int64_t width = dtype_bits(target->dtype);
    return !target->swizzle.bits || (8 * bytes % width == 0 &&
                                     8 * bytes / width <= INT64_C(1) << target->swizzle.base);
}

/* Whether chunks of plan->bytes bytes, aligned as they must be, make up the
 * tile; decides plan->partial. */
static bool chunks_fit(const MemoryTile *source, const Type *target, CopyPlan *plan)
{
    int64_t bits = 8 * plan->bytes, width = dtype_bits(source->memory->type->dtype);
    plan->partial = false;
    if (!swizzle_keeps(target, plan->bytes))
        return false;
    if (plan->along < 0)
        return bits == width;
    unsigned d = memory_tile_dim(source, (unsigned)plan->along);
    if (source->extents[plan->along] * width % bits)
        return false;
    if (!(plan->checked >> d & 1) || end_is_multiple(source, d, bits))
        return true;
    plan->partial = plan->bytes >= CP_ASYNC_LEAST && end_is_multiple(source, d, 8);
    return plan->partial;
}

static void set_grid(const MemoryTile *source, CopyPlan *plan)
{
    int64_t width = dtype_bits(source->memory->type->dtype);
    unsigned count = 0;
    for (unsigned d = 0; d < source->rank; d++) {
        plan->grid[d] = source->extents[d];
        if ((int)d != plan->along)
            plan->order[count++] = d;
    }
    if (plan->along < 0)
        return;
    plan->order[count] = (unsigned)plan->along;
    plan->grid[plan->along] = source->extents[plan->along] * width / (8 * plan->bytes);
}

CopyPlan copy_plan(Module *m, const Op *op)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    CopyPlan plan = {.along = contiguous_dim(m, &source, &target),
                     .checked = access_checked_dims(&source)};
    int64_t from = chunk_alignment(m, &source, plan.along);
    int64_t to = chunk_alignment(m, &target, plan.along);
    for (plan.bytes = CHUNK_MOST; plan.bytes; plan.bytes /= 2)
        if (from >= 8 * plan.bytes && to >= 8 * plan.bytes &&
            chunks_fit(&source, target.memory->type, &plan))
            break;
    if (!plan.bytes) {
        plan.along = -1;
        plan.partial = false;
    }
    set_grid(&source, &plan);
    return plan;
}
