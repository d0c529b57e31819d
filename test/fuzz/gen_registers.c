/* setmaxnreg: warpgroups give registers up, and take no more than others have given up
 * before them in the text. */
#include "gen.h"

#include "ir/ir.h"
#include "support/limits.h"

enum { WARPS = 4, LEAST = 24, MOST = 256, STEP = 8 };

void gen_min_blocks(Gen *g)
{
    int64_t most = LIMIT_RESIDENT_WARPS / g->warps;
    int64_t blocks = most < LIMIT_MIN_BLOCKS ? most : LIMIT_MIN_BLOCKS;
    if (!choose_rarely(g->choices, g->warps % WARPS ? 8 : 2))
        return;
    g->min_blocks = (unsigned)choose_between(g->choices, 1, blocks);
    Program p = {.warps = g->warps, .min_blocks = g->min_blocks};
    for (unsigned i = 0; i < GEN_WARPGROUPS; i++)
        g->registers[i].now = program_registers(&p);
}

/* By how much the registers grow that `count` warpgroups ask for, in registers of a thread, if
 * they ask for `n`. */
static int64_t growth(const GenRegisters *groups, unsigned count, int64_t n)
{
    int64_t sum = 0;
    for (unsigned i = 0; i < count; i++) {
        int64_t had = groups[i].most ? groups[i].most : groups[i].now;
        sum += n > had || !groups[i].most ? n - had : 0;
    }
    return sum;
}

/* A number that is there for all these; 0 if none is, or they have not as many. */
static int64_t choose_number(Gen *g, const GenRegisters *groups, unsigned count)
{
    int64_t n = STEP * choose_between(g->choices, LEAST / STEP, MOST / STEP);
    for (unsigned i = 1; i < count; i++)
        if (groups[i].now != groups[0].now)
            return 0;
    while (n >= LEAST && growth(groups, count, n) > g->spare_registers)
        n -= STEP;
    return n >= LEAST ? n : 0;
}

void gen_setmaxnreg(Gen *g)
{
    GenRegisters *groups = &g->registers[g->first_warp / WARPS];
    unsigned count = g->warps / WARPS;
    bool once = g->depth == g->group_depth;
    if (!once || !g->min_blocks || g->first_warp % WARPS || g->warps % WARPS)
        return;
    int64_t n = choose_number(g, groups, count);
    if (!n)
        return;
    g->spare_registers -= growth(groups, count, n);
    bool again = false;
    for (unsigned i = 0; i < count; i++) {
        again |= groups[i].most > 0;
        groups[i].most = n > groups[i].most ? n : groups[i].most;
        groups[i].now = n;
    }
    if (again)
        gen_line(g, "synchronize");
    gen_line(g, "setmaxnreg %lld", (long long)n);
}
