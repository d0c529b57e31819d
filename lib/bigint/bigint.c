/* Opening the library. */
#include "bigint/internal.h"

#include "tilus/version.h"

const char *tilus_bigint_version(void)
{
    return TILUS_VERSION_STRING;
}

tilus_status tilus_bigint_open(tilus_rt *rt, const tilus_bigint_options *options,
                               tilus_bigint **out)
{
    tilus_bigint_options o = {0};
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    if (!rt)
        return library_refuse_null(rt);
    tilus_status status = LIBRARY_TAKE_OPTIONS(tilus_bigint_options, &o, options);
    if (status == TILUS_OK)
        *out = kernel_library_open(sizeof **out, rt, &KERNEL_OPTIONS(&o), bigint_check, &status);
    if (*out)
        pthread_mutex_init(&(*out)->lock, NULL);
    return status;
}

void tilus_bigint_close(tilus_bigint *bigint)
{
    if (!bigint)
        return;
    for (int device = 0; device < BIGINT_DEVICES_MAX; device++)
        if (bigint->roots[device])
            tilus_rt_release(bigint->library.rt, device, bigint->roots[device]);
    pthread_mutex_destroy(&bigint->lock);
    kernel_library_close(&bigint->library);
}
