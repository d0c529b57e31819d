/* Copies from global to shared memory while they are in flight. */
#ifndef TILUS_INTERP_COPY_H
#define TILUS_INTERP_COPY_H

#include "interp/groups.h"
#include "interp/tile.h"

/* A copy in flight. Each thread of a copy_async copies a part and waits for its own groups: it has
 * ended when all its warps have waited. A bulk store is its first warp's. Views are kept by value:
 * view_global may run again before that. */
struct Copy {
    const Op *op;
    View source_view, target_view;
    Tile source, target;
    int64_t *rows;          /* of an indexed source: each element of the index, in row-major
                               order, when the copy began */
    int64_t row_capacity;
    bool fills;             /* bulk copies: elements outside of the view are zeros, or are
                               left out */
    Member member;          /* threads: that copy, or one of which starts the bulk copy */
    uint64_t begun;         /* copy_async_bulk: its time, and who counts its bytes */
    unsigned owner;         /* ... there: an mbarrier's clock */
    unsigned target_rank;   /* copy_async_bulk: of the block that it writes to */
    bool is_read;           /* another block's copy of one multicast has counted its reads */
    bool read;              /* a store: somebody has waited for what it reads */
    Copy *next;
};

/* The copy that `op` starts; NULL after an error. */
Copy *copy_begin(Interp *in, const Op *op);

/* The next place of a tile, in row-major order; false after the last. */
bool copy_next_place(const MemoryTile *t, int32_t *place);

/* Returns true when the bulk copy `op` may reach outside of its view: by a tensor map alone. */
bool copy_fills(Interp *in, const Op *op);

/* The bytes of a bulk copy are there. */
bool bulk_land(Interp *in, const Copy *c);

/* The mbarrier of a bulk copy that begins now counts it, and takes it over. */
bool mbarrier_expect(Interp *in, Copy *c);

#endif
