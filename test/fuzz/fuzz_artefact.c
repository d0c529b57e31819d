/* Artefacts: any bytes are refused with a reason, or read as what is written as the same
 * bytes. Size and checksum are made to fit first, so that what changes is looked at. */
#include "artefact_trial.h"
#include "target.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* No byte behind the last one, for AddressSanitizer. */
    uint8_t *bytes = malloc(size ? size : 1);
    if (!bytes)
        return 0;
    if (size > 0)
        memcpy(bytes, data, size);
    artefact_mend(bytes, size);
    const char *why = artefact_trial(bytes, size);
    if (why)
        target_fail("%s", why);
    free(bytes);
    return 0;
}
