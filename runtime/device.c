/* A device: its description, its primary context, and the loss of that. */
#include "rt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

tilus_status device_describe(tilus_rt *rt, Device *device, int ordinal)
{
    const ErrorContext at = {.rt = rt};
    tilus_status status = TILUS_OK;
    int major = 0, minor = 0, shared = 0;
    device->ordinal = ordinal;
    CHECK(&at, cuDeviceGet(&device->handle, ordinal));
    CUdevice handle = device->handle;
    CHECK(&at, cuDeviceGetName(device->name, sizeof device->name, handle));
    CHECK(&at, cuDeviceTotalMem(&device->memory, handle));
    CHECK(&at, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                    handle));
    CHECK(&at, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                    handle));
    CHECK(&at, cuDeviceGetAttribute(&device->multiprocessors,
                                    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, handle));
    CHECK(&at, cuDeviceGetAttribute(&shared,
                                    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                                    handle));
    device->capability = 10 * major + minor;
    device->shared = (size_t)shared;
done:
    return status;
}

tilus_status device_find(ErrorContext *at, tilus_rt *rt, int ordinal)
{
    *at = (ErrorContext){.rt = rt};
    if (!rt)
        return RT_FAIL_NULL(rt);
    if (ordinal < 0 || ordinal >= rt->device_count)
        return rt_fail(TILUS_ERROR_NO_DEVICE, "no CUDA device %d, the process has %d", ordinal,
                       rt->device_count);
    at->device = &rt->devices[ordinal];
    return TILUS_OK;
}

tilus_status device_check(const ErrorContext *at)
{
    if (at->rt->has_engine)
        return TILUS_OK;
    if (at->rt->is_software)
        return rt_fail_at(at, TILUS_ERROR_NO_DRIVER, "a software device has no driver, and runs "
                          "nothing without an engine");
    if (!fork_mark_is_mine(&at->rt->mark))
        return rt_fail(TILUS_ERROR_STATE, "this process was forked after tilus_rt_open, which a "
                       "CUDA driver does not survive: fork first, or start a new program (in "
                       "Python, multiprocessing's method \"spawn\")");
    if (at->device && atomic_load_explicit(&at->device->lost, memory_order_acquire))
        return rt_fail(TILUS_ERROR_LOST, "%s", at->device->why);
    return TILUS_OK;
}

/* ---- the context ---------------------------------------------------- */

static tilus_status retain(const ErrorContext *at)
{
    Device *device = at->device;
    CUcontext context = atomic_load_explicit(&device->context, memory_order_acquire);
    CUresult result = CUDA_SUCCESS;
    if (context)
        return TILUS_OK;
    pthread_mutex_lock(&device->lock);
    if (!atomic_load_explicit(&device->context, memory_order_relaxed)) {
        result = at->rt->api.cuDevicePrimaryCtxRetain(&context, device->handle);
        if (result == CUDA_SUCCESS)
            atomic_store_explicit(&device->context, context, memory_order_release);
    }
    pthread_mutex_unlock(&device->lock);
    return result == CUDA_SUCCESS ? TILUS_OK
                                  : rt_fail_driver(at, "cuDevicePrimaryCtxRetain", result);
}

tilus_status device_enter(const ErrorContext *at, bool *pushed)
{
    CUcontext current;
    assert(at->device);
    *pushed = false;
    tilus_status status = device_check(at);
    if (status == TILUS_OK && at->rt->is_software)
        return status;
    if (status == TILUS_OK)
        status = retain(at);
    if (status != TILUS_OK)
        return status;
    CUcontext context = atomic_load_explicit(&at->device->context, memory_order_acquire);
    CHECK(at, cuCtxGetCurrent(&current));
    if (current == context)
        return TILUS_OK;
    CHECK(at, cuCtxPushCurrent(context));
    *pushed = true;
done:
    return status;
}

tilus_status device_leave(const ErrorContext *at, bool pushed, tilus_status status)
{
    CUcontext popped;
    CUresult result = pushed ? at->rt->api.cuCtxPopCurrent(&popped) : CUDA_SUCCESS;
    if (result == CUDA_SUCCESS)
        return status;
    if (status == TILUS_OK)
        return rt_fail_driver(at, "cuCtxPopCurrent", result);
    rt_log_driver_failure(at, "cuCtxPopCurrent", result);
    return status;
}

/* ---- its loss ------------------------------------------------------- */

/* x has 31 bits, y and z 16: LIMIT_GRID_X and _YZ, which tilus_kernel_check holds. */
static uint64_t grid_pack(const int64_t grid[3])
{
    assert((grid[0] | INT32_MAX) == INT32_MAX && ((grid[1] | grid[2]) | 0xffff) == 0xffff);
    return (uint64_t)grid[0] | (uint64_t)grid[1] << 31 | (uint64_t)grid[2] << 47;
}

/* "kernel @scale, grid [4, 1, 1]" */
static void describe_launch(const Loaded *l, char text[RT_LINE])
{
    uint64_t grid = atomic_load_explicit(&l->grid, memory_order_relaxed);
    const char *name = l->kernel->artefact->info->name;
    snprintf(text, RT_LINE, "kernel @%.300s, grid [%u, %u, %u]", name,
             (unsigned)(grid & 0x7fffffff), (unsigned)(grid >> 31 & 0xffff),
             (unsigned)(grid >> 47));
}

/* Errors come late, and whoever waits next gets them: it is the last launch that did it,
 * or one before it. */
void device_lose(Device *device, const char *error)
{
    char launch[RT_LINE] = "no kernel launched here";
    pthread_mutex_lock(&device->lock);
    const Loaded *last = atomic_load_explicit(&device->last, memory_order_acquire);
    if (last)
        describe_launch(last, launch);
    else if (device->unloaded[0])
        memcpy(launch, device->unloaded, sizeof launch);
    if (!atomic_load_explicit(&device->lost, memory_order_relaxed)) {
        snprintf(device->why, sizeof device->why, "context lost: %.400s (the last launch), "
                 "device %d (%s): %s; every call on this device fails now: start a new "
                 "process",
                 launch, device->ordinal, device->name, error);
        atomic_store_explicit(&device->lost, true, memory_order_release);
    }
    pthread_mutex_unlock(&device->lock);
}

/* Most launches are as the last: then nothing is written that other threads read. */
void device_note_launch(Device *device, Loaded *loaded, const int64_t grid[3])
{
    uint64_t packed = grid_pack(grid);
    if (atomic_load_explicit(&loaded->grid, memory_order_relaxed) != packed)
        atomic_store_explicit(&loaded->grid, packed, memory_order_relaxed);
    if (atomic_load_explicit(&device->last, memory_order_relaxed) != loaded)
        atomic_store_explicit(&device->last, loaded, memory_order_release);
}

/* Another kernel's launch, noted in between, stays. */
void device_forget(Device *device, Loaded *loaded)
{
    pthread_mutex_lock(&device->lock);
    if (atomic_load_explicit(&device->last, memory_order_acquire) == loaded) {
        describe_launch(loaded, device->unloaded);
        atomic_compare_exchange_strong(&device->last, &loaded, NULL);
    }
    pthread_mutex_unlock(&device->lock);
}
