/* Ranges of ops, sorted by the ops' places, of which a thread knows the one that it runs.
 * Copies of an op, which passes made, share its place, and so their ranges. */
#define _GNU_SOURCE
#include "cpu/tensors.h"

#include <stdlib.h>

static int compare_places(const void *x, const void *y)
{
    const SharedRange *a = x, *b = y;
    Place p = place_of(a->op->loc), q = place_of(b->op->loc);
    return p < q ? -1 : p > q;
}

void tensors_open(Machine *m)
{
    m->ranges = shared_ranges(m->program, &m->range_count);
    if (m->range_count)
        qsort(m->ranges, m->range_count, sizeof *m->ranges, compare_places);
}

/* The first range of ops at `place` or after it; its number. */
static size_t first_range(const Machine *m, Place place)
{
    size_t low = 0, high = m->range_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (place_of(m->ranges[middle].op->loc) < place)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void report_missed(Worker *w, const SharedRange *r, Place place, uint32_t thread,
                          int64_t begin)
{
    char block[FAULT_TEXT];
    const char *name = r->tensor->name ? r->tensor->name : "";
    fault_set(w, place, "thread %u of %s accesses byte %lld of shared tensor %%%.64s, which has "
              "%lld bytes", thread, fault_block(w, block), (long long)(begin - r->begin), name,
              (long long)(r->end - r->begin));
    fault_note(w, place_of(r->tensor->def->loc), "the tensor is allocated here");
    fault_leave();
}

/* Elements of bits are accessed by words of 4 bytes, which no two tensors share. */
static bool is_inside(const SharedRange *r, int64_t begin, int64_t end)
{
    enum { WORD = 4 };
    return begin >= r->begin && end <= (r->end + WORD - 1) / WORD * WORD;
}

void tensors_check(Worker *w, Place place, uint32_t thread, int64_t begin, size_t size)
{
    const Machine *m = w->machine;
    const SharedRange *missed = NULL;
    for (size_t i = first_range(m, place); i < m->range_count; i++) {
        const SharedRange *r = &m->ranges[i];
        if (place_of(r->op->loc) != place)
            break;
        if (is_inside(r, begin, begin + (int64_t)size))
            return;
        missed = r->tensor ? r : missed;
    }
    if (missed)
        report_missed(w, missed, place, thread, begin);
}
