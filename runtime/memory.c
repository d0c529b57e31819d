/* Device memory. */
#include "rt.h"

tilus_status tilus_rt_allocate(tilus_rt *rt, size_t size, uint64_t *address)
{
    CUdeviceptr pointer = 0;
    *address = 0;
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    size += size == 0;      /* the driver refuses 0 bytes */
    CHECK(rt, cuMemAlloc(&pointer, size));
    *address = pointer;
done:
    return rt_leave(rt, status);
}

tilus_status tilus_rt_release(tilus_rt *rt, uint64_t address)
{
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    CHECK(rt, cuMemFree(address));
done:
    return rt_leave(rt, status);
}

tilus_status tilus_rt_upload(tilus_rt *rt, uint64_t to, const void *from, size_t size)
{
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    CHECK(rt, cuMemcpyHtoD(to, from, size));
done:
    return rt_leave(rt, status);
}

tilus_status tilus_rt_download(tilus_rt *rt, void *to, uint64_t from, size_t size)
{
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    CHECK(rt, cuMemcpyDtoH(to, from, size));
done:
    return rt_leave(rt, status);
}

tilus_status tilus_rt_fill(tilus_rt *rt, uint64_t to, unsigned char byte, size_t size)
{
    tilus_status status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    CHECK(rt, cuMemsetD8(to, byte, size));
done:
    return rt_leave(rt, status);
}
