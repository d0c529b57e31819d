/* The inputs of a cached result: labelled values, in one string of bytes.
 *
 *   for each:  u32 length of the label, label, u64 length of the value, value
 *
 * Lengths come first, so different lists are different bytes. Numbers are little-endian. */
#ifndef TILUS_CACHE_KEY_H
#define TILUS_CACHE_KEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A key that grows; starts as {0}, freed by cache_key_free. `failed` once memory ran
 * out, and the key is then good for nothing else. */
typedef struct CacheKey {
    uint8_t *bytes;
    size_t size, capacity;
    bool failed;
} CacheKey;

void cache_key_add(CacheKey *key, const char *label, const void *value, size_t size);
void cache_key_add_text(CacheKey *key, const char *label, const char *value);
void cache_key_free(CacheKey *key);

/* One value of a key; points into it. */
typedef struct CachePart {
    const char *label, *value;      /* not NUL-terminated */
    size_t label_size, value_size;
} CachePart;

/* The part at `*at`, which moves past it; false at the end and at what is no part. */
bool cache_key_next(const void *key, size_t size, size_t *at, CachePart *part);

/* The first part called `label`. */
bool cache_key_find(const void *key, size_t size, const char *label, CachePart *part);

/* The name of the file of a key: its BLAKE3, in hexadecimal digits. */
enum { CACHE_NAME = 64 };
void cache_key_name(const void *key, size_t size, char name[CACHE_NAME + 1]);

#endif
