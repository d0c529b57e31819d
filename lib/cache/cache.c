/* Getting and putting entries. */
#define _GNU_SOURCE
#include "cache/cache.h"

#include "support/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

bool cache_warn(Cache *cache, const char *what)
{
    char *message;
    int error = errno;
    if (!atomic_exchange(&cache->warned, true) && cache->warn &&
        asprintf(&message, "cache '%s': cannot %s: %s; going on without", cache->path, what,
                 strerror(error)) >= 0) {
        cache->warn(cache->user, message);
        free(message);
    }
    return false;
}

/* ---- reading ------------------------------------------------------------------------ */

/* Reads `size` bytes; false when there are fewer, or after an error, with errno. */
static bool read_all(int file, uint8_t *bytes, size_t size)
{
    errno = 0;
    while (size > 0) {
        ssize_t n = read(file, bytes, size);
        if (n == 0)
            return false;
        if (n < 0 && errno != EINTR)
            return false;
        if (n > 0) {
            bytes += n;
            size -= (size_t)n;
        }
    }
    return true;
}

/* The whole of an open file, malloc'ed. NULL, or what is wrong. */
static const char *read_file(int file, void **bytes, size_t *size, bool *damaged)
{
    struct stat info;
    *damaged = false;
    if (fstat(file, &info) != 0)
        return "it cannot be read";
    *damaged = true;
    if (!S_ISREG(info.st_mode))
        return "it is no file";
    if (info.st_size > ENTRY_MAX)
        return "it is too large";
    *size = (size_t)info.st_size;
    *bytes = malloc(*size ? *size : 1);
    *damaged = false;
    if (!*bytes)
        return "there is no memory to read it";
    if (read_all(file, *bytes, *size))
        return NULL;
    *damaged = errno == 0;
    return *damaged ? "it is cut short" : "it cannot be read";
}

/* Opens a file of the cache; -1, or, as `*damaged` says, what cannot be an entry. */
static int open_entry(Cache *cache, const char *name, bool *damaged)
{
    /* A pipe must not block. */
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = openat(cache->directory, name, flags);
    *damaged = file < 0 && (errno == ELOOP || errno == ENXIO);
    return file;
}

/* Reads as cache_read, but any name; a file that is `used` becomes the youngest. */
static const char *load_entry(Cache *cache, const char *name, bool used, void **bytes,
                              EntryView *view, bool *damaged)
{
    size_t size;
    *bytes = NULL;
    int file = open_entry(cache, name, damaged);
    if (file < 0)
        return *damaged          ? "it is no file"
             : errno == ENOENT ? "it is gone"
                               : "it cannot be read";
    const char *wrong = read_file(file, bytes, &size, damaged);
    if (!wrong && (wrong = entry_read(*bytes, size, view)))
        *damaged = true;
    if (!wrong && used)
        futimens(file, NULL);       /* where that is not allowed, it is evicted sooner */
    close(file);
    if (wrong) {
        free(*bytes);
        *bytes = NULL;
    }
    return wrong;
}

const char *cache_read(Cache *cache, const char *name, void **bytes, EntryView *view,
                       bool *damaged)
{
    char expected[CACHE_NAME + 1];
    const char *wrong = load_entry(cache, name, false, bytes, view, damaged);
    if (wrong)
        return wrong;
    cache_key_name(view->key, view->key_size, expected);
    if (strcmp(name, expected) == 0)
        return NULL;
    *damaged = true;
    free(*bytes);
    *bytes = NULL;
    return "its key belongs to another name";
}

bool cache_remove(Cache *cache, const char *name)
{
    return unlinkat(cache->directory, name, 0) == 0 || errno == ENOENT;
}

/* The entry of `key`; false if there is none, and then also no damaged one any more. */
static bool find_entry(Cache *cache, const CacheKey *key, void **bytes, EntryView *view)
{
    char name[CACHE_NAME + 1];
    bool damaged;
    cache_key_name(key->bytes, key->size, name);
    const char *wrong = load_entry(cache, name, true, bytes, view, &damaged);
    if (wrong && damaged) {
        /* Another process may have put a good one here by now: then that is made anew. */
        atomic_fetch_add(&cache->dropped, 1);
        cache_remove(cache, name);
    }
    if (wrong)
        return false;
    if (view->key_size == key->size && !memcmp(view->key, key->bytes, key->size))
        return true;
    free(*bytes);
    *bytes = NULL;
    return false;
}

bool cache_get(Cache *cache, const CacheKey *key, void **bytes, size_t *size)
{
    EntryView view;
    *bytes = NULL;
    if (key->failed || !find_entry(cache, key, bytes, &view)) {
        atomic_fetch_add(&cache->misses, 1);
        return false;
    }
    *size = view.data_size;
    memmove(*bytes, view.data, view.data_size);
    atomic_fetch_add(&cache->hits, 1);
    return true;
}

/* ---- writing ------------------------------------------------------------------------ */

enum { TEMPORARY_NAME = 24 };

/* A new file that this process has locked, and its name; -1 with errno. */
static int create_temporary(Cache *cache, char name[TEMPORARY_NAME])
{
    unsigned long long tag;
    if (getrandom(&tag, sizeof tag, 0) != sizeof tag)
        return -1;
    snprintf(name, TEMPORARY_NAME, CACHE_TEMPORARY "%016llx", tag);
    int file = openat(cache->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW |
                      O_CLOEXEC, 0600);
    /* A process that sweeps at this moment may hold the lock: then the file is gone, and
       this write fails. File systems without locks fail here, and get no sweeps. */
    if (file >= 0)
        flock(file, LOCK_EX | LOCK_NB);
    return file;
}

/* Writes the file `name`; errno after a failure. */
static bool write_entry(Cache *cache, const char *name, const uint8_t *bytes, size_t size)
{
    char temporary[TEMPORARY_NAME];
    int file = create_temporary(cache, temporary);
    if (file < 0)
        return false;
    bool ok = file_write_all(file, bytes, size) && fsync(file) == 0 &&
              renameat(cache->directory, temporary, cache->directory, name) == 0;
    int error = errno;
    if (!ok)
        unlinkat(cache->directory, temporary, 0);
    close(file);        /* and the lock goes, after the temporary name has gone */
    if (ok)
        fsync(cache->directory);
    errno = error;
    return ok;
}

bool cache_put(Cache *cache, const CacheKey *key, const void *bytes, size_t size)
{
    char name[CACHE_NAME + 1];
    size_t file_size;
    if (key->failed)
        return false;
    const EntryView view = {key->bytes, bytes, key->size, size};
    uint8_t *file = entry_write(&view, &file_size);
    bool ok = file && file_size <= cache_low_mark(cache);
    cache_key_name(key->bytes, key->size, name);
    if (ok) {       /* also what fails may need a sweep, of what dead writers left */
        ok = write_entry(cache, name, file, file_size) || cache_warn(cache, "store a result");
        cache_grow(cache, file_size);
    }
    free(file);
    atomic_fetch_add(&cache->stored, ok);
    return ok;
}
