/* Code that the libFuzzer targets share. */
#include "target.h"

#include <stdio.h>
#include <stdlib.h>

int target_run(void (*body)(Choices *choices, Arena *arena), const uint8_t *data, size_t size)
{
    enum { SEED_BYTES = 8 };
    uint64_t seed = 0;
    size_t used = size < SEED_BYTES ? size : SEED_BYTES;
    for (size_t i = 0; i < used; i++)
        seed |= (uint64_t)data[i] << 8 * i;
    Choices choices = choices_from_bytes(data + used, size - used, seed);
    OutOfMemory oom;
    Arena arena;
    arena_init(&arena, &oom);
    if (!setjmp(oom.jump))
        body(&choices, &arena);
    arena_free(&arena);
    return 0;
}

void target_fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    abort();
}
