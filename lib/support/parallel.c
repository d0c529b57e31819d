/* Threads that take the next part until none is left. */
#define _GNU_SOURCE
#include "support/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

enum { THREADS_MAX = 256 };

typedef struct Parts {
    atomic_size_t next;
    size_t count;
    void (*work)(void *data, size_t i);
    void *data;
} Parts;

static void *take_parts(void *context)
{
    Parts *parts = context;
    for (size_t i; (i = atomic_fetch_add(&parts->next, 1)) < parts->count;)
        parts->work(parts->data, i);
    return NULL;
}

/* Returns the number of processors that the process may run on. */
static unsigned processors(void)
{
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 1;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

void parallel_for(unsigned threads, size_t count, void (*work)(void *data, size_t i), void *data)
{
    Parts parts = {.count = count, .work = work, .data = data};
    pthread_t others[THREADS_MAX];
    size_t wanted = least(least(threads ? threads : processors(), count), THREADS_MAX), made = 0;
    while (made + 1 < wanted && pthread_create(&others[made], NULL, take_parts, &parts) == 0)
        made++;
    take_parts(&parts);
    while (made > 0)
        pthread_join(others[--made], NULL);
}
