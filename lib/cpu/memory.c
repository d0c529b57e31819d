/* Memory between guards: pages without access, which the system watches. */
#define _GNU_SOURCE
#include "cpu/memory.h"

#include "support/integer.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Address space on either side that belongs to nobody else, so that an access far
 * outside is still known to be of this region. There is little below 4 GB. */
enum { GUARD = 1 << 26, GUARD_LOW = 1 << 20 };

enum { PATTERN = 0xA5 };

/* `bytes` of address space; below 4 GB where the system can be asked for that. Without MAP_NORESERVE
 * the system counts what is opened for writing, and refuses more than the machine has: it would end
 * the process only when that is written. */
static void *reserve(size_t bytes, bool low)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS;
#ifdef MAP_32BIT
    flags |= low ? MAP_32BIT : 0;
#else
    (void)low;
#endif
    void *base = mmap(NULL, bytes, PROT_NONE, flags, -1, 0);
    return base == MAP_FAILED ? NULL : base;
}

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

bool guarded_open(Guarded *r, const char *name, size_t size, size_t align, bool low)
{
    size_t page = page_size(), guard = round_up_size(low ? GUARD_LOW : GUARD, page);
    size_t open = round_up_size(round_up_size(size, align), page);
    *r = (Guarded){.name = name, .size = size};
    if (size > SIZE_MAX / 2) {
        r->error = ENOMEM;
        return false;
    }
    void *base = reserve(open + 2 * guard, low);
    if (!base) {
        r->error = errno;
        return false;
    }
    r->base = base;
    r->reserved = open + 2 * guard;
    r->first = r->base + guard;
    r->end = r->first + open;
    r->data = r->end - round_up_size(size, align);
    if (open && mprotect(r->first, open, PROT_READ | PROT_WRITE) != 0) {
        r->error = errno;
        return false;
    }
    memset(r->first, PATTERN, (size_t)(r->data - r->first));
    memset(r->data + size, PATTERN, (size_t)(r->end - r->data) - size);
    return true;
}

void guarded_close(Guarded *r)
{
    if (r->base)
        munmap(r->base, r->reserved);
    *r = (Guarded){0};
}

int64_t guarded_overwritten(const Guarded *r)
{
    const unsigned char *after = r->data + r->size;
    for (const unsigned char *p = r->data; p > r->first; p--)
        if (p[-1] != PATTERN)
            return p - 1 - r->data;
    for (const unsigned char *p = after; p < r->end; p++)
        if (*p != PATTERN)
            return p - r->data;
    return INT64_MIN;
}

/* Returns the number of lines of a file; 0 when it cannot be read. */
static long count_lines(const char *path)
{
    FILE *in = fopen(path, "re");
    long lines = 0;
    for (int c; in && (c = getc(in)) != EOF;)
        lines += c == '\n';
    if (in)
        fclose(in);
    return lines;
}

long mappings_exhausted(void)
{
    enum { NEAR = 16 };         /* what somebody else may have given back since */
    FILE *in = fopen("/proc/sys/vm/max_map_count", "re");
    long most = 0;
    bool known = in && fscanf(in, "%ld", &most) == 1;
    if (in)
        fclose(in);
    return known && count_lines("/proc/self/maps") + NEAR > most ? most : 0;
}
