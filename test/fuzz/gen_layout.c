/* Element types and layouts. */
#include "gen.h"

#include <assert.h>

DType gen_dtype(Gen *g)
{
    static const DType common[] = {
        DTYPE_f32, DTYPE_f16, DTYPE_bf16, DTYPE_i32, DTYPE_u32, DTYPE_u8, DTYPE_i8, DTYPE_u4,
        DTYPE_i4, DTYPE_i6, DTYPE_i64, DTYPE_u16, DTYPE_f8e4m3, DTYPE_f6e3m2, DTYPE_u1,
        DTYPE_f64};
    if (choose(g->choices, 2))
        return (DType)choose_between(g->choices, DTYPE_none + 1, DTYPE_COUNT - 1);
    return common[choose(g->choices, sizeof common / sizeof *common)];
}

bool gen_has_arithmetic(DType t)
{
    return t != DTYPE_bool && t != DTYPE_ue8m0;
}

bool gen_has_free_nan(DType t)
{
    return dtype_has_nan(t) && dtype_bits(t) > 8;
}

const char *gen_type_text(Gen *g, DType dtype, const Layout *layout)
{
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s[", dtype_name(dtype));
    gen_numbers(&text, layout->rank, layout->shape);
    text_char(&text, ']');
    Text at;
    text_init(&at, g->arena);
    text_add(&at, " @ ");
    layout_print(&at, layout);
    text_add(&text, gen_either(g, text_string(&at), ""));
    return text_string(&text);
}

void gen_order_of_dims(Gen *g, unsigned rank, int64_t *order)
{
    for (unsigned d = 0; d < rank; d++) {
        unsigned place = (unsigned)choose(g->choices, d + 1);
        order[d] = order[place];
        order[place] = d;
    }
}

const Layout *gen_primitive(Gen *g, GenPrimitive kind, unsigned rank, const int64_t *shape)
{
    const char *why = NULL;
    const Layout *l = NULL;
    switch (kind) {
    case GEN_LOCAL: l = layout_local(&g->layouts, rank, shape, &why); break;
    case GEN_COLUMN_LOCAL: l = layout_column_local(&g->layouts, rank, shape, &why); break;
    case GEN_SPATIAL: l = layout_spatial(&g->layouts, rank, shape, &why); break;
    case GEN_COLUMN_SPATIAL: l = layout_column_spatial(&g->layouts, rank, shape, &why); break;
    case GEN_REPLICATE: l = layout_replicate(&g->layouts, rank, shape[0], &why); break;
    }
    assert(l && "a primitive of a legal size");
    return l;
}

static const Layout *multiply(Gen *g, const Layout *f, const Layout *h)
{
    const char *why = NULL;
    const Layout *l = f ? layout_product(&g->layouts, f, h, &why) : h;
    assert(l && "a product of a legal size");
    return l;
}

const Layout *gen_product(Gen *g, const Layout *f, GenPrimitive kind, int64_t a, int64_t b)
{
    return multiply(g, f, gen_primitive(g, kind, 2, (int64_t[]){a, b}));
}

/* A divisor of `n` from 2 on, or `n`, which is at least 1. */
static int64_t divisor(Gen *g, int64_t n)
{
    int64_t d = choose_between(g->choices, 1, n);
    while (n % d)
        d++;
    return d == 1 ? n : d;
}

/* Cuts `n` into `rank` factors. */
static void distribute(Gen *g, int64_t n, unsigned rank, int64_t *shape)
{
    for (unsigned d = 0; d < rank; d++)
        shape[d] = 1;
    for (int64_t p = 2; n > 1; p++)
        for (; n % p == 0; n /= p)
            shape[choose(g->choices, rank)] *= p;
}

const Layout *gen_layout(Gen *g, unsigned rank, int64_t slots, bool replicas)
{
    const Layout *l = NULL;
    int64_t threads = gen_threads(g), shape[LIMIT_RANK];
    while (threads > 1 || slots > 1) {
        bool spatial = slots == 1 || (threads > 1 && choose(g->choices, 2));
        int64_t *left = spatial ? &threads : &slots, part = divisor(g, *left);
        GenPrimitive kind = (spatial ? GEN_SPATIAL : GEN_LOCAL) + choose_rarely(g->choices, 4);
        *left /= part;
        distribute(g, part, rank, shape);
        if (spatial && replicas && choose_rarely(g->choices, 8)) {
            kind = GEN_REPLICATE;
            shape[0] = part;
        }
        l = multiply(g, l, gen_primitive(g, kind, rank, shape));
    }
    return l;
}

const Layout *gen_small_layout(Gen *g)
{
    int64_t slots = choose_between(g->choices, 1, 2);
    unsigned rank = 1 + (unsigned)choose(g->choices, 2);
    return gen_layout(g, rank, slots, true);
}

/* A part of `left` in each dimension, whose product divides `threads` when it
 * is not 0; takes it from both. */
static int64_t take_part(Gen *g, unsigned rank, int64_t *left, int64_t threads, int64_t *part)
{
    int64_t product = 1;
    for (unsigned d = 0; d < rank; d++) {
        part[d] = choose_rarely(g->choices, 4) ? 1 : divisor(g, left[d]);
        while (left[d] % part[d] || (threads && threads % (product * part[d])))
            part[d]--;
        product *= part[d];
        left[d] /= part[d];
    }
    return product;
}

static const Layout *try_layout_of(Gen *g, unsigned rank, const int64_t *shape)
{
    const Layout *l = NULL;
    int64_t left[LIMIT_RANK], part[LIMIT_RANK], threads = gen_threads(g);
    for (unsigned d = 0; d < rank; d++)
        left[d] = shape[d];
    for (unsigned i = 0; i < 5; i++) {
        bool spatial = choose(g->choices, 4);
        GenPrimitive kind = (spatial ? GEN_SPATIAL : GEN_LOCAL) + choose_rarely(g->choices, 4);
        int64_t product = take_part(g, rank, left, spatial ? threads : 0, part);
        threads /= spatial ? product : 1;
        l = multiply(g, l, gen_primitive(g, kind, rank, part));
    }
    if (threads > 1)
        l = multiply(g, l, gen_primitive(g, GEN_REPLICATE, rank, &threads));
    return multiply(g, l, gen_primitive(g, GEN_LOCAL, rank, left));
}

const Layout *gen_layout_of(Gen *g, unsigned rank, const int64_t *shape)
{
    enum { TRIES = 4, SLOTS = 16 };
    const Layout *l = try_layout_of(g, rank, shape), *other;
    for (unsigned i = 0; i < TRIES && l->slots > SLOTS; i++)
        if ((other = try_layout_of(g, rank, shape))->slots < l->slots)
            l = other;
    return l;
}
