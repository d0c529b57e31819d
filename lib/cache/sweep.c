/* The directory of the cache as a whole: listing, and keeping it within its size. Other
 * processes may do the same at any moment, so whatever is gone already is fine. */
#define _GNU_SOURCE
#include "cache/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- listing ------------------------------------------------------------------------ */

static bool is_temporary(const char *name)
{
    size_t prefix = strlen(CACHE_TEMPORARY), digits = strlen(name) - prefix;
    return !strncmp(name, CACHE_TEMPORARY, prefix) && digits == 16 &&
           strspn(name + prefix, "0123456789abcdef") == digits;
}

static bool is_entry(const char *name)
{
    return strlen(name) == CACHE_NAME && strspn(name, "0123456789abcdef") == CACHE_NAME;
}

static bool add_file(CacheFiles *files, const char *name, const struct stat *info)
{
    if (files->count == files->capacity) {
        size_t capacity = files->capacity ? 2 * files->capacity : 64;
        CacheFile *items = realloc(files->items, capacity * sizeof *items);
        if (!items)
            return false;
        files->items = items;
        files->capacity = capacity;
    }
    CacheFile *file = &files->items[files->count++];
    *file = (CacheFile){
        .temporary = is_temporary(name), .size = (uint64_t)info->st_size,
        .used = info->st_mtim.tv_sec * INT64_C(1000000000) + info->st_mtim.tv_nsec};
    memcpy(file->name, name, strlen(name) + 1);
    if (!file->temporary) {
        files->entries++;
        files->bytes += file->size;
    }
    return true;
}

static bool list_stream(Cache *cache, DIR *stream, CacheFiles *files)
{
    struct stat info;
    errno = 0;
    for (struct dirent *entry; (entry = readdir(stream)); errno = 0) {
        const char *name = entry->d_name;
        if ((is_entry(name) || is_temporary(name)) &&
            fstatat(cache->directory, name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
            !add_file(files, name, &info))
            return false;
    }
    return errno == 0;
}

static int compare_used(const void *a, const void *b)
{
    const CacheFile *x = a, *y = b;
    return x->used != y->used ? (x->used > y->used) - (x->used < y->used)
                              : strcmp(x->name, y->name);
}

bool cache_list(Cache *cache, CacheFiles *files)
{
    *files = (CacheFiles){0};
    /* Opened anew: a duplicate would share the place in the directory with others. */
    int directory = openat(cache->directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = directory >= 0 ? fdopendir(directory) : NULL;
    if (!stream) {
        if (directory >= 0)
            close(directory);
        return false;
    }
    bool ok = list_stream(cache, stream, files);
    int error = errno;
    closedir(stream);
    errno = error;
    if (files->count)
        qsort(files->items, files->count, sizeof *files->items, compare_used);
    return ok;
}

void cache_files_free(CacheFiles *files)
{
    free(files->items);
    *files = (CacheFiles){0};
}

/* ---- sweeping ----------------------------------------------------------------------- */

/* Removes a temporary if its writer is dead: a writer holds a lock on it, which ends with
 * the process, however that ends. */
static bool remove_temporary(Cache *cache, const char *name)
{
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC;
    int file = openat(cache->directory, name, flags);
    if (file < 0)
        return errno == ELOOP && cache_remove(cache, name);
    bool removed = flock(file, LOCK_EX | LOCK_NB) == 0 &&
                   unlinkat(cache->directory, name, 0) == 0;
    close(file);
    return removed;
}

/* Removes the file if it should go and can; `left`: bytes of the entries that are there. */
static void sweep_file(Cache *cache, const CacheFile *file, uint64_t most, uint64_t *left,
                       CacheRemoved *removed)
{
    bool temporary = file->temporary;
    if (temporary ? !remove_temporary(cache, file->name)
                  : *left <= most || !cache_remove(cache, file->name))
        return;
    removed->bytes += file->size;
    if (temporary) {
        removed->temporaries++;
    } else {
        removed->entries++;
        *left -= file->size;
        atomic_fetch_add(&cache->evicted, 1);
    }
}

bool cache_sweep(Cache *cache, uint64_t most, CacheRemoved *removed)
{
    CacheFiles files;
    CacheRemoved counts = {0};
    bool ok = cache_list(cache, &files);
    uint64_t left = files.bytes;
    if (ok) {
        for (size_t i = 0; i < files.count; i++)
            sweep_file(cache, &files.items[i], most, &left, &counts);
        atomic_store(&cache->bytes, left);
        atomic_store(&cache->unswept, 0);
    }
    int error = errno;
    cache_files_free(&files);
    if (removed)
        *removed = counts;
    errno = error;
    return ok;
}

uint64_t cache_low_mark(const Cache *cache)
{
    return cache->limit - cache->limit / 8;
}

/* A sweep reads the whole directory, so it comes only when the limit is passed, as far as
 * this process knows, or when it may be by what it does not know: others write, too. */
void cache_grow(Cache *cache, uint64_t size)
{
    uint64_t bytes = atomic_fetch_add(&cache->bytes, size) + size;
    uint64_t unswept = atomic_fetch_add(&cache->unswept, size) + size;
    bool due = bytes > cache->limit || unswept > cache->limit / 16;
    if (!due || atomic_exchange(&cache->sweeping, true))
        return;
    /* Down to somewhat less than the limit, or the next entry would sweep again. */
    CacheRemoved removed;
    if (!cache_sweep(cache, cache->limit, &removed))
        cache_warn(cache, "list the directory");
    else if (removed.entries)
        cache_sweep(cache, cache_low_mark(cache), NULL);
    atomic_store(&cache->sweeping, false);
}
