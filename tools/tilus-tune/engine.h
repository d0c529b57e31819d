/* The engine that runs products: the GPU, or the CPU engine, whose times mean nothing for a
 * GPU. Memory is named by addresses, which may point inside an allocation. */
#ifndef TILUS_TUNE_ENGINE_H
#define TILUS_TUNE_ENGINE_H

#include "tune.h"

#include <stdatomic.h>

typedef enum EngineKind { ENGINE_GPU, ENGINE_CPU } EngineKind;

typedef struct Engine Engine;

/* A kernel that is loaded. */
typedef struct EngineKernel {
    const tilus_kernel_info *info;
} EngineKernel;

/* Work that is timed: launches of copy `copy` of the data. */
typedef struct EngineWork {
    bool (*launch)(void *data, unsigned copy);
    void *data;
    unsigned copies;
} EngineWork;

/* Functions that return false have put the reason into `message`. One thread calls them; load
 * is for several, beside it. */
struct Engine {
    MatmulDevice device;
    char device_name[MATMUL_DEVICE_MAX], driver[MATMUL_DRIVER_MAX];
    const char *target;
    size_t cache;               /* bytes of the L2 cache */
    atomic_bool lost;           /* a kernel broke the device's context: nothing works */
    char message[1024];

    void (*close)(Engine *e);
    bool (*allocate)(Engine *e, size_t size, uint64_t *address);
    void (*release)(Engine *e, uint64_t address);
    bool (*upload)(Engine *e, uint64_t to, const void *from, size_t size);
    bool (*download)(Engine *e, void *to, uint64_t from, size_t size);
    bool (*fill)(Engine *e, uint64_t to, unsigned char byte, size_t size);
    EngineKernel *(*load)(Engine *e, const void *artefact, size_t size, char *message,
                          size_t message_size);
    void (*unload)(Engine *e, EngineKernel *kernel);
    bool (*launch)(Engine *e, EngineKernel *kernel, const tilus_arg *args, size_t count);
    bool (*wait)(Engine *e);

    /* Microseconds of one piece of the work. It may stop early when it is clearly slower than
       `best` (0: none), and `*whole` is false then. */
    bool (*time)(Engine *e, const EngineWork *work, double best, double *us, bool *whole);
};

/* NULL after a message. engine->close frees it. */
Engine *engine_open(EngineKind kind);
Engine *engine_open_gpu(void);
Engine *engine_open_cpu(void);

#endif
