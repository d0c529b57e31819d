/* Opening the library, and how it reports failures. */
#define _GNU_SOURCE
#include "bigint/internal.h"

#include "support/sized.h"
#include "tilus/version.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ----------------------------------------------------------- */

tilus_status bigint_fail(tilus_status status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tilus_rt_fail(status, message);
}

tilus_status bigint_fail_memory(void)
{
    return tilus_rt_fail(TILUS_ERROR_MEMORY, "out of memory");
}

tilus_status bigint_take(void *to, size_t size, const void *from, const char *object,
                         const char *name)
{
    char message[256];
    if (!from)
        return bigint_refuse("%s is NULL", object);
    if (sized_copy(to, size, from, object, name, (Report){message, sizeof message}))
        return TILUS_OK;
    return bigint_refuse("%s", message);
}

/* ---- open and close ----------------------------------------------------- */

const char *tilus_bigint_version(void)
{
    return TILUS_VERSION_STRING;
}

static tilus_status check_kernels(const tilus_bigint_options *options)
{
    for (size_t i = 0; i < options->kernel_count; i++) {
        const tilus_bigint_kernel *kernel = options->kernels ? &options->kernels[i] : NULL;
        if (!kernel || !kernel->name || !kernel->bytes)
            return bigint_refuse("kernels[%zu] of %zu has no %s", i, options->kernel_count,
                                 kernel && kernel->name ? "bytes" : "name");
    }
    return TILUS_OK;
}

static tilus_status copy_options(tilus_bigint *bigint, const tilus_bigint_options *options)
{
    tilus_bigint_options *o = &bigint->options;
    tilus_status status = options ? BIGINT_TAKE(tilus_bigint_options, o, options, "options")
                                  : TILUS_OK;
    if (status == TILUS_OK)
        status = check_kernels(o);
    const char *directory = o->directory;
    o->directory = NULL;
    if (status == TILUS_OK && directory && !(bigint->directory = strdup(directory)))
        return bigint_fail_memory();
    return status;
}

tilus_status tilus_bigint_open(tilus_rt *rt, const tilus_bigint_options *options,
                               tilus_bigint **out)
{
    *out = NULL;
    tilus_bigint *bigint = calloc(1, sizeof *bigint);
    if (!bigint)
        return bigint_fail_memory();
    bigint->rt = rt;
    pthread_mutex_init(&bigint->lock, NULL);
    for (int t = 0; t < BIGINT_TARGETS; t++)
        for (int i = 0; i < BIGINT_KERNELS; i++)
            pthread_mutex_init(&bigint->kernels[t][i].lock, NULL);
    tilus_status status = copy_options(bigint, options);
    if (status == TILUS_OK)
        *out = bigint;
    else
        tilus_bigint_close(bigint);
    return status;
}

static void close_kernel(Kernel *kernel)
{
    tilus_kernel_unload(atomic_load(&kernel->loaded));
    pthread_mutex_destroy(&kernel->lock);
}

void tilus_bigint_close(tilus_bigint *bigint)
{
    if (!bigint)
        return;
    for (int t = 0; t < BIGINT_TARGETS; t++)
        for (int i = 0; i < BIGINT_KERNELS; i++)
            close_kernel(&bigint->kernels[t][i]);
    for (int device = 0; device < BIGINT_DEVICES_MAX; device++)
        if (bigint->roots[device])
            tilus_rt_release(bigint->rt, device, bigint->roots[device]);
    pthread_mutex_destroy(&bigint->lock);
    free(bigint->directory);
    free(bigint);
}
