#define _POSIX_C_SOURCE 200809L
#include "support/file.h"

#include <errno.h>
#include <unistd.h>

bool file_write_all(int fd, const void *bytes, size_t size)
{
    const char *next = bytes;
    while (size > 0) {
        ssize_t n = write(fd, next, size);
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            next += n;
            size -= (size_t)n;
        }
    }
    return true;
}
