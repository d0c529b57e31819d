/* cuBLAS, as far as it is called: found at run time, and not needed when this is built. */
#ifndef TILUS_MATMUL_CUBLAS_H
#define TILUS_MATMUL_CUBLAS_H

#include "tilus/runtime.h"

#include <stdbool.h>

/* Values from the cuBLAS and CUDA reference. */
enum {
    CUBLAS_SUCCESS = 0,
    CUBLAS_OP_N = 0,
    CUBLAS_OP_T = 1,
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_GEMM_DEFAULT = -1,
    CUDA_R_32F = 0,
    CUDA_R_16F = 2,
    CUDA_R_16BF = 14,
};

/* Bytes of cuBLAS's workspace, as many as it takes by itself on sm_90; calls that allocate their
 * own workspace cannot be captured into graphs. */
enum { CUBLAS_WORKSPACE = 32 << 20 };

struct DenseApi {
    int (*create)(void **handle);
    int (*destroy)(void *handle);
    int (*set_stream)(void *handle, tilus_stream stream);
    int (*set_workspace)(void *handle, void *workspace, size_t size);
    int (*multiply)(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha,
                    const void *a, int a_type, int a_stride, const void *b, int b_type,
                    int b_stride, const void *beta, void *c, int c_type, int c_stride,
                    int compute, int algorithm);
};

typedef struct DenseApi DenseApi;

/* Finds the library that TILUS_LIBCUBLAS names (an empty value stands for none), else
 * libcublas.so.13 or .12, and its calls; false: there is none. It stays loaded, as it has
 * threads and handlers that outlive its users. */
bool cublas_find(DenseApi *api);

#endif
