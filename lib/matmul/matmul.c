/* Opening the library, and how it reports failures. */
#define _GNU_SOURCE
#include "matmul/internal.h"

#include "support/sized.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- failures ----------------------------------------------------------- */

tilus_status matmul_fail(tilus_status status, const char *format, ...)
{
    char message[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return tilus_rt_fail(status, message);
}

tilus_status matmul_fail_memory(void)
{
    return tilus_rt_fail(TILUS_ERROR_MEMORY, "out of memory");
}

tilus_status matmul_take(void *to, size_t size, const void *from, const char *object,
                         const char *name)
{
    char message[256];
    if (!from)
        return matmul_refuse("%s is NULL", object);
    if (sized_copy(to, size, from, object, name, (Report){message, sizeof message}))
        return TILUS_OK;
    return matmul_refuse("%s", message);
}

/* ---- open and close ----------------------------------------------------- */

const char *tilus_matmul_version(void)
{
    return TILUS_VERSION_STRING;
}

static tilus_status check_kernels(const tilus_matmul_options *options)
{
    for (size_t i = 0; i < options->kernel_count; i++) {
        const tilus_matmul_kernel *kernel = options->kernels ? &options->kernels[i] : NULL;
        if (!kernel || !kernel->name || !kernel->bytes)
            return matmul_refuse("kernels[%zu] of %zu has no %s", i, options->kernel_count,
                                 kernel && kernel->name ? "bytes" : "name");
    }
    return TILUS_OK;
}

static tilus_status copy_options(tilus_matmul *matmul, const tilus_matmul_options *options)
{
    tilus_matmul_options *o = &matmul->options;
    tilus_status status = options ? MATMUL_TAKE(tilus_matmul_options, o, options, "options")
                                  : TILUS_OK;
    if (status == TILUS_OK)
        status = check_kernels(o);
    const char *directory = o->directory;
    o->directory = NULL;
    if (status == TILUS_OK && directory && !(matmul->directory = strdup(directory)))
        return matmul_fail_memory();
    return status;
}

static tilus_status open_table(tilus_matmul *matmul)
{
    char message[512];
    bool ok = matmul_table_open(matmul->options.tunings, &matmul->table, message,
                                sizeof message);
    matmul->options.tunings = NULL;     /* the caller's text is needed no more */
    if (ok)
        return TILUS_OK;
    return message[0] ? matmul_refuse("tunings: %s", message) : matmul_fail_memory();
}

tilus_status tilus_matmul_open(tilus_rt *rt, const tilus_matmul_options *options,
                               tilus_matmul **out)
{
    *out = NULL;
    tilus_matmul *matmul = calloc(1, sizeof *matmul);
    if (!matmul)
        return matmul_fail_memory();
    matmul->rt = rt;
    pthread_mutex_init(&matmul->lock, NULL);
    tilus_status status = copy_options(matmul, options);
    if (status == TILUS_OK)
        status = open_table(matmul);
    if (status == TILUS_OK)
        *out = matmul;
    else
        tilus_matmul_close(matmul);
    return status;
}

void tilus_matmul_close(tilus_matmul *matmul)
{
    if (!matmul)
        return;
    plans_free(matmul->plans);
    kernels_free(matmul->kernels);
    dense_close(matmul->dense);
    matmul_table_free(matmul->table);
    pthread_mutex_destroy(&matmul->lock);
    free(matmul->directory);
    free(matmul);
}
