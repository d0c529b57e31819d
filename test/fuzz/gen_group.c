/* Groups of warps that run next to each other. Between them and what stands around
 * them each tensor that is written belongs to one: a barrier of the block comes
 * before the groups, and one after them before anybody else looks. */
#include "gen.h"

/* The objects that this group may touch: some of those that no group before it has
 * (`taken`), or none. */
static void hide_objects(Gen *g, uint32_t count, const bool *visible, bool *taken)
{
    for (uint32_t i = 0; i < count; i++) {
        bool takes = visible[i] && !taken[i] && choose_rarely(g->choices, 3);
        g->objects[i].hidden = !takes;
        taken[i] |= takes;
    }
}

/* Its own values, but for those of a group that is the whole block. */
static void group_body(Gen *g, unsigned begin, unsigned warps)
{
    unsigned outer_warps = g->warps;
    uint32_t outer_first = g->reg_first;
    gen_line(g, "thread_group(%u, %u) {", begin * 32, warps * 32);
    Scope s = gen_scope_begin(g);
    if (warps != outer_warps)
        g->reg_first = g->reg_count;
    g->warps = warps;
    g->first_warp += begin;
    g->group_depth++;
    if (choose(g->choices, 2))
        gen_setmaxnreg(g);
    const Layout *layout = gen_small_layout(g);
    gen_load(g, gen_dtype(g), layout);
    for (uint64_t n = choose_between(g->choices, 1, 5); n-- > 0;)
        gen_statement(g);
    gen_end_region(g, s.regs);
    g->group_depth--;
    g->first_warp -= begin;
    g->warps = outer_warps;
    g->reg_first = outer_first;
    gen_scope_end(g, &s);
    gen_line(g, "}");
}

/* Half of the groups that may hand registers over are warpgroups. */
static unsigned choose_warps(Gen *g, unsigned begin)
{
    enum { WARPGROUP = 4 };
    unsigned left = g->warps - begin;
    bool may_hand_over = g->min_blocks && begin % WARPGROUP == 0 && g->warps > WARPGROUP;
    return may_hand_over && left >= WARPGROUP && choose(g->choices, 2)
               ? WARPGROUP : (unsigned)choose_between(g->choices, 1, left);
}

static void emit_groups(Gen *g, uint32_t count, const bool *visible, bool *taken)
{
    bool exits = g->may_exit;
    g->may_exit = false;
    for (unsigned begin = 0; begin < g->warps;) {
        unsigned warps = choose_warps(g, begin);
        hide_objects(g, count, visible, taken);
        group_body(g, begin, warps);
        begin += warps + choose_rarely(g->choices, 4);
    }
    g->may_exit = exits;
}

/* Barriers inside a group order its own threads only, so that what it touched counts
 * as read and written. */
void gen_thread_group(Gen *g)
{
    uint32_t count = g->object_count;
    bool *visible = arena_array(g->arena, bool, count);
    bool *taken = arena_array(g->arena, bool, count);
    if (!gen_may_nest(g))
        return;
    gen_wait_all(g);
    if (gen_any_dirty(g))
        gen_synchronize(g);
    for (uint32_t i = 0; i < count; i++)
        visible[i] = !g->objects[i].hidden;
    emit_groups(g, count, visible, taken);
    for (uint32_t i = 0; i < count; i++) {
        g->objects[i].hidden = !visible[i];
        if (taken[i] || i == 0)
            g->objects[i].dirty = DIRTY_READ | DIRTY_WRITE;
    }
}
