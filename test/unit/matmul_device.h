/* The matmul library on a software device with the CPU engine, for a group of tests, by public calls. Include after
 * cmocka. */
#ifndef TILUS_TEST_MATMUL_DEVICE_H
#define TILUS_TEST_MATMUL_DEVICE_H

#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <string.h>

static tilus_rt *rt;
static tilus_matmul *matmul;

static tilus_rt *open_device(const char *name, const tilus_engine *engine)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device(name), .device_count = 1,
                                      .engine = engine};
    char message[256];
    tilus_rt *opened;
    if (tilus_rt_open(&options, &opened, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    return opened;
}

static int set_up(void **state)
{
    (void)state;
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .compile = tilus_matmul_compile};
    rt = open_device("h200", tilus_cpu_engine());
    return tilus_matmul_open(rt, &options, &matmul);
}

static int tear_down(void **state)
{
    (void)state;
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    return 0;
}

static void assert_ok(tilus_status status)
{
    if (status != TILUS_OK)
        fail_msg("%s: %s", tilus_status_name(status), tilus_rt_error());
}

static void assert_fails(tilus_status got, tilus_status status, const char *part)
{
    if (got != status || !strstr(tilus_rt_error(), part))
        fail_msg("%s: %s", tilus_status_name(got), tilus_rt_error());
}

static inline void assert_refused(tilus_status got, const char *part)
{
    assert_fails(got, TILUS_ERROR_ARGUMENT, part);
}

#endif
