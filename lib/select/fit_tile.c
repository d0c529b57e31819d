/* Layouts of tiles that move between memory and registers, of 128 threads:
 *
 *     f16[64, 64], rows contiguous     spatial(16, 8).local(1, 8) over local(4, 1)
 *
 * A lane takes `vector` elements of a row, the next lane those after them. */
#include "ir/tile.h"
#include "select/fit.h"
#include "select/trial.h"

#include "select/access.h"
#include "select/copy.h"

enum { WIDEST_BITS = 128, VECTOR_MAX = 128 };

/* Tile to be laid out. */
typedef struct Tile {
    Module *m;
    const Type *type;
    unsigned along;         /* the dimension of lanes and vectors */
    int64_t threads;
} Tile;

/* A maker's layout whose extent is n in dimension `d` and 1 elsewhere. */
typedef const Layout *(*LayoutMaker)(LayoutTable *t, unsigned rank, const int64_t *shape,
                                     const char **why);

static const Layout *make_along(Module *m, LayoutMaker make, unsigned rank, unsigned d,
                                int64_t n, const char **why)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned i = 0; i < rank; i++)
        shape[i] = i == d ? n : 1;
    return make(&m->layouts, rank, shape, why);
}

static const Layout *product(Module *m, const Layout *f, const Layout *g, const char **why)
{
    return f && g ? layout_product(&m->layouts, f, g, why) : NULL;
}

/* Threads that `extent` elements or vectors can share evenly. */
static int64_t share(int64_t extent, int64_t *threads)
{
    int64_t n = gcd_i64(extent, *threads);
    *threads /= n;
    return n;
}

/* Lanes and a vector along t->along, then the other threads over the dimensions
 * from the last to the first; what is left of threads repeats the tile, what is
 * left of the tile are more slots. */
static const Layout *lay_out(const Tile *t, int64_t vector, const char **why)
{
    unsigned rank = t->type->rank;
    int64_t left[LIMIT_RANK] = {0}, threads = t->threads;
    for (unsigned d = 0; d < rank; d++)
        left[d] = type_extent(t->type, d);
    left[t->along] /= vector;
    const Layout *l = make_along(t->m, layout_local, rank, t->along, vector, why);
    for (unsigned i = 0; i <= rank; i++) {
        unsigned d = i ? rank - i : t->along;
        int64_t n = share(left[d], &threads);
        left[d] /= n;
        l = product(t->m, make_along(t->m, layout_spatial, rank, d, n, why), l, why);
    }
    l = product(t->m, layout_replicate(&t->m->layouts, rank, threads, why), l, why);
    return product(t->m, layout_local(&t->m->layouts, rank, left, why), l, why);
}

/* Returns true when a vector of `vector` elements divides the tile and leaves work for
 * all threads. */
static bool vector_fits(const Tile *t, int64_t vector)
{
    int64_t elements = 1;
    for (unsigned d = 0; d < t->type->rank; d++)
        elements *= type_extent(t->type, d);
    return type_extent(t->type, t->along) % vector == 0 &&
           (vector == 1 || elements / vector >= t->threads);
}

const Layout *fit_plain(Module *m, const Type *t, int64_t threads, const char **why)
{
    Tile tile = {m, t, t->rank - 1, threads};
    int64_t vector = 1;
    while (2 * vector * dtype_bits(t->dtype) <= WIDEST_BITS && vector_fits(&tile, 2 * vector))
        vector *= 2;
    return lay_out(&tile, vector, why);
}

/* The dimension of the tile along which memory has stride 1, the last of several
 * and of none. */
static unsigned contiguous_dim(Module *m, const MemoryTile *t)
{
    const Type *memory = t->memory->type;
    for (unsigned d = t->rank; d-- > 0;) {
        unsigned of = memory_tile_dim(t, d);
        const Expr *stride = type_stride(m, memory, of);
        if (t->extents[d] > 1 && expr_is_constant(stride) && stride->constant == 1 &&
            memory_tile_is_uniform(t, d) && !memory_tile_is_indexed(t, of))
            return d;
    }
    return t->rank - 1;
}

/* Lays out the index of a copy: neighbors in a warp hold one row's index, as many threads as
 * can share the row's chunks, and copy them side by side.
 *
 *     16 rows of 8 chunks, 128 threads     spatial(16, 1).replicate(8)
 */
static const Layout *fit_rows(Module *m, const Op *op, const Type *index, int64_t threads,
                              unsigned *bytes, const char **why)
{
    MemoryTile source = op_source_tile(op);
    CopyPlan plan = copy_plan(m, op);
    int64_t rows[LIMIT_RANK], left[LIMIT_RANK], spread = threads;
    int64_t together = share(copy_row_chunks(&plan, &source), &spread);
    for (unsigned d = index->rank; d-- > 0;) {
        rows[d] = share(type_extent(index, d), &spread);
        left[d] = type_extent(index, d) / rows[d];
    }
    *bytes = plan.bytes;
    const Layout *l = layout_replicate(&m->layouts, index->rank, together, why);
    l = product(m, layout_spatial(&m->layouts, index->rank, rows, why), l, why);
    l = product(m, layout_replicate(&m->layouts, index->rank, spread, why), l, why);
    return product(m, layout_local(&m->layouts, index->rank, left, why), l, why);
}

/* Bytes of an access when `tile` has the layout. */
static unsigned access_bytes(Module *m, const Op *op, const Value *tile, const Layout *l)
{
    OpTrial t;
    op_trial_open(&t, op);
    op_trial_set_type(&t, op, tile, type_with_layout(m, tile->type, l));
    return access_plan(m, &t.op).bytes;
}

/* Atomic ops act on 32 bits: on pairs of 16-bit elements. */
static const Layout *fit_atomic(const Tile *t, unsigned *bytes, const char **why)
{
    int64_t bits = dtype_bits(t->type->dtype), vector = bits < 32 ? 32 / bits : 1;
    vector = type_extent(t->type, t->along) % vector ? 1 : vector;
    *bytes = (unsigned)(vector * bits / 8);
    return lay_out(t, vector, why);
}

/* Returns true when threads that hold elements by `l` hold what an index of layout `index`, if
 * there is one, says of them. */
static bool holds_index(const Layout *index, const Layout *l)
{
    int64_t thread;
    return !index || (index->threads == l->threads && layout_broadcasts(index, l, &thread));
}

/* The layout of the widest accesses among those that keep to the index; NULL if there is
 * none. Of equal ones it is that of the shortest runs. */
static const Layout *fit_widest(const Tile *t, const Op *op, const Value *tile,
                                const Layout *index, unsigned *bytes, const char **why)
{
    const Layout *best = NULL;
    *bytes = 0;
    for (int64_t vector = 1; vector <= VECTOR_MAX; vector *= 2) {
        const Layout *l = vector == 1 || vector_fits(t, vector) ? lay_out(t, vector, why) : NULL;
        if (!l || !holds_index(index, l))
            continue;
        unsigned wide = access_bytes(t->m, op, tile, l);
        best = !best || wide > *bytes ? l : best;
        *bytes = wide > *bytes ? wide : *bytes;
    }
    return best;
}

const Layout *fit_access(Module *m, const Op *op, const Value *tile, const Layout *index,
                         int64_t threads, unsigned *bytes, const char **why)
{
    if (op_attr(op, ATTR_SHAPE))    /* a copy, whose index has the layout */
        return fit_rows(m, op, tile->type, threads, bytes, why);
    MemoryTile memory = op_memory_tile(op);
    Tile t = {m, tile->type, contiguous_dim(m, &memory), threads};
    if (op_info[op->code].attrs & op_attr_bit(ATTR_WIDTH))
        return fit_widest(&t, op, tile, index, bytes, why);
    const Layout *l = fit_atomic(&t, bytes, why);
    return l && holds_index(index, l) ? l : NULL;
}

const Layout *fit_repeat(Module *m, const Layout *from, const Type *to, const char **why)
{
    int64_t repeats[LIMIT_RANK];
    for (unsigned d = 0; d < to->rank; d++)
        repeats[d] = from->shape[d] == 1 ? type_extent(to, d) : 1;
    return product(m, from, layout_local(&m->layouts, to->rank, repeats, why), why);
}
