/* Products of many rows: the weights are unpacked to a plain matrix in the workspace, and
 * cuBLAS, where there is one, multiplies. It is loaded when the first plan asks for it, and
 * needs nothing when this library is built.
 *
 * cuBLAS counts columns first, so that C[m, n] = A[m, k] x B[n, k]^T is for it
 *
 *     C^T [n, m] = (B^T [k, n])^T x A^T [k, m] */
#include "matmul/cublas.h"
#include "matmul/internal.h"
#include "support/integer.h"

#include <stdlib.h>

/* ---- the library -------------------------------------------------------- */

/* Looks for cuBLAS, with the library's lock held; matmul->dense stays NULL without one. */
static tilus_status find_api(tilus_matmul *matmul)
{
    if (matmul->dense_known)
        return TILUS_OK;
    DenseApi *api = calloc(1, sizeof *api);
    if (!api)
        return library_fail_memory();
    matmul->dense_known = true;
    if (cublas_find(api))
        matmul->dense = api;
    else
        free(api);
    return TILUS_OK;
}

void dense_close(DenseApi *api)
{
    free(api);
}

/* ---- plans -------------------------------------------------------------- */

/* Returns true when cuBLAS can compute the problem: A as it is, weights that can be unpacked,
 * and a plain product. */
static bool is_plain(const MatmulSpec *s)
{
    return s->activations == s->product && !matmul_is_a8(s) && matmul_centred_fits(s) &&
           (s->result == s->product || s->result == DTYPE_f32) && !s->bias && !s->residual &&
           s->function == TILUS_EPILOGUE_NONE && s->experts == 0 && !s->gated && !s->batch_invariant &&
           !matmul_has_factor(s) && s->prologue == TILUS_PROLOGUE_NONE;
}

tilus_status dense_plan(tilus_matmul_plan *plan)
{
    tilus_matmul *matmul = plan->matmul;
    plan->dense.possible = is_plain(&plan->spec);
    if (!plan->dense.possible || tilus_rt_driver_version(matmul->library.rt) == 0)
        return TILUS_OK;
    pthread_mutex_lock(&matmul->lock);
    tilus_status status = find_api(matmul);
    plan->dense.api = matmul->dense;
    pthread_mutex_unlock(&matmul->lock);
    return status;
}

bool dense_may_serve(const tilus_matmul_plan *plan, int64_t m)
{
    return plan->dense.possible && m >= MATMUL_DENSE_M &&
           !matmul_by_wgmma(&plan_choice(plan, m)->config) &&
           (plan->dense.api || tilus_rt_driver_version(plan->matmul->library.rt) == 0);
}

bool dense_serves(const tilus_matmul_plan *plan, int64_t m)
{
    return plan->dense.api && dense_may_serve(plan, m);
}

/* Counts bytes of the unpacked weights. */
static size_t unpacked_bytes(const tilus_matmul_plan *plan)
{
    size_t bytes = 2 * (size_t)plan->spec.n * (size_t)plan->spec.k;
    return round_up_size(bytes, MATMUL_ALIGN);
}

size_t dense_workspace(const tilus_matmul_plan *plan)
{
    return TILUS_MATMUL_SEMAPHORES + unpacked_bytes(plan) + CUBLAS_WORKSPACE;
}

/* ---- handles ------------------------------------------------------------ */

static tilus_status check(int result, const char *call)
{
    if (result == CUBLAS_SUCCESS)
        return TILUS_OK;
    return library_fail(TILUS_ERROR_DRIVER, "%s: cuBLAS status %d", call, result);
}

/* Creates the cuBLAS handle, with the plan's lock held and the device's context current. */
static tilus_status create_handle(Dense *dense)
{
    void *handle = NULL;
    if (atomic_load_explicit(&dense->handle, memory_order_relaxed))
        return TILUS_OK;
    tilus_status status = check(dense->api->create(&handle), "cublasCreate");
    if (status == TILUS_OK)
        atomic_store_explicit(&dense->handle, handle, memory_order_release);
    return status;
}

tilus_status dense_prepare(tilus_matmul_plan *plan)
{
    tilus_rt *rt = plan->matmul->library.rt;
    bool entered;
    tilus_status status = kernel_prepare(unpack_kernel(plan, plan->spec.product), plan->ordinal);
    if (status == TILUS_OK)
        status = tilus_rt_enter(rt, plan->ordinal, &entered);
    if (status != TILUS_OK)
        return status;
    pthread_mutex_lock(&plan->dense.lock);
    status = create_handle(&plan->dense);
    pthread_mutex_unlock(&plan->dense.lock);
    tilus_status left = tilus_rt_leave(rt, plan->ordinal, entered);
    return status == TILUS_OK ? left : status;
}

void dense_free(tilus_matmul_plan *plan)
{
    void *handle = atomic_load(&plan->dense.handle);
    tilus_rt *rt = plan->matmul->library.rt;
    bool entered;
    if (!handle || tilus_rt_enter(rt, plan->ordinal, &entered) != TILUS_OK)
        return;
    plan->dense.api->destroy(handle);
    tilus_rt_leave(rt, plan->ordinal, entered);
}

/* ---- products ----------------------------------------------------------- */

static int data_type(DType type)
{
    return type == DTYPE_f32 ? CUDA_R_32F : type == DTYPE_bf16 ? CUDA_R_16BF : CUDA_R_16F;
}

static void *pointer(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* Multiplies by cuBLAS. Setting the stream resets the workspace, so the stream comes first. */
static tilus_status multiply(const tilus_matmul_plan *plan, void *handle, tilus_stream stream,
                             const tilus_matmul_call *call)
{
    const DenseApi *api = plan->dense.api;
    const MatmulSpec *s = &plan->spec;
    const float one = 1, zero = 0;
    int m = (int)call->m, n = (int)s->n, k = (int)s->k;
    int stride = call->a_stride ? (int)call->a_stride : k;
    int type = data_type(s->product);
    uint64_t unpacked = call->workspace + TILUS_MATMUL_SEMAPHORES;
    void *workspace = pointer(unpacked + unpacked_bytes(plan));
    tilus_status status = check(api->set_stream(handle, stream), "cublasSetStream");
    if (status == TILUS_OK)
        status = check(api->set_workspace(handle, workspace, CUBLAS_WORKSPACE),
                       "cublasSetWorkspace");
    if (status == TILUS_OK)
        status = check(api->multiply(handle, CUBLAS_OP_T, CUBLAS_OP_N, n, m, k, &one,
                                     pointer(unpacked), type, k, pointer(call->a), type,
                                     stride, &zero, pointer(call->c), data_type(s->result), n,
                                     CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT), "cublasGemmEx");
    return status;
}

/* A handle is one thread's at a time, so enqueueing takes turns. */
static tilus_status multiply_alone(tilus_matmul_plan *plan, void *handle, tilus_stream stream,
                                   const tilus_matmul_call *call)
{
    tilus_rt *rt = plan->matmul->library.rt;
    bool entered;
    tilus_status status = tilus_rt_enter(rt, plan->ordinal, &entered);
    if (status != TILUS_OK)
        return status;
    pthread_mutex_lock(&plan->dense.lock);
    status = multiply(plan, handle, stream, call);
    pthread_mutex_unlock(&plan->dense.lock);
    tilus_status left = tilus_rt_leave(rt, plan->ordinal, entered);
    return status == TILUS_OK ? left : status;
}

tilus_status dense_run(tilus_matmul_plan *plan, tilus_stream stream,
                       const tilus_matmul_call *call)
{
    void *handle = atomic_load_explicit(&plan->dense.handle, memory_order_acquire);
    if (!handle)
        return library_fail(TILUS_ERROR_STATE, "call tilus_matmul_prepare for %lld rows first: "
                            "from %d on cuBLAS multiplies, which allocates when it is made "
                            "ready", (long long)call->m, MATMUL_DENSE_M);
    const KernelLaunch unpack = unpack_launch(plan, plan->spec.product, call->weights, 0, plan->packed.slices,
                                              plan->spec.k, call->workspace + TILUS_MATMUL_SEMAPHORES);
    tilus_status status = launches_run(plan, &unpack, 1, stream, KERNEL_FIRST_EARLY);
    return status == TILUS_OK ? multiply_alone(plan, handle, stream, call) : status;
}
