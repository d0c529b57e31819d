/* The scheduler of a block's threads: whose turn it is, and barriers.
 *
 * A thread that must wait hands over to the next one that can run; the queue is in
 * the order in which they became able to. The last one to come to a barrier goes on
 * at once, and the threads that waited join the queue. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <stdlib.h>
#include <string.h>

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>
#endif

/* Bytes of a thread's stack, of which it gets the pages that it touches: code that
 * is not optimised keeps every value there. */
enum { STACK = 1 << 20 };

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

bool worker_open(Worker *w, Machine *machine)
{
    unsigned count = machine->thread_count, ring = ring_size(count);
    *w = (Worker){.machine = machine, .mask = ring - 1};
    w->threads = calloc(count, sizeof *w->threads);
    w->warps = calloc(count / LANES + 1, sizeof *w->warps);
    w->ready = calloc(ring, sizeof *w->ready);
    return w->threads && w->warps && w->ready &&
           guarded_open(&w->stacks, "a thread's stack", (size_t)count * STACK, 16, false) &&
           guarded_guard_steps(&w->stacks, STACK) &&
           guarded_open(&w->shared, "shared memory", machine->shared_bytes, 1024, true) &&
           (!machine->options || !machine->options->check_races || shadow_open(w));
}

void worker_close(Worker *w)
{
    for (unsigned i = 0; w->threads && i < w->machine->thread_count; i++)
        free(w->threads[i].copies.items);
    mbarriers_begin_block(w);
    shadow_close(w);
#ifdef FIBER_ASAN
    /* Frames that a fault left on the stacks are marked as not to be touched. */
    if (w->stacks.base)
        __asan_unpoison_memory_region(w->stacks.data, w->stacks.size);
#endif
    guarded_close(&w->stacks);
    guarded_close(&w->shared);
    free(w->threads);
    free(w->warps);
    free(w->ready);
}

/* ---- turns --------------------------------------------------------------- */

static void push_ready(Worker *w, Thread *t)
{
    t->state = THREAD_READY;
    w->ready[(w->ready_begin + w->ready_count++) & w->mask] = (uint16_t)t->number;
}

/* Whose turn is next: that of a thread that can run, or the scheduler's. */
static Fiber *next_fiber(Worker *w)
{
    if (w->ready_count == 0)
        return &w->scheduler;
    w->ready_count--;
    w->running = &w->threads[w->ready[w->ready_begin++ & w->mask]];
    return &w->running->fiber;
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
    w->ended++;
    w->polls = 0;
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
    w->polls = 0;
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

void wait_for_phase(IntrinsicId id, const Mbarrier *b)
{
    Thread *t = cpu_worker->running;
    t->at = id;
    t->mbarrier = b;
    t->state = THREAD_WAITS;
    cpu_worker->polls = 0;
    hand_over(cpu_worker);
}

void end_wait_for_phase(const Mbarrier *b)
{
    Worker *w = cpu_worker;
    for (unsigned i = 0; i < w->machine->thread_count; i++) {
        Thread *t = &w->threads[i];
        if (t->state == THREAD_WAITS && t->mbarrier == b) {
            t->mbarrier = NULL;
            push_ready(w, t);
        }
    }
}

void poll_again(IntrinsicId id)
{
    Worker *w = cpu_worker;
    Thread *t = w->running;
    t->at = id;
    if (++w->polls > POLLS_MOST && w->ready_count == 0)
        fault_now("the semaphore never gets the value that is waited for: every other thread "
                  "of the block waits or has ended");
    push_ready(w, t);
    hand_over(w);
}

/* ---- faults -------------------------------------------------------------- */

void fault_leave(void)
{
    fiber_leave(&cpu_worker->scheduler);
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
    w->fault.found = w->fault.no_memory = true;
    fault_leave();
}

/* ---- blocks -------------------------------------------------------------- */

/* Stacks begin at different places within their pages: else the lines that all
 * threads use would share a few sets of the cache. */
static size_t stack_size(unsigned thread)
{
    enum { LINE = 64, COLORS = 61, STEP = 13 };
    return STACK - (size_t)thread * STEP % COLORS * LINE;
}

static void begin_block(Worker *w, int64_t block)
{
    const Machine *machine = w->machine;
    w->block = block;
    for (unsigned d = 0; d < 3; d++) {
        w->index[d] = block % machine->grid[d];
        block /= machine->grid[d];
    }
    /* Bytes that nobody wrote are no number, and no index that fits. */
    memset(w->shared.data, 0xFF, w->shared.size);
    shadow_begin_block(w);
    mbarriers_begin_block(w);
    memset(w->warps, 0, (machine->thread_count / LANES + 1) * sizeof *w->warps);
    memset(w->barriers, 0, sizeof w->barriers);
    w->ended = w->polls = w->ready_begin = w->ready_count = 0;
    for (unsigned i = 0; i < machine->thread_count; i++) {
        Thread *t = &w->threads[i];
        t->number = i;
        t->mbarrier = NULL;
        t->place = place_of(machine->program->loc);
        t->copies.begin = t->copies.end = t->copies.committed = 0;
        fiber_prepare(&t->fiber, w->stacks.data + (size_t)i * STACK, stack_size(i), run_thread,
                      t);
        push_ready(w, t);
    }
}

/* Until all threads have ended, or one of them the run. */
static void run_threads(Worker *w)
{
    if (sigsetjmp(w->escape, 0)) {
        fiber_jumped(&w->scheduler);
        fault_signal(w);
        return;
    }
    fiber_switch(&w->scheduler, next_fiber(w));
    if (!w->fault.found && w->ended < w->machine->thread_count)
        fault_deadlock(w);
}

bool worker_run_block(Worker *w, int64_t block)
{
    begin_block(w, block);
    run_threads(w);
    mbarriers_end_block(w);
    shadow_end_block(w);
    return !w->fault.found;
}
