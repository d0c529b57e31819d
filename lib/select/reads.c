#include "select/reads.h"

#include "ir/loop.h"
#include "ir/op_access.h"
#include "ir/part.h"
#include "select/bulk.h"

enum { WARP = 32 };

enum { OWN_READS = 1, REMOTE_READS = 2 };

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

/* Adds what `threads` read in the ops up to `op`, from the last one back to an arrival, a barrier or the like, which has a
 * fence where it needs one. Returns true where there is such an op. One inside a region ends nothing: it may not run. */
static bool add_last_reads(const Op *op, ThreadRange threads, unsigned *reads)
{
    for (; op; op = op->prev) {
        if (is_ordering(op))
            return true;
        if (reads_copies(op))
            *reads |= op_is_remote(op) ? REMOTE_READS : OWN_READS;
        for (unsigned i = 0; i < op->region_count; i++)
            if (threads_meet(region_threads(op->regions[i]), threads))
                add_last_reads(op->regions[i]->last, threads, reads);
    }
    return false;
}

/* Looks both ways to the top of a loop's body: from its end, and from before the loop. */
static bool add_reads_around(const Op *around, ThreadRange threads, unsigned *reads)
{
    if (op_is_loop(around))
        add_last_reads(around->regions[0]->last, threads, reads);
    return add_last_reads(around->prev, threads, reads);
}

static unsigned reads_in_flight(const Op *op)
{
    ThreadRange threads = region_threads(op->parent);
    unsigned reads = 0;
    bool ordered = !is_ordering(op) || add_last_reads(op->prev, threads, &reads);
    for (const Op *around = op->parent->parent; !ordered && around; around = around->parent->parent)
        ordered = add_reads_around(around, threads, &reads);
    return reads;
}

bool reads_may_be_in_flight(const Op *op)
{
    return reads_in_flight(op) != 0;
}

bool remote_reads_may_be_in_flight(const Op *op)
{
    return reads_in_flight(op) & REMOTE_READS;
}
