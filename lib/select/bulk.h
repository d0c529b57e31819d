/* Plans of copy_async_bulk and copy_async_bulk_store: by cp.async.bulk where the tile's bytes
 * follow each other in both memories and begin at multiples of BULK_ALIGN there; else, or where
 * the tile may reach outside of its view, by a tensor map (memory/tensor_map.h). */
#ifndef TILUS_SELECT_BULK_H
#define TILUS_SELECT_BULK_H

#include "memory/tensor_map.h"

/* The fence before a copy, after writes of the program's threads to its source or target. One
 * of the block's shared memory alone does not wait for accesses to global memory. */
typedef enum BulkFence {
    BULK_NO_FENCE,
    BULK_FENCE_SHARED,  /* fence.proxy.async.shared::cta */
    BULK_FENCE          /* fence.proxy.async */
} BulkFence;

typedef struct BulkPlan {
    int64_t bytes;
    uint32_t checked;   /* bit d: the kernel traps unless the tile lies inside dimension d of
                           the source: cp.async.bulk fills no zeros in */
    BulkFence fence;
    bool tensor;        /* by `map` */
    TensorMap map;
    const char *why;    /* no cp.async.bulk, or no map, in words; NULL: both are possible */
} BulkPlan;

/* Plans the copy; false after an error that says what is missing. */
bool bulk_plan(Module *m, const Op *op, BulkPlan *plan);

/* Returns true, and the map, when one serves the bulk copy `op` where cp.async.bulk does not. */
bool bulk_goes_by_map(Module *m, const Op *op, TensorMap *map);

/* Writes `via = tensor` on each copy of `p` that goes by a map, as select-instructions does:
 * its shared tensor is aligned for it from then on (shared_alignment). Returns true when
 * that changed the program. */
bool bulk_settle(Program *p);

/* The maps that the copies of a program go by, in the order of the kernel's parameters:
 * of one that is settled. */
typedef struct TensorMaps {
    TensorMap *of;
    uint32_t count, capacity;
} TensorMaps;

/* Returns the maps of `p`, on `arena`; a copy that has no plan has no map. */
TensorMaps bulk_maps(Program *p, Arena *arena);

/* Returns true when two allocations of shared memory are one, or were placed over each
 * other. */
bool memory_may_meet(const Value *a, const Value *b);

#endif
