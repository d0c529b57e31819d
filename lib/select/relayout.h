/* Plans of `convert_layout`: how each thread gets the elements that its new layout gives it.
 *
 *   rename    it has them already, in slots that are the same in every thread
 *   shuffle   lanes of its warp have them
 *   scratch   they go through shared memory
 *
 * A shuffle's plan cuts both layouts into the same digits, of which each numbers lanes or
 * slots on either side:
 *
 *     from      to        called
 *     lanes     lanes     l         the lane that has the element follows from the reader's
 *     slots     slots     z         a group: elements that stay together, in whole words
 *     slots     lanes     x         a lane of the new layout takes one of x groups ..
 *     lanes     slots     y         .. of each of y lanes
 *
 * The exchange takes max(x, y) rounds of shuffles (PTX ISA, shfl.sync). In round r a lane with y-digits b supplies its group b ^ r, and
 * a lane with x-digits a reads group a from the lane with y-digits a ^ r:
 *
 *     from spatial(4).local(4) to local(4).spatial(4), x = y = 4
 *
 *     round   lane 0    lane 1    lane 2    lane 3      supplies its group / reads lane
 *       0      0 / 0     1 / 1     2 / 2     3 / 3
 *       1      1 / 1     0 / 0     3 / 3     2 / 2
 *       2      2 / 2     3 / 3     0 / 0     1 / 1
 *       3      3 / 3     2 / 2     1 / 1     0 / 0 */
#ifndef TILUS_SELECT_RELAYOUT_H
#define TILUS_SELECT_RELAYOUT_H

#include "ir/ir.h"

typedef enum RelayoutWay { RELAYOUT_RENAME, RELAYOUT_SHUFFLE, RELAYOUT_SCRATCH } RelayoutWay;

/* A digit on both sides: its value times `from` counts threads or slots of the old layout,
 * times `to` of the new one. */
typedef struct DigitMove {
    int64_t extent, from, to;
} DigitMove;

/* Digits of one kind, the least significant first; `size` is the product of the extents. */
typedef struct DigitMoves {
    unsigned count;
    int64_t size;
    DigitMove move[LAYOUT_MODES];
} DigitMoves;

/* Return the threads or slots that `number`, in the digits of the moves, counts on the old
 * side and on the new one. */
int64_t digits_from(const DigitMoves *moves, int64_t number);
int64_t digits_to(const DigitMoves *moves, int64_t number);

typedef struct ExchangePlan {
    DigitMoves l, x, y, z;
    DigitMoves own;              /* digits of replicas, which a lane takes from its own number */
    int64_t rounds;
    bool in_place;          /* in round r each lane reads the lane with number own ^ digits_from(y, r) */
    int64_t words;          /* of a group */
    int64_t shuffles;       /* in all rounds, of words */
} ExchangePlan;

/* Accesses of one side, of runs of `slots` slots. */
typedef struct ScratchAccess {
    int64_t slots;
    unsigned bytes;
    unsigned wavefronts;    /* of one access by a warp: more than its bytes / 128 by bank conflicts */
} ScratchAccess;

/* Where elements lie in shared memory: sum over d of index[d] * strides[d], of `bits` bits. */
typedef struct ScratchPlan {
    unsigned bits;
    int64_t strides[LIMIT_RANK];
    ScratchAccess store, load;
    int64_t bytes;
} ScratchPlan;

typedef struct RelayoutPlan {
    RelayoutWay way;
    ExchangePlan shuffle;
    ScratchPlan scratch;
} RelayoutPlan;

RelayoutPlan relayout_plan(const Op *op);

#endif
