/* lookup and lookup_shared: an element is what its code chooses from a table, in the
 * thread's registers or in shared memory. */
#include "interp/tile.h"

#include "ir/lookup.h"

/* The element of the thread's table that its code chooses. */
static uint64_t chosen_code(Interp *in, const Op *op, int64_t thread, int64_t slot)
{
    (void)in;
    int64_t number = (int64_t)tensor_get(value_tensor(op->operands[0]), thread, slot);
    return tensor_get(value_tensor(op->operands[1]), thread, number);
}

bool interp_lookup(Interp *in, const Op *op)
{
    return interp_fill_slots(in, op, chosen_code);
}

/* The number of the table's element that is for `slot` of `thread`. */
static int64_t entry_number(const View *view, const LookupTable *table, const Tensor *codes,
                            int64_t thread, int64_t slot)
{
    unsigned group = table->group, row = view->rank - 1;
    int64_t first = slot - slot % group, element = view->first;
    for (unsigned i = 0; i < group; i++)
        element += (int64_t)tensor_get(codes, thread, first + i) * view->stride[group - 1 - i];
    if (table->has_copies)
        element += thread % table->copies * view->stride[group];
    if (table->has_row)
        element += slot % group * view->stride[row];
    return element;
}

bool interp_lookup_shared(Interp *in, const Op *op)
{
    const Tensor *codes = value_tensor(op->operands[0]);
    Tensor *to = value_tensor(op->results[0]);
    const View *view = &value_binding(op->operands[1])->view;
    Tile tile = {.op = op, .view = view};
    LookupTable table;
    lookup_table(op->operands[1]->type, &table);
    if (!interp_operands_defined(in, op) || !race_begin(in, op))
        return false;
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++) {
            int64_t bit = entry_number(view, &table, codes, thread, slot) * view->bits;
            uint64_t code;
            if (!tile_load(in, &tile, thread, bit, &code))
                return false;
            tensor_set(to, thread, slot, code);
        }
    profile_moved(in, op, view, false, to->threads * to->slots);
    return true;
}
