/* Little-endian numbers in strings of bytes. */
#ifndef TILUS_CACHE_BYTES_H
#define TILUS_CACHE_BYTES_H

#include <stdint.h>

/* Numbers of `width` bytes, at most 8, wherever they lie. */
static inline void bytes_put(uint8_t *to, unsigned width, uint64_t value)
{
    for (unsigned i = 0; i < width; i++)
        to[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t bytes_get(const uint8_t *from, unsigned width)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < width; i++)
        value |= (uint64_t)from[i] << 8 * i;
    return value;
}

#endif
