/* Ops that combine or move a register tensor's elements: reduce, scan, shuffle, broadcast,
 * convert_layout. */
#include "interp/fold.h"
#include "interp/state.h"

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

/* Elements from one to the next along dimension `dim`, in row-major numbers. */
static int64_t stride_of(const Layout *l, unsigned dim)
{
    int64_t stride = 1;
    for (unsigned d = dim + 1; d < l->rank; d++)
        stride *= l->shape[d];
    return stride;
}

static uint64_t element_code(const Tensor *t, int64_t element)
{
    Place p = t->map->place[element];
    return tensor_get(t, p.thread, p.slot);
}

/* Sums and products in f64, in row-major order, rounded once at the end. */
static uint64_t *reduce_floats(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    ReduceKind kind = reduce_kind(op);
    uint32_t dims = reduce_dims(op);
    double *values = arena_array(in->arena, double, (size_t)count);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        values[i] = fold_neutral_float(kind);
    for (int64_t e = 0; e < from->map->elements; e++) {
        double *v = &values[reduced_number(from->map->layout, dims, e)];
        *v = fold_float(kind, *v, interp_value(in, from->dtype, element_code(from, e)));
    }
    for (int64_t i = 0; i < count; i++)
        codes[i] = dtype_encode(from->dtype, values[i]);
    return codes;
}

static uint64_t *reduce_integers(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    ReduceKind kind = reduce_kind(op);
    uint32_t dims = reduce_dims(op);
    bool is_signed = dtype_info[from->dtype].kind == DKIND_INT;
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        codes[i] = fold_neutral_integer(kind, is_signed);
    for (int64_t e = 0; e < from->map->elements; e++) {
        uint64_t *v = &codes[reduced_number(from->map->layout, dims, e)];
        *v = fold_integer(kind, is_signed, *v, fold_extend(from->dtype, element_code(from, e)));
    }
    return codes;
}

/* Every code but 0 is true. */
static uint64_t *reduce_bools(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    bool all = reduce_kind(op) == REDUCE_ALL;
    uint32_t dims = reduce_dims(op);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)count);
    for (int64_t i = 0; i < count; i++)
        codes[i] = all;
    for (int64_t e = 0; e < from->map->elements; e++)
        if ((element_code(from, e) != 0) != all)
            codes[reduced_number(from->map->layout, dims, e)] = !all;
    return codes;
}

/* Returns true when element `a` comes before the preferred one so far, `b`: it is greater (less),
 * or a number where `b` is a NaN. */
static bool is_preferred(ReduceKind kind, DType t, uint64_t a, uint64_t b)
{
    DOrder order = dtype_order(t, a, b);
    if (order == DORDER_NONE)
        return dtype_order(t, a, a) != DORDER_NONE;
    return order == (reduce_prefers_greater(kind) ? DORDER_GREATER : DORDER_LESS);
}

/* Indices of the first of the elements that are preferred, which row-major order finds. */
static uint64_t *reduce_to_indices(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    const Layout *l = from->map->layout;
    uint32_t dims = reduce_dims(op);
    unsigned dim = (unsigned)op_attr(op, ATTR_DIMS)->ints[0];
    uint64_t *indices = arena_array(in->arena, uint64_t, (size_t)count);
    uint64_t *best = arena_array(in->arena, uint64_t, (size_t)count);
    int64_t stride = stride_of(l, dim);
    for (int64_t e = 0; e < from->map->elements; e++) {
        int64_t to = reduced_number(l, dims, e), index = e / stride % l->shape[dim];
        uint64_t code = element_code(from, e);
        if (index && !is_preferred(reduce_kind(op), from->dtype, code, best[to]))
            continue;
        best[to] = code;
        indices[to] = (uint64_t)index;
    }
    return indices;
}

static uint64_t *reduce(Interp *in, const Op *op, const Tensor *from, int64_t count)
{
    if (reduce_gives_index(reduce_kind(op)))
        return reduce_to_indices(in, op, from, count);
    if (reduce_takes_bools(reduce_kind(op)))
        return reduce_bools(in, op, from, count);
    return dtype_is_float(from->dtype) ? reduce_floats(in, op, from, count)
                                       : reduce_integers(in, op, from, count);
}

/* Gives each thread and slot the code of its element. */
static void set_elements(Tensor *to, const uint64_t *codes)
{
    to->undefined = NULL;
    for (int64_t thread = 0; thread < to->threads; thread++)
        for (int64_t slot = 0; slot < to->slots; slot++)
            tensor_set(to, thread, slot, codes[to->map->linear[thread * to->slots + slot]]);
}

bool interp_reduce(Interp *in, const Op *op)
{
    const Tensor *from = value_tensor(op->operands[0]);
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    interp_value(in, from->dtype, 0);      /* its table outlives the op */
    ArenaMark mark = arena_mark(in->arena);
    set_elements(to, reduce(in, op, from, to->map->elements));
    arena_reset(in->arena, mark);
    return true;
}

/* ---- scan ------------------------------------------------------------- */

/* Goes along each line of dimension `dim`: sums and products of floats are made in f64, and each
 * is rounded once. */
static uint64_t *scan_floats(Interp *in, const Op *op, const Tensor *from)
{
    ReduceKind kind = reduce_kind(op);
    const Layout *l = from->map->layout;
    int64_t stride = stride_of(l, op_dim(op)), extent = l->shape[op_dim(op)];
    bool exclusive = scan_is_exclusive(op);
    double *values = arena_array(in->arena, double, (size_t)from->map->elements);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)from->map->elements);
    double start = exclusive ? fold_start_float(kind, from->dtype) : fold_neutral_float(kind);
    for (int64_t e = 0; e < from->map->elements; e++) {
        double before = e / stride % extent ? values[e - stride] : start;
        values[e] = fold_float(kind, before, interp_value(in, from->dtype, element_code(from, e)));
        codes[e] = dtype_encode(from->dtype, exclusive ? before : values[e]);
    }
    return codes;
}

static uint64_t *scan_integers(Interp *in, const Op *op, const Tensor *from)
{
    ReduceKind kind = reduce_kind(op);
    const Layout *l = from->map->layout;
    int64_t stride = stride_of(l, op_dim(op)), extent = l->shape[op_dim(op)];
    bool exclusive = scan_is_exclusive(op), is_signed = dtype_info[from->dtype].kind == DKIND_INT;
    uint64_t *values = arena_array(in->arena, uint64_t, (size_t)from->map->elements);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)from->map->elements);
    uint64_t start = fold_start_integer(kind, from->dtype);
    for (int64_t e = 0; e < from->map->elements; e++) {
        uint64_t before = e / stride % extent ? values[e - stride] : start;
        uint64_t v = fold_extend(from->dtype, element_code(from, e));
        values[e] = fold_integer(kind, is_signed, before, v);
        codes[e] = (exclusive ? before : values[e]) & UINT64_MAX >> (64 - from->bits);
    }
    return codes;
}

bool interp_scan(Interp *in, const Op *op)
{
    const Tensor *from = value_tensor(op->operands[0]);
    if (!interp_operands_defined(in, op))
        return false;
    interp_value(in, from->dtype, 0);      /* its table outlives the op */
    ArenaMark mark = arena_mark(in->arena);
    bool floats = dtype_is_float(from->dtype);
    set_elements(value_tensor(op->results[0]),
                 floats ? scan_floats(in, op, from) : scan_integers(in, op, from));
    arena_reset(in->arena, mark);
    return true;
}

/* ---- shuffle ---------------------------------------------------------- */

bool interp_shuffle(Interp *in, const Op *op)
{
    const Tensor *from = value_tensor(op->operands[0]), *index = value_tensor(op->operands[1]);
    const Layout *l = from->map->layout;
    int64_t stride = stride_of(l, op_dim(op)), extent = l->shape[op_dim(op)];
    if (!interp_operands_defined(in, op))
        return false;
    ArenaMark mark = arena_mark(in->arena);
    uint64_t *codes = arena_array(in->arena, uint64_t, (size_t)from->map->elements);
    for (int64_t e = 0; e < from->map->elements; e++) {
        int64_t i = (int64_t)fold_extend(index->dtype, element_code(index, e));
        int64_t first = e - e / stride % extent * stride;
        codes[e] = i >= 0 && i < extent ? element_code(from, first + i * stride) : 0;
    }
    set_elements(value_tensor(op->results[0]), codes);
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

/* ---- convert_layout --------------------------------------------------- */

/* The element of the operand that the result has in the slot. */
static uint64_t moved_code(Interp *in, const Op *op, int64_t thread, int64_t slot)
{
    (void)in;
    const Tensor *to = value_tensor(op->results[0]);
    return element_code(value_tensor(op->operands[0]), to->map->linear[thread * to->slots + slot]);
}

bool interp_convert_layout(Interp *in, const Op *op)
{
    return interp_fill_slots(in, op, moved_code);
}
