/* Layouts of tiles whose dimensions are cut into groups, of which a whole dimension is
 * one, or repeated. */
#include "types/layout.h"

/* A mode of the grouped layout, cut at a group's border: extent = outer * inner. */
typedef struct Cut {
    int64_t outer, inner, number;
} Cut;

/* Cuts each mode at the border of groups of l->shape[d] / shape[d] elements, from the
 * innermost mode of each dimension outwards. */
static bool cut_modes(const Layout *l, const int64_t *shape, Cut *cuts)
{
    for (unsigned d = 0, end = 0; d < l->rank; d++) {
        unsigned first = end;
        int64_t left = l->shape[d] / shape[d];
        while (end < l->mode_count && l->modes[end].dim == d)
            end++;
        for (unsigned m = end; m-- > first;) {
            int64_t extent = l->modes[m].extent;
            int64_t inner = left % extent == 0 ? extent : left;
            if (extent % inner)
                return false;
            cuts[m] = (Cut){extent / inner, inner, 0};
            left /= inner;
        }
    }
    return true;
}

/* Modes inside groups number threads or slots no more: in the spatial list they
 * become replicas, from the local list they go. Each dimension has at most one mode
 * that becomes two, so LAYOUT_MODES is enough. */
static const Layout *drop_inner(LayoutTable *t, const Layout *l, const int64_t *shape,
                                Cut *cuts, const char **why)
{
    int64_t extents[LAYOUT_MODES], spatial[LAYOUT_MODES], local[LAYOUT_MODES];
    unsigned modes = 0, spatials = 0, locals = 0;
    for (unsigned m = 0; m < l->mode_count; m++) {
        cuts[m].number = modes;
        if (cuts[m].outer > 1)
            extents[modes++] = cuts[m].outer;
    }
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *d = &l->spatial[i];
        Cut cut = d->mode >= 0 ? cuts[d->mode] : (Cut){1, d->extent, 0};
        if (cut.outer > 1)
            spatial[spatials++] = cut.number;
        if (cut.inner > 1)
            spatial[spatials++] = -cut.inner;
    }
    for (unsigned i = 0; i < l->local_count; i++)
        if (cuts[l->local[i].mode].outer > 1)
            local[locals++] = cuts[l->local[i].mode].number;
    return layout_from_modes(t, l->rank, shape, modes, extents, spatials, spatial, locals,
                             local, why);
}

const Layout *layout_group(LayoutTable *t, const Layout *l, const int64_t *shape,
                           const char **why)
{
    Cut cuts[LAYOUT_MODES];
    if (cut_modes(l, shape, cuts))
        return drop_inner(t, l, shape, cuts, why);
    *why = "the groups end inside of modes";
    return NULL;
}

const Layout *layout_reduce(LayoutTable *t, const Layout *l, uint32_t dims, const char **why)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < l->rank; d++)
        shape[d] = dims >> d & 1 ? 1 : l->shape[d];
    return layout_group(t, l, shape, why);
}

/* The index, in `from`, of the element that `slot` of `thread` holds in `to`. */
static void source_index(const Layout *from, const Layout *to, int64_t thread, int64_t slot,
                         int64_t *index)
{
    layout_index(to, thread, slot, index);
    for (unsigned d = 0; d < to->rank; d++)
        index[d] /= to->shape[d] / from->shape[d];
}

static bool same_index(unsigned rank, const int64_t *a, const int64_t *b)
{
    for (unsigned d = 0; d < rank; d++)
        if (a[d] != b[d])
            return false;
    return true;
}

/* An index is the sum of the thread's part and the slot's part, also after the
 * division, as groups end at the borders of modes. Where the threads' parts are equal,
 * so are the modes that are left to the slots. */
bool layout_broadcasts(const Layout *from, const Layout *to, int64_t *thread)
{
    int64_t needed[LIMIT_RANK], held[LIMIT_RANK];
    for (*thread = 0; *thread < to->threads; ++*thread) {
        source_index(from, to, *thread, 0, needed);
        layout_index(from, *thread, 0, held);
        if (!same_index(to->rank, needed, held))
            return false;
    }
    return true;
}

int64_t layout_broadcast_slot(const Layout *from, const Layout *to, int64_t slot)
{
    int64_t index[LIMIT_RANK], thread, place;
    source_index(from, to, 0, slot, index);
    layout_place(from, index, &thread, &place);
    return place;
}
