/* malloc, calloc and strdup as the linker's --wrap names them. */
#include "failing_memory.h"

#include <stdbool.h>
#include <stddef.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
char *__real_strdup(const char *s);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__wrap_strdup(const char *s);

_Atomic long allocations_left = -1;

static bool allowed(void)
{
    if (allocations_left < 0)
        return true;
    return allocations_left > 0 && allocations_left-- > 0;
}

void *__wrap_malloc(size_t size) { return allowed() ? __real_malloc(size) : NULL; }

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed() ? __real_calloc(count, size) : NULL;
}

char *__wrap_strdup(const char *s) { return allowed() ? __real_strdup(s) : NULL; }
