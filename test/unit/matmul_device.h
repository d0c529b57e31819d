/* The matmul library on a software device with the CPU engine, for a group of tests, by public calls. Include after
 * cmocka. */
#ifndef TILUS_TEST_MATMUL_DEVICE_H
#define TILUS_TEST_MATMUL_DEVICE_H

#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <string.h>

static tilus_rt *rt;
static tilus_matmul *matmul;

static int set_up(void **state)
{
    (void)state;
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device("h200"), .device_count = 1,
                                      .engine = tilus_cpu_engine()};
    const tilus_matmul_options matmul_options = {.struct_size = sizeof matmul_options,
                                                 .compile = tilus_matmul_compile};
    char message[256];
    if (tilus_rt_open(&options, &rt, message, sizeof message) != TILUS_OK)
        fail_msg("%s", message);
    return tilus_matmul_open(rt, &matmul_options, &matmul);
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

static void assert_refused(tilus_status got, const char *part)
{
    if (got != TILUS_ERROR_ARGUMENT || !strstr(tilus_rt_error(), part))
        fail_msg("%s: %s", tilus_status_name(got), tilus_rt_error());
}

#endif
