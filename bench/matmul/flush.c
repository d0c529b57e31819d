/* Reads twice the size of the L2 cache. The artefact of tools/common/flush.tilus does it:
 * the driver's copies and fills write, too. */
#include "bench.h"

#include <stdlib.h>

struct Flush {
    const Measure *measure;
    tilus_kernel *kernel;
    tilus_arg args[3];
    CUdeviceptr memory;
};

Flush *flush_open(const Measure *measure, tilus_rt *rt, const char *folder)
{
    enum { BLOCK_BYTES = 8192 * 4, SUM_BYTES = 4 };     /* that a block reads, and writes */
    size_t blocks = 2 * measure->l2 / BLOCK_BYTES + 1;
    Flush *f = calloc(1, sizeof *f);
    if (!f)
        return NULL;
    f->measure = measure;
    f->kernel = helper_load(rt, folder, "flush");
    if (f->kernel &&
        DRIVER_CALL(&measure->driver, cuMemAlloc(&f->memory,
                                                 blocks * (BLOCK_BYTES + SUM_BYTES)))) {
        f->args[0].pointer = f->memory;
        f->args[1].pointer = f->memory + blocks * BLOCK_BYTES;
        f->args[2].integer = (int64_t)blocks;
        return f;
    }
    flush_close(f);
    return NULL;
}

bool flush_launch(void *flush, unsigned copy)
{
    Flush *f = flush;
    (void)copy;
    return helper_launch(f->kernel, f->measure, f->args, COUNT(f->args));
}

void flush_close(Flush *f)
{
    if (!f)
        return;
    tilus_kernel_unload(f->kernel);
    if (f->memory)
        f->measure->driver.cuMemFree(f->memory);
    free(f);
}
