/* Operations that give a layout other dimensions: permute, reshape, drop,
 * concat, slice. They work on digits (see layout.c): they rename, drop or cut
 * digits, and digit_push joins what has become one walk.
 *
 *     l = local(2, 1).spatial(8, 4).local(1, 2)
 *                       threads                    slots
 *     l                 8 x 1 in 0,  4 x 2 in 1    2 x 8 in 0,  2 x 1 in 1
 *     permute [1, 0]    8 x 1 in 1,  4 x 2 in 0    2 x 8 in 1,  2 x 1 in 0
 *     reshape [128]     8 x 8 in 0,  4 x 2 in 0    2 x 64 in 0, 2 x 1 in 0
 *                       = 32 x 2 in 0
 *     drop 0            8 replicas,  4 x 2 in 0                 2 x 1 in 0
 *     slice [8, 8]      8 x 1 in 0,  4 x 2 in 1                 2 x 1 in 1     */
#include "types/layout_digits.h"

#include <string.h>

static bool check_count(LayoutTable *t, const Layout *l, const char *what, unsigned count,
                        const char **why)
{
    if (count == l->rank)
        return true;
    return refuse(t, why, "%u %s for a layout of rank %u", count, what, l->rank);
}

/* Marks dimensions, each at most once. */
static bool mark_dims(LayoutTable *t, const Layout *l, unsigned count, const int64_t *dims,
                      bool *marked, const char **why)
{
    for (unsigned i = 0; i < count; i++) {
        if (dims[i] < 0 || dims[i] >= l->rank)
            return refuse(t, why, "a layout of rank %u has no dimension %" PRId64, l->rank,
                          dims[i]);
        if (marked[dims[i]])
            return refuse(t, why, "dimension %" PRId64 " stands twice in the list", dims[i]);
        marked[dims[i]] = true;
    }
    return true;
}

/* Appends the digits of `from`, each in dimension `to_dim` of its own. */
static void append_renamed(DigitList *to, const DigitList *from, const int *to_dim)
{
    for (unsigned i = 0; i < from->count; i++) {
        Digit d = from->digit[i];
        d.dim = d.dim == REPLICA ? REPLICA : to_dim[d.dim];
        digit_push(to, d);
    }
}

/* ---- permute ----------------------------------------------------------------- */

const Layout *layout_permute(LayoutTable *t, const Layout *l, unsigned count,
                             const int64_t *order, const char **why)
{
    bool seen[LIMIT_RANK] = {false};
    int to_dim[LIMIT_RANK];
    Strided s = {.rank = l->rank}, from = layout_expand(l);
    if (!check_count(t, l, "entries of the order", count, why) ||
        !mark_dims(t, l, count, order, seen, why))
        return NULL;
    for (unsigned d = 0; d < s.rank; d++) {
        s.shape[d] = l->shape[order[d]];
        to_dim[order[d]] = (int)d;
    }
    append_renamed(&s.spatial, &from.spatial, to_dim);
    append_renamed(&s.local, &from.local, to_dim);
    return layout_intern(t, &s);
}

/* ---- reshape ----------------------------------------------------------------- */

/* weights[d]: elements of a row-major tensor that a step in dimension d moves.
 * Returns the number of all elements. */
static int64_t row_major(unsigned rank, const int64_t *shape, int64_t *weights)
{
    int64_t size = 1;
    for (unsigned d = rank; d--;) {
        weights[d] = size;
        size = times(size, shape[d]);
    }
    return size;
}

/* Appends the digits of `from` as steps in the tensor's row-major numbers. */
static void append_flat(DigitList *to, const DigitList *from, const int64_t *weights)
{
    for (unsigned i = 0; i < from->count; i++) {
        Digit d = from->digit[i];
        if (d.dim != REPLICA)
            d = (Digit){d.extent, d.stride * weights[d.dim], 0};
        digit_push(to, d);
    }
}

/* Appends the digit, which steps in row-major numbers, to `list`, cut where
 * dimensions of the new shape meet inside it. A weight at or below the digit's
 * stride divides it, unless it lies inside another digit, which is refused. */
static bool push_cut(LayoutTable *t, DigitList *list, Digit digit, unsigned rank,
                     const int64_t *weights, const char **why)
{
    int64_t mode = digit.extent;
    for (unsigned d = 0; d < rank; d++) {
        int64_t end = digit.stride * digit.extent, weight = weights[d];
        if (weight >= end || digit.extent == 1)
            continue;
        bool cut = weight > digit.stride;
        if (cut && (weight % digit.stride || end % weight))
            return refuse(t, why, "a mode of extent %" PRId64 " would lie across dimensions %u "
                          "and %u of the new shape", mode, d, d + 1);
        int64_t inner = cut ? weight / digit.stride : 1;
        digit_push(list, (Digit){digit.extent / inner, digit.stride * inner / weight, (int)d});
        digit.extent = inner;
    }
    return true;
}

static bool cut_digits(LayoutTable *t, const DigitList *from, unsigned rank,
                       const int64_t *weights, DigitList *to, const char **why)
{
    for (unsigned i = 0; i < from->count; i++) {
        Digit d = from->digit[i];
        if (d.dim == REPLICA)
            digit_push(to, d);
        else if (!push_cut(t, to, d, rank, weights, why))
            return false;
    }
    return true;
}

const Layout *layout_reshape(LayoutTable *t, const Layout *l, unsigned rank,
                             const int64_t *shape, const char **why)
{
    int64_t before[LIMIT_RANK], after[LIMIT_RANK];
    DigitList spatial = {0}, local = {0};
    Strided s = {.rank = rank}, from = layout_expand(l);
    if (!check_shape(t, rank, shape, why))
        return NULL;
    int64_t old_size = row_major(l->rank, l->shape, before);
    int64_t new_size = row_major(rank, shape, after);
    if (old_size != new_size) {
        refuse(t, why, "a layout of %" PRId64 " elements has no shape of %" PRId64, old_size,
               new_size);
        return NULL;
    }
    memcpy(s.shape, shape, rank * sizeof *shape);
    append_flat(&spatial, &from.spatial, before);
    append_flat(&local, &from.local, before);
    if (!cut_digits(t, &spatial, rank, after, &s.spatial, why) ||
        !cut_digits(t, &local, rank, after, &s.local, why))
        return NULL;
    return layout_intern(t, &s);
}

/* ---- drop -------------------------------------------------------------------- */

const Layout *layout_drop(LayoutTable *t, const Layout *l, unsigned count, const int64_t *dims,
                          const char **why)
{
    bool dropped[LIMIT_RANK] = {false};
    int64_t shape[LIMIT_RANK];
    unsigned rank = 0;
    uint32_t mask = 0;
    if (!mark_dims(t, l, count, dims, dropped, why))
        return NULL;
    for (unsigned d = 0; d < l->rank; d++) {
        mask |= (uint32_t)dropped[d] << d;
        if (!dropped[d])
            shape[rank++] = l->shape[d];
    }
    if (rank == 0) {
        refuse(t, why, "a layout keeps at least one dimension, all %u are reduced", l->rank);
        return NULL;
    }
    const Layout *reduced = layout_reduce(t, l, mask, why);
    return reduced ? layout_reshape(t, reduced, rank, shape, why) : NULL;
}

/* ---- concat ------------------------------------------------------------------ */

const Layout *layout_concat(LayoutTable *t, const Layout *f, const Layout *g,
                            const char **why)
{
    int f_dims[LIMIT_RANK], g_dims[LIMIT_RANK];
    Strided s = {.rank = f->rank + g->rank};
    Strided outer = layout_expand(f), inner = layout_expand(g);
    if (!check_rank(t, s.rank, why) ||
        !check_sizes(t, f->threads * g->threads, f->slots * g->slots, why))
        return NULL;
    memcpy(s.shape, f->shape, f->rank * sizeof *f->shape);
    memcpy(s.shape + f->rank, g->shape, g->rank * sizeof *g->shape);
    for (unsigned d = 0; d < LIMIT_RANK; d++) {
        f_dims[d] = (int)d;
        g_dims[d] = (int)(f->rank + d);
    }
    append_renamed(&s.spatial, &outer.spatial, f_dims);
    append_renamed(&s.spatial, &inner.spatial, g_dims);
    append_renamed(&s.local, &outer.local, f_dims);
    append_renamed(&s.local, &inner.local, g_dims);
    return layout_intern(t, &s);
}

/* ---- slice ------------------------------------------------------------------- */

/* Returns true when the digit chooses among tiles, wholly or in part. */
static bool leaves_tile(const Digit *d, const int64_t *shape)
{
    return d->dim != REPLICA && d->stride * d->extent > shape[d->dim];
}

static bool check_tile(LayoutTable *t, const Layout *l, const int64_t *shape, const char **why)
{
    for (unsigned d = 0; d < l->rank; d++)
        if (l->shape[d] % shape[d])
            return refuse(t, why, "extent %" PRId64 " of dimension %u is not a multiple of "
                          "the slice's %" PRId64, l->shape[d], d, shape[d]);
    return true;
}

static bool check_threads(LayoutTable *t, const DigitList *spatial, const int64_t *shape,
                          const char **why)
{
    for (unsigned i = 0; i < spatial->count; i++)
        if (leaves_tile(&spatial->digit[i], shape))
            return refuse(t, why, "a slice of extent %" PRId64 " in dimension %d leaves "
                          "threads without elements", shape[spatial->digit[i].dim],
                          spatial->digit[i].dim);
    return true;
}

/* Returns the digits without those that only choose among tiles. Digits that were apart
 * join where one of these lay between, and only then can be cut as one:
 *
 *     column_local(2, 3).local(1, 2)     3@1 2@0 2@1     slice [1, 3]: 6@1, cut to 3@1 */
static DigitList without_outer(const DigitList *from, const int64_t *shape)
{
    DigitList inner = {0};
    for (unsigned i = 0; i < from->count; i++) {
        const Digit *d = &from->digit[i];
        if (!leaves_tile(d, shape) || d->stride < shape[d->dim])
            digit_push(&inner, *d);
    }
    return inner;
}

/* Appends of each digit the steps inside a tile. */
static bool append_inside(LayoutTable *t, DigitList *to, const DigitList *from,
                          const int64_t *shape, const char **why)
{
    DigitList inner = without_outer(from, shape);
    for (unsigned i = 0; i < inner.count; i++) {
        Digit d = inner.digit[i];
        if (leaves_tile(&d, shape)) {
            int64_t inside = shape[d.dim] / d.stride;
            if (shape[d.dim] % d.stride || d.extent % inside)
                return refuse(t, why, "a slice of extent %" PRId64 " in dimension %d cuts a "
                              "mode of extent %" PRId64 " and stride %" PRId64,
                              shape[d.dim], d.dim, d.extent, d.stride);
            d.extent = inside;
        }
        digit_push(to, d);
    }
    return true;
}

const Layout *layout_slice(LayoutTable *t, const Layout *l, unsigned count,
                           const int64_t *shape, const char **why)
{
    Strided s = {.rank = l->rank}, from = layout_expand(l);
    if (!check_count(t, l, "extents of a slice", count, why) ||
        !check_shape(t, count, shape, why) || !check_tile(t, l, shape, why) ||
        !check_threads(t, &from.spatial, shape, why) ||
        !append_inside(t, &s.local, &from.local, shape, why))
        return NULL;
    memcpy(s.shape, shape, count * sizeof *shape);
    s.spatial = from.spatial;
    return layout_intern(t, &s);
}
