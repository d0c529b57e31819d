/* Compiled programs kept on disk: strings of bytes by what they were made from.
 *
 * A directory holds one file an entry (entry.h), named by the BLAKE3 of its key. Files
 * appear by rename, whole or not at all, so readers need no lock. The only locks are
 * flocks on files that are being written: they tell a writer that lives from one that was
 * killed, and end with their process.
 *
 *   put:   .tmp-<random>  O_EXCL, flock, write, fsync ──rename──▶ <name>, fsync directory
 *   get:   <name>  read, checksum, compare the whole key; mtime = now
 *   sweep: remove .tmp-* that nobody has locked, then the entries with the oldest mtime
 *
 * Whatever the directory does, the cache only ever gives what was put: what is damaged is
 * removed and counts as absent, and a failed write only warns, once. Directory entries
 * that have none of these names are left alone. All functions are thread safe, and any
 * number of processes may share a directory. */
#ifndef TILUS_CACHE_CACHE_H
#define TILUS_CACHE_CACHE_H

#include "cache/entry.h"
#include "cache/key.h"
#include "tilus/tilus.h"

#include <stdatomic.h>

/* tilus_cache_stats (tilus/tilus.h) says what the counters count. */
struct tilus_cache {
    char *path;
    int directory;
    uint64_t limit;             /* bytes of all entries */
    void (*warn)(void *user, const char *message);
    void *user;
    atomic_bool warned, sweeping;
    _Atomic uint64_t bytes;     /* of all entries: the last sweep's, and ours since then */
    _Atomic uint64_t unswept;   /* of ours since then */
    _Atomic uint64_t hits, misses, stored, dropped, evicted;
};

typedef struct tilus_cache Cache;

enum { CACHE_LIMIT = 1 << 30 };     /* by default, bytes */

/* Returns the cache's path: the first that is set of `given`, TILUS_CACHE_DIR,
 * $XDG_CACHE_HOME/tilus and $HOME/.cache/tilus; malloc'ed. NULL when none is, or memory
 * runs out. */
char *cache_directory(const char *given);

/* A number of bytes, "1048576", "64K", "10M" or "2G", more than 0. */
bool cache_parse_size(const char *text, uint64_t *size);

/* Opens the directory `path`, which is made (0700, with what leads there) if `create`
 * says so. NULL after a warning when it cannot be used: no directory, a symbolic link,
 * another user's, writable by others; or no memory. `limit`: bytes, not 0. */
Cache *cache_open(const char *path, bool create, uint64_t limit,
                  void (*warn)(void *user, const char *message), void *user);
void cache_close(Cache *cache);

/* The bytes that were put under `key`, malloc'ed; false when there are none. */
bool cache_get(Cache *cache, const CacheKey *key, void **bytes, size_t *size);

/* Keeps bytes under `key`; false when they could not be written. */
bool cache_put(Cache *cache, const CacheKey *key, const void *bytes, size_t size);

/* ---- the directory as a whole ------------------------------------------------- */

typedef struct CacheFile {
    char name[CACHE_NAME + 1];
    bool temporary;             /* it is being written, or was when its writer died */
    uint64_t size;              /* bytes */
    int64_t used;               /* when it was last written or read, in ns since 1970 */
} CacheFile;

typedef struct CacheFiles {
    CacheFile *items;
    size_t count, capacity;
    uint64_t bytes;             /* of entries; temporaries do not count */
    size_t entries;
} CacheFiles;

/* All files of the cache, the least recently used first; the caller frees the list, also
 * after a failure, which sets errno. */
bool cache_list(Cache *cache, CacheFiles *files);
void cache_files_free(CacheFiles *files);

/* Reads the file `name`, which must hold an entry of that name: `view` points into
 * `*bytes`, which the caller frees. NULL, or what is wrong, with `*bytes` NULL: static
 * storage. `*damaged` is false when the file only could not be read. */
const char *cache_read(Cache *cache, const char *name, void **bytes, EntryView *view,
                       bool *damaged);

/* Removes a file. True also when it is gone already; else errno says why. */
bool cache_remove(Cache *cache, const char *name);

/* Removes what dead writers left, then the least recently used entries until all others
 * have at most `most` bytes. Counts in `removed`, which may be NULL. False, with errno,
 * when the directory cannot be listed. */
typedef struct CacheRemoved {
    size_t temporaries, entries;
    uint64_t bytes;             /* of both */
} CacheRemoved;

bool cache_sweep(Cache *cache, uint64_t most, CacheRemoved *removed);

/* ---- between the files of lib/cache ----------------------------------------------- */

#define CACHE_TEMPORARY ".tmp-"

/* The first failure to write is told, by errno. Returns false. */
bool cache_warn(Cache *cache, const char *what);
/* Sweeps if `size` more bytes make that due. */
void cache_grow(Cache *cache, uint64_t size);

/* Bytes down to which a sweep goes once the limit is passed, and that an entry may have. */
uint64_t cache_low_mark(const Cache *cache);

#endif
