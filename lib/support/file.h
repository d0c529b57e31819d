/* Writing to file descriptors. */
#ifndef TILUS_FILE_H
#define TILUS_FILE_H

#include <stdbool.h>
#include <stddef.h>

/* Writes all `size` bytes, also after interrupts and short writes. Returns false, with
 * errno, when one fails. A signal handler may call it. */
bool file_write_all(int fd, const void *bytes, size_t size);

#endif
