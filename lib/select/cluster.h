/* How blocks of a cluster order each other's accesses by mbarriers. */
#ifndef TILUS_SELECT_CLUSTER_H
#define TILUS_SELECT_CLUSTER_H

#include "ir/ir.h"

/* How an arrival, a wait, a barrier or the like is compiled. */
typedef struct SyncPlan {
    bool remote;        /* an arrival at another block's mbarrier */
    bool publishes;     /* it orders what threads wrote, for other blocks of the cluster */
    bool reads;         /* after a fence: threads may have reads in flight of memory that the
                           copy unit writes (select/reads.h) */
    bool reads_others;  /* some of them may be of another block's shared memory */
} SyncPlan;

/* Returns true when threads of one block of a cluster may read, or write again, what those of
 * another have written: shared memory that load_shared reads by rank, or global memory that
 * the program both writes and accesses by another op, or writes by one op of which it is not
 * proved that blocks write different bytes. In programs with locks, blocks of a cluster may not
 * do so with global memory. */
bool cluster_publishes(const Program *p);

#endif
