/* Chunks of copies. A chunk's address in bits is, in each of the two memories,
 *
 *     base + (first + sum over dimensions d of (offset[d] + step[d]) * stride[d]) * bits
 *
 * and along the contiguous dimension a chunk more for each step. It is aligned
 * when every term is, also after a swizzle that keeps it together. */
#include "select/copy.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "memory/tensor_map.h"
#include "scalar/bounds.h"
#include "scalar/facts.h"
#include "select/access.h"
#include "select/plan.h"
#include "select/select.h"

enum { CHUNK_MOST = 16, ALIGN_LIMIT = 8 * CHUNK_MOST };     /* bytes, bits */
/* Iterations that are unrolled; more become a loop. */
enum { UNROLLED_ASYNC = 32, UNROLLED_REGISTERS = 4 };

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
            has_unit_stride(m, target, d) && memory_tile_is_uniform(source, d) &&
            !memory_tile_is_indexed(source, memory_tile_dim(source, d))) {
            along = (int)d;
            longest = source->extents[d];
        }
    return along;
}

/* Proved alignment, in bits, of where one of the tensors begins in its memory. */
static int64_t first_alignment(Module *m, const MemoryTile *t)
{
    int64_t bits = dtype_bits(t->memory->type->dtype);
    return memory_first_alignment(m, t->memory) * (bits & -bits);
}

/* Proved alignment, in bits, of what dimension `d` of one of the memories adds to
 * a chunk's address. */
static int64_t dim_alignment(Module *m, const MemoryTile *t, unsigned d, int along)
{
    int64_t bits = dtype_bits(t->memory->type->dtype);
    int dim = memory_tile_find(t, d);
    bool steps = memory_tile_is_indexed(t, d) ||
                 (dim >= 0 && dim != along && t->extents[dim] > 1);
    int64_t index = steps ? 1 : facts_alignment(t->offsets->exprs[d], ALIGN_LIMIT);
    return index * facts_alignment(type_stride(m, t->memory->type, d), ALIGN_LIMIT) *
           (bits & -bits);
}

/* Proved alignment, in bits, of every chunk in one of the memories. */
static int64_t chunk_alignment(Module *m, const MemoryTile *t, int along)
{
    int64_t least = access_base_alignment(t->memory), first = first_alignment(m, t);
    least = first < least ? first : least;
    for (unsigned d = 0; d < t->memory->type->rank; d++) {
        int64_t term = dim_alignment(m, t, d, along);
        least = term < least ? term : least;
    }
    return least;
}

/* Returns true when the part of the source that lies inside along dimension `d` of its
 * view is a multiple of `bits` bits. */
static bool end_is_multiple(const MemoryTile *source, unsigned d, int64_t bits)
{
    int64_t width = dtype_bits(source->memory->type->dtype);
    int64_t extent = facts_alignment(source->memory->type->extents[d], ALIGN_LIMIT);
    return extent * (width & -width) % bits == 0;
}

/* Returns true when a swizzle of the target keeps chunks of `bytes` bytes together: they
 * are whole elements, aligned, and no longer than its runs. */
static bool swizzle_keeps(const Type *target, int64_t bytes)
{
    int64_t width = dtype_bits(target->dtype);
    return !target->swizzle.bits || (8 * bytes % width == 0 &&
                                     8 * bytes / width <= INT64_C(1) << target->swizzle.base);
}

/* Returns true when chunks of plan->bytes bytes, aligned as they must be, make up the
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

int64_t copy_row_chunks(const CopyPlan *plan, const MemoryTile *source)
{
    int64_t chunks = 1;
    for (unsigned d = 0; d < source->rank; d++)
        chunks *= memory_tile_is_uniform(source, d) ? plan->grid[d] : 1;
    return chunks;
}

/* Counts iterations; a few are unrolled, so that they share their address arithmetic. Threads
 * that hold an index share the chunks of its row. */
static void set_iterations(const Op *op, const MemoryTile *source, CopyPlan *plan)
{
    const Layout *index = source->index ? source->index->type->layout : NULL;
    int64_t threads = index ? layout_replicas(index) : region_threads(op->parent).count;
    int64_t unrolled = plan->bytes >= CP_ASYNC_LEAST ? UNROLLED_ASYNC : UNROLLED_REGISTERS;
    int64_t chunks = index ? copy_row_chunks(plan, source) : copy_chunks(plan, source->rank);
    plan->iterations = (chunks + threads - 1) / threads * (index ? index->slots : 1);
    plan->loop = plan->iterations > unrolled;
}

/* Plans the widest chunks of at most `most` bytes. */
static CopyPlan plan_chunks(Module *m, const Op *op, unsigned most)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    CopyPlan plan = {.along = contiguous_dim(m, &source, &target),
                     .checked = access_checked_dims(op, &source)};
    int64_t from = chunk_alignment(m, &source, plan.along);
    int64_t to = chunk_alignment(m, &target, plan.along);
    for (plan.bytes = most; plan.bytes; plan.bytes /= 2)
        if (from >= 8 * plan.bytes && to >= 8 * plan.bytes &&
            chunks_fit(&source, target.memory->type, &plan))
            break;
    if (!plan.bytes) {
        plan.along = -1;
        plan.partial = false;
    }
    set_grid(&source, &plan);
    set_iterations(op, &source, &plan);
    return plan;
}

CopyPlan copy_plan(Module *m, const Op *op)
{
    return plan_chunks(m, op, CHUNK_MOST);
}

int64_t copy_chunks(const CopyPlan *plan, unsigned rank)
{
    int64_t chunks = 1;
    for (unsigned d = 0; d < rank; d++)
        chunks *= plan->grid[d];
    return chunks;
}

void copy_chunk_index(const CopyPlan *plan, unsigned rank, int64_t number, int64_t *index)
{
    for (unsigned i = rank; i-- > 0;) {
        unsigned d = plan->order[i];
        index[d] = number % plan->grid[d];
        number /= plan->grid[d];
    }
}

/* The number of `thread` among those that hold the same elements. */
static int64_t replica_number(const Layout *l, int64_t thread)
{
    int64_t number = 0, below = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        int64_t extent = l->spatial[i].extent;
        below /= extent;
        if (l->spatial[i].mode < 0)
            number = number * extent + thread / below % extent;
    }
    return number;
}

bool copy_thread_index(const CopyPlan *plan, const MemoryTile *source, int64_t thread,
                       int64_t *index)
{
    if (!source->index) {
        copy_chunk_index(plan, source->rank, thread, index);
        return thread < copy_chunks(plan, source->rank);
    }
    const Layout *l = source->index->type->layout;
    int64_t number = replica_number(l, thread);
    layout_index(l, thread, 0, index);
    for (unsigned i = source->rank; i-- > 0;) {
        unsigned d = plan->order[i];
        if (!memory_tile_is_uniform(source, d))
            continue;
        index[d] = number % plan->grid[d];
        number /= plan->grid[d];
    }
    return number == 0;
}

/* ---- what is written ------------------------------------------------------ */

void copy_write(Module *m, Op *op, const CopyPlan *plan)
{
    if (plan->bytes)
        op_set_attr(m, op, (Attr){.kind = ATTR_WIDTH, .integer = plan->bytes});
    else
        op_set_attr(m, op, (Attr){.kind = ATTR_VIA, .word = VIA_bits});
    select_write_checked(m, op, plan->checked);
}

bool copy_follow(Module *m, const Op *op, CopyPlan *plan)
{
    const Attr *width = op_attr(op, ATTR_WIDTH);
    MemoryTile source = op_source_tile(op);
    *plan = copy_plan(m, op);
    if (!plan_is_written(op))
        return true;
    unsigned bytes = width ? (unsigned)width->integer : 0;
    if (bytes > plan->bytes)
        return diag_error(m->diag, op->loc, "width = %u promises more than can be proved, %s: %s",
                          bytes, plan->bytes ? arena_printf(&m->arena, "width = %u", plan->bytes)
                                             : "via = bits", copy_reason(m, op, bytes));
    *plan = plan_chunks(m, op, bytes);
    if (plan->bytes != bytes)
        return diag_error(m->diag, op->loc, "width = %u does not cut the tile: %s", bytes,
                          copy_reason(m, op, bytes));
    plan->checked = select_read_checked(op);
    return select_check_checked(m, op, &source, plan->checked);
}

/* ---- reasons --------------------------------------------------------------- */

/* Why a chunk in one of the memories, called `side`, is not aligned. */
static const char *side_reason(Module *m, const MemoryTile *t, const char *side, int along,
                                 unsigned bytes)
{
    const Type *type = t->memory->type;
    if (!swizzle_keeps(type, bytes))
        return arena_printf(&m->arena, "the swizzle of the %s keeps %lld elements together, "
                            "chunks need %lld", side, (long long)1 << type->swizzle.base,
                            8 * (long long)bytes / dtype_bits(type->dtype));
    if (access_base_alignment(t->memory) < 8 * bytes)
        return arena_printf(&m->arena, "the %s begins at a multiple of %lld bytes", side,
                            (long long)access_base_alignment(t->memory) / 8);
    if (first_alignment(m, t) < 8 * bytes)
        return arena_printf(&m->arena, "the %s, %s, is not known to begin at a multiple of "
                            "%u bytes", side, value_text(m, t->memory), bytes);
    for (unsigned d = 0; d < type->rank; d++)
        if (dim_alignment(m, t, d, along) < 8 * bytes)
            return arena_printf(&m->arena, "in dimension %u of the %s, offset %s and stride %s of "
                                "%u-bit elements are not known to give multiples of %u bytes", d,
                                side, expr_text(m, t->offsets->exprs[d]),
                                expr_text(m, type_stride(m, type, d)), dtype_bits(type->dtype),
                                bytes);
    return NULL;
}

const char *copy_reason(Module *m, const Op *op, unsigned bytes)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    CopyPlan plan = {.along = contiguous_dim(m, &source, &target), .bytes = bytes,
                     .checked = access_checked_dims(op, &source)};
    int64_t width = dtype_bits(source.memory->type->dtype);
    if (plan.along < 0)
        return 8 * bytes == width ? NULL
                                  : "no dimension of the tile has stride 1 in both tensors";
    const char *why = side_reason(m, &source, "source", plan.along, bytes);
    why = why ? why : side_reason(m, &target, "target", plan.along, bytes);
    if (why)
        return why;
    if (source.extents[plan.along] * width % (8 * bytes))
        return arena_printf(&m->arena, "a row of the tile, %lld x %lld bits, is not a multiple of "
                            "%u bits", (long long)source.extents[plan.along], (long long)width,
                            8 * bytes);
    if (chunks_fit(&source, target.memory->type, &plan))
        return NULL;
    unsigned d = memory_tile_dim(&source, (unsigned)plan.along);
    return arena_printf(&m->arena, "the tile may leave dimension %u, and extent %s of %lld-bit "
                        "elements is not known to be a multiple of %s", d,
                        expr_text(m, source.memory->type->extents[d]), (long long)width,
                        bytes < CP_ASYNC_LEAST ? "that width" : "a byte");
}
