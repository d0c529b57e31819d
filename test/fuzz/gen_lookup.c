/* Look-ups of codes in tables, in registers and in shared memory. */
#include "gen.h"

static DType code_type(unsigned bits)
{
    static const DType types[] = {DTYPE_u1, DTYPE_u2, DTYPE_u3, DTYPE_u4,
                                  DTYPE_u5, DTYPE_u6, DTYPE_u7, DTYPE_u8};
    return types[bits - 1];
}

static DType entry_type(Gen *g, unsigned most)
{
    DType t;
    do
        t = gen_dtype(g);
    while (dtype_bits(t) < 8 || dtype_bits(t) > most);
    return t;
}

/* "lookup %v1, %v2", with a type or without. One that reads memory is not said again. */
static void define_lookup(Gen *g, const char *op, unsigned codes, const char *table,
                          DType entries, bool pure)
{
    const Layout *layout = g->regs[codes].layout;
    const char *text = arena_printf(g->arena, "%s %s, %s", op, gen_use(g, codes), table);
    if (choose(g->choices, 2))
        text = arena_printf(g->arena, "%s : %s", text, dtype_name(entries));
    gen_define(g, entries, layout, pure, text);
}

/* ---- in registers --------------------------------------------------------------- */

static void lookup_registers(Gen *g)
{
    static const uint8_t slots[] = {1, 2, 3, 4, 8, 16, 33};
    unsigned bits = (unsigned)choose_between(g->choices, 1, 4);
    int64_t entries = choose_between(g->choices, 1 << bits, 16), threads = gen_threads(g);
    DType t = entry_type(g, 16);
    const Layout *all = gen_primitive(g, GEN_REPLICATE, 1, &threads);
    const Layout *own = gen_primitive(g, GEN_LOCAL, 1, &entries);
    const char *why;
    unsigned rank = 1 + (unsigned)choose(g->choices, 2);
    const Layout *layout = gen_layout(g, rank, slots[choose(g->choices, sizeof slots)], true);
    unsigned codes = gen_value_of(g, code_type(bits), layout);
    unsigned table = gen_value_of(g, t, layout_product(&g->layouts, all, own, &why));
    define_lookup(g, "lookup", codes, gen_use(g, table), t, true);
}

/* ---- in shared memory ------------------------------------------------------------ */

/* Codes in whole groups, however layouts are chosen: theirs is written. */
static unsigned written_codes(Gen *g, DType t, const Layout *layout)
{
    Source s = gen_source(g, t, layout->rank, layout->shape);
    Text text;
    text_init(&text, g->arena);
    text_printf(&text, "load_global %s%s : %s[", s.place, gen_words(g, s.dims, 0),
                dtype_name(t));
    gen_numbers(&text, layout->rank, layout->shape);
    text_add(&text, "] @ ");
    layout_print(&text, layout);
    return gen_define(g, t, layout, true, text_string(&text));
}

/* The shape of a table for groups of codes, with `copies` of each row if that is not 0;
 * its rank. */
static unsigned table_shape(Gen *g, unsigned bits, unsigned group, int64_t copies,
                            int64_t *shape)
{
    unsigned rank = 0;
    for (unsigned i = 0; i < group; i++)
        shape[rank++] = (1 << bits) + choose_rarely(g->choices, 8);
    if (copies)
        shape[rank++] = copies;
    if (group > 1)
        shape[rank++] = group;
    return rank;
}

/* A shared tensor that holds a value, row-major or with gaps between its rows. */
static unsigned new_table(Gen *g, DType t, unsigned rank, const int64_t *shape)
{
    int64_t stride[LIMIT_RANK], next = 1;
    Object o = {.name = gen_name(g, "s"), .lead = "", .dtype = t, .rank = rank,
                .shared = true};
    Text extents, strides;
    text_init(&extents, g->arena);
    text_init(&strides, g->arena);
    for (unsigned d = rank; d-- > 0;) {
        o.shape[d] = shape[d];
        stride[d] = next;
        next = next * shape[d] + (int64_t)(choose_rarely(g->choices, 4) ? 2 : 0);
    }
    gen_numbers(&extents, rank, shape);
    gen_numbers(&strides, rank, stride);
    unsigned value = gen_value_of(g, t, gen_layout_of(g, rank, shape));
    gen_line(g, "%s = allocate_shared : %s[%s] shared strides(%s)", o.name, dtype_name(t),
             text_string(&extents), text_string(&strides));
    g->shared_bytes += next * dtype_bits(t) / 8 + 16;
    gen_order(g, gen_add_object(g, o), DIRTY_WRITE);
    gen_line(g, "store_shared %s, %s[%s]", gen_use(g, value), o.name, gen_zeros(g, rank));
    return g->object_count - 1;
}

/* Copies of a row may differ, and so would threads that share an element. */
static void lookup_shared(Gen *g)
{
    enum { ROWS_BITS_MOST = 8, SHARED_LIMIT_BYTES = 32 << 10 };
    /* The table's six dimensions, of a group of 4, leave room for a result's two more. */
    unsigned group = 1u << choose(g->choices, g->grid_rank == 1 ? 3 : 2);
    unsigned most = ROWS_BITS_MOST / group;
    unsigned bits = (unsigned)choose_between(g->choices, 1, most > 3 && group > 1 ? 3 : most);
    int64_t shape[LIMIT_RANK], copies = 0;
    DType t = entry_type(g, 32);
    if (g->shared_bytes > SHARED_LIMIT_BYTES)
        return;
    if (choose(g->choices, 2))
        copies = choose_between(g->choices, 1, group * bits > 6 ? 2 : 5);
    unsigned rank = table_shape(g, bits, group, copies, shape);
    unsigned table = new_table(g, t, rank, shape);
    int64_t slots = group * choose_between(g->choices, 1, 3);
    unsigned codes = written_codes(g, code_type(bits), gen_layout(g, 1, slots, !copies));
    Object *o = &g->objects[table];
    gen_order(g, o, DIRTY_READ);
    define_lookup(g, "lookup_shared", codes, o->name, t, false);
}

void gen_lookup(Gen *g)
{
    if (choose(g->choices, 2))
        lookup_registers(g);
    else
        lookup_shared(g);
}
