/* How copy_async cuts its tile into chunks. */
#ifndef TILUS_ANALYSIS_COPY_H
#define TILUS_ANALYSIS_COPY_H

#include "ir/ir.h"

enum { CP_ASYNC_LEAST = 4 };    /* bytes; PTX ISA, cp.async: 4, 8 or 16 */

/* A chunk is `bytes` bytes, a power of two up to 16, which follow each other
 * in both memories and are aligned to their size there. From CP_ASYNC_LEAST on
 * the hardware copies it; narrower ones pass through registers. bytes = 0: a
 * chunk is an element whose bits start anywhere.
 *
 * The tile is a grid of chunks: along dimension `along` of the tile, where
 * neighbours are neighbours in both memories, a step is a chunk; along the
 * others, and when `along` is -1 along all, it is an element. */
typedef struct CopyPlan {
    unsigned bytes;
    int along;
    int64_t grid[LIMIT_RANK];       /* the steps of each dimension of the tile */
    unsigned order[LIMIT_RANK];     /* the tile's dimensions, chunks' neighbours last */
    uint32_t checked;   /* bit d: the index in dimension d of the source needs a check */
    bool partial;       /* a chunk may reach past the end of the source: only its
                           first bytes lie inside */
} CopyPlan;

CopyPlan copy_plan(Module *m, const Op *op);

#endif
