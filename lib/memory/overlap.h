/* Tiles of memory tensors, and whether two of them have a byte in common that
 * different threads touch. */
#ifndef TILUS_MEMORY_OVERLAP_H
#define TILUS_MEMORY_OVERLAP_H

#include "ir/op_access.h"
#include "ir/tile.h"
#include "scalar/difference.h"

/* One memory operand of an op: what it does to a tile. */
typedef struct Footprint {
    const Op *op;
    MemoryTile tile;
    const Value *root;      /* an allocate_shared's result, or a pointer argument */
    const Layout *layout;   /* who touches which element; NULL: any thread, of a copy or where
                               data choose, or the first one, of a print */
    AccessMode mode;
    Completion completion;
    bool some;              /* not all of it, but elements that data choose */
} Footprint;

/* The footprints of an op, and how many; none of ops on semaphores, which order accesses.
 * May allocate in the scratch arena. */
unsigned footprints_of(Module *m, const Op *op, Footprint footprint[ACCESSES_MAX]);

typedef enum Overlap { OVERLAP_NEVER, OVERLAP_UNKNOWN, OVERLAP_SURE } Overlap;

/* Tells whether some byte is touched by `a` and, in another thread, by `b`. Both have
 * one root; apart[d] is what is known of b's offset less a's in dimension d of
 * the memory, and `offsets` are a's. `blocks`: they are of different blocks, so
 * that threads do not count. In the scratch arena, which is left as it was. */
Overlap footprints_overlap(Module *m, const Footprint *a, const Footprint *b,
                           const Difference *apart, const Expr *const *offsets, bool blocks);

/* Returns a bit for each dimension in which the two tiles, at `offsets` of two times, begin at one
 * index if they have a byte in common: the offsets there are multiples of the tiles' extent. */
uint32_t footprints_grid(Module *m, const Footprint *a, const Footprint *b,
                         const Expr *const *offsets);

/* Returns true when different elements of the memory are different bits; of a global
 * view, the elements inside. */
bool memory_is_injective(Module *m, const Value *memory);

#endif
