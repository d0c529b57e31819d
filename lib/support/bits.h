/* Compact storage: elements of any width from 1 to 64 bits, packed without
 * gaps, least significant bit first. Element `i` of `bits` bits each occupies
 * bits [i * bits, (i + 1) * bits); bit `b` is bit b % 8 of byte b / 8. Only
 * bytes that hold a part of the element are read or written. Thread safe
 * where no two threads touch the same byte. */
#ifndef TILUS_SUPPORT_BITS_H
#define TILUS_SUPPORT_BITS_H

#include <stddef.h>
#include <stdint.h>

/* The `bits` (1..64) low bits set. */
static inline uint64_t bits_mask(unsigned bits) { return UINT64_MAX >> (64 - bits); }

/* Element `i` of `data`, and its replacement; bits of `code` above the
 * element's width are ignored. `bits` is 1..64. */
uint64_t bits_get(const void *data, size_t i, unsigned bits);
void bits_set(void *data, size_t i, unsigned bits, uint64_t code);

#endif
