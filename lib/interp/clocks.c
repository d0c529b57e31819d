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
 * warps, each mbarrier owns a clock, as which copy_async_bulk accesses memory. */
#include "interp/state.h"

#include <string.h>

void race_block(Interp *in)
{
    in->block_start = in->time + 1;
    for (unsigned w = 0; w < WARPS; w++) {
        in->all_ordered[w] = in->block_start;
        for (unsigned u = 0; u < CLOCK_OWNERS; u++)
            in->ordered[w][u] = in->block_start;
    }
}

/* The later of each. */
static void join(const Interp *in, uint64_t *to, const uint64_t *from)
{
    for (unsigned u = 0; u < in->owner_count; u++)
        to[u] = to[u] > from[u] ? to[u] : from[u];
}

/* From now on warp `w` knows so much. */
static void set_known(Interp *in, unsigned w, const uint64_t *known)
{
    uint64_t least = UINT64_MAX;
    for (unsigned u = 0; u < in->program->warps; u++)
        least = least < known[u] ? least : known[u];
    memcpy(in->ordered[w], known, sizeof in->ordered[w]);
    in->all_ordered[w] = least;
}

void race_barrier(Interp *in)
{
    uint64_t known[CLOCK_OWNERS] = {0};
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        join(in, known, in->ordered[w]);
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        known[w] = in->time + 1;
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        set_known(in, w, known);
}

void race_arrive(Interp *in, unsigned warp, uint64_t clock[CLOCK_OWNERS])
{
    uint64_t known[CLOCK_OWNERS];
    memcpy(known, in->ordered[warp], sizeof known);
    known[warp] = in->time + 1;
    set_known(in, warp, known);
    join(in, clock, known);
}

void race_acquire(Interp *in, unsigned warp, const uint64_t clock[CLOCK_OWNERS])
{
    uint64_t known[CLOCK_OWNERS];
    memcpy(known, in->ordered[warp], sizeof known);
    join(in, known, clock);
    known[warp] = in->time + 1;
    set_known(in, warp, known);
}
