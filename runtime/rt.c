/* Opening the driver, and what it has. */
#include "rt.h"

#include "support/sized.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- open and close ------------------------------------------------- */

tilus_status devices_allocate(tilus_rt *rt, int count)
{
    rt->devices = calloc((size_t)count, sizeof *rt->devices);
    if (!rt->devices)
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    rt->device_count = count;
    for (int i = 0; i < count; i++) {
        pthread_mutex_init(&rt->devices[i].lock, NULL);
        pthread_mutex_init(&rt->devices[i].turn, NULL);
    }
    return TILUS_OK;
}

static tilus_status describe_devices(tilus_rt *rt)
{
    tilus_status status = TILUS_OK;
    for (int i = 0; i < rt->device_count && status == TILUS_OK; i++)
        status = device_describe(rt, &rt->devices[i], i);
    return status;
}

static tilus_status open_driver(tilus_rt *rt)
{
    const ErrorContext at = {.rt = rt};
    tilus_status status = TILUS_OK;
    char message[RT_LINE];
    int count = 0;
    if (!cuda_api_load(&rt->api, rt->options.library, message, sizeof message))
        return rt_fail(TILUS_ERROR_NO_DRIVER, "%s", message);
    rt->has_libraries = cuda_api_has_libraries(&rt->api);
    CHECK(&at, cuInit(0));
    CHECK(&at, cuDriverGetVersion(&rt->driver_version));
    CHECK(&at, cuDeviceGetCount(&count));
    if (count == 0)
        return rt_fail(TILUS_ERROR_NO_DEVICE, "no CUDA device: the driver is there and has none");
    status = devices_allocate(rt, count);
    if (status == TILUS_OK)
        status = describe_devices(rt);
done:
    return status;
}

/* Opens what the options ask for. What they point to is needed no more then. */
static tilus_status open_as_asked(tilus_rt *rt, const tilus_rt_options *options)
{
    char message[RT_LINE];
    const Report why = {message, sizeof message};
    if (!SIZED_COPY(tilus_rt_options, &rt->options, options, "options", why))
        return rt_fail(TILUS_ERROR_ARGUMENT, "%s", message);
    bool is_software = rt->options.devices || rt->options.device_count || rt->options.engine;
    tilus_status status = is_software ? software_open(rt) : open_driver(rt);
    rt->options.library = NULL;
    rt->options.devices = NULL;
    return status;
}

tilus_status tilus_rt_open(const tilus_rt_options *options, tilus_rt **out, char *message,
                           size_t size)
{
    size = message ? size : 0;
    if (size > 0)
        message[0] = 0;
    if (!out) {
        snprintf(message, size, "out is NULL");
        return RT_FAIL_NULL(out);
    }
    *out = NULL;
    tilus_rt *rt = calloc(1, sizeof *rt);
    if (!rt) {
        snprintf(message, size, "out of memory");
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    }
    fork_mark_make(&rt->mark);
    tilus_status status = open_as_asked(rt, options);
    if (status == TILUS_OK) {
        *out = rt;
        return TILUS_OK;
    }
    snprintf(message, size, "%s", tilus_rt_error());
    tilus_rt_close(rt);
    return status;
}

void tilus_rt_close(tilus_rt *rt)
{
    if (!rt)
        return;
    bool is_mine = fork_mark_is_mine(&rt->mark);
    for (int i = 0; i < rt->device_count; i++) {
        Device *device = &rt->devices[i];
        const ErrorContext at = {.rt = rt, .device = device};
        if (is_mine && atomic_load_explicit(&device->context, memory_order_acquire))
            CALL_AND_LOG(&at, cuDevicePrimaryCtxRelease(device->handle));
        pthread_mutex_destroy(&device->lock);
        pthread_mutex_destroy(&device->turn);
        engine_free_memory(device);
    }
    fork_mark_free(&rt->mark);
    free(rt->devices);
    free(rt);
}

/* ---- descriptions --------------------------------------------------- */

const char *tilus_rt_version(void)
{
    return TILUS_VERSION_STRING;
}

int tilus_rt_driver_version(const tilus_rt *rt)
{
    return rt ? rt->driver_version : 0;
}

int tilus_rt_device_count(const tilus_rt *rt)
{
    return rt ? rt->device_count : 0;
}

/* NULL when there is no such device. */
static const Device *find(const tilus_rt *rt, int device)
{
    return rt && device >= 0 && device < rt->device_count ? &rt->devices[device] : NULL;
}

const char *tilus_rt_device_name(const tilus_rt *rt, int device)
{
    const Device *d = find(rt, device);
    return d ? d->name : "";
}

int tilus_rt_compute_capability(const tilus_rt *rt, int device)
{
    const Device *d = find(rt, device);
    return d ? d->capability : 0;
}

size_t tilus_rt_device_memory(const tilus_rt *rt, int device)
{
    const Device *d = find(rt, device);
    return d ? d->memory : 0;
}

int tilus_rt_multiprocessors(const tilus_rt *rt, int device)
{
    const Device *d = find(rt, device);
    return d ? d->multiprocessors : 0;
}

size_t tilus_rt_shared_memory(const tilus_rt *rt, int device)
{
    const Device *d = find(rt, device);
    return d ? d->shared : 0;
}
