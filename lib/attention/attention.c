/* Opening the library. */
#include "attention/internal.h"

#include "tilus/version.h"

#include <stdlib.h>

const char *tilus_attention_version(void)
{
    return TILUS_VERSION_STRING;
}

tilus_status tilus_attention_open(tilus_rt *rt, const tilus_attention_options *options,
                                  tilus_attention **out)
{
    tilus_attention_options o = {0};
    *out = NULL;
    tilus_attention *attention = calloc(1, sizeof *attention);
    if (!attention)
        return library_fail_memory();
    tilus_status taken = options
        ? LIBRARY_TAKE(tilus_attention_options, &o, options, "options") : TILUS_OK;
    tilus_status status = kernel_library_open(&attention->library, rt, &KERNEL_OPTIONS(&o),
                                              attention_check);
    status = taken == TILUS_OK ? status : taken;
    if (status == TILUS_OK)
        *out = attention;
    else
        tilus_attention_close(attention);
    return status;
}

void tilus_attention_close(tilus_attention *attention)
{
    if (!attention)
        return;
    kernel_library_close(&attention->library);
    free(attention);
}
