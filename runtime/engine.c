/* Software devices with an engine: their memory is the host's, in allocations that are known,
 * and launches run at once. */
#include "rt.h"

#include "support/integer.h"
#include "support/limits.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 256 };       /* bytes, of an allocation */

/* ---- allocations ---------------------------------------------------------- */

/* Returns the allocation that has `size` bytes from `address` on, or ends there when there are
 * none, with the device's lock held; NULL: there is none. */
static const tilus_memory *find(const Device *device, uint64_t address, size_t size)
{
    for (size_t i = 0; i < device->memory_count; i++) {
        const tilus_memory *m = &device->allocations[i];
        uint64_t first = (uint64_t)(uintptr_t)m->data;
        if (address >= first && address - first <= m->size &&
            size <= m->size - (size_t)(address - first))
            return m;
    }
    return NULL;
}

/* Makes room for one more, with the device's lock held. */
static bool grow(Device *device)
{
    if (device->memory_count < device->memory_capacity)
        return true;
    size_t capacity = device->memory_capacity ? 2 * device->memory_capacity : 16;
    tilus_memory *more = realloc(device->allocations, capacity * sizeof *more);
    if (!more)
        return false;
    device->allocations = more;
    device->memory_capacity = capacity;
    return true;
}

/* Allocates, with the device's lock held. NULL: host memory ran out. */
static void *allocate(Device *device, size_t size)
{
    bool fits = size <= PTRDIFF_MAX && grow(device);    /* a description may say more memory */
    void *data = fits ? aligned_alloc(ALIGN, round_up_size(size + !size, ALIGN)) : NULL;
    if (data) {
        device->allocations[device->memory_count++] = (tilus_memory){data, size};
        device->allocated += size;
    }
    return data;
}

tilus_status engine_allocate(const ErrorContext *at, size_t size, uint64_t *address)
{
    Device *device = at->device;
    void *data = NULL;
    pthread_mutex_lock(&device->lock);
    size_t room = device->memory - device->allocated;
    if (size <= room)
        data = allocate(device, size);
    pthread_mutex_unlock(&device->lock);
    *address = (uint64_t)(uintptr_t)data;
    if (size > room)
        return rt_fail_at(at, TILUS_ERROR_DEVICE_MEMORY, "%zu bytes, of its memory %zu are left",
                          size, room);
    return data ? TILUS_OK : rt_fail_at(at, TILUS_ERROR_DEVICE_MEMORY, "%zu bytes: out of host "
                                        "memory", size);
}

tilus_status engine_release(const ErrorContext *at, uint64_t address)
{
    Device *device = at->device;
    void *data = NULL;
    pthread_mutex_lock(&device->lock);
    for (size_t i = 0; i < device->memory_count && !data; i++)
        if ((uint64_t)(uintptr_t)device->allocations[i].data == address) {
            data = device->allocations[i].data;
            device->allocated -= device->allocations[i].size;
            device->allocations[i] = device->allocations[--device->memory_count];
        }
    pthread_mutex_unlock(&device->lock);
    if (!data && address)
        return rt_fail_at(at, TILUS_ERROR_ARGUMENT, "0x%" PRIx64 " begins no allocation",
                          address);
    free(data);
    return TILUS_OK;
}

void engine_free_memory(Device *device)
{
    for (size_t i = 0; i < device->memory_count; i++)
        free(device->allocations[i].data);
    free(device->allocations);
}

/* Checks that the bytes at an address are all in one allocation. */
static tilus_status check_bytes(const ErrorContext *at, uint64_t address, size_t size)
{
    pthread_mutex_lock(&at->device->lock);
    bool found = find(at->device, address, size);
    pthread_mutex_unlock(&at->device->lock);
    return found ? TILUS_OK : rt_fail_at(at, TILUS_ERROR_ARGUMENT, "%zu bytes at 0x%" PRIx64
                                         " are in no allocation", size, address);
}

/* ---- copies --------------------------------------------------------------- */

/* An engine may copy the allocations of a launch, and copy all of them back: copies in between
 * would be lost, so they wait. */
static void copy(Device *device, void *to, const void *from, size_t size)
{
    pthread_mutex_lock(&device->turn);
    memcpy(to, from, size);
    pthread_mutex_unlock(&device->turn);
}

tilus_status engine_upload(const ErrorContext *at, uint64_t to, const void *from, size_t size)
{
    tilus_status status = check_bytes(at, to, size);
    if (status == TILUS_OK && size)
        copy(at->device, (void *)(uintptr_t)to, from, size);
    return status;
}

tilus_status engine_download(const ErrorContext *at, void *to, uint64_t from, size_t size)
{
    tilus_status status = check_bytes(at, from, size);
    if (status == TILUS_OK && size)
        copy(at->device, to, (const void *)(uintptr_t)from, size);
    return status;
}

tilus_status engine_fill(const ErrorContext *at, uint64_t to, unsigned char byte, size_t size)
{
    tilus_status status = check_bytes(at, to, size);
    if (status != TILUS_OK || !size)
        return status;
    pthread_mutex_lock(&at->device->turn);
    memset((void *)(uintptr_t)to, byte, size);
    pthread_mutex_unlock(&at->device->turn);
    return status;
}

/* ---- kernels -------------------------------------------------------------- */

tilus_status engine_prepare(Loaded *l)
{
    const tilus_rt *rt = l->kernel->rt;
    const ErrorContext at = {l->kernel->rt, l->device, l->kernel};
    char message[RT_LINE / 2] = "";
    tilus_status status = rt->engine.load(rt->engine.data, l->kernel->artefact, &l->program,
                                          message, sizeof message);
    if (status != TILUS_OK)
        return rt_fail_at(&at, status, "%s: %s", rt->engine.name, message);
    l->registers = l->local_bytes = -1;
    atomic_store_explicit(&l->ready, true, memory_order_release);
    return TILUS_OK;
}

void engine_unload(tilus_kernel *kernel)
{
    for (int i = 0; i < kernel->rt->device_count; i++)
        if (atomic_load_explicit(&kernel->on[i].ready, memory_order_acquire))
            kernel->rt->engine.unload(kernel->on[i].program);
}

/* ---- launches ------------------------------------------------------------- */

static bool is_pointer(const tilus_kernel_info *info, const tilus_engine_launch *launch, size_t i)
{
    return info->args[i].kind == TILUS_ARG_POINTER && launch->args[i].pointer != 0;
}

static bool has(Device *device, uint64_t address)
{
    pthread_mutex_lock(&device->lock);
    bool found = find(device, address, 0);
    pthread_mutex_unlock(&device->lock);
    return found;
}

/* Returns the device whose memory the first pointer is of; without any, the first device. */
static Device *find_device(const tilus_kernel *kernel, const tilus_engine_launch *launch)
{
    const tilus_kernel_info *info = kernel->artefact->info;
    tilus_rt *rt = kernel->rt;
    for (size_t i = 0; i < launch->arg_count; i++)
        for (int d = 0; d < rt->device_count && is_pointer(info, launch, i); d++)
            if (has(&rt->devices[d], launch->args[i].pointer))
                return &rt->devices[d];
    return rt->devices;
}

/* Adds the allocation to those of the launch, once. */
static void add_memory(tilus_memory *memory, size_t *count, const tilus_memory *found)
{
    for (size_t i = 0; i < *count; i++)
        if (memory[i].data == found->data)
            return;
    memory[(*count)++] = *found;
}

/* Finds the allocations of all pointers. */
static tilus_status find_memory(const ErrorContext *at, tilus_engine_launch *launch,
                                tilus_memory memory[LIMIT_ARGUMENTS])
{
    const tilus_kernel_info *info = at->kernel->artefact->info;
    size_t wrong = launch->arg_count;
    pthread_mutex_lock(&at->device->lock);
    for (size_t i = 0; i < launch->arg_count && wrong == launch->arg_count; i++) {
        if (!is_pointer(info, launch, i))
            continue;
        const tilus_memory *found = find(at->device, launch->args[i].pointer, 0);
        if (found)
            add_memory(memory, &launch->memory_count, found);
        else
            wrong = i;
    }
    pthread_mutex_unlock(&at->device->lock);
    launch->memory = memory;
    if (wrong == launch->arg_count)
        return TILUS_OK;
    return rt_fail_at(at, TILUS_ERROR_ARGUMENT, "argument %%%s = 0x%" PRIx64 " is in no "
                      "allocation of the device", info->args[wrong].name,
                      launch->args[wrong].pointer);
}

tilus_status engine_launch(tilus_kernel *kernel, const tilus_engine_launch *checked,
                           uint64_t workspace)
{
    tilus_memory memory[LIMIT_ARGUMENTS];
    tilus_engine_launch own = *checked, *launch = &own;
    char message[RT_LINE / 2] = "";
    const tilus_engine *engine = &kernel->rt->engine;
    const ErrorContext at = {kernel->rt, find_device(kernel, launch), kernel};
    tilus_status status = find_memory(&at, launch, memory);
    if (status == TILUS_OK && launch->workspace_size)
        status = check_bytes(&at, workspace, launch->workspace_size);
    if (status == TILUS_OK)
        status = tilus_kernel_prepare(kernel, at.device->ordinal);
    if (status != TILUS_OK)
        return status;
    pthread_mutex_lock(&at.device->turn);
    status = engine->run(kernel->on[at.device->ordinal].program, launch, message,
                         sizeof message);
    pthread_mutex_unlock(&at.device->turn);
    return status == TILUS_OK ? status
                              : rt_fail_at(&at, status, "%s: %s", engine->name, message);
}
