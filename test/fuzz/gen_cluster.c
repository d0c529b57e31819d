/* Clusters: blocks that read each other's shared memory, behind barriers of the cluster or
 * arrivals at each other's mbarriers. All blocks must come to such statements, so they stand
 * outside of regions, and no block ends early. */
#include "gen.h"

#include "support/limits.h"

enum { MBARRIERS = 64 };

/* Extents that divide those of the grid. */
void gen_choose_cluster(Gen *g)
{
    unsigned blocks = 1;
    unsigned rarely = g->options.rings ? 2 : g->is_tight ? 8 : 3;
    if (!g->options.bulk || !choose_rarely(g->choices, rarely))
        return;
    for (unsigned d = 0; d < g->grid_rank; d++) {
        bool whole = g->grid[d] * blocks <= LIMIT_CLUSTER && choose(g->choices, 4);
        g->cluster[d] = whole ? (unsigned)g->grid[d] : 1;
        blocks *= g->cluster[d];
    }
    g->cluster_blocks = blocks;
    g->may_exit = g->may_exit && blocks == 1;
    text_add(&g->views, "  %q = cluster_rank\n");
    gen_scalar_add(g, "%q", 0, blocks - 1);
}

const char *gen_cluster_text(Gen *g)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned d = 0; g->cluster_blocks && d < g->grid_rank; d++)
        text_printf(&text, "%s%u%s", d ? ", " : " cluster(", g->cluster[d],
                    d + 1 == g->grid_rank ? ")" : "");
    return text_string(&text);
}

void gen_cluster_synchronize(Gen *g)
{
    if (!gen_drops(g))
        gen_line(g, "cluster_synchronize");
    for (uint32_t i = 0; i < g->object_count; i++)
        g->objects[i].dirty = 0;
}

void gen_arrive_everywhere(Gen *g, const char *mbarriers)
{
    const char *rank = gen_name(g, "i");
    gen_line(g, "for %s in 0 .. %u {", rank, g->cluster_blocks);
    gen_line(g, "  mbarrier_arrive %s[0] {rank = %s}", mbarriers, rank);
    gen_line(g, "}");
}

/* Has all blocks tell all others that they have come here. */
static void tell_others(Gen *g)
{
    const char *told = gen_mbarriers(g, g->warps * g->cluster_blocks, 1);
    gen_arrive_everywhere(g, told);
    if (!gen_drops(g))
        gen_line(g, "mbarrier_wait %s[0], 0", told);
}

/* A value that some block of the cluster stores into this one's shared tensor. */
static void hand_over(Gen *g)
{
    unsigned own = gen_pick(g);
    const Reg r = g->regs[own];
    const Layout *l = r.layout;
    if (dtype_bits(r.dtype) % 8)
        return;
    unsigned number = gen_allocate_shared(g, r.dtype, l->rank, l->shape);
    Object *o = &g->objects[number];
    const char *name = o->name;
    gen_order(g, o, DIRTY_WRITE);
    gen_cluster_synchronize(g);
    gen_spend(g, l);
    gen_line(g, "store_shared %s, %s[%s] {rank = (%%q + %u) mod %u}", gen_use(g, own), name,
             gen_zeros(g, l->rank), (unsigned)choose(g->choices, g->cluster_blocks),
             g->cluster_blocks);
    gen_cluster_synchronize(g);
    gen_spend(g, l);
    gen_define(g, r.dtype, l, false,
               arena_printf(g->arena, "load_shared %s[%s] : %s", name, gen_zeros(g, l->rank),
                            gen_type_text(g, r.dtype, l)));
    gen_cluster_synchronize(g);
}

/* A value of some block of the cluster, by way of a shared tensor of each. */
static void exchange(Gen *g)
{
    unsigned own = gen_pick(g);
    const Reg r = g->regs[own];
    const Layout *l = r.layout;
    bool tells = g->mbarriers < MBARRIERS && choose(g->choices, 2);
    unsigned number = gen_allocate_shared(g, r.dtype, l->rank, l->shape);
    Object *o = &g->objects[number];
    const char *name = o->name;
    gen_order(g, o, DIRTY_WRITE);
    gen_spend(g, l);
    gen_line(g, "store_shared %s, %s[%s]", gen_use(g, own), name, gen_zeros(g, l->rank));
    (tells ? tell_others : gen_cluster_synchronize)(g);
    gen_spend(g, l);
    gen_define(g, r.dtype, l, false,
               arena_printf(g->arena, "load_shared %s[%s] {rank = %s} : %s", name,
                            gen_zeros(g, l->rank),
                            gen_scalar_within(g, 0, g->cluster_blocks - 1).text,
                            gen_type_text(g, r.dtype, l)));
    gen_cluster_synchronize(g);
}

void gen_cluster(Gen *g)
{
    if (!g->cluster_blocks || g->depth)
        return;
    gen_wait_all(g);
    switch (choose(g->choices, 4)) {
    case 0: gen_cluster_synchronize(g); return;
    case 1: gen_multicast(g); return;
    default:
        if (g->shared_bytes <= GEN_SHARED_LIMIT)
            (choose(g->choices, 3) ? exchange : hand_over)(g);
    }
}
