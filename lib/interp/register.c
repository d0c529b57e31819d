/* Register ops that move or convert whole tensors, and dot. Replicas are computed
 * like any other element, so they stay equal. */
#include "interp/state.h"

#include "types/storage.h"

#include <math.h>
#include <string.h>

bool interp_allocate_register(Interp *in, const Op *op)
{
    (void)in;
    Tensor *t = value_tensor(op->results[0]);
    const Attr *init = op_attr(op, ATTR_INIT);
    t->undefined = init ? NULL : op;
    t->product = 0;
    uint64_t code = init ? constant_encode(t->dtype, init->number) : 0;
    for (int64_t thread = 0; thread < t->threads; thread++)
        for (int64_t slot = 0; slot < t->slots; slot++)
            tensor_set(t, thread, slot, code);
    return true;
}

/* Moves the groups of a tensor of REG type `t` from plain order to its own, or back. */
static void reorder(const Type *t, Tensor *tensor, bool to_plain)
{
    CastStorage s;
    uint32_t group[CAST_GROUP_BITS_MAX / 32];
    if (!t->packed)
        return;
    cast_storage(t->dtype, t->packed, &s);
    for (int64_t i = 0; i < tensor->threads * tensor->words; i += s.words) {
        memcpy(group, tensor->data + i, s.words * sizeof *group);
        (to_plain ? cast_unpack_group : cast_pack_group)(&s, group, tensor->data + i);
    }
}

/* Threads and bits a thread are equal, so the words are, in the orders of the
 * types; tensors here are in plain order. */
bool interp_view(Interp *in, const Op *op)
{
    (void)in;
    Value *from = op->operands[0], *to = op->results[0];
    value_assign(to, from);
    if (value_tensor(to)->undefined || (from->type->dtype == to->type->dtype &&
                                        from->type->packed == to->type->packed))
        return true;
    reorder(from->type, value_tensor(to), false);
    reorder(to->type, value_tensor(to), true);
    return true;
}

/* The operand's element as that of the result, times the power of 2 by which their deferred
 * scales differ, rounded to nearest even. */
static uint64_t scaled_code(Interp *in, const Op *op, int64_t thread, int64_t slot)
{
    const Type *from = op->operands[0]->type, *to = op->results[0]->type;
    int64_t index[LIMIT_RANK];
    layout_index(to->layout, thread, slot, index);
    int by = type_exponent(to, index) - type_exponent(from, index);
    uint64_t code = tensor_get(value_tensor(op->operands[0]), thread, slot);
    return dtype_encode(to->dtype, ldexp(interp_value(in, from->dtype, code), by));
}

/* Exact: there is no decode whose results would be rounded. */
bool interp_decode(Interp *in, const Op *op) { return interp_fill_slots(in, op, scaled_code); }

bool interp_rescale(Interp *in, const Op *op) { return interp_fill_slots(in, op, scaled_code); }

/* ---- dot ------------------------------------------------------------ */

/* The elements of a matrix in row-major order, from the least thread that
 * holds each. */
static double *matrix_values(Interp *in, const Tensor *t)
{
    double *values = arena_array(in->arena, double, (size_t)t->map->elements);
    for (int64_t e = 0; e < t->map->elements; e++) {
        Place p = t->map->place[e];
        values[e] = interp_value(in, t->dtype, tensor_get(t, p.thread, p.slot));
    }
    return values;
}

/* Elements that are integers, sign-extended and then taken modulo 2^64. */
static uint64_t *matrix_integers(Interp *in, const Tensor *t)
{
    uint64_t *values = arena_array(in->arena, uint64_t, (size_t)t->map->elements);
    uint64_t sign = dtype_info[t->dtype].kind == DKIND_INT ? UINT64_C(1) << (t->bits - 1) : 0;
    for (int64_t e = 0; e < t->map->elements; e++) {
        Place p = t->map->place[e];
        values[e] = (tensor_get(t, p.thread, p.slot) ^ sign) - sign;
    }
    return values;
}

typedef struct DotShape {
    int64_t batch, m, n, k;
} DotShape;

/* Codes of d = a * b + c, row-major: products of f16 and bf16 are exact in f64, and
 * so is nearly every sum. Rows are numbered through the whole batch. */
static uint64_t *dot_floats(Interp *in, const Op *op, DotShape s, DType type)
{
    const double *a = matrix_values(in, value_tensor(op->operands[0]));
    const double *b = matrix_values(in, value_tensor(op->operands[1]));
    const double *c = matrix_values(in, value_tensor(op->operands[2]));
    uint64_t *d = arena_array(in->arena, uint64_t, (size_t)(s.batch * s.m * s.n));
    double *sum = arena_array(in->arena, double, (size_t)s.n);
    for (int64_t i = 0; i < s.batch * s.m; i++) {
        const double *matrix = b + i / s.m * s.k * s.n;
        for (int64_t j = 0; j < s.n; j++)
            sum[j] = -0.0;      /* the neutral element: 0 + -0 would be 0 */
        for (int64_t k = 0; k < s.k; k++)
            for (int64_t j = 0; j < s.n; j++)
                sum[j] += a[i * s.k + k] * matrix[k * s.n + j];
        for (int64_t j = 0; j < s.n; j++)
            d[i * s.n + j] = dtype_encode(type, sum[j] + c[i * s.n + j]);
    }
    return d;
}

static uint64_t *dot_integers(Interp *in, const Op *op, DotShape s)
{
    const uint64_t *a = matrix_integers(in, value_tensor(op->operands[0]));
    const uint64_t *b = matrix_integers(in, value_tensor(op->operands[1]));
    uint64_t *d = matrix_integers(in, value_tensor(op->operands[2]));
    for (int64_t i = 0; i < s.batch * s.m; i++) {
        const uint64_t *matrix = b + i / s.m * s.k * s.n;
        for (int64_t k = 0; k < s.k; k++)
            for (int64_t j = 0; j < s.n; j++)
                d[i * s.n + j] += a[i * s.k + k] * matrix[k * s.n + j];
    }
    return d;
}

bool interp_dot(Interp *in, const Op *op)
{
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    const Layout *a = value_tensor(op->operands[0])->map->layout, *d = to->map->layout;
    DotShape shape = {.batch = 1, .m = d->shape[d->rank - 2], .n = d->shape[d->rank - 1],
                      .k = a->shape[a->rank - 1]};
    for (unsigned i = 0; i + 2 < d->rank; i++)
        shape.batch *= d->shape[i];

    /* The tables of decoded values outlive the op, so they are made first. */
    bool floats = false;
    for (unsigned i = 0; i < op->operand_count; i++) {
        DType t = value_tensor(op->operands[i])->dtype;
        floats |= dtype_is_float(t);
        interp_value(in, t, 0);
    }
    ArenaMark mark = arena_mark(in->arena);
    const uint64_t *codes = floats ? dot_floats(in, op, shape, to->dtype)
                                   : dot_integers(in, op, shape);
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++)
            tensor_set(to, thread, slot, codes[to->map->linear[thread * to->slots + slot]]);
    arena_reset(in->arena, mark);
    return true;
}
