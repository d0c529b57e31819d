/* What an op touches: its tile as one of the tensor that was allocated or made over
 * a pointer, whatever slices lie between. */
#include "memory/overlap.h"

#include "ir/part.h"
#include "ir/print_op.h"

/* The memory that a tensor lies in: a shared tensor, or what a view is made over. */
static const Value *footprint_root(const Value *memory)
{
    const Value *root = memory_root(memory);
    return root->def && root->def->operand_count ? root->def->operands[0] : root;
}

/* The dimension of its operand that dimension `d` of a slice or permute is. */
static unsigned operand_dim(const Op *op, unsigned d)
{
    const Attr *dims = op_attr(op, ATTR_DIMS);
    unsigned skipped = op->operands[0]->type->rank - op->results[0]->type->rank;
    return dims ? (unsigned)dims->ints[d] : skipped + d;
}

/* Where the operand's tile begins: the slice's offsets, if any, plus the tile's.
 * NULL when a sum is too deep. */
static const Attr *operand_offsets(Module *m, const Op *op, const Attr *offsets)
{
    const Attr *begin = op_attr(op, ATTR_OFFSETS);
    Attr *sums = arena_new(&m->scratch, Attr);
    const Expr **exprs = arena_array(&m->scratch, const Expr *, op->operands[0]->type->rank);
    const char *why;
    *sums = (Attr){.kind = ATTR_OFFSETS, .count = op->operands[0]->type->rank, .exprs = exprs};
    for (unsigned d = 0; d < sums->count; d++)
        exprs[d] = begin ? begin->exprs[d] : NULL;
    for (unsigned i = 0; i < offsets->count; i++) {
        const Expr **e = &exprs[operand_dim(op, i)];
        *e = *e ? expr_make(&m->exprs, SCALAR_add, *e, offsets->exprs[i], &why)
                : offsets->exprs[i];
        if (!*e)
            return NULL;
    }
    return sums;
}

/* The same tile of the tensor that slices and permutes name parts of. */
static MemoryTile tile_of_whole(Module *m, MemoryTile t)
{
    const Op *op;
    while ((op = part_op(t.memory))) {
        const Attr *offsets = operand_offsets(m, op, t.offsets);
        if (!offsets)
            break;
        int64_t *ints = arena_array(&m->scratch, int64_t, t.rank);
        for (unsigned i = 0; i < t.rank; i++)
            ints[i] = operand_dim(op, memory_tile_dim(&t, i));
        Attr *dims = arena_new(&m->scratch, Attr);
        *dims = (Attr){.kind = ATTR_DIMS, .count = t.rank, .ints = ints};
        t.memory = op->operands[0];
        t.offsets = offsets;
        t.dims = dims;
    }
    return t;
}

static bool op_is_atomic(const Op *op)
{
    return (op_info[op->code].attrs & op_attr_bit(ATTR_ORDER)) != 0;
}

static unsigned footprint_of_print(Module *m, const Op *op, Footprint *footprint)
{
    if (!op->operand_count || op->operands[0]->type->kind == TYPE_REG)
        return 0;
    MemoryTile tile = tile_of_whole(m, print_tile(m, op));
    *footprint = (Footprint){op, tile, footprint_root(tile.memory), NULL, TOUCH_READ, false};
    return 1;
}

/* Any of its elements, by any thread, as the codes say. */
static unsigned footprint_of_table(Module *m, const Op *op, Footprint *footprint)
{
    const Type *t = op->operands[1]->type;
    const Expr **zeros = arena_array(&m->scratch, const Expr *, t->rank);
    Attr *offsets = arena_new(&m->scratch, Attr);
    MemoryTile tile = {.memory = op->operands[1], .offsets = offsets, .rank = t->rank};
    *offsets = (Attr){.kind = ATTR_OFFSETS, .count = t->rank, .exprs = zeros};
    for (unsigned d = 0; d < t->rank; d++) {
        zeros[d] = expr_constant(&m->exprs, 0);
        tile.extents[d] = type_extent(t, d);
    }
    tile = tile_of_whole(m, tile);
    *footprint = (Footprint){op, tile, footprint_root(tile.memory), NULL, TOUCH_READ, true};
    return 1;
}

unsigned footprints_of(Module *m, const Op *op, Footprint footprint[2])
{
    const OpInfo *info = &op_info[op->code];
    unsigned count = 0;
    if (op->code == OP_print)
        return footprint_of_print(m, op, footprint);
    if (op->code == OP_lookup_shared)
        return footprint_of_table(m, op, footprint);
    if (op->code == OP_copy_async_bulk)
        return 0;
    if (!(info->attrs & op_attr_bit(ATTR_OFFSETS)) ||
        (info->effect != EFFECT_READS && info->effect != EFFECT_WRITES))
        return 0;
    Footprint f = {.op = op, .tile = tile_of_whole(m, op_memory_tile(op))};
    f.touch = op_is_atomic(op) ? TOUCH_ATOMIC
              : info->effect == EFFECT_READS ? TOUCH_READ : TOUCH_WRITE;
    f.root = footprint_root(f.tile.memory);
    if (op->code == OP_copy_async) {
        MemoryTile source = tile_of_whole(m, op_source_tile(op));
        footprint[count++] = (Footprint){op, source, footprint_root(source.memory), NULL,
                                         TOUCH_READ, false};
    } else if (op->code != OP_load_scalar) {
        f.layout = op_tile_type(op)->layout;
    }
    footprint[count++] = f;
    return count;
}
