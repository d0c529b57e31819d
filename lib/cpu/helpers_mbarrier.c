/* mbarriers and cp.async.bulk (PTX ISA, 9.7.13.15 and 9.7.9.25.4).
 *
 * As of cp.async, the source is read when a copy is issued, and the target is written as
 * late as may be: by the first wait that sees the phase ended. Who reads it without one
 * finds what was there before. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"
#include "ir/tile.h"

#include <stdlib.h>
#include <string.h>

/* ---- blocks ----------------------------------------------------------------- */

static void free_copy(BulkCopy *c)
{
    free(c->data);
    free(c);
}

void mbarriers_begin_block(Worker *w)
{
    Mbarriers *m = &w->mbarriers;
    while (m->copies) {
        BulkCopy *c = m->copies;
        m->copies = c->next;
        free_copy(c);
    }
    m->count = 0;
}

void mbarriers_end_block(Worker *w)
{
    const BulkCopy *c = w->mbarriers.copies;
    char block[FAULT_TEXT];
    if (w->cluster->fault.found || !c)
        return;
    fault_set(w, c->place, "%s ends while this copy_async_bulk of thread %u is in flight: nobody "
              "waits for its phase", fault_block(w, block), c->thread);
}

/* ---- mbarriers ---------------------------------------------------------------- */

/* The one at the address `word`, of whatever block of the cluster, or NULL. */
static Mbarrier *look_up(uint64_t word)
{
    const void *at = helper_address(word, sizeof(uint64_t));
    Worker *w = worker_of(at);
    if (!w)
        return NULL;
    Mbarriers *m = &w->mbarriers;
    for (unsigned i = 0; i < m->count; i++)
        if (m->of[i].at == at)
            return &m->of[i];
    return NULL;
}

static Mbarrier *find_mbarrier(uint64_t word)
{
    Mbarrier *b = look_up(word);
    if (!b)
        fault_now("there is no mbarrier at the address that is used as one");
    return b;
}

void cpu_mbarrier_init(const uint64_t *args, uint64_t *results)
{
    Mbarriers *m = &cpu_worker->mbarriers;
    (void)results;
    if (look_up(args[0]) || m->count == LIMIT_MBARRIERS)
        fault_now("this mbarrier is there already, or there are %u", m->count);
    m->of[m->count++] = (Mbarrier){.at = helper_address(args[0], sizeof(uint64_t)),
                                   .arrivals = (uint32_t)args[1], .pending = (uint32_t)args[1],
                                   .number = cpu_worker->cluster->mbarrier_count++};
}

static void end_phase(Mbarrier *b)
{
    if (b->pending || b->bytes)
        return;
    shadow_phase_ends(b->number);
    b->phase++;
    b->pending = b->arrivals;
    end_wait_for_phase(worker_of(b->at), b);
}

void cpu_mbarrier_arrive(const uint64_t *args, uint64_t *results)
{
    Mbarrier *b = find_mbarrier(args[0]);
    (void)results;
    if (!b->pending)
        fault_now("an arrival at an mbarrier whose phase had all of its %u", b->arrivals);
    shadow_arrive(b->number);
    b->pending--;
    end_phase(b);
}

void cpu_mbarrier_expect(const uint64_t *args, uint64_t *results)
{
    Mbarrier *b = find_mbarrier(args[0]);
    (void)results;
    b->bytes += (int64_t)args[1];
    if (b->bytes > LIMIT_ARRIVALS)
        fault_now("a phase of an mbarrier waits for %lld bytes, it can for %d",
                  (long long)b->bytes, LIMIT_ARRIVALS);
}

/* The copies of phases of `b` that have ended are there. */
static void land_copies(const Mbarrier *b)
{
    for (BulkCopy **at = &cpu_worker->mbarriers.copies; *at;) {
        BulkCopy *c = *at;
        if (c->mbarrier != b->number || c->phase >= b->phase) {
            at = &c->next;
            continue;
        }
        memcpy(c->to, c->data, c->bytes);
        shadow_bulk_lands(c);
        *at = c->next;
        free_copy(c);
    }
}

/* Waits rather than return that the phase goes on. */
void cpu_mbarrier_try_wait(const uint64_t *args, uint64_t *results)
{
    Mbarrier *b = find_mbarrier(args[0]);
    if ((b->phase & 1) == (args[1] & 1))
        wait_for_phase(INTR_mbarrier_try_wait, b);
    land_copies(b);
    shadow_wait(b->number);
    results[0] = 1;
}

/* Does nothing: no access that the fence orders is delayed here. */
void cpu_async_fence(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
}

/* ---- copies ------------------------------------------------------------------- */

static BulkCopy *new_copy(size_t bytes)
{
    BulkCopy *c = malloc(sizeof *c);
    unsigned char *data = malloc(bytes ? bytes : 1);
    if (!c || !data) {
        free(c);
        free(data);
        fault_memory();
    }
    *c = (BulkCopy){.data = data, .bytes = (uint32_t)bytes};
    return c;
}

BulkCopy *bulk_begin(uint64_t mbarrier, unsigned char *to, uint64_t bytes)
{
    Worker *w = worker_of(to);
    Mbarrier *b = find_mbarrier(mbarrier);
    if (!w)
        fault_now("a bulk copy to an address outside of shared memory");
    if ((int64_t)bytes > b->bytes || bytes % BULK_ALIGN)
        fault_now("a bulk copy of %llu bytes: they must be a multiple of %d, and the mbarrier "
                  "expects %lld", (unsigned long long)bytes, BULK_ALIGN, (long long)b->bytes);
    BulkCopy *c = new_copy(bytes);
    c->to = to;
    c->counter = b;
    c->place = this_thread()->place;
    c->thread = this_thread()->number;
    c->mbarrier = b->number;
    c->phase = b->phase;
    c->next = w->mbarriers.copies;
    w->mbarriers.copies = c;
    return c;
}

void bulk_end(BulkCopy *c)
{
    Mbarrier *b = c->counter;
    shadow_bulk_write(c);
    b->bytes -= c->bytes;
    end_phase(b);
}

static void copy_to(uint64_t target, uint64_t source, uint64_t bytes, uint64_t mbarrier)
{
    unsigned char *to = helper_address(target, BULK_ALIGN);
    const unsigned char *from = helper_address(source, BULK_ALIGN);
    BulkCopy *c = bulk_begin(mbarrier, to, bytes);
    memcpy(c->data, from, c->bytes);
    shadow_bulk_read(c, from, c->bytes);
    bulk_end(c);
}

void cpu_copy_bulk(const uint64_t *args, uint64_t *results)
{
    (void)results;
    copy_to(args[0], args[1], args[2], args[3]);
}

void cpu_copy_bulk_policy(const uint64_t *args, uint64_t *results)
{
    cpu_copy_bulk(args, results);
}

/* ---- other blocks of the cluster ----------------------------------------------- */

uint64_t address_in(const Worker *w, uint64_t word)
{
    return word - (uintptr_t)cpu_worker->shared.data + (uintptr_t)w->shared.data;
}

void cpu_mbarrier_arrive_remote(const uint64_t *args, uint64_t *results)
{
    uint64_t word = address_in(worker_of_rank(args[1]), args[0]);
    cpu_mbarrier_arrive(&word, results);
}

void cpu_mbarrier_arrive_release(const uint64_t *args, uint64_t *results)
{
    cpu_mbarrier_arrive_remote(args, results);
}

void cpu_mbarrier_wait_acquire(const uint64_t *args, uint64_t *results)
{
    cpu_mbarrier_try_wait(args, results);
}

void cpu_mbarrier_expect_remote(const uint64_t *args, uint64_t *results)
{
    uint64_t words[] = {address_in(worker_of_rank(args[1]), args[0]), args[2]};
    cpu_mbarrier_expect(words, results);
}

void cpu_copy_bulk_multicast(const uint64_t *args, uint64_t *results)
{
    (void)results;
    for (uint64_t rank = 0; args[4] >> rank; rank++) {
        if (!(args[4] >> rank & 1))
            continue;
        Worker *w = worker_of_rank(rank);
        copy_to(address_in(w, args[0]), args[1], args[2], address_in(w, args[3]));
    }
}

void cpu_copy_bulk_multicast_policy(const uint64_t *args, uint64_t *results)
{
    cpu_copy_bulk_multicast(args, results);
}

void cpu_async_fence_cluster(const uint64_t *args, uint64_t *results)
{
    cpu_async_fence(args, results);
}

void cpu_async_fence_shared(const uint64_t *args, uint64_t *results)
{
    cpu_async_fence(args, results);
}

void cpu_mbarrier_init_fence(const uint64_t *args, uint64_t *results)
{
    cpu_async_fence(args, results);
}
