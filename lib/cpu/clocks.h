/* What barriers have ordered. A warp's time is cut into epochs by the barriers that it
 * comes to, and whole warps meet there, so one clock a warp is enough:
 *
 *     known[w][u]     what warp u did in epochs before it, is before what w does now
 *     known[w][w]     the epoch of w, within which lanes are in no order
 *     settled[u]      the least known[w][u]: before it, everything is before everybody
 *
 *     w  ---- epoch 1 ----|--- epoch 2 ---     known[w][u] = 4
 *                         |  bar.sync
 *     u  -- 2 --|--- 3 ---|--- epoch 4 ---     known[u][w] = 2
 *
 * bar.sync and bar.warp.sync order memory (PTX ISA, 9.7.13.1 and .2); shuffles, votes,
 * ldmatrix, and atomic operations, which are relaxed, do not. */
#ifndef TILUS_CPU_CLOCKS_H
#define TILUS_CPU_CLOCKS_H

#include "support/limits.h"

#include <stdint.h>

enum { WARPS = LIMIT_THREADS / 32 };

typedef struct Clocks {
    unsigned warps;
    uint64_t known[WARPS][WARPS], settled[WARPS];
} Clocks;

/* A block of so many warps begins: nothing is before anything. */
void clocks_reset(Clocks *c, unsigned warps);
/* Those with a bit in `met` have met at a barrier. */
void clocks_meet(Clocks *c, uint32_t met);

static inline uint64_t clocks_epoch(const Clocks *c, unsigned warp)
{
    return c->known[warp][warp];
}

#endif
