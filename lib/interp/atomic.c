/* Atomic ops: each element once, whoever holds it, thread by thread. */
#include "interp/tile.h"

#include "support/bits.h"

/* What a place holds after an op, from what it held and the element's code. */
typedef uint64_t Combine(DType t, uint64_t before, uint64_t code);

static uint64_t exchange(DType t, uint64_t before, uint64_t code)
{
    (void)t, (void)before;
    return code;
}

/* Elements of atomic ops are whole words. Those that only write may be the first
 * to do so. */
static bool change_element(Interp *in, const Tile *tile, int64_t thread, int64_t bit,
                           uint64_t code, Combine *combine)
{
    const View *view = tile->view;
    Memory *memory = view->memory;
    DType t = op_tile_type(tile->op)->dtype;
    int64_t first = bit / 8, last = first + view->bits / 8 - 1;
    if (!tile_check_buffer(in, tile, first, last) ||
        !race_atomic(in, view, thread, first, last) ||
        (combine != exchange && !tile_check_written(in, tile, bit, first, last)))
        return false;
    uint64_t before = bits_get(memory->data, (size_t)(bit / view->bits), view->bits);
    uint64_t after = combine(t, before, code);
    for (int64_t byte = first; byte <= last; byte++) {
        memory->data[byte] = (unsigned char)(after >> 8 * (byte - first));
        if (memory->defined)
            memory->defined[byte] = 0xFF;
    }
    return true;
}

/* The elements of one thread. */
static bool change_elements(Interp *in, const Tile *tile, const Tensor *t, int64_t thread,
                            Combine *combine)
{
    for (int64_t slot = 0; slot < t->slots; slot++) {
        int64_t bit, index = 0;
        const int32_t *place = tensor_place(t, thread, slot);
        unsigned outside = tile_locate(tile, place, &bit, &index);
        if (outside != tile->view->rank && tile->view->memory->shared)
            return tile_report_outside(in, tile, outside, index);
        if (outside == tile->view->rank &&
            !change_element(in, tile, thread, bit, tensor_get(t, thread, slot), combine))
            return false;
    }
    return true;
}

/* Whether no lesser thread holds the elements of `thread`. */
static bool is_least_holder(const LayoutMap *map, int64_t thread)
{
    uint32_t element = map->linear[thread * map->layout->slots];
    return map->place[element].thread == thread;
}

static bool change(Interp *in, const Op *op, Combine *combine)
{
    const Tensor *t = value_tensor(op->operands[0]);
    MemoryTile place = op_memory_tile(op);
    Tile tile;
    if (!interp_operands_defined(in, op) || !tile_begin(in, op, &place, true, &tile) ||
        !race_begin(in, op))
        return false;
    for (int64_t thread = 0; thread < t->threads; thread++)
        if (is_least_holder(t->map, thread) &&
            !change_elements(in, &tile, t, thread, combine))
            return false;
    return true;
}

bool interp_atomic_add(Interp *in, const Op *op) { return change(in, op, dtype_add); }
bool interp_atomic_max(Interp *in, const Op *op) { return change(in, op, dtype_greater); }
bool interp_atomic_min(Interp *in, const Op *op) { return change(in, op, dtype_lesser); }
bool interp_atomic_exch(Interp *in, const Op *op) { return change(in, op, exchange); }
