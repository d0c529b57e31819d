/* Layouts as plain functions. */
#include "layout_map.h"

#include <string.h>

int64_t map_number(unsigned rank, const int64_t *shape, const int64_t *index)
{
    int64_t number = 0;
    for (unsigned d = 0; d < rank; d++)
        number = number * shape[d] + index[d];
    return number;
}

void map_index(unsigned rank, const int64_t *shape, int64_t number, int64_t *index)
{
    for (unsigned d = rank; d-- > 0; number /= shape[d])
        index[d] = number % shape[d];
}

Map *map_new(Arena *a, unsigned rank, const int64_t *shape, int64_t threads, int64_t slots)
{
    Map *m = arena_new(a, Map);
    *m = (Map){.rank = rank, .threads = threads, .slots = slots};
    memcpy(m->shape, shape, rank * sizeof *shape);
    m->at = arena_array(a, int64_t, (size_t)(threads * slots));
    return m;
}

Map *map_of(Arena *a, const Layout *l)
{
    Map *m = map_new(a, l->rank, l->shape, l->threads, l->slots);
    int64_t index[LIMIT_RANK];
    for (int64_t p = 0; p < l->threads * l->slots; p++) {
        layout_index(l, p / l->slots, p % l->slots, index);
        m->at[p] = map_number(l->rank, l->shape, index);
    }
    return m;
}

bool map_equal(const Map *a, const Map *b)
{
    return a->rank == b->rank && a->threads == b->threads && a->slots == b->slots &&
           !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) &&
           !memcmp(a->at, b->at, (size_t)(a->threads * a->slots) * sizeof *a->at);
}

Map *map_dense(Arena *a, unsigned rank, const int64_t *shape, bool spatial, bool column)
{
    int64_t size = 1, reversed[LIMIT_RANK], index[LIMIT_RANK], swapped[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++) {
        size *= shape[d];
        reversed[d] = shape[rank - 1 - d];
    }
    Map *m = map_new(a, rank, shape, spatial ? size : 1, spatial ? 1 : size);
    for (int64_t i = 0; i < size; i++) {
        map_index(rank, reversed, i, index);
        for (unsigned d = 0; d < rank; d++)
            swapped[d] = index[rank - 1 - d];
        m->at[i] = column ? map_number(rank, shape, swapped) : i;
    }
    return m;
}

/* The element (thread, slot) of a map whose threads and slots are pairs of f's and g's. */
static int64_t outer(const Map *f, const Map *g, int64_t t, int64_t i)
{
    return f->at[t / g->threads * f->slots + i / g->slots];
}

static int64_t inner(const Map *g, int64_t t, int64_t i)
{
    return g->at[t % g->threads * g->slots + i % g->slots];
}

Map *map_product(Arena *a, const Map *f, const Map *g)
{
    int64_t shape[LIMIT_RANK], i[LIMIT_RANK], j[LIMIT_RANK];
    for (unsigned d = 0; d < f->rank; d++)
        shape[d] = f->shape[d] * g->shape[d];
    Map *h = map_new(a, f->rank, shape, f->threads * g->threads, f->slots * g->slots);
    for (int64_t p = 0; p < h->threads * h->slots; p++) {
        int64_t t = p / h->slots, s = p % h->slots;
        map_index(f->rank, f->shape, outer(f, g, t, s), i);
        map_index(g->rank, g->shape, inner(g, t, s), j);
        for (unsigned d = 0; d < f->rank; d++)
            i[d] = i[d] * g->shape[d] + j[d];
        h->at[p] = map_number(h->rank, shape, i);
    }
    return h;
}

Map *map_concat(Arena *a, const Map *f, const Map *g)
{
    int64_t shape[LIMIT_RANK], tile = 1;
    memcpy(shape, f->shape, f->rank * sizeof *shape);
    memcpy(shape + f->rank, g->shape, g->rank * sizeof *shape);
    for (unsigned d = 0; d < g->rank; d++)
        tile *= g->shape[d];
    Map *h = map_new(a, f->rank + g->rank, shape, f->threads * g->threads,
                     f->slots * g->slots);
    for (int64_t p = 0; p < h->threads * h->slots; p++) {
        int64_t t = p / h->slots, s = p % h->slots;
        h->at[p] = outer(f, g, t, s) * tile + inner(g, t, s);
    }
    return h;
}

Map *map_permute(Arena *a, const Map *m, const int64_t *order)
{
    int64_t shape[LIMIT_RANK], index[LIMIT_RANK], to[LIMIT_RANK];
    for (unsigned d = 0; d < m->rank; d++)
        shape[d] = m->shape[order[d]];
    Map *r = map_new(a, m->rank, shape, m->threads, m->slots);
    for (int64_t p = 0; p < m->threads * m->slots; p++) {
        map_index(m->rank, m->shape, m->at[p], index);
        for (unsigned d = 0; d < m->rank; d++)
            to[d] = index[order[d]];
        r->at[p] = map_number(r->rank, shape, to);
    }
    return r;
}

Map *map_reshape(Arena *a, const Map *m, unsigned rank, const int64_t *shape)
{
    Map *r = map_new(a, rank, shape, m->threads, m->slots);
    memcpy(r->at, m->at, (size_t)(m->threads * m->slots) * sizeof *m->at);
    return r;
}

/* Keeps the first slot of a thread's elements that are one now. */
Map *map_reduce(Arena *a, const Map *m, uint32_t dims)
{
    int64_t shape[LIMIT_RANK], index[LIMIT_RANK];
    for (unsigned d = 0; d < m->rank; d++)
        shape[d] = dims >> d & 1 ? 1 : m->shape[d];
    Map *r = map_new(a, m->rank, shape, m->threads, m->slots);
    for (int64_t t = 0; t < m->threads; t++) {
        int64_t count = 0, *held = r->at + t * r->slots;
        for (int64_t i = 0; i < m->slots; i++) {
            map_index(m->rank, m->shape, m->at[t * m->slots + i], index);
            for (unsigned d = 0; d < m->rank; d++)
                index[d] = dims >> d & 1 ? 0 : index[d];
            int64_t number = map_number(m->rank, shape, index), j = 0;
            while (j < count && held[j] != number)
                j++;
            held[j] = number;
            count += j == count;
        }
        r->slots = count;           /* the same for all, as threads differ by shifts */
    }
    return r;
}

/* The number of the element in the tile at `origin`, or -1. */
static int64_t place_in_tile(const Map *m, int64_t element, const int64_t *shape,
                             const int64_t *origin)
{
    int64_t index[LIMIT_RANK];
    map_index(m->rank, m->shape, element, index);
    for (unsigned d = 0; d < m->rank; d++) {
        index[d] -= origin[d];
        if (index[d] < 0 || index[d] >= shape[d])
            return -1;
    }
    return map_number(m->rank, shape, index);
}

Map *map_slice(Arena *a, const Map *m, const int64_t *shape, const int64_t *origin)
{
    Map *r = map_new(a, m->rank, shape, m->threads, m->slots);
    int64_t slots = -1;
    for (int64_t t = 0; t < m->threads; t++) {
        int64_t count = 0, *held = r->at + t * (slots < 0 ? m->slots : slots);
        for (int64_t i = 0; i < m->slots; i++) {
            int64_t place = place_in_tile(m, m->at[t * m->slots + i], shape, origin);
            if (place >= 0)
                held[count++] = place;
            if (count > (slots < 0 ? m->slots : slots))
                return NULL;
        }
        if (count == 0 || (slots >= 0 && count != slots))
            return NULL;
        slots = count;
    }
    r->slots = slots;
    return r;
}
