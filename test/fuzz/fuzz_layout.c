/* The algebra of layouts against plain functions (layout_map.h): some layouts are
 * made, by primitives, by general forms and from each other, and each is what its
 * definition says, point by point. Equal functions are equal pointers. What a layout
 * prints parses as itself. */
#include "layout_map.h"
#include "target.h"

#include "tilus/tilus.h"

#include <stdlib.h>
#include <string.h>

enum { KNOWN_MAX = 24, RANK_MAX = 4 };

typedef struct Known {
    const Layout *layout;
    const Map *map;
} Known;

typedef struct Algebra {
    Choices *choices;
    Arena *arena;
    LayoutTable table;
    const char *why;
    Known known[KNOWN_MAX];
    unsigned count;
} Algebra;

static const char *text_of(const Algebra *a, const Layout *l)
{
    Text text;
    text_init(&text, a->arena);
    layout_print(&text, l);
    return text_string(&text);
}

/* ---- what holds of every layout ----------------------------------------------- */

/* The first thread and slot that hold each element, and how many threads do. */
static void check_places(const Algebra *a, const Layout *l, const Map *m)
{
    int64_t index[LIMIT_RANK], thread, slot;
    int64_t replicas = layout_replicas(l);
    int64_t *holders = arena_array(a->arena, int64_t, MAP_POINTS);
    for (int64_t p = 0; p < m->threads * m->slots; p++) {
        map_index(m->rank, m->shape, m->at[p], index);
        layout_place(l, index, &thread, &slot);
        if (m->at[thread * m->slots + slot] != m->at[p] || thread > p / m->slots)
            target_fail("%s: element %lld is not in thread %lld, slot %lld, first",
                        text_of(a, l), (long long)m->at[p], (long long)thread,
                        (long long)slot);
        holders[m->at[p]]++;
    }
    for (int64_t p = 0; p < m->threads * m->slots; p++)
        if (holders[m->at[p]] != replicas)
            target_fail("%s: element %lld has %lld holders, not %lld", text_of(a, l),
                        (long long)m->at[p], (long long)holders[m->at[p]],
                        (long long)replicas);
}

/* Runs of slots along each dimension. */
static void check_runs(const Algebra *a, const Layout *l, const Map *m)
{
    int64_t first[LIMIT_RANK], index[LIMIT_RANK];
    for (unsigned dim = 0; dim < l->rank; dim++) {
        int64_t run = layout_run(l, dim);
        for (int64_t p = 0; p < m->threads * m->slots; p++) {
            map_index(m->rank, m->shape, m->at[p - p % m->slots % run], first);
            map_index(m->rank, m->shape, m->at[p], index);
            first[dim] += p % m->slots % run;
            bool whole = m->slots % run == 0 && (index[dim] - p % m->slots % run) % run == 0;
            if (!whole || memcmp(first, index, l->rank * sizeof *first) != 0)
                target_fail("%s: no run of %lld in dimension %u", text_of(a, l),
                            (long long)run, dim);
        }
    }
}

/* The parsed text is drawn as the layout is: every thread and slot. */
static void check_text(const Algebra *a, const Layout *l)
{
    Text drawn;
    text_init(&drawn, a->arena);
    layout_draw_text(&drawn, l);
    tilus_diag *diag = tilus_diag_new();
    char *parsed = tilus_layout_draw(diag, text_of(a, l), TILUS_DRAWING_TEXT);
    if (!parsed || !strstr(parsed, text_string(&drawn)))
        target_fail("%s parses as\n%s\nnot\n%s", text_of(a, l),
                    parsed ? parsed : tilus_diag_text(diag, 0), text_string(&drawn));
    free(parsed);
    tilus_diag_free(diag);
}

/* Its own attributes make the layout again. */
static void check_modes(Algebra *a, const Layout *l)
{
    int64_t extents[LAYOUT_MODES], spatial[LAYOUT_MODES], local[LAYOUT_MODES];
    for (unsigned i = 0; i < l->mode_count; i++)
        extents[i] = l->modes[i].extent;
    for (unsigned i = 0; i < l->spatial_count; i++)
        spatial[i] = l->spatial[i].mode < 0 ? -l->spatial[i].extent : l->spatial[i].mode;
    for (unsigned i = 0; i < l->local_count; i++)
        local[i] = l->local[i].mode;
    if (layout_from_modes(&a->table, l->rank, l->shape, l->mode_count, extents,
                          l->spatial_count, spatial, l->local_count, local, &a->why) != l)
        target_fail("%s: its modes make another layout", text_of(a, l));
}

/* The layout that `op` gave is the function `m`, and the only one that is. */
static void expect(Algebra *a, const char *op, const Layout *l, const Map *m)
{
    if (!l && m->threads > LIMIT_THREADS)
        return;
    if (!l)
        target_fail("%s is refused: %s", op, a->why);
    const Map *is = map_of(a->arena, l);
    if (!map_equal(is, m))
        target_fail("%s gives %s, which is another function", op, text_of(a, l));
    for (unsigned i = 0; i < a->count; i++)
        if ((a->known[i].layout == l) != map_equal(a->known[i].map, m))
            target_fail("%s gives %s, and there is %s", op, text_of(a, l),
                        text_of(a, a->known[i].layout));
    check_places(a, l, m);
    check_runs(a, l, m);
    check_text(a, l);
    check_modes(a, l);
    if (a->count < KNOWN_MAX)
        a->known[a->count++] = (Known){l, m};
}

/* ---- makers --------------------------------------------------------------------- */

static int64_t choose_shape(Algebra *a, unsigned rank, int64_t limit, int64_t *shape)
{
    int64_t size = 1;
    for (unsigned d = 0; d < rank; d++) {
        shape[d] = choose_between(a->choices, 1, choose_rarely(a->choices, 4) ? 16 : 4);
        if (size * shape[d] > limit)
            shape[d] = 1;
        size *= shape[d];
    }
    return size;
}

typedef const Layout *(*Maker)(LayoutTable *, unsigned, const int64_t *, const char **);

static void make_primitive(Algebra *a)
{
    static const Maker makers[] = {layout_local, layout_spatial, layout_column_local,
                                   layout_column_spatial};
    unsigned rank = (unsigned)choose_between(a->choices, 1, RANK_MAX);
    unsigned kind = (unsigned)choose(a->choices, 5);
    int64_t shape[LIMIT_RANK], ones[] = {1, 1, 1, 1}, size = choose_shape(a, rank, 64, shape);
    if (kind == 4)
        expect(a, "replicate", layout_replicate(&a->table, rank, size, &a->why),
               map_new(a->arena, rank, ones, size, 1));
    else
        expect(a, "a primitive", makers[kind](&a->table, rank, shape, &a->why),
               map_dense(a->arena, rank, shape, kind & 1, kind & 2));
}

/* A general form: modes, their order, and where the list of threads ends. */
typedef struct General {
    unsigned count, spatial, locals, rank;
    int64_t shape[LIMIT_RANK], extents[12], spatial_modes[12], local_modes[12];
    int64_t threads, slots;
} General;

static void add_mode(Algebra *a, General *g, unsigned mode)
{
    bool spatial = choose(a->choices, 2);
    int64_t *list = spatial ? g->spatial_modes : g->local_modes;
    unsigned *count = spatial ? &g->spatial : &g->locals;
    unsigned place = (unsigned)choose(a->choices, *count + 1);
    memmove(list + place + 1, list + place, (*count - place) * sizeof *list);
    list[place] = mode;
    ++*count;
    *(spatial ? &g->threads : &g->slots) *= g->extents[mode];
}

/* The element of a thread and slot: digits, most significant first. */
static int64_t general_element(const General *g, int64_t thread, int64_t slot)
{
    int64_t digit[12] = {0}, element = 0;
    for (unsigned i = g->spatial; i-- > 0;) {
        int64_t mode = g->spatial_modes[i], extent = mode < 0 ? -mode : g->extents[mode];
        if (mode >= 0)
            digit[mode] = thread % extent;
        thread /= extent;
    }
    for (unsigned i = g->locals; i-- > 0; slot /= g->extents[g->local_modes[i]])
        digit[g->local_modes[i]] = slot % g->extents[g->local_modes[i]];
    for (unsigned m = 0; m < g->count; m++)
        element = element * g->extents[m] + digit[m];
    return element;
}

static void make_general(Algebra *a)
{
    General g = {.rank = (unsigned)choose_between(a->choices, 1, 3), .threads = 1, .slots = 1};
    for (unsigned d = 0; d < g.rank; d++) {
        g.shape[d] = 1;
        for (uint64_t n = choose(a->choices, 4); n > 0; n--) {
            g.extents[g.count] = choose_between(a->choices, 2, 3);
            g.shape[d] *= g.extents[g.count];
            add_mode(a, &g, g.count++);
        }
    }
    if (choose_rarely(a->choices, 3)) {
        g.spatial_modes[g.spatial++] = -2;
        g.threads *= 2;
    }
    if (g.threads * g.slots > MAP_POINTS)
        return;
    Map *m = map_new(a->arena, g.rank, g.shape, g.threads, g.slots);
    for (int64_t p = 0; p < g.threads * g.slots; p++)
        m->at[p] = general_element(&g, p / g.slots, p % g.slots);
    expect(a, "register_layout",
           layout_from_modes(&a->table, g.rank, g.shape, g.count, g.extents, g.spatial,
                             g.spatial_modes, g.locals, g.local_modes, &a->why), m);
}

/* ---- operations ------------------------------------------------------------------ */

static Known pick(Algebra *a)
{
    return a->known[choose(a->choices, a->count)];
}

static int64_t points(const Map *m)
{
    return m->threads * m->slots;
}

/* Products, and both divisions, which undo them. */
static void multiply(Algebra *a)
{
    Known f = pick(a), g = pick(a);
    if (f.map->rank != g.map->rank || points(f.map) * points(g.map) > MAP_POINTS)
        return;
    const Layout *h = layout_product(&a->table, f.layout, g.layout, &a->why);
    expect(a, "a product", h, map_product(a->arena, f.map, g.map));
    if (h && (layout_divide(&a->table, h, g.layout, &a->why) != f.layout ||
              layout_divide_left(&a->table, h, f.layout, &a->why) != g.layout))
        target_fail("%s is %s times %s, and division does not say so", text_of(a, h),
                    text_of(a, f.layout), text_of(a, g.layout));
}

/* A quotient of any two is one indeed. */
static void divide(Algebra *a)
{
    Known h = pick(a), g = pick(a);
    const Layout *right = layout_divide(&a->table, h.layout, g.layout, &a->why);
    const Layout *left = layout_divide_left(&a->table, h.layout, g.layout, &a->why);
    if (right && layout_product(&a->table, right, g.layout, &a->why) != h.layout)
        target_fail("%s / %s is not %s", text_of(a, h.layout), text_of(a, g.layout),
                    text_of(a, right));
    if (left && layout_product(&a->table, g.layout, left, &a->why) != h.layout)
        target_fail("%s \\ %s is not %s", text_of(a, g.layout), text_of(a, h.layout),
                    text_of(a, left));
}

static void permute(Algebra *a)
{
    Known k = pick(a);
    int64_t order[LIMIT_RANK];
    for (unsigned d = 0; d < k.map->rank; d++) {
        uint64_t place = choose(a->choices, d + 1);
        order[d] = order[place];
        order[place] = d;
    }
    expect(a, "permute", layout_permute(&a->table, k.layout, k.map->rank, order, &a->why),
           map_permute(a->arena, k.map, order));
}

static void concat(Algebra *a)
{
    Known f = pick(a), g = pick(a);
    if (f.map->rank + g.map->rank > RANK_MAX || points(f.map) * points(g.map) > MAP_POINTS)
        return;
    expect(a, "concat", layout_concat(&a->table, f.layout, g.layout, &a->why),
           map_concat(a->arena, f.map, g.map));
}

/* To one dimension always, and back; to a random shape where that may be. */
static void reshape(Algebra *a)
{
    Known k = pick(a);
    int64_t size = 1, shape[LIMIT_RANK];
    unsigned rank = (unsigned)choose_between(a->choices, 1, RANK_MAX);
    for (unsigned d = 0; d < k.map->rank; d++)
        size *= k.map->shape[d];
    const Layout *flat = layout_reshape(&a->table, k.layout, 1, &size, &a->why);
    expect(a, "reshape to one dimension", flat, map_reshape(a->arena, k.map, 1, &size));
    if (layout_reshape(&a->table, flat, k.map->rank, k.map->shape, &a->why) != k.layout)
        target_fail("%s does not come back from one dimension", text_of(a, k.layout));
    for (unsigned d = 0; d < rank; d++) {
        shape[d] = d + 1 < rank ? choose_between(a->choices, 1, size) : size;
        while (size % shape[d])
            shape[d]--;
        size /= shape[d];
    }
    const Layout *l = layout_reshape(&a->table, k.layout, rank, shape, &a->why);
    if (l)
        expect(a, "reshape", l, map_reshape(a->arena, k.map, rank, shape));
}

static void reduce(Algebra *a)
{
    Known k = pick(a);
    unsigned rank = k.map->rank;
    uint32_t dims = (uint32_t)choose(a->choices, UINT64_C(1) << rank);
    const Layout *l = layout_reduce(&a->table, k.layout, dims, &a->why);
    Map *m = map_reduce(a->arena, k.map, dims);
    expect(a, "reduce", l, m);
    int64_t dropped[LIMIT_RANK], shape[LIMIT_RANK];
    unsigned count = 0, left = 0;
    for (unsigned d = 0; d < rank; d++)
        if (dims >> d & 1)
            dropped[count++] = d;
        else
            shape[left++] = m->shape[d];
    if (left > 0)
        expect(a, "drop", layout_drop(&a->table, k.layout, count, dropped, &a->why),
               map_reshape(a->arena, m, left, shape));
}

/* The slice serves the tile at every multiple. */
static void slice(Algebra *a)
{
    Known k = pick(a);
    int64_t shape[LIMIT_RANK], counts[LIMIT_RANK], origin[LIMIT_RANK], tiles = 1;
    for (unsigned d = 0; d < k.map->rank; d++) {
        shape[d] = choose_between(a->choices, 1, k.map->shape[d]);
        while (k.map->shape[d] % shape[d])
            shape[d]++;
        counts[d] = k.map->shape[d] / shape[d];
        tiles *= counts[d];
    }
    const Layout *l = layout_slice(&a->table, k.layout, k.map->rank, shape, &a->why);
    for (int64_t tile = 0; l && tile < tiles; tile++) {
        map_index(k.map->rank, counts, tile, origin);
        for (unsigned d = 0; d < k.map->rank; d++)
            origin[d] *= shape[d];
        const Map *m = map_slice(a->arena, k.map, shape, origin);
        if (!m)
            target_fail("%s has no slice like %s", text_of(a, k.layout), text_of(a, l));
        if (tile == 0)
            expect(a, "slice", l, m);
        else if (!map_equal(m, map_of(a->arena, l)))
            target_fail("%s is not every slice of %s", text_of(a, l), text_of(a, k.layout));
    }
}

/* The slot of `from` that holds in each thread what `slot` of `to` needs, or -1. */
static int64_t common_slot(const Map *from, const Map *to, int64_t slot)
{
    int64_t index[LIMIT_RANK];
    for (int64_t j = 0; j < from->slots; j++) {
        int64_t thread = 0;
        for (; thread < to->threads; thread++) {
            map_index(to->rank, to->shape, to->at[thread * to->slots + slot], index);
            for (unsigned d = 0; d < to->rank; d++)
                index[d] = from->shape[d] == 1 ? 0 : index[d];
            int64_t needed = map_number(from->rank, from->shape, index);
            if (from->at[thread * from->slots + j] != needed)
                break;
        }
        if (thread == to->threads)
            return j;
    }
    return -1;
}

static void broadcast(Algebra *a)
{
    Known from = pick(a), to = pick(a);
    bool fits = from.map->rank == to.map->rank && from.map->threads == to.map->threads;
    for (unsigned d = 0; fits && d < to.map->rank; d++)
        fits = from.map->shape[d] == 1 || from.map->shape[d] == to.map->shape[d];
    if (!fits)
        return;
    int64_t thread;
    bool broadcasts = layout_broadcasts(from.layout, to.layout, &thread);
    for (int64_t slot = 0; slot < to.map->slots; slot++) {
        int64_t expected = common_slot(from.map, to.map, slot);
        if ((expected >= 0) != broadcasts ||
            (broadcasts && layout_broadcast_slot(from.layout, to.layout, slot) != expected))
            target_fail("%s to %s: slot %lld is not told right", text_of(a, from.layout),
                        text_of(a, to.layout), (long long)slot);
    }
}

static void check(Choices *choices, Arena *arena)
{
    static void (*const steps[])(Algebra *) = {
        make_primitive, make_general, multiply, multiply, divide, permute, concat,
        reshape, reduce, slice, broadcast};
    enum { STEPS = sizeof steps / sizeof *steps };
    Algebra a = {.choices = choices, .arena = arena};
    layout_table_init(&a.table, arena);
    make_primitive(&a);
    make_primitive(&a);
    for (int64_t n = choose_between(choices, 1, 24); n > 0 && a.count < KNOWN_MAX; n--)
        steps[choose(choices, STEPS)](&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return target_run(check, data, size);
}
