/* Vector clocks of warps. */
#include "cpu/clocks.h"

#include <string.h>

void clocks_reset(Clocks *c, unsigned warps)
{
    c->warps = warps;
    c->mbarriers = 0;
    for (unsigned w = 0; w < warps; w++)
        for (unsigned u = 0; u < warps; u++)
            c->known[w][u] = c->covered[u] = 1;
}

/* The later of each. */
static void join(const Clocks *c, uint64_t *to, const uint64_t *from)
{
    for (unsigned u = 0; u < c->warps; u++)
        to[u] = to[u] > from[u] ? to[u] : from[u];
    for (unsigned u = WARPS; u < WARPS + c->mbarriers; u++)
        to[u] = to[u] > from[u] ? to[u] : from[u];
}

static void cover_owner(Clocks *c, unsigned u)
{
    c->covered[u] = UINT64_MAX;
    for (unsigned w = 0; w < c->warps; w++)
        if (c->covered[u] > c->known[w][u])
            c->covered[u] = c->known[w][u];
}

static void cover_owners(Clocks *c)
{
    for (unsigned u = 0; u < c->warps; u++)
        cover_owner(c, u);
    for (unsigned u = WARPS; u < WARPS + c->mbarriers; u++)
        cover_owner(c, u);
}

/* Copies those in use. */
static void copy_clock(const Clocks *c, uint64_t *to, const uint64_t *from)
{
    memcpy(to, from, c->warps * sizeof *to);
    memcpy(to + WARPS, from + WARPS, c->mbarriers * sizeof *to);
}

static void clear_clock(const Clocks *c, uint64_t *clock)
{
    memset(clock, 0, c->warps * sizeof *clock);
    memset(clock + WARPS, 0, c->mbarriers * sizeof *clock);
}

/* The warps from `first` up to `end`, of whose bits only those in `warps` count. */
static void join_barrier(Clocks *c, unsigned first, unsigned end, uint32_t warps)
{
    uint64_t joined[CLOCK_OWNERS];
    clear_clock(c, joined);
    for (unsigned w = first; w < end; w++)
        if (warps >> (w - first) % 32 & 1)
            join(c, joined, c->known[w]);
    for (unsigned w = first; w < end; w++)
        joined[w] += warps >> (w - first) % 32 & 1;
    for (unsigned w = first; w < end; w++)
        if (warps >> (w - first) % 32 & 1)
            copy_clock(c, c->known[w], joined);
    cover_owners(c);
}

void clocks_join_barrier(Clocks *c, unsigned first, uint32_t warps)
{
    unsigned end = first + 32 < c->warps ? first + 32 : c->warps;
    join_barrier(c, first, end, warps);
}

void clocks_join_all(Clocks *c)
{
    join_barrier(c, 0, c->warps, UINT32_MAX);
}

/* ---- mbarriers ------------------------------------------------------------- */

/* Nobody knows of a phase of those from the last used one up to `b` yet. */
static void use_mbarrier(Clocks *c, unsigned b)
{
    for (; c->mbarriers <= b; c->mbarriers++) {
        unsigned u = WARPS + c->mbarriers;
        memset(c->arrived[c->mbarriers], 0, sizeof c->arrived[b]);
        memset(c->released[c->mbarriers], 0, sizeof c->released[b]);
        for (unsigned i = 0; i < c->mbarriers; i++)
            c->arrived[i][u] = c->released[i][u] = 0;
        c->covered[u] = c->released[c->mbarriers][u] = 1;
        for (unsigned w = 0; w < c->warps; w++)
            c->known[w][u] = 1;
    }
}

uint64_t clocks_phase(Clocks *c, unsigned b)
{
    use_mbarrier(c, b);
    return c->released[b][WARPS + b];
}

void clocks_arrive(Clocks *c, unsigned warp, unsigned b)
{
    use_mbarrier(c, b);
    join(c, c->arrived[b], c->known[warp]);
}

void clocks_end_phase(Clocks *c, unsigned b)
{
    uint64_t next = clocks_phase(c, b) + 1;
    copy_clock(c, c->released[b], c->arrived[b]);
    clear_clock(c, c->arrived[b]);
    c->released[b][WARPS + b] = next;
}

void clocks_wait(Clocks *c, unsigned warp, unsigned b)
{
    use_mbarrier(c, b);
    join(c, c->known[warp], c->released[b]);
    cover_owners(c);
}
