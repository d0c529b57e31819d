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
    if (w->fault.found || !c)
        return;
    fault_set(w, c->place, "%s ends while this copy_async_bulk of thread %u is in flight: nobody "
              "waits for its phase", fault_block(w, block), c->thread);
}

/* ---- mbarriers ---------------------------------------------------------------- */

/* The one at the address `word`, or NULL. */
static Mbarrier *look_up(uint64_t word)
{
    Mbarriers *m = &cpu_worker->mbarriers;
    const void *at = helper_address(word, sizeof(uint64_t));
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

static unsigned mbarrier_number(const Mbarrier *b)
{
    return (unsigned)(b - cpu_worker->mbarriers.of);
}

void cpu_mbarrier_init(const uint64_t *args, uint64_t *results)
{
    Mbarriers *m = &cpu_worker->mbarriers;
    (void)results;
    if (look_up(args[0]) || m->count == LIMIT_MBARRIERS)
        fault_now("this mbarrier is there already, or there are %u", m->count);
    m->of[m->count++] = (Mbarrier){.at = helper_address(args[0], sizeof(uint64_t)),
                                   .arrivals = (uint32_t)args[1], .pending = (uint32_t)args[1]};
}

static void end_phase(Mbarrier *b)
{
    if (b->pending || b->bytes)
        return;
    shadow_phase_ends(mbarrier_number(b));
    b->phase++;
    b->pending = b->arrivals;
    end_wait_for_phase(b);
}

void cpu_mbarrier_arrive(const uint64_t *args, uint64_t *results)
{
    Mbarrier *b = find_mbarrier(args[0]);
    (void)results;
    if (!b->pending)
        fault_now("an arrival at an mbarrier whose phase had all of its %u", b->arrivals);
    shadow_arrive(mbarrier_number(b));
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
    unsigned number = mbarrier_number(b);
    for (BulkCopy **at = &cpu_worker->mbarriers.copies; *at;) {
        BulkCopy *c = *at;
        if (c->mbarrier != number || c->phase >= b->phase) {
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
    shadow_wait(mbarrier_number(b));
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
    Mbarrier *b = find_mbarrier(mbarrier);
    if ((int64_t)bytes > b->bytes || bytes % BULK_ALIGN)
        fault_now("a bulk copy of %llu bytes: they must be a multiple of %d, and the mbarrier "
                  "expects %lld", (unsigned long long)bytes, BULK_ALIGN, (long long)b->bytes);
    BulkCopy *c = new_copy(bytes);
    c->to = to;
    c->place = this_thread()->place;
    c->thread = this_thread()->number;
    c->mbarrier = mbarrier_number(b);
    c->phase = b->phase;
    c->next = cpu_worker->mbarriers.copies;
    cpu_worker->mbarriers.copies = c;
    return c;
}

void bulk_end(BulkCopy *c)
{
    Mbarrier *b = &cpu_worker->mbarriers.of[c->mbarrier];
    shadow_bulk_write(c);
    b->bytes -= c->bytes;
    end_phase(b);
}

void cpu_copy_bulk(const uint64_t *args, uint64_t *results)
{
    unsigned char *to = helper_address(args[0], BULK_ALIGN);
    const unsigned char *from = helper_address(args[1], BULK_ALIGN);
    (void)results;
    BulkCopy *c = bulk_begin(args[3], to, args[2]);
    memcpy(c->data, from, c->bytes);
    shadow_bulk_read(c, from, c->bytes);
    bulk_end(c);
}

void cpu_copy_bulk_policy(const uint64_t *args, uint64_t *results)
{
    cpu_copy_bulk(args, results);
}
