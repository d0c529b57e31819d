/* Copies of a launch's buffers, enough that the L2 cache never has the next one. */
#include "bench.h"

#include "support/integer.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    ALIGN = 256,                /* of each copy, unless the argument says more */
    CACHES = 4,                 /* sizes of the cache that all copies are larger than */
    COPIES_MAX = 4096           /* that are made unasked */
};

static void measure_buffers(Bench *b)
{
    const Run *run = b->run;
    for (size_t i = 0; i < run->info->arg_count; i++) {
        if (!run->buffers[i].data)
            continue;
        size_t align = (size_t)run->info->args[i].align;
        size_t size = run->buffers[i].size;
        b->stride[i] = round_up_size(size ? size : 1, align > ALIGN ? align : ALIGN);
        b->copy_bytes += b->stride[i];
        b->bytes += size;
    }
}

/* Counts the copies: as many as requested, else four times the cache. Leaves some free
 * memory, which the driver needs for the graph. */
static bool count_copies(Bench *b)
{
    size_t available, total, wanted = b->run->options.bench_copies;
    if (!DRIVER_CALL(&b->measure.driver, cuMemGetInfo(&available, &total)))
        return false;
    size_t most = b->copy_bytes ? available / 10 * 9 / b->copy_bytes : COPIES_MAX;
    if (most == 0 || wanted > most) {
        fprintf(stderr, "%s: error: --bench: %zu copies of %zu bytes, the device has %zu "
                "free\n", TOOL, wanted ? wanted : 1, b->copy_bytes, available);
        return false;
    }
    if (wanted == 0) {
        wanted = b->copy_bytes ? CACHES * b->measure.l2 / b->copy_bytes + 1 : 1;
        wanted = wanted > COPIES_MAX ? COPIES_MAX : wanted;
        wanted = wanted > most ? most : wanted;
    }
    b->copies = (unsigned)wanted;
    return true;
}

static bool copy_buffer(Bench *b, size_t arg)
{
    const Driver *d = &b->measure.driver;
    const tilus_buffer *buffer = &b->run->buffers[arg];
    size_t stride = b->stride[arg];
    if (!DRIVER_CALL(d, cuMemAlloc(&b->memory[arg], stride * b->copies)))
        return false;
    for (unsigned i = 0; i < b->copies && buffer->size > 0; i++)
        if (!DRIVER_CALL(d, cuMemcpyHtoD(b->memory[arg] + i * stride, buffer->data,
                                         buffer->size)))
            return false;
    return true;
}

bool copies_open(Bench *b)
{
    const Run *run = b->run;
    size_t count = run->info->arg_count + 1;    /* calloc(0) may be NULL */
    b->args = calloc(count, sizeof *b->args);
    b->memory = calloc(count, sizeof *b->memory);
    b->stride = calloc(count, sizeof *b->stride);
    if (!b->args || !b->memory || !b->stride) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    measure_buffers(b);
    if (!count_copies(b))
        return false;
    for (size_t i = 0; i < run->info->arg_count; i++) {
        b->args[i] = run->args[i];
        if (run->buffers[i].data && !copy_buffer(b, i))
            return false;
    }
    copies_choose(b, 0);
    /* Our stream does not wait for the default one, on which copies may still go on. */
    return DRIVER_CALL(&b->measure.driver, cuStreamSynchronize(NULL));
}

void copies_choose(Bench *b, unsigned copy)
{
    for (size_t i = 0; i < b->run->info->arg_count; i++)
        if (b->memory[i])
            b->args[i].pointer = b->memory[i] + copy * b->stride[i];
}

void copies_close(Bench *b)
{
    for (size_t i = 0; b->memory && i < b->run->info->arg_count; i++)
        if (b->memory[i])
            b->measure.driver.cuMemFree(b->memory[i]);
    free(b->args);
    free(b->memory);
    free(b->stride);
}
