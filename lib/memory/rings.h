/* The order that mbarriers make between accesses, for the search for races.
 *
 *     producer    wait %empty[i mod 3], i / 3 - 1    copy %s[i mod 3]    arrive %full[i mod 3]
 *     consumer    wait %full[i mod 3], i / 3         load %s[i mod 3]    arrive %empty[i mod 3]
 *
 * THEORY. Arrivals and waits of a loop are numbered: its iteration t serves ticket t + lag of
 * an array of N mbarriers, which is phase (t + lag) / N of element (t + lag) mod N. Where each
 * warp that arrives does so once for each ticket, as many warps as the phase counts, and knows
 * by then that the phase before has ended, a phase consists of the arrivals of its ticket.
 *
 * Ops on mbarriers in no loop and no branch happen once. Each is numbered as in a loop of one
 * iteration, 0, around it, so that its ticket is the one of its text: phase p of element e of N
 * mbarriers is ticket p * N + e. A warp's arrivals go on from one of these, or a loop, to the next.
 *
 * At each point of a program something is known of each other access X: "all X of iterations
 * up to t + d are ordered before here" (t: the iteration here; ALL: all X there are).
 *
 *   - An arrival orders what its warps did before, and what they know.
 *   - The end of a phase orders what all its arrivals order; bulk copies that it counts are over.
 *   - A wait for ticket t + lag gives what the end of that phase orders.
 *   - A synchronize gives to its warps what any of them did or knows.
 *   - One iteration later d is less by one. Tickets below 0 there are none, so before the
 *     first iteration, numbered 0, d = -1 is known of everything.
 *
 * A wait names a phase by its parity. It is the phase meant if the one before is known to have
 * ended, and if the next one cannot end first: one of its arrivals knows of this wait. Phases
 * before -1 are never meant: whether later ones of their parity have ended, they do not tell. All
 * this is derived as if each wait were right, the greatest solution of these rules, and then
 * checked of each: in a run, the first wait that was not right would contradict its own check,
 * for what is known there rests on earlier waits only. Mbarriers for which a check fails order
 * nothing, and the rest is derived anew. How often loops run does not matter: threads that
 * wait for a phase which never ends do not race. A wait that happens once, though, for a phase
 * at which nobody arrives, or only who knows of the wait, means another one.
 *
 * In a cluster each block runs this text, and arrivals and copies to all blocks alike are
 * understood: a phase of a block consists of the arrivals of its ticket in all blocks. Their
 * knowledge is of one's own block, or of all: a wait for a phase at which all blocks arrive
 * makes knowledge of all out of that which each arrival has of its own. To arrive at all
 * blocks' mbarriers, and to copy to all, the phases before must be known of all.
 *
 * Two accesses of iterations x and y are ordered when x <= y + d or y <= x + d', so those with
 * d < x - y < -d' remain: a few distances, at which their tiles must lie apart. */
#ifndef TILUS_MEMORY_RINGS_H
#define TILUS_MEMORY_RINGS_H

#include "ir/ir.h"

typedef struct Rings Rings;

/* Finds what the mbarriers of `p` order; NULL for a program without any. In the scratch
 * arena. Value.data is clear before and after. */
Rings *rings_of(Program *p);

/* Two ops that access the same memory, `first` before `second` in the order in which one thread
 * after the other would run the text. */
typedef struct RingPair {
    const Op *first, *second;
    const Op *loop;             /* the innermost numbered one around both in one run; or NULL */
    int64_t iterations;         /* of it since `first`, ... */
    bool more;                  /* ... or more */
} RingPair;

/* Returns true when the tiles of `first` and `second` are apart. Their offsets are mapped to
 * expressions of one time, of `first` by map(value, then), of `second` by map(value, now). */
typedef bool (*RingApart)(void *data, ExprMap map, void *then, void *now);

/* Returns true when all accesses of the pair that are not ordered are apart. */
bool rings_order(Rings *r, const RingPair *pair, RingApart apart, void *data);

/* Returns true when all accesses of `copy`, to all blocks of a cluster, are ordered with those of
 * `other` in other blocks, or apart. */
bool rings_order_blocks(Rings *r, const Op *copy, const Op *other, RingApart apart, void *data);

/* Returns true for an arrival at all blocks of a cluster, or a copy to them, of which it is known
 * what it orders, unless its mbarriers are unknown. */
bool rings_know(const Rings *r, const Op *op);

/* Returns true when the loop `op` numbers iterations of mbarriers. */
bool rings_number(const Rings *r, const Op *loop);

/* Returns true when somebody waits for all copies of `op` before the block ends. */
bool rings_finish(Rings *r, const Op *op);

/* The phase that an arrival, wait or copy means: of ticket t + lag, where t numbers iterations of
 * the innermost loop around mbarrier ops, or is 0 where there is none, phase (t + lag) / count of
 * element (t + lag) mod count of the array; a phase ends after `arrivals` arrivals. */
typedef struct RingPhase {
    const Value *array;
    int64_t count, arrivals, lag;
    bool known;                 /* lag is */
} RingPhase;

/* Finds it; false for an op that has none. */
bool rings_phase(const Rings *r, const Op *op, RingPhase *phase);

/* The n-th op of which the phase that it means is not known; NULL after the last one. */
const Op *rings_unknown(const Rings *r, unsigned n);

#endif
