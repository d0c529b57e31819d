/* Tiles of memory tensors: of loads, stores, copies, atomic ops and semaphores. */
#ifndef TILUS_IR_TILE_H
#define TILUS_IR_TILE_H

#include "ir/ir.h"

/* For loads and stores: the view's dimension that dimension `d` of the register
 * tile spans (attribute DIMS or the last ones). */
unsigned op_tile_dim(const Op *op, unsigned d);
/* The memory operand that attribute OFFSETS is of, of a copy its target, and the register
 * tile's type of a load or store. */
Value *op_memory_operand(const Op *op);
/* The number of that operand: the last one that the row gives a tensor's kind, or the last. */
unsigned op_memory_number(const Op *op);
const Type *op_tile_type(const Op *op);

/* The register tensor that stands among the offsets of an op's tile (attribute INDEXED), or
 * NULL. */
Value *op_index(const Op *op);

/* The tile of a memory tensor that an op reads or writes; of rank 0, one element,
 * for a semaphore. */
typedef struct MemoryTile {
    Value *memory;
    const Attr *offsets;        /* one for each dimension of the memory; NULL: missing */
    const Attr *dims;           /* those that the tile spans; NULL: the last ones */
    unsigned rank;              /* of the tile */
    int64_t extents[LIMIT_RANK];    /* 0: no constant, of a slice of a global tensor */
    Value *index;               /* the register tensor that says where each element lies in
                                   the memory's dimension `indexed`; NULL: none does */
    unsigned indexed;
} MemoryTile;

/* The tile at OFFSETS of the memory operand; of a copy, the one it writes. */
MemoryTile op_memory_tile(const Op *op);
/* The tile at SOURCE_OFFSETS of the first operand: the one a copy reads. */
MemoryTile op_source_tile(const Op *op);
/* The memory's dimension that dimension `d` of the tile spans. */
unsigned memory_tile_dim(const MemoryTile *t, unsigned d);
/* Returns true when a register tensor says where elements lie in the memory's dimension `d`:
 * the tile's index does not count there. */
static inline bool memory_tile_is_indexed(const MemoryTile *t, unsigned d)
{
    return t->index && t->indexed == d;
}
/* The dimension of the tile whose index counts in the memory's dimension `d`, or -1. */
int memory_tile_find(const MemoryTile *t, unsigned d);
/* Returns true when elements that differ in dimension `d` of the tile alone lie in one place of
 * the indexed dimension; true without an index. */
bool memory_tile_is_uniform(const MemoryTile *t, unsigned d);

/* Copies of copy_async_bulk begin at multiples of this many bytes, and have a multiple of
 * it (PTX ISA, cp.async.bulk). */
#define BULK_ALIGN 16

/* Returns true for a copy of a tile by the copy unit, to shared memory or from there. */
static inline bool op_is_bulk_copy(const Op *op)
{
    Completion c = op_info[op->code].memory.completion;
    return c == COMPLETION_MBARRIER || c == COMPLETION_BULK_GROUP;
}
/* Its tiles in global and in shared memory. */
MemoryTile bulk_global_tile(const Op *op);
MemoryTile bulk_shared_tile(const Op *op);

/* For such a copy: the bytes of its tile, and the number of elements; -1 if that
 * is no whole number of bytes. */
int64_t bulk_bytes(const Op *op);
int64_t bulk_elements(const Op *op);

/* The tile `t`; one without offsets gets zeros, on the module's scratch arena. */
MemoryTile memory_tile_with_offsets(Module *m, MemoryTile t);

#endif
