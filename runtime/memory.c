/* Device memory. */
#include "rt.h"

/* What every function here begins with. */
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
    *address = 0;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    size += size == 0;      /* the driver refuses 0 bytes */
    CHECK(&at, cuMemAlloc(&pointer, size));
    *address = pointer;
done:
    return device_leave(&at, pushed, status);
}

tilus_status tilus_rt_release(tilus_rt *rt, int device, uint64_t address)
{
    ErrorContext at;
    bool pushed;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuMemFree(address));
done:
    return device_leave(&at, pushed, status);
}

tilus_status tilus_rt_upload(tilus_rt *rt, int device, uint64_t to, const void *from,
                             size_t size)
{
    ErrorContext at;
    bool pushed;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuMemcpyHtoD(to, from, size));
done:
    return device_leave(&at, pushed, status);
}

tilus_status tilus_rt_download(tilus_rt *rt, int device, void *to, uint64_t from, size_t size)
{
    ErrorContext at;
    bool pushed;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuMemcpyDtoH(to, from, size));
done:
    return device_leave(&at, pushed, status);
}

tilus_status tilus_rt_fill(tilus_rt *rt, int device, uint64_t to, unsigned char byte,
                           size_t size)
{
    ErrorContext at;
    bool pushed;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuMemsetD8(to, byte, size));
done:
    return device_leave(&at, pushed, status);
}

tilus_status tilus_rt_synchronize(tilus_rt *rt, int device)
{
    ErrorContext at;
    bool pushed;
    tilus_status status = enter(&at, rt, device, &pushed);
    if (status != TILUS_OK)
        return status;
    CHECK(&at, cuCtxSynchronize());
done:
    return device_leave(&at, pushed, status);
}
