/* Vector clocks of warps. */
#include "cpu/clocks.h"

#include <stdlib.h>
#include <string.h>

struct Semaphore {
    const void *at;
    Semaphore *next;
    uint64_t clock[];               /* of the warps */
};

static void forget_semaphores(Clocks *c)
{
    for (unsigned i = 0; i < SEMAPHORE_LISTS; i++)
        while (c->semaphores[i]) {
            Semaphore *first = c->semaphores[i];
            c->semaphores[i] = first->next;
            free(first);
        }
}

bool clocks_open(Clocks *c, unsigned warps, unsigned mbarriers)
{
    size_t owners = (size_t)warps + mbarriers;
    *c = (Clocks){.warps = warps, .owners = owners};
    c->known = calloc(warps * owners, sizeof *c->known);
    c->covered = calloc(owners, sizeof *c->covered);
    c->stale = calloc(owners, sizeof *c->stale);
    c->joined = calloc(owners, sizeof *c->joined);
    c->members = calloc(warps, sizeof *c->members);
    c->arrived = calloc(mbarriers * owners + 1, sizeof *c->arrived);
    c->released = calloc(mbarriers * owners + 1, sizeof *c->released);
    return c->known && c->covered && c->stale && c->joined && c->members && c->arrived &&
           c->released;
}

void clocks_close(Clocks *c)
{
    forget_semaphores(c);
    free(c->known);
    free(c->covered);
    free(c->stale);
    free(c->joined);
    free(c->members);
    free(c->arrived);
    free(c->released);
    *c = (Clocks){0};
}

void clocks_reset(Clocks *c)
{
    c->mbarriers = 0;
    c->member_count = 0;
    forget_semaphores(c);
    for (unsigned w = 0; w < c->warps; w++)
        for (unsigned u = 0; u < c->warps; u++)
            c->known[w * c->owners + u] = c->covered[u] = 1;
}

/* Entries of a clock that are in use. */
static size_t used(const Clocks *c)
{
    return c->warps + c->mbarriers;
}

/* ---- joining --------------------------------------------------------------- */

/* The later of each. */
static void join(uint64_t *to, const uint64_t *from, size_t count)
{
    for (size_t u = 0; u < count; u++)
        to[u] = to[u] > from[u] ? to[u] : from[u];
}

/* The later of each for warp `w`: what nobody knew less of may be covered now. */
static void learn(Clocks *c, unsigned w, const uint64_t *clock, size_t count)
{
    uint64_t *known = c->known + w * c->owners;
    for (size_t u = 0; u < count; u++) {
        if (known[u] >= clock[u])
            continue;
        c->stale[u] |= known[u] == c->covered[u];
        known[u] = clock[u];
    }
}

static void cover_stale(Clocks *c)
{
    for (unsigned u = 0; u < used(c); u++) {
        if (!c->stale[u])
            continue;
        c->stale[u] = false;
        c->covered[u] = UINT64_MAX;
        for (unsigned w = 0; w < c->warps; w++)
            if (c->covered[u] > clocks_known(c, w, u))
                c->covered[u] = clocks_known(c, w, u);
    }
}

void clocks_add_member(Clocks *c, unsigned warp)
{
    c->members[c->member_count++] = warp;
}

void clocks_join_members(Clocks *c)
{
    memset(c->joined, 0, used(c) * sizeof *c->joined);
    for (unsigned i = 0; i < c->member_count; i++)
        join(c->joined, c->known + c->members[i] * c->owners, used(c));
    for (unsigned i = 0; i < c->member_count; i++)
        c->joined[c->members[i]]++;
    for (unsigned i = 0; i < c->member_count; i++)
        learn(c, c->members[i], c->joined, used(c));
    c->member_count = 0;
    cover_stale(c);
}

void clocks_join_barrier(Clocks *c, unsigned first, uint32_t warps)
{
    for (uint32_t rest = warps; rest; rest &= rest - 1)
        clocks_add_member(c, first + (unsigned)__builtin_ctz(rest));
    clocks_join_members(c);
}

void clocks_join_all(Clocks *c)
{
    for (unsigned w = 0; w < c->warps; w++)
        clocks_add_member(c, w);
    clocks_join_members(c);
}

/* ---- semaphores -------------------------------------------------------------- */

static Semaphore **find_semaphore(Clocks *c, const void *at)
{
    Semaphore **link = &c->semaphores[(uintptr_t)at / sizeof(uint32_t) % SEMAPHORE_LISTS];
    while (*link && (*link)->at != at)
        link = &(*link)->next;
    return link;
}

bool clocks_release(Clocks *c, unsigned warp, const void *at)
{
    Semaphore **link = find_semaphore(c, at);
    if (!*link) {
        Semaphore *fresh = malloc(sizeof *fresh + c->warps * sizeof *fresh->clock);
        if (!fresh)
            return false;
        *fresh = (Semaphore){.at = at};
        *link = fresh;
    }
    memcpy((*link)->clock, c->known + warp * c->owners, c->warps * sizeof *c->known);
    return true;
}

void clocks_acquire(Clocks *c, unsigned warp, const void *at)
{
    const Semaphore *known = *find_semaphore(c, at);
    if (!known)
        return;
    learn(c, warp, known->clock, c->warps);
    cover_stale(c);
}

/* ---- mbarriers ------------------------------------------------------------- */

static uint64_t *arrived_at(Clocks *c, unsigned b)
{
    return c->arrived + b * c->owners;
}

static uint64_t *released_by(Clocks *c, unsigned b)
{
    return c->released + b * c->owners;
}

/* Nobody knows of a phase of those from the last used one up to `b` yet. */
static void use_mbarrier(Clocks *c, unsigned b)
{
    for (; c->mbarriers <= b; c->mbarriers++) {
        unsigned last = c->mbarriers, u = c->warps + last;
        memset(arrived_at(c, last), 0, c->owners * sizeof *c->arrived);
        memset(released_by(c, last), 0, c->owners * sizeof *c->released);
        for (unsigned i = 0; i < last; i++)
            arrived_at(c, i)[u] = released_by(c, i)[u] = 0;
        c->covered[u] = released_by(c, last)[u] = 1;
        for (unsigned w = 0; w < c->warps; w++)
            c->known[w * c->owners + u] = 1;
    }
}

uint64_t clocks_phase(Clocks *c, unsigned b)
{
    use_mbarrier(c, b);
    return released_by(c, b)[c->warps + b];
}

void clocks_arrive(Clocks *c, unsigned warp, unsigned b)
{
    use_mbarrier(c, b);
    join(arrived_at(c, b), c->known + warp * c->owners, used(c));
}

void clocks_end_phase(Clocks *c, unsigned b)
{
    uint64_t next = clocks_phase(c, b) + 1;
    memcpy(released_by(c, b), arrived_at(c, b), used(c) * sizeof *c->released);
    memset(arrived_at(c, b), 0, used(c) * sizeof *c->arrived);
    released_by(c, b)[c->warps + b] = next;
}

void clocks_wait(Clocks *c, unsigned warp, unsigned b)
{
    use_mbarrier(c, b);
    learn(c, warp, released_by(c, b), used(c));
    cover_stale(c);
}
