/* Memory ops: allocations, views, loads and stores. */
#include "interp/tile.h"

#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "support/bits.h"
#include "support/scalar.h"

#include <string.h>

/* ---- allocations and views ------------------------------------------ */

/* Each execution gives the same bytes, undefined anew. Their history stays: a
 * later iteration may race with an earlier one. */
bool interp_allocate_shared(Interp *in, const Op *op)
{
    Memory *memory = value_binding(op->results[0])->view.memory;
    if (!copies_ended(in, memory, op) || !products_ended(in, memory, op))
        return false;
    memset(memory->defined, 0, (size_t)memory->size);
    memory->allocated_in = in->block_count;
    return true;
}

static bool view_strides(Interp *in, const Op *op, const Type *t, View *view)
{
    int64_t row_major = 1;
    for (unsigned d = t->rank; d-- > 0;) {
        view->stride[d] = row_major;
        if (t->strides && !interp_evaluate(in, op, t->strides[d], &view->stride[d]))
            return false;
        if (!t->strides && __builtin_mul_overflow(row_major, view->extent[d], &row_major))
            return diag_error(in->diag, op->loc, "the view spans more than 2^63 elements");
    }
    return true;
}

/* Returns true when every element's bit number, and every part of the sum that makes
 * it, is less than 2^63. */
static bool view_is_addressable(const View *view)
{
    int64_t span = 1;
    for (unsigned d = 0; d < view->rank; d++) {
        int64_t last = view->extent[d] > 0 ? view->extent[d] - 1 : 0, reach;
        if (view->stride[d] == INT64_MIN)
            return false;
        int64_t stride = view->stride[d] < 0 ? -view->stride[d] : view->stride[d];
        if (__builtin_mul_overflow(last, stride, &reach) ||
            __builtin_add_overflow(span, reach, &span))
            return false;
    }
    return !__builtin_mul_overflow(span, (int64_t)view->bits, &span);
}

/* Sets all but the memory and its name. */
static bool view_open(Interp *in, const Op *op, View *view)
{
    const Type *t = op->results[0]->type;
    view->origin = op;
    view->rank = t->rank;
    view->bits = dtype_bits(t->dtype);
    for (unsigned d = 0; d < t->rank; d++) {
        if (!interp_evaluate(in, op, t->extents[d], &view->extent[d]))
            return false;
        if (view->extent[d] < 0)
            return diag_error(in->diag, op->loc, "the extent of dimension %u is %lld", d,
                              (long long)view->extent[d]);
    }
    if (!view_strides(in, op, t, view))
        return false;
    if (!view_is_addressable(view))
        return diag_error(in->diag, op->loc, "the view spans more than 2^63 bits");
    return true;
}

bool interp_view_global(Interp *in, const Op *op)
{
    View *view = &value_binding(op->results[0])->view;
    *view = value_binding(op->operands[0])->view;
    return view_open(in, op, view);
}

/* The first execution of all blocks makes the tensor, which then stays. */
bool interp_allocate_global(Interp *in, const Op *op)
{
    const Value *v = op->results[0];
    View *view = &value_binding(v)->view;
    int64_t elements = 1;
    if (view->memory)
        return true;
    if (!view_open(in, op, view))
        return false;
    for (unsigned d = 0; d < view->rank; d++)
        elements *= view->extent[d];
    int64_t size = (elements * view->bits + 7) / 8;
    view->name = v->name ? arena_printf(in->arena, "workspace tensor %%%s", v->name)
                         : "a workspace tensor";
    view->memory = memory_new(in, arena_alloc(in->arena, (size_t)size), size);
    if (!workspace_is_zeroed(op))
        view->memory->defined = arena_alloc(in->arena, (size_t)size);
    return true;
}

/* ---- one access of a tile ------------------------------------------- */

bool tile_begin(Interp *in, const Op *op, const MemoryTile *t, bool write, Tile *tile)
{
    const View *view = &value_binding(t->memory)->view;
    *tile = (Tile){.op = op, .view = view, .write = write, .rank = t->rank,
                   .base = view->first, .outside_dim = view->rank,
                   .index = t->index ? value_tensor(t->index) : NULL, .indexed = t->indexed};
    int64_t offset[LIMIT_RANK] = {0};
    for (unsigned d = 0; d < t->offsets->count; d++)
        if (!interp_evaluate(in, op, t->offsets->exprs[d], &offset[d]))
            return false;
    for (unsigned i = 0; i < tile->rank; i++) {
        unsigned d = tile->dim[i] = memory_tile_dim(t, i);
        tile->offset[i] = offset[d];
        tile->extent[i] = view->extent[d];
        tile->stride[i] = view->stride[d];
    }
    for (unsigned d = 0; d < view->rank; d++) {
        if (memory_tile_find(t, d) >= 0 || memory_tile_is_indexed(t, d))
            continue;
        if (offset[d] >= 0 && offset[d] < view->extent[d]) {
            tile->base += offset[d] * view->stride[d];
        } else if (tile->outside_dim == view->rank) {
            tile->outside_dim = d;
            tile->outside_index = offset[d];
        }
    }
    return true;
}

static int64_t tensor_integer(const Tensor *t, int64_t thread, int64_t slot)
{
    uint64_t code = tensor_get(t, thread, slot);
    return t->dtype == DTYPE_i32 ? (int32_t)code : (int64_t)code;
}

int64_t tile_row(const Tile *tile, const Layout *l, int64_t thread, int64_t slot)
{
    if (!tile->index)
        return 0;
    return tensor_integer(tile->index, thread,
                          layout_broadcast_slot(tile->index->map->layout, l, slot));
}

int64_t tile_index_number(const Tile *tile, const int32_t *place)
{
    const Layout *l = tile->index->map->layout;
    int64_t number = 0;
    for (unsigned d = 0; d < tile->rank; d++)
        number = number * l->shape[d] + (l->shape[d] == 1 ? 0 : place[d]);
    return number;
}

int64_t tile_index_element(const Tile *tile, int64_t number)
{
    Place p = tile->index->map->place[number];
    return tensor_integer(tile->index, p.thread, p.slot);
}

unsigned tile_locate(const Tile *tile, const int32_t *place, int64_t row, int64_t *bit,
                     int64_t *index)
{
    int64_t element = tile->base;
    if (tile->outside_dim != tile->view->rank) {
        *index = tile->outside_index;
        return tile->outside_dim;
    }
    if (tile->index) {
        *index = row;
        if (row < 0 || row >= tile->view->extent[tile->indexed])
            return tile->indexed;
        element += row * tile->view->stride[tile->indexed];
    }
    for (unsigned d = 0; d < tile->rank; d++) {
        if (tile->index && tile->dim[d] == tile->indexed)
            continue;
        /* The sum's only overflow is upward, and then it is outside. */
        if (__builtin_add_overflow(tile->offset[d], (int64_t)place[d], index))
            *index = INT64_MAX;
        if (*index < 0 || *index >= tile->extent[d])
            return tile->dim[d];
        element += *index * tile->stride[d];
    }
    *bit = swizzle_element(tile->view->swizzle, element) * tile->view->bits;
    return tile->view->rank;
}

static const char *tile_verb(const Tile *tile)
{
    return tile->write ? "writes" : "reads";
}

bool view_note_origin(Interp *in, const View *view)
{
    if (view->origin->code == OP_view_global)
        return diag_note(in->diag, view->origin->loc, "the view is made here");
    const char *verb = view->origin->code == OP_allocate_shared ? "allocated" : "made";
    return diag_note(in->diag, view->origin->loc, "%s is %s here", view->name, verb);
}

bool tile_report_outside(Interp *in, const Tile *tile, unsigned dim, int64_t index)
{
    diag_error(in->diag, tile->op->loc,
               "%s index %lld in dimension %u of %s, which has extent %lld", tile_verb(tile),
               (long long)index, dim, tile->view->name, (long long)tile->view->extent[dim]);
    return view_note_origin(in, tile->view);
}

bool tile_check_buffer(Interp *in, const Tile *tile, int64_t first, int64_t last)
{
    int64_t size = tile->view->memory->size;
    if (first >= 0 && last < size)
        return true;
    int64_t byte = first < 0 || first >= size ? first : size;
    diag_error(in->diag, tile->op->loc, "%s byte %lld of %s, which has %lld bytes",
               tile_verb(tile), (long long)byte, tile->view->name, (long long)size);
    return view_note_origin(in, tile->view);
}

/* Begins the load or store of a register tile. */
static bool access_begin(Interp *in, const Op *op, Tile *tile)
{
    MemoryTile t = op_memory_tile(op);
    return tile_begin(in, op, &t, !op->result_count, tile) && race_begin(in, op);
}

bool view_turn_to_rank(Interp *in, const Op *op, View *view, int64_t rank)
{
    view->memory = view->memory->of_rank[rank];
    if (view->memory->allocated_in == in->block_count)
        return true;
    diag_error(in->diag, op->loc, "accesses %s of rank %lld, which that block has not allocated yet",
               view->name, (long long)rank);
    return view_note_origin(in, view);
}

/* Turns the tile of an op with a rank to the tensor of that block, in `view`. */
static bool find_remote(Interp *in, const Op *op, Tile *tile, View *view)
{
    int64_t rank;
    if (!op_attr(op, ATTR_RANK))
        return true;
    if (!interp_rank(in, op, ATTR_RANK, false, &rank))
        return false;
    *view = *tile->view;
    tile->view = view;
    return view_turn_to_rank(in, op, view, rank);
}

/* ---- loads ---------------------------------------------------------- */

unsigned byte_mask(int64_t bit, unsigned width, int64_t byte)
{
    int64_t from = bit - byte * 8, to = from + width;
    unsigned low = from > 0 ? (unsigned)from : 0, high = to < 8 ? (unsigned)to : 8;
    return (0xFFu << low) & (0xFFu >> (8 - high));
}

bool tile_check_written(Interp *in, const Tile *tile, int64_t bit, int64_t first,
                          int64_t last)
{
    const View *view = tile->view;
    for (int64_t byte = first; byte <= last; byte++) {
        unsigned mask = byte_mask(bit, view->bits, byte);
        if (!view->memory->defined || (view->memory->defined[byte] & mask) == mask)
            continue;
        diag_error(in->diag, tile->op->loc, "reads byte %lld of %s, which was never written",
                   (long long)byte, view->name);
        return view_note_origin(in, view);
    }
    return true;
}

bool tile_load(Interp *in, const Tile *tile, int64_t thread, int64_t bit, uint64_t *code)
{
    const View *view = tile->view;
    int64_t first = floor_div(bit, 8), last = floor_div(bit + view->bits - 1, 8);
    if (!tile_check_buffer(in, tile, first, last) ||
        !race_read(in, view, thread, first, last) ||
        !tile_check_written(in, tile, bit, first, last))
        return false;
    *code = bits_get(view->memory->data, (size_t)(bit / view->bits), view->bits);
    return true;
}

static bool load(Interp *in, const Op *op)
{
    Tensor *t = value_tensor(op->results[0]);
    int64_t inside = 0;
    Tile tile;
    View remote;
    if (!access_begin(in, op, &tile) || !find_remote(in, op, &tile, &remote))
        return false;
    if (tile.index && !interp_operands_defined(in, op))
        return false;
    t->undefined = NULL;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++) {
            int64_t bit, index = 0, row = tile_row(&tile, t->map->layout, thread, slot);
            uint64_t code = 0;
            unsigned outside = tile_locate(&tile, tensor_place(t, thread, slot), row, &bit,
                                           &index);
            if (outside != tile.view->rank && tile.view->memory->shared)
                return tile_report_outside(in, &tile, outside, index);
            if (outside == tile.view->rank && !tile_load(in, &tile, thread, bit, &code))
                return false;
            inside += outside == tile.view->rank;
            tensor_set(t, thread, slot, code);
        }
    profile_moved(in, op, tile.view, false, inside);
    return true;
}

bool interp_load_global(Interp *in, const Op *op)
{
    return load(in, op);
}

bool interp_load_shared(Interp *in, const Op *op)
{
    return load(in, op);
}

/* Every thread reads the element; a write conflicts with one of two in each warp. */
static bool load_by_warps(Interp *in, const Tile *tile, int64_t bit, uint64_t *code)
{
    for (int64_t first = 0; first < in->threads.count; first += WARP)
        if (!tile_load(in, tile, first, bit, code) || !tile_load(in, tile, first + 1, bit, code))
            return false;
    return true;
}

bool interp_load_scalar(Interp *in, const Op *op)
{
    MemoryTile place = op_memory_tile(op);
    int64_t bit, index;
    uint64_t code = 0;
    Tile tile;
    if (!tile_begin(in, op, &place, false, &tile) || !race_begin(in, op))
        return false;
    unsigned outside = tile_locate(&tile, NULL, 0, &bit, &index);
    if (outside != tile.view->rank && tile.view->memory->shared)
        return tile_report_outside(in, &tile, outside, index);
    if (outside == tile.view->rank && !load_by_warps(in, &tile, bit, &code))
        return false;
    profile_moved(in, op, tile.view, false, outside == tile.view->rank);
    bool is_signed = dtype_info[op->results[0]->type->dtype].kind == DKIND_INT;
    uint64_t sign = is_signed ? UINT64_C(1) << (tile.view->bits - 1) : 0;
    value_binding(op->results[0])->integer = (int64_t)((code ^ sign) - sign);
    return true;
}

/* ---- stores --------------------------------------------------------- */

/* Neighbors that share a byte keep their bits. */
static bool store_element(Interp *in, const Tile *tile, int64_t thread, int64_t bit,
                          uint64_t code)
{
    const View *view = tile->view;
    Memory *memory = view->memory;
    int64_t first = floor_div(bit, 8), last = floor_div(bit + view->bits - 1, 8);
    if (!tile_check_buffer(in, tile, first, last))
        return false;
    unsigned shift = bit % 8;
    for (int64_t byte = first; byte <= last; byte++) {
        unsigned mask = byte_mask(bit, view->bits, byte);
        unsigned place = (unsigned)(byte - first) * 8;
        unsigned bits = (unsigned)(place ? code >> (place - shift) : code << shift) & mask;
        unsigned before = memory->data[byte], after = (before & ~mask) | bits;
        if (!race_write(in, view, thread, byte, mask, before, after))
            return false;
        memory->data[byte] = (unsigned char)after;
        if (memory->defined)
            memory->defined[byte] |= (unsigned char)mask;
    }
    return true;
}

static bool store(Interp *in, const Op *op)
{
    const Tensor *t = value_tensor(op->operands[0]);
    int64_t inside = 0;
    Tile tile;
    View remote;
    if (!interp_operands_defined(in, op) || !access_begin(in, op, &tile) ||
        !find_remote(in, op, &tile, &remote))
        return false;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++) {
            int64_t bit, index = 0, row = tile_row(&tile, t->map->layout, thread, slot);
            unsigned outside = tile_locate(&tile, tensor_place(t, thread, slot), row, &bit,
                                           &index);
            if (outside != tile.view->rank && tile.view->memory->shared)
                return tile_report_outside(in, &tile, outside, index);
            if (outside == tile.view->rank &&
                !store_element(in, &tile, thread, bit, tensor_get(t, thread, slot)))
                return false;
            inside += outside == tile.view->rank;
        }
    profile_moved(in, op, tile.view, true, inside);
    return true;
}

bool interp_store_global(Interp *in, const Op *op)
{
    return store(in, op);
}

bool interp_store_shared(Interp *in, const Op *op)
{
    return store(in, op);
}
