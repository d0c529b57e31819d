/* dequantize: each step is rounded to the result's type. */
#include "interp/state.h"

/* The slot of operand `i` with what each slot of the codes needs. */
static int64_t *group_slots(Interp *in, const Op *op, unsigned i)
{
    const Layout *codes = value_tensor(op->operands[0])->map->layout;
    const Layout *groups = value_tensor(op->operands[i])->map->layout;
    int64_t *slots = arena_array(in->arena, int64_t, (size_t)codes->slots);
    for (int64_t slot = 0; slot < codes->slots; slot++)
        slots[slot] = layout_broadcast_slot(groups, codes, slot);
    return slots;
}

/* An element of `from` as one of `to`. */
static uint64_t get_as(DType to, const Tensor *from, int64_t thread, int64_t slot)
{
    return dtype_cast(to, from->dtype, tensor_get(from, thread, slot));
}

bool interp_dequantize(Interp *in, const Op *op)
{
    const Tensor *codes = value_tensor(op->operands[0]), *scale = value_tensor(op->operands[1]);
    const Tensor *zero = op->operand_count > 2 ? value_tensor(op->operands[2]) : NULL;
    Tensor *to = value_tensor(op->results[0]);
    DType t = to->dtype;
    if (!interp_operands_defined(in, op))
        return false;
    ArenaMark mark = arena_mark(in->arena);
    const int64_t *scale_slot = group_slots(in, op, 1);
    const int64_t *zero_slot = zero ? group_slots(in, op, 2) : NULL;
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++) {
            uint64_t v = get_as(t, codes, thread, slot);
            if (zero)
                v = dtype_sub(t, v, get_as(t, zero, thread, zero_slot[slot]));
            v = dtype_mul(t, v, get_as(t, scale, thread, scale_slot[slot]));
            tensor_set(to, thread, slot, v);
        }
    arena_reset(in->arena, mark);
    return true;
}
