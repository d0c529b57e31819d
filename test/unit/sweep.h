/* Sweeps over many similar cases. Sanitized builds are several times as slow, and a case more shows them no other memory
 * access: they take each fifth, a number with which no turn of these tests has a common factor. */
#ifndef TILUS_TEST_SWEEP_H
#define TILUS_TEST_SWEEP_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __SANITIZE_ADDRESS__
enum { SWEEP_STEP = 5 };
#else
enum { SWEEP_STEP = 1 };
#endif

/* Returns true where this build runs case number `i`. */
static inline bool sweep_takes(size_t i)
{
    return i % SWEEP_STEP == 0;
}

#endif
