/* Plans of `reduce`: first each thread reduces its own slots, then lanes of a warp
 * exchange by butterflies, or all of them by redux.sync, then the partial results are combined
 * through shared memory.
 *
 *     spatial(6, 16), dimension 0 reduced: thread = 16 * i + j
 *
 *     bit    .. 5  |  4  |  3 2 1 0
 *             i / 2  i mod 2    j        3 partial results, a butterfly of lanes
 *                                        16 apart, 16 places */
#ifndef TILUS_SELECT_REDUCE_H
#define TILUS_SELECT_REDUCE_H

#include "ir/ir.h"

/* The digit thread / weight mod extent of a thread's number. */
typedef struct ThreadDigit {
    int64_t weight, extent;
} ThreadDigit;

/* Most significant first; `size` is the product of the extents. */
typedef struct ThreadDigits {
    unsigned count;
    int64_t size;
    ThreadDigit digit[LAYOUT_MODES];
} ThreadDigits;

enum { REDUCE_INDEX_BYTES = 4 };

typedef struct ReducePlan {
    bool pairs;             /* partial results are pairs of 16-bit elements, side by side */
    int64_t result_slots;
    int64_t count;          /* of partial results in a thread: for each slot, or pair of slots */
    uint32_t lanes;         /* bit k: butterflies join lanes 2^k apart */
    bool redux;             /* one redux.sync joins all lanes instead */
    ThreadDigits partials;  /* which partial result a thread has; of size 1: the whole one */
    ThreadDigits places;    /* for which elements of the result it has one */
    int64_t indices;        /* where indices begin in the scratch, of argmax and argmin */
    int64_t scratch;        /* bytes of shared memory, 0 without partial results */
} ReducePlan;

/* Bytes of one partial result in shared memory, without its index: 4, and 8 of 64-bit types. */
unsigned reduce_bytes(DType t);

ReducePlan reduce_plan(const Op *op);

/* Appends a digit, unless its extent is 1. */
void thread_digits_push(ThreadDigits *digits, int64_t weight, int64_t extent);

/* The digits that tell threads apart that hold the same elements. */
ThreadDigits replica_digits(const Layout *l);

/* Counts the lanes of a warp that a digit of the thread's number joins: while it is a whole
 * number of pairs of lanes, lanes that differ in one bit differ in this digit alone. */
int64_t lanes_of_digit(int64_t weight, int64_t extent);

#endif
