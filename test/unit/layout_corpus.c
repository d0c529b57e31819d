/* Every small layout and its function; see layout_corpus.h. */
#include "layout_corpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MAX_FACTORS = 32, MAX_ARGS = 16 };

Arena arena;
LayoutTable table;
Corpus corpora[2];
const char *why;

/* ---- maps ------------------------------------------------------------ */

Map *map_new(unsigned rank, int rows, int columns, int threads, int slots)
{
    Map *m = arena_new(&arena, Map);
    *m = (Map){rank, {rows, columns}, threads, slots, NULL};
    m->at = arena_array(&arena, int, (size_t)(threads * slots));
    return m;
}

int map_size(const Map *m)
{
    return m->threads * m->slots;
}

bool map_equal(const Map *a, const Map *b)
{
    return a->rank == b->rank && a->shape[0] == b->shape[0] && a->shape[1] == b->shape[1] &&
           a->threads == b->threads && a->slots == b->slots &&
           !memcmp(a->at, b->at, (size_t)map_size(a) * sizeof *a->at);
}

/* Appendix A, definitions 2 and 3, and their column-major counterparts. */
static Map *map_dense(unsigned rank, int rows, int columns, bool spatial, bool column)
{
    int size = rows * columns;
    Map *m = map_new(rank, rows, columns, spatial ? size : 1, spatial ? 1 : size);
    for (int i = 0; i < size; i++)
        m->at[i] = column ? i % rows * columns + i / rows : i;
    return m;
}

Map *map_product(const Map *f, const Map *g)
{
    Map *h = map_new(f->rank, f->shape[0] * g->shape[0], f->shape[1] * g->shape[1],
                     f->threads * g->threads, f->slots * g->slots);
    for (int t = 0; t < h->threads; t++)
        for (int i = 0; i < h->slots; i++) {
            int a = f->at[t / g->threads * f->slots + i / g->slots];
            int b = g->at[t % g->threads * g->slots + i % g->slots];
            int row = a / f->shape[1] * g->shape[0] + b / g->shape[1];
            int column = a % f->shape[1] * g->shape[1] + b % g->shape[1];
            h->at[t * h->slots + i] = row * h->shape[1] + column;
        }
    return h;
}

static int linear(const Layout *l, const int64_t *index)
{
    return (int)(l->rank == 1 ? index[0] : index[0] * l->shape[1] + index[1]);
}

void expect_map(const Layout *l, const Map *m)
{
    assert_int_equal(l->rank, m->rank);
    assert_int_equal(l->shape[0], m->shape[0]);
    if (l->rank == 2)
        assert_int_equal(l->shape[1], m->shape[1]);
    assert_int_equal(l->threads, m->threads);
    assert_int_equal(l->slots, m->slots);
    for (int t = 0; t < m->threads; t++)
        for (int i = 0; i < m->slots; i++) {
            int64_t index[LIMIT_RANK];
            layout_index(l, t, i, index);
            if (linear(l, index) != m->at[t * m->slots + i])
                fail_msg("thread %d, slot %d holds %d, expected %d", t, i, linear(l, index),
                         m->at[t * m->slots + i]);
        }
}

/* ---- reading the notation -------------------------------------------- */

typedef struct Reader {
    const char *at;
} Reader;

static bool eat(Reader *r, const char *token)
{
    while (*r->at == ' ')
        r->at++;
    if (strncmp(r->at, token, strlen(token)))
        return false;
    r->at += strlen(token);
    return true;
}

static void need(Reader *r, const char *token)
{
    if (!eat(r, token))
        fail_msg("expected \"%s\" at \"%s\"", token, r->at);
}

static unsigned read_numbers(Reader *r, const char *close, int64_t *numbers)
{
    unsigned n = 0;
    if (eat(r, close))
        return 0;
    do {
        char *end;
        assert_true(n < MAX_ARGS);
        numbers[n++] = strtoll(r->at, &end, 10);
        assert_ptr_not_equal(end, r->at);
        r->at = end;
    } while (eat(r, ","));
    need(r, close);
    return n;
}

static const Layout *read_general(Reader *r)
{
    static const char *const names[] = {"shape", "mode_shape", "spatial_modes",
                                        "local_modes"};
    int64_t numbers[4][MAX_ARGS];
    unsigned counts[4];
    for (int i = 0; i < 4; i++) {
        if (i)
            need(r, ",");
        need(r, names[i]);
        need(r, "=");
        need(r, "[");
        counts[i] = read_numbers(r, "]", numbers[i]);
    }
    need(r, ")");
    return layout_from_modes(&table, counts[0], numbers[0], counts[1], numbers[1], counts[2],
                             numbers[2], counts[3], numbers[3], &why);
}

typedef const Layout *(*Maker)(LayoutTable *, unsigned, const int64_t *, const char **);

static const struct {
    const char *name;
    Maker make;     /* NULL: replicate */
} primitives[] = {
    {"local(", layout_local},
    {"spatial(", layout_spatial},
    {"column_local(", layout_column_local},
    {"column_spatial(", layout_column_spatial},
    {"replicate(", NULL},
};

typedef struct Factor {
    Maker make;
    unsigned count;
    int64_t args[MAX_ARGS];
} Factor;

static void read_factor(Reader *r, Factor *f)
{
    for (size_t i = 0; i < sizeof primitives / sizeof *primitives; i++)
        if (eat(r, primitives[i].name)) {
            f->make = primitives[i].make;
            f->count = read_numbers(r, ")", f->args);
            return;
        }
    fail_msg("no layout at \"%s\"", r->at);
}

const Layout *read_layout(const char *text, unsigned *factors)
{
    Reader r = {text};
    Factor f[MAX_FACTORS];
    unsigned n = 0, rank = 0;
    if (factors)
        *factors = 0;
    if (eat(&r, "register_layout("))
        return read_general(&r);
    do {
        assert_true(n < MAX_FACTORS);
        read_factor(&r, &f[n++]);
        if (f[n - 1].make)
            rank = f[n - 1].count;
    } while (eat(&r, "."));
    assert_int_equal(*r.at, '\0');
    const Layout *l = NULL;
    for (unsigned i = 0; i < n; i++) {
        const Layout *g = f[i].make ? f[i].make(&table, f[i].count, f[i].args, &why)
                                    : layout_replicate(&table, rank, f[i].args[0], &why);
        l = i && g ? layout_product(&table, l, g, &why) : g;
        if (!l)
            return NULL;
    }
    if (factors)
        *factors = n;
    return l;
}

const char *text_of(const Layout *l)
{
    Text text;
    text_init(&text, &arena);
    layout_print(&text, l);
    return text_string(&text);
}

uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % n;
}

const Layout *random_primitive(uint64_t *seed, unsigned rank)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = random_below(seed, rank) ? 1 : 2 + (int64_t)random_below(seed, 3);
    Maker make = primitives[random_below(seed, 5)].make;
    return make ? make(&table, rank, shape, &why)
                : layout_replicate(&table, rank, shape[0], &why);
}

/* ---- the corpus ------------------------------------------------------ */

/* Adds a layout that was made to be the function `m`, if it is a new one. */
static void corpus_add(Corpus *c, const Layout *l, const Map *m, unsigned factors)
{
    assert_non_null(l);
    for (size_t i = 0; i < c->count; i++)
        if (c->entries[i].layout == l) {
            assert_true(map_equal(c->entries[i].map, m));
            return;
        }
    expect_map(l, m);
    arena_push(&arena, c->entries, c->count, c->capacity, ((Entry){l, m, factors}));
}

/* Returns true when the extents in use, 2, 3 and their products, contain `n`. */
static bool is_extent(int n)
{
    while (n % 2 == 0)
        n /= 2;
    while (n % 3 == 0)
        n /= 3;
    return n == 1;
}

static void add_dense(Corpus *c, unsigned rank, int rows, int columns)
{
    int64_t shape[] = {rows, columns};
    for (int kind = 0; kind < 4; kind++) {
        const Layout *l = primitives[kind].make(&table, rank, shape, &why);
        corpus_add(c, l, map_dense(rank, rows, columns, kind & 1, kind & 2),
                   rows * columns > 1);
    }
}

static void add_primitives(Corpus *c, unsigned rank)
{
    for (int rows = 1; rows <= SIZE; rows++)
        for (int columns = 1; columns <= (rank == 1 ? 1 : SIZE / rows); columns++)
            if (is_extent(rows) && is_extent(columns))
                add_dense(c, rank, rows, columns);
    for (int n = 2; n <= SIZE; n++)
        if (is_extent(n))
            corpus_add(c, layout_replicate(&table, rank, n, &why), map_new(rank, 1, 1, n, 1),
                       1);
}

/* Closes the corpus under the product, shorter products first. */
static void add_products(Corpus *c)
{
    size_t generators = c->count;
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = 0; j < generators; j++) {
            Entry f = c->entries[i], g = c->entries[j];
            if (map_size(f.map) * map_size(g.map) > SIZE)
                continue;
            corpus_add(c, layout_product(&table, f.layout, g.layout, &why),
                       map_product(f.map, g.map), f.factors + 1);
        }
    c->products = c->count;
}

/* A general form: the first `first` modes are of dimension 0; `order` gives
 * the modes to the `spatial` thread digits, then to the slots; the number
 * `count` in it stands for a replica of 2 threads. */
typedef struct General {
    unsigned rank, count, first, digits, spatial;
    int extents[5];
    int order[5];
} General;

static int general_entry(const General *g, unsigned i)
{
    return g->order[i] == (int)g->count ? -2 : g->order[i];
}

/* Paper, section 5: the values of digits from..to of `number`, by modes. */
static void unravel(const General *g, unsigned from, unsigned to, int number, int *values)
{
    for (unsigned i = to; i-- > from;) {
        int mode = g->order[i];
        values[mode] = number % g->extents[mode];
        number /= g->extents[mode];
    }
}

static int extent_of_digits(const General *g, unsigned from, unsigned to)
{
    int size = 1;
    for (unsigned i = from; i < to; i++)
        size *= g->extents[g->order[i]];
    return size;
}

static Map *map_general(const General *g)
{
    int shape[2] = {1, 1};
    for (unsigned m = 0; m < g->count; m++)
        shape[m >= g->first] *= g->extents[m];
    Map *map = map_new(g->rank, shape[0], shape[1], extent_of_digits(g, 0, g->spatial),
                       extent_of_digits(g, g->spatial, g->digits));
    for (int t = 0; t < map->threads; t++)
        for (int i = 0; i < map->slots; i++) {
            int values[5], index = 0;
            unravel(g, 0, g->spatial, t, values);
            unravel(g, g->spatial, g->digits, i, values);
            for (unsigned m = 0; m < g->count; m++)
                index = index * g->extents[m] + values[m];
            map->at[t * map->slots + i] = index;
        }
    return map;
}

static const Layout *make_general(const General *g, const Map *map)
{
    int64_t shape[] = {map->shape[0], map->shape[1]}, extents[5], entries[5];
    for (unsigned m = 0; m < g->count; m++)
        extents[m] = g->extents[m];
    for (unsigned i = 0; i < g->digits; i++)
        entries[i] = general_entry(g, i);
    return layout_from_modes(&table, g->rank, shape, g->count, extents, g->spatial, entries,
                             g->digits - g->spatial, entries + g->spatial, &why);
}

/* Adds the layouts of every cut into dimensions, threads and slots. */
static void add_cuts(Corpus *c, General g)
{
    for (g.spatial = 0; g.spatial <= g.digits; g.spatial++) {
        bool legal = true;
        for (unsigned i = g.spatial; i < g.digits; i++)
            legal &= general_entry(&g, i) >= 0;
        for (g.first = g.rank == 1 ? g.count : 0; legal && g.first <= g.count; g.first++) {
            ArenaMark mark = arena_mark(&arena);
            size_t before = c->count;
            uint32_t layouts = table.set.count;
            const Map *map = map_general(&g);
            corpus_add(c, make_general(&g, map), map, 0);
            if (c->count == before && table.set.count == layouts)
                arena_reset(&arena, mark);
        }
    }
}

static void add_orders(Corpus *c, General *g, unsigned placed)
{
    if (placed == g->digits) {
        add_cuts(c, *g);
        return;
    }
    for (unsigned i = placed; i < g->digits; i++) {
        General swapped = *g;
        swapped.order[placed] = g->order[i];
        swapped.order[i] = g->order[placed];
        add_orders(c, &swapped, placed + 1);
    }
}

/* Adds the general forms of modes with the extents `g` has, and 2s and 3s. */
static void add_general(Corpus *c, General g, int size)
{
    for (unsigned replicas = 0; replicas <= 1 && size << replicas <= SIZE; replicas++) {
        g.digits = g.count + replicas;
        g.extents[g.count] = 2;
        for (unsigned i = 0; i < g.digits; i++)
            g.order[i] = (int)i;
        add_orders(c, &g, 0);
    }
    for (int extent = 2; extent <= 3 && extent * size <= SIZE; extent++) {
        General more = g;
        more.extents[more.count++] = extent;
        add_general(c, more, size * extent);
    }
}

int build_corpora(void **state)
{
    (void)state;
    for (unsigned rank = 1; rank <= 2; rank++) {
        Corpus *c = &corpora[rank - 1];
        add_primitives(c, rank);
        add_products(c);
        add_general(c, (General){.rank = rank}, 1);
    }
    return 0;
}
