/* Checks a reader of artefacts, whatever bytes it is given. */
#ifndef TILUS_FUZZ_ARTEFACT_TRIAL_H
#define TILUS_FUZZ_ARTEFACT_TRIAL_H

#include <stddef.h>
#include <stdint.h>

/* Reads `bytes`, which are refused with a reason; or else give an artefact that is
 * written as the same bytes, and whose expressions run. Returns NULL, or what is wrong. */
const char *artefact_trial(const uint8_t *bytes, size_t size);

/* Returns true when artefact_trial's reader takes the bytes. */
int artefact_accepted(const uint8_t *bytes, size_t size);

/* Makes the stated size and the checksum fit, so that a reader looks at the rest. */
void artefact_mend(uint8_t *bytes, size_t size);

#endif
