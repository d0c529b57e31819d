/* Layouts of tiles whose dimensions are reduced or repeated. */
#include "ir/layout.h"

/* Modes of reduced dimensions number threads or slots no more: in the spatial
 * list they become replicas, from the local list they go. */
const Layout *layout_reduce(LayoutTable *t, const Layout *l, uint32_t dims, const char **why)
{
    int64_t shape[LIMIT_RANK], extents[LAYOUT_MODES], number[LAYOUT_MODES];
    int64_t spatial[LAYOUT_MODES], local[LAYOUT_MODES];
    unsigned modes = 0, locals = 0;
    for (unsigned d = 0; d < l->rank; d++)
        shape[d] = dims >> d & 1 ? 1 : l->shape[d];
    for (unsigned m = 0; m < l->mode_count; m++) {
        number[m] = -1;
        if (dims >> l->modes[m].dim & 1)
            continue;
        number[m] = modes;
        extents[modes++] = l->modes[m].extent;
    }
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *d = &l->spatial[i];
        spatial[i] = d->mode >= 0 && number[d->mode] >= 0 ? number[d->mode] : -d->extent;
    }
    for (unsigned i = 0; i < l->local_count; i++)
        if (number[l->local[i].mode] >= 0)
            local[locals++] = number[l->local[i].mode];
    return layout_from_modes(t, l->rank, shape, modes, extents, l->spatial_count, spatial, locals,
                             local, why);
}

/* The index, in `from`, of what `slot` of `thread` holds in `to`. */
static void source_index(const Layout *from, const Layout *to, int64_t thread, int64_t slot,
                         int64_t *index)
{
    layout_index(to, thread, slot, index);
    for (unsigned d = 0; d < to->rank; d++)
        index[d] = from->shape[d] == 1 ? 0 : index[d];
}

static bool same_index(unsigned rank, const int64_t *a, const int64_t *b)
{
    for (unsigned d = 0; d < rank; d++)
        if (a[d] != b[d])
            return false;
    return true;
}

/* An index is the sum of the thread's part and the slot's part. Where the
 * threads' parts are equal, so are the modes that are left to the slots. */
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
