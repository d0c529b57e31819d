/* Atomic ops: each element once, whoever holds it, thread by thread. */
#include "interp/tile.h"

#include "ir/tile.h"
#include "support/bits.h"

/* Returns the code of an element after an op, from its code before and the operand's. */
typedef uint64_t Combine(DType t, uint64_t before, uint64_t code);

static uint64_t exchange(DType t, uint64_t before, uint64_t code)
{
    (void)t, (void)before;
    return code;
}

typedef struct Change {
    Combine *combine;
    const Tensor *code;
    const Tensor *compare;      /* what a place must hold to change; NULL: anything */
    Tensor *before;             /* gets what places held; NULL: not wanted */
} Change;

/* Returns true when the op depends on the old value. An exchange alone may be the first
 * to write there. */
static bool change_reads(const Change *c)
{
    return c->combine != exchange || c->compare || c->before;
}

/* The element in `slot` of `thread`, whose place is at `bit`: of whole bytes. */
static bool change_element(Interp *in, const Change *c, const Tile *tile, int64_t thread,
                           int64_t slot, int64_t bit)
{
    const View *view = tile->view;
    Memory *memory = view->memory;
    int64_t first = bit / 8, last = first + view->bits / 8 - 1;
    if (!tile_check_buffer(in, tile, first, last) ||
        !race_atomic(in, view, thread, first, last) ||
        (change_reads(c) && !tile_check_written(in, tile, bit, first, last)))
        return false;
    profile_moved(in, tile->op, view, false, 1);
    profile_moved(in, tile->op, view, true, 1);
    uint64_t before = bits_get(memory->data, (size_t)(bit / view->bits), view->bits);
    if (c->before)
        tensor_set(c->before, thread, slot, before);
    if (c->compare && tensor_get(c->compare, thread, slot) != before)
        return true;
    uint64_t after = c->combine(c->code->dtype, before, tensor_get(c->code, thread, slot));
    for (int64_t byte = first; byte <= last; byte++) {
        memory->data[byte] = (unsigned char)(after >> 8 * (byte - first));
        if (memory->defined)
            memory->defined[byte] = 0xFF;
    }
    return true;
}

/* The elements of one thread. */
static bool change_elements(Interp *in, const Change *c, const Tile *tile, int64_t thread)
{
    for (int64_t slot = 0; slot < c->code->slots; slot++) {
        int64_t bit, index = 0;
        const int32_t *place = tensor_place(c->code, thread, slot);
        int64_t row = tile_row(tile, c->code->map->layout, thread, slot);
        unsigned outside = tile_locate(tile, place, row, &bit, &index);
        if (outside != tile->view->rank && tile->view->memory->shared)
            return tile_report_outside(in, tile, outside, index);
        if (c->before)
            tensor_set(c->before, thread, slot, 0);
        if (outside == tile->view->rank && !change_element(in, c, tile, thread, slot, bit))
            return false;
    }
    return true;
}

/* The least thread that holds the elements of `thread`. */
static int64_t least_holder(const LayoutMap *map, int64_t thread)
{
    uint32_t element = map->linear[thread * map->layout->slots];
    return map->place[element].thread;
}

/* Replicas learn what their least holder found. */
static void share_before(Tensor *before)
{
    for (int64_t thread = 0; thread < before->threads; thread++)
        for (int64_t slot = 0; slot < before->slots; slot++)
            tensor_set(before, thread, slot,
                       tensor_get(before, least_holder(before->map, thread), slot));
}

static bool change(Interp *in, const Op *op, Combine *combine)
{
    const Tensor *code = value_tensor(op->operands[op_memory_number(op) - 1]);
    Change c = {.combine = combine, .code = code,
                .compare = op->code == OP_atomic_cas ? value_tensor(op->operands[0]) : NULL,
                .before = op->result_count ? value_tensor(op->results[0]) : NULL};
    MemoryTile place = op_memory_tile(op);
    Tile tile;
    if (!interp_operands_defined(in, op) || !tile_begin(in, op, &place, true, &tile) ||
        !race_begin(in, op))
        return false;
    for (int64_t thread = 0; thread < code->threads; thread++)
        if (least_holder(code->map, thread) == thread &&
            !change_elements(in, &c, &tile, thread))
            return false;
    if (c.before) {
        c.before->undefined = NULL;
        share_before(c.before);
    }
    return true;
}

bool interp_atomic_add(Interp *in, const Op *op) { return change(in, op, dtype_add); }
bool interp_atomic_max(Interp *in, const Op *op) { return change(in, op, dtype_greater); }
bool interp_atomic_min(Interp *in, const Op *op) { return change(in, op, dtype_lesser); }
bool interp_atomic_exch(Interp *in, const Op *op) { return change(in, op, exchange); }
bool interp_atomic_cas(Interp *in, const Op *op) { return change(in, op, exchange); }
