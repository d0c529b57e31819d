/* Inside the runtime: an open device, and how driver errors are kept. */
#ifndef TILUS_RUNTIME_RT_H
#define TILUS_RUNTIME_RT_H

#include "cuda_api.h"
#include "tilus/runtime.h"

enum {
    RT_MESSAGE = 16384,     /* bytes of the last failure's text */
    RT_JIT_LOG = 8192       /* bytes of it that the JIT compiler may write */
};

struct tilus_rt {
    CudaApi api;
    CUdevice device;
    CUcontext context;          /* the primary context; NULL until retained */
    char name[256];
    int capability;             /* 90 for 9.0 */
    int driver_version;
    char message[RT_MESSAGE];   /* of the last failure */
};

/* Makes a driver call. A failure sets the caller's `status`, keeps the call's
 * text with the error's name, and goes to the caller's `done`. */
#define CHECK(rt, call)                                                       \
    do {                                                                      \
        CUresult result_ = (rt)->api.call;                                    \
        if (result_ != CUDA_SUCCESS) {                                        \
            status = rt_driver_error((rt), #call, result_);                   \
            goto done;                                                        \
        }                                                                     \
    } while (0)

/* Keep a failure's text; return the status to hand on. */
tilus_status rt_driver_error(tilus_rt *rt, const char *call, CUresult result);
tilus_status rt_error(tilus_rt *rt, tilus_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Makes rt's context current for this thread, and restores what was current.
 * rt_enter also forgets the last failure. rt_leave returns `status`, or its
 * own failure when `status` is TILUS_OK. After a failed rt_enter there is
 * nothing to leave. */
tilus_status rt_enter(tilus_rt *rt);
tilus_status rt_leave(tilus_rt *rt, tilus_status status);

/* A deep copy of `info` in one block, freed with free(). NULL when memory runs
 * out. */
tilus_kernel_info *info_copy(const tilus_kernel_info *info);

#endif
