/* Vector clocks of the order between warps: barriers join whole warps, those of the block
 * or of a thread_group. ordered[w][u] is a time, when warp u came to a barrier, so
 * accesses of u between two of its barriers are alike for everybody:
 *
 *   block_start      ordered[w][u]       ordered[u][u]      time
 *   ----|----------------|--------------------|--------------|--->
 *   foreign   before w        not before w        not even before a later
 *                                                 barrier's other warps
 *
 * Barriers carry on what their warps know: w is also behind a warp that it never
 * waited with, if a third one waited with both in turn. So do mbarriers, from the warps
 * that arrive to the warps that wait; either is a barrier of each warp alone. Behind the
 * warps, each mbarrier owns a clock, as which copy_async_bulk accesses memory. Warps of all
 * blocks that run together have a clock, and none knows of another block's until a barrier of
 * these blocks, an mbarrier or, in a cooperative program, a semaphore tells it. */
#include "interp/state.h"

#include <string.h>

void race_open(Interp *in)
{
    in->ordered = arena_array(in->arena, uint64_t *, in->warp_count);
    in->all_ordered = arena_array(in->arena, uint64_t, in->warp_count);
    in->joined = arena_array(in->arena, uint64_t, in->owner_count);
    for (unsigned w = 0; w < in->warp_count; w++)
        in->ordered[w] = arena_array(in->arena, uint64_t, in->owner_count);
    mbarriers_open(in);
}

void race_block(Interp *in)
{
    in->block_start = in->time + 1;
    for (unsigned w = 0; w < in->warp_count; w++) {
        in->all_ordered[w] = in->block_start;
        for (unsigned u = 0; u < in->owner_count; u++)
            in->ordered[w][u] = in->block_start;
    }
}

/* The later of each. */
static void join(const Interp *in, uint64_t *to, const uint64_t *from)
{
    for (unsigned u = 0; u < in->owner_count; u++)
        to[u] = to[u] > from[u] ? to[u] : from[u];
}

/* Copies the clock of owner `w`. */
static void get_known(const Interp *in, unsigned w, uint64_t *known)
{
    memcpy(known, in->ordered[w], in->owner_count * sizeof *known);
}

/* From now on the warp that is owner `w` knows so much. */
static void set_known(Interp *in, unsigned w, const uint64_t *known)
{
    uint64_t least = UINT64_MAX;
    for (unsigned u = 0; u < in->warp_count; u++)
        least = least < known[u] ? least : known[u];
    memcpy(in->ordered[w], known, in->owner_count * sizeof *known);
    in->all_ordered[w] = least;
}

/* The running threads' warps of the blocks with ranks from `first` up to `end` wait for each
 * other. */
static void join_barrier(Interp *in, unsigned first, unsigned end)
{
    uint64_t *known = in->joined;
    unsigned warps = in->program->warps;
    memset(known, 0, in->owner_count * sizeof *known);
    for (unsigned rank = first; rank < end; rank++)
        for (unsigned w = first_warp(in); w < end_warp(in); w++)
            join(in, known, in->ordered[rank * warps + w]);
    for (unsigned rank = first; rank < end; rank++)
        for (unsigned w = first_warp(in); w < end_warp(in); w++)
            known[rank * warps + w] = in->time + 1;
    for (unsigned rank = first; rank < end; rank++)
        for (unsigned w = first_warp(in); w < end_warp(in); w++)
            set_known(in, rank * warps + w, known);
}

void race_barrier(Interp *in)
{
    join_barrier(in, in->rank, in->rank + 1);
}

void race_meeting(Interp *in)
{
    join_barrier(in, 0, in->blocks);
}

void race_arrive(Interp *in, unsigned warp, uint64_t *clock)
{
    uint64_t *known = in->joined;
    unsigned owner = in->first_owner + warp;
    get_known(in, owner, known);
    known[owner] = in->time + 1;
    set_known(in, owner, known);
    join(in, clock, known);
}

void race_acquire(Interp *in, unsigned warp, const uint64_t *clock)
{
    uint64_t *known = in->joined;
    unsigned owner = in->first_owner + warp;
    get_known(in, owner, known);
    join(in, known, clock);
    known[owner] = in->time + 1;
    set_known(in, owner, known);
}
