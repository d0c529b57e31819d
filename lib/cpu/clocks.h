/* Vector clocks of what barriers have ordered. A warp's time is cut into epochs by the
 * barriers that it waits at, and whole warps wait, so one clock a warp is enough:
 *
 *     known[w][u]     accesses of warp u in epochs before it are before those of w now
 *     known[w][w]     the epoch of w, within which lanes are in no order
 *     covered[u]      the least known[w][u]: every warp is behind all epochs before it
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

enum {
    WARPS = LIMIT_CLUSTER * LIMIT_THREADS / 32,
    MBARRIERS = LIMIT_CLUSTER * LIMIT_MBARRIERS,
    CLOCK_OWNERS = WARPS + MBARRIERS
};

/* Owners of a clock are the warps of a cluster's blocks, rank by rank; owner WARPS + b is
 * mbarrier b. */
typedef struct Clocks {
    unsigned warps, mbarriers;      /* how many have been used */
    uint64_t known[WARPS][CLOCK_OWNERS], covered[CLOCK_OWNERS];
    uint64_t arrived[MBARRIERS][CLOCK_OWNERS];    /* joined from each arrival so far */
    uint64_t released[MBARRIERS][CLOCK_OWNERS];   /* and in the phase that ended last */
} Clocks;

/* Blocks of `warps` warps in all begin: nothing is before anything. */
void clocks_reset(Clocks *c, unsigned warps);
/* The warps from `first` on with a bit in `warps` have all come to a barrier. */
void clocks_join_barrier(Clocks *c, unsigned first, uint32_t warps);
/* All warps have. */
void clocks_join_all(Clocks *c);

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
