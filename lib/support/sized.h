/* Structs of callers that may be older or newer than this library: each begins with a
 * `size_t struct_size`, sizeof of the struct as the caller was compiled, and only ever grows at
 * its end, by fields that fill whole words of 8 bytes: padding has no value. */
#ifndef TILUS_SUPPORT_SIZED_H
#define TILUS_SUPPORT_SIZED_H

#include "support/report.h"

/* Copies the caller's struct `from` to `to`, a struct called `name` of `size` bytes, which is
 * an `object` ("options", "problem"): fields that the caller does not know are 0. `from` may be
 * NULL: all is 0 but struct_size. False, with a report and `to` all 0, where struct_size is no
 * size of a struct, or a field that this library does not know is not 0. */
bool sized_copy(void *to, size_t size, const void *from, const char *object, const char *name,
                Report why);

/* Fills the caller's struct `to`, an `object` called `name`, with as much of `from`, of `size`
 * bytes, as it has room for; bytes beyond are 0, struct_size stays. False, with a report, where
 * struct_size is no size of a struct. */
bool sized_fill(void *to, const void *from, size_t size, const char *object, const char *name,
                Report why);

/* Copy and fill structs of type `type`. */
#define SIZED_COPY(type, to, from, object, why) \
    sized_copy((type *){(to)}, sizeof(type), (const type *){(from)}, object, #type, why)
#define SIZED_FILL(type, to, from, object, why) \
    sized_fill((type *){(to)}, (const type *){(from)}, sizeof(type), object, #type, why)

#endif
