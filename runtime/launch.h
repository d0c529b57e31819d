/* A launch on its way to the driver: checked, and with its parameters laid out. */
#ifndef TILUS_RUNTIME_LAUNCH_H
#define TILUS_RUNTIME_LAUNCH_H

#include "rt.h"
#include "support/limits.h"

/* One parameter in the form that its PTX declaration has. */
typedef union Parameter {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
    uint16_t u16;
} Parameter;

/* A launch. */
typedef struct Launch {
    tilus_kernel *kernel;
    CUstream stream;
    int64_t grid[3];
    size_t needed, zeroed;      /* bytes of workspace, and of them those filled before */
    uint64_t workspace;
    const tilus_arg *args;
    EncodedMap *maps;           /* encoded in the device's context */
    void **parameters;
} Launch;

/* A launch and the memory of its parameters. */
typedef struct LaunchFrame {
    Launch launch;
    Parameter values[LIMIT_ARGUMENTS + 1];      /* the last is the workspace */
    void *pointers[LIMIT_ARGUMENTS + LIMIT_TENSOR_MAPS + 1];
    EncodedMap maps[LIMIT_TENSOR_MAPS];
} LaunchFrame;

/* Checks the arguments and the workspace of `size` bytes, and begins a frame, of which an empty
 * grid needs no more. */
tilus_status launch_begin(LaunchFrame *frame, tilus_kernel *kernel, CUstream stream,
                          const tilus_arg *args, size_t count, uint64_t workspace, size_t size);

/* Returns true when the launch runs nothing. */
bool launch_is_empty(const Launch *l);

/* Lays out the parameters of a frame; tensor maps among them are encoded later. */
void launch_pack(LaunchFrame *frame);

/* Returns true for NULL, CU_STREAM_LEGACY and CU_STREAM_PER_THREAD, which are streams of the
 * current context. */
bool stream_is_special(CUstream stream);

/* Returns the kernel where it is prepared in `context`, or NULL; counts the other places. */
Loaded *kernel_find_loaded(tilus_kernel *kernel, CUcontext context, int *others);

#endif
