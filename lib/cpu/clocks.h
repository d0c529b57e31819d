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
 * An mbarrier has epochs of its own, the phases: the copies of phase n are its accesses
 * in epoch n + 1, and who waits for the phase's end knows those, and what all knew who
 * arrived. Behind the barrier of the warp that comes before each arrival, its epoch is a
 * new one: the arrival tells of those before.
 *
 * bar.sync and bar.warp.sync order memory (PTX ISA, 9.7.13.1 and .2); shuffles, votes,
 * ldmatrix, and atomic operations, which are relaxed, do not. */
#ifndef TILUS_CPU_CLOCKS_H
#define TILUS_CPU_CLOCKS_H

#include "support/limits.h"

#include <stdint.h>

enum { WARPS = LIMIT_THREADS / 32, AGENTS = WARPS + LIMIT_MBARRIERS };

/* Agents are the block's warps, and WARPS + b is mbarrier b. */
typedef struct Clocks {
    unsigned warps, mbarriers;      /* so many have been used */
    uint64_t known[WARPS][AGENTS], settled[AGENTS];
    uint64_t arrived[LIMIT_MBARRIERS][AGENTS];      /* what those know who did, so far */
    uint64_t released[LIMIT_MBARRIERS][AGENTS];     /* what those did of the last phase */
} Clocks;

/* A block of so many warps begins: nothing is before anything. */
void clocks_reset(Clocks *c, unsigned warps);
/* Those with a bit in `met` have met at a barrier. */
void clocks_meet(Clocks *c, uint32_t met);

/* `warp` arrives at mbarrier `b`; its phase ends; `warp` has waited for that. */
void clocks_arrive(Clocks *c, unsigned warp, unsigned b);
void clocks_end_phase(Clocks *c, unsigned b);
void clocks_wait(Clocks *c, unsigned warp, unsigned b);

/* The epoch of the copies of this phase. */
uint64_t clocks_phase(Clocks *c, unsigned b);

static inline uint64_t clocks_epoch(const Clocks *c, unsigned warp)
{
    return c->known[warp][warp];
}

#endif
