/* Races, as the language defines them: two accesses to one byte conflict when
 * at least one writes, unless they are of one thread or a `synchronize` of
 * their block lies between. Blocks are never ordered. Each byte remembers its
 * last writers and the readers that a later write could conflict with:
 *
 *   block_start        epoch_start       time
 *   ----|-------------------|--------------|--->
 *   foreign   ordered by synchronize   concurrent
 *
 * Blocks run one after the other, so a foreign reader conflicts with every
 * later write: it is kept, and nothing need be noted beside it. */
#include "interp/state.h"

typedef struct OpNumber {
    const Op *op;
    uint32_t number;
} OpNumber;

static uint32_t op_number(Interp *in, const Op *op)
{
    uint64_t hash = hash_u64(0, (uint64_t)(uintptr_t)op);
    const OpNumber *known = intern_find(&in->op_numbers, hash, &(OpNumber){op, 0});
    if (known)
        return known->number;
    OpNumber *fresh = arena_new(in->arena, OpNumber);
    *fresh = (OpNumber){op, in->op_count};
    intern_add(&in->op_numbers, hash, fresh);
    arena_push(in->arena, in->ops, in->op_count, in->op_capacity, op);
    return fresh->number;
}

bool race_begin(Interp *in, const Op *op)
{
    if (in->time + 1 >= UINT64_C(1) << TIME_BITS)
        return diag_error(in->diag, op->loc, "the interpreter runs at most 2^%d memory ops",
                          TIME_BITS);
    in->time++;
    in->op = op_number(in, op);
    return true;
}

static ByteHistory *byte_history(Interp *in, Memory *memory, int64_t byte)
{
    ByteHistory **page = &memory->pages[byte / HISTORY_PAGE];
    if (!*page)
        *page = arena_array(in->arena, ByteHistory, HISTORY_PAGE);
    return &(*page)[byte % HISTORY_PAGE];
}

static bool is_foreign(const Interp *in, const Access *a)
{
    return a->time && a->time < in->block_start;
}

/* Shared memory starts anew in each block. */
static bool is_concurrent(const Interp *in, const Memory *memory, const Access *a,
                          int64_t thread)
{
    if (is_foreign(in, a))
        return !memory->shared;
    return a->time >= in->epoch_start &&
           ((int64_t)a->thread != thread || (int64_t)a->other != thread);
}

/* Keeps the first access of the epoch: an op that comes later may be the same
 * thread's, which would hide the first from a third access. */
static void note_access(const Interp *in, Access *a, int64_t thread, unsigned mask)
{
    uint64_t number = (uint64_t)thread;
    if (a->time < in->epoch_start) {
        *a = (Access){.time = in->time, .mask = mask, .thread = number, .other = number,
                      .op = in->op, .other_op = in->op};
        return;
    }
    if (a->other == a->thread && a->thread != number) {
        a->other = number;
        a->other_op = in->op;
    }
    if (a->time == in->time)
        a->mask |= mask;
}

/* ---- messages ------------------------------------------------------- */

/* The number of the block that ran at `time`: starts ascend. */
static uint64_t block_at(const Interp *in, uint64_t time)
{
    uint32_t low = 0, high = in->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(in->block_starts[middle] <= time ? &low : &high) = middle;
    }
    return low;
}

/* Says that `thread` of this block `verb`s (reads, writes) a byte that the
 * thread of `a` has `done` (read, written). */
static bool report_race(Interp *in, const View *view, const Access *a, int64_t thread,
                        int64_t byte, const char *verb, const char *done)
{
    bool other = (int64_t)a->thread == thread && !is_foreign(in, a);
    unsigned first = other ? a->other : a->thread;
    const char *block = interp_block_name(in, in->block_count - 1);
    const char *relation = is_foreign(in, a)
                               ? "and blocks are not ordered"
                               : "and no synchronize lies between";
    const char *first_block = interp_block_name(in, block_at(in, a->time));
    diag_error(in->diag, in->ops[in->op]->loc,
               "race: thread %lld of %s %s byte %lld of %s, thread %u of %s has %s it, %s",
               (long long)thread, block, verb, (long long)byte, view->name, first,
               first_block, done, relation);
    return diag_note(in->diag, in->ops[other ? a->other_op : a->op]->loc,
                     "thread %u of %s has %s it here", first, first_block, done);
}

static bool report_disagreement(Interp *in, const View *view, const Access *a, int64_t thread,
                                int64_t byte)
{
    unsigned first = (int64_t)a->thread == thread ? a->other : a->thread;
    diag_error(in->diag, in->ops[in->op]->loc,
               "race: threads %u and %lld of %s write different values to byte %lld of %s",
               first, (long long)thread, interp_block_name(in, in->block_count - 1),
               (long long)byte, view->name);
    return diag_note(in->diag, view->origin->loc, "%s is made here", view->name);
}

/* ---- the two accesses ----------------------------------------------- */

bool race_read(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last)
{
    Memory *memory = view->memory;
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, memory, byte);
        if (is_concurrent(in, memory, &h->write, thread))
            return report_race(in, view, &h->write, thread, byte, "reads", "written");
        if (memory->shared || !is_foreign(in, &h->read))
            note_access(in, &h->read, thread, 0);
    }
    return true;
}

/* In one store several threads may write a byte, but no bit differently. */
bool race_write(Interp *in, const View *view, int64_t thread, int64_t byte, unsigned mask,
                unsigned before, unsigned after)
{
    ByteHistory *h = byte_history(in, view->memory, byte);
    bool concurrent = is_concurrent(in, view->memory, &h->write, thread);
    if (concurrent && h->write.time == in->time) {
        if ((before ^ after) & h->write.mask)
            return report_disagreement(in, view, &h->write, thread, byte);
    } else if (concurrent) {
        return report_race(in, view, &h->write, thread, byte, "writes", "written");
    }
    if (is_concurrent(in, view->memory, &h->read, thread))
        return report_race(in, view, &h->read, thread, byte, "writes", "read");
    note_access(in, &h->write, thread, mask);
    return true;
}
