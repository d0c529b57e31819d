/* Options and results of callers of other versions, at entries that have a Diag. */
#ifndef TILUS_API_SIZES_H
#define TILUS_API_SIZES_H

#include "support/diag.h"
#include "support/sized.h"

/* Copies options as sized_copy does; false after an error. To be called under the guard. */
bool api_copy(Diag *diag, void *to, size_t size, const void *from, const char *object,
              const char *name);
#define API_COPY(diag, type, to, from, object) \
    api_copy(diag, (type *){(to)}, sizeof(type), (const type *){(from)}, object, #type)

/* Clears the caller's result `to`, which may be NULL; false after an error. */
bool api_clear(Diag *diag, void *to, size_t size, const char *object, const char *name);
#define API_CLEAR(diag, type, to, object) \
    api_clear(diag, (type *){(to)}, sizeof(type), object, #type)

/* Fills the caller's result `to`, which api_clear took. */
void api_fill(void *to, const void *from, size_t size);
#define API_FILL(type, to, from) api_fill((type *){(to)}, (const type *){(from)}, sizeof(type))

#endif
