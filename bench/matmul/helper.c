/* Kernels beside the products: artefacts of the same folder. */
#include "bench.h"

#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>

tilus_kernel *helper_load(tilus_rt *rt, const char *folder, const char *name)
{
    char path[4096], *bytes;
    size_t size;
    tilus_kernel *kernel = NULL;
    snprintf(path, sizeof path, "%s/%s.tilusk", folder, name);
    if (!file_read(TOOL, path, FILE_SIZE_MAX, &bytes, &size))
        return NULL;
    if (tilus_kernel_load(rt, bytes, size, &kernel) != TILUS_OK)
        fprintf(stderr, BENCH_USER ": %s: %s\n", path, tilus_rt_error());
    free(bytes);
    return kernel;
}

bool helper_launch(tilus_kernel *kernel, const Measure *measure, const tilus_arg *args,
                   size_t count)
{
    tilus_status status = tilus_launch(kernel, measure->stream, args, count, 0, 0);
    if (status != TILUS_OK)
        fprintf(stderr, BENCH_USER ": %s\n", tilus_rt_error());
    return status == TILUS_OK;
}
