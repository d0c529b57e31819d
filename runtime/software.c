/* Software devices: descriptions in place of a driver. */
#include "rt.h"

#include "support/sized.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* ---- devices that are known ------------------------------------------- */

static const tilus_device_description known[] = {
#define DEVICE(key, name, capability, multiprocessors, gigabytes, shared)                      \
    {sizeof(tilus_device_description), key, name, capability, multiprocessors,                 \
     (size_t)gigabytes * 1000 * 1000 * 1000, (size_t)shared << 10},
#include "devices.def"
};

const tilus_device_description *tilus_known_device(size_t i)
{
    return i < sizeof known / sizeof *known ? &known[i] : NULL;
}

const tilus_device_description *tilus_find_device(const char *name)
{
    for (size_t i = 0; name && i < sizeof known / sizeof *known; i++)
        if (!strcasecmp(known[i].key, name) || !strcasecmp(known[i].name, name))
            return &known[i];
    return NULL;
}

/* ---- devices of the caller ---------------------------------------------- */

enum {
    DEVICES_MAX = 1024,
    CAPABILITY_LEAST = 10,
    CAPABILITY_MOST = 9999,
    MULTIPROCESSORS_MOST = 4096,
    SHARED_MOST = 1 << 30,
};

#define refuse(...) rt_fail(TILUS_ERROR_ARGUMENT, __VA_ARGS__)

static tilus_status check(const tilus_device_description *d, size_t i)
{
    if (!d->name || !*d->name || strlen(d->name) >= sizeof((Device *)0)->name)
        return refuse("devices[%zu]: name is %s, not 1 to %zu bytes", i,
                      !d->name ? "NULL" : *d->name ? "longer" : "empty",
                      sizeof((Device *)0)->name - 1);
    if (d->capability < CAPABILITY_LEAST || d->capability > CAPABILITY_MOST)
        return refuse("devices[%zu]: capability is %d, not 90 for 9.0 or such", i,
                      d->capability);
    if (d->multiprocessors < 1 || d->multiprocessors > MULTIPROCESSORS_MOST)
        return refuse("devices[%zu]: multiprocessors is %d, not 1 to %d", i,
                      d->multiprocessors, MULTIPROCESSORS_MOST);
    if (d->shared_memory < 1 || d->shared_memory > SHARED_MOST)
        return refuse("devices[%zu]: shared_memory is %zu, not 1 to %d bytes", i,
                      d->shared_memory, SHARED_MOST);
    return TILUS_OK;
}

static void take(Device *device, size_t i, const tilus_device_description *d)
{
    device->ordinal = (int)i;
    device->handle = (CUdevice)i;
    memcpy(device->name, d->name, strlen(d->name) + 1);
    device->capability = d->capability;
    device->multiprocessors = d->multiprocessors;
    device->memory = d->memory;
    device->shared = d->shared_memory;
}

/* Takes the description at `from`; all of the array have the first one's size. */
static tilus_status take_checked(Device *device, size_t i, const void *from, size_t size)
{
    char message[RT_LINE / 2], object[32];
    const Report why = {message, sizeof message};
    tilus_device_description d;
    size_t given;
    memcpy(&given, from, sizeof given);
    snprintf(object, sizeof object, "devices[%zu]", i);
    if (!SIZED_COPY(tilus_device_description, &d, from, object, why))
        return refuse("%s", message);
    if (given != size)
        return refuse("%s: struct_size is %zu, that of devices[0] %zu", object, given, size);
    tilus_status status = check(&d, i);
    if (status == TILUS_OK)
        take(device, i, &d);
    return status;
}

static tilus_status take_engine(tilus_rt *rt)
{
    char message[RT_LINE / 2];
    const Report why = {message, sizeof message};
    tilus_engine *e = &rt->engine;
    rt->has_engine = rt->options.engine;
    if (!rt->has_engine)
        return TILUS_OK;
    if (!SIZED_COPY(tilus_engine, e, rt->options.engine, "engine", why))
        return refuse("%s", message);
    rt->options.engine = NULL;
    if (e->name && e->load && e->run && e->unload)
        return TILUS_OK;
    return refuse("engine: %s is NULL", !e->name ? "name" : !e->load ? "load" : !e->run ? "run"
                                                                                      : "unload");
}

tilus_status software_open(tilus_rt *rt)
{
    const char *from = (const char *)rt->options.devices;
    size_t count = rt->options.device_count, size;
    if (!from || count < 1 || count > DEVICES_MAX)
        return refuse("options: devices is %s and device_count %zu, not an array of 1 to %d",
                      from ? "given" : "NULL", count, DEVICES_MAX);
    memcpy(&size, from, sizeof size);
    rt->is_software = true;
    tilus_status status = take_engine(rt);
    if (status == TILUS_OK)
        status = devices_allocate(rt, (int)count);
    for (size_t i = 0; i < count && status == TILUS_OK; i++)
        status = take_checked(&rt->devices[i], i, from + i * size, size);
    return status;
}
