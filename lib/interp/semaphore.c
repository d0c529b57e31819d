/* Semaphores. Blocks run one after the other, so a lock never waits: its value is
 * there, or no earlier block gives it. Blocks of a cooperative program run together: there it is
 * tried again. */
#include "interp/tile.h"

#include "ir/op_attrs.h"
#include "ir/text.h"
#include "ir/tile.h"
#include "support/bits.h"

typedef struct Semaphore {
    const View *view;
    int64_t bit;
    int64_t value;          /* that the op asks for, or gives */
} Semaphore;

static int64_t first_byte(const Semaphore *s)
{
    return s->bit / 8;
}

static bool evaluate_value(Interp *in, const Op *op, int64_t *value)
{
    if (!interp_evaluate(in, op, op_expr(op, ATTR_STATE), value))
        return false;
    if (semaphore_holds(op, *value))
        return true;
    return diag_error(in->diag, op->loc, "the semaphore's value %lld does not fit in %s",
                      (long long)*value, dtype_name(op_memory_operand(op)->type->dtype));
}

/* Finds the semaphore, which thread 0 accesses atomically. */
static bool semaphore_begin(Interp *in, const Op *op, Semaphore *s)
{
    MemoryTile place = op_memory_tile(op);
    Tile tile;
    int64_t index = 0;
    if (!evaluate_value(in, op, &s->value) || 
        !tile_begin(in, op, &place, op->code == OP_release, &tile) || !race_begin(in, op))
        return false;
    s->view = tile.view;
    unsigned outside = tile_locate(&tile, NULL, 0, &s->bit, &index);
    if (outside != tile.view->rank)
        return tile_report_outside(in, &tile, outside, index);
    int64_t first = first_byte(s), last = first + s->view->bits / 8 - 1;
    return tile_check_buffer(in, &tile, first, last) &&
           race_atomic(in, s->view, 0, first, last) &&
           (tile.write || tile_check_written(in, &tile, s->bit, first, last));
}

static int64_t held_value(const Op *op, const Semaphore *s)
{
    uint64_t code = bits_get(s->view->memory->data, (size_t)(s->bit / s->view->bits),
                             s->view->bits);
    return op_memory_operand(op)->type->dtype == DTYPE_i32 ? (int32_t)code : (int64_t)code;
}

static const char *waits_in_vain(const Op *op)
{
    return op_scope(op) == SCOPE_SYSTEM
               ? "blocks before it are done, and no other GPU runs here"
               : "it may wait for blocks before it only, and they are done";
}

/* As a barrier after it: the threads of the block, or of the group, go on together. */
bool interp_lock(Interp *in, const Op *op)
{
    Semaphore s;
    if (!semaphore_begin(in, op, &s))
        return false;
    int64_t held = held_value(op, &s);
    in->blocked = held != s.value && in->program->cooperative;
    if (in->blocked)
        return true;
    if (held != s.value)
        return diag_error(in->diag, op->loc, "%s waits for %lld at byte %lld of %s, which holds "
                          "%lld: %s", interp_running_name(in), (long long)s.value,
                          (long long)first_byte(&s), s.view->name, (long long)held,
                          waits_in_vain(op));
    order_acquire(in, s.view->memory, first_byte(&s));
    race_barrier(in);
    return true;
}

/* Without an access: it has been tried. */
const char *lock_wait_text(Interp *in, const Op *op)
{
    MemoryTile place = op_memory_tile(op);
    Tile tile;
    Semaphore s;
    int64_t index = 0;
    if (!evaluate_value(in, op, &s.value) || !tile_begin(in, op, &place, false, &tile))
        return "waits";
    tile_locate(&tile, NULL, 0, &s.bit, &index);
    s.view = tile.view;
    return arena_printf(in->arena, "waits for %lld at byte %lld of %s, which holds %lld",
                        (long long)s.value, (long long)first_byte(&s), s.view->name,
                        (long long)held_value(op, &s));
}

/* As a barrier before it: the threads of the block, or of the group, have come here. */
bool interp_release(Interp *in, const Op *op)
{
    Semaphore s;
    race_barrier(in);
    if (!semaphore_begin(in, op, &s))
        return false;
    Memory *memory = s.view->memory;
    for (int64_t i = 0; i < s.view->bits / 8; i++) {
        memory->data[first_byte(&s) + i] = (unsigned char)((uint64_t)s.value >> 8 * i);
        if (memory->defined)
            memory->defined[first_byte(&s) + i] = 0xFF;
    }
    order_release(in, memory, first_byte(&s));
    return true;
}
