/* Plans of copy_async, which cuts its tile into chunks as the op's attributes say, or
 * else in the best way.
 *
 *     copy_async %g[%i, 0], %s[0, 0] {shape = [16, 64], width = 16, checked = [0]}
 *     copy_async %g[%i], %s[0] {shape = [5], via = bits}
 *
 * Without `checked`, no dimension is checked. */
#ifndef TILUS_SELECT_COPY_H
#define TILUS_SELECT_COPY_H

#include "ir/tile.h"

enum { CP_ASYNC_LEAST = 4 };    /* bytes; PTX ISA, cp.async: 4, 8 or 16 */

/* A chunk is `bytes` bytes, a power of two up to 16, which follow each other
 * in both memories and are aligned to their size there. From CP_ASYNC_LEAST on
 * the hardware copies it; narrower ones pass through registers. bytes = 0: a
 * chunk is an element whose bits start anywhere.
 *
 * The tile is a grid of chunks: along dimension `along` of the tile, where
 * neighbors are neighbors in both memories, a step is a chunk; along other
 * dimensions, and when `along` is -1 along all, a step is an element. */
typedef struct CopyPlan {
    unsigned bytes;
    int along;
    int64_t grid[LIMIT_RANK];       /* the steps of each dimension of the tile */
    unsigned order[LIMIT_RANK];     /* the tile's dimensions, chunks' neighbors last */
    uint32_t checked;   /* bit d: the index in dimension d of the source needs a check */
    bool partial;       /* a chunk may reach past the end of the source: only its
                           first bytes lie inside */
    int64_t iterations; /* until each chunk has had its thread */
    bool loop;          /* the iterations are a loop, not unrolled */
} CopyPlan;

/* Returns the best plan. */
CopyPlan copy_plan(Module *m, const Op *op);

/* Follows the plan that is written, after its proof, or else chooses the best.
 * False after an error. */
bool copy_follow(Module *m, const Op *op, CopyPlan *plan);

/* Writes the plan into the op's attributes. */
void copy_write(Module *m, Op *op, const CopyPlan *plan);

/* Returns the reason why chunks cannot have `bytes` bytes, on the module's arena; NULL when
 * they can. */
const char *copy_reason(Module *m, const Op *op, unsigned bytes);

/* Finds the tile's index of the chunk with number `number`, in elements; along the
 * contiguous dimension the index counts chunks. */
void copy_chunk_index(const CopyPlan *plan, unsigned rank, int64_t number, int64_t *index);

/* Finds the index of the chunk that `thread` copies first; false when it copies none. */
bool copy_thread_index(const CopyPlan *plan, const MemoryTile *source, int64_t thread,
                       int64_t *index);

/* Counts the chunks of the tile that lie at one row of an indexed source. The threads that
 * hold the row's index in one slot copy them in turn. */
int64_t copy_row_chunks(const CopyPlan *plan, const MemoryTile *source);

/* Counts the chunks of the tile. */
int64_t copy_chunks(const CopyPlan *plan, unsigned rank);

#endif
