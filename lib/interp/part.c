/* slice and permute, whose parts of memory are views of it, parts of registers copies; and
 * register tensors under other dimensions. */
#include "interp/tile.h"

#include "ir/part.h"
#include "ir/tile.h"

/* ---- memory -------------------------------------------------------------- */

/* The operand's view as that of the result, which has its own name. */
static View *begin_part(const Op *op)
{
    View *view = &value_binding(op->results[0])->view;
    const char *name = view->name;
    *view = value_binding(op->operands[0])->view;
    view->name = name;
    view->origin = op;
    return view;
}

/* The slice's offset and extent in dimension `d` of the operand. */
static bool evaluate_dim(Interp *in, const Op *op, const MemoryTile *t, unsigned d,
                         int64_t *offset, int64_t *extent)
{
    int dim = memory_tile_find(t, d);
    *extent = 1;
    return interp_evaluate(in, op, t->offsets->exprs[d], offset) &&
           (dim < 0 || interp_evaluate(in, op, op->results[0]->type->extents[dim], extent));
}

/* A slice lies inside its operand. */
static bool check_dim(Interp *in, const Op *op, const View *from, unsigned d, int64_t offset,
                      int64_t extent)
{
    if (extent < 0)
        return diag_error(in->diag, op->loc, "the extent of dimension %u is %lld", d,
                          (long long)extent);
    if (offset >= 0 && offset <= from->extent[d] && extent <= from->extent[d] - offset)
        return true;
    diag_error(in->diag, op->loc, "the slice covers %lld elements from %lld on in dimension "
               "%u of %s, which has extent %lld", (long long)extent, (long long)offset, d,
               from->name, (long long)from->extent[d]);
    return view_note_origin(in, from);
}

static bool slice_memory(Interp *in, const Op *op)
{
    const View *from = &value_binding(op->operands[0])->view;
    View *view = begin_part(op);
    MemoryTile t = op_memory_tile(op);
    view->rank = t.rank;
    for (unsigned d = 0; d < from->rank; d++) {
        int64_t offset, extent;
        int dim = memory_tile_find(&t, d);
        if (!evaluate_dim(in, op, &t, d, &offset, &extent) ||
            !check_dim(in, op, from, d, offset, extent))
            return false;
        if (extent)     /* none may begin past the end, where numbers may overflow */
            view->first += offset * from->stride[d];
        if (dim < 0)
            continue;
        view->extent[dim] = extent;
        view->stride[dim] = from->stride[d];
    }
    return true;
}

static void permute_memory(const Op *op)
{
    const View *from = &value_binding(op->operands[0])->view;
    const Attr *order = op_attr(op, ATTR_DIMS);
    View *view = begin_part(op);
    for (unsigned d = 0; d < view->rank; d++) {
        view->extent[d] = from->extent[order->ints[d]];
        view->stride[d] = from->stride[order->ints[d]];
    }
}

/* ---- ops -------------------------------------------------------------------- */

/* Offsets of registers may be the index of a loop that is not unrolled yet. */
static bool evaluate_offsets(Interp *in, const Op *op, int64_t *offsets)
{
    const Attr *written = op_attr(op, ATTR_OFFSETS);
    for (unsigned d = 0; d < written->count; d++)
        if (!interp_evaluate(in, op, written->exprs[d], &offsets[d]) ||
            !slice_check_offset(in->diag, op, d, offsets[d]))
            return false;
    return true;
}

bool interp_slice(Interp *in, const Op *op)
{
    int64_t offsets[LIMIT_RANK];
    if (op->results[0]->type->kind != TYPE_REG)
        return slice_memory(in, op);
    if (!evaluate_offsets(in, op, offsets))
        return false;
    const Tensor *from = value_tensor(op->operands[0]);
    Tensor *to = value_tensor(op->results[0]);
    to->undefined = from->undefined;
    for (int64_t slot = 0; slot < to->slots; slot++) {
        int64_t source = slice_slot(op, offsets, slot);
        for (int64_t thread = 0; thread < to->threads; thread++)
            tensor_set(to, thread, slot, tensor_get(from, thread, source));
    }
    return true;
}

/* In registers the words stay: only the indices of their elements change. */
bool interp_permute(Interp *in, const Op *op)
{
    (void)in;
    if (op->results[0]->type->kind == TYPE_REG)
        value_assign(op->results[0], op->operands[0]);
    else
        permute_memory(op);
    return true;
}

bool interp_reshape(Interp *in, const Op *op)
{
    (void)in;
    value_assign(op->results[0], op->operands[0]);
    return true;
}

static bool interp_join(Interp *in, const Op *op)
{
    Tensor *to = value_tensor(op->results[0]);
    if (!interp_operands_defined(in, op))
        return false;
    to->undefined = NULL;
    for (int64_t slot = 0; slot < to->slots; slot++) {
        PartSlot source = join_slot(op, slot);
        const Tensor *from = value_tensor(op->operands[source.part]);
        for (int64_t thread = 0; thread < to->threads; thread++)
            tensor_set(to, thread, slot, tensor_get(from, thread, source.slot));
    }
    return true;
}

bool interp_concat(Interp *in, const Op *op)
{
    return interp_join(in, op);
}

bool interp_interleave(Interp *in, const Op *op)
{
    return interp_join(in, op);
}
