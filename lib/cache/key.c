/* Keys of the cache: building, reading, naming. */
#include "cache/key.h"

#include "cache/bytes.h"

#include <llvm-c/blake3.h>
#include <stdlib.h>
#include <string.h>

enum { LABEL_LENGTH = 4, VALUE_LENGTH = 8 };

/* Room for `size` more bytes; NULL, and the key has failed, when there is none. */
static uint8_t *reserve(CacheKey *key, size_t size)
{
    if (key->failed || size > SIZE_MAX / 4 || key->size > SIZE_MAX / 4) {
        key->failed = true;
        return NULL;
    }
    if (size > key->capacity - key->size) {
        size_t capacity = 2 * (key->size + size);
        uint8_t *bytes = realloc(key->bytes, capacity);
        if (!bytes) {
            key->failed = true;
            return NULL;
        }
        key->bytes = bytes;
        key->capacity = capacity;
    }
    uint8_t *room = key->bytes + key->size;
    key->size += size;
    return room;
}

void cache_key_add(CacheKey *key, const char *label, const void *value, size_t size)
{
    size_t label_size = strlen(label), lengths = LABEL_LENGTH + VALUE_LENGTH;
    if (size > SIZE_MAX / 8) {
        key->failed = true;
        return;
    }
    uint8_t *to = reserve(key, lengths + label_size + size);
    if (!to)
        return;
    bytes_put(to, LABEL_LENGTH, label_size);
    memcpy(to + LABEL_LENGTH, label, label_size);
    to += LABEL_LENGTH + label_size;
    bytes_put(to, VALUE_LENGTH, size);
    if (size)
        memcpy(to + VALUE_LENGTH, value, size);
}

void cache_key_add_text(CacheKey *key, const char *label, const char *value)
{
    cache_key_add(key, label, value, strlen(value));
}

void cache_key_free(CacheKey *key)
{
    free(key->bytes);
    *key = (CacheKey){0};
}

/* A length of `width` bytes and as many bytes as it says, from `*at`. */
static bool next_string(const uint8_t *key, size_t size, unsigned width, size_t *at,
                        const char **string, size_t *string_size)
{
    if (size - *at < width)
        return false;
    uint64_t length = bytes_get(key + *at, width);
    if (length > size - *at - width)
        return false;
    *string = (const char *)key + *at + width;
    *string_size = (size_t)length;
    *at += width + (size_t)length;
    return true;
}

bool cache_key_next(const void *key, size_t size, size_t *at, CachePart *part)
{
    size_t next = *at;
    if (!next_string(key, size, LABEL_LENGTH, &next, &part->label, &part->label_size) ||
        !next_string(key, size, VALUE_LENGTH, &next, &part->value, &part->value_size))
        return false;
    *at = next;
    return true;
}

bool cache_key_find(const void *key, size_t size, const char *label, CachePart *part)
{
    size_t at = 0, label_size = strlen(label);
    while (cache_key_next(key, size, &at, part))
        if (part->label_size == label_size && !memcmp(part->label, label, label_size))
            return true;
    return false;
}

void cache_key_name(const void *key, size_t size, char name[CACHE_NAME + 1])
{
    static const char digits[] = "0123456789abcdef";
    uint8_t hash[CACHE_NAME / 2];
    llvm_blake3_hasher hasher;
    llvm_blake3_hasher_init(&hasher);
    llvm_blake3_hasher_update(&hasher, key, size);
    llvm_blake3_hasher_finalize(&hasher, hash, sizeof hash);
    for (size_t i = 0; i < sizeof hash; i++) {
        name[2 * i] = digits[hash[i] >> 4];
        name[2 * i + 1] = digits[hash[i] & 15];
    }
    name[CACHE_NAME] = '\0';
}
