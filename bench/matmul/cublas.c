/* cuBLAS in f16. */
#include "bench.h"

#include "matmul/cublas.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct Cublas {
    Measure *measure;
    const Settings *settings;
    DenseApi api;
    void *handle;
    int64_t n, k, m;            /* m: of the product that is measured */
    size_t stride;              /* bytes from one copy of B to the next */
    unsigned copies;
    CUdeviceptr b, a, c, workspace;
};

static bool check(int status, const char *call)
{
    if (status != CUBLAS_SUCCESS)
        fprintf(stderr, BENCH_USER ": %s: status %d\n", call, status);
    return status == CUBLAS_SUCCESS;
}

static void *pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

/* ---- operands --------------------------------------------------------------- */

/* Random numbers of 1/32 to 1/16, for tensor cores that are fed with equal ones take less
 * power; a part that the host has made, again and again. */
static bool fill(Cublas *c, CUdeviceptr to, size_t bytes, unsigned seed)
{
    enum { PART = 1 << 23 };
    const Driver *d = &c->measure->driver;
    uint32_t state = seed | 1;
    uint16_t *part = malloc(PART);
    bool ok = part;
    for (size_t i = 0; ok && i < PART / sizeof *part; i++) {
        state = state * 1664525 + 1013904223;
        part[i] = (uint16_t)((state >> 16 & 0x83ff) | 0x2800);
    }
    for (size_t done = 0; ok && done < bytes; done += PART)
        ok = DRIVER_CALL(d, cuMemcpyHtoD(to + done, part,
                                         bytes - done < PART ? bytes - done : PART));
    free(part);
    return ok;
}

static bool open_operands(Cublas *c)
{
    enum { ALIGN = 256 };
    const Driver *d = &c->measure->driver;
    size_t bytes = (size_t)(c->n * c->k) * 2;
    c->stride = (bytes + ALIGN - 1) / ALIGN * ALIGN;
    c->copies = device_copies(c->settings, c->stride);
    return DRIVER_CALL(d, cuMemAlloc(&c->b, c->stride * c->copies)) &&
           fill(c, c->b, c->stride * c->copies, c->settings->seed) &&
           DRIVER_CALL(d, cuMemAlloc(&c->workspace, CUBLAS_WORKSPACE)) &&
           check(c->api.create(&c->handle), "cublasCreate") &&
           check(c->api.set_stream(c->handle, c->measure->stream), "cublasSetStream") &&
           check(c->api.set_workspace(c->handle, pointer(c->workspace), CUBLAS_WORKSPACE),
                 "cublasSetWorkspace");
}

bool cublas_open(Measure *measure, const Settings *settings, Cublas **out)
{
    Cublas *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return false;
    c->measure = measure;
    c->settings = settings;
    c->n = settings->problem.n;
    c->k = settings->problem.k;
    bool found = cublas_find(&c->api), ok = found && open_operands(c);
    if (!found)
        fprintf(stderr, TOOL ": no cuBLAS, whose columns stay empty\n");
    if (ok)
        *out = c;
    else
        cublas_close(c);
    return ok || !found;
}

void cublas_close(Cublas *c)
{
    if (!c)
        return;
    const Driver *d = &c->measure->driver;
    if (c->handle)
        c->api.destroy(c->handle);
    if (c->b)
        d->cuMemFree(c->b);
    if (c->workspace)
        d->cuMemFree(c->workspace);
    free(c);
}

/* ---- the product ------------------------------------------------------------- */

/* In cuBLAS's column-major terms C'[n, m] = B'[n, k] A'[k, m]. Of B as [n, k] that is the
 * product with B transposed, of B as [k, n] the one without; the numbers are random either
 * way, so both read the same bytes. */
static bool multiply(Cublas *c, unsigned copy, bool by_columns)
{
    const float one = 1, zero = 0;
    int n = (int)c->n, k = (int)c->k, m = (int)c->m;
    return check(c->api.multiply(c->handle, by_columns ? CUBLAS_OP_N : CUBLAS_OP_T, CUBLAS_OP_N,
                                 n, m, k, &one, pointer(c->b + copy * c->stride), CUDA_R_16F,
                                 by_columns ? n : k, pointer(c->a), CUDA_R_16F, k, &zero,
                                 pointer(c->c), CUDA_R_16F, n, CUBLAS_COMPUTE_32F,
                                 CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

static bool launch_nk(void *cublas, unsigned copy)
{
    return multiply(cublas, copy, false);
}

static bool launch_kn(void *cublas, unsigned copy)
{
    return multiply(cublas, copy, true);
}

static bool measure_layouts(Cublas *c, double *us, const char **layout)
{
    static const struct {
        const char *name;
        MeasureLaunch *launch;
    } layouts[] = {{"nk", launch_nk}, {"kn", launch_kn}};
    MeasureTimes times;
    *us = INFINITY;
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        const MeasureWork work = {layouts[i].launch, c, c->copies};
        if (!measure_graph(c->measure, &work, c->settings->state, &times))
            return false;
        double median = measure_summary(&times).median;
        *layout = median < *us ? layouts[i].name : *layout;
        *us = fmin(*us, median);
    }
    return true;
}

bool cublas_measure(Cublas *c, int64_t m, double *us, const char **layout)
{
    const Driver *d = &c->measure->driver;
    size_t a_bytes = (size_t)(m * c->k) * 2;
    c->m = m;
    bool ok = DRIVER_CALL(d, cuMemAlloc(&c->a, a_bytes)) && fill(c, c->a, a_bytes, 1) &&
              DRIVER_CALL(d, cuMemAlloc(&c->c, (size_t)(m * c->n) * 2)) &&
              DRIVER_CALL(d, cuStreamSynchronize(NULL)) && measure_layouts(c, us, layout);
    if (c->a)
        d->cuMemFree(c->a);
    if (c->c)
        d->cuMemFree(c->c);
    c->a = c->c = 0;
    return ok;
}
