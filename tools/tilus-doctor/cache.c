/* The cache of compiled programs. A doctor makes no directory. */
#define _GNU_SOURCE
#include "doctor.h"

#include "cache/cache.h"
#include "common/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static void print_warning(void *user, const char *message)
{
    (void)user;
    doctor_row("cache", "%s", message);
}

static void print_cache(tilus_cache *cache)
{
    char bytes[TEXT_SIZE], size[TEXT_SIZE];
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    tilus_cache_get_stats(cache, &stats);
    doctor_row("cache", "%s: %zu entr%s, %s of %s%s", stats.directory, stats.entries,
               stats.entries == 1 ? "y" : "ies", text_size(bytes, stats.bytes),
               text_size(size, stats.size), stats.writable ? "" : ", not writable");
}

void doctor_check_cache(void)
{
    const char *state = getenv("TILUS_CACHE");
    const tilus_cache_options options = {.struct_size = sizeof options, .warn = print_warning};
    char *path = cache_directory(NULL);
    struct stat info;
    if (state && strcmp(state, "off") == 0) {
        doctor_row("cache", "off, by TILUS_CACHE");
    } else if (path && lstat(path, &info) != 0 && errno == ENOENT) {
        doctor_row("cache", "%s, not made yet", path);
    } else {
        tilus_cache *cache = tilus_cache_open(&options);
        if (cache)
            print_cache(cache);
        tilus_cache_close(cache);
    }
    free(path);
}
