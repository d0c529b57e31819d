/* Races, as the language defines them: two accesses to one byte conflict when
 * at least one writes, unless they are of one thread or a `synchronize` orders
 * them. Only semaphores order blocks (order.c). Each byte remembers its last
 * writers and the readers that a later write could conflict with; in the same way
 * the atomic ops that changed it, which conflict with both but not with each other.
 *
 * Order is kept by warp (clocks.c).
 *
 * Blocks run one after the other, so without semaphores a foreign reader
 * conflicts with every later write: it is kept, and nothing need be noted beside
 * it. The same holds of a foreign atomic op and later reads and writes. Where
 * semaphores order blocks, each foreign reader that is not ordered before the
 * next one is kept beside it. One writer is enough: the next was ordered after it.
 *
 * Reads, or atomic ops, by many blocks of a cooperative program would make long lists: behind the
 * first few such accesses of a byte each warp's last one has its place in a table, a Crowd.
 *
 * Reductions of bulk stores conflict with all but each other, so they are kept apart.
 *
 * A copy_async, as the reads of a dot_async, is noted as two threads of its warps, which
 * conflict with any; its time is TIME_IN_FLIGHT, later than every barrier, until its wait.
 * A copy_async_bulk is noted as its mbarrier's, at the time when it starts: nobody knows that to
 * be over before its phase has ended, and who has not waited for that does not know. */
#include "interp/state.h"

#include "ir/op_access.h"
#include "ir/tile.h"

#include <string.h>

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

/* ---- warps ------------------------------------------------------------- */

static uint32_t warp_bit(int64_t thread)
{
    return UINT32_C(1) << (thread / WARP);
}

/* A bit for each warp that runs the ops. */
static uint32_t running_warps(const Interp *in)
{
    uint32_t warps = 0;
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        warps |= UINT32_C(1) << w;
    return warps;
}

/* The clock of a warp of the running block, and when it came to its last barrier. */
static const uint64_t *ordered_before(const Interp *in, unsigned warp)
{
    return in->ordered[in->first_owner + warp];
}

static uint64_t last_barrier(const Interp *in, unsigned warp)
{
    return ordered_before(in, warp)[in->first_owner + warp];
}

/* The owner that stands for warp 0 of the block that made `a`. */
static unsigned owner_of(const Interp *in, const Access *a)
{
    return a->rank * in->program->warps;
}

bool race_begin(Interp *in, const Op *op)
{
    if (in->time + 1 >= TIME_IN_FLIGHT)
        return diag_error(in->diag, op->loc, "the interpreter runs at most 2^%d memory ops",
                          TIME_BITS);
    in->time++;
    in->op = op_number(in, op);
    if (in->op >> (32 - RANK_BITS))
        return diag_error(in->diag, op->loc, "the interpreter runs programs of at most 2^%d memory "
                          "ops", 32 - RANK_BITS);
    in->op_indexed = op_index(op);
    in->op_ordered = UINT64_MAX;
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        if (in->op_ordered > in->all_ordered[in->first_owner + w])
            in->op_ordered = in->all_ordered[in->first_owner + w];
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

/* Returns true when `a`, of this block, is not all ordered before `warp` now. */
static bool is_unordered(const Interp *in, const Access *a, unsigned warp)
{
    const uint64_t *ordered = ordered_before(in, warp);
    if (a->is_bulk)
        return a->time >= ordered[a->warps];
    if (a->time < in->all_ordered[in->first_owner + warp])
        return false;
    for (uint32_t rest = a->warps; rest; rest &= rest - 1)
        if (a->time >= ordered[owner_of(in, a) + (unsigned)__builtin_ctz(rest)])
            return true;
    return false;
}

/* Returns true when `a` is unordered with a copy, whatever thread copies the byte. */
static bool is_copy_concurrent(const Interp *in, const Access *a)
{
    for (unsigned w = first_warp(in); w < end_warp(in); w++)
        if (is_unordered(in, a, w))
            return true;
    return false;
}

/* Returns true when `a`, which is foreign, is not ordered before this block. Shared memory
 * starts anew in each block. */
static bool is_foreign_concurrent(const Interp *in, const Memory *memory, const Access *a)
{
    return !memory->shared && !order_holds(in, a->time, a->rank);
}

/* No thread: the accesses of a copy_async. */
enum { COPY = -1 };

/* Returns true when nothing can order `a`, which another block of the cluster made, before what this
 * one does: in programs with locks no barrier orders what such blocks do with global memory. */
static bool is_apart(const Interp *in, const Memory *memory, const Access *a)
{
    return in->has_locks && a->time && !memory->shared && a->rank != in->rank;
}

/* Returns true when `a` and an access of `thread` now are unordered. No warp is before its
 * own last barrier: no access of another thread since then is ordered before the thread. */
static bool is_concurrent(const Interp *in, const Memory *memory, const Access *a,
                          int64_t thread)
{
    if (is_foreign(in, a))
        return is_foreign_concurrent(in, memory, a);
    if (is_apart(in, memory, a))
        return true;
    if (thread == COPY)
        return is_copy_concurrent(in, a);
    unsigned warp = (unsigned)(thread / WARP);
    if (!a->is_bulk && a->time >= last_barrier(in, warp))
        return a->rank != in->rank || (int64_t)a->thread != thread ||
               (int64_t)a->other != thread;
    return is_unordered(in, a, warp);
}

/* ---- noting ----------------------------------------------------------- */

static Access *next_access(const Interp *in, const Access *a)
{
    return a->more ? in->extra[a->more - 1] : NULL;
}

/* Appends an access to the list of the byte of `a`. */
static Access *append_access(Interp *in, Access *a)
{
    while (a->more)
        a = next_access(in, a);
    Access *fresh = arena_new(in->arena, Access);
    arena_push(in->arena, in->extra, in->extra_count, in->extra_capacity, fresh);
    a->more = in->extra_count;
    return fresh;
}

static void access_set(const Interp *in, Access *a, int64_t thread, unsigned mask)
{
    uint64_t number = (uint64_t)thread;
    *a = (Access){.time = in->time, .mask = mask, .thread = number, .other = number,
                  .op = in->op, .rank = in->rank, .other_op = in->op,
                  .warps = warp_bit(thread), .more = a->more};
}

static void access_join(const Interp *in, Access *a, int64_t thread)
{
    a->warps |= warp_bit(thread);
    if (a->other == a->thread && (int64_t)a->thread != thread) {
        a->other = (uint64_t)thread;
        a->other_op = in->op;
    }
}

/* Takes out the warps whose accesses are ordered before `warp`: who is not behind
 * them will not be behind what it does now. Whether none are left. */
static bool access_prune(const Interp *in, const Memory *memory, Access *a, unsigned warp)
{
    if (is_foreign(in, a) ? is_foreign_concurrent(in, memory, a) : is_apart(in, memory, a))
        return false;
    if (a->is_bulk) {
        if (is_unordered(in, a, warp))
            return false;
        *a = (Access){.more = a->more};
    }
    for (uint32_t rest = a->warps; rest; rest &= rest - 1) {
        unsigned u = (unsigned)__builtin_ctz(rest);
        if (a->time < ordered_before(in, warp)[owner_of(in, a) + u])
            a->warps &= ~(UINT32_C(1) << u);
    }
    if (!a->warps)
        a->time = 0;
    return !a->warps;
}

/* The crowds of a byte. */
enum { CROWD_READ, CROWD_ATOMIC, CROWDS };

/* Accesses that are noted in a list, before there is a crowd. */
enum { CROWD_FROM = 4 };

static Crowd *crowd_of(Interp *in, ByteHistory *h, unsigned kind)
{
    if (!h->crowds)
        h->crowds = arena_array(in->arena, Crowd, CROWDS);
    if (!h->crowds[kind].of)
        h->crowds[kind].of = arena_array(in->arena, Access *, in->warp_count);
    return &h->crowds[kind];
}

/* Notes the warp's access over its last one: what it did before its last barrier is before what it
 * does now. */
static void crowd_note(Interp *in, Crowd *crowd, int64_t thread)
{
    unsigned warp = (unsigned)(thread / WARP);
    Access **place = &crowd->of[in->first_owner + warp];
    if (*place && (*place)->time >= last_barrier(in, warp)) {
        access_join(in, *place, thread);
        return;
    }
    if (!*place)
        *place = arena_new(in->arena, Access);
    access_set(in, *place, thread, 0);
    crowd->latest = in->time;
}

/* Finds an access that conflicts with that of `thread`; NULL: there is none. */
static const Access *crowd_conflict(const Interp *in, const Memory *memory, const Crowd *crowd,
                                    int64_t thread)
{
    if (!crowd->of || crowd->latest < in->op_ordered)
        return NULL;
    for (unsigned u = 0; u < in->warp_count; u++)
        if (crowd->of[u] && is_concurrent(in, memory, crowd->of[u], thread))
            return crowd->of[u];
    return NULL;
}

/* Notes an access that does not conflict with its like, in the list `first` of `h` or in the crowd
 * of this kind. Accesses of a warp between
 * two barriers are one, and the first stays: an op that comes later may be the same
 * thread's, which would hide the first from a third access. Other warps join it in
 * its op. So each warp is in one Access at most. */
static void note_access(Interp *in, const Memory *memory, ByteHistory *h, Access *first,
                        unsigned kind, int64_t thread)
{
    unsigned warp = (unsigned)(thread / WARP), length = 0;
    Access *unused = NULL;
    if (h->crowds && h->crowds[kind].of) {
        crowd_note(in, &h->crowds[kind], thread);
        return;
    }
    for (Access *a = first; a; a = next_access(in, a), length++) {
        bool same = !a->is_bulk && a->rank == in->rank &&
                    (a->warps & warp_bit(thread) || a->op == in->op);
        if (same && a->time >= last_barrier(in, warp) && a->time != TIME_IN_FLIGHT) {
            access_join(in, a, thread);
            return;
        }
        if (access_prune(in, memory, a, warp) && !unused)
            unused = a;
    }
    if (!unused && length >= CROWD_FROM && in->program->cooperative)
        crowd_note(in, crowd_of(in, h, kind), thread);
    else
        access_set(in, unused ? unused : append_access(in, first), thread, 0);
}

/* Returns true when a foreign access conflicts with all later ones anyway. */
static bool is_covered(const Interp *in, const Memory *memory, const Access *a)
{
    if (memory->shared || in->has_locks || in->program->cooperative)
        return false;
    while (a && !is_foreign(in, a))
        a = next_access(in, a);
    return a;
}

/* Keeps what was written before for the other threads of this op, unless it is
 * ordered before them all. A later op need not ask: it is behind this one. */
static void keep_overwritten(Interp *in, Access *write)
{
    Access *before = next_access(in, write);
    bool needed = write->is_bulk || write->time >= in->op_ordered;
    if (needed && !before)
        before = append_access(in, write);
    if (before)
        *before = needed ? *write : (Access){0};
    if (before)
        before->more = 0;
}

static void note_write(Interp *in, Access *write, int64_t thread, unsigned mask)
{
    if (write->time == in->time) {
        access_join(in, write, thread);
        write->mask |= mask;
        return;
    }
    keep_overwritten(in, write);
    access_set(in, write, thread, mask);
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

/* "thread 3 of block (0)", "the copy_async of block (0)". */
static const char *accessor(Interp *in, const Op *op, int64_t thread, uint64_t block)
{
    const char *name = interp_block_name(in, block);
    return op_is_async(op)
               ? arena_printf(in->arena, "the %s of %s", op_info[op->code].name, name)
               : arena_printf(in->arena, "thread %lld of %s", (long long)thread, name);
}

/* Returns true when `who`, one of the two threads of `a`, may be the one unordered with
 * `thread`. */
static bool is_culprit(const Interp *in, const Memory *memory, const Access *a, uint64_t who,
                       int64_t thread)
{
    unsigned warp = (unsigned)(thread == COPY ? in->threads.begin : thread) / WARP;
    return is_foreign(in, a) || is_apart(in, memory, a) || a->time == TIME_IN_FLIGHT || a->is_bulk ||
           ((a->rank != in->rank || (int64_t)who != thread) &&
            a->time >= ordered_before(in, warp)[owner_of(in, a) + (unsigned)(who / WARP)]);
}

/* Who made `a`, for an access of `thread` that conflicts; `*op` is that one's. Of a
 * third warp only the warp is known. */
static const char *culprit(Interp *in, const Memory *memory, const Access *a, int64_t thread,
                           const Op **op)
{
    uint64_t block = interp_block_number(in, block_at(in, a->time), a->rank);
    *op = in->ops[a->op];
    if (is_culprit(in, memory, a, a->thread, thread))
        return accessor(in, *op, a->thread, block);
    if (op_is_async(*op))
        return accessor(in, *op, COPY, block);
    if (is_culprit(in, memory, a, a->other, thread)) {
        *op = in->ops[a->other_op];
        return accessor(in, *op, a->other, block);
    }
    return arena_printf(in->arena, "another warp of %s", interp_block_name(in, block));
}

/* Names the op that should have ordered the access `a` before this one. */
static const char *missing_order(Interp *in, const Memory *memory, const Access *a)
{
    if (a->time == TIME_IN_FLIGHT && !is_foreign(in, a))
        return arena_printf(in->arena, "and %s",
                            completion_missing(in->arena, in->ops[a->op], in->ops[in->op]));
    return is_foreign(in, a)             ? in->has_locks ? "and no lock orders the blocks"
                                                         : "and blocks are not ordered"
           : is_apart(in, memory, a)     ? "and nothing orders the two blocks"
           : a->is_bulk                  ? "and no mbarrier_wait for it lies between"
           : a->rank != in->rank         ? "and nothing orders the two blocks"
                                         : "and no synchronize lies between";
}

static uint64_t running_number(const Interp *in)
{
    return interp_block_number(in, in->block_count - 1, in->rank);
}

/* Says that `thread` of this block `verb`s (reads, writes) a byte that the
 * thread of `a` has `done` (read, written). */
static bool report_race(Interp *in, const View *view, const Access *a, int64_t thread,
                        int64_t byte, const char *verb, const char *done)
{
    const Op *now = in->ops[in->op], *then;
    const char *first = culprit(in, view->memory, a, thread, &then);
    diag_error(in->diag, now->loc, "race: %s %s byte %lld of %s, %s has %s it, %s",
               accessor(in, now, thread, running_number(in)), verb, (long long)byte, view->name,
               first, done, missing_order(in, view->memory, a));
    return diag_note(in->diag, then->loc, "%s has %s it here", first, done);
}

static bool report_disagreement(Interp *in, const View *view, const Access *a, int64_t thread,
                                int64_t byte)
{
    unsigned first = (int64_t)a->thread == thread ? a->other : a->thread;
    const char *block = interp_running_name(in);
    const Op *now = in->ops[in->op];
    const char *who = thread == first
                          ? arena_printf(in->arena, "thread %u of %s writes", first, block)
                      : thread == COPY
                          ? arena_printf(in->arena, "the %s of %s writes",
                                         op_info[now->code].name, block)
                          : arena_printf(in->arena, "threads %u and %lld of %s write", first,
                                         (long long)thread, block);
    diag_error(in->diag, now->loc, "race: %s different values to byte %lld of %s", who,
               (long long)byte, view->name);
    return diag_note(in->diag, view->origin->loc, "%s is made here", view->name);
}

/* ---- the accesses --------------------------------------------------- */

/* Returns true when no access of the crowd of this kind conflicts with that of `thread`; else
 * reports. */
static bool check_crowd(Interp *in, const View *view, const ByteHistory *h, unsigned kind,
                        int64_t thread, int64_t byte, const char *verb, const char *done)
{
    const Access *a = h->crowds ? crowd_conflict(in, view->memory, &h->crowds[kind], thread) : NULL;
    return !a || report_race(in, view, a, thread, byte, verb, done);
}

/* Returns true when no access from `a` on conflicts with that of `thread`; else
 * reports. */
static bool check_accesses(Interp *in, const View *view, const Access *a, int64_t thread,
                           int64_t byte, const char *verb, const char *done)
{
    for (; a; a = next_access(in, a))
        if (is_concurrent(in, view->memory, a, thread))
            return report_race(in, view, a, thread, byte, verb, done);
    return true;
}

static bool check_reads(Interp *in, const View *view, const ByteHistory *h, int64_t thread,
                        int64_t byte, const char *verb)
{
    return check_accesses(in, view, &h->read, thread, byte, verb, "read") &&
           check_crowd(in, view, h, CROWD_READ, thread, byte, verb, "read");
}

static bool check_atomics(Interp *in, const View *view, const ByteHistory *h, int64_t thread,
                          int64_t byte, const char *verb)
{
    return check_accesses(in, view, &h->atomic, thread, byte, verb, "atomically changed") &&
           check_crowd(in, view, h, CROWD_ATOMIC, thread, byte, verb, "atomically changed");
}

static bool check_reductions(Interp *in, const View *view, const ByteHistory *h, int64_t thread,
                             int64_t byte, const char *verb)
{
    return check_accesses(in, view, h->reduced, thread, byte, verb, "reduced");
}

/* Checks the access against writes before this op began. */
static bool check_writes(Interp *in, const View *view, const ByteHistory *h, int64_t thread,
                         int64_t byte, const char *verb)
{
    const Access *a = h->write.time == in->time ? next_access(in, &h->write) : &h->write;
    return !a || !is_concurrent(in, view->memory, a, thread) ||
           report_race(in, view, a, thread, byte, verb, "written");
}

bool race_read(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last)
{
    Memory *memory = view->memory;
    thread += in->threads.begin;
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, memory, byte);
        if (!check_writes(in, view, h, thread, byte, "reads") ||
            !check_atomics(in, view, h, thread, byte, "reads") ||
            !check_reductions(in, view, h, thread, byte, "reads"))
            return false;
        if (!is_covered(in, memory, &h->read))
            note_access(in, memory, h, &h->read, CROWD_READ, thread);
    }
    return true;
}

/* In one store several threads may write a byte, but no bit differently; neither may elements
 * of one thread that an index sends to one place, as layouts would decide who is last. */
bool race_write(Interp *in, const View *view, int64_t thread, int64_t byte, unsigned mask,
                unsigned before, unsigned after)
{
    ByteHistory *h = byte_history(in, view->memory, byte);
    thread += in->threads.begin;
    if (h->write.time == in->time && (before ^ after) & h->write.mask &&
        (in->op_indexed || is_concurrent(in, view->memory, &h->write, thread)))
        return report_disagreement(in, view, &h->write, thread, byte);
    if (!check_writes(in, view, h, thread, byte, "writes") ||
        !check_reads(in, view, h, thread, byte, "writes") ||
        !check_atomics(in, view, h, thread, byte, "writes") ||
        !check_reductions(in, view, h, thread, byte, "writes"))
        return false;
    note_write(in, &h->write, thread, mask);
    return true;
}

bool race_atomic(Interp *in, const View *view, int64_t thread, int64_t first, int64_t last)
{
    static const char verb[] = "atomically changes";
    Memory *memory = view->memory;
    thread += in->threads.begin;
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, memory, byte);
        if (!check_writes(in, view, h, thread, byte, verb) ||
            !check_reads(in, view, h, thread, byte, verb) ||
            !check_reductions(in, view, h, thread, byte, verb))
            return false;
        if (!is_covered(in, memory, &h->atomic))
            note_access(in, memory, h, &h->atomic, CROWD_ATOMIC, thread);
    }
    return true;
}

/* ---- copies ----------------------------------------------------------- */

bool race_copy_check(Interp *in, const View *view, bool write, int64_t first, int64_t last)
{
    const char *verb = write ? "writes" : "reads";
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (!check_writes(in, view, h, COPY, byte, verb) ||
            (write && !check_reads(in, view, h, COPY, byte, verb)) ||
            !check_atomics(in, view, h, COPY, byte, verb) ||
            !check_reductions(in, view, h, COPY, byte, verb))
            return false;
    }
    return true;
}

/* Notes an access of a copy in `a`. */
static void copy_set(const Interp *in, Access *a)
{
    uint64_t first = (uint64_t)in->threads.begin;
    *a = (Access){.time = TIME_IN_FLIGHT, .thread = first, .other = first + 1, .op = in->op,
                  .rank = in->rank, .warps = running_warps(in), .more = a->more};
}

/* The one of those from `a` on that copies in flight of the running warps share, or NULL. */
static Access *find_copy(const Interp *in, Access *a)
{
    while (a && (a->time != TIME_IN_FLIGHT || a->rank != in->rank ||
                 !(a->warps & running_warps(in))))
        a = next_access(in, a);
    return a;
}

/* Joins copies in flight of parts of the running warps, which `copy` is to stand for. */
static void join_copies(const Interp *in, Access *copy)
{
    for (Access *a; (a = find_copy(in, next_access(in, copy))); a->time = 0) {
        copy->other_op += a->other_op;
        copy->warps |= a->warps;
        a->warps = 0;
    }
}

/* Everything that was written before is ordered before the copy. */
static void note_copy_write(const Interp *in, Access *write)
{
    if (write->more)
        next_access(in, write)->time = 0;
    copy_set(in, write);
}

/* Who is behind the copy will be behind what its warps have read before. */
static void note_copy_read(Interp *in, const Memory *memory, Access *first)
{
    Access *copy = find_copy(in, first), *unused = NULL;
    for (Access *a = first; a; a = next_access(in, a)) {
        if (a->is_bulk || a->rank != in->rank ||
            (is_foreign(in, a) && is_foreign_concurrent(in, memory, a)))
            continue;
        a->warps &= a == copy ? UINT32_MAX : ~running_warps(in);
        a->time = a->warps ? a->time : 0;
        unused = a->warps || unused ? unused : a;
    }
    if (!copy) {
        copy = unused ? unused : append_access(in, first);
        copy_set(in, copy);
    }
    join_copies(in, copy);
    copy->warps |= running_warps(in);
    copy->other_op++;
}

void race_copy_start(Interp *in, const View *view, bool write, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (write) {
            note_copy_write(in, &h->write);
            continue;
        }
        if (!is_covered(in, view->memory, &h->read))
            note_copy_read(in, view->memory, &h->read);
    }
}

void race_copy_read_ends(Interp *in, const View *view, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        Access *copy = find_copy(in, &h->read);
        if (!copy || --copy->other_op)
            continue;
        copy->time = in->time;
        copy->other_op = copy->op;
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
    write->other_op = write->op;
    write->mask = again ? write->mask | mask : mask;
    return true;
}

/* ---- reductions ---------------------------------------------------------- */

bool race_reduce_check(Interp *in, const View *view, int64_t first, int64_t last)
{
    static const char verb[] = "reduces";
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (!check_writes(in, view, h, COPY, byte, verb) ||
            !check_reads(in, view, h, COPY, byte, verb) ||
            !check_atomics(in, view, h, COPY, byte, verb))
            return false;
    }
    return true;
}

/* The reductions of the running block's warps `warps`, or NULL. Who is behind the last of a warp
 * is behind all of them, so one stands for all. */
static Access *find_reduction(const Interp *in, Access *a, uint32_t warps)
{
    while (a && (is_foreign(in, a) || !a->time || a->rank != in->rank || a->warps != warps))
        a = next_access(in, a);
    return a;
}

/* A place in the list: one that says nothing more, or a new one. */
static Access *reduction_place(Interp *in, const Memory *memory, Access **list)
{
    if (!*list)
        return *list = arena_new(in->arena, Access);
    for (Access *a = *list; a; a = next_access(in, a))
        if (!a->time || (is_foreign(in, a) && !is_foreign_concurrent(in, memory, a)))
            return a;
    return append_access(in, *list);
}

void race_reduce_start(Interp *in, const View *view, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (h->reduced && is_covered(in, view->memory, h->reduced))
            continue;
        Access *a = find_reduction(in, h->reduced, running_warps(in));
        if (!a || a->time != TIME_IN_FLIGHT) {
            a = a ? a : reduction_place(in, view->memory, &h->reduced);
            copy_set(in, a);
        }
        a->other_op++;
    }
}

void race_reduce_ends(Interp *in, const View *view, int64_t warp, int64_t first, int64_t last)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        Access *a = find_reduction(in, h->reduced, UINT32_C(1) << warp);
        if (!a || a->time != TIME_IN_FLIGHT || --a->other_op)
            continue;
        a->time = in->time;
        a->other_op = a->op;
    }
}

/* ---- bulk copies --------------------------------------------------------- */

static void bulk_set(const Interp *in, Access *a, unsigned owner)
{
    *a = (Access){.time = in->time, .is_bulk = true, .warps = owner, .op = in->op,
                  .rank = in->rank, .other_op = in->op, .more = a->more};
}

/* Bulk reads of an mbarrier are ordered as they come: the last one stands for all. */
static void note_bulk_read(Interp *in, Access *first, unsigned owner)
{
    Access *place = NULL;
    for (Access *a = first; a; a = next_access(in, a)) {
        bool same = a->is_bulk && a->warps == owner && !is_foreign(in, a);
        place = same || (!a->time && !place) ? a : place;
        if (same)
            break;
    }
    bulk_set(in, place ? place : append_access(in, first), owner);
}

void race_bulk_start(Interp *in, const View *view, bool write, int64_t first, int64_t last,
                     unsigned owner)
{
    for (int64_t byte = first; byte <= last; byte++) {
        ByteHistory *h = byte_history(in, view->memory, byte);
        if (write && h->write.more)
            next_access(in, &h->write)->time = 0;
        if (write)
            bulk_set(in, &h->write, owner);
        else if (!is_covered(in, view->memory, &h->read))
            note_bulk_read(in, &h->read, owner);
    }
}
