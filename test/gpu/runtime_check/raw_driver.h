/* The driver calls that runtime_check makes beside the runtime: what a server has of
 * its own (streams, graphs, threads' contexts), and launches to compare with. */
#ifndef TILUS_TEST_RAW_DRIVER_H
#define TILUS_TEST_RAW_DRIVER_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define RAW_CALLS(CALL)                                                                       \
    CALL(cuDeviceGet, (int *device, int ordinal))                                             \
    CALL(cuDevicePrimaryCtxRetain, (void **context, int device))                              \
    CALL(cuDevicePrimaryCtxRelease_v2, (int device))                                          \
    CALL(cuCtxSetCurrent, (void *context))                                                    \
    CALL(cuModuleLoadData, (void **module, const void *image))                                \
    CALL(cuModuleGetFunction, (void **function, void *module, const char *name))              \
    CALL(cuModuleUnload, (void *module))                                                      \
    CALL(cuStreamCreate, (void **stream, unsigned flags))                                     \
    CALL(cuStreamSynchronize, (void *stream))                                                 \
    CALL(cuStreamDestroy_v2, (void *stream))                                                  \
    CALL(cuMemsetD8Async, (unsigned long long to, unsigned char byte, size_t size,            \
                           void *stream))                                                     \
    CALL(cuStreamBeginCapture_v2, (void *stream, int mode))                                   \
    CALL(cuStreamEndCapture, (void *stream, void **graph))                                    \
    CALL(cuGraphInstantiateWithFlags, (void **exec, void *graph, unsigned long long flags))   \
    CALL(cuGraphLaunch, (void *exec, void *stream))                                           \
    CALL(cuGraphExecDestroy, (void *exec))                                                    \
    CALL(cuGraphDestroy, (void *graph))                                                       \
    CALL(cuLaunchKernel, (void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z,  \
                          unsigned block_x, unsigned block_y, unsigned block_z,               \
                          unsigned shared, void *stream, void **params, void **extra))

/* Launches of sm_90 need these; absent from drivers before CUDA 12. */
#define RAW_CALLS_SM90(CALL)                                                                  \
    CALL(cuLaunchKernelEx, (const RawLaunch *launch, void *function, void **params,           \
                            void **extra))                                                    \
    CALL(cuTensorMapEncodeTiled, (void *map, int type, unsigned rank, void *address,          \
                                  const uint64_t *extents, const uint64_t *strides,           \
                                  const uint32_t *box, const uint32_t *steps, int interleave, \
                                  int swizzle, int promotion, int fill))

enum { STREAM_NON_BLOCKING = 1, CAPTURE_GLOBAL = 0 };
enum { ATTRIBUTE_CLUSTER = 4, MAP_UINT8 = 0, MAP_SWIZZLE_128 = 3, MAP_PROMOTION_256 = 3 };

/* CUlaunchAttribute and CUlaunchConfig. */
typedef struct RawAttribute {
    int id;
    union {
        uint64_t bytes[8];
        unsigned cluster[3];
    } value;
} RawAttribute;

typedef struct RawLaunch {
    unsigned grid[3], block[3], shared;
    void *stream;
    RawAttribute *attributes;
    unsigned attribute_count;
} RawLaunch;

typedef struct RawDriver {
#define CALL(name, parameters) int (*name) parameters;
    RAW_CALLS(CALL)
    RAW_CALLS_SM90(CALL)
#undef CALL
} RawDriver;

/* The library that the runtime has loaded already. Calls of sm_90 may be NULL. */
static inline bool raw_driver_find(RawDriver *raw)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool ok = library != NULL;
#define CALL(name, parameters)                                                                \
    *(void **)&raw->name = library ? dlsym(library, #name) : NULL;                            \
    ok = ok && raw->name;
    RAW_CALLS(CALL)
#undef CALL
#define CALL(name, parameters)                                                                \
    *(void **)&raw->name = library ? dlsym(library, #name) : NULL;
    RAW_CALLS_SM90(CALL)
#undef CALL
    if (!ok)
        fprintf(stderr, "libcuda.so.1 lacks a call that runtime_check makes\n");
    return ok;
}

#endif
