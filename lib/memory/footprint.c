/* The footprint of an op: its tile as one of the tensor that was allocated or made over
 * a pointer, whatever slices lie between. */
#include "memory/overlap.h"

#include "ir/part.h"
#include "ir/tile.h"

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

/* Returns the origin of the operand's tile: the slice's offsets, if any, plus the tile's.
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

/* Maps a tile of slices and permutes to one of the tensor that they name parts of. */
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

static Footprint footprint_of(Module *m, const Op *op, const OpAccess *access)
{
    bool held = access->threads == ACCESS_BY_HOLDERS;
    Footprint f = {.op = op,
                   .tile = tile_of_whole(m, memory_tile_with_offsets(m, access->tile)),
                   .layout = held && !access->data_dependent ? op_tile_type(op)->layout : NULL,
                   .mode = access->mode,
                   .completion = access->completion,
                   .some = access->data_dependent};
    f.root = footprint_root(f.tile.memory);
    return f;
}

unsigned footprints_of(Module *m, const Op *op, Footprint footprint[ACCESSES_MAX])
{
    OpAccess accesses[ACCESSES_MAX];
    if (op_sync(op) != SYNC_NONE)
        return 0;
    unsigned count = op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        footprint[i] = footprint_of(m, op, &accesses[i]);
    return count;
}
