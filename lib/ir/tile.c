/* Which operand is memory, and the tile of it that an op accesses. */
#include "ir/tile.h"

static bool is_tensor_kind(OperandKind kind)
{
    return kind == OPERAND_SHARED || kind == OPERAND_GLOBAL || kind == OPERAND_MEMORY ||
           kind == OPERAND_TENSOR;
}

unsigned op_memory_number(const Op *op)
{
    const OpInfo *info = &op_info[op->code];
    for (unsigned i = OPERANDS_MAX; i-- > 0;)
        if (i < op->operand_count && is_tensor_kind(info->operands[i]))
            return i;
    return op->operand_count - 1;
}

Value *op_memory_operand(const Op *op)
{
    return op->operands[op_memory_number(op)];
}

const Type *op_tile_type(const Op *op)
{
    return op->result_count ? op->results[0]->type : op->operands[0]->type;
}

Value *op_index(const Op *op)
{
    return op_attr(op, ATTR_INDEXED) ? op->operands[op->operand_count - 1] : NULL;
}

/* Sets the index, of the tile that the op's brackets with a register tensor belong to. */
static MemoryTile with_index(const Op *op, MemoryTile t)
{
    t.index = op_index(op);
    t.indexed = t.index ? (unsigned)op_attr(op, ATTR_INDEXED)->integer : 0;
    return t;
}

/* Sets the shape: that of attribute SHAPE, or of the tile; a semaphore is one element. */
static MemoryTile with_shape(const Op *op, MemoryTile t)
{
    const Attr *shape = op_attr(op, ATTR_SHAPE);
    const Type *type = shape ? NULL : op_tile_type(op);
    t.rank = shape ? shape->count : op_attr(op, ATTR_STATE) ? 0 : type->rank;
    for (unsigned d = 0; d < t.rank; d++)
        t.extents[d] = shape                                  ? shape->ints[d]
                       : expr_is_constant(type->extents[d]) ? type_extent(type, d)
                                                            : 0;
    return t;
}

MemoryTile op_memory_tile(const Op *op)
{
    bool has_source = op_info[op->code].attrs & op_attr_bit(ATTR_SOURCE_OFFSETS);
    MemoryTile t = with_shape(op, (MemoryTile){.memory = op_memory_operand(op),
                                               .offsets = op_attr(op, ATTR_OFFSETS),
                                               .dims = op_attr(op, ATTR_DIMS)});
    return has_source ? t : with_index(op, t);
}

MemoryTile op_source_tile(const Op *op)
{
    MemoryTile t = with_shape(op, (MemoryTile){.memory = op->operands[0],
                                               .offsets = op_attr(op, ATTR_SOURCE_OFFSETS),
                                               .dims = op_attr(op, ATTR_SOURCE_DIMS)});
    return with_index(op, t);
}

unsigned memory_tile_dim(const MemoryTile *t, unsigned d)
{
    return t->dims ? (unsigned)t->dims->ints[d] : t->memory->type->rank - t->rank + d;
}

int memory_tile_find(const MemoryTile *t, unsigned d)
{
    for (unsigned i = 0; i < t->rank; i++)
        if (memory_tile_dim(t, i) == d && !memory_tile_is_indexed(t, d))
            return (int)i;
    return -1;
}

bool memory_tile_is_uniform(const MemoryTile *t, unsigned d)
{
    return !t->index || type_extent(t->index->type, d) == 1;
}

unsigned op_tile_dim(const Op *op, unsigned d)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    if (dims)
        return (unsigned)dims->ints[d];
    return op_memory_operand(op)->type->rank - op_tile_type(op)->rank + d;
}

static bool is_from_global(const Op *op)
{
    return op->operands[0]->type->kind == TYPE_GLOBAL;
}

MemoryTile bulk_global_tile(const Op *op)
{
    return is_from_global(op) ? op_source_tile(op) : op_memory_tile(op);
}

MemoryTile bulk_shared_tile(const Op *op)
{
    return is_from_global(op) ? op_memory_tile(op) : op_source_tile(op);
}

int64_t bulk_elements(const Op *op)
{
    MemoryTile t = op_memory_tile(op);
    int64_t elements = 1;
    for (unsigned d = 0; d < t.rank; d++)
        elements *= t.extents[d];
    return elements;
}

int64_t bulk_bytes(const Op *op)
{
    int64_t bits = bulk_elements(op) * dtype_bits(op->operands[0]->type->dtype);
    return bits % 8 ? -1 : bits / 8;
}

MemoryTile memory_tile_with_offsets(Module *m, MemoryTile t)
{
    if (t.offsets)
        return t;
    Attr *zeros = arena_new(&m->scratch, Attr);
    const Expr **exprs = arena_array(&m->scratch, const Expr *, t.rank);
    for (unsigned d = 0; d < t.rank; d++)
        exprs[d] = expr_constant(&m->exprs, 0);
    *zeros = (Attr){.kind = ATTR_OFFSETS, .count = t.rank, .exprs = exprs};
    t.offsets = zeros;
    return t;
}
