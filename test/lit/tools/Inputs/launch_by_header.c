/* What a header of tilus-llc is for: prepares and launches its programs, here on the driver
 * of our tests, which says what it was given. */
#define _GNU_SOURCE
#include "alone.h"
#include "scale.h"
#include "tilus.h"

#include "fake_cuda.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const FakeCuda *driver(void)
{
    return dlsym(dlopen(getenv("TILUS_LIBCUDA"), RTLD_NOW | RTLD_NOLOAD), "fake_cuda");
}

static int report(const char *what, tilus_status status)
{
    printf("%s: %s%s%s\n", what, tilus_status_name(status), status ? ": " : "",
           status ? tilus_rt_error() : "");
    return status == TILUS_OK;
}

static void scale(tilus_rt *rt)
{
    tilus_kernel *kernel;
    size_t size = 0;
    report("create", scale_create(rt, &kernel));
    report("prepare", tilus_kernel_prepare(kernel, 0));
    report("size", scale_workspace_size(kernel, 4096, 256, 7, -1, &size));
    printf("workspace: %zu bytes\n", size);
    if (report("launch", scale_launch(kernel, NULL, 4096, 256, 7, -1, 8192, size)))
        printf("grid %u x %u, parameters %#" PRIx64 " %" PRId64 " %" PRIu64 " %" PRId64 "\n",
               driver()->grid[0], driver()->grid[1], driver()->parameters[0],
               (int64_t)driver()->parameters[1], driver()->parameters[2],
               (int64_t)driver()->parameters[3]);
    report("launch", scale_launch(kernel, NULL, 4096, 255, 7, -1, 8192, size));
    tilus_kernel_unload(kernel);
}

static void others(tilus_rt *rt)
{
    tilus_kernel *kernel;
    report("create", kernel_tilus_create(rt, &kernel));
    report("prepare", tilus_kernel_prepare(kernel, 0));
    report("launch", kernel_tilus_launch(kernel, NULL, 1, 2, 3, 4, 5, 6, 7, 8, 9));
    printf("parameters %" PRIu64 " .. %" PRIu64 "\n", driver()->parameters[0],
           driver()->parameters[7]);
    tilus_kernel_unload(kernel);
    report("create", alone_create(rt, &kernel));
    report("prepare", tilus_kernel_prepare(kernel, 0));
    report("launch", alone_launch(kernel, NULL));
    printf("grid %u x %u x %u\n", driver()->grid[0], driver()->grid[1], driver()->grid[2]);
    tilus_kernel_unload(kernel);
}

int main(void)
{
    tilus_rt *rt;
    char message[256];
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK) {
        printf("%s\n", message);
        return 1;
    }
    scale(rt);
    others(rt);
    tilus_rt_close(rt);
    return 0;
}
