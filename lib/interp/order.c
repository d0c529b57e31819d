/* The order that semaphores give to accesses of different blocks: a `lock` that
 * finds the value of a `release` comes after it, so
 *
 *     block 0   writes a      release s, 1
 *                                  `-------> lock s, 1     reads a      block 1
 *
 * and after all that the releasing block itself had acquired. Of every earlier
 * block, a prefix of its accesses is ordered before the running one: those up to
 * the latest of its releases that the running block knows. Blocks of a cluster, which
 * run at once, know each what they acquired themselves.
 *
 * All blocks of a cooperative program run at once, so clocks.c tells what is ordered: a release
 * keeps the clock of its threads' warps, as an arrival at an mbarrier does. */
#include "interp/state.h"

#include "ir/op_access.h"

#include <string.h>

typedef struct Acquired {
    Release *release;
    struct Acquired *before;        /* the acquisition before this one */
} Acquired;

/* Acquisitions are only ever put in front, so a release keeps those of its moment
 * as a list that no one changes. */
struct Release {
    uint64_t *clock;                /* cooperative: what its threads knew; else NULL */
    uint64_t time;
    uint32_t block;
    const Acquired *acquired;       /* by its block, before it */
    Release *pending;               /* the next one whose knowledge is to be taken over */
};

/* The latest release of a block that the block `by` knows; of use while that runs. Each rank of
 * the cluster that runs has one for each block so far. */
typedef struct KnownBlock {
    uint64_t time;
    uint32_t by;
} KnownBlock;

/* The number of the block with this rank in a cluster. */
static uint32_t number_of(const Interp *in, uint32_t cluster, unsigned rank)
{
    return cluster * in->blocks + rank;
}

static uint32_t running_block(const Interp *in)
{
    return number_of(in, in->block_count - 1, in->rank);
}

/* ---- beginnings ----------------------------------------------------------- */

void order_open(Interp *in)
{
    in->has_locks = program_has_locks(in->program) && !in->program->cooperative;
    in->acquired = arena_array(in->arena, struct Acquired *, in->blocks);
}

void order_begin_cluster(Interp *in)
{
    for (unsigned rank = 0; rank < in->blocks; rank++)
        in->acquired[rank] = NULL;
    for (unsigned pair = 0; in->has_locks && pair < in->blocks * in->blocks; pair++)
        arena_push(in->arena, in->known, in->known_count, in->known_capacity,
                   ((KnownBlock){0, 0}));
}

/* ---- releasing and acquiring ---------------------------------------------- */

/* One after the other: a lock sees the last one alone. */
static void release_clock(Interp *in, ByteHistory *h)
{
    if (!h->release) {
        h->release = arena_new(in->arena, Release);
        *h->release = (Release){.clock = arena_array(in->arena, uint64_t, in->owner_count)};
    }
    memset(h->release->clock, 0, in->owner_count * sizeof *h->release->clock);
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        race_arrive(in, w, h->release->clock);
}

static void acquire_clock(Interp *in, const Release *release)
{
    for (unsigned w = first_warp(in); release && w < end_warp(in); w++)
        race_acquire(in, w, release->clock);
}

void order_release(Interp *in, Memory *memory, int64_t byte)
{
    if (in->program->cooperative) {
        release_clock(in, byte_history(in, memory, byte));
        return;
    }
    Release *release = arena_new(in->arena, Release);
    *release = (Release){.time = in->time, .block = running_block(in),
                         .acquired = in->acquired[in->rank]};
    byte_history(in, memory, byte)->release = release;
}

static KnownBlock *known_of(const Interp *in, uint32_t block)
{
    return &in->known[block * in->blocks + in->rank];
}

static bool is_known(const Interp *in, uint32_t block, uint64_t time)
{
    const KnownBlock *known = known_of(in, block);
    return known->by == running_block(in) && known->time >= time;
}

/* Puts `release` on the list `pending`, unless a later one of its block is known: that
 * one's acquisitions include its own. */
static Release *learn(Interp *in, Release *release, Release *pending)
{
    if (is_known(in, release->block, release->time))
        return pending;
    *known_of(in, release->block) = (KnownBlock){release->time, running_block(in)};
    release->pending = pending;
    return release;
}

void order_acquire(Interp *in, Memory *memory, int64_t byte)
{
    Release *release = byte_history(in, memory, byte)->release;
    if (in->program->cooperative) {
        acquire_clock(in, release);
        return;
    }
    if (!release || is_known(in, release->block, release->time))
        return;
    Acquired *acquired = arena_new(in->arena, Acquired);
    *acquired = (Acquired){release, in->acquired[in->rank]};
    in->acquired[in->rank] = acquired;
    for (Release *pending = learn(in, release, NULL); pending;) {
        const Acquired *known = pending->acquired;
        pending = pending->pending;
        for (; known; known = known->before)
            pending = learn(in, known->release, pending);
    }
}

bool order_holds(const Interp *in, uint64_t time, unsigned rank)
{
    return in->acquired[in->rank] && is_known(in, number_of(in, block_at(in, time), rank), time);
}
