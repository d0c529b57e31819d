/* Types and places of slices and of register tensors under other dimensions. */
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

/* The elements of a REG type, INT64_MAX when there are more. */
static int64_t count_elements(unsigned rank, const Expr *const *extents)
{
    int64_t count = 1;
    for (unsigned d = 0; d < rank; d++)
        if (__builtin_mul_overflow(count, extents[d]->constant, &count))
            return INT64_MAX;
    return count;
}

const Type *reshape_type(Module *m, const Type *operand, unsigned rank,
                         const Expr *const *extents, const char **why)
{
    int64_t shape[LIMIT_RANK], from = count_elements(operand->rank, operand->extents);
    int64_t to = count_elements(rank, extents);
    if (from != to) {
        *why = arena_printf(&m->arena, "reshape keeps the elements, got %lld from %lld",
                            (long long)to, (long long)from);
        return NULL;
    }
    if (type_is_open(operand))
        return type_reg_open(m, operand->dtype, rank, extents);
    for (unsigned d = 0; d < rank; d++)
        shape[d] = extents[d]->constant;
    const Layout *l = layout_reshape(&m->layouts, operand->layout, rank, shape, why);
    return l ? type_reg(m, operand->dtype, l) : NULL;
}

/* The layout of `count` elements along dimension `dim`, which all threads have in slots. */
static const Layout *layout_of_parts(Module *m, unsigned rank, unsigned count, unsigned dim,
                                     const char **why)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = d == dim ? count : 1;
    return layout_local(&m->layouts, rank, shape, why);
}

static const Layout *join_layout(Module *m, OpCode code, const Layout *part, unsigned count,
                                 unsigned dim, const char **why)
{
    const Layout *parts = layout_of_parts(m, part->rank, count, dim, why);
    if (!parts)
        return NULL;
    return code == OP_concat ? layout_product(&m->layouts, parts, part, why)
                             : layout_product(&m->layouts, part, parts, why);
}

const Layout *join_part(Module *m, OpCode code, const Layout *whole, unsigned count,
                        unsigned dim, const char **why)
{
    const Layout *parts = layout_of_parts(m, whole->rank, count, dim, why);
    if (!parts)
        return NULL;
    return code == OP_concat ? layout_divide_left(&m->layouts, whole, parts, why)
                             : layout_divide(&m->layouts, whole, parts, why);
}

const Type *join_type(Module *m, OpCode code, const Type *part, unsigned count, unsigned dim,
                      const char **why)
{
    const Expr *extents[LIMIT_RANK];
    if (!type_is_open(part)) {
        const Layout *l = join_layout(m, code, part->layout, count, dim, why);
        return l ? type_reg(m, part->dtype, l) : NULL;
    }
    if (count_elements(part->rank, part->extents) > INT64_MAX / count) {
        *why = "the product of the extents is over 63 bits";
        return NULL;
    }
    for (unsigned d = 0; d < part->rank; d++)
        extents[d] = part->extents[d];
    extents[dim] = expr_constant(&m->exprs, type_extent(part, dim) * count);
    return type_reg_open(m, part->dtype, part->rank, extents);
}

/* ---- slots --------------------------------------------------------------- */

int64_t slice_slot(const Op *op, const int64_t *offsets, int64_t slot)
{
    MemoryTile t = op_memory_tile(op);
    int64_t index[LIMIT_RANK], of_slice[LIMIT_RANK], thread, source;
    layout_index(op->results[0]->type->layout, 0, slot, of_slice);
    for (unsigned d = 0; d < t.memory->type->rank; d++)
        index[d] = offsets[d];
    for (unsigned d = 0; d < t.rank; d++)
        index[memory_tile_dim(&t, d)] += of_slice[d];
    layout_place(t.memory->type->layout, index, &thread, &source);
    return source;
}

/* The extent of the slice in dimension `d` of its operand. */
static int64_t slice_extent(const Op *op, unsigned d)
{
    MemoryTile t = op_memory_tile(op);
    int dim = memory_tile_find(&t, d);
    return dim < 0 ? 1 : t.extents[dim];
}

bool slice_has_offset(const Op *op, unsigned d, int64_t offset)
{
    int64_t extent = slice_extent(op, d);
    return offset >= 0 && offset % extent == 0 &&
           offset <= type_extent(op->operands[0]->type, d) - extent;
}

bool slice_check_offset(Diag *diag, const Op *op, unsigned d, int64_t offset)
{
    int64_t extent = slice_extent(op, d), last;
    if (slice_has_offset(op, d, offset))
        return true;
    if (offset % extent)
        return diag_error(diag, op->loc, "offset %u is %lld, a slice of registers begins at a "
                          "multiple of its extent %lld", d, (long long)offset,
                          (long long)extent);
    if (__builtin_add_overflow(offset, extent - 1, &last))
        last = INT64_MAX;
    return diag_error(diag, op->loc, "the tile covers %lld .. %lld of dimension %u, the register "
                      "tensor has extent %lld", (long long)offset, (long long)last, d,
                      (long long)type_extent(op->operands[0]->type, d));
}

PartSlot join_slot(const Op *op, int64_t slot)
{
    int64_t slots = op->operands[0]->type->layout->slots, parts = op->operand_count;
    return op->code == OP_concat ? (PartSlot){(unsigned)(slot / slots), slot % slots}
                                 : (PartSlot){(unsigned)(slot % parts), slot / parts};
}
