#include "select/reads.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/part.h"
#include "select/bulk.h"

enum { WARP = 32 };

typedef enum Found {
    FOUND_NOTHING,
    FOUND_ORDER,    /* an arrival, a barrier or the like, with a fence where it needs one */
    FOUND_READ
} Found;

typedef struct CopySearch {
    const Value *memory;
    bool found;
} CopySearch;

typedef struct WarpSearch {
    ThreadRange threads;
    bool found;
} WarpSearch;

static bool find_copy(Op *op, void *data)
{
    CopySearch *s = data;
    s->found = op->code == OP_copy_async_bulk &&
               memory_may_meet(memory_root(op_memory_operand(op)), s->memory);
    return !s->found;
}

static bool is_copied_to(const Program *p, const Value *memory)
{
    CopySearch s = {.memory = memory_root(memory)};
    region_walk(p->body, find_copy, &s);
    return s.found;
}

/* Returns true for an op by which threads read what bulk copies write. */
static bool reads_copies(const Op *op)
{
    OpAccess accesses[ACCESSES_MAX];
    unsigned count = op_is_async(op) ? 0 : op_accesses(op, accesses);
    for (unsigned i = 0; i < count; i++)
        if (accesses[i].mode != MODE_WRITE && accesses[i].tile.memory->type->kind == TYPE_SHARED &&
            is_copied_to(op->parent->program, accesses[i].tile.memory))
            return true;
    return false;
}

static bool threads_meet(ThreadRange a, ThreadRange b)
{
    return a.begin < b.begin + b.count && b.begin < a.begin + a.count;
}

static bool find_copy_of_warp(Op *op, void *data)
{
    WarpSearch *s = data;
    ThreadRange threads = region_threads(op->parent);
    s->found = op->code == OP_copy_async_bulk && threads.count == WARP &&
               threads_meet(threads, s->threads);
    return !s->found;
}

/* Returns true for a wait by a warp that starts copies alone: it orders what the warp has read
 * before them. Copies that several warps run need an order between these, so no wait is one. */
static bool is_wait_before_copies(const Op *op)
{
    WarpSearch s = {.threads = region_threads(op->parent)};
    if (op_syncs(op, SYNC_WAIT, COMPLETION_MBARRIER))
        region_walk(op->parent->program->body, find_copy_of_warp, &s);
    return s.found;
}

/* Blocks of a cluster meet where they make mbarriers; threads of a block alone must not rely on
 * that. */
static bool is_meeting(const Op *op)
{
    return op_sync(op) == SYNC_INIT && program_blocks(op->parent->program) > 1;
}

/* Semaphores are barriers, too. */
static bool is_ordering(const Op *op)
{
    SyncKind kind = op_sync(op);
    return op_is_barrier(op) || is_meeting(op) || kind == SYNC_ARRIVE || kind == SYNC_ACQUIRE ||
           kind == SYNC_RELEASE || is_wait_before_copies(op);
}

/* Returns what `threads` do last in the ops up to `op`. An order inside a region ends nothing:
 * the region may not run. */
static Found find_last(const Op *op, ThreadRange threads)
{
    for (; op; op = op->prev) {
        if (is_ordering(op))
            return FOUND_ORDER;
        if (reads_copies(op))
            return FOUND_READ;
        for (unsigned i = 0; i < op->region_count; i++)
            if (threads_meet(region_threads(op->regions[i]), threads) &&
                find_last(op->regions[i]->last, threads) == FOUND_READ)
                return FOUND_READ;
    }
    return FOUND_NOTHING;
}

/* Looks both ways to the top of a loop's body: from its end, and from before the loop. */
static Found find_around(const Op *around, ThreadRange threads)
{
    if (op_is_loop(around) && find_last(around->regions[0]->last, threads) == FOUND_READ)
        return FOUND_READ;
    return find_last(around->prev, threads);
}

bool reads_may_be_in_flight(const Op *op)
{
    ThreadRange threads = region_threads(op->parent);
    Found found = is_ordering(op) ? find_last(op->prev, threads) : FOUND_ORDER;
    for (const Op *around = op->parent->parent; found == FOUND_NOTHING && around;
         around = around->parent->parent)
        found = find_around(around, threads);
    return found == FOUND_READ;
}
