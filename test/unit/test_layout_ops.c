/* Operations on layouts by brute force: what each must be is computed point by
 * point from the operand's function, over the whole corpus, and an operation
 * refuses exactly where no layout is that function. */
#include "layout_corpus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { RANDOM_CASES = 2000, DIVIDEND_SIZE = 12 };

/* The corpus' layout that is the function `m`, or NULL. */
static const Layout *find_map(const Map *m)
{
    const Corpus *c = &corpora[m->rank - 1];
    for (size_t i = 0; i < c->count; i++)
        if (map_equal(c->entries[i].map, m))
            return c->entries[i].layout;
    return NULL;
}

static int at(const Map *m, int thread, int slot)
{
    return m->at[thread * m->slots + slot];
}

/* The result of an operation is the function `expected` (NULL: there is none);
 * it is a refusal only where the corpus has no layout of that function. */
static void expect_result(const char *op, const Layout *operand, const Layout *result,
                          const Map *expected)
{
    const Layout *wanted = expected ? find_map(expected) : NULL;
    if ((result && !expected) || (!result && wanted))
        fail_msg("%s of %s is %s, expected %s", op, text_of(operand),
                 result ? text_of(result) : why, wanted ? text_of(wanted) : "a refusal");
    if (result)
        expect_map(result, expected);
}

/* ---- left division ----------------------------------------------------- */

/* The G with h = f.G as functions, or NULL. */
static Map *map_divide_left(const Map *h, const Map *f)
{
    if (h->threads % f->threads || h->slots % f->slots || h->shape[0] % f->shape[0] ||
        h->shape[1] % f->shape[1])
        return NULL;
    Map *g = map_new(h->rank, h->shape[0] / f->shape[0], h->shape[1] / f->shape[1],
                     h->threads / f->threads, h->slots / f->slots);
    for (int t = 0; t < g->threads; t++)
        for (int i = 0; i < g->slots; i++)
            g->at[t * g->slots + i] = at(h, t, i) / h->shape[1] % g->shape[0] * g->shape[1] +
                                      at(h, t, i) % h->shape[1] % g->shape[1];
    return map_equal(map_product(f, g), h) ? g : NULL;
}

static void left_division_is_exact(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < c->count; j++) {
                Entry h = c->entries[i], f = c->entries[j];
                if (map_size(h.map) > DIVIDEND_SIZE || map_size(f.map) > map_size(h.map))
                    continue;
                expect_result("left division", h.layout,
                              layout_divide_left(&table, h.layout, f.layout, &why),
                              map_divide_left(h.map, f.map));
            }
}

static void products_divide(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < c->count; j++) {
                Entry f = c->entries[i], g = c->entries[j];
                if (map_size(f.map) * map_size(g.map) > SIZE)
                    continue;
                const Layout *h = layout_product(&table, f.layout, g.layout, &why);
                assert_ptr_equal(layout_divide(&table, h, g.layout, &why), f.layout);
                assert_ptr_equal(layout_divide_left(&table, h, f.layout, &why), g.layout);
            }
}

/* Larger layouts of every rank. */
static void random_products_divide(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < RANDOM_CASES; i++) {
        unsigned rank = 1 + (unsigned)random_below(&seed, LIMIT_RANK);
        const Layout *f = random_primitive(&seed, rank), *g = random_primitive(&seed, rank);
        for (int n = 0; f && g && n < 4; n++) {
            const Layout *h = layout_product(&table, f, g, &why);
            if (!h)
                break;
            assert_ptr_equal(layout_divide(&table, h, g, &why), f);
            assert_ptr_equal(layout_divide_left(&table, h, f, &why), g);
            const Layout *next = random_primitive(&seed, rank);
            f = random_below(&seed, 2) ? h : f;
            g = f == h ? next : h;
        }
    }
}

/* ---- drop ---------------------------------------------------------------- */

/* Elements of a thread that became one keep the first slot. */
static Map *map_reduce(const Map *m, unsigned dim)
{
    int columns = m->shape[1], kept[SIZE], count = 0, extent = m->shape[1 - dim];
    bool seen[SIZE] = {false};
    for (int i = 0; i < m->slots; i++) {
        int e = dim == 0 ? at(m, 0, i) % columns : at(m, 0, i) / columns;
        if (!seen[e])
            kept[count++] = i;
        seen[e] = true;
    }
    Map *r = map_new(1, extent, 1, m->threads, count);
    for (int t = 0; t < r->threads; t++)
        for (int i = 0; i < count; i++) {
            int e = at(m, t, kept[i]);
            r->at[t * count + i] = dim == 0 ? e % columns : e / columns;
        }
    return r;
}

static void drop_is_its_definition(void **state)
{
    (void)state;
    const Corpus *c = &corpora[1];
    for (size_t i = 0; i < c->count; i++)
        for (int64_t dim = 0; dim < 2; dim++) {
            Entry e = c->entries[i];
            const Layout *r = layout_drop(&table, e.layout, 1, &dim, &why);
            assert_non_null(r);
            expect_map(r, map_reduce(e.map, (unsigned)dim));
            assert_ptr_equal(layout_drop(&table, e.layout, 0, NULL, &why), e.layout);
        }
}

/* ---- permute ------------------------------------------------------------- */

static void permute_is_its_definition(void **state)
{
    (void)state;
    static const int64_t swap[] = {1, 0}, keep[] = {0, 1};
    const Corpus *c = &corpora[1];
    for (size_t i = 0; i < c->count; i++) {
        const Layout *l = c->entries[i].layout;
        const Map *m = c->entries[i].map;
        Map *swapped = map_new(2, m->shape[1], m->shape[0], m->threads, m->slots);
        for (int p = 0; p < map_size(m); p++)
            swapped->at[p] = m->at[p] % m->shape[1] * m->shape[0] + m->at[p] / m->shape[1];
        const Layout *r = layout_permute(&table, l, 2, swap, &why);
        expect_map(r, swapped);
        assert_ptr_equal(layout_permute(&table, r, 2, swap, &why), l);
        assert_ptr_equal(layout_permute(&table, l, 2, keep, &why), l);
    }
}

/* ---- reshape ------------------------------------------------------------- */

static void expect_reshape(const Entry *e, unsigned rank, int rows, int columns)
{
    int64_t shape[] = {rows, columns};
    Map m = *e->map;
    m.rank = rank;
    m.shape[0] = rows;
    m.shape[1] = columns;
    const Layout *r = layout_reshape(&table, e->layout, rank, shape, &why);
    expect_result("reshape", e->layout, r, &m);
}

/* Row-major numbers stay, so the function is the same table; a layout of it is
 * found where there is one. */
static void reshape_is_exact(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++) {
            const Entry *e = &c->entries[i];
            int size = e->map->shape[0] * e->map->shape[1];
            expect_reshape(e, 1, size, 1);
            for (int rows = 1; rows <= size; rows++)
                if (size % rows == 0)
                    expect_reshape(e, 2, rows, size / rows);
        }
}

/* ---- concat -------------------------------------------------------------- */

static void concat_is_its_definition(void **state)
{
    (void)state;
    const Corpus *c = &corpora[0];
    for (size_t i = 0; i < c->count; i++)
        for (size_t j = 0; j < c->count; j++) {
            const Map *f = c->entries[i].map, *g = c->entries[j].map;
            if (map_size(f) * map_size(g) > SIZE)
                continue;
            Map *h = map_new(2, f->shape[0], g->shape[0], f->threads * g->threads,
                             f->slots * g->slots);
            for (int t = 0; t < h->threads; t++)
                for (int s = 0; s < h->slots; s++)
                    h->at[t * h->slots + s] =
                        at(f, t / g->threads, s / g->slots) * g->shape[0] +
                        at(g, t % g->threads, s % g->slots);
            expect_map(layout_concat(&table, c->entries[i].layout, c->entries[j].layout, &why),
                       h);
        }
}

/* ---- slice --------------------------------------------------------------- */

/* What the threads hold of the tile at (row, column); NULL where they hold
 * different numbers of elements. */
static Map *map_slice(const Map *m, int rows, int columns, int row, int column)
{
    Map *r = map_new(m->rank, rows, columns, m->threads, m->slots);
    int slots = -1;
    for (int t = 0; t < m->threads; t++) {
        int count = 0;
        for (int i = 0; i < m->slots; i++) {
            int y = at(m, t, i) / m->shape[1] - row, x = at(m, t, i) % m->shape[1] - column;
            if (y >= 0 && y < rows && x >= 0 && x < columns)
                r->at[t * (slots < 0 ? m->slots : slots) + count++] = y * columns + x;
        }
        if (count == 0 || (slots >= 0 && count != slots))
            return NULL;
        slots = count;
    }
    r->slots = slots;
    return r;
}

/* The layout that serves the tile at every multiple, or NULL. */
static const Layout *common_slice(const Map *m, int rows, int columns)
{
    const Layout *common = NULL;
    for (int row = 0; row < m->shape[0]; row += rows)
        for (int column = 0; column < m->shape[1]; column += columns) {
            const Map *tile = map_slice(m, rows, columns, row, column);
            const Layout *l = tile ? find_map(tile) : NULL;
            if (!l || (common && l != common))
                return NULL;
            common = l;
        }
    return common;
}

/* A cut mode is refused even where the threads' slots happen to fit. */
static void expect_slice(const Entry *e, int rows, int columns, int *found)
{
    int64_t shape[] = {rows, columns};
    const Layout *wanted = common_slice(e->map, rows, columns);
    const Layout *r = layout_slice(&table, e->layout, e->map->rank, shape, &why);
    if (r != wanted && (r || !strstr(why, "cuts a mode")))
        fail_msg("slice [%d, %d] of %s is %s, expected %s", rows, columns, text_of(e->layout),
                 r ? text_of(r) : why, wanted ? text_of(wanted) : "a refusal");
    *found += r != NULL;
}

static void slice_is_exact(void **state)
{
    (void)state;
    int found = 0;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++) {
            const Map *m = c->entries[i].map;
            for (int rows = 1; rows <= m->shape[0]; rows++)
                for (int columns = 1; columns <= m->shape[1]; columns++)
                    if (m->shape[0] % rows == 0 && m->shape[1] % columns == 0)
                        expect_slice(&c->entries[i], rows, columns, &found);
        }
    assert_true(found > 3000);
}

/* ---- laws and examples ------------------------------------------------------ */

static const Layout *read(const char *text)
{
    const Layout *l = read_layout(text, NULL);
    assert_non_null(l);
    return l;
}

/* Permutes, splits or joins dimensions of any rank, and comes back. */
static void random_round_trips(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < RANDOM_CASES; i++) {
        unsigned rank = 1 + (unsigned)random_below(&seed, LIMIT_RANK - 1);
        int64_t order[LIMIT_RANK], inverse[LIMIT_RANK], size = 1, ones[] = {1};
        const Layout *l = random_primitive(&seed, rank), *g = random_primitive(&seed, rank);
        l = layout_product(&table, l, g, &why);
        if (!l)
            continue;
        for (unsigned d = 0; d < rank; d++) {
            unsigned j = (unsigned)random_below(&seed, d + 1);
            order[d] = order[j];
            order[j] = d;
            size *= l->shape[d];
        }
        for (unsigned d = 0; d < rank; d++)
            inverse[order[d]] = d;
        const Layout *p = layout_permute(&table, l, rank, order, &why);
        assert_ptr_equal(layout_permute(&table, p, rank, inverse, &why), l);
        const Layout *flat = layout_reshape(&table, l, 1, &size, &why);
        assert_ptr_equal(layout_reshape(&table, flat, rank, l->shape, &why), l);
        const Layout *one = layout_local(&table, 1, ones, &why);
        const Layout *more = layout_concat(&table, l, one, &why);
        int64_t last = rank;
        assert_ptr_equal(layout_drop(&table, more, 1, &last, &why), l);
        assert_ptr_equal(layout_slice(&table, l, rank, l->shape, &why), l);
    }
}

static void examples(void **state)
{
    (void)state;
    static const int64_t two[] = {2}, both[] = {0, 1}, one[] = {1}, shape[] = {8, 8};
    static const int64_t cube[] = {2, 8, 8}, row[] = {1, 3};
    const Layout *c = read("local(2, 1).spatial(8, 4).local(1, 2)");
    /* Tilus VM paper, Figure 14 and appendix B.2. */
    assert_string_equal(text_of(layout_drop(&table, read("spatial(1, 1, 4)"), 1, two, &why)),
                        "replicate(4).local(1, 1)");
    assert_string_equal(text_of(layout_drop(&table, c, 1, one, &why)),
                        "local(2).spatial(8).replicate(4)");
    assert_string_equal(text_of(layout_slice(&table, c, 2, shape, &why)),
                        "spatial(8, 4).local(1, 2)");
    /* Slots of one row follow each other only once the row is chosen. */
    assert_string_equal(text_of(layout_slice(&table, read("column_local(2, 3).local(1, 2)"), 2,
                                             row, &why)), "local(1, 3)");
    assert_string_equal(text_of(layout_reshape(&table, c, 3, cube, &why)),
                        "spatial(1, 8, 4).local(2, 1, 2)");
    assert_string_equal(text_of(layout_divide_left(&table, c, read("local(2, 1)"), &why)),
                        "spatial(8, 4).local(1, 2)");
    assert_null(layout_drop(&table, c, 2, both, &why));
    assert_string_equal(why, "a layout keeps at least one dimension, all 2 are reduced");
}

static void refuses(const Layout *result, const char *reason)
{
    assert_null(result);
    assert_string_equal(why, reason);
}

static void refusals(void **state)
{
    (void)state;
    const Layout *c = read("local(2, 1).spatial(8, 4).local(1, 2)");
    const Layout *three = read("spatial(3, 2)"), *full = read("local(1, 1, 1, 1, 1, 1, 1, 1)");
    static const int64_t bad[] = {2}, below[] = {-1}, twice[] = {1, 1}, tile[] = {4, 8};
    static const int64_t cut[] = {5, 8}, none[] = {0, 8}, shape[] = {16, 9}, split[] = {2, 3};
    refuses(layout_drop(&table, c, 1, bad, &why), "a layout of rank 2 has no dimension 2");
    refuses(layout_permute(&table, c, 2, twice, &why), "dimension 1 stands twice in the list");
    refuses(layout_permute(&table, c, 1, below, &why),
            "1 entries of the order for a layout of rank 2");
    refuses(layout_drop(&table, c, 1, below, &why),
            "a layout of rank 2 has no dimension -1");
    refuses(layout_reshape(&table, c, 2, shape, &why),
            "a layout of 128 elements has no shape of 144");
    refuses(layout_reshape(&table, read("column_local(3, 2)"), 2, split, &why),
            "a mode of extent 3 would lie across dimensions 0 and 1 of the new shape");
    refuses(layout_reshape(&table, three, 0, NULL, &why),
            "a layout has 1 to 8 dimensions, got 0");
    refuses(layout_slice(&table, c, 2, tile, &why),
            "a slice of extent 4 in dimension 0 leaves threads without elements");
    refuses(layout_slice(&table, c, 2, cut, &why),
            "extent 16 of dimension 0 is not a multiple of the slice's 5");
    refuses(layout_slice(&table, c, 2, none, &why),
            "an extent is at least 1, dimension 0 has 0");
    refuses(layout_slice(&table, read("column_local(3, 2).local(2, 1)"), 2, split, &why),
            "extent 2 of dimension 1 is not a multiple of the slice's 3");
    refuses(layout_concat(&table, full, c, &why), "a layout has 1 to 8 dimensions, got 10");
    refuses(layout_concat(&table, read("spatial(64)"), c, &why),
            "a layout has at most 1024 threads, got 2048");
    refuses(layout_divide_left(&table, c, read("local(1, 2)"), &why),
            "local(2, 1).spatial(8, 4).local(1, 2) does not begin with local(1, 2): its slots "
            "lie differently");
    refuses(layout_divide_left(&table, c, three, &why),
            "32 threads are not a multiple of the divisor's 6");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(left_division_is_exact),
        cmocka_unit_test(products_divide),
        cmocka_unit_test(random_products_divide),
        cmocka_unit_test(drop_is_its_definition),
        cmocka_unit_test(permute_is_its_definition),
        cmocka_unit_test(reshape_is_exact),
        cmocka_unit_test(concat_is_its_definition),
        cmocka_unit_test(slice_is_exact),
        cmocka_unit_test(random_round_trips),
        cmocka_unit_test(examples),
        cmocka_unit_test(refusals),
    };
    static OutOfMemory oom;
    if (setjmp(oom.jump)) {
        fputs("out of memory\n", stderr);
        return 1;
    }
    arena_init(&arena, &oom);
    layout_table_init(&table, &arena);
    int failures = cmocka_run_group_tests(tests, build_corpora, NULL);
    arena_free(&arena);
    return failures;
}
