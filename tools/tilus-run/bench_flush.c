/* Reads twice the size of the L2 cache. A program of our own does it, common/flush.tilus: the
 * driver's copies and fills write, too. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>

/* The program's text. */
extern const char tilus_flush[];
extern const size_t tilus_flush_size;

enum {
    BLOCK_BYTES = 8192 * 4,     /* that a block of it reads */
    SUM_BYTES = 4               /* and writes */
};

/* The text as PTX for the target, which the caller frees; NULL after a failure. */
static char *compile(Flush *f, const char *target)
{
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = target};
    const tilus_compile_options options = {.struct_size = sizeof options,
        .cpu = target, .opt_level = 3, .output = TILUS_OUTPUT_PTX};
    f->diag = tilus_diag_new();
    if (f->diag)
        f->module = tilus_parse(f->diag, "<flush>", tilus_flush, tilus_flush_size, 1, NULL,
                                0);
    if (f->module && tilus_run_passes(f->module, NULL, &passes))
        return tilus_compile(f->module, &options, NULL);
    return NULL;
}

static bool load(Bench *b)
{
    Flush *f = &b->flush;
    char *ptx = compile(f, b->run->target);
    const tilus_kernel_info *info =
        ptx ? tilus_module_kernel_info(f->module, "tilus_flush") : NULL;
    if (info)
        f->kernel = bench_load(b->run, ptx, info);
    else
        fprintf(stderr, "%s: error: --bench: the program that flushes does not compile\n",
                TOOL);
    if (!info && f->diag)
        tilus_diag_write(f->diag, NULL, NULL);
    free(ptx);
    return f->kernel;
}

bool flush_open(Bench *b)
{
    Flush *f = &b->flush;
    size_t blocks = 2 * b->measure.l2 / BLOCK_BYTES + 1;
    size_t size = blocks * (BLOCK_BYTES + SUM_BYTES);
    if (!load(b) || !DRIVER_CALL(&b->measure.driver, cuMemAlloc(&f->memory, size)))
        return false;
    f->args[0].pointer = f->memory;
    f->args[1].pointer = f->memory + blocks * BLOCK_BYTES;
    f->args[2].integer = (int64_t)blocks;
    return true;
}

bool flush_l2(void *bench, unsigned copy)
{
    Bench *b = bench;
    (void)copy;
    return bench_launch(b, b->flush.kernel, b->flush.args, COUNT(b->flush.args), 0, 0);
}

void flush_close(Bench *b)
{
    Flush *f = &b->flush;
    tilus_kernel_unload(f->kernel);
    if (f->memory)
        b->measure.driver.cuMemFree(f->memory);
    tilus_module_free(f->module);
    tilus_diag_free(f->diag);
}
