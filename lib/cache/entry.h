/* The file of one cached result; numbers are little-endian.
 *
 *     0  magic "tiluscch"
 *     8  u32 version, u32 0
 *    16  u64 bytes of the key
 *    24  u64 bytes of the data
 *    32  key, data
 *   end  BLAKE3 of all that comes before, 32 bytes
 *
 * The key is whole, so that a name alone is never taken for it. Equal keys and data give
 * equal files. */
#ifndef TILUS_CACHE_ENTRY_H
#define TILUS_CACHE_ENTRY_H

#include <stddef.h>
#include <stdint.h>

enum {
    ENTRY_VERSION = 1,
    ENTRY_HEADER = 32,
    ENTRY_HASH = 32,
    ENTRY_MAX = 512 << 20       /* bytes of a file */
};

typedef struct EntryView {
    const uint8_t *key, *data;
    size_t key_size, data_size;
} EntryView;

/* Finds key and data in the bytes of a file, which `view` points into. NULL, or what is
 * wrong with them, static storage. */
const char *entry_read(const void *bytes, size_t size, EntryView *view);

/* The bytes of a file, `*size` of them, freed by the caller with free(). NULL when memory
 * runs out or they would be more than ENTRY_MAX. */
uint8_t *entry_write(const EntryView *view, size_t *size);

/* Computes the checksum anew in `size` bytes, at least ENTRY_HASH of them. */
void entry_seal(uint8_t *bytes, size_t size);

#endif
