/* Tensors that the program writes. A result belongs to one store: each block has a part
 * of its own, in bytes, so blocks never conflict. A shared tensor is written as a
 * whole before it is read. Barriers are placed by what was accessed since the
 * last one, over all paths. */
#include "gen.h"

#include <string.h>

/* ---- order -------------------------------------------------------------- */

bool gen_drops(Gen *g)
{
    bool drops = g->options.races && choose_rarely(g->choices, g->drops_one_in);
    g->out->may_race |= drops;
    return drops;
}

void gen_synchronize(Gen *g)
{
    if (!gen_drops(g))
        gen_line(g, "synchronize");
    for (uint32_t i = 0; i < g->object_count; i++)
        g->objects[i].dirty = 0;
}

void gen_order(Gen *g, Object *o, unsigned access)
{
    o = gen_base(g, o);
    if (o->pending)
        gen_wait(g, o);
    bool harmless = !o->dirty || (access != DIRTY_WRITE && o->dirty == access);
    if (!harmless)
        gen_synchronize(g);
    o->dirty |= access;
}

/* ---- results ------------------------------------------------------------ */

/* The text of a view and where this block's part of it begins. */
typedef struct Result {
    Text extents, strides, lead;
    int64_t elements;
} Result;

/* Dimensions of blocks stand before those of `inner` elements, each a whole
 * number of bytes. Innermost first, so strides are collected in an array. */
static void add_block_dims(Gen *g, Result *r, int64_t inner, unsigned bits)
{
    int64_t strides[3], part = inner;
    while (part * bits % 8)
        part++;
    for (unsigned d = g->grid_rank; d-- > 0;) {
        strides[d] = part;
        part *= g->grid[d];
    }
    for (unsigned d = 0; d < g->grid_rank; d++) {
        text_printf(&r->extents, "%s, ", gen_extent(g, g->grid[d]));
        text_printf(&r->strides, "%s, ", gen_extent(g, strides[d]));
        text_printf(&r->lead, "%%b%u, ", d);
    }
    r->elements = part;
}

/* Gives each iteration of a loop a place of its own, at times. */
static int64_t add_loop_dim(Gen *g, Result *r, Text *strides, int64_t inner)
{
    const Scalar *i = g->loop ? &g->scalars[g->loop - 1] : NULL;
    if (!i || i->min < 0 || i->max > 7 || !choose(g->choices, 3))
        return inner;
    text_printf(&r->extents, "%lld, ", (long long)i->max + 1);
    text_printf(&r->lead, "%s, ", i->text);
    text_printf(strides, "%lld, ", (long long)inner);
    return inner * (i->max + 1);
}

/* The extents of this block's part: those of the tile, or a little off. */
static int64_t choose_part(Gen *g, Object *o, Text *extents, Text *strides)
{
    int64_t elements = 1, stride[LIMIT_RANK];
    for (unsigned d = o->rank; d-- > 0;) {
        if (choose_rarely(g->choices, 3))
            o->shape[d] = choose_between(g->choices, (o->shape[d] + 1) / 2, o->shape[d] + 2);
        stride[d] = elements;
        elements *= o->shape[d];
    }
    for (unsigned d = 0; d < o->rank; d++) {
        text_printf(extents, "%s%s", d ? ", " : "", gen_extent(g, o->shape[d]));
        text_printf(strides, "%s%lld", d ? ", " : "", (long long)stride[d]);
    }
    return elements;
}

static void result_init(Gen *g, Result *r)
{
    text_init(&r->extents, g->arena);
    text_init(&r->strides, g->arena);
    text_init(&r->lead, g->arena);
    r->elements = 0;
}

/* A view for tiles of `o`'s type and shape, one for each block. */
static void new_result(Gen *g, Object *o)
{
    Result r;
    Text loop, extents, strides;
    result_init(g, &r);
    text_init(&loop, g->arena);
    text_init(&extents, g->arena);
    text_init(&strides, g->arena);
    int64_t inner = choose_part(g, o, &extents, &strides);
    Result inner_loop;
    result_init(g, &inner_loop);
    inner = add_loop_dim(g, &inner_loop, &loop, inner);
    add_block_dims(g, &r, inner, dtype_bits(o->dtype));
    o->name = gen_name(g, "o");
    o->lead = arena_printf(g->arena, "%s%s", text_string(&r.lead),
                           text_string(&inner_loop.lead));
    text_printf(&g->views, "  %s = view_global %s : %s[%s%s%s] strides(%s%s%s)\n", o->name,
                gen_pointer(g, o->dtype, r.elements), dtype_name(o->dtype),
                text_string(&r.extents), text_string(&inner_loop.extents),
                text_string(&extents), text_string(&r.strides), text_string(&loop),
                text_string(&strides));
}

/* Blocks cut a matrix into tiles; its last tiles may reach beyond the ends. */
static void new_tiled_result(Gen *g, Object *o)
{
    Text extents, lead;
    int64_t elements = 1;
    text_init(&extents, g->arena);
    text_init(&lead, g->arena);
    for (unsigned d = 0; d < o->rank; d++) {
        int64_t tiles = d < g->grid_rank ? g->grid[d] : 1, tile = o->shape[d];
        int64_t extent = choose_rarely(g->choices, 3)
                             ? tiles * tile
                             : choose_between(g->choices, tiles * tile - tile + 1,
                                              tiles * tile + 2);
        elements *= extent;
        text_printf(&extents, "%s%s", d ? ", " : "", gen_extent(g, extent));
        if (d < g->grid_rank)
            text_printf(&lead, "%s%%b%u * %lld", d ? ", " : "", d, (long long)tile);
        else
            text_add(&lead, ", 0");
    }
    o->name = gen_name(g, "o");
    o->lead = text_string(&lead);
    text_printf(&g->views, "  %s = view_global %s : %s[%s]\n", o->name,
                gen_pointer(g, o->dtype, elements), dtype_name(o->dtype),
                text_string(&extents));
}

static Object object_for(Gen *g, unsigned reg)
{
    const Reg *r = &g->regs[reg];
    Object o = {.dtype = r->dtype, .rank = r->layout->rank, .lead = ""};
    memcpy(o.shape, r->layout->shape, sizeof o.shape);
    return o;
}

Object gen_result(Gen *g, unsigned reg)
{
    Object o = object_for(g, reg);
    new_result(g, &o);
    return o;
}

Object *gen_add_object(Gen *g, Object o)
{
    o.base = g->object_count;
    arena_push(g->arena, g->objects, g->object_count, g->object_capacity, o);
    return &g->objects[g->object_count - 1];
}

const char *gen_zeros(Gen *g, unsigned rank)
{
    Text text;
    text_init(&text, g->arena);
    for (unsigned d = 0; d < rank; d++)
        text_add(&text, d ? ", 0" : "0");
    return text_string(&text);
}

/* Stores to `place`, or exchanges, which may tell what was there: each place has one
 * element. */
static void store_result(Gen *g, unsigned reg, const char *place)
{
    const Reg r = g->regs[reg];
    bool is_word = r.dtype == DTYPE_i32 || r.dtype == DTYPE_u32;
    if (is_word && choose_rarely(g->choices, 4)) {
        unsigned compared = gen_value_of(g, r.dtype, r.layout);
        gen_define(g, r.dtype, r.layout, false,
                   arena_printf(g->arena, "atomic_cas %s, %s, %s", gen_use(g, compared),
                                gen_use(g, reg), place));
    } else if ((is_word || r.dtype == DTYPE_f32) && choose_rarely(g->choices, 4)) {
        gen_line(g, "atomic_exch %s, %s", gen_use(g, reg), place);
    } else {
        gen_line(g, "store_global %s, %s%s", gen_use(g, reg), place,
                 gen_words(g, "", GEN_EVICT));
    }
}

void gen_store_result(Gen *g, unsigned reg)
{
    Object o = object_for(g, reg);
    bool tiled = dtype_bits(o.dtype) % 8 == 0 && o.rank >= g->grid_rank &&
                 choose_rarely(g->choices, 3);
    gen_spend(g, g->regs[reg].layout);
    if (tiled) {
        new_tiled_result(g, &o);
        store_result(g, reg, arena_printf(g->arena, "%s[%s]", o.name, o.lead));
        o.rank = 0;     /* not read again */
    } else {
        new_result(g, &o);
        store_result(g, reg, arena_printf(g->arena, "%s[%s%s]", o.name, o.lead,
                                          gen_zeros(g, o.rank)));
    }
    o.dirty = DIRTY_WRITE;
    gen_add_object(g, o);
}

/* ---- shared tensors ----------------------------------------------------- */

/* Strides with gaps, or columns first; the number of elements spanned. */
static int64_t shared_strides(Gen *g, unsigned rank, const int64_t *shape, Text *text)
{
    int64_t stride[LIMIT_RANK], next = 1;
    bool columns = choose(g->choices, 2);
    for (unsigned i = 0; i < rank; i++) {
        unsigned d = columns ? i : rank - 1 - i;
        stride[d] = next;
        next = next * shape[d] + (int64_t)choose(g->choices, 3) * 4;
    }
    int64_t last = 0;
    for (unsigned d = 0; d < rank; d++)
        last += (shape[d] - 1) * stride[d];
    text_add(text, " strides(");
    gen_numbers(text, rank, stride);
    text_char(text, ')');
    return last + 1;
}

static void shared_swizzle(Gen *g, int64_t elements, Text *text)
{
    int64_t bits = choose_between(g->choices, 1, 3), base = choose_between(g->choices, 0, 3);
    int64_t shift = bits + (int64_t)choose(g->choices, 3);
    const char *given = "";
    if (elements % (INT64_C(1) << (bits + base)) == 0)
        given = arena_printf(g->arena, " swizzle(%d, %d, %d)", (int)bits, (int)base,
                             (int)shift);
    text_add(text, gen_either(g, given, " swizzle(auto)"));
}

unsigned gen_allocate_shared(Gen *g, DType dtype, unsigned rank, const int64_t *shape)
{
    Object o = {.dtype = dtype, .rank = rank, .lead = "", .shared = true};
    int64_t elements = 1;
    Text text;
    text_init(&text, g->arena);
    for (unsigned d = 0; d < rank; d++) {
        o.shape[d] = shape[d];
        elements *= shape[d];
    }
    if (choose_rarely(g->choices, 3))
        elements = shared_strides(g, rank, shape, &text);
    if (choose_rarely(g->choices, 3))
        shared_swizzle(g, elements, &text);
    o.name = gen_name(g, "s");
    g->shared_bytes += elements * dtype_bits(dtype) / 8 + 16;
    Text extents;
    text_init(&extents, g->arena);
    gen_numbers(&extents, rank, shape);
    gen_line(g, "%s = allocate_shared : %s[%s] shared%s", o.name, dtype_name(dtype),
             text_string(&extents), text_string(&text));
    gen_add_object(g, o);
    return g->object_count - 1;
}

/* Makes one tensor for the value, or a ring of several tiles. */
void gen_new_shared(Gen *g, unsigned reg)
{
    Object like = object_for(g, reg);
    int64_t shape[LIMIT_RANK], tiles = choose_between(g->choices, 1, 3);
    unsigned extra = like.rank < 4 && choose_rarely(g->choices, 3);
    if (g->shared_bytes > GEN_SHARED_LIMIT)
        return;
    for (unsigned d = 0; d < like.rank + extra; d++)
        shape[d] = d < extra ? tiles : like.shape[d - extra];
    unsigned object = gen_allocate_shared(g, like.dtype, like.rank + extra, shape);
    for (int64_t i = 0; i < (extra ? tiles : 1); i++) {
        Object *o = &g->objects[object];
        gen_order(g, o, DIRTY_WRITE);
        gen_spend(g, g->regs[reg].layout);
        const char *lead = extra ? arena_printf(g->arena, "%lld, ", (long long)i) : "";
        gen_line(g, "store_shared %s, %s[%s%s]", gen_use(g, reg), o->name, lead,
                 gen_zeros(g, like.rank));
    }
}

/* ---- accesses ----------------------------------------------------------- */

const char *gen_offsets(Gen *g, const Object *o, const int64_t *tile)
{
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "[%s", o->lead);
    for (unsigned d = 0; d < o->rank; d++) {
        int64_t last = o->shape[d] > tile[d] ? o->shape[d] - tile[d] : 0;
        text_printf(&text, "%s%s", d ? ", " : "", gen_scalar_within(g, 0, last).text);
    }
    text_char(&text, ']');
    return text_string(&text);
}

Object *gen_pick_object(Gen *g)
{
    uint32_t first = (uint32_t)choose(g->choices, g->object_count + 1);
    for (uint32_t i = 0; i < g->object_count; i++) {
        Object *o = &g->objects[(first + i) % g->object_count];
        if (o->rank && !gen_base(g, o)->hidden && (o->shared || choose_rarely(g->choices, 3)))
            return o;
    }
    return NULL;
}

/* A tile of the object: all of it, or a divisor in each dimension. */
void gen_tile(Gen *g, const Object *o, int64_t *tile)
{
    for (unsigned d = 0; d < o->rank; d++) {
        tile[d] = choose(g->choices, 2) ? o->shape[d]
                                        : choose_between(g->choices, 1, o->shape[d]);
        while (o->shape[d] % tile[d])
            tile[d]--;
    }
}

/* The object's dimensions behind its leading ones, and hints for the cache. */
static const char *object_words(Gen *g, const Object *o, unsigned hints)
{
    hints = o->shared ? 0 : hints;
    Text text;
    unsigned lead = 0;
    text_init(&text, g->arena);
    for (const char *c = o->lead; *c; c++)
        lead += *c == ',';
    if (choose(g->choices, 3))
        return gen_words(g, "", hints);
    for (unsigned d = 0; d < o->rank; d++)
        text_printf(&text, "%s%u", d ? ", " : "[", lead + d);
    text_char(&text, ']');
    return gen_words(g, text_string(&text), hints);
}

void gen_load_object(Gen *g)
{
    int64_t tile[LIMIT_RANK];
    Object *o = gen_pick_object(g);
    if (!o)
        return;
    gen_tile(g, o, tile);
    const Layout *l = gen_layout_of(g, o->rank, tile);
    gen_order(g, o, DIRTY_READ);
    const char *type = gen_type_text(g, o->dtype, l);
    const char *words = object_words(g, o, GEN_PREFETCH | GEN_EVICT);
    const char *op = arena_printf(g->arena, "load_%s %s%s%s : %s",
                                  o->shared ? "shared" : "global", o->name,
                                  gen_offsets(g, o, tile), words, type);
    gen_define(g, o->dtype, l, false, op);
}

/* A value is stored over a part of a shared tensor or a result. */
void gen_store_object(Gen *g)
{
    Object *o = gen_pick_object(g);
    int64_t tile[LIMIT_RANK];
    if (!o)
        return;
    gen_tile(g, o, tile);
    unsigned reg = gen_value_of(g, o->dtype, gen_layout_of(g, o->rank, tile));
    gen_order(g, o, DIRTY_WRITE);
    gen_spend(g, g->regs[reg].layout);
    const char *words = object_words(g, o, GEN_EVICT);
    gen_line(g, "store_%s %s, %s%s%s", o->shared ? "shared" : "global", gen_use(g, reg),
             o->name, gen_offsets(g, o, tile), words);
}

/* Another name for a part of an object, or for it with its dimensions in another
 * order. */
void gen_alias(Gen *g)
{
    const Object *from = gen_pick_object(g);
    if (!from || !from->shared)
        return;
    Object o = *from;
    bool slices = choose(g->choices, 2);
    int64_t order[LIMIT_RANK];
    Text text;
    text_init(&text, g->arena);
    o.name = gen_name(g, "s");
    if (slices) {
        gen_tile(g, from, o.shape);
        gen_numbers(&text, o.rank, o.shape);
        gen_line(g, "%s = slice %s%s : %s[%s]", o.name, from->name,
                 gen_offsets(g, from, o.shape), dtype_name(o.dtype), text_string(&text));
    } else {
        gen_order_of_dims(g, o.rank, order);
        for (unsigned d = 0; d < o.rank; d++)
            o.shape[d] = from->shape[order[d]];
        gen_numbers(&text, o.rank, order);
        gen_line(g, "%s = permute %s {dims = [%s]}", o.name, from->name, text_string(&text));
    }
    o.dirty = 0;
    o.pending = false;
    arena_push(g->arena, g->objects, g->object_count, g->object_capacity, o);
}

/* Prints a number, a value, or a tile of a tensor. What a part of the block prints comes
 * before or after what others do, as a machine chooses; so with the blocks of a cluster or
 * a cooperative program, on the interpreter as barriers that passes drop have it. */
void gen_print(Gen *g)
{
    if (g->cluster_blocks > 1 || g->cooperative || (g->options.exact && g->warps != g->block_warps))
        return;
    const char *blocks = choose(g->choices, 2) ? " {blocks = all}" : "";
    Object *o = gen_pick_object(g);
    switch (choose(g->choices, 3)) {
    case 0:
        gen_line(g, "print \"number\", %s%s",
                 g->float_name && choose_rarely(g->choices, 3) ? g->float_name
                                                               : gen_scalar(g, 2).text, blocks);
        return;
    case 1:
        gen_line(g, "print \"value\", %s%s", gen_use(g, gen_pick(g)), blocks);
        return;
    default:
        break;
    }
    if (!o || !o->shared)
        return;
    gen_order(g, o, DIRTY_READ);
    gen_line(g, "print \"shared\", %s%s", o->name, blocks);
}
