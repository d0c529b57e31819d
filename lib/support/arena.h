/* Arenas: memory that is released all at once, or back to a mark.
 *
 * Two lifetimes exist in the compiler: the module's arena (IR and names, until
 * `tilus_module_free`) and scratch arenas (one pass's working data, released
 * by mark). An arena never returns NULL: when memory runs out it jumps to the
 * guard of the API entry that was called, which reports the failure as its
 * status. Not thread safe: an arena belongs to one thread at a time. */
#ifndef TILUS_SUPPORT_ARENA_H
#define TILUS_SUPPORT_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* The target of the jump when memory runs out. An API entry sets `jump` with setjmp
 * before it allocates, and disposes of foreign handles when the jump is taken. */
typedef struct OutOfMemory {
    jmp_buf jump;
} OutOfMemory;

typedef struct ArenaChunk ArenaChunk;

typedef struct Arena {
    ArenaChunk *top;    /* newest chunk; older ones hang below it */
    OutOfMemory *oom;   /* NULL only while nothing is allocated */
    size_t reserved;    /* bytes held from malloc, in all chunks */
    size_t limit;       /* largest `reserved` allowed; SIZE_MAX: no limit */
} Arena;

typedef struct ArenaMark {
    ArenaChunk *top;
    size_t used;
} ArenaMark;

void arena_init(Arena *a, OutOfMemory *oom);
void arena_free(Arena *a);

/* Zeroed memory for `size` bytes, aligned to 16. */
void *arena_alloc(Arena *a, size_t size);

/* Allocates `count` elements as arena_alloc does; an overflowing product counts as
 * memory that has run out. */
void *arena_alloc_array(Arena *a, size_t count, size_t size);

#define arena_new(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define arena_array(a, T, n) ((T *)arena_alloc_array((a), (n), sizeof(T)))

/* A copy of `size` bytes (arena_copy), of `len` characters with a final NUL
 * (arena_strndup), or of a formatted string. */
void *arena_copy(Arena *a, const void *bytes, size_t size);
char *arena_strndup(Arena *a, const char *s, size_t len);
char *arena_strdup(Arena *a, const char *s);
char *arena_printf(Arena *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
char *arena_vprintf(Arena *a, const char *format, va_list args);

/* Everything allocated after arena_mark is released by arena_reset. */
ArenaMark arena_mark(const Arena *a);
void arena_reset(Arena *a, ArenaMark mark);

/* Makes room for one more element at the end of a growing array: `*items` has
 * `count` elements of `size` bytes and room for `*capacity`. */
void arena_grow(Arena *a, void *items, size_t count, uint32_t *capacity,
                size_t size);

/* Appends `value` to the growing array (`items`, `count`, `capacity`). */
#define arena_push(a, items, count, capacity, value)                          \
    (arena_grow((a), &(items), (count), &(capacity), sizeof *(items)),        \
     (items)[(count)++] = (value))

#endif
