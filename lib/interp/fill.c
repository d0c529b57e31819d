/* Ops that make register tensors of scalars: iota, splat and random. Each element follows from
 * its place in the tile alone, so replicas are equal. */
#include "interp/state.h"

#include "ir/op_attrs.h"
#include "support/philox.h"

/* Evaluates VALUE, 0 where it is left out; false when it, or an element, is out of range. */
static bool evaluate_value(Interp *in, const Op *op, int64_t *value)
{
    const Expr *e = op_expr(op, ATTR_VALUE);
    *value = 0;
    if (e && !interp_evaluate(in, op, e, value))
        return false;
    return value_holds(op, *value) ||
           diag_error(in->diag, op->loc, "%s", value_misfit_text(in->arena, op, *value));
}

bool interp_iota(Interp *in, const Op *op)
{
    Tensor *t = value_tensor(op->results[0]);
    unsigned rank = op->results[0]->type->rank, dim = iota_dim(op);
    int64_t first;
    if (!evaluate_value(in, op, &first))
        return false;
    t->undefined = NULL;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++) {
            int64_t index = t->map->index[(thread * t->slots + slot) * rank + dim];
            tensor_set(t, thread, slot, (uint64_t)(first + index));
        }
    return true;
}

bool interp_splat(Interp *in, const Op *op)
{
    Tensor *t = value_tensor(op->results[0]);
    const Value *v = value_float_scalar(op);
    int64_t value = 0;
    if (!v && !evaluate_value(in, op, &value))
        return false;
    uint64_t code = v ? dtype_cast(t->dtype, v->type->dtype, (uint64_t)value_binding(v)->integer)
                      : (uint64_t)value;
    t->undefined = NULL;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++)
            tensor_set(t, thread, slot, code);
    return true;
}

bool interp_random(Interp *in, const Op *op)
{
    Tensor *t = value_tensor(op->results[0]);
    int64_t seed, first;
    if (!interp_evaluate(in, op, op_expr(op, ATTR_VALUE), &seed) ||
        !interp_evaluate(in, op, op_expr(op, ATTR_COUNTER), &first))
        return false;
    t->undefined = NULL;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++) {
            uint64_t number = (uint64_t)first + t->map->linear[thread * t->slots + slot];
            tensor_set(t, thread, slot, philox_word((uint64_t)seed, number));
        }
    return true;
}
