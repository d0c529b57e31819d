/* Files of the cache: reading and writing. */
#include "cache/entry.h"

#include "cache/bytes.h"

#include <llvm-c/blake3.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 8, VERSION = 8, RESERVED = 12, KEY_SIZE = 16, DATA_SIZE = 24 };

static const char magic[MAGIC] = {'t', 'i', 'l', 'u', 's', 'c', 'c', 'h'};

static void hash(const uint8_t *bytes, size_t size, uint8_t out[ENTRY_HASH])
{
    llvm_blake3_hasher hasher;
    llvm_blake3_hasher_init(&hasher);
    llvm_blake3_hasher_update(&hasher, bytes, size);
    llvm_blake3_hasher_finalize(&hasher, out, ENTRY_HASH);
}

/* Returns the fault of a header, or NULL. `rest`: the bytes between header and checksum. */
static const char *read_header(const uint8_t *bytes, size_t rest, EntryView *view)
{
    uint64_t key_size = bytes_get(bytes + KEY_SIZE, 8);
    uint64_t data_size = bytes_get(bytes + DATA_SIZE, 8);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return "it is no file of this cache";
    if (bytes_get(bytes + VERSION, 4) != ENTRY_VERSION || bytes_get(bytes + RESERVED, 4) != 0)
        return "it is of another version of the cache";
    if (key_size > rest || data_size != rest - key_size)
        return "its sizes do not add up";
    view->key = bytes + ENTRY_HEADER;
    view->key_size = (size_t)key_size;
    view->data = view->key + key_size;
    view->data_size = (size_t)data_size;
    return NULL;
}

const char *entry_read(const void *bytes, size_t size, EntryView *view)
{
    uint8_t computed[ENTRY_HASH];
    if (size < ENTRY_HEADER + ENTRY_HASH)
        return "it is cut short";
    size_t hashed = size - ENTRY_HASH;
    const char *wrong = read_header(bytes, hashed - ENTRY_HEADER, view);
    if (wrong)
        return wrong;
    hash(bytes, hashed, computed);
    if (memcmp(computed, (const uint8_t *)bytes + hashed, ENTRY_HASH) != 0)
        return "its checksum is wrong";
    return NULL;
}

uint8_t *entry_write(const EntryView *view, size_t *size)
{
    size_t room = ENTRY_MAX - ENTRY_HEADER - ENTRY_HASH;
    if (view->key_size > room || view->data_size > room - view->key_size)
        return NULL;
    *size = ENTRY_HEADER + view->key_size + view->data_size + ENTRY_HASH;
    uint8_t *bytes = malloc(*size);
    if (!bytes)
        return NULL;
    memcpy(bytes, magic, sizeof magic);
    bytes_put(bytes + VERSION, 4, ENTRY_VERSION);
    bytes_put(bytes + RESERVED, 4, 0);
    bytes_put(bytes + KEY_SIZE, 8, view->key_size);
    bytes_put(bytes + DATA_SIZE, 8, view->data_size);
    if (view->key_size)
        memcpy(bytes + ENTRY_HEADER, view->key, view->key_size);
    if (view->data_size)
        memcpy(bytes + ENTRY_HEADER + view->key_size, view->data, view->data_size);
    entry_seal(bytes, *size);
    return bytes;
}

void entry_seal(uint8_t *bytes, size_t size)
{
    hash(bytes, size - ENTRY_HASH, bytes + size - ENTRY_HASH);
}
