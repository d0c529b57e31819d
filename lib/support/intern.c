/* Interning: an open-addressing hash set with linear probing. */
#include "support/intern.h"

#include <assert.h>
#include <string.h>

void intern_init(InternSet *set, Arena *arena, InternEqual equal)
{
    *set = (InternSet){.arena = arena, .equal = equal};
}

const void *intern_find(const InternSet *set, uint64_t hash, const void *key)
{
    if (!set->capacity)
        return NULL;
    uint32_t mask = set->capacity - 1;
    for (uint32_t i = (uint32_t)hash & mask; set->slots[i].item;
         i = (i + 1) & mask) {
        const InternSlot *slot = &set->slots[i];
        if (slot->hash == hash && set->equal(slot->item, key))
            return slot->item;
    }
    return NULL;
}

static void place(InternSet *set, uint64_t hash, const void *item)
{
    uint32_t mask = set->capacity - 1, i = (uint32_t)hash & mask;
    assert(!(set->capacity & mask) && set->count < set->capacity);  /* so the search ends */
    while (set->slots[i].item)
        i = (i + 1) & mask;
    set->slots[i] = (InternSlot){hash, item};
}

void intern_add(InternSet *set, uint64_t hash, const void *item)
{
    if (2 * set->count >= set->capacity) {
        InternSlot *old = set->slots;
        uint32_t old_capacity = set->capacity, larger = old_capacity ? 2 * old_capacity : 64;
        set->slots = arena_array(set->arena, InternSlot, larger);   /* may jump: nothing changed */
        set->capacity = larger;
        for (uint32_t i = 0; i < old_capacity; i++)
            if (old[i].item)
                place(set, old[i].hash, old[i].item);
    }
    place(set, hash, item);
    set->count++;
}

uint64_t hash_u64(uint64_t hash, uint64_t value)
{
    /* One round of a 64-bit finaliser (two multiply-xorshift steps). */
    hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}

uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    const unsigned char *p = bytes;
    for (; size >= 8; p += 8, size -= 8) {
        uint64_t word;
        memcpy(&word, p, 8);
        hash = hash_u64(hash, word);
    }
    uint64_t rest = size;
    while (size--)
        rest = rest << 8 | *p++;
    return hash_u64(hash, rest);
}
