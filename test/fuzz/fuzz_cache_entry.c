/* Files of the cache. The input is a file with any checksum: it is refused, or read
 * within its bounds, and then again with the right one; what is read makes the same bytes
 * again, and its key's parts follow each other. */
#include "target.h"

#include "cache/entry.h"
#include "cache/key.h"

#include <stdlib.h>
#include <string.h>

static void check_key(const EntryView *view)
{
    CachePart part, found;
    size_t at = 0, before = 0;
    while (cache_key_next(view->key, view->key_size, &at, &part)) {
        const char *end = (const char *)view->key + at;
        if (at <= before || at > view->key_size || part.value + part.value_size != end)
            target_fail("a part of a key ends at %zu of %zu", at, view->key_size);
        before = at;
    }
    if (cache_key_find(view->key, view->key_size, "program", &found) &&
        memcmp(found.label, "program", found.label_size) != 0)
        target_fail("another part of the key is found");
}

static void check_entry(const uint8_t *bytes, size_t size)
{
    EntryView view;
    size_t again_size;
    if (entry_read(bytes, size, &view))
        return;
    check_key(&view);
    uint8_t *again = entry_write(&view, &again_size);
    if (again && (again_size != size || memcmp(again, bytes, size) != 0))
        target_fail("an entry of %zu bytes becomes another of %zu", size, again_size);
    free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    check_entry(data, size);
    if (size < ENTRY_HASH)
        return 0;
    uint8_t *sealed = malloc(size);
    if (!sealed)
        return 0;
    memcpy(sealed, data, size);
    entry_seal(sealed, size);
    check_entry(sealed, size);
    free(sealed);
    return 0;
}
