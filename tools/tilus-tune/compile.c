/* Compiles kernels without measuring them, and prints the time. */
#define _GNU_SOURCE
#include "compiler.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Wanting {
    Compiler *compiler;
    const Task *task;
    size_t most;
} Wanting;

static size_t count_kernels(Compiler *c, size_t *failed)
{
    size_t count = 0;
    *failed = 0;
    for (const Kernel *k = compiler_first(c); k; k = k->next) {
        KernelState state = compiler_state(c, k);
        *failed += kernel_is_settled(state) && state != KERNEL_READY;
        count++;
    }
    return count;
}

static void want(void *data, const MatmulConfig *config)
{
    Wanting *w = data;
    size_t unused;
    if (count_kernels(w->compiler, &unused) < w->most)
        compiler_want(w->compiler, &w->task->spec, config, matmul_product_program(config));
}

static void print_failures(Compiler *c)
{
    for (const Kernel *k = compiler_first(c); k; k = k->next)
        if (compiler_state(c, k) != KERNEL_READY && k->message[0])
            fprintf(stderr, "%s: %s: %s\n", TOOL, k->name, k->message);
}

/* Chooses different kernels of the tasks' spaces, without a device and without the cache. */
int tune_compile(const Settings *s)
{
    Tasks tasks;
    if (!tasks_make(s, &tasks))
        return EXIT_USAGE;
    tune_handle_signals();
    setenv("TILUS_CACHE", "off", 1);
    enum { CAPABILITY = 90, MULTIPROCESSORS = 132, SHARED_BYTES = 232448 };
    const MatmulDevice device = matmul_device("NVIDIA H200", CAPABILITY, MULTIPROCESSORS,
                                              SHARED_BYTES);
    unsigned jobs = s->jobs ? s->jobs : (unsigned)sysconf(_SC_NPROCESSORS_ONLN);
    double start = tune_seconds();
    size_t failed = 0, done = 0, count = 0;
    Compiler *compiler = compiler_open(jobs, "sm_90a", s->compile_seconds, (Loader){0});
    for (size_t i = 0; compiler && i < tasks.count; i++) {
        Wanting w = {compiler, &tasks.items[i], s->count};
        matmul_enumerate(&w.task->spec, 0, w.task->m, &device, want, &w);
    }
    if (compiler)
        count = count_kernels(compiler, &failed);
    while (done < count && !tune_interrupted)
        done = compiler_wait(compiler, done);
    double seconds = tune_seconds() - start;
    if (compiler) {
        count_kernels(compiler, &failed);
        print_failures(compiler);
        printf("%zu kernels in %.1f s by %u processes, %zu failed\n", done, seconds, jobs,
               failed);
    }
    compiler_close(compiler);
    free(tasks.items);
    return compiler && done == count && failed == 0 ? EXIT_OK : EXIT_DIAGNOSTICS;
}
