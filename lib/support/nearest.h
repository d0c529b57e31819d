/* "Did you mean": the candidate that is most like a misspelled name. */
#ifndef TILUS_SUPPORT_NEAREST_H
#define TILUS_SUPPORT_NEAREST_H

#include <stddef.h>

typedef struct Nearest {
    const char *name;           /* of `len` bytes; both are set before nearest_try */
    size_t len, distance;
    const char *found;          /* NULL: none is like it */
} Nearest;

void nearest_try(Nearest *n, const char *candidate);

#endif
