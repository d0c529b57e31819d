/* The CUDA driver's interface, as far as the runtime needs it: own prototypes,
 * so that building needs no CUDA toolkit, and pointers that are found in
 * libcuda when a device is opened, so that linking needs no driver. */
#ifndef TILUS_RUNTIME_CUDA_API_H
#define TILUS_RUNTIME_CUDA_API_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;

/* Values from the driver API reference. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,

    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,

    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6
};

/* One pointer a row of cuda_api.def. */
typedef struct CudaApi {
#define CUDA_API(name, symbol, parameters) CUresult (*name) parameters;
#include "cuda_api.def"
} CudaApi;

/* Loads libcuda.so.1 (or the library that the environment variable
 * TILUS_LIBCUDA names) and finds every call. On failure returns false and
 * message[0..size) says why. The library stays loaded: once initialised, the
 * driver has threads and exit handlers that outlive its last user. */
bool cuda_api_load(CudaApi *api, char *message, size_t size);

#endif
