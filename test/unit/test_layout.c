/* Register layouts against their definitions: the laws are tried on all of the
 * corpus (see layout_corpus.h). */
#include "layout_corpus.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { DIVIDEND_SIZE = 12, RANDOM_CASES = 2000 };

/* The F with h = F.g as functions, or NULL. */
static Map *map_divide(const Map *h, const Map *g)
{
    if (h->threads % g->threads || h->slots % g->slots || h->shape[0] % g->shape[0] ||
        h->shape[1] % g->shape[1])
        return NULL;
    Map *f = map_new(h->rank, h->shape[0] / g->shape[0], h->shape[1] / g->shape[1],
                     h->threads / g->threads, h->slots / g->slots);
    for (int t = 0; t < f->threads; t++)
        for (int i = 0; i < f->slots; i++) {
            int a = h->at[t * g->threads * h->slots + i * g->slots];
            f->at[t * f->slots + i] = a / h->shape[1] / g->shape[0] * f->shape[1] +
                                      a % h->shape[1] / g->shape[1];
        }
    return map_equal(map_product(f, g), h) ? f : NULL;
}

/* ---- laws ------------------------------------------------------------ */

static void corpus_is_large(void **state)
{
    (void)state;
    assert_true(corpora[0].products > 150 && corpora[0].count > 300);
    assert_true(corpora[1].products > 700 && corpora[1].count > 1500);
}

static void equal_functions_are_equal_pointers(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < i; j++)
                if (map_equal(c->entries[i].map, c->entries[j].map))
                    fail_msg("two layouts of one function: %s", text_of(c->entries[i].layout));
}

static void product_is_its_definition(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < c->count; j++) {
                Entry f = c->entries[i], g = c->entries[j];
                if (map_size(f.map) * map_size(g.map) > SIZE)
                    continue;
                const Layout *h = layout_product(&table, f.layout, g.layout, &why);
                expect_map(h, map_product(f.map, g.map));
                assert_ptr_equal(layout_divide(&table, h, g.layout, &why), f.layout);
            }
}

static void expect_associative(const Layout *f, const Layout *g, const Layout *h)
{
    const Layout *fg = layout_product(&table, f, g, &why);
    const Layout *gh = layout_product(&table, g, h, &why);
    assert_ptr_equal(layout_product(&table, fg, h, &why),
                     layout_product(&table, f, gh, &why));
}

static void product_is_associative(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < c->count; j++) {
                const Entry *f = &c->entries[i], *g = &c->entries[j];
                int size = map_size(f->map) * map_size(g->map);
                for (size_t k = 0; size <= SIZE && k < c->count; k++)
                    if (size * map_size(c->entries[k].map) <= SIZE)
                        expect_associative(f->layout, g->layout, c->entries[k].layout);
            }
}

static void ones_are_the_identity(void **state)
{
    (void)state;
    static const int64_t ones[] = {1, 1};
    for (unsigned rank = 1; rank <= 2; rank++) {
        const Corpus *c = &corpora[rank - 1];
        const Layout *one = layout_local(&table, rank, ones, &why);
        assert_ptr_equal(one, layout_spatial(&table, rank, ones, &why));
        assert_ptr_equal(one, layout_replicate(&table, rank, 1, &why));
        for (size_t i = 0; i < c->count; i++) {
            const Layout *f = c->entries[i].layout;
            assert_ptr_equal(layout_product(&table, f, one, &why), f);
            assert_ptr_equal(layout_product(&table, one, f, &why), f);
            assert_ptr_equal(layout_divide(&table, f, one, &why), f);
            assert_ptr_equal(layout_divide(&table, f, f, &why), one);
            assert_ptr_equal(layout_divide_left(&table, f, one, &why), f);
            assert_ptr_equal(layout_divide_left(&table, f, f, &why), one);
        }
    }
}

/* Division finds a factor exactly when the function has one. */
static void expect_division(Entry h, Entry g)
{
    const Map *expected = map_divide(h.map, g.map);
    why = NULL;
    const Layout *f = layout_divide(&table, h.layout, g.layout, &why);
    if (!expected != !f)
        fail_msg("%s / %s: expected %s", text_of(h.layout), text_of(g.layout),
                 expected ? "a factor" : "a refusal");
    if (f)
        expect_map(f, expected);
    else
        assert_non_null(why);
}

static void division_is_exact(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++)
            for (size_t j = 0; j < c->count; j++) {
                Entry h = c->entries[i], g = c->entries[j];
                if (map_size(h.map) > DIVIDEND_SIZE || map_size(g.map) >= map_size(h.map))
                    continue;
                ArenaMark mark = arena_mark(&arena);
                uint32_t layouts = table.set.count;
                expect_division(h, g);
                if (table.set.count == layouts)
                    arena_reset(&arena, mark);
            }
}

/* ---- queries --------------------------------------------------------- */

/* The least thread that holds what thread `t` has in slot `i`, and in `*held`
 * how many do. */
static int first_holder(const Map *m, int t, int i, int *held)
{
    int first = -1;
    *held = 0;
    for (int u = 0; u < m->threads; u++)
        for (int j = 0; j < m->slots; j++)
            if (m->at[u * m->slots + j] == m->at[t * m->slots + i]) {
                first = first < 0 ? u : first;
                ++*held;
            }
    return first;
}

static void place_inverts_index(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t k = 0; k < c->count; k++) {
            const Layout *l = c->entries[k].layout;
            for (int t = 0; t < l->threads; t++)
                for (int i = 0; i < l->slots; i++) {
                    int held;
                    int64_t index[LIMIT_RANK], thread, slot;
                    layout_index(l, t, i, index);
                    layout_place(l, index, &thread, &slot);
                    assert_int_equal(thread, first_holder(c->entries[k].map, t, i, &held));
                    assert_int_equal(slot, i);
                    assert_int_equal(layout_replicas(l), held);
                }
        }
}

static bool is_run(const Map *m, unsigned dim, int r)
{
    int step = dim == 0 ? m->shape[1] : 1;
    for (int t = 0; t < m->threads; t++)
        for (int s = 0; s < m->slots; s += r) {
            const int *at = &m->at[t * m->slots + s];
            int index = dim == 0 ? at[0] / m->shape[1] : at[0] % m->shape[1];
            if (index % r || index + r > m->shape[dim])
                return false;
            for (int i = 1; i < r; i++)
                if (at[i] != at[0] + i * step)
                    return false;
        }
    return true;
}

static void run_is_the_longest(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++) {
            const Map *m = c->entries[i].map;
            for (unsigned dim = 0; dim < m->rank; dim++) {
                int r = m->slots;
                while (m->slots % r || !is_run(m, dim, r))
                    r--;
                assert_int_equal(layout_run(c->entries[i].layout, dim), r);
            }
        }
}

/* ---- printing -------------------------------------------------------- */

/* Every product prints as one of the fewest factors, every other layout in the
 * general form, and both read back as the same layout. */
static void print_reads_back(void **state)
{
    (void)state;
    for (const Corpus *c = corpora; c < corpora + 2; c++)
        for (size_t i = 0; i < c->count; i++) {
            const Entry *e = &c->entries[i];
            unsigned factors, expected = e->factors;
            const char *text = text_of(e->layout);
            assert_ptr_equal(read_layout(text, &factors), e->layout);
            if (i < c->products && layout_replicas(e->layout) == e->layout->threads &&
                e->layout->slots == 1)
                expected++;     /* local(1, 1), which shows the rank */
            if (factors != expected)
                fail_msg("%s has %u factors, expected %u", text, factors, expected);
        }
}

static void expect_text(const char *text, const char *printed)
{
    const Layout *l = read_layout(text, NULL);
    assert_non_null(l);
    assert_string_equal(text_of(l), printed);
    assert_ptr_equal(read_layout(printed, NULL), l);
}

/* Larger layouts, of every rank: (f.g)/g = f, and f.g.h.. prints as at most
 * so many factors, which read back. */
static void random_products(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < RANDOM_CASES; i++) {
        unsigned rank = 1 + (unsigned)random_below(&seed, LIMIT_RANK), factors, n = 1;
        const Layout *f = random_primitive(&seed, rank);
        while (f && n < 6) {
            const Layout *g = random_primitive(&seed, rank);
            const Layout *h = g ? layout_product(&table, f, g, &why) : NULL;
            if (!h)
                break;
            assert_ptr_equal(layout_divide(&table, h, g, &why), f);
            f = h;
            n++;
        }
        if (!f)
            continue;
        const char *text = text_of(f);
        assert_ptr_equal(read_layout(text, &factors), f);
        if (factors == 0 || factors > n + (layout_replicas(f) == f->threads))
            fail_msg("%s has %u factors, expected 1 to %u", text, factors, n);
    }
}

static void printed_forms(void **state)
{
    (void)state;
    static const char *const same[] = {
        "local(2, 1).spatial(8, 4).local(1, 2)",
        "column_local(2, 2).spatial(8, 4).local(1, 2)",
        "local(2, 1).column_spatial(4, 8).local(2, 1)",
        "local(3).spatial(32)",
        "spatial(32).local(4)",
        "replicate(4).spatial(8)",
        "spatial(8).replicate(4)",
        "spatial(2, 2).replicate(4).column_spatial(2, 4).local(1, 3)",
        "local(1, 1)",
        "local(1)",
        "replicate(32).local(1, 1)",
        "local(2, 3, 5, 7)",
        "column_spatial(1, 2, 1, 3, 1, 4, 1, 5)",
        "register_layout(shape = [4, 4], mode_shape = [2, 2, 4], spatial_modes = [2], "
        "local_modes = [1, 0])",
        "register_layout(shape = [4], mode_shape = [2, 2], spatial_modes = [-3, 1, -2, 0], "
        "local_modes = [])",
    };
    for (size_t i = 0; i < sizeof same / sizeof *same; i++)
        expect_text(same[i], same[i]);
}

static void canonical_forms(void **state)
{
    (void)state;
    expect_text("local(2).local(3)", "local(6)");
    expect_text("spatial(2, 1).spatial(4, 1)", "spatial(8, 1)");
    expect_text("column_local(1, 4)", "local(1, 4)");
    expect_text("replicate(2).replicate(3).local(1)", "replicate(6).local(1)");
    expect_text("local(2, 1).local(1, 3)", "local(2, 3)");
    expect_text("local(1, 3).local(2, 1)", "column_local(2, 3)");
    expect_text("spatial(1, 1).local(2, 2)", "local(2, 2)");
    expect_text("register_layout(shape = [1, 4, 1], mode_shape = [1, 2, 1, 2, 1], "
                "spatial_modes = [1, -1, 3], local_modes = [0])", "spatial(1, 4, 1)");
}

/* The fields, as the drawing in the header has them. */
static void canonical_fields(void **state)
{
    (void)state;
    static const LayoutMode modes[] = {{2, 0}, {8, 0}, {4, 1}, {2, 1}};
    static const int spatial[] = {1, 2, -1}, local[] = {0, 3};
    const Layout *l = read_layout("local(2, 1).spatial(8, 4).replicate(3).local(1, 2)", NULL);
    assert_int_equal(l->mode_count, 4);
    assert_int_equal(l->spatial_count, 3);
    assert_int_equal(l->local_count, 2);
    for (unsigned m = 0; m < 4; m++) {
        assert_int_equal(l->modes[m].extent, modes[m].extent);
        assert_int_equal(l->modes[m].dim, modes[m].dim);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(l->spatial[i].mode, spatial[i]);
        assert_int_equal(l->spatial[i].extent, i == 2 ? 3 : modes[spatial[i]].extent);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(l->local[i].mode, local[i]);
        assert_int_equal(l->local[i].extent, modes[local[i]].extent);
    }
    assert_int_equal(l->threads, 96);
    assert_int_equal(l->slots, 4);
    assert_int_equal(layout_replicas(l), 3);
}

/* ---- PTX ------------------------------------------------------------- */

typedef void (*Fragment)(int lane, int i, int64_t *index);

/* PTX ISA, "Matrix fragments for mma.m16n8k16 with floating point type". */
static void m16n8k16_a(int lane, int i, int64_t *index)
{
    bool lower = i == 2 || i == 3 || i == 6 || i == 7;
    index[0] = lane / 4 + (lower ? 8 : 0);
    index[1] = lane % 4 * 2 + (i & 1) + (i >= 4 ? 8 : 0);
}

static void m16n8k16_b(int lane, int i, int64_t *index)
{
    index[0] = lane % 4 * 2 + (i & 1) + (i >= 2 ? 8 : 0);
    index[1] = lane / 4;
}

static void m16n8k16_c(int lane, int i, int64_t *index)
{
    index[0] = lane / 4 + (i >= 2 ? 8 : 0);
    index[1] = lane % 4 * 2 + (i & 1);
}

/* PTX ISA, "Matrix fragments for mma.m16n8k8": a0, a1, then a2, a3 in the
 * lower rows. */
static void m16n8k8_a(int lane, int i, int64_t *index)
{
    index[0] = i < 2 ? lane / 4 : lane / 4 + 8;
    index[1] = lane % 4 * 2 + i % 2;
}

static void expect_fragment(const char *text, Fragment fragment, int rows, int columns)
{
    const Layout *l = read_layout(text, NULL);
    assert_int_equal(l->threads, 32);
    assert_int_equal(l->slots, rows * columns / 32);
    assert_int_equal(l->shape[0], rows);
    assert_int_equal(l->shape[1], columns);
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < l->slots; i++) {
            int64_t index[2], expected[2];
            layout_index(l, lane, i, index);
            fragment(lane, i, expected);
            assert_memory_equal(index, expected, sizeof index);
        }
}

static void mma_fragments(void **state)
{
    (void)state;
    expect_fragment("column_local(2, 2).spatial(8, 4).local(1, 2)", m16n8k16_a, 16, 16);
    expect_fragment("local(2, 1).column_spatial(4, 8).local(2, 1)", m16n8k16_b, 16, 8);
    expect_fragment("local(2, 1).spatial(8, 4).local(1, 2)", m16n8k16_c, 16, 8);
    expect_fragment("local(2, 1).spatial(8, 4).local(1, 2)", m16n8k8_a, 16, 8);
}

static void operands_divide_by_ldmatrix(void **state)
{
    (void)state;
    const Layout *atom = read_layout("spatial(8, 4).local(1, 2)", NULL);
    const Layout *a = read_layout("column_local(2, 2).spatial(8, 4).local(1, 2)", NULL);
    const Layout *b = read_layout("local(2, 1).column_spatial(4, 8).local(2, 1)", NULL);
    assert_string_equal(text_of(layout_divide(&table, a, atom, &why)), "column_local(2, 2)");
    assert_null(layout_divide(&table, b, atom, &why));
    assert_string_equal(why,
                        "local(2, 1).column_spatial(4, 8).local(2, 1) does not end in "
                        "spatial(8, 4).local(1, 2): its threads lie differently");
}

/* ---- division and refusals ------------------------------------------- */

static void expect_quotient(const char *h, const char *g, const char *expected)
{
    const Layout *f = layout_divide(&table, read_layout(h, NULL), read_layout(g, NULL), &why);
    assert_non_null(f);
    assert_string_equal(text_of(f), expected);
}

static void expect_no_quotient(const char *h, const char *g, const char *reason)
{
    assert_null(layout_divide(&table, read_layout(h, NULL), read_layout(g, NULL), &why));
    assert_string_equal(why, reason);
}

static void divisions(void **state)
{
    (void)state;
    expect_quotient("local(2, 4)", "local(1, 2)", "local(2, 2)");
    expect_quotient("spatial(32)", "spatial(4)", "spatial(8)");
    expect_quotient("replicate(8).spatial(4)", "replicate(2).spatial(4)",
                    "replicate(4).local(1)");
    expect_quotient("local(1, 2).spatial(6, 4).local(1, 3)", "spatial(2, 4).local(1, 3)",
                    "spatial(3, 1).local(1, 2)");
    expect_no_quotient("local(6)", "local(4)",
                       "6 slots are not a multiple of the divisor's 4");
    expect_no_quotient("spatial(8)", "spatial(3)",
                       "8 threads are not a multiple of the divisor's 3");
    expect_no_quotient("local(2, 4)", "local(2, 1)",
                       "local(2, 4) does not end in local(2, 1): its slots lie differently");
    expect_no_quotient("local(2, 4)", "local(2)",
                       "the layouts' ranks must be equal, got 2 and 1");
}

static void expect_refusal(const char *text, const char *reason)
{
    why = NULL;
    assert_null(read_layout(text, NULL));
    assert_non_null(why);
    assert_string_equal(why, reason);
}

static void primitives_refuse(void **state)
{
    (void)state;
    expect_refusal("local(2, 0)", "an extent is at least 1, dimension 1 has 0");
    expect_refusal("column_spatial(-4)", "an extent is at least 1, dimension 0 has -4");
    expect_refusal("local()", "a layout has 1 to 8 dimensions, got 0");
    expect_refusal("local(1, 1, 1, 1, 1, 1, 1, 1, 1)",
                   "a layout has 1 to 8 dimensions, got 9");
    expect_refusal("spatial(32, 33)", "a layout has at most 1024 threads, got 1056");
    expect_refusal("local(65537)", "a layout has at most 65536 slots, got 65537");
    expect_refusal("column_local(4294967296, 4294967296)",
                   "a layout has at most 65536 slots, got 9223372036854775807 or more");
    expect_refusal("replicate(0).local(1)", "a replica has at least 1 thread, got 0");
    expect_refusal("replicate(2048).local(1)", "a layout has at most 1024 threads, got 2048");
    expect_refusal("spatial(1024).replicate(2)",
                   "a layout has at most 1024 threads, got 2048");
    expect_refusal("local(65536).local(2)", "a layout has at most 65536 slots, got 131072");
    expect_refusal("local(2).local(2, 2)", "the layouts' ranks must be equal, got 1 and 2");
}

#define GENERAL(shape, modes, spatial, local)                                 \
    "register_layout(shape = [" shape "], mode_shape = [" modes               \
    "], spatial_modes = [" spatial "], local_modes = [" local "])"

static void general_form_refuses(void **state)
{
    (void)state;
    expect_refusal(GENERAL("", "", "", ""), "a layout has 1 to 8 dimensions, got 0");
    expect_refusal(GENERAL("4, 0", "4", "0", ""),
                   "an extent is at least 1, dimension 1 has 0");
    expect_refusal(GENERAL("4", "2, -2", "0", "1"), "an extent is at least 1, mode 1 has -2");
    expect_refusal(GENERAL("4, 4", "2, 3, 4", "0", "1, 2"),
                   "the modes of dimension 0 multiply to 6, its extent is 4");
    expect_refusal(GENERAL("4, 4", "4, 2", "0", "1"),
                   "the modes of dimension 1 multiply to 2, its extent is 4");
    expect_refusal(GENERAL("4", "4, 1, 2", "0", "2"),
                   "mode 2 of extent 2 is left over: the modes before it make the whole "
                   "shape");
    expect_refusal(GENERAL("4", "2, 2", "0", "2"),
                   "mode 2 does not exist, mode_shape has 2");
    expect_refusal(GENERAL("4", "2, 2", "0", "1, 0"),
                   "mode 0 stands more than once in spatial_modes and local_modes");
    expect_refusal(GENERAL("4", "2, 2", "0", ""),
                   "mode 1 of extent 2 is in neither spatial_modes nor local_modes");
    expect_refusal(GENERAL("4", "2, 2", "0", "1, -2"),
                   "only spatial_modes has replicas, local_modes has -2");
    expect_refusal(GENERAL("4", "4", "0, -512", ""),
                   "a layout has at most 1024 threads, got 2048");
    expect_refusal(GENERAL("4", "4", "0, -9223372036854775808", ""),
                   "a layout has at most 1024 threads, got 9223372036854775807 or more");
    expect_refusal(GENERAL("131072", "131072", "", "0"),
                   "a layout has at most 65536 slots, got 131072");
    expect_refusal(GENERAL("9223372036854775807", "4294967296, 4294967296", "0", "1"),
                   "a layout has at most 1024 threads, got 4294967296");
}

static void general_form_counts(void **state)
{
    (void)state;
    int64_t shape[] = {1}, ones[LAYOUT_MODES + 1], replicas[LAYOUT_MODES + 1];
    for (int i = 0; i <= LAYOUT_MODES; i++) {
        ones[i] = 1;
        replicas[i] = -1;
    }
    const Layout *one = layout_local(&table, 1, shape, &why);
    assert_ptr_equal(layout_from_modes(&table, 1, shape, LAYOUT_MODES, ones, LAYOUT_MODES,
                                       replicas, 0, NULL, &why), one);
    assert_null(layout_from_modes(&table, 1, shape, LAYOUT_MODES + 1, ones, 0, NULL, 0, NULL,
                                  &why));
    assert_string_equal(why, "a layout has at most 40 modes, got 41");
    assert_null(layout_from_modes(&table, 1, shape, 0, NULL, LAYOUT_MODES + 1, replicas, 0,
                                  NULL, &why));
    assert_string_equal(why, "spatial_modes has at most 40 entries, got 41");
    assert_null(layout_from_modes(&table, 1, shape, 0, NULL, 0, NULL, LAYOUT_MODES + 1,
                                  replicas, &why));
    assert_string_equal(why, "local_modes has at most 40 entries, got 41");
}

/* The largest legal layout in 26 single bits, no two of which join. */
static void largest_layout(void **state)
{
    (void)state;
    const Layout *l = read_layout("local(1, 1)", NULL);
    for (int i = 0; i < 16; i++) {
        const char *local = i % 2 ? "local(1, 2)" : "local(2, 1)";
        const char *threads = i % 2 ? "spatial(2, 1)" : "replicate(2).local(1, 1)";
        l = layout_product(&table, l, read_layout(local, NULL), &why);
        if (i < 10)
            l = layout_product(&table, l, read_layout(threads, NULL), &why);
    }
    assert_non_null(l);
    assert_int_equal(l->threads, LIMIT_THREADS);
    assert_int_equal(l->slots, LIMIT_ELEMENTS_A_THREAD);
    assert_int_equal(l->spatial_count + l->local_count, 26);
    assert_ptr_equal(read_layout(text_of(l), NULL), l);
    for (int t = 0; t < LIMIT_THREADS; t += 93) {
        int64_t index[2], thread, slot, again[2];
        layout_index(l, t, t * 61, index);
        layout_place(l, index, &thread, &slot);
        layout_index(l, thread, slot, again);
        assert_int_equal(slot, t * 61);
        assert_memory_equal(index, again, sizeof index);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(corpus_is_large),
        cmocka_unit_test(equal_functions_are_equal_pointers),
        cmocka_unit_test(product_is_its_definition),
        cmocka_unit_test(product_is_associative),
        cmocka_unit_test(ones_are_the_identity),
        cmocka_unit_test(division_is_exact),
        cmocka_unit_test(place_inverts_index),
        cmocka_unit_test(run_is_the_longest),
        cmocka_unit_test(print_reads_back),
        cmocka_unit_test(random_products),
        cmocka_unit_test(printed_forms),
        cmocka_unit_test(canonical_forms),
        cmocka_unit_test(canonical_fields),
        cmocka_unit_test(mma_fragments),
        cmocka_unit_test(operands_divide_by_ldmatrix),
        cmocka_unit_test(divisions),
        cmocka_unit_test(primitives_refuse),
        cmocka_unit_test(general_form_refuses),
        cmocka_unit_test(general_form_counts),
        cmocka_unit_test(largest_layout),
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
