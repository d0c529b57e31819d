/* Groups of asynchronous ops that warps wait for: copies, bulk stores and products. Each warp
 * counts its own. An op belongs, in each of its warps, to the group that the warp makes next:
 *
 *     copy_async   group 0 of its warps   copy_async_commit_group   copy_async_wait_group 0
 *
 * One in no group yet has the number of the next one, and no wait is for it. */
#ifndef TILUS_INTERP_GROUPS_H
#define TILUS_INTERP_GROUPS_H

#include "interp/state.h"

typedef struct Member {
    Completion completion;      /* says which groups */
    unsigned rank;              /* of its block in the cluster */
    ThreadRange threads;        /* that run the op */
    int64_t group[WARPS];       /* the number of its group in each of their warps */
    uint32_t waited;            /* a bit for each warp that has waited for it */
} Member;

/* The first of the warps that run the op. */
static inline int64_t member_first_warp(const Member *m)
{
    return m->threads.begin / WARP;
}

/* The member that `op` becomes, which the running threads run. */
Member group_member(const Interp *in, const Op *op);

/* The running threads' warps make a group of what they have started. */
void group_commit(Interp *in, Completion c);

/* Returns true when a wait of the running threads that leaves `pending` groups in flight is for
 * the part of `m` in `warp`. */
bool group_is_meant(const Interp *in, const Member *m, int64_t warp, int64_t pending);

/* The warps of the running threads wait so; returns true when each warp of `m` has waited. */
bool group_wait(const Interp *in, Member *m, int64_t pending);

/* Returns true when the first warp that has not waited for `m` has not made a group of it. */
bool group_is_open(const Interp *in, const Member *m);

#endif
