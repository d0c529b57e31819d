/* Atomic ops on counters: a block's in shared memory, all blocks' in global. */
#include "gen.h"

enum { ATOMIC_KINDS = 3 };
static const char *const atomic_ops[ATOMIC_KINDS] = {"atomic_add", "atomic_max", "atomic_min"};

static const char *atomic_words(Gen *g)
{
    static const char *const words[] = {
        "", "", " {order = release}", " {order = acq_rel, scope = block}",
        " {scope = system}"};
    return words[choose(g->choices, sizeof words / sizeof *words)];
}

static DType counter_dtype(Gen *g)
{
    return choose(g->choices, 2) ? DTYPE_i32 : DTYPE_u32;
}

/* Half of them tell what was there: the interpreter takes one block after the other,
 * so that is certain, but in clusters and cooperative programs, whose blocks take turns at barriers,
 * which passes drop. Other engines may take another order. */
static void emit_atomic(Gen *g, unsigned reg, unsigned kind, const char *place)
{
    const Reg r = g->regs[reg];
    const char *op = arena_printf(g->arena, "%s %s, %s%s", atomic_ops[kind], gen_use(g, reg),
                                  place, atomic_words(g));
    if (choose(g->choices, 2) && !g->options.exact && g->cluster_blocks < 2 && !g->cooperative) {
        gen_define(g, r.dtype, r.layout, false, op);
    } else {
        gen_line(g, "%s", op);
        gen_spend(g, r.layout);
    }
}

/* Counters of a block: cleared, changed by all, and read. */
void gen_atomic_shared(Gen *g)
{
    DType t = counter_dtype(g);
    unsigned kind = (unsigned)choose(g->choices, ATOMIC_KINDS);
    unsigned reg = gen_value_of(g, t, gen_small_layout(g));
    uint32_t before = g->object_count;
    gen_new_shared(g, reg);
    if (g->object_count == before)
        return;
    for (unsigned i = 0; i < 2; i++) {
        const Object *made = &g->objects[before];
        int64_t tile[LIMIT_RANK];
        gen_tile(g, made, tile);
        reg = gen_value_of(g, t, gen_layout_of(g, made->rank, tile));
        Object *o = &g->objects[before];
        if (o->dirty == DIRTY_ATOMIC && o->atomic != kind)
            gen_synchronize(g);
        gen_order(g, o, DIRTY_ATOMIC);
        o->atomic = kind;
        emit_atomic(g, reg, kind, arena_printf(g->arena, "%s%s", o->name,
                                               gen_offsets(g, o, tile)));
        kind = (unsigned)choose(g->choices, ATOMIC_KINDS);
    }
}

/* Counters of all blocks, which one kind of atomic op changes in any order. */
void gen_atomic_global(Gen *g)
{
    unsigned reg = gen_pick(g);
    const Reg *r = &g->regs[reg];
    if (r->dtype != DTYPE_i32 && r->dtype != DTYPE_u32)
        reg = gen_value_of(g, counter_dtype(g), r->layout);
    r = &g->regs[reg];
    int64_t elements = 1;
    const char *name = gen_name(g, "o");
    Text extents, offsets;
    text_init(&extents, g->arena);
    text_init(&offsets, g->arena);
    for (unsigned d = 0; d < r->layout->rank; d++) {
        int64_t extent = choose_between(g->choices, 1, r->layout->shape[d] + 2);
        elements *= extent;
        text_printf(&extents, "%s%s", d ? ", " : "", gen_exact(g, extent));
        text_printf(&offsets, "%s%s", d ? ", " : "", gen_scalar_within(g, -2, extent).text);
    }
    text_printf(&g->views, "  %s = view_global %s : %s[%s]\n", name,
                gen_pointer(g, r->dtype, elements), dtype_name(r->dtype),
                text_string(&extents));
    emit_atomic(g, reg, (unsigned)choose(g->choices, ATOMIC_KINDS),
                arena_printf(g->arena, "%s[%s]", name, text_string(&offsets)));
}
