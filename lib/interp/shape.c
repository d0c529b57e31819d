/* Ops that change a register tensor's shape: reduce and broadcast. */
#include "interp/state.h"
#include "ir/op_attrs.h"

#include <math.h>

/* ---- reduce ---------------------------------------------------------- */

/* The row-major number, in the result, of what the operand's element with the
 * row-major number `element` adds to. */
static int64_t reduced_number(const Layout *from, uint32_t dims, int64_t element)
{
    int64_t number = 0, scale = 1;
    for (unsigned d = from->rank; d-- > 0;) {
        int64_t index = element % from->shape[d];
        element /= from->shape[d];
        if (dims >> d & 1)
            continue;
        number += index * scale;
        scale *= from->shape[d];
    }
    return number;
}

static uint64_t element_code(const Tensor *t, int64_t element)
{
    Place p = t->map->place[element];
    return tensor_get(t, p.thread, p.slot);
}

/* A number wins over a NaN, 0.0 is above -0.0. */
static double fold_float(ReduceKind kind, double a, double b)
{
    if (kind == REDUCE_SUM)
        return a + b;
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    bool larger = a > b || (a == b && !signbit(a));
    return larger == (kind == REDUCE_MAX) ? a : b;
}

/* Sums in f64, in row-major order, rounded once at the end. The first value is
 * neutral: -0.0 + x is x, also for x = -0.0. */
static uint64_t *reduce_floats(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    ReduceKind kind = reduce_kind(op);
    uint32_t dims = reduce_dims(op);
    double *values = arena_array(in->arena, double, (size_t)count);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        values[i] = kind == REDUCE_SUM ? -0.0 : NAN;
    for (int64_t e = 0; e < from->map->elements; e++) {
        double *v = &values[reduced_number(from->map->layout, dims, e)];
        *v = fold_float(kind, *v, interp_value(in, from->dtype, element_code(from, e)));
    }
    for (int64_t i = 0; i < count; i++)
        codes[i] = dtype_encode(from->dtype, values[i]);
    return codes;
}

/* Signed ones with all bits above the type's width equal to the sign. */
static uint64_t fold_integer(ReduceKind kind, bool is_signed, uint64_t a, uint64_t b)
{
    if (kind == REDUCE_SUM)
        return a + b;
    bool larger = is_signed ? (int64_t)a > (int64_t)b : a > b;
    return larger == (kind == REDUCE_MAX) ? a : b;
}

/* The value that leaves every other one as it is. */
static uint64_t neutral_integer(ReduceKind kind, bool is_signed)
{
    if (kind == REDUCE_SUM)
        return 0;
    uint64_t least = is_signed ? (uint64_t)INT64_MIN : 0;
    return kind == REDUCE_MAX ? least : ~least;
}

static uint64_t *reduce_integers(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    ReduceKind kind = reduce_kind(op);
    uint32_t dims = reduce_dims(op);
    bool is_signed = dtype_info[from->dtype].kind == DKIND_INT;
    uint64_t sign = is_signed ? UINT64_C(1) << (from->bits - 1) : 0;
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        codes[i] = neutral_integer(kind, is_signed);
    for (int64_t e = 0; e < from->map->elements; e++) {
        uint64_t *v = &codes[reduced_number(from->map->layout, dims, e)];
        *v = fold_integer(kind, is_signed, *v, (element_code(from, e) ^ sign) - sign);
    }
    return codes;
}

bool interp_reduce(Interp *in, const Op *op)
{
    const Tensor *from = value_tensor(op->operands[0]);
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    interp_value(in, from->dtype, 0);      /* its table outlives the op */
    ArenaMark mark = arena_mark(in->arena);
    const uint64_t *codes = dtype_is_float(from->dtype)
                                ? reduce_floats(in, op, from, to->map->elements)
                                : reduce_integers(in, op, from, to->map->elements);
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++)
            tensor_set(to, thread, slot, codes[to->map->linear[thread * to->slots + slot]]);
    arena_reset(in->arena, mark);
    return true;
}

/* ---- broadcast ------------------------------------------------------- */

bool interp_broadcast(Interp *in, const Op *op)
{
    const Tensor *from = value_tensor(op->operands[0]);
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    to->undefined = NULL;
    for (int64_t slot = 0; slot < to->slots; slot++) {
        int64_t source = layout_broadcast_slot(from->map->layout, to->map->layout, slot);
        for (int64_t thread = 0; thread < to->threads; thread++)
            tensor_set(to, thread, slot, tensor_get(from, thread, source));
    }
    return true;
}
