/* Vector clocks of warps. */
#define _GNU_SOURCE
#include "cpu/clocks.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { CLEARED = 1 << 16 };         /* bytes that are set to 0 sooner than unmapped */

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

static size_t learned_bytes(const Clocks *c)
{
    return c->warps * c->owners * sizeof *c->learned;
}

/* Maps the rows in small pages: a warp writes few of its row. */
static bool map_learned(Clocks *c)
{
    void *rows = mmap(NULL, learned_bytes(c), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    if (rows == MAP_FAILED)
        return false;
    c->learned = rows;
    madvise(rows, learned_bytes(c), MADV_NOHUGEPAGE);
    return true;
}

/* Makes all rows 0: warps know the base alone. */
static void forget_learned(Clocks *c)
{
    if (learned_bytes(c) > CLEARED && c->learner_count)
        madvise(c->learned, learned_bytes(c), MADV_DONTNEED);
    for (unsigned w = 0; w < c->warps && c->learner_count; w++) {
        if (!c->has_learned[w])
            continue;
        if (learned_bytes(c) <= CLEARED)
            memset(c->learned + w * c->owners, 0, c->owners * sizeof *c->learned);
        c->has_learned[w] = false;
        c->learner_count--;
    }
}

bool clocks_open(Clocks *c, unsigned warps, unsigned mbarriers)
{
    size_t owners = (size_t)warps + mbarriers;
    *c = (Clocks){.warps = warps, .owners = owners};
    c->base = calloc(owners, sizeof *c->base);
    c->has_learned = calloc(warps, sizeof *c->has_learned);
    c->covered = calloc(owners, sizeof *c->covered);
    c->stale = calloc(owners, sizeof *c->stale);
    c->joined = calloc(owners, sizeof *c->joined);
    c->members = calloc(warps, sizeof *c->members);
    c->arrived = calloc(mbarriers * owners + 1, sizeof *c->arrived);
    c->released = calloc(mbarriers * owners + 1, sizeof *c->released);
    return map_learned(c) && c->base && c->has_learned && c->covered && c->stale && c->joined &&
           c->members && c->arrived && c->released;
}

void clocks_close(Clocks *c)
{
    forget_semaphores(c);
    if (c->learned)
        munmap(c->learned, learned_bytes(c));
    free(c->base);
    free(c->has_learned);
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
    forget_learned(c);
    for (unsigned u = 0; u < c->warps; u++)
        c->base[u] = c->covered[u] = 1;
}

/* Entries of a clock that are in use. */
static size_t used(const Clocks *c)
{
    return c->warps + c->mbarriers;
}

/* ---- joining --------------------------------------------------------------- */

/* The later of each of `to` and of what warp `w` knows. */
static void join(const Clocks *c, uint64_t *to, unsigned w)
{
    const uint64_t *row = c->learned + w * c->owners;
    for (size_t u = 0; u < used(c); u++) {
        uint64_t from = c->base[u] + row[u];
        to[u] = to[u] > from ? to[u] : from;
    }
}

/* The later of each for warp `w`: what nobody knew less of may be covered now. */
static void learn(Clocks *c, unsigned w, const uint64_t *clock, size_t count)
{
    uint64_t *row = c->learned + w * c->owners;
    for (size_t u = 0; u < count; u++) {
        uint64_t known = c->base[u] + row[u];
        if (known >= clock[u])
            continue;
        c->stale[u] |= known == c->covered[u];
        row[u] = clock[u] - c->base[u];
    }
    c->learner_count += !c->has_learned[w];
    c->has_learned[w] = true;
}

/* While a warp knows the base alone, the least of all is that. */
static void cover_stale(Clocks *c)
{
    if (c->learner_count < c->warps)
        return;
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

/* All know what the members of a barrier of all warps do. */
static void join_base(Clocks *c)
{
    forget_learned(c);
    memcpy(c->base, c->joined, used(c) * sizeof *c->base);
    memcpy(c->covered, c->joined, used(c) * sizeof *c->covered);
    memset(c->stale, 0, used(c) * sizeof *c->stale);
    c->member_count = 0;
}

void clocks_add_member(Clocks *c, unsigned warp)
{
    c->members[c->member_count++] = warp;
}

void clocks_join_members(Clocks *c)
{
    memcpy(c->joined, c->base, used(c) * sizeof *c->joined);
    for (unsigned i = 0; i < c->member_count; i++)
        if (c->has_learned[c->members[i]])
            join(c, c->joined, c->members[i]);
    for (unsigned i = 0; i < c->member_count; i++)
        c->joined[c->members[i]]++;
    if (c->member_count == c->warps) {
        join_base(c);
        return;
    }
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
    for (unsigned u = 0; u < c->warps; u++)
        (*link)->clock[u] = clocks_known(c, warp, u);
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
        c->base[u] = c->covered[u] = released_by(c, last)[u] = 1;
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
    join(c, arrived_at(c, b), warp);
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
