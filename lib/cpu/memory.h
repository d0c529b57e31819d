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
    int error;                  /* errno of what failed when it was opened; 0: nothing did */
} Guarded;

/* Makes one, of zeros; `low`: below 4 GB, where the system can be asked for that. It takes three
 * of the mappings that the system lets a process have.
 * False: there is no memory, or no mapping, as `error` says; guarded_close takes any. */
bool guarded_open(Guarded *r, const char *name, size_t size, size_t align, bool low);
void guarded_close(Guarded *r);
/* The offset from `data` of a byte of slack that was written, or INT64_MIN. */
int64_t guarded_overwritten(const Guarded *r);

/* Returns the number of mappings that the system lets a process have, if this one has about as
 * many; else 0. */
long mappings_exhausted(void);

#endif
