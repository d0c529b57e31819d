/* Register layouts: makers, canonical form, product and queries.
 *
 * The work is done on digits. A thread number is a numeral in mixed radix, one
 * digit for each entry of `spatial`, and a slot number one for each entry of
 * `local`; a step of a digit moves `stride` elements along its dimension. The
 * strides of one dimension's digits form a tower from its extent down to 1:
 *
 *     local(2, 1).spatial(8, 4).local(1, 2), shape [16, 8]
 *
 *     threads  8 x stride 1 in dim 0,   4 x stride 2 in dim 1
 *     slots    2 x stride 8 in dim 0,   2 x stride 1 in dim 1
 *
 * So the product f.g is f's digits, their strides times g's extents, followed
 * by g's digits.
 *
 * The canonical form joins a digit to the one after it when both walk one
 * dimension and the outer stride is the inner stride times the inner extent.
 * It is unique: the last digit's extent is the length of the longest run from
 * 0 on which the function is linear, the digit before it is found so at the
 * multiples of that extent, and so on; strides then fix the modes' order. */
#include "types/layout_digits.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

/* ---- digits ---------------------------------------------------------------- */

void digit_push(DigitList *list, Digit d)
{
    if (d.extent == 1)
        return;
    Digit *last = list->count ? &list->digit[list->count - 1] : NULL;
    if (last && last->dim == d.dim && last->stride == d.stride * d.extent) {
        last->extent *= d.extent;
        last->stride = d.stride;
        return;
    }
    assert(d.extent > 1 && (d.dim == REPLICA) == (d.stride == 0));
    assert(list->count < LAYOUT_MODES);
    list->digit[list->count++] = d;
}

static void mode_strides(unsigned count, const LayoutMode *modes, int64_t *strides)
{
    for (unsigned m = count; m--;) {
        bool innermost = m + 1 == count || modes[m + 1].dim != modes[m].dim;
        strides[m] = innermost ? 1 : strides[m + 1] * modes[m + 1].extent;
    }
}

static void list_expand(DigitList *list, unsigned count, const LayoutDigit *digits,
                        const LayoutMode *modes, const int64_t *strides)
{
    for (unsigned i = 0; i < count; i++) {
        int mode = digits[i].mode;
        Digit d = {digits[i].extent, 0, REPLICA};
        if (mode >= 0)
            d = (Digit){digits[i].extent, strides[mode], modes[mode].dim};
        digit_push(list, d);
    }
}

Strided layout_expand(const Layout *l)
{
    Strided s = {.rank = l->rank};
    int64_t strides[LAYOUT_MODES];
    memcpy(s.shape, l->shape, sizeof s.shape);
    mode_strides(l->mode_count, l->modes, strides);
    list_expand(&s.spatial, l->spatial_count, l->spatial, l->modes, strides);
    list_expand(&s.local, l->local_count, l->local, l->modes, strides);
    return s;
}

/* ---- interning ------------------------------------------------------------- */

static uint64_t hash_digits(uint64_t hash, unsigned count, const LayoutDigit *digits)
{
    hash = hash_u64(hash, count);
    for (unsigned i = 0; i < count; i++) {
        hash = hash_u64(hash, (uint64_t)digits[i].extent);
        hash = hash_u64(hash, (uint64_t)digits[i].mode);
    }
    return hash;
}

/* The modes need not be hashed or compared: they follow from the digits, and
 * their dimensions from the shape. */
static uint64_t layout_hash(const Layout *l)
{
    uint64_t hash = hash_bytes(l->rank, l->shape, l->rank * sizeof *l->shape);
    hash = hash_digits(hash, l->spatial_count, l->spatial);
    return hash_digits(hash, l->local_count, l->local);
}

static bool digits_equal(unsigned a_count, const LayoutDigit *a, unsigned b_count,
                         const LayoutDigit *b)
{
    if (a_count != b_count)
        return false;
    for (unsigned i = 0; i < a_count; i++)
        if (a[i].extent != b[i].extent || a[i].mode != b[i].mode)
            return false;
    return true;
}

static bool layout_equal(const void *x, const void *y)
{
    const Layout *a = x, *b = y;
    return a->rank == b->rank &&
           !memcmp(a->shape, b->shape, a->rank * sizeof *a->shape) &&
           digits_equal(a->spatial_count, a->spatial, b->spatial_count, b->spatial) &&
           digits_equal(a->local_count, a->local, b->local_count, b->local);
}

void layout_table_init(LayoutTable *table, Arena *arena)
{
    table->arena = arena;
    intern_init(&table->set, arena, layout_equal);
}

/* Makes the digit that walks `dim` from `extent` elements down the next mode
 * if it is in the list, and returns its stride; otherwise returns 0. */
static int64_t take_mode(Layout *l, const DigitList *list, LayoutDigit *digits, unsigned dim,
                         int64_t extent)
{
    for (unsigned i = 0; i < list->count; i++) {
        const Digit *d = &list->digit[i];
        if (d->dim != (int)dim || d->stride * d->extent != extent)
            continue;
        digits[i].mode = (int16_t)l->mode_count;
        l->modes[l->mode_count++] = (LayoutMode){d->extent, (uint8_t)dim};
        return d->stride;
    }
    return 0;
}

static void number_modes(Layout *l, const Strided *s)
{
    for (unsigned dim = 0; dim < s->rank; dim++)
        for (int64_t extent = s->shape[dim]; extent > 1;) {
            int64_t stride = take_mode(l, &s->spatial, l->spatial, dim, extent);
            if (!stride)
                stride = take_mode(l, &s->local, l->local, dim, extent);
            assert(stride && "the digits of a dimension cover it");
            extent = stride;
        }
}

/* Copies extents, every digit a replica until its mode is numbered. Returns
 * their product. */
static int64_t copy_digits(LayoutDigit *to, const DigitList *from)
{
    int64_t size = 1;
    for (unsigned i = 0; i < from->count; i++) {
        to[i] = (LayoutDigit){from->digit[i].extent, REPLICA};
        size *= from->digit[i].extent;
    }
    return size;
}

const Layout *layout_intern(LayoutTable *t, const Strided *s)
{
    Layout key = {.rank = s->rank, .spatial_count = s->spatial.count,
                  .local_count = s->local.count};
    memcpy(key.shape, s->shape, s->rank * sizeof *s->shape);
    key.threads = copy_digits(key.spatial, &s->spatial);
    key.slots = copy_digits(key.local, &s->local);
    number_modes(&key, s);

    uint64_t hash = layout_hash(&key);
    const Layout *known = intern_find(&t->set, hash, &key);
    if (known)
        return known;
    const Layout *fresh = arena_copy(t->arena, &key, sizeof key);
    intern_add(&t->set, hash, fresh);
    return fresh;
}

/* ---- primitives ------------------------------------------------------------ */

typedef enum Order { ROW_MAJOR, COLUMN_MAJOR } Order;

static void push_dense(DigitList *list, unsigned rank, const int64_t *shape, Order order)
{
    for (unsigned i = 0; i < rank; i++) {
        unsigned dim = order == ROW_MAJOR ? i : rank - 1 - i;
        digit_push(list, (Digit){shape[dim], 1, (int)dim});
    }
}

static int64_t shape_size(unsigned rank, const int64_t *shape)
{
    int64_t size = 1;
    for (unsigned d = 0; d < rank; d++)
        size = times(size, shape[d]);
    return size;
}

static const Layout *make_local(LayoutTable *t, unsigned rank, const int64_t *shape,
                                Order order, const char **why)
{
    Strided s = {.rank = rank};
    if (!check_shape(t, rank, shape, why) ||
        !check_sizes(t, 1, shape_size(rank, shape), why))
        return NULL;
    memcpy(s.shape, shape, rank * sizeof *shape);
    push_dense(&s.local, rank, shape, order);
    return layout_intern(t, &s);
}

static const Layout *make_spatial(LayoutTable *t, unsigned rank, const int64_t *shape,
                                  Order order, const char **why)
{
    Strided s = {.rank = rank};
    if (!check_shape(t, rank, shape, why) ||
        !check_sizes(t, shape_size(rank, shape), 1, why))
        return NULL;
    memcpy(s.shape, shape, rank * sizeof *shape);
    push_dense(&s.spatial, rank, shape, order);
    return layout_intern(t, &s);
}

const Layout *layout_local(LayoutTable *t, unsigned rank, const int64_t *shape,
                           const char **why)
{
    return make_local(t, rank, shape, ROW_MAJOR, why);
}

const Layout *layout_spatial(LayoutTable *t, unsigned rank, const int64_t *shape,
                             const char **why)
{
    return make_spatial(t, rank, shape, ROW_MAJOR, why);
}

const Layout *layout_column_local(LayoutTable *t, unsigned rank, const int64_t *shape,
                                  const char **why)
{
    return make_local(t, rank, shape, COLUMN_MAJOR, why);
}

const Layout *layout_column_spatial(LayoutTable *t, unsigned rank, const int64_t *shape,
                                    const char **why)
{
    return make_spatial(t, rank, shape, COLUMN_MAJOR, why);
}

static bool check_replica(LayoutTable *t, int64_t n, const char **why)
{
    if (n < 1)
        return refuse(t, why, "a replica has at least 1 thread, got %" PRId64, n);
    return check_sizes(t, n, 1, why);
}

const Layout *layout_replicate(LayoutTable *t, unsigned rank, int64_t n, const char **why)
{
    if (!check_rank(t, rank, why) || !check_replica(t, n, why))
        return NULL;
    Strided s = {.rank = rank};
    for (unsigned d = 0; d < rank; d++)
        s.shape[d] = 1;
    digit_push(&s.spatial, (Digit){n, 0, REPLICA});
    return layout_intern(t, &s);
}

/* ---- product -------------------------------------------------------------- */

/* Appends the digits of `from` with each stride times its dimension's scale. */
static void append_scaled(DigitList *to, const DigitList *from, const int64_t *scale)
{
    for (unsigned i = 0; i < from->count; i++) {
        Digit d = from->digit[i];
        if (d.dim != REPLICA && scale)
            d.stride *= scale[d.dim];
        digit_push(to, d);
    }
}

const Layout *layout_product(LayoutTable *t, const Layout *f, const Layout *g,
                             const char **why)
{
    if (!check_ranks(t, f, g, why) ||
        !check_sizes(t, f->threads * g->threads, f->slots * g->slots, why))
        return NULL;
    Strided outer = layout_expand(f), inner = layout_expand(g), s = {.rank = f->rank};
    for (unsigned d = 0; d < s.rank; d++)
        s.shape[d] = f->shape[d] * g->shape[d];
    append_scaled(&s.spatial, &outer.spatial, g->shape);
    append_scaled(&s.spatial, &inner.spatial, NULL);
    append_scaled(&s.local, &outer.local, g->shape);
    append_scaled(&s.local, &inner.local, NULL);
    return layout_intern(t, &s);
}

/* ---- the general form ------------------------------------------------------ */

static bool check_modes(LayoutTable *t, unsigned count, const int64_t *extents,
                        const char **why)
{
    if (count > LAYOUT_MODES)
        return refuse(t, why, "a layout has at most %d modes, got %u", LAYOUT_MODES, count);
    for (unsigned m = 0; m < count; m++)
        if (extents[m] < 1)
            return refuse(t, why, "an extent is at least 1, mode %u has %" PRId64, m,
                          extents[m]);
    return true;
}

/* Gives each mode its dimension: a dimension ends where the product of its
 * modes reaches its extent, so modes of extent 1 may stand anywhere. */
static bool assign_modes(LayoutTable *t, unsigned rank, const int64_t *shape, unsigned count,
                         const int64_t *extents, LayoutMode *modes, const char **why)
{
    unsigned m = 0;
    for (unsigned d = 0; d < rank; d++) {
        int64_t product = 1;
        for (; m < count && product < shape[d]; m++) {
            product = times(product, extents[m]);
            modes[m] = (LayoutMode){extents[m], (uint8_t)d};
        }
        if (product != shape[d])
            return refuse(t, why, "the modes of dimension %u multiply to %" PRId64
                          ", its extent is %" PRId64, d, product, shape[d]);
    }
    for (; m < count; m++) {
        if (extents[m] != 1)
            return refuse(t, why, "mode %u of extent %" PRId64 " is left over: the modes "
                          "before it make the whole shape", m, extents[m]);
        modes[m] = (LayoutMode){1, (uint8_t)(rank - 1)};
    }
    return true;
}

typedef struct ModeUse {
    unsigned count;
    bool used[LAYOUT_MODES];
} ModeUse;

static bool use_mode(LayoutTable *t, ModeUse *use, int64_t mode, const char **why)
{
    if (mode >= use->count)
        return refuse(t, why, "mode %" PRId64 " does not exist, mode_shape has %u", mode,
                      use->count);
    if (use->used[mode])
        return refuse(t, why, "mode %" PRId64 " stands more than once in spatial_modes and "
                      "local_modes", mode);
    use->used[mode] = true;
    return true;
}

static bool check_count(LayoutTable *t, const char *list, unsigned count, const char **why)
{
    if (count <= LAYOUT_MODES)
        return true;
    return refuse(t, why, "%s has at most %d entries, got %u", list, LAYOUT_MODES, count);
}

/* Turns spatial_modes into digits. */
static bool read_spatial(LayoutTable *t, unsigned count, const int64_t *entries,
                         const LayoutMode *modes, ModeUse *use, LayoutDigit *digits,
                         const char **why)
{
    if (!check_count(t, "spatial_modes", count, why))
        return false;
    for (unsigned i = 0; i < count; i++) {
        int64_t mode = entries[i];
        if (mode < 0) {
            int64_t n = mode == INT64_MIN ? INT64_MAX : -mode;
            if (!check_replica(t, n, why))
                return false;
            digits[i] = (LayoutDigit){n, REPLICA};
            continue;
        }
        if (!use_mode(t, use, mode, why))
            return false;
        digits[i] = (LayoutDigit){modes[mode].extent, (int16_t)mode};
    }
    return true;
}

/* Turns local_modes into digits. */
static bool read_local(LayoutTable *t, unsigned count, const int64_t *entries,
                       const LayoutMode *modes, ModeUse *use, LayoutDigit *digits,
                       const char **why)
{
    if (!check_count(t, "local_modes", count, why))
        return false;
    for (unsigned i = 0; i < count; i++) {
        int64_t mode = entries[i];
        if (mode < 0)
            return refuse(t, why, "only spatial_modes has replicas, local_modes has %" PRId64,
                          mode);
        if (!use_mode(t, use, mode, why))
            return false;
        digits[i] = (LayoutDigit){modes[mode].extent, (int16_t)mode};
    }
    return true;
}

static bool check_all_used(LayoutTable *t, const LayoutMode *modes, const ModeUse *use,
                           const char **why)
{
    for (unsigned m = 0; m < use->count; m++)
        if (!use->used[m] && modes[m].extent > 1)
            return refuse(t, why, "mode %u of extent %" PRId64 " is in neither spatial_modes "
                          "nor local_modes", m, modes[m].extent);
    return true;
}

static int64_t digits_size(unsigned count, const LayoutDigit *digits)
{
    int64_t size = 1;
    for (unsigned i = 0; i < count; i++)
        size = times(size, digits[i].extent);
    return size;
}

const Layout *layout_from_modes(LayoutTable *t, unsigned rank, const int64_t *shape,
                                unsigned mode_count, const int64_t *mode_shape,
                                unsigned spatial_count, const int64_t *spatial_modes,
                                unsigned local_count, const int64_t *local_modes,
                                const char **why)
{
    LayoutMode modes[LAYOUT_MODES];
    LayoutDigit spatial[LAYOUT_MODES], local[LAYOUT_MODES];
    ModeUse use = {.count = mode_count};
    if (!check_shape(t, rank, shape, why) || !check_modes(t, mode_count, mode_shape, why) ||
        !assign_modes(t, rank, shape, mode_count, mode_shape, modes, why) ||
        !read_spatial(t, spatial_count, spatial_modes, modes, &use, spatial, why) ||
        !read_local(t, local_count, local_modes, modes, &use, local, why) ||
        !check_all_used(t, modes, &use, why) ||
        !check_sizes(t, digits_size(spatial_count, spatial), digits_size(local_count, local),
                     why))
        return NULL;

    Strided s = {.rank = rank};
    int64_t strides[LAYOUT_MODES];
    memcpy(s.shape, shape, rank * sizeof *shape);
    mode_strides(mode_count, modes, strides);
    list_expand(&s.spatial, spatial_count, spatial, modes, strides);
    list_expand(&s.local, local_count, local, modes, strides);
    return layout_intern(t, &s);
}

/* ---- queries --------------------------------------------------------------- */

/* Splits `number` into the values of the modes that `digits` names. */
static void unravel(int64_t number, unsigned count, const LayoutDigit *digits, int64_t *values)
{
    for (unsigned i = count; i--; number /= digits[i].extent)
        if (digits[i].mode >= 0)
            values[digits[i].mode] = number % digits[i].extent;
}

/* The inverse of unravel, with replicas at 0. */
static int64_t ravel(unsigned count, const LayoutDigit *digits, const int64_t *values)
{
    int64_t number = 0;
    for (unsigned i = 0; i < count; i++) {
        int64_t value = digits[i].mode >= 0 ? values[digits[i].mode] : 0;
        number = number * digits[i].extent + value;
    }
    return number;
}

void layout_index(const Layout *l, int64_t thread, int64_t slot, int64_t *index)
{
    int64_t values[LAYOUT_MODES];
    unravel(thread, l->spatial_count, l->spatial, values);
    unravel(slot, l->local_count, l->local, values);
    for (unsigned d = 0; d < l->rank; d++)
        index[d] = 0;
    for (unsigned m = 0; m < l->mode_count; m++) {
        int64_t *i = &index[l->modes[m].dim];
        *i = *i * l->modes[m].extent + values[m];
    }
}

void layout_place(const Layout *l, const int64_t *index, int64_t *thread, int64_t *slot)
{
    int64_t values[LAYOUT_MODES], rest[LIMIT_RANK];
    memcpy(rest, index, l->rank * sizeof *rest);
    for (unsigned m = l->mode_count; m--;) {
        values[m] = rest[l->modes[m].dim] % l->modes[m].extent;
        rest[l->modes[m].dim] /= l->modes[m].extent;
    }
    *thread = ravel(l->spatial_count, l->spatial, values);
    *slot = ravel(l->local_count, l->local, values);
}

/* Returns the product of the extents after the entry of `mode`, or 0 where it has none. */
static int64_t weight_in(const LayoutDigit *list, unsigned count, unsigned mode)
{
    int64_t weight = 1;
    for (unsigned i = count; i-- > 0; weight *= list[i].extent)
        if (list[i].mode == (int)mode)
            return weight;
    return 0;
}

int64_t layout_mode_weight(const Layout *l, unsigned mode, bool *spatial)
{
    int64_t weight = weight_in(l->spatial, l->spatial_count, mode);
    *spatial = weight > 0;
    return *spatial ? weight : weight_in(l->local, l->local_count, mode);
}

int64_t layout_replicas(const Layout *l)
{
    int64_t n = 1;
    for (unsigned i = 0; i < l->spatial_count; i++)
        if (l->spatial[i].mode < 0)
            n *= l->spatial[i].extent;
    return n;
}

/* A walk by steps of one is the least significant slot digit on the innermost
 * mode of `dim`; the digit before it is no continuation, or both were one. */
int64_t layout_run(const Layout *l, unsigned dim)
{
    if (!l->local_count)
        return 1;
    const LayoutDigit *last = &l->local[l->local_count - 1];
    unsigned m = (unsigned)last->mode;
    bool innermost = m + 1 == l->mode_count || l->modes[m + 1].dim != l->modes[m].dim;
    return l->modes[m].dim == dim && innermost ? last->extent : 1;
}
