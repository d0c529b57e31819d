/* Compiling in many processes: kernels are requested by name, and one thread takes them when
 * they are ready. */
#ifndef TILUS_TUNE_COMPILER_H
#define TILUS_TUNE_COMPILER_H

#include "tune.h"

#include <stddef.h>

typedef enum KernelState {
    KERNEL_WANTED,
    KERNEL_COMPILING,
    KERNEL_READY,
    KERNEL_FAILED,              /* the compiler said so, or the loader */
    KERNEL_CRASHED,             /* the process ended */
    KERNEL_LATE                 /* it took too long, and was ended */
} KernelState;

/* A kernel, once for all candidates that are made of it. */
typedef struct Kernel {
    struct Kernel *next, *alike;        /* in order; whose names have the same hash */
    unsigned users;             /* that have asked for it and not dropped it */
    char name[MATMUL_NAME_MAX], parameters[MATMUL_TEXT_MAX];
    MatmulProgram program;
    KernelState state;          /* as compiler_state says; the rest is for the taker */
    void *bytes;                /* the artefact, when it is ready */
    size_t size;
    char message[1024];          /* why it failed */
    struct EngineKernel *loaded;    /* of the loader */
} Kernel;

/* Loads compiled kernels, in the threads that wait for the processes, several at once. False:
 * loading failed, and the message says why. */
typedef struct Loader {
    bool (*load)(void *data, Kernel *kernel);       /* NULL: nothing */
    void (*unload)(void *data, Kernel *kernel);     /* in the thread that drops or closes */
    void *data;
} Loader;

/* Returns true when the kernel's state is final. */
static inline bool kernel_is_settled(KernelState state)
{
    return state != KERNEL_WANTED && state != KERNEL_COMPILING;
}

typedef struct Compiler Compiler;

/* Starts `jobs` processes at most, each when it has something to do, that compile for
 * `target` and have `seconds` for each kernel. NULL after a message. */
Compiler *compiler_open(unsigned jobs, const char *target, double seconds, Loader loader);

/* Ends the processes, also busy ones, and unloads and frees all kernels. NULL is ignored. */
void compiler_close(Compiler *compiler);

/* Returns the kernel of a configuration, which the first call requests. NULL: out of memory,
 * after a message. The kernel lives as long as the compiler. */
Kernel *compiler_want(Compiler *compiler, const MatmulSpec *spec, const MatmulConfig *config,
                      MatmulProgram program);

/* Drops one user's request. The last one unloads the kernel, which must not be requested again.
 * NULL is ignored. */
void compiler_drop(Compiler *compiler, Kernel *kernel);

/* Returns all kernels so far, in the order of their requests. */
Kernel *compiler_first(Compiler *compiler);

KernelState compiler_state(Compiler *compiler, const Kernel *kernel);

/* Counts kernels whose state is final; waits until there are more than `seen`, or a tenth of a
 * second is over. */
size_t compiler_wait(Compiler *compiler, size_t seen);

#endif
