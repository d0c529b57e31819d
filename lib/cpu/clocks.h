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
 * new one: the arrival tells of those before. So does a semaphore's release, which keeps the
 * clock of its warp for who acquires it.
 *
 * known[w][u] is the sum of base[u], which all warps know, and of what w has learned on top of it. A
 * barrier of all warps makes a new base, so that rows of a cooperative program, of which up to 8192
 * warps run together, are empty but for what blocks learn between: pages of zeros, which take no
 * memory.
 *
 * bar.sync and bar.warp.sync order memory (PTX ISA, 9.7.13.1 and .2); shuffles, votes,
 * ldmatrix, and atomic operations, which are relaxed, do not. */
#ifndef TILUS_CPU_CLOCKS_H
#define TILUS_CPU_CLOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEMAPHORE_LISTS = 256 };

typedef struct Semaphore Semaphore;     /* what the last release of it told (clocks.c) */

/* Owners of a clock are the warps of all blocks that run together, rank by rank, and after them
 * mbarriers: owner warps + b is mbarrier b. Its arrays are owned. */
typedef struct Clocks {
    unsigned warps, mbarriers;      /* how many there are; how many have been used */
    size_t owners;                  /* entries of a clock */
    uint64_t *base;                 /* [owners]: all warps know it */
    uint64_t *learned;              /* [warps][owners]: known beyond that; mapped */
    bool *has_learned;              /* [warps]: the row may be not zero ... */
    unsigned learner_count;         /* ... and how many may */
    uint64_t *covered;              /* [owners] ... */
    bool *stale;                    /* ... and which of these are to be found anew */
    uint64_t *arrived;              /* [mbarriers][owners]: joined from each arrival so far */
    uint64_t *released;             /* the same in the phase that ended last */
    uint64_t *joined;               /* [owners]: of members of a barrier */
    unsigned *members, member_count;
    Semaphore *semaphores[SEMAPHORE_LISTS];     /* by address */
} Clocks;

/* Makes clocks of so many warps, and of mbarriers at most. False: there is no memory; clocks_close
 * takes any. */
bool clocks_open(Clocks *c, unsigned warps, unsigned mbarriers);
void clocks_close(Clocks *c);
/* Blocks begin: nothing is before anything. */
void clocks_reset(Clocks *c);

/* The warps from `first` on with a bit in `warps` have all come to a barrier. */
void clocks_join_barrier(Clocks *c, unsigned first, uint32_t warps);
/* All warps have. */
void clocks_join_all(Clocks *c);
/* `warp` is to be one of the members of a barrier; all members have come there. */
void clocks_add_member(Clocks *c, unsigned warp);
void clocks_join_members(Clocks *c);

/* `warp` arrives at mbarrier `b`; its phase ends; `warp` has waited for that. */
void clocks_arrive(Clocks *c, unsigned warp, unsigned b);
void clocks_end_phase(Clocks *c, unsigned b);
void clocks_wait(Clocks *c, unsigned warp, unsigned b);

/* The epoch of the copies of this phase. */
uint64_t clocks_phase(Clocks *c, unsigned b);

/* `warp` releases the semaphore at an address, false: there is no memory; it acquires it, and
 * learns what the last one to release it knew. */
bool clocks_release(Clocks *c, unsigned warp, const void *at);
void clocks_acquire(Clocks *c, unsigned warp, const void *at);

/* Returns the epoch up to which warp `w` knows owner `u`. */
static inline uint64_t clocks_known(const Clocks *c, unsigned w, unsigned u)
{
    return c->base[u] + c->learned[w * c->owners + u];
}

static inline uint64_t clocks_epoch(const Clocks *c, unsigned warp)
{
    return clocks_known(c, warp, warp);
}

#endif
