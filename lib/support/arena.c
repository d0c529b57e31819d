/* Arena allocation: a stack of malloc'ed chunks with a bump pointer. */
#include "support/arena.h"

#include "support/integer.h"
#include "support/numeral.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ARENA_ALIGN = 16, ARENA_CHUNK = 64 * 1024 };

struct ArenaChunk {
    ArenaChunk *below;
    size_t capacity;
    size_t used;
    _Alignas(ARENA_ALIGN) unsigned char bytes[];
};

void arena_init(Arena *a, OutOfMemory *oom)
{
    *a = (Arena){.oom = oom, .limit = SIZE_MAX};
}

static void pop_chunk(Arena *a)
{
    ArenaChunk *chunk = a->top;
    assert(chunk && "a mark is of another arena, or was passed by a reset");
    a->top = chunk->below;
    a->reserved -= sizeof *chunk + chunk->capacity;
    free(chunk);
}

void arena_free(Arena *a)
{
    while (a->top)
        pop_chunk(a);
}

_Noreturn static void out_of_memory(Arena *a)
{
    assert(a->oom && "an arena is used outside an API entry");
    longjmp(a->oom->jump, 1);
}

static void push_chunk(Arena *a, size_t least)
{
    size_t capacity = least > ARENA_CHUNK ? least : ARENA_CHUNK;
    if (capacity > SIZE_MAX / 2 || a->reserved > a->limit ||
        capacity + sizeof(ArenaChunk) > a->limit - a->reserved)
        out_of_memory(a);
    ArenaChunk *chunk = malloc(sizeof *chunk + capacity);
    if (!chunk)
        out_of_memory(a);
    *chunk = (ArenaChunk){.below = a->top, .capacity = capacity};
    a->top = chunk;
    a->reserved += sizeof *chunk + capacity;
}

void *arena_alloc(Arena *a, size_t size)
{
    if (size > SIZE_MAX / 2)
        out_of_memory(a);
    size = round_up_size(size, ARENA_ALIGN);
    if (!a->top || a->top->capacity - a->top->used < size)
        push_chunk(a, size);
    void *p = a->top->bytes + a->top->used;
    a->top->used += size;
    return memset(p, 0, size);
}

void *arena_alloc_array(Arena *a, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        out_of_memory(a);
    return arena_alloc(a, bytes);
}

void *arena_copy(Arena *a, const void *bytes, size_t size)
{
    void *p = arena_alloc(a, size);
    if (size)
        memcpy(p, bytes, size);
    return p;
}

char *arena_strndup(Arena *a, const char *s, size_t len)
{
    char *copy = arena_alloc(a, len + 1);
    if (len)
        memcpy(copy, s, len);
    return copy;
}

char *arena_strdup(Arena *a, const char *s)
{
    return arena_strndup(a, s, strlen(s));
}

char *arena_vprintf(Arena *a, const char *format, va_list args)
{
    va_list again;
    va_copy(again, args);
    int len = numeral_vformat(NULL, 0, format, args);
    assert(len >= 0);
    char *s = arena_alloc(a, (size_t)len + 1);
    numeral_vformat(s, (size_t)len + 1, format, again);
    va_end(again);
    return s;
}

char *arena_printf(Arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    char *s = arena_vprintf(a, format, args);
    va_end(args);
    return s;
}

ArenaMark arena_mark(const Arena *a)
{
    return (ArenaMark){a->top, a->top ? a->top->used : 0};
}

void arena_reset(Arena *a, ArenaMark mark)
{
    while (a->top != mark.top)
        pop_chunk(a);
    assert(!a->top || mark.used <= a->top->used);
    if (a->top)
        a->top->used = mark.used;
}

void arena_grow(Arena *a, void *items, size_t count, uint32_t *capacity,
                size_t size)
{
    if (count < *capacity)
        return;
    if (*capacity > UINT32_MAX / 2)
        out_of_memory(a);
    uint32_t larger = *capacity ? *capacity * 2 : 8;
    void *bigger = arena_alloc_array(a, larger, size), *old;
    memcpy(&old, items, sizeof old);
    if (count)
        memcpy(bigger, old, count * size);
    memcpy(items, &bigger, sizeof bigger);
    *capacity = larger;
}
