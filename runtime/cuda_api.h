/* The CUDA driver's interface, as far as the runtime needs it: own prototypes,
 * so that building needs no CUDA toolkit, and pointers that are found in
 * libcuda when the runtime is opened, so that linking needs no driver. */
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
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphExec_st *CUgraphExec;
typedef struct CUgraphNode_st *CUgraphNode;

/* Values from the driver API reference. */
enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_STUB_LIBRARY = 34,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_TENSOR_MEMORY_LEAK = 721,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_IMPLICIT = 906,
    CUDA_ERROR_EXTERNAL_DEVICE = 911,

    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,

    CU_STREAM_CAPTURE_MODE_RELAXED = 2,

    CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1,
    CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1,

    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6
};

/* An attribute of a launch: 72 bytes, of which each kind of attribute reads its own
 * member. */
typedef struct CUlaunchAttribute {
    int id;
    union {
        uint64_t bytes[8];
        int cooperative;
        int programmatic_stream_serialization;
        struct {
            unsigned x, y, z;
        } cluster;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    CUstream stream;
    CUlaunchAttribute *attributes;
    unsigned attribute_count;
} CUlaunchConfig;

/* A launch in a graph: CUDA_KERNEL_NODE_PARAMS of version 2, whose `kernel` and `context` follow
 * from the function where they are NULL. */
typedef struct CUkernelNodeParams {
    CUfunction function;
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    void **params, **extra;
    CUkernel kernel;
    CUcontext context;
} CUkernelNodeParams;

/* What an edge of a graph waits for. */
typedef struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;

/* One pointer a row of cuda_api.def. */
typedef struct CudaApi {
#define CUDA_API(name, symbol, parameters) CUresult (*name) parameters;
#include "cuda_api.def"
} CudaApi;

/* Loads the library at `path` (NULL: what the environment variable TILUS_LIBCUDA
 * names, else libcuda.so.1) and finds every call; optional ones that it lacks are
 * NULL. On failure returns false and message[0..size) says why. The library stays
 * loaded: once initialized, the driver has threads and exit handlers that outlive
 * its last user. */
bool cuda_api_load(CudaApi *api, const char *path, char *message, size_t size);

/* Returns true when the driver has all of the library calls (cuLibrary...). */
bool cuda_api_has_libraries(const CudaApi *api);

/* Returns true when the driver has all of the graph calls (cuGraph...). */
bool cuda_api_has_graphs(const CudaApi *api);

#endif
