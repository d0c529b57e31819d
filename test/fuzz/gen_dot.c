/* dot: mostly in the fragments of tensor cores, sometimes of any type in any
 * layouts. */
#include "gen.h"

typedef struct DotTypes {
    DType a, b, c;
} DotTypes;

static const DotTypes mma_types[] = {
    {DTYPE_f16, DTYPE_f16, DTYPE_f32},       {DTYPE_f16, DTYPE_f16, DTYPE_f16},
    {DTYPE_bf16, DTYPE_bf16, DTYPE_f32},     {DTYPE_tf32, DTYPE_tf32, DTYPE_f32},
    {DTYPE_i8, DTYPE_u8, DTYPE_i32},         {DTYPE_u8, DTYPE_i8, DTYPE_i32},
    {DTYPE_i8, DTYPE_i8, DTYPE_i32},         {DTYPE_f8e4m3, DTYPE_f8e5m2, DTYPE_f32},
};

static void make_dot(Gen *g, DotTypes t, const Layout *a, const Layout *b, const Layout *c)
{
    unsigned ra = gen_value_of(g, t.a, a), rb = gen_value_of(g, t.b, b);
    unsigned rc = gen_value_of(g, t.c, c);
    g->budget -= c->shape[0] * c->shape[1] * a->shape[1] / 8 * g->repeat;
    gen_define(g, t.c, c, true, arena_printf(g->arena, "dot %s, %s, %s", gen_use(g, ra),
                                             gen_use(g, rb), gen_use(g, rc)));
}

static DotTypes choose_mma_types(Gen *g)
{
    enum { TYPES = sizeof mma_types / sizeof *mma_types };
    DotTypes t = mma_types[choose(g->choices, TYPES)];
    while (g->options.exact && !dtype_is_integer(t.a))
        t = mma_types[choose(g->choices, TYPES)];
    return t;
}

/* Warps stand side by side along m or along n; each has an atom or two along k. */
static void make_mma(Gen *g)
{
    DotTypes t = choose_mma_types(g);
    int64_t ratio = 32 / dtype_bits(t.a), w = g->warps, k = 1 + choose_rarely(g->choices, 3);
    bool rows = choose(g->choices, 2);
    int64_t m = rows ? w : 1, n = rows ? 1 : w;
    const Layout *a = gen_product(g, NULL, rows ? GEN_SPATIAL : GEN_REPLICATE, w, 1);
    const Layout *b = gen_product(g, NULL, rows ? GEN_REPLICATE : GEN_SPATIAL, rows ? w : 1,
                                  w);
    const Layout *c = gen_product(g, NULL, GEN_SPATIAL, m, n);
    a = gen_product(g, gen_product(g, a, GEN_LOCAL, 1, k), GEN_COLUMN_LOCAL, 2, 2);
    a = gen_product(g, gen_product(g, a, GEN_SPATIAL, 8, 4), GEN_LOCAL, 1, ratio);
    b = gen_product(g, gen_product(g, b, GEN_LOCAL, k, 1), GEN_LOCAL, 2, 1);
    b = gen_product(g, gen_product(g, b, GEN_COLUMN_SPATIAL, 4, 8), GEN_LOCAL, ratio, 1);
    c = gen_product(g, gen_product(g, c, GEN_LOCAL, 2, 1), GEN_SPATIAL, 8, 4);
    c = gen_product(g, c, GEN_LOCAL, 1, 2);
    make_dot(g, t, a, b, c);
}

static void make_free_dot(Gen *g)
{
    DType t = gen_dtype(g);
    int64_t m = choose_between(g->choices, 1, 8), n = choose_between(g->choices, 1, 8);
    int64_t k = choose_between(g->choices, 1, 8);
    if (g->options.exact && !dtype_is_integer(t))
        t = DTYPE_i32;
    else if (!gen_has_arithmetic(t))
        t = DTYPE_f32;
    const Layout *c = gen_layout_of(g, 2, (int64_t[]){m, n});
    const Layout *b = gen_layout_of(g, 2, (int64_t[]){k, n});
    const Layout *a = gen_layout_of(g, 2, (int64_t[]){m, k});
    make_dot(g, (DotTypes){t, t, t}, a, b, c);
}

void gen_dot(Gen *g)
{
    if (choose_rarely(g->choices, 4))
        make_free_dot(g);
    else
        make_mma(g);
}
