/* Plans of `scan` and `shuffle`, which go along one dimension.
 *
 * A scan goes along the modes of its dimension, from the innermost one outwards. Each is a level:
 * blocks that the levels below have scanned follow each other, and each block's carry, the
 * combination of the blocks before it, comes from their totals.
 *
 *     local(2).spatial(4, 8).local(4) of one dimension, 32 lanes       levels:
 *
 *     slots 4    v v v v | v v v v | ..    in each thread, one after another
 *     lanes 32   total   | total   | ..    by shfl.sync.up, 5 steps
 *     slots 2    total             | ..    the total of the last lane, by shfl.sync.idx
 *
 * Lanes of a digit that is no power of two, and warps, pass totals through shared memory. Where a
 * thread has several, and those of a warp are the same, its lanes share the work: each reads one. */
#ifndef TILUS_SELECT_SCAN_H
#define TILUS_SELECT_SCAN_H

#include "select/reduce.h"

typedef enum ScanStep { SCAN_SLOTS, SCAN_LANES, SCAN_SHARED } ScanStep;

typedef struct ScanLevel {
    ScanStep step;
    int64_t extent;         /* blocks */
    int64_t weight;         /* in the slot's number, or the thread's */
    int64_t totals;         /* of blocks that follow each other, in each thread */
    ThreadDigits inner;     /* SHARED: threads that have the same total; the first stores it */
    ThreadDigits places;    /* SHARED: which totals the thread has */
    int64_t group;          /* SHARED: runs of `extent` totals that the lanes of a warp read at
                               once, and scan by shuffles; 0: each thread reads all of them */
} ScanLevel;

/* `levels` lies on the module's scratch arena. */
typedef struct ScanPlan {
    unsigned level_count;
    ScanLevel *levels;      /* innermost first */
    bool subtracts;         /* of integers' sums: a lane's carry is its sum less its own */
    int64_t shuffles;       /* shfl.sync of one thread */
    int64_t scratch;        /* bytes of shared memory */
} ScanPlan;

ScanPlan scan_plan(Module *m, const Op *op);

typedef struct ShufflePlan {
    int64_t candidates;     /* slots of each lane that may have the element */
    int64_t shuffles;       /* shfl.sync of one thread */
} ShufflePlan;

ShufflePlan shuffle_plan(const Op *op);

#endif
