/* cp.async (PTX ISA, 9.7.9.25.3): each thread's copies, and its waits for them.
 *
 * The source is read when a copy is issued, so that a bad address is reported there.
 * The target is written as late as may be, by the wait that the group's number
 * falls under: who reads it without one finds what was there before. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <stdlib.h>
#include <string.h>

/* Room for one more. Waits free it from the front. */
static Copy *add_copy(Copies *c)
{
    enum { FIRST = 16 };
    if (c->begin == c->end)
        c->begin = c->end = 0;
    if (c->end == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : FIRST;
        Copy *items = realloc(c->items, capacity * sizeof *items);
        if (!items)
            fault_memory();
        c->items = items;
        c->capacity = capacity;
    }
    return &c->items[c->end++];
}

/* Copies `wanted` bytes and fills up with zeros to `bytes`. */
static void copy_later(const uint64_t *args, unsigned bytes, uint64_t wanted)
{
    Copies *c = &this_thread()->copies;
    void *to = helper_address(args[0], bytes);
    const void *from = helper_address(args[1], bytes);
    if (wanted > bytes)
        fault_now("a copy of %u bytes shall read %llu", bytes, (unsigned long long)wanted);
    Copy *copy = add_copy(c);
    *copy = (Copy){.to = to, .from = from, .place = this_thread()->place,
                   .group = c->committed, .waits = c->waits, .bytes = bytes,
                   .wanted = (uint32_t)wanted};
    memcpy(copy->data, from, wanted);
    shadow_copy_begins(copy);
}

void cpu_copy_commit(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
    this_thread()->copies.committed++;
}

/* Waits for all groups but the last `args[0]`. */
void cpu_copy_wait(const uint64_t *args, uint64_t *results)
{
    Copies *c = &this_thread()->copies;
    (void)results;
    c->waits++;
    for (; c->begin < c->end; c->begin++) {
        const Copy *copy = &c->items[c->begin];
        if (copy->group + args[0] >= c->committed)
            return;
        memcpy(copy->to, copy->data, copy->bytes);
        shadow_copy_ends(copy);
    }
}

#define COPY(id, bytes, wanted)                                               \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        (void)results;                                                        \
        copy_later(args, bytes, wanted);                                      \
    }
#define COPIES(id, bytes)                                                     \
    COPY(id, bytes, bytes)                                                    \
    COPY(id##_of, bytes, args[2])                                             \
    COPY(id##_ahead_64, bytes, args[2])                                       \
    COPY(id##_ahead_128, bytes, args[2])                                      \
    COPY(id##_ahead_256, bytes, args[2])

COPIES(copy_4, 4)
COPIES(copy_8, 8)
COPIES(copy_16, 16)
