/* A shared library that passes for libcuda, for tests without a driver: host
 * memory as device memory, launches that are only recorded, and any call made
 * to fail on demand. A call that ends something (free, unload, release, pop)
 * does so even when it is told to fail, so that a leak is the caller's. */
#include "fake_cuda.h"

#include "cuda_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 1, INVALID_PTX = 218, INVALID_CONTEXT = 201, NOT_FOUND = 500 };

/* Opaque handles. */
struct CUctx_st { int unused; };
struct CUmod_st { char *image; };
struct CUfunc_st { int unused; };

FakeCuda fake_cuda = {.device_count = 1};

static struct CUctx_st primary;
static struct CUfunc_st function_handle;
static int parameter_bytes[FAKE_PARAMETERS];
static int parameter_count;

#define CUDA_API(name, symbol, parameters) CUresult symbol parameters;
#include "cuda_api.def"

/* Counts a call; returns the error that it is to fail with, or 0. */
static CUresult called(const char *symbol)
{
    const char *spec = fake_cuda.fail ? fake_cuda.fail : getenv("TILUS_FAKE_FAIL");
    const char *colon = spec ? strchr(spec, ':') : NULL;
    fake_cuda.calls++;
    if (!colon)
        return CUDA_SUCCESS;
    size_t len = (size_t)(colon - spec);
    if (spec[0] >= '0' && spec[0] <= '9' ? atoi(spec) == fake_cuda.calls
                                         : strlen(symbol) == len && !memcmp(spec, symbol, len))
        return atoi(colon + 1);
    return CUDA_SUCCESS;
}

/* Ends the calling function when it is to fail. */
#define CALLED()                                                              \
    do {                                                                      \
        CUresult error_ = called(__func__);                                   \
        if (error_)                                                           \
            return error_;                                                    \
    } while (0)

/* The same for what needs a current context. */
#define CALLED_IN_CONTEXT()                                                   \
    do {                                                                      \
        CALLED();                                                             \
        if (fake_cuda.current == 0)                                           \
            return INVALID_CONTEXT;                                           \
    } while (0)

/* ---- driver and device ---------------------------------------------- */

CUresult cuGetErrorName(CUresult error, const char **name)
{
    *name = error == 2 ? "CUDA_ERROR_OUT_OF_MEMORY"
          : error == CUDA_ERROR_STUB_LIBRARY ? "CUDA_ERROR_STUB_LIBRARY"
          : error == CUDA_ERROR_NO_DEVICE ? "CUDA_ERROR_NO_DEVICE"
          : error == INVALID_PTX ? "CUDA_ERROR_INVALID_PTX"
          : error == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
          : error == 719 ? "CUDA_ERROR_LAUNCH_FAILED" : NULL;
    return *name ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
    *text = error == 719 ? "unspecified launch failure" : NULL;
    return *text ? CUDA_SUCCESS : INVALID_VALUE;
}

CUresult cuInit(unsigned flags)
{
    CALLED();
    return flags ? INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    CALLED();
    *version = 13000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    CALLED();
    *count = fake_cuda.device_count;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    CALLED();
    *device = 100 + ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice device)
{
    CALLED();
    snprintf(name, (size_t)size, "Fake %d", device);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device)
{
    CALLED();
    (void)device;
    *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 8 : 6;
    return CUDA_SUCCESS;
}

/* ---- contexts ------------------------------------------------------- */

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CALLED();
    (void)device;
    fake_cuda.retained++;
    *context = &primary;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    (void)device;
    fake_cuda.retained--;
    return called(__func__);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CALLED();
    if (context != &primary || fake_cuda.retained == 0)
        return INVALID_CONTEXT;
    fake_cuda.current++;
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    fake_cuda.current--;
    *context = &primary;
    return called(__func__);
}

CUresult cuCtxSynchronize(void)
{
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

/* ---- memory --------------------------------------------------------- */

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t size)
{
    CALLED_IN_CONTEXT();
    if (size == 0)
        return INVALID_VALUE;
    void *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    if (!memory)
        return 2;
    fake_cuda.allocations++;
    *address = (CUdeviceptr)(uintptr_t)memory;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr address)
{
    free((void *)(uintptr_t)address);
    fake_cuda.allocations--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t size)
{
    CALLED_IN_CONTEXT();
    memcpy((void *)(uintptr_t)to, from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t size)
{
    CALLED_IN_CONTEXT();
    memcpy(to, (void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char byte, size_t size)
{
    CALLED_IN_CONTEXT();
    memset((void *)(uintptr_t)to, byte, size);
    return CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t size, CUstream stream)
{
    CALLED_IN_CONTEXT();
    if (stream)
        return INVALID_VALUE;
    fake_cuda.fill_bytes = size;
    fake_cuda.filled_after = fake_cuda.launches;
    memset((void *)(uintptr_t)to, byte, size);
    return CUDA_SUCCESS;
}

/* ---- modules -------------------------------------------------------- */

static void write_log(unsigned count, const int *options, void **values)
{
    char *buffer = NULL;
    size_t size = 0;
    for (unsigned i = 0; i < count; i++) {
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i];
    }
    if (buffer)
        snprintf(buffer, size, "ptxas application ptx input, line 9; fatal: syntax error\n");
}

/* Of the image, only the parameters' widths are read; "bad" is a syntax
 * error. */
CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned option_count,
                            int *options, void **option_values)
{
    CALLED_IN_CONTEXT();
    if (strstr(image, "bad")) {
        write_log(option_count, options, option_values);
        return INVALID_PTX;
    }
    parameter_count = 0;
    static const char declaration[] = ".param .u";
    for (const char *p = strstr(image, declaration); p; p = strstr(p + 1, declaration))
        if (parameter_count < FAKE_PARAMETERS)
            parameter_bytes[parameter_count++] = atoi(p + strlen(declaration)) / 8;
    size_t size = strlen(image) + 1;
    *module = malloc(sizeof **module);
    (*module)->image = malloc(size);
    memcpy((*module)->image, image, size);
    fake_cuda.modules++;
    return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module)
{
    free(module->image);
    free(module);
    fake_cuda.modules--;
    CALLED_IN_CONTEXT();
    return CUDA_SUCCESS;
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name)
{
    CALLED_IN_CONTEXT();
    *function = &function_handle;
    return strstr(module->image, name) ? CUDA_SUCCESS : NOT_FOUND;
}

CUresult cuFuncGetAttribute(int *value, int attribute, CUfunction function)
{
    CALLED_IN_CONTEXT();
    (void)function;
    *value = attribute == CU_FUNC_ATTRIBUTE_NUM_REGS ? 40
           : attribute == CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES ? 16 : -1;
    return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, int attribute, int value)
{
    CALLED_IN_CONTEXT();
    (void)function;
    if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)
        return INVALID_VALUE;
    fake_cuda.function_shared = value;
    return CUDA_SUCCESS;
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z,
                        unsigned shared_bytes, CUstream stream, void **params, void **extra)
{
    CALLED_IN_CONTEXT();
    if (function != &function_handle || stream || extra || !grid_x || !grid_y || !grid_z)
        return INVALID_VALUE;
    fake_cuda.launches++;
    memcpy(fake_cuda.grid, (unsigned[]){grid_x, grid_y, grid_z}, sizeof fake_cuda.grid);
    memcpy(fake_cuda.block, (unsigned[]){block_x, block_y, block_z}, sizeof fake_cuda.block);
    fake_cuda.shared = shared_bytes;
    memset(fake_cuda.parameters, 0, sizeof fake_cuda.parameters);
    for (int i = 0; i < parameter_count; i++)
        memcpy(&fake_cuda.parameters[i], params[i], (size_t)parameter_bytes[i]);
    return CUDA_SUCCESS;
}
