/* Interning: an open-addressing set of pointers, used to give each distinct
 * expression, layout and type one address, and to find common
 * subexpressions. */
#ifndef TILUS_SUPPORT_INTERN_H
#define TILUS_SUPPORT_INTERN_H

#include "support/arena.h"

#include <stdbool.h>

typedef bool (*InternEqual)(const void *a, const void *b);

typedef struct InternSlot {
    uint64_t hash;
    const void *item;   /* NULL: empty */
} InternSlot;

typedef struct InternSet {
    Arena *arena;
    InternEqual equal;
    InternSlot *slots;
    uint32_t count;
    uint32_t capacity;  /* a power of two */
} InternSet;

void intern_init(InternSet *set, Arena *arena, InternEqual equal);

/* The member equal to `key`, or NULL. */
const void *intern_find(const InternSet *set, uint64_t hash, const void *key);

/* Adds `item`, which must not be a member yet. */
void intern_add(InternSet *set, uint64_t hash, const void *item);

/* Mixes `value`, or `size` bytes, into a running hash. */
uint64_t hash_u64(uint64_t hash, uint64_t value);
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size);

#endif
