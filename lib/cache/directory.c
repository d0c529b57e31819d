/* The directory of the cache: which one, and whether it can be trusted. What lies in it
 * becomes code that runs, so nobody else may be able to write there. */
#define _GNU_SOURCE
#include "cache/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- which ------------------------------------------------------------------------ */

/* The variable's value; NULL when it is not set, empty, or not to be trusted. */
static const char *environment(const char *name)
{
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* A path without slashes at its end, malloc'ed: with one, a symbolic link is followed. */
static char *join(const char *base, const char *below)
{
    char *path;
    if (asprintf(&path, "%s%s", base, below) < 0)
        return NULL;
    for (size_t len = strlen(path); len > 1 && path[len - 1] == '/'; len--)
        path[len - 1] = '\0';
    return path;
}

char *cache_directory(const char *given)
{
    const char *named = given ? given : environment("TILUS_CACHE_DIR");
    const char *base = environment("XDG_CACHE_HOME"), *home = environment("HOME");
    if (named)
        return join(named, "");
    if (base && base[0] == '/')     /* the XDG base directory specification wants that */
        return join(base, "/tilus");
    return home ? join(home, "/.cache/tilus") : NULL;
}

bool cache_parse_size(const char *text, uint64_t *size)
{
    static const char units[] = "KMG";
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    const char *unit = *end ? strchr(units, *end) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    if (text[0] < '0' || text[0] > '9' || errno || number == 0 || end[unit != NULL] ||
        number > UINT64_MAX >> shift)
        return false;
    *size = (uint64_t)number << shift;
    return true;
}

/* ---- opening ---------------------------------------------------------------------- */

/* mkdir -p; errno after a failure. */
static bool make_directories(const char *path)
{
    char *part = strdup(path);
    if (!part)
        return false;
    bool ok = true;
    for (char *slash = part; ok && (slash = strchr(slash + 1, '/')); *slash = '/') {
        *slash = '\0';
        ok = mkdir(part, 0700) == 0 || errno == EEXIST;
    }
    ok = ok && (mkdir(part, 0700) == 0 || errno == EEXIST);
    int error = errno;
    free(part);
    errno = error;
    return ok;
}

/* Tells why there will be no cache; returns -1. */
__attribute__((format(printf, 2, 3)))
static int refuse(const Cache *cache, const char *format, ...)
{
    char reason[256], *message;
    va_list args;
    va_start(args, format);
    vsnprintf(reason, sizeof reason, format, args);
    va_end(args);
    if (cache->warn && asprintf(&message, "no cache in '%s': %s", cache->path, reason) >= 0) {
        cache->warn(cache->user, message);
        free(message);
    }
    return -1;
}

/* Returns the directory if only this user can write to it; else warns and closes it. */
static int check_directory(const Cache *cache, int directory)
{
    struct stat info;
    int failed = 0;
    if (fstat(directory, &info) != 0)
        failed = refuse(cache, "%s", strerror(errno));
    else if (info.st_uid != geteuid())
        failed = refuse(cache, "it belongs to user %u, this process is user %u",
                        (unsigned)info.st_uid, (unsigned)geteuid());
    else if (info.st_mode & (S_IWGRP | S_IWOTH))
        failed = refuse(cache, "others may write there: its mode is %03o, at most 755 is "
                        "allowed", (unsigned)(info.st_mode & 0777));
    if (!failed)
        return directory;
    close(directory);
    return failed;
}

static int open_directory(const Cache *cache, bool create)
{
    int flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    int directory = open(cache->path, flags);
    if (directory < 0 && errno == ENOENT && create && make_directories(cache->path))
        directory = open(cache->path, flags);
    if (directory < 0) {
        struct stat info;
        int error = errno;
        bool link = lstat(cache->path, &info) == 0 && S_ISLNK(info.st_mode);
        return refuse(cache, "%s", link ? "it is a symbolic link" : strerror(error));
    }
    return check_directory(cache, directory);
}

Cache *cache_open(const char *path, bool create, uint64_t limit,
                  void (*warn)(void *user, const char *message), void *user)
{
    Cache *cache = calloc(1, sizeof *cache);
    if (!cache)
        return NULL;
    cache->directory = -1;
    cache->path = join(path, "");
    cache->limit = limit;
    cache->warn = warn;
    cache->user = user;
    atomic_init(&cache->unswept, UINT64_MAX / 2);   /* the first entry sweeps */
    if (cache->path && (cache->directory = open_directory(cache, create)) >= 0)
        return cache;
    cache_close(cache);
    return NULL;
}

void cache_close(Cache *cache)
{
    if (!cache)
        return;
    if (cache->directory >= 0)
        close(cache->directory);
    free(cache->path);
    free(cache);
}
