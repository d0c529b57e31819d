/* Types and places of slices. */
#include "ir/part.h"

#include "ir/tile.h"

const Op *part_op(const Value *v)
{
    return v->def && op_info[v->def->code].result == RESULT_TENSOR ? v->def : NULL;
}

const Value *memory_root(const Value *memory)
{
    const Op *op;
    while ((op = part_op(memory)))
        memory = op->operands[0];
    return memory;
}

/* ---- types --------------------------------------------------------------- */

/* kept[d]: the operand's dimension that dimension `d` of the slice is. */
static bool find_kept(Module *m, const Type *operand, const Attr *dims, unsigned rank,
                      unsigned *kept, const char **why)
{
    if (dims ? dims->count != rank : rank > operand->rank) {
        *why = dims ? arena_printf(&m->arena, "dims names %u dimensions, the slice has rank "
                                   "%u", dims->count, rank)
                    : arena_printf(&m->arena, "a slice of rank %u of a tensor of rank %u",
                                   rank, operand->rank);
        return false;
    }
    for (unsigned d = 0; d < rank; d++) {
        kept[d] = dims ? (unsigned)dims->ints[d] : operand->rank - rank + d;
        bool exists = !dims || (dims->ints[d] >= 0 && dims->ints[d] < operand->rank);
        if (exists && (!d || kept[d] > kept[d - 1]))
            continue;
        *why = arena_printf(&m->arena, "dims entry %u is %lld, it must grow and be below the "
                            "rank %u", d, (long long)dims->ints[d], operand->rank);
        return false;
    }
    return true;
}

/* The threads' shares of a slice, first with all dimensions of the operand. */
static const Layout *slice_layout(Module *m, const Layout *l, const unsigned *kept,
                                  unsigned rank, const Expr *const *extents, const char **why)
{
    int64_t full[LIMIT_RANK], shape[LIMIT_RANK];
    for (unsigned d = 0; d < l->rank; d++)
        full[d] = 1;
    for (unsigned d = 0; d < rank; d++)
        full[kept[d]] = shape[d] = extents[d]->constant;
    const Layout *part = layout_slice(&m->layouts, l, l->rank, full, why);
    return part ? layout_reshape(&m->layouts, part, rank, shape, why) : NULL;
}

/* Dimension d of the part steps as dimension dims[d] of the operand does. */
static const Type *memory_part(Module *m, const Type *operand, const unsigned *dims,
                               DType dtype, unsigned rank, const Expr *const *extents,
                               const char **why)
{
    const Expr *strides[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++) {
        strides[d] = type_stride(m, operand, dims[d]);
        if (!strides[d]) {
            *why = arena_printf(&m->arena, "the product of the extents after dimension %u is "
                                "over 63 bits", dims[d]);
            return NULL;
        }
    }
    const Type *t = type_memory(m, operand->kind, dtype, rank, extents, strides);
    if (operand->swizzle_open)
        return type_swizzle_open(m, t);
    return operand->kind == TYPE_SHARED ? type_swizzled(m, t, operand->swizzle) : t;
}

const Type *slice_type(Module *m, const Type *operand, const Attr *dims, DType dtype,
                       unsigned rank, const Expr *const *extents, const char **why)
{
    unsigned kept[LIMIT_RANK];
    if (!find_kept(m, operand, dims, rank, kept, why))
        return NULL;
    if (operand->kind == TYPE_REG && type_is_open(operand))
        return type_reg_open(m, dtype, rank, extents);
    if (operand->kind == TYPE_REG) {
        const Layout *l = slice_layout(m, operand->layout, kept, rank, extents, why);
        return l ? type_reg(m, dtype, l) : NULL;
    }
    return memory_part(m, operand, kept, dtype, rank, extents, why);
}

const Type *permute_type(Module *m, const Type *operand, const int64_t *order,
                         const char **why)
{
    unsigned dims[LIMIT_RANK];
    const Expr *extents[LIMIT_RANK];
    for (unsigned d = 0; d < operand->rank; d++) {
        dims[d] = (unsigned)order[d];
        extents[d] = operand->extents[order[d]];
    }
    if (operand->kind == TYPE_REG && type_is_open(operand))
        return type_reg_open(m, operand->dtype, operand->rank, extents);
    if (operand->kind == TYPE_REG) {
        const Layout *l = layout_permute(&m->layouts, operand->layout, operand->rank, order,
                                         why);
        return l ? type_reg(m, operand->dtype, l) : NULL;
    }
    return memory_part(m, operand, dims, operand->dtype, operand->rank, extents, why);
}

/* ---- slots --------------------------------------------------------------- */

int64_t slice_slot(const Op *op, int64_t slot)
{
    MemoryTile t = op_memory_tile(op);
    int64_t index[LIMIT_RANK], of_slice[LIMIT_RANK], thread, source;
    layout_index(op->results[0]->type->layout, 0, slot, of_slice);
    for (unsigned d = 0; d < t.memory->type->rank; d++)
        index[d] = t.offsets->exprs[d]->constant;
    for (unsigned d = 0; d < t.rank; d++)
        index[memory_tile_dim(&t, d)] += of_slice[d];
    layout_place(t.memory->type->layout, index, &thread, &source);
    return source;
}
