/* To be preloaded into a tool: from main on, allocation number FAIL_AT (from 0) fails, once. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

typedef int Main(int argc, char **argv, char **environment);
typedef int Start(Main *main, int argc, char **argv, Main *init, void (*fini)(void),
                  void (*end)(void), void *stack);

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
int __libc_start_main(Main *main, int argc, char **argv, Main *init, void (*fini)(void),
                      void (*end)(void), void *stack);

static _Atomic long left = -1;      /* allocations until the one that fails; negative: none */
static Main *real_main;

static bool allowed(void)
{
    if (atomic_load(&left) < 0 || atomic_fetch_sub(&left, 1) != 0)
        return true;
    errno = ENOMEM;
    return false;
}

void *malloc(size_t size) { return allowed() ? __libc_malloc(size) : NULL; }

void *calloc(size_t count, size_t size)
{
    return allowed() ? __libc_calloc(count, size) : NULL;
}

void *realloc(void *block, size_t size)
{
    return allowed() ? __libc_realloc(block, size) : NULL;
}

static int counted_main(int argc, char **argv, char **environment)
{
    const char *text = getenv("FAIL_AT");
    atomic_store(&left, text ? atol(text) : -1);
    return real_main(argc, argv, environment);
}

int __libc_start_main(Main *main, int argc, char **argv, Main *init, void (*fini)(void),
                      void (*end)(void), void *stack)
{
    Start *start;
    *(void **)&start = dlsym(RTLD_NEXT, "__libc_start_main");
    real_main = main;
    return start(counted_main, argc, argv, init, fini, end, stack);
}
