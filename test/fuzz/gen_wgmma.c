/* dot_async: matrices that threads store to shared memory in rows of 32, 64 or 128 bytes,
 * multiplied there or from registers, one product or a chain with some groups in flight. */
#include "gen.h"

enum { WARPS = 4, ROWS = 64 };      /* of a warpgroup, and of its sums */

typedef struct ProductTypes {
    DType a, b, c;
    unsigned bytes, base;       /* of an element of a and b; of swizzles: elements in 16 bytes */
} ProductTypes;

static const ProductTypes types[] = {
    {DTYPE_i8, DTYPE_i8, DTYPE_i32, 1, 4},   {DTYPE_i8, DTYPE_u8, DTYPE_i32, 1, 4},
    {DTYPE_u8, DTYPE_u8, DTYPE_i32, 1, 4},   {DTYPE_f16, DTYPE_f16, DTYPE_f32, 2, 3},
    {DTYPE_bf16, DTYPE_bf16, DTYPE_f32, 2, 3}, {DTYPE_f8e4m3, DTYPE_f8e5m2, DTYPE_f32, 1, 4},
};

typedef struct Operand {
    const char *name;           /* of the matrix as dot_async takes it */
    bool is_shared;
} Operand;

static ProductTypes choose_types(Gen *g)
{
    enum { COUNT = sizeof types / sizeof *types };
    ProductTypes t = types[choose(g->choices, COUNT)];
    while (g->options.exact && !dtype_is_integer(t.a))
        t = types[choose(g->choices, COUNT)];
    return t;
}

/* A shared matrix [rows, columns], a row a whole pattern wide, that holds a value. */
static const char *store_matrix(Gen *g, const ProductTypes *t, DType dtype, int64_t rows,
                                int64_t columns, unsigned bits)
{
    const int64_t shape[] = {rows, columns};
    unsigned value = gen_value_of(g, dtype, gen_layout_of(g, 2, shape));
    const char *name = gen_name(g, "s");
    gen_line(g, "%s = allocate_shared : %s[%lld, %lld] shared swizzle(%u, %u, 3)", name,
             dtype_name(dtype), (long long)rows, (long long)columns, bits, t->base);
    gen_line(g, "store_shared %s, %s[0, 0]", gen_use(g, value), name);
    g->shared_bytes += rows * columns * t->bytes;
    return name;
}

/* a, in shared memory or in registers. */
static Operand make_a(Gen *g, const ProductTypes *t, int64_t rows, int64_t columns, unsigned bits,
                      int64_t groups)
{
    if (choose(g->choices, 2))
        return (Operand){store_matrix(g, t, t->a, rows, columns, bits), true};
    int64_t steps = columns * t->bytes / 32;
    const Layout *l = gen_product(g, NULL, GEN_SPATIAL, groups, 1);
    l = gen_product(g, l, GEN_LOCAL, 1, steps);
    l = gen_product(g, l, GEN_SPATIAL, WARPS, 1);
    l = gen_product(g, l, GEN_COLUMN_LOCAL, 2, 2);
    l = gen_product(g, l, GEN_SPATIAL, 8, 4);
    l = gen_product(g, l, GEN_LOCAL, 1, 4 / t->bytes);
    return (Operand){gen_use(g, gen_value_of(g, t->a, l)), false};
}

static const Layout *sums_layout(Gen *g, int64_t groups, int64_t columns)
{
    const Layout *l = gen_product(g, NULL, GEN_SPATIAL, groups, 1);
    l = gen_product(g, l, GEN_LOCAL, 1, columns / 8);
    l = gen_product(g, l, GEN_SPATIAL, WARPS, 1);
    l = gen_product(g, l, GEN_LOCAL, 2, 1);
    l = gen_product(g, l, GEN_SPATIAL, 8, 4);
    return gen_product(g, l, GEN_LOCAL, 1, 2);
}

/* "{negate = true, commit = false}" or "". */
static const char *choose_words(Gen *g, const ProductTypes *t, bool last)
{
    bool negate = !dtype_is_integer(t->c) && choose_rarely(g->choices, 2);
    bool open = !last && choose(g->choices, 2);
    return negate && open ? " {negate = true, commit = false}"
           : negate       ? " {negate = true}"
           : open         ? " {commit = false}"
                          : "";
}

/* A chain of products of the same matrices; the name of its sums. */
static const char *multiply(Gen *g, const ProductTypes *t, const char *a, const char *b,
                            const Layout *l)
{
    unsigned count = 1 + choose_rarely(g->choices, 3);
    const char *type = gen_type_text(g, t->c, l), *sums = NULL;
    if (choose(g->choices, 2))
        sums = gen_use(g, gen_value_of(g, t->c, l));
    for (unsigned i = 0; i < count; i++) {
        const char *next = gen_name(g, "d"), *words = choose_words(g, t, i + 1 == count);
        if (sums)
            gen_line(g, "%s = dot_async %s, %s, %s%s", next, a, b, sums, words);
        else
            gen_line(g, "%s = dot_async %s, %s%s : %s pending", next, a, b, words, type);
        sums = next;
        if (choose_rarely(g->choices, 2)) {
            sums = gen_name(g, "d");
            gen_line(g, "%s = dot_wait %s {pending = 1}", sums, next);
        }
    }
    return sums;
}

void gen_wgmma(Gen *g)
{
    if (!g->options.wgmma || g->warps % WARPS || g->first_warp % WARPS ||
        g->shared_bytes > GEN_SHARED_LIMIT)
        return;
    ProductTypes t = choose_types(g);
    int64_t groups = g->warps / WARPS, columns = 8 * choose_between(g->choices, 1, 3);
    unsigned bits = 1 + choose_rarely(g->choices, 2);
    int64_t depth = (INT64_C(16) << bits) / t.bytes;
    bool along_n = t.bytes == 2 && choose_rarely(g->choices, 2);    /* b's rows are columns' */
    columns = along_n ? depth : columns;    /* a square: as many rows along k */
    Operand a = make_a(g, &t, ROWS * groups, depth, bits, groups);
    const char *b = store_matrix(g, &t, t.b, columns, depth, bits);
    gen_synchronize(g);
    const char *turned = along_n ? b : gen_name(g, "s");
    if (!along_n)
        gen_line(g, "%s = permute %s {dims = [1, 0]}", turned, b);
    const Layout *l = sums_layout(g, groups, columns);
    const char *sums = multiply(g, &t, a.name, turned, l);
    g->budget -= ROWS * groups * columns * depth / 8 * g->repeat;
    gen_define(g, t.c, l, false, arena_printf(g->arena, "dot_wait %s", sums));
    gen_synchronize(g);
}
