/* Vector clocks of warps. */
#include "cpu/clocks.h"

#include <string.h>

void clocks_reset(Clocks *c, unsigned warps)
{
    c->warps = warps;
    for (unsigned w = 0; w < warps; w++)
        for (unsigned u = 0; u < warps; u++)
            c->known[w][u] = c->settled[u] = 1;
}

/* What is before any of those that met, as it will be known to all of them. */
static void join(const Clocks *c, uint32_t met, uint64_t joined[WARPS])
{
    for (unsigned w = 0; w < c->warps; w++)
        for (unsigned u = 0; met >> w & 1 && u < c->warps; u++)
            joined[u] = joined[u] > c->known[w][u] ? joined[u] : c->known[w][u];
    for (unsigned w = 0; w < c->warps; w++)
        joined[w] += met >> w & 1;
}

static void settle(Clocks *c)
{
    for (unsigned u = 0; u < c->warps; u++) {
        c->settled[u] = UINT64_MAX;
        for (unsigned w = 0; w < c->warps; w++)
            if (c->settled[u] > c->known[w][u])
                c->settled[u] = c->known[w][u];
    }
}

void clocks_meet(Clocks *c, uint32_t met)
{
    uint64_t joined[WARPS] = {0};
    join(c, met, joined);
    for (unsigned w = 0; w < c->warps; w++)
        if (met >> w & 1)
            memcpy(c->known[w], joined, sizeof joined);
    settle(c);
}
