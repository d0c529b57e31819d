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

tilus_status tilus_matmul_open(tilus_rt *rt, const tilus_matmul_options *options,
                               tilus_matmul **out)
{
    tilus_matmul_options o = {0};
    *out = NULL;
    tilus_matmul *matmul = calloc(1, sizeof *matmul);
    if (!matmul)
        return library_fail_memory();
    tilus_status taken = options ? LIBRARY_TAKE(tilus_matmul_options, &o, options, "options")
                                 : TILUS_OK;
    pthread_mutex_init(&matmul->lock, NULL);
    tilus_status status = kernel_library_open(&matmul->library, rt, &KERNEL_OPTIONS(&o),
                                              kernel_check);
    status = taken == TILUS_OK ? status : taken;
    if (status == TILUS_OK)
        status = open_table(matmul, o.tunings);
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
    kernel_library_close(&matmul->library);
    dense_close(matmul->dense);
    matmul_table_free(matmul->table);
    pthread_mutex_destroy(&matmul->lock);
    free(matmul);
}
