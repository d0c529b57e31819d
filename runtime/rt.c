/* An open device: its driver, its context, its last error. */
#include "rt.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- errors --------------------------------------------------------- */

tilus_status rt_error(tilus_rt *rt, tilus_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(rt->message, sizeof rt->message, format, args);
    va_end(args);
    return status;
}

tilus_status rt_driver_error(tilus_rt *rt, const char *call, CUresult result)
{
    const char *name = NULL, *text = NULL;
    if (rt->api.cuGetErrorName(result, &name) != CUDA_SUCCESS || !name)
        name = "unknown error";
    if (rt->api.cuGetErrorString(result, &text) != CUDA_SUCCESS || !text)
        text = "the driver has no description";
    tilus_status status = result == CUDA_ERROR_STUB_LIBRARY ? TILUS_ERROR_NO_DRIVER
                        : result == CUDA_ERROR_NO_DEVICE ? TILUS_ERROR_NO_DEVICE
                        : TILUS_ERROR_DRIVER;
    return rt_error(rt, status, "%s: %s (%d: %s)", call, name, result, text);
}

const char *tilus_rt_error(const tilus_rt *rt)
{
    return rt->message;
}

/* ---- context -------------------------------------------------------- */

tilus_status rt_enter(tilus_rt *rt)
{
    tilus_status status = TILUS_OK;
    rt->message[0] = 0;
    CHECK(rt, cuCtxPushCurrent(rt->context));
done:
    return status;
}

tilus_status rt_leave(tilus_rt *rt, tilus_status status)
{
    CUcontext popped;
    CUresult result = rt->api.cuCtxPopCurrent(&popped);
    if (result != CUDA_SUCCESS && status == TILUS_OK)
        return rt_driver_error(rt, "cuCtxPopCurrent(&popped)", result);
    return status;
}

tilus_status tilus_rt_synchronize(tilus_rt *rt)
{
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    CHECK(rt, cuCtxSynchronize());
done:
    return rt_leave(rt, status);
}

/* ---- open and close ------------------------------------------------- */

static tilus_status find_device(tilus_rt *rt, int ordinal)
{
    tilus_status status = TILUS_OK;
    int count = 0;
    CHECK(rt, cuInit(0));
    CHECK(rt, cuDeviceGetCount(&count));
    if (count == 0)
        return rt_error(rt, TILUS_ERROR_NO_DEVICE, "no CUDA device");
    if (ordinal < 0 || ordinal >= count)
        return rt_error(rt, TILUS_ERROR_NO_DEVICE, "no CUDA device %d, the machine has %d",
                        ordinal, count);
    CHECK(rt, cuDeviceGet(&rt->device, ordinal));
done:
    return status;
}

static tilus_status describe_device(tilus_rt *rt)
{
    tilus_status status = TILUS_OK;
    int major = 0, minor = 0;
    CHECK(rt, cuDriverGetVersion(&rt->driver_version));
    CHECK(rt, cuDeviceGetName(rt->name, sizeof rt->name, rt->device));
    CHECK(rt, cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                   rt->device));
    CHECK(rt, cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                   rt->device));
    rt->capability = 10 * major + minor;
done:
    return status;
}

static tilus_status open_device(tilus_rt *rt, int ordinal)
{
    if (!cuda_api_load(&rt->api, rt->message, sizeof rt->message))
        return TILUS_ERROR_NO_DRIVER;
    tilus_status status = find_device(rt, ordinal);
    if (status == TILUS_OK)
        status = describe_device(rt);
    if (status == TILUS_OK)
        CHECK(rt, cuDevicePrimaryCtxRetain(&rt->context, rt->device));
done:
    return status;
}

tilus_status tilus_rt_open(int device, tilus_rt **out, char *message, size_t size)
{
    *out = NULL;
    if (size > 0)
        message[0] = 0;
    tilus_rt *rt = calloc(1, sizeof *rt);
    if (!rt) {
        snprintf(message, size, "out of memory");
        return TILUS_ERROR_MEMORY;
    }
    tilus_status status = open_device(rt, device);
    if (status == TILUS_OK) {
        *out = rt;
        return TILUS_OK;
    }
    snprintf(message, size, "%s", rt->message);
    tilus_rt_close(rt);
    return status;
}

void tilus_rt_close(tilus_rt *rt)
{
    if (rt && rt->context)
        rt->api.cuDevicePrimaryCtxRelease(rt->device);
    free(rt);
}

const char *tilus_rt_device_name(const tilus_rt *rt)
{
    return rt->name;
}

int tilus_rt_compute_capability(const tilus_rt *rt)
{
    return rt->capability;
}

int tilus_rt_driver_version(const tilus_rt *rt)
{
    return rt->driver_version;
}
