/* Races, as the language defines them: two accesses to one byte conflict when
 * at least one writes, unless they are of one thread or a `synchronize` of
 * their block lies between. Only semaphores order blocks (order.c). Each byte
 * remembers its last writers and the readers that a later write could conflict
 * with; in the same way the atomic ops that changed it, which conflict with both
 * but not with each other:
 *
 *   block_start        epoch_start       time
 *   ----|-------------------|--------------|--->
 *   foreign   ordered by synchronize   concurrent
 *
 * Blocks run one after the other, so without semaphores a foreign reader
 * conflicts with every later write: it is kept, and nothing need be noted beside
 * it. The same holds of a foreign atomic op and later reads and writes. Where
 * semaphores order blocks, each foreign reader that is not ordered before the
 * next one is kept. One writer is enough: the next was ordered after it.
 *
 * A copy_async is noted as two threads, which conflict with any; its time is
 * TIME_UNDER_WAY, later than every synchronize, until its wait. */
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
    if (in->time + 1 >= TIME_UNDER_WAY)
        return diag_error(in->diag, op->loc, "the interpreter runs at most 2^%d memory ops",
                          TIME_BITS);
    in->time++;
    in->op = op_number(in, op);
    return true;
}

ByteHistory *byte_history(Interp *in, Memory *memory, int64_t byte)
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
        return !memory->shared && !order_holds(in, a->time);
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

/* Starts ascend. */
uint32_t block_at(const Interp *in, uint64_t time)
{
    uint32_t low = 0, high = in->block_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        *(in->block_starts[middle] <= time ? &low : &high) = middle;
    }
    return low;
}

/* No thread: the accesses of a copy_async. */
enum { COPY = -1 };

/* "thread 3 of block (0)", "the copy_async of block (0)". */
static const char *accessor(Interp *in, const Op *op, int64_t thread, uint64_t block)
{
    const char *name = interp_block_name(in, block);
    return op->code == OP_copy_async
               ? arena_printf(in->arena, "the copy_async of %s", name)
               : arena_printf(in->arena, "thread %lld of %s", (long long)thread, name);
}

/* What should have ordered the access `a` before this one. */
static const char *missing_order(const Interp *in, const Access *a)
{
    return is_foreign(in, a)           ? in->has_locks ? "and no lock orders the blocks"
                                                       : "and blocks are not ordered"
           : a->time == TIME_UNDER_WAY ? "and no copy_async_wait_group lies between"
                                       : "and no synchronize lies between";
}

/* Says that `thread` of this block `verb`s (reads, writes) a byte that the
 * thread of `a` has `done` (read, written). */
static bool report_race(Interp *in, const View *view, const Access *a, int64_t thread,
                        int64_t byte, const char *verb, const char *done)
{
    bool other = (int64_t)a->thread == thread && !is_foreign(in, a);
    const Op *now = in->ops[in->op], *then = in->ops[other ? a->other_op : a->op];
    const char *first = accessor(in, then, other ? a->other : a->thread, block_at(in, a->time));
    diag_error(in->diag, now->loc, "race: %s %s byte %lld of %s, %s has %s it, %s",
               accessor(in, now, thread, in->block_count - 1), verb, (long long)byte, view->name,
               first, done, missing_order(in, a));
    return diag_note(in->diag, then->loc, "%s has %s it here", first, done);
}

static bool report_disagreement(Interp *in, const View *view, const Access *a, int64_t thread,
                                int64_t byte)
{
    unsigned first = (int64_t)a->thread == thread ? a->other : a->thread;
    const char *block = interp_block_name(in, in->block_count - 1);
    const char *who = thread == COPY ? arena_printf(in->arena, "the copy_async of %s writes", block)
                                     : arena_printf(in->arena, "threads %u and %lld of %s write",
                                                    first, (long long)thread, block);
    diag_error(in->diag, in->ops[in->op]->loc, "race: %s different values to byte %lld of %s", who,
               (long long)byte, view->name);
    return diag_note(in->diag, view->origin->loc, "%s is made here", view->name);
}

/* ---- the accesses --------------------------------------------------- */

typedef enum AccessKind { READ, ATOMIC } AccessKind;

/* Makes room for an access of this block: a foreign one that is not ordered before it
 * is kept beside, or, without semaphores, stays in place. False: nothing is to be
 * noted. */
static bool make_room(Interp *in, const Memory *memory, ByteHistory *h, AccessKind kind)
{
    Access *a = kind == READ ? &h->read : &h->atomic;
    if (memory->shared || !is_foreign(in, a) || order_holds(in, a->time))
        return true;
    if (!in->has_locks)
        return false;
    if (!h->order)
        h->order = arena_new(in->arena, ByteOrder);
    OldAccess **list = kind == READ ? &h->order->reads : &h->order->atomics;
    OldAccess *old = arena_new(in->arena, OldAccess);
    *old = (OldAccess){*a, *list};
    *list = old;
    return true;
}

/* One of the byte's reads or atomic ops that the access of `thread` is concurrent
 * with, or NULL. */
static const Access *find_concurrent(const Interp *in, const Memory *memory,
                                     const ByteHistory *h, AccessKind kind, int64_t thread)
{
    const Access *a = kind == READ ? &h->read : &h->atomic;
    if (is_concurrent(in, memory, a, thread))
        return a;
    const OldAccess *old = !h->order ? NULL : kind == READ ? h->order->reads
                                                           : h->order->atomics;
    while (old && !is_concurrent(in, memory, &old->access, thread))
        old = old->next;
    return old ? &old->access : NULL;
}

/* Whether no read, or no atomic op, conflicts with the access of `thread`; else
 * reports. */
static bool check_all(Interp *in, const View *view, const ByteHistory *h, AccessKind kind,
                      int64_t thread, int64_t byte, const char *verb)
{
    const Access *a = find_concurrent(in, view->memory, h, kind, thread);
    return !a || report_race(in, view, a, thread, byte, verb,
                             kind == READ ? "read" : "atomically changed");
}

bool race_read(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last)
{
    Memory *memory = view->memory;
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, memory, byte);
        if (is_concurrent(in, memory, &h->write, thread))
            return report_race(in, view, &h->write, thread, byte, "reads", "written");
        if (!check_all(in, view, h, ATOMIC, thread, byte, "reads"))
            return false;
        if (make_room(in, memory, h, READ))
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
    if (!check_all(in, view, h, READ, thread, byte, "writes") ||
        !check_all(in, view, h, ATOMIC, thread, byte, "writes"))
        return false;
    note_access(in, &h->write, thread, mask);
    return true;
}

bool race_atomic(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last)
{
    static const char verb[] = "atomically changes";
    Memory *memory = view->memory;
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, memory, byte);
        if (is_concurrent(in, memory, &h->write, thread))
            return report_race(in, view, &h->write, thread, byte, verb, "written");
        if (!check_all(in, view, h, READ, thread, byte, verb))
            return false;
        if (make_room(in, memory, h, ATOMIC))
            note_access(in, &h->atomic, thread, 0);
    }
    return true;
}

/* ---- copies ----------------------------------------------------------- */

bool race_copy_check(Interp *in, const View *view, bool write, int64_t first, int64_t last)
{
    const char *verb = write ? "writes" : "reads";
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (is_concurrent(in, view->memory, &h->write, COPY))
            return report_race(in, view, &h->write, COPY, byte, verb, "written");
        if ((write && !check_all(in, view, h, READ, COPY, byte, verb)) ||
            !check_all(in, view, h, ATOMIC, COPY, byte, verb))
            return false;
    }
    return true;
}

/* The access of a copy at `time`. */
static Access copy_access(const Interp *in, uint64_t time)
{
    return (Access){.time = time, .thread = 0, .other = 1, .op = in->op, .other_op = in->op};
}

void race_copy_start(Interp *in, const View *view, bool write, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (write) {
            h->write = copy_access(in, TIME_UNDER_WAY);
            continue;
        }
        h->copies++;
        if (make_room(in, view->memory, h, READ))
            h->read = copy_access(in, TIME_UNDER_WAY);
    }
}

void race_copy_read_ends(Interp *in, const View *view, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (--h->copies == 0 && h->read.time == TIME_UNDER_WAY)
            h->read.time = in->time;
    }
}

bool race_copy_write_ends(Interp *in, const View *view, int64_t byte, unsigned mask,
                          unsigned before, unsigned after)
{
    Access *write = &byte_history(in, view->memory, byte)->write;
    bool again = write->time == in->time;
    if (again && (before ^ after) & write->mask)
        return report_disagreement(in, view, write, COPY, byte);
    write->time = in->time;
    write->mask = again ? write->mask | mask : mask;
    return true;
}
