/* Groups of asynchronous ops. */
#include "interp/groups.h"

#include "ir/op_access.h"

#include <string.h>

static bool has_warp(ThreadRange threads, int64_t warp)
{
    return warp * WARP >= threads.begin && warp * WARP < threads.begin + threads.count;
}

Member group_member(const Interp *in, const Op *op)
{
    Member m = {.completion = op_completion(op), .rank = in->rank, .threads = in->threads};
    memcpy(m.group, in->groups[m.rank][m.completion], sizeof m.group);
    return m;
}

void group_commit(Interp *in, Completion c)
{
    for (int64_t w = 0; w < WARPS; w++)
        in->groups[in->rank][c][w] += has_warp(in->threads, w);
}

bool group_is_meant(const Interp *in, const Member *m, int64_t warp, int64_t pending)
{
    return m->rank == in->rank && has_warp(in->threads, warp) &&
           m->group[warp] < in->groups[m->rank][m->completion][warp] - pending;
}

/* The first warp that has not waited; WARPS when there is none. */
static int64_t find_waiting(const Member *m)
{
    int64_t w = 0;
    while (w < WARPS && (!has_warp(m->threads, w) || m->waited >> w & 1))
        w++;
    return w;
}

bool group_wait(const Interp *in, Member *m, int64_t pending)
{
    for (int64_t w = 0; w < WARPS; w++)
        if (group_is_meant(in, m, w, pending))
            m->waited |= UINT32_C(1) << w;
    return find_waiting(m) == WARPS;
}

bool group_is_open(const Interp *in, const Member *m)
{
    int64_t warp = find_waiting(m);
    return warp < WARPS && m->group[warp] == in->groups[m->rank][m->completion][warp];
}
