/* The scheduler of a block's threads: whose turn it is, and barriers.
 *
 * A thread that must wait hands over to the next one that can run; the queue is in
 * the order in which they became able to. The last one to come to a barrier goes on
 * at once, and the threads that waited join the queue. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <stdlib.h>
#include <stdio.h>
#include <string.h>

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* Bytes of a thread's stack, of which it gets the pages that it touches: code that
 * is not optimized keeps every value there. No guard lies between two of them, which would take
 * two mappings a thread: a program's frame is checked when it begins, and the first thread of a
 * block, whose stack lies behind the guard, begins before the others. Helpers need the rest. */
enum { STACK = 1 << 20, STACK_OF_HELPERS = 1 << 16 };

/* How often a thread may look at a semaphore while nothing else happens in its
 * block. Other blocks that run at the same time may change it, but then none locks. */
enum { POLLS_MOST = 1000 };

_Thread_local Worker *cpu_worker;

/* ---- opening ------------------------------------------------------------- */

/* The least power of two that is not below `n`. */
static unsigned ring_size(unsigned n)
{
    unsigned size = 1;
    while (size < n)
        size *= 2;
    return size;
}

/* Opens the memory of one block; what its cluster shares is the first one's. */
static bool open_block(Worker *w, Machine *machine, Worker *first)
{
    unsigned count = machine->thread_count;
    *w = (Worker){.machine = machine, .cluster = first, .rank = (unsigned)(w - first)};
    w->threads = calloc(count, sizeof *w->threads);
    w->warps = calloc(count / LANES + 1, sizeof *w->warps);
    return w->threads && w->warps &&
           guarded_open(&w->stacks, "a thread's stack", (size_t)count * STACK, 16, false) &&
           guarded_open(&w->shared, "shared memory", machine->shared_bytes, 1024, true);
}

bool worker_open(Worker *w, Machine *machine)
{
    unsigned ring = ring_size(machine->thread_count * machine->cluster);
    for (unsigned i = 0; i < machine->cluster; i++)
        if (!open_block(&w[i], machine, w))
            return false;
    w->mask = ring - 1;
    w->ready = calloc(ring, sizeof *w->ready);
    return w->ready &&
           (!machine->options || !machine->options->check_races || shadow_open(w));
}

static void close_block(Worker *w)
{
    for (unsigned i = 0; w->threads && i < w->machine->thread_count; i++)
        free(w->threads[i].copies.items);
    mbarriers_begin_block(w);
    for (unsigned i = 0; i < LIMIT_THREADS / LANES; i++)
        free(w->products[i].items);
    bulk_stores_begin_block(w);
#ifdef FIBER_ASAN
    /* Frames that a fault left on the stacks are marked as not to be touched. */
    if (w->stacks.base)
        __asan_unpoison_memory_region(w->stacks.data, w->stacks.size);
#endif
    guarded_close(&w->stacks);
    guarded_close(&w->shared);
    free(w->threads);
    free(w->warps);
}

void worker_close(Worker *w)
{
    shadow_close(w);
    free(w->ready);
    for (unsigned i = 0; w->machine && i < w->machine->cluster; i++)
        if (w[i].machine)
            close_block(&w[i]);
}

Worker *worker_of(const void *at)
{
    Worker *first = cpu_worker->cluster;
    const unsigned char *byte = at;
    for (Worker *w = first; w < first + first->machine->cluster; w++)
        if (byte >= w->shared.base && byte < w->shared.base + w->shared.reserved)
            return w;
    return NULL;
}

Worker *worker_of_rank(uint64_t rank)
{
    Worker *first = cpu_worker->cluster;
    if (rank >= first->machine->cluster)
        fault_now("rank %lld in a cluster of %u blocks", (long long)(int32_t)rank,
                  first->machine->cluster);
    return first + rank;
}

/* ---- turns --------------------------------------------------------------- */

static void push_ready(Worker *w, Thread *t)
{
    Worker *c = w->cluster;
    t->state = THREAD_READY;
    c->ready[(c->ready_begin + c->ready_count++) & c->mask] =
        w->rank * w->machine->thread_count + t->number;
}

/* Whose turn is next: that of a thread that can run, or the scheduler's. */
static Fiber *next_fiber(Worker *w)
{
    Worker *c = w->cluster;
    unsigned count = w->machine->thread_count;
    if (c->ready_count == 0)
        return &c->scheduler;
    c->ready_count--;
    unsigned next = c->ready[c->ready_begin++ & c->mask];
    cpu_worker = &c[next / count];
    cpu_worker->running = &cpu_worker->threads[next % count];
    return &cpu_worker->running->fiber;
}

/* Goes on with the next; returns when it is this one's turn again. */
static void hand_over(Worker *w)
{
    Fiber *from = &w->running->fiber, *to = next_fiber(w);
    if (to != from)
        fiber_switch(from, to);
}

static void run_thread(void *argument)
{
    Thread *t = argument;
    Worker *w = cpu_worker;
    w->machine->entry(w->machine->args);
    shadow_thread_ends();
    t->state = THREAD_ENDED;
    w->cluster->ended++;
    w->cluster->polls = 0;
    fiber_leave(next_fiber(w));
}

/* ---- barriers ------------------------------------------------------------ */

/* Returns true for the last thread to come to `b`; else the running one is to hand over,
 * as the last thing that its caller does: the processor predicts no return to another
 * stack, so that each one less is a gain. */
static inline bool come_last(Barrier *b, IntrinsicId id)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    t->at = id;
    w->cluster->polls = 0;
    if (b->arrived++ == 0) {
        b->at = id;
        b->place = t->place;
    }
    if (b->arrived == b->expected)
        return true;
    t->state = THREAD_WAITS;
    return false;
}

/* Threads of a barrier wait at the same op: their common action depends on it. */
static void check_same(const Barrier *b, IntrinsicId id)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    char block[FAULT_TEXT];
    if (b->arrived == 0 || (b->at == id && b->place == t->place))
        return;
    fault_set(w, t->place, "thread %u of %s comes here to %s, other threads that take part "
              "do not", t->number, fault_block(w, block), intrinsic_info[id].name);
    fault_note(w, b->place, "they wait here, in %s", intrinsic_info[b->at].name);
    fault_leave();
}

static bool waits_at(const Thread *t, const Barrier *b, IntrinsicId id)
{
    return t->state == THREAD_WAITS && t->at == id && t->place == b->place;
}

/* Opens the barrier: each of `threads` that waits at `id` can run. */
static void release(Barrier *b, IntrinsicId id, Thread *threads, unsigned count)
{
    Worker *w = cpu_worker;
    b->arrived = 0;
    for (unsigned i = 0; i < count; i++)
        if (waits_at(&threads[i], b, id))
            push_ready(w, &threads[i]);
}

static uint32_t warp_bit(const Thread *t)
{
    return UINT32_C(1) << t->number / LANES;
}

/* The running thread is the last one to come to a barrier: accesses before it of all warps
 * that wait there are ordered before their later ones. */
static void order_warps(Worker *w, const Barrier *b, IntrinsicId id)
{
    uint32_t warps = warp_bit(w->running);
    for (unsigned i = 0; i < w->machine->thread_count; i++)
        if (waits_at(&w->threads[i], b, id))
            warps |= warp_bit(&w->threads[i]);
    shadow_join_barrier(w, warps);
}

void wait_warp(IntrinsicId id, const uint64_t *args, uint64_t *results, WarpAction *act)
{
    Worker *w = cpu_worker;
    Thread *t = w->running, *lanes = t - t->number % LANES;
    Barrier *b = &w->warps[t->number / LANES];
    b->expected = LANES;
    t->args = args;
    t->results = results;
    check_same(b, id);
    if (!come_last(b, id)) {
        hand_over(w);
        return;
    }
    if (act)
        act(lanes, id);
    if (id == INTR_warp_barrier)
        shadow_join_barrier(w, warp_bit(t));
    release(b, id, lanes, LANES);
}

void wait_barrier(IntrinsicId id, uint64_t number, uint64_t count)
{
    Worker *w = cpu_worker;
    Barrier *b = &w->barriers[number % NAMED_BARRIERS];
    b->expected = (unsigned)count;
    check_same(b, id);
    if (!come_last(b, id)) {
        hand_over(w);
        return;
    }
    if (w->shadow)
        order_warps(w, b, id);
    release(b, id, w->threads, w->machine->thread_count);
}

/* Blocks may have come to different ops. */
void wait_cluster(IntrinsicId id)
{
    Worker *w = cpu_worker, *first = w->cluster;
    const Machine *m = w->machine;
    first->meeting.expected = m->thread_count * m->cluster;
    if (!come_last(&first->meeting, id)) {
        hand_over(w);
        return;
    }
    first->meeting.arrived = 0;
    shadow_join_cluster(w);
    for (unsigned i = 0; i < m->thread_count * m->cluster; i++) {
        Worker *block = &first[i / m->thread_count];
        Thread *t = &block->threads[i % m->thread_count];
        if (t->state == THREAD_WAITS && t->at == id)
            push_ready(block, t);
    }
}

/* Has the running thread wait in `id` until another one makes it ready. */
static void wait_in(IntrinsicId id)
{
    cpu_worker->running->at = id;
    cpu_worker->running->state = THREAD_WAITS;
    cpu_worker->cluster->polls = 0;
    hand_over(cpu_worker);
}

void wait_for_phase(IntrinsicId id, const Mbarrier *b)
{
    cpu_worker->running->mbarrier = b;
    wait_in(id);
}

void end_wait_for_phase(Worker *owner, const Mbarrier *b)
{
    for (unsigned i = 0; i < owner->machine->thread_count; i++) {
        Thread *t = &owner->threads[i];
        if (t->state == THREAD_WAITS && t->mbarrier == b) {
            t->mbarrier = NULL;
            push_ready(owner, t);
        }
    }
}

static bool waits_for_grid(const Thread *t, uint64_t state)
{
    return t->state == THREAD_WAITS && t->at == INTR_grid_poll && t->state_at == state;
}

void wait_for_grid(IntrinsicId id, uint64_t state)
{
    cpu_worker->running->state_at = state;
    wait_in(id);
}

unsigned count_at_grid(const Worker *w, uint64_t state)
{
    const Machine *m = w->machine;
    unsigned count = 0;
    for (unsigned i = 0; i < m->cluster; i++)
        for (unsigned j = 0; j < m->thread_count; j++)
            count += waits_for_grid(&w->cluster[i].threads[j], state);
    return count;
}

/* Each block's thread has behind it what its block did before the barrier. */
void end_wait_for_grid(uint64_t state)
{
    Worker *w = cpu_worker, *first = w->cluster;
    const Machine *m = w->machine;
    shadow_meet(w, w->running);
    for (unsigned i = 0; i < m->cluster; i++)
        for (unsigned j = 0; j < m->thread_count; j++)
            if (waits_for_grid(&first[i].threads[j], state))
                shadow_meet(&first[i], &first[i].threads[j]);
    shadow_end_meeting(w);
    for (unsigned i = 0; i < m->cluster; i++)
        for (unsigned j = 0; j < m->thread_count; j++)
            if (waits_for_grid(&first[i].threads[j], state))
                push_ready(&first[i], &first[i].threads[j]);
    first->polls = 0;
}

/* Returns true when each thread that can run has looked at a semaphore since anything else
 * happened, and once more. */
static bool polls_in_vain(const Worker *first)
{
    return first->polls > POLLS_MOST && first->polls > 2 * (first->ready_count + 1);
}

void poll_again(IntrinsicId id)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    t->at = id;
    w->cluster->polls++;
    if (polls_in_vain(w->cluster))
        fault_now("the semaphore never gets the value that is waited for: every other thread "
                  "of the %s waits or has ended", w->machine->program->cooperative ? "grid"
                                                                                   : "block");
    push_ready(w, t);
    hand_over(w);
}

/* ---- faults -------------------------------------------------------------- */

void fault_leave(void)
{
    fiber_leave(&cpu_worker->cluster->scheduler);
}

void fault_now(const char *format, ...)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    char text[FAULT_TEXT], block[FAULT_TEXT];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fault_set(w, t->place, "thread %u of %s: %s", t->number, fault_block(w, block), text);
    fault_leave();
}

void fault_memory(void)
{
    Worker *w = cpu_worker;
    w->cluster->fault.found = w->cluster->fault.no_memory = true;
    fault_leave();
}

/* ---- blocks -------------------------------------------------------------- */

Place *thread_begins(void)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    char block[FAULT_TEXT];
    uintptr_t at = (uintptr_t)__builtin_frame_address(0);
    if (at < (uintptr_t)t->fiber.stack + STACK_OF_HELPERS) {
        fault_set(w, t->place, "thread %u of %s needs more stack than it has", t->number,
                  fault_block(w, block));
        fault_leave();
    }
    return &t->place;
}

/* Stacks begin at different places within their pages: else the lines that all
 * threads use would share a few sets of the cache. */
static size_t stack_size(unsigned thread)
{
    enum { LINE = 64, COLORS = 61, STEP = 13 };
    return STACK - (size_t)thread * STEP % COLORS * LINE;
}

/* The block with this rank in cluster number `cluster`: in each dimension clusters follow
 * each other. */
static void find_block(Worker *w, int64_t cluster)
{
    const Machine *machine = w->machine;
    const unsigned *extent = machine->together;
    int64_t row = 1;
    unsigned rank = w->rank;
    w->block = 0;
    for (unsigned d = 0; d < 3; d++) {
        int64_t clusters = machine->grid[d] / extent[d];
        w->index[d] = cluster % clusters * extent[d] + rank % extent[d];
        w->block += w->index[d] * row;
        row *= machine->grid[d];
        cluster /= clusters;
        rank /= extent[d];
    }
}

static void begin_block(Worker *w, int64_t cluster)
{
    const Machine *machine = w->machine;
    find_block(w, cluster);
    /* Bytes that nobody wrote are no number, and no index that fits. */
    memset(w->shared.data, 0xFF, w->shared.size);
    mbarriers_begin_block(w);
    for (unsigned i = 0; i < LIMIT_THREADS / LANES; i++)
        w->products[i].count = w->products[i].committed = 0;
    bulk_stores_begin_block(w);
    memset(w->warps, 0, (machine->thread_count / LANES + 1) * sizeof *w->warps);
    memset(w->barriers, 0, sizeof w->barriers);
    for (unsigned i = 0; i < machine->thread_count; i++) {
        Thread *t = &w->threads[i];
        t->number = i;
        t->mbarrier = NULL;
        t->stores_committed = 0;
        t->place = place_of(machine->program->loc);
        t->copies.begin = t->copies.end = t->copies.committed = t->copies.waits = 0;
        fiber_prepare(&t->fiber, w->stacks.data + (size_t)i * STACK, stack_size(i), run_thread,
                      t);
        push_ready(w, t);
    }
}

static void begin_cluster(Worker *w, int64_t cluster)
{
    shadow_begin_block(w);
    w->meeting = (Barrier){0};
    w->mbarrier_count = 0;
    w->ended = w->polls = w->ready_begin = w->ready_count = 0;
    for (unsigned i = 0; i < w->machine->cluster; i++)
        begin_block(&w[i], cluster);
}

/* Until all threads have ended, or one of them the run. */
static void run_threads(Worker *w)
{
    if (sigsetjmp(w->escape, 0)) {
        fiber_jumped(&w->scheduler);
        fault_signal(cpu_worker);
        return;
    }
    fiber_switch(&w->scheduler, next_fiber(w));
    if (!w->fault.found && w->ended < w->machine->thread_count * w->machine->cluster)
        fault_deadlock(w);
}

bool worker_run_cluster(Worker *w, int64_t cluster)
{
    begin_cluster(w, cluster);
    run_threads(w);
    cpu_worker = w;
    for (unsigned i = 0; i < w->machine->cluster; i++)
        mbarriers_end_block(&w[i]);
    for (unsigned i = 0; i < w->machine->cluster; i++)
        bulk_stores_end_block(&w[i]);
    shadow_end_block(w);
    return !w->fault.found;
}
