/* dot: mostly in the pieces of tensor cores' fragments, sometimes of any type in any
 * layouts. */
#include "gen.h"

#include <assert.h>

typedef struct DotTypes {
    DType a, b, c;
} DotTypes;

static const DotTypes mma_types[] = {
    {DTYPE_f16, DTYPE_f16, DTYPE_f32},       {DTYPE_f16, DTYPE_f16, DTYPE_f16},
    {DTYPE_bf16, DTYPE_bf16, DTYPE_f32},     {DTYPE_tf32, DTYPE_tf32, DTYPE_f32},
    {DTYPE_i8, DTYPE_u8, DTYPE_i32},         {DTYPE_u8, DTYPE_i8, DTYPE_i32},
    {DTYPE_i8, DTYPE_i8, DTYPE_i32},         {DTYPE_f8e4m3, DTYPE_f8e5m2, DTYPE_f32},
};

/* The layout of a batch over `warps` warps, and over slots inside or outside. */
static const Layout *batch_layout(Gen *g, int64_t warps)
{
    int64_t slots = 1 + choose_rarely(g->choices, 2);
    const char *why = NULL;
    const Layout *over = gen_primitive(g, GEN_SPATIAL, 1, &warps);
    const Layout *in = gen_primitive(g, GEN_LOCAL, 1, &slots);
    const Layout *l = choose(g->choices, 2) ? layout_product(&g->layouts, over, in, &why)
                                            : layout_product(&g->layouts, in, over, &why);
    assert(l && "at most two matrices a warp");
    return l;
}

/* `l` for each matrix of a batch; `batch` is NULL where there is one without. */
static const Layout *of_batch(Gen *g, const Layout *batch, const Layout *l)
{
    const char *why = NULL;
    const Layout *all = batch ? layout_concat(&g->layouts, batch, l, &why) : l;
    assert(all && "a few fragments a warp");
    return all;
}

static void make_dot(Gen *g, DotTypes t, const Layout *a, const Layout *b, const Layout *c)
{
    unsigned ra = gen_value_of(g, t.a, a), rb = gen_value_of(g, t.b, b);
    unsigned rc = gen_value_of(g, t.c, c);
    int64_t products = a->shape[a->rank - 1];
    for (unsigned d = 0; d < c->rank; d++)
        products *= c->shape[d];
    g->budget -= products / 8 * g->repeat;
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

/* Slots over pieces, row after row or column after column, in front of a piece. */
static const Layout *with_pieces(Gen *g, const Layout *warps, int64_t rows, int64_t columns)
{
    GenPrimitive order = choose(g->choices, 2) ? GEN_LOCAL : GEN_COLUMN_LOCAL;
    return gen_product(g, warps, order, rows, columns);
}

/* Pieces along k: 16-bit types may have an odd number. */
static int64_t choose_depth(Gen *g, DotTypes t)
{
    int64_t pieces = 2 + 2 * choose_rarely(g->choices, 3);
    return pieces - (dtype_bits(t.a) == 16 && choose_rarely(g->choices, 3));
}

/* Warps stand side by side along a batch, or along m or n; each has a fragment of c or
 * two, and as many steps along k. */
static void make_mma(Gen *g)
{
    DotTypes t = choose_mma_types(g);
    int64_t ratio = 32 / dtype_bits(t.a), w = g->warps, k = choose_depth(g, t);
    int64_t units = 1 + choose_rarely(g->choices, 3);
    const Layout *batch = NULL;
    if (choose_rarely(g->choices, 2)) {
        int64_t along = choose(g->choices, 2) ? w : 1;
        batch = batch_layout(g, along);
        w /= along;
    }
    bool rows = choose(g->choices, 2);
    int64_t m = rows ? w : 1, n = rows ? 1 : w;
    const Layout *a = gen_product(g, NULL, rows ? GEN_SPATIAL : GEN_REPLICATE, w, 1);
    const Layout *b = gen_product(g, NULL, rows ? GEN_REPLICATE : GEN_SPATIAL, rows ? w : 1,
                                  w);
    const Layout *c = gen_product(g, NULL, GEN_SPATIAL, m, n);
    a = gen_product(g, with_pieces(g, a, 2, k), GEN_SPATIAL, 8, 4);
    a = gen_product(g, a, GEN_LOCAL, 1, ratio);
    b = gen_product(g, with_pieces(g, b, k, units), GEN_COLUMN_SPATIAL, 4, 8);
    b = gen_product(g, b, GEN_LOCAL, ratio, 1);
    c = gen_product(g, with_pieces(g, c, 2, units), GEN_SPATIAL, 8, 4);
    c = gen_product(g, c, GEN_LOCAL, 1, 2);
    make_dot(g, t, of_batch(g, batch, a), of_batch(g, batch, b), of_batch(g, batch, c));
}

static void make_free_dot(Gen *g)
{
    DType t = gen_dtype(g);
    int64_t m = choose_between(g->choices, 1, 8), n = choose_between(g->choices, 1, 8);
    int64_t k = choose_between(g->choices, 1, 8), count = choose_between(g->choices, 1, 4);
    unsigned rank = 2 + choose_rarely(g->choices, 2);
    if (g->options.exact && !dtype_is_integer(t))
        t = DTYPE_i32;
    else if (!gen_has_arithmetic(t))
        t = DTYPE_f32;
    const Layout *c = gen_layout_of(g, rank, (int64_t[]){count, m, n} + 3 - rank);
    const Layout *b = gen_layout_of(g, rank, (int64_t[]){count, k, n} + 3 - rank);
    const Layout *a = gen_layout_of(g, rank, (int64_t[]){count, m, k} + 3 - rank);
    make_dot(g, (DotTypes){t, t, t}, a, b, c);
}

void gen_dot(Gen *g)
{
    if (choose_rarely(g->choices, 4))
        make_free_dot(g);
    else
        make_mma(g);
}
