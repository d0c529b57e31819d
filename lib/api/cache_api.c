/* Public API: the cache, and what the environment says of it. */
#define _GNU_SOURCE
#include "cache/cache.h"
#include "support/sized.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const Report no_report = {NULL, 0};

static void warn(const tilus_cache_options *options, const char *message)
{
    if (options->warn)
        options->warn(options->user, message);
}

static uint64_t choose_limit(const tilus_cache_options *options)
{
    const char *text = secure_getenv("TILUS_CACHE_SIZE");
    uint64_t limit = CACHE_LIMIT;
    char message[160];
    if (options->size)
        return options->size;
    if (text && *text && !cache_parse_size(text, &limit)) {
        snprintf(message, sizeof message, "TILUS_CACHE_SIZE is a number of bytes, \"500M\", "
                 "not \"%.40s\": taken to be 1 GiB", text);
        warn(options, message);
    }
    return limit;
}

tilus_cache *tilus_cache_open(const tilus_cache_options *options)
{
    tilus_cache_options known;
    const char *state = secure_getenv("TILUS_CACHE");
    if (state && strcmp(state, "off") == 0)
        return NULL;
    if (!SIZED_COPY(tilus_cache_options, &known, options, "options", no_report)) {
        errno = EINVAL;
        return NULL;
    }
    char *path = cache_directory(known.directory);
    Cache *cache = NULL;
    if (path)
        cache = cache_open(path, true, choose_limit(&known), known.warn, known.user);
    else
        warn(&known, "no cache: none of TILUS_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    free(path);
    return cache;
}

void tilus_cache_close(tilus_cache *cache)
{
    cache_close(cache);
}

static void read_stats(Cache *cache, tilus_cache_stats *stats)
{
    CacheFiles files;
    cache_list(cache, &files);
    *stats = (tilus_cache_stats){
        .struct_size = sizeof *stats,
        .directory = cache->path,
        .writable = faccessat(cache->directory, ".", W_OK | X_OK, AT_EACCESS) == 0,
        .entries = files.entries,
        .bytes = files.bytes,
        .size = cache->limit,
        .hits = atomic_load(&cache->hits),
        .misses = atomic_load(&cache->misses),
        .stored = atomic_load(&cache->stored),
        .dropped = atomic_load(&cache->dropped),
        .evicted = atomic_load(&cache->evicted),
    };
    cache_files_free(&files);
}

bool tilus_cache_get_stats(tilus_cache *cache, tilus_cache_stats *stats)
{
    tilus_cache_stats all = {.struct_size = sizeof all};
    if (cache)
        read_stats(cache, &all);
    return SIZED_FILL(tilus_cache_stats, stats, &all, "stats", no_report);
}
