/* The accesses of an op to tensors in memory, and what it orders, as its row in ops.def
 * says. Every analysis of memory asks here; none knows ops by their codes.
 *
 *     copy_async_bulk %g[%i, 0], %s[0], %b[1] {shape = [128]}
 *
 *     operand  mode   threads  completion  counter  tile
 *     0        READ   ANY      MBARRIER    %b       %g[%i, 0], extents [128]
 *     1        WRITE  ANY      MBARRIER    %b       %s[0], extents [128]
 *
 * An access at rows that a register tensor names is one of the whole tensor, of elements
 * that data choose.
 *
 * A new kind of access is a row's. */
#ifndef TILUS_IR_OP_ACCESS_H
#define TILUS_IR_OP_ACCESS_H

#include "ir/ir.h"
#include "ir/tile.h"

typedef struct OpAccess {
    unsigned operand;
    AccessMode mode;
    AccessThreads threads;
    Completion completion;
    Value *counter;         /* COMPLETION_MBARRIER: the mbarriers that count; else NULL */
    MemoryTile tile;        /* no offsets: it begins at zeros */
    bool data_dependent;    /* elements of the tile that data choose, not all */
} OpAccess;

/* The accesses of `op`, and how many. A row's operand that holds registers has none. */
unsigned op_accesses(const Op *op, OpAccess out[ACCESSES_MAX]);

/* Finds the access of `op` that writes, atomically or not. */
bool op_access_written(const Op *op, OpAccess *out);

/* When the accesses of `op` are over; NOW for an op without any. */
static inline Completion op_completion(const Op *op)
{
    return op_info[op->code].memory.completion;
}

/* Returns true for an op whose accesses outlast it. */
static inline bool op_is_async(const Op *op)
{
    return op_completion(op) != COMPLETION_NOW;
}

/* Accesses of the async proxy: a fence.proxy.async must lie between these and what threads
 * write by themselves. */
static inline bool completion_is_async_proxy(Completion c)
{
    return c == COMPLETION_MBARRIER || c == COMPLETION_PRODUCT || c == COMPLETION_BULK_GROUP;
}

/* The order that `op` makes. */
static inline SyncKind op_sync(const Op *op)
{
    return op_info[op->code].sync.kind;
}

/* Returns true for a barrier of all threads that run the op, and perhaps of others. */
static inline bool op_is_barrier(const Op *op)
{
    SyncKind kind = op_sync(op);
    return kind == SYNC_BARRIER || kind == SYNC_CLUSTER || kind == SYNC_GRID;
}

/* Returns true when `op` accesses shared memory of another block of the cluster. */
bool op_is_remote(const Op *op);

/* Returns true when some op of `p` does. */
bool program_has_remote(const Program *p);

/* Returns true when some op of `p` does so after its last cluster_synchronize: then no block of the
 * cluster may end before the others have come to the end. */
bool program_meets_at_end(const Program *p);

/* Returns true when `p` has a `lock`: then nothing else orders what blocks, also of one cluster,
 * do with global memory. */
bool program_has_locks(const Program *p);

/* Returns true when `op` does `kind` to accesses of completion `c`. */
static inline bool op_syncs(const Op *op, SyncKind kind, Completion c)
{
    return op_sync(op) == kind && op_info[op->code].sync.completion == c;
}

/* Returns true when hardware that swizzles by address bits accesses the tensors in shared
 * memory of `op`: wgmma and tensor copies (PTX ISA, 9.7.15.5.1 and 5.5.7). */
bool op_needs_swizzle_alignment(const Op *op);

/* The bytes of one repetition of the pattern of the swizzle of a shared tensor: 1024, 512 or 256
 * for the swizzles of 128, 64 and 32 bytes; 128 without one. */
int64_t swizzle_alignment(const Type *t);

/* The bytes of which the place of an allocate_shared in shared memory is a multiple:
 * SHARED_ALIGN or, where an op needs it, its swizzle_alignment. */
int64_t shared_alignment(const Value *allocation);

/* Returns true for a dot_async that ends its group: whatever is not told to stay open. */
bool op_commits_product(const Op *op);

/* For an op that waits for groups: how many may stay in flight. */
int64_t op_wait_pending(const Op *op);

/* The op that waits for accesses of completion `c`, by name: "copy_async_wait_group". */
const char *completion_wait_name(Completion c);

/* Says what is missing between `copy`, which a wait would end, and `use`, as the text has them: "no
 * copy_async_wait_group lies between", or that the copy is in no group which a wait is for. */
const char *completion_missing(Arena *arena, const Op *copy, const Op *use);

#endif
