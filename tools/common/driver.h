/* The CUDA driver, as far as tools that measure need more of it than the runtime gives:
 * graphs, events, copies of buffers. */
#ifndef TILUS_TOOLS_DRIVER_H
#define TILUS_TOOLS_DRIVER_H

#include <stdbool.h>
#include <stddef.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUevent_st *CUevent;

/* Values from the driver API reference. */
enum {
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_STREAM_NON_BLOCKING = 1,
    CU_STREAM_CAPTURE_MODE_THREAD_LOCAL = 1
};

typedef struct Driver {
    const char *user;           /* what messages begin with: "tilus-run: error: --bench" */
#define DRIVER(name, symbol, parameters) CUresult (*name) parameters;
#include "common/driver.def"
} Driver;

/* Finds every call in the library that the runtime has loaded. `user` lives as long as the
 * driver. False after it has said on stderr what is missing. */
bool driver_load(Driver *driver, const char *user);

/* Makes a call; false after a failure, which stands on stderr with the call's text. */
#define DRIVER_CALL(driver, call) driver_check((driver), (driver)->call, #call)
bool driver_check(const Driver *driver, CUresult result, const char *call);

#endif
