/* Opening the library. */
#include "bigint/internal.h"

#include "tilus/version.h"

#include <stdlib.h>

const char *tilus_bigint_version(void)
{
    return TILUS_VERSION_STRING;
}

tilus_status tilus_bigint_open(tilus_rt *rt, const tilus_bigint_options *options,
                               tilus_bigint **out)
{
    tilus_bigint_options o = {0};
    *out = NULL;
    tilus_bigint *bigint = calloc(1, sizeof *bigint);
    if (!bigint)
        return library_fail_memory();
    tilus_status taken = options ? LIBRARY_TAKE(tilus_bigint_options, &o, options, "options")
                                 : TILUS_OK;
    pthread_mutex_init(&bigint->lock, NULL);
    tilus_status status = kernel_library_open(&bigint->library, rt, &KERNEL_OPTIONS(&o),
                                              bigint_check);
    status = taken == TILUS_OK ? status : taken;
    if (status == TILUS_OK)
        *out = bigint;
    else
        tilus_bigint_close(bigint);
    return status;
}

void tilus_bigint_close(tilus_bigint *bigint)
{
    if (!bigint)
        return;
    kernel_library_close(&bigint->library);
    for (int device = 0; device < BIGINT_DEVICES_MAX; device++)
        if (bigint->roots[device])
            tilus_rt_release(bigint->library.rt, device, bigint->roots[device]);
    pthread_mutex_destroy(&bigint->lock);
    free(bigint);
}
