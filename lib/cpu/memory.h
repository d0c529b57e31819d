/* Memory between pages that nobody may touch. */
#ifndef TILUS_CPU_MEMORY_H
#define TILUS_CPU_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A buffer, shared memory, stacks:
 *
 *     base       .. data .. data + size ..             base + reserved
 *     | guard  | (slack) |  bytes        |(slack)| guard  |
 *
 * The data ends at a guard page, or fewer bytes before it than its alignment. Slack holds a
 * pattern, so that writes there are found later. */
typedef struct Guarded {
    const char *name;           /* "argument %x" */
    unsigned char *base, *data;
    size_t reserved, size;
    unsigned char *first, *end; /* of the pages between the guards */
} Guarded;

/* Makes one, of zeros; `low`: below 4 GB, where the system can be asked for that.
 * False: there is no memory; guarded_close takes any. */
bool guarded_open(Guarded *r, const char *name, size_t size, size_t align, bool low);
void guarded_close(Guarded *r);
/* The offset from `data` of a byte of slack that was written, or INT64_MIN. */
int64_t guarded_overwritten(const Guarded *r);

/* Nobody may touch the page at the beginning of each `step` bytes of `r`. */
bool guarded_guard_steps(const Guarded *r, size_t step);

#endif
