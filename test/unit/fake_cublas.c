/* A shared library that passes for libcublas: products are only recorded. As the true one
 * does, it forgets a handle's workspace when its stream is set. */
#include "fake_cublas.h"

#include <stdlib.h>
#include <string.h>

enum { NOT_INITIALIZED = 1, FAILED = 13 };

typedef struct Handle {
    atomic_flag busy;
    void *stream, *workspace;
    size_t workspace_size;
} Handle;

FakeCublas fake_cublas;

int cublasCreate_v2(Handle **handle);
int cublasDestroy_v2(Handle *handle);
int cublasSetStream_v2(Handle *handle, void *stream);
int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t size);
int cublasGemmEx(Handle *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                 const void *a, int a_type, int a_stride, const void *b, int b_type,
                 int b_stride, const float *beta, void *c, int c_type, int c_stride,
                 int compute, int algorithm);

static int called(const char *name)
{
    return fake_cublas.fail && !strcmp(fake_cublas.fail, name) ? FAILED : 0;
}

int cublasCreate_v2(Handle **handle)
{
    if (called("create"))
        return FAILED;
    *handle = calloc(1, sizeof **handle);
    fake_cublas.handles++;
    return 0;
}

int cublasDestroy_v2(Handle *handle)
{
    free(handle);
    fake_cublas.handles--;
    return 0;
}

int cublasSetStream_v2(Handle *handle, void *stream)
{
    if (atomic_flag_test_and_set_explicit(&handle->busy, memory_order_relaxed))
        fake_cublas.overlaps++;
    handle->stream = stream;
    handle->workspace = NULL;
    handle->workspace_size = 0;
    int failed = called("stream");
    if (failed)
        atomic_flag_clear_explicit(&handle->busy, memory_order_relaxed);
    return failed;
}

int cublasSetWorkspace_v2(Handle *handle, void *workspace, size_t size)
{
    handle->workspace = workspace;
    handle->workspace_size = size;
    int failed = called("workspace");
    if (failed)
        atomic_flag_clear_explicit(&handle->busy, memory_order_relaxed);
    return failed;
}

int cublasGemmEx(Handle *handle, int op_a, int op_b, int m, int n, int k, const float *alpha,
                 const void *a, int a_type, int a_stride, const void *b, int b_type,
                 int b_stride, const float *beta, void *c, int c_type, int c_stride,
                 int compute, int algorithm)
{
    FakeCublas *f = &fake_cublas;
    f->stream = handle->stream;
    f->workspace = handle->workspace;
    f->workspace_size = handle->workspace_size;
    f->op_a = op_a;
    f->op_b = op_b;
    f->m = m;
    f->n = n;
    f->k = k;
    f->alpha = *alpha;
    f->a = a;
    f->a_type = a_type;
    f->a_stride = a_stride;
    f->b = b;
    f->b_type = b_type;
    f->b_stride = b_stride;
    f->beta = *beta;
    f->c = c;
    f->c_type = c_type;
    f->c_stride = c_stride;
    f->compute = compute;
    f->products++;
    int failed = algorithm == -1 ? called("multiply") : NOT_INITIALIZED;
    atomic_flag_clear_explicit(&handle->busy, memory_order_relaxed);
    return failed;
}
