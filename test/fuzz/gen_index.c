/* Accesses at rows or elements that a register tensor names. Stores and the results of
 * atomic ops must not depend on who is last: what is stored is one number. */
#include "gen.h"

#include "types/constant.h"

#include <string.h>

/* ---- indices ------------------------------------------------------------ */

static unsigned make_number(Gen *g, DType t, const Layout *l, int64_t number)
{
    return gen_define(g, t, l, true,
                      arena_printf(g->arena, "allocate_register %lld : %s", (long long)number,
                                   gen_type_text(g, t, l)));
}

/* Values of any size, or below `limit`, a power of two; 0: any. */
static const char *make_indices(Gen *g, const Layout *l, int64_t limit)
{
    static const DType types[] = {DTYPE_i32, DTYPE_u32, DTYPE_i64};
    DType t = types[choose(g->choices, 3)];
    unsigned any = gen_value_of(g, t, l);
    if (!limit)
        return gen_use(g, any);
    unsigned mask = make_number(g, t, l, limit - 1);
    const char *a = gen_use(g, any), *b = gen_use(g, mask);
    return gen_use(g, gen_define(g, t, l, true, arena_printf(g->arena, "and %s, %s", a, b)));
}

/* The greatest power of two that is at most `n`, from 1 on. */
static int64_t power_below(int64_t n)
{
    int64_t power = 1;
    while (power <= n / 2)
        power *= 2;
    return power;
}

/* Indices for a tile of layout `l` in a dimension of extent `extent`: often some outside. */
static const char *wild_indices(Gen *g, const Layout *l, int64_t extent)
{
    return make_indices(g, l, choose_rarely(g->choices, 4) ? 0 : power_below(2 * extent));
}

/* The layout of the indices of a tile of layout `l`: each dimension may have one. */
static const Layout *index_layout(Gen *g, const Layout *l)
{
    const char *why;
    uint32_t dims = (uint32_t)choose(g->choices, UINT64_C(1) << l->rank);
    const Layout *reduced = layout_reduce(&g->layouts, l, dims, &why);
    return reduced ? reduced : l;
}

/* ---- loads -------------------------------------------------------------- */

void gen_gather(Gen *g)
{
    unsigned rank = 1 + (unsigned)choose(g->choices, 2);
    DType t = gen_dtype(g);
    const Layout *l = gen_layout(g, rank, choose_between(g->choices, 1, 8), true);
    int64_t extent = 1;
    for (unsigned d = 0; d < rank; d++)
        extent = extent < l->shape[d] ? l->shape[d] : extent;
    const char *index = wild_indices(g, index_layout(g, l), extent);
    Source s = gen_source_at(g, t, rank, l->shape, index);
    const char *words = gen_words(g, s.dims, GEN_PREFETCH | GEN_EVICT);
    gen_define(g, t, l, true, arena_printf(g->arena, "load_global %s%s : %s", s.place, words,
                                           gen_type_text(g, t, l)));
}

const char *gen_copied_rows(Gen *g, unsigned rank, const int64_t *tile)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = choose(g->choices, 2) ? tile[d] : 1;
    return wild_indices(g, gen_layout_of(g, rank, shape), tile[0]);
}

/* ---- written memory ------------------------------------------------------ */

/* "[%b0, %v3, 0]": indices in one of the object's own dimensions, all inside if
 * `bounded`. */
static const char *indexed_place(Gen *g, const Object *o, const Layout *l, const int64_t *tile,
                                 bool bounded)
{
    unsigned at = (unsigned)choose(g->choices, o->rank);
    const Layout *of = index_layout(g, l);
    const char *index = bounded ? make_indices(g, of, power_below(o->shape[at]))
                                : wild_indices(g, of, o->shape[at]);
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s[%s", o->name, o->lead);
    for (unsigned d = 0; d < o->rank; d++) {
        int64_t last = o->shape[d] > tile[d] ? o->shape[d] - tile[d] : 0;
        text_printf(&text, "%s%s", d ? ", " : "",
                    d == at ? index : gen_scalar_within(g, 0, last).text);
    }
    text_char(&text, ']');
    return text_string(&text);
}

static unsigned make_one(Gen *g, DType t, const Layout *l)
{
    return make_number(g, t, l, constant_fits(t, constant_of_integer(1)) ? 1 : 0);
}

/* Ones, all over a result of their own. */
void gen_scatter(Gen *g)
{
    DType t = gen_dtype(g);
    if (g->depth || !gen_has_arithmetic(t))
        return;
    const Layout *l = gen_small_layout(g);
    unsigned one = make_one(g, t, l);
    Object o = gen_result(g, one);
    gen_line(g, "store_global %s, %s%s", gen_use(g, one),
             indexed_place(g, &o, l, l->shape, false), gen_words(g, "", GEN_EVICT));
    gen_spend(g, l);
}

/* An access of a shared tensor. */
void gen_index_shared(Gen *g)
{
    int64_t tile[LIMIT_RANK];
    Object *picked = gen_pick_object(g);
    if (!picked || !picked->shared || (picked->lead && *picked->lead))
        return;
    uint32_t number = (uint32_t)(picked - g->objects);
    bool store = choose(g->choices, 2) && gen_has_arithmetic(picked->dtype);
    gen_tile(g, picked, tile);
    Object o = *picked;
    const Layout *l = gen_layout_of(g, o.rank, tile);
    unsigned one = store ? make_one(g, o.dtype, l) : 0;
    const char *place = indexed_place(g, &o, l, tile, true);
    gen_order(g, &g->objects[number], store ? DIRTY_WRITE : DIRTY_READ);
    if (store) {
        gen_line(g, "store_shared %s, %s", gen_use(g, one), place);
        gen_spend(g, l);
    } else {
        gen_define(g, o.dtype, l, false, arena_printf(g->arena, "load_shared %s : %s", place,
                                                      gen_type_text(g, o.dtype, l)));
    }
}

/* ---- counters ------------------------------------------------------------ */

static const char *const counting_ops[] = {"atomic_add", "atomic_max", "atomic_min"};

static DType counted_type(Gen *g)
{
    return choose(g->choices, 2) ? DTYPE_i32 : DTYPE_u32;
}

/* A histogram in shared memory: cleared, counted, and read. */
static void count_shared(Gen *g)
{
    DType t = counted_type(g);
    uint32_t before = g->object_count;
    gen_new_shared(g, gen_value_of(g, t, gen_small_layout(g)));
    if (g->object_count == before)
        return;
    int64_t tile[LIMIT_RANK];
    Object o = g->objects[before];
    gen_tile(g, &o, tile);
    const Layout *l = gen_layout_of(g, o.rank, tile);
    unsigned reg = gen_value_of(g, t, l);
    const char *place = indexed_place(g, &o, l, tile, true);
    gen_order(g, &g->objects[before], DIRTY_WRITE);
    gen_line(g, "%s %s, %s", counting_ops[choose(g->choices, 3)], gen_use(g, reg), place);
    gen_spend(g, l);
}

/* Counters of all blocks. */
static void count_global(Gen *g)
{
    DType t = counted_type(g);
    const Layout *l = gen_small_layout(g);
    unsigned reg = gen_value_of(g, t, l);
    Object o = {.dtype = t, .rank = l->rank, .lead = "", .name = gen_name(g, "o")};
    int64_t elements = 1;
    Text extents;
    text_init(&extents, g->arena);
    for (unsigned d = 0; d < l->rank; d++) {
        o.shape[d] = choose_between(g->choices, 1, l->shape[d] + 2);
        elements *= o.shape[d];
        text_printf(&extents, "%s%s", d ? ", " : "", gen_exact(g, o.shape[d]));
    }
    text_printf(&g->views, "  %s = view_global %s : %s[%s]\n", o.name,
                gen_pointer(g, t, elements), dtype_name(t), text_string(&extents));
    const char *place = indexed_place(g, &o, l, l->shape, false);
    gen_line(g, "%s %s, %s", counting_ops[choose(g->choices, 3)], gen_use(g, reg), place);
    gen_spend(g, l);
}

void gen_histogram(Gen *g)
{
    if (choose(g->choices, 2))
        count_shared(g);
    else
        count_global(g);
}
