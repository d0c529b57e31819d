/* Functions for libraries on the runtime: they report failures as it does, and make a
 * device's context current for other libraries that they call. */
#include "rt.h"

tilus_status tilus_rt_fail(tilus_status status, const char *message)
{
    return rt_fail(status, "%s", message);
}

tilus_status tilus_rt_enter(tilus_rt *rt, int device, bool *entered)
{
    ErrorContext at;
    if (!entered)
        return RT_FAIL_NULL(entered);
    *entered = false;
    tilus_status status = device_find(&at, rt, device);
    return status == TILUS_OK ? device_enter(&at, entered) : status;
}

tilus_status tilus_rt_leave(tilus_rt *rt, int device, bool entered)
{
    ErrorContext at;
    tilus_status status = device_find(&at, rt, device);
    return status == TILUS_OK ? device_leave(&at, entered, TILUS_OK) : status;
}
