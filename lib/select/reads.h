/* Reads of shared memory that threads have begun when they say that others may write there.
 *
 *     %x = load_shared %ring[%s, 0] : ..
 *     mbarrier_arrive %empty[%s]              // the copy unit may fill slot %s again
 *
 * An arrival does not wait for loads whose results nothing has used so far, and the copy unit
 * overtakes them: on an H200 a slot was filled again before it was read (bench/results/NOTES.md).
 * A fence of the async proxy between them keeps their order (PTX ISA, memory consistency model:
 * proxy-preserved base causality order). */
#ifndef TILUS_SELECT_READS_H
#define TILUS_SELECT_READS_H

#include "ir/ir.h"

/* Returns true when `op` orders what its threads do, and they may have reads in flight of shared
 * memory that bulk copies write, no earlier such op being between: an arrival, a barrier, an op on
 * a semaphore, a wait for an mbarrier by a warp that starts copies alone, or an allocation of
 * mbarriers, where blocks of a cluster meet. */
bool reads_may_be_in_flight(const Op *op);

/* Returns true when some of them may be of another block's shared memory. */
bool remote_reads_may_be_in_flight(const Op *op);

#endif
