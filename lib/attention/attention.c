/* Opening the library. */
#include "attention/internal.h"

#include "tilus/version.h"

const char *tilus_attention_version(void)
{
    return TILUS_VERSION_STRING;
}

tilus_status tilus_attention_open(tilus_rt *rt, const tilus_attention_options *options,
                                  tilus_attention **out)
{
    tilus_attention_options o = {0};
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    if (!rt)
        return library_refuse_null(rt);
    tilus_status status = LIBRARY_TAKE_OPTIONS(tilus_attention_options, &o, options);
    if (status == TILUS_OK)
        *out = kernel_library_open(sizeof **out, rt, &KERNEL_OPTIONS(&o), attention_check, &status);
    return status;
}

void tilus_attention_close(tilus_attention *attention)
{
    if (attention)
        kernel_library_close(&attention->library);
}
