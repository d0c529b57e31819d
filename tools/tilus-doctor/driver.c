/* The CUDA driver and its devices. */
#include "doctor.h"

#include "common/text.h"
#include "rt.h"
#include "tilus/runtime.h"
#include "tilus/tilus.h"

#include <stdio.h>
#include <string.h>

/* The PTX version of what is compiled for `target`. */
static unsigned ptx_of(const Doctor *d, const char *target)
{
    const char *name;
    for (size_t i = 0; (name = tilus_target_name(i)) && i < DOCTOR_TARGETS; i++)
        if (strcmp(name, target) == 0)
            return d->ptx[i];
    return 0;
}

/* Prints the device; returns true when the driver loads code compiled for it. */
static bool check_device(const Doctor *d, const tilus_rt *rt, int device)
{
    char row[32], memory[TEXT_SIZE];
    int capability = tilus_rt_compute_capability(rt, device);
    unsigned takes = rt_newest_ptx(tilus_rt_driver_version(rt));
    const char *target = tilus_target_for(capability);
    unsigned needs = target ? ptx_of(d, target) : 0;
    bool too_old = takes && needs > takes;
    snprintf(row, sizeof row, "device %d", device);
    doctor_row(row, "%s, compute capability %d.%d, %s", tilus_rt_device_name(rt, device),
               capability / 10, capability % 10,
               text_size(memory, tilus_rt_device_memory(rt, device)));
    if (!target)
        doctor_row("", "cannot be used: the oldest target is %s", tilus_target_name(0));
    else if (too_old)
        doctor_row("", "cannot be used: %s needs PTX %u.%u, the driver takes %u.%u; update "
                   "the driver", target, needs / 10, needs % 10, takes / 10, takes % 10);
    else
        doctor_row("", "runs %s", target);
    return target && !too_old;
}

static void check_devices(Doctor *d, const tilus_rt *rt)
{
    int version = tilus_rt_driver_version(rt);
    unsigned takes = rt_newest_ptx(version);
    d->devices = tilus_rt_device_count(rt);
    if (takes)
        doctor_row("driver", "CUDA %d.%d, takes PTX up to %u.%u", version / 1000,
                   version % 1000 / 10, takes / 10, takes % 10);
    else
        doctor_row("driver", "CUDA %d.%d", version / 1000, version % 1000 / 10);
    for (int i = 0; i < d->devices && i < DOCTOR_DEVICES; i++)
        d->usable[i] = check_device(d, rt, i);
}

void doctor_check_driver(Doctor *d)
{
    char message[RT_LINE];
    tilus_rt *rt;
    tilus_status status = tilus_rt_open(NULL, &rt, message, sizeof message);
    d->has_driver = status != TILUS_ERROR_NO_DRIVER;
    d->driver_failed = status != TILUS_OK && status != TILUS_ERROR_NO_DRIVER &&
                       status != TILUS_ERROR_NO_DEVICE;
    if (status == TILUS_OK)
        check_devices(d, rt);
    else
        doctor_row("driver", "%s", message);
    tilus_rt_close(rt);
}
