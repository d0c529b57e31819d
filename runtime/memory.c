/* Device memory. */
#include "rt.h"

/* Makes the device's context current. */
static tilus_status enter(ErrorContext *at, tilus_rt *rt, int device, bool *pushed)
{
    tilus_status status = device_find(at, rt, device);
    return status == TILUS_OK ? device_enter(at, pushed) : status;
}

tilus_status tilus_rt_allocate(tilus_rt *rt, int device, size_t size, uint64_t *address)
{
    ErrorContext at;
    bool pushed;
    CUdeviceptr pointer = 0;
    if (!address)
        return RT_FAIL_NULL(address);
    *address = 0;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    if (rt->is_software)
        return engine_allocate(&at, size, address);
    size += size == 0;      /* the driver refuses 0 bytes */
    CHECK(&at, cuMemAlloc(&pointer, size));
    *address = pointer;
done:
    return device_leave(&at, pushed, status);
}

/* The body of a function that is one driver call on the device, or a call on `at` of a software
 * device. */
#define CALL_ON_DEVICE(rt, device, software, call)                            \
    do {                                                                      \
        ErrorContext at;                                                      \
        bool pushed;                                                          \
        tilus_status status = enter(&at, rt, device, &pushed);                \
        if (status != TILUS_OK)                                               \
            return status;                                                    \
        if ((rt)->is_software)                                                \
            return software;                                                  \
        CHECK(&at, call);                                                     \
    done:                                                                     \
        return device_leave(&at, pushed, status);                             \
    } while (0)

tilus_status tilus_rt_release(tilus_rt *rt, int device, uint64_t address)
{
    CALL_ON_DEVICE(rt, device, engine_release(&at, address), cuMemFree(address));
}

/* Returns true where host memory is NULL but has bytes. Without a runtime that is named first. */
static bool lacks(const tilus_rt *rt, const void *host, size_t size)
{
    return rt && !host && size;
}

tilus_status tilus_rt_upload(tilus_rt *rt, int device, uint64_t to, const void *from,
                             size_t size)
{
    if (lacks(rt, from, size))
        return RT_FAIL_NULL(from);
    CALL_ON_DEVICE(rt, device, engine_upload(&at, to, from, size),
                   cuMemcpyHtoD(to, from, size));
}

tilus_status tilus_rt_enqueue_upload(tilus_rt *rt, int device, tilus_stream stream, uint64_t to,
                                     const void *from, size_t size)
{
    if (lacks(rt, from, size))
        return RT_FAIL_NULL(from);
    CALL_ON_DEVICE(rt, device, engine_upload(&at, to, from, size),
                   cuMemcpyHtoDAsync(to, from, size, stream));
}

tilus_status tilus_rt_download(tilus_rt *rt, int device, void *to, uint64_t from, size_t size)
{
    if (lacks(rt, to, size))
        return RT_FAIL_NULL(to);
    CALL_ON_DEVICE(rt, device, engine_download(&at, to, from, size),
                   cuMemcpyDtoH(to, from, size));
}

tilus_status tilus_rt_fill(tilus_rt *rt, int device, uint64_t to, unsigned char byte,
                           size_t size)
{
    CALL_ON_DEVICE(rt, device, engine_fill(&at, to, byte, size), cuMemsetD8(to, byte, size));
}

tilus_status tilus_rt_synchronize(tilus_rt *rt, int device)
{
    CALL_ON_DEVICE(rt, device, TILUS_OK, cuCtxSynchronize());
}
