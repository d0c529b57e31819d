/* Opening the library. */
#include "matmul/internal.h"

#include <stdlib.h>

const char *tilus_matmul_version(void)
{
    return TILUS_VERSION_STRING;
}

static tilus_status open_table(tilus_matmul *matmul, const char *tunings)
{
    char message[512];
    if (matmul_table_open(tunings, &matmul->table, message, sizeof message))
        return TILUS_OK;
    return message[0] ? library_refuse("tunings: %s", message) : library_fail_memory();
}

static tilus_status open_library(tilus_rt *rt, const tilus_matmul_options *options,
                                 tilus_matmul **out)
{
    tilus_matmul_options o = {0};
    tilus_status status = LIBRARY_TAKE_OPTIONS(tilus_matmul_options, &o, options);
    tilus_matmul *matmul = NULL;
    if (status == TILUS_OK)
        matmul = kernel_library_open(sizeof *matmul, rt, &KERNEL_OPTIONS(&o), kernel_check,
                                     &status);
    if (!matmul)
        return status;
    pthread_mutex_init(&matmul->lock, NULL);
    status = open_table(matmul, o.tunings);
    if (status == TILUS_OK)
        *out = matmul;
    else
        tilus_matmul_close(matmul);
    return status;
}

tilus_status matmul_open_absent(const tilus_matmul_options *options, tilus_matmul **out)
{
    *out = NULL;
    return open_library(NULL, options, out);
}

tilus_status tilus_matmul_open(tilus_rt *rt, const tilus_matmul_options *options,
                               tilus_matmul **out)
{
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    return rt ? open_library(rt, options, out) : library_refuse_null(rt);
}

void tilus_matmul_close(tilus_matmul *matmul)
{
    if (!matmul)
        return;
    plans_free(matmul->plans);
    dense_close(matmul->dense);
    matmul_table_free(matmul->table);
    pthread_mutex_destroy(&matmul->lock);
    kernel_library_close(&matmul->library);
}
