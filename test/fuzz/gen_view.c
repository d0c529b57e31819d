/* Global memory that nobody writes: arguments, and views of all kinds. */
#include "gen.h"

const char *gen_pointer(Gen *g, DType dtype, int64_t elements)
{
    return gen_pointer_aligned(g, dtype, elements, 1);
}

const char *gen_pointer_aligned(Gen *g, DType dtype, int64_t elements, unsigned least)
{
    const char *name = arena_printf(g->arena, "%%p%u", g->buffer_count);
    unsigned natural = dtype_align(dtype), align = natural << choose(g->choices, 6);
    align = align < least ? least : align;
    DType named = choose(g->choices, 4) ? dtype : DTYPE_u8;
    int64_t bytes = (elements * dtype_bits(dtype) + 7) / 8;
    Buffer buffer = {dtype, bytes + choose_rarely(g->choices, 4)};
    tilus_arg argument = {.pointer = g->buffer_count};
    text_printf(&g->arguments, "%s%s: ptr<%s>", g->arg_count ? ", " : "", name,
                dtype_name(named));
    if (align > natural || dtype_align(named) < natural)
        text_printf(&g->arguments, " {align = %u}", align < 256 ? align : 256);
    arena_push(g->arena, g->buffers, g->buffer_count, g->buffer_capacity, buffer);
    arena_push(g->arena, g->args, g->arg_count, g->arg_capacity, argument);
    return name;
}

/* Strides in any order of the dimensions, with gaps and repeated rows. */
static int64_t choose_strides(Gen *g, unsigned rank, const int64_t *shape, Text *text)
{
    int64_t strides[LIMIT_RANK], next = 1, last = 0;
    unsigned order[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++) {
        unsigned place = (unsigned)choose(g->choices, d + 1);
        order[d] = order[place];
        order[place] = d;
    }
    for (unsigned i = 0; i < rank; i++) {
        unsigned d = order[i];
        bool repeats = choose_rarely(g->choices, 10);
        strides[d] = repeats ? 0 : next;
        last += (shape[d] - 1) * strides[d];
        next = repeats ? next : next * shape[d] + (int64_t)choose(g->choices, 2) * 3;
    }
    text_add(text, " strides(");
    for (unsigned d = 0; d < rank; d++)
        text_printf(text, "%s%s", d ? ", " : "", gen_exact(g, strides[d]));
    text_char(text, ')');
    return last + 1;
}

static int64_t elements_of(unsigned rank, const int64_t *shape)
{
    int64_t elements = 1;
    for (unsigned d = 0; d < rank; d++)
        elements *= shape[d];
    return elements;
}

static const View *new_input(Gen *g, DType dtype, unsigned rank, const int64_t *shape)
{
    View v = {.dtype = dtype, .rank = rank};
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s[", dtype_name(dtype));
    for (unsigned d = 0; d < rank; d++) {
        v.shape[d] = choose_between(g->choices, (shape[d] + 1) / 2, shape[d] * 5 / 4 + 3);
        text_printf(&text, "%s%s", d ? ", " : "", gen_exact(g, v.shape[d]));
    }
    text_char(&text, ']');
    int64_t elements = choose(g->choices, 2) ? elements_of(rank, v.shape)
                                             : choose_strides(g, rank, v.shape, &text);
    v.name = arena_printf(g->arena, "%%g%u", g->input_count);
    text_printf(&g->views, "  %s = view_global %s : %s\n", v.name,
                gen_pointer(g, dtype, elements), text_string(&text));
    arena_push(g->arena, g->inputs, g->input_count, g->input_capacity, v);
    return &g->inputs[g->input_count - 1];
}

static const View *find_input(Gen *g, DType dtype, unsigned rank)
{
    uint32_t first = (uint32_t)choose(g->choices, g->input_count + 1);
    for (uint32_t i = 0; i < g->input_count; i++) {
        const View *v = &g->inputs[(first + i) % g->input_count];
        if (v->dtype == dtype && v->rank >= rank)
            return v;
    }
    return NULL;
}

/* Which dimensions of the view a tile of `rank` covers: all but one, if there
 * is one more. Returns that one, or the view's rank. */
static unsigned fixed_dim(Gen *g, const View *v, unsigned rank)
{
    return v->rank == rank ? rank : (unsigned)choose(g->choices, v->rank);
}

/* An offset: mostly inside, often across an end. */
static Scalar choose_offset(Gen *g, int64_t extent, int64_t tile)
{
    int64_t last = extent > tile ? extent - tile : 0;
    if (choose_rarely(g->choices, 3))
        return gen_scalar_within(g, -2, extent + 1);
    return gen_scalar_within(g, 0, last);
}

/* The dimensions in brackets; the tile covers all from `skip` on, where skip is
 * 0, and text may leave them out. */
static const char *covered_text(Gen *g, unsigned rank, unsigned skip)
{
    Text text;
    text_init(&text, g->arena);
    if (skip == 0 && choose(g->choices, 4))
        return "";
    text_char(&text, '[');
    for (unsigned d = 0, n = 0; d < rank; d++)
        if (d != skip)
            text_printf(&text, "%s%u", n++ ? ", " : "", d);
    text_char(&text, ']');
    return text_string(&text);
}

Source gen_source_at(Gen *g, DType dtype, unsigned rank, const int64_t *shape,
                     const char *index)
{
    const View *v = choose(g->choices, 3) ? find_input(g, dtype, rank) : NULL;
    if (!v || v->rank > rank + 1) {
        int64_t extents[LIMIT_RANK];
        unsigned extra = rank < 4 && choose_rarely(g->choices, 4);
        for (unsigned d = 0; d < rank + extra; d++)
            extents[d] = d < extra ? 3 : shape[d - extra];
        v = new_input(g, dtype, rank + extra, extents);
    }
    unsigned fixed = fixed_dim(g, v, rank);
    unsigned at = index ? (unsigned)choose(g->choices, v->rank) : v->rank;
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "%s[", v->name);
    for (unsigned d = 0, t = 0; d < v->rank; d++) {
        int64_t tile = d == fixed ? 1 : shape[t++];
        text_printf(&text, "%s%s", d ? ", " : "",
                    d == at ? index : choose_offset(g, v->shape[d], tile).text);
    }
    text_char(&text, ']');
    return (Source){text_string(&text),
                    v->rank == rank ? "" : covered_text(g, v->rank, fixed)};
}

Source gen_source(Gen *g, DType dtype, unsigned rank, const int64_t *shape)
{
    return gen_source_at(g, dtype, rank, shape, NULL);
}

/* ---- parts -------------------------------------------------------------- */

/* A name for a part of a view: a tile of it at an offset, or all but one of its
 * dimensions. */
static const char *slice_input(Gen *g, const View *from, View *to)
{
    Text offsets, extents;
    text_init(&offsets, g->arena);
    text_init(&extents, g->arena);
    unsigned drop = from->rank > 1 && choose(g->choices, 2);
    for (unsigned d = 0; d < from->rank; d++) {
        int64_t extent = d < drop ? 1 : choose_between(g->choices, 1, from->shape[d]);
        text_printf(&offsets, "%s%s", d ? ", " : "",
                    gen_scalar_within(g, 0, from->shape[d] - extent).text);
        if (d < drop)
            continue;
        text_printf(&extents, "%s%s", to->rank ? ", " : "", gen_exact(g, extent));
        to->shape[to->rank++] = extent;
    }
    return arena_printf(g->arena, "slice %s[%s] : %s[%s]", from->name, text_string(&offsets),
                        dtype_name(from->dtype), text_string(&extents));
}

static const char *permute_input(Gen *g, const View *from, View *to)
{
    int64_t order[LIMIT_RANK];
    Text text;
    text_init(&text, g->arena);
    gen_order_of_dims(g, from->rank, order);
    to->rank = from->rank;
    for (unsigned d = 0; d < from->rank; d++)
        to->shape[d] = from->shape[order[d]];
    gen_numbers(&text, from->rank, order);
    return arena_printf(g->arena, "permute %s {dims = [%s]}", from->name, text_string(&text));
}

/* Stands among the views, where only arguments and block indices are known. */
void gen_part_of_input(Gen *g)
{
    if (!g->input_count)
        return;
    const View from = g->inputs[choose(g->choices, g->input_count)];
    uint32_t scalars = g->scalar_count;
    g->scalar_count = g->argument_scalars + g->grid_rank;
    View v = {.dtype = from.dtype};
    const char *op = choose(g->choices, 2) ? slice_input(g, &from, &v)
                                           : permute_input(g, &from, &v);
    g->scalar_count = scalars;
    v.name = arena_printf(g->arena, "%%g%u", g->input_count);
    text_printf(&g->views, "  %s = %s\n", v.name, op);
    arena_push(g->arena, g->inputs, g->input_count, g->input_capacity, v);
}

/* ---- attributes --------------------------------------------------------- */

const char *gen_hint(Gen *g, unsigned hints)
{
    static const char *const words[] = {"first", "last", "normal"};
    if (hints & GEN_PREFETCH && choose_rarely(g->choices, 8))
        return arena_printf(g->arena, "prefetch = %u", 64u << choose(g->choices, 3));
    if (hints & GEN_EVICT && choose_rarely(g->choices, 8))
        return arena_printf(g->arena, "evict = %s", words[choose(g->choices, 3)]);
    return "";
}

const char *gen_words(Gen *g, const char *dims, unsigned hints)
{
    const char *hint = gen_hint(g, hints);
    if (!*dims && !*hint)
        return "";
    return arena_printf(g->arena, " {%s%s%s%s}", *dims ? "dims = " : "", dims,
                        *dims && *hint ? ", " : "", hint);
}
