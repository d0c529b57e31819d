/* Tests of the cache: a directory of their own, and entries by number. */
#ifndef TILUS_TEST_CACHE_FIXTURE_H
#define TILUS_TEST_CACHE_FIXTURE_H

#include "cache/cache.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

enum { TEST_PATH = 512 };

/* Warnings of the cache: how many, and the last text. */
typedef struct Warnings {
    atomic_int count;
    char last[1024];
} Warnings;

static inline void warnings_add(void *user, const char *message)
{
    Warnings *warnings = user;
    atomic_fetch_add(&warnings->count, 1);
    snprintf(warnings->last, sizeof warnings->last, "%s", message);
}

/* Makes a directory of its own; `path` has TEST_PATH bytes. */
static inline void directory_make(char *path)
{
    const char *temporary = getenv("TMPDIR");
    snprintf(path, TEST_PATH, "%s/tilus-cache-XXXXXX",
             temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(path)) {
        perror(path);
        exit(EXIT_FAILURE);
    }
}

static inline int directory_remove_one(const char *path, const struct stat *info, int type,
                                       struct FTW *ftw)
{
    (void)info, (void)type, (void)ftw;
    return remove(path);
}

/* Gives the directory and its files to a user. */
static inline void directory_give(const char *path, uid_t user)
{
    Cache *cache = cache_open(path, false, CACHE_LIMIT, NULL, NULL);
    CacheFiles files;
    assert_true(cache && cache_list(cache, &files));
    for (size_t i = 0; i < files.count; i++)
        assert_int_equal(fchownat(cache->directory, files.items[i].name, user, user, 0), 0);
    assert_int_equal(fchown(cache->directory, user, user), 0);
    cache_files_free(&files);
    cache_close(cache);
}

static inline void directory_remove(const char *path)
{
    nftw(path, directory_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The key of number `i`. */
static inline CacheKey numbered_key(unsigned i)
{
    char text[32];
    CacheKey key = {0};
    snprintf(text, sizeof text, "number %u", i);
    cache_key_add_text(&key, "target", "sm_80");
    cache_key_add_text(&key, "program", text);
    return key;
}

/* ---- the test program ------------------------------------------------------- */

static char directory[TEST_PATH];
static Warnings warnings;

static inline int set_up(void **state)
{
    (void)state;
    directory_make(directory);
    memset(&warnings, 0, sizeof warnings);
    unsetenv("TILUS_CACHE");
    unsetenv("TILUS_CACHE_DIR");
    unsetenv("TILUS_CACHE_SIZE");
    return 0;
}

static inline int tear_down(void **state)
{
    (void)state;
    directory_remove(directory);
    return 0;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("\"%s\" does not contain \"%s\"", text, part);
}

static inline Cache *open_sized(uint64_t limit)
{
    Cache *cache = cache_open(directory, false, limit, warnings_add, &warnings);
    assert_non_null(cache);
    return cache;
}

static inline Cache *open_here(void)
{
    return open_sized(CACHE_LIMIT);
}

static inline bool put_number(Cache *cache, unsigned i, const char *data)
{
    CacheKey key = numbered_key(i);
    bool ok = cache_put(cache, &key, data, strlen(data));
    cache_key_free(&key);
    return ok;
}

/* Returns true when entry i is there, whose bytes must be `data`. */
static inline bool has_number(Cache *cache, unsigned i, const char *data)
{
    CacheKey key = numbered_key(i);
    void *bytes;
    size_t size;
    bool found = cache_get(cache, &key, &bytes, &size);
    cache_key_free(&key);
    if (!found) {
        assert_null(bytes);
        return false;
    }
    assert_int_equal(size, strlen(data));
    assert_memory_equal(bytes, data, size);
    free(bytes);
    return true;
}

/* The path of number i's file, in static storage. */
static inline const char *number_path(unsigned i)
{
    static char path[TEST_PATH + CACHE_NAME + 2];
    char name[CACHE_NAME + 1];
    CacheKey key = numbered_key(i);
    cache_key_name(key.bytes, key.size, name);
    cache_key_free(&key);
    snprintf(path, sizeof path, "%s/%s", directory, name);
    return path;
}

static inline void write_file(const char *path, const void *bytes, size_t size)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(file >= 0);
    assert_int_equal(write(file, bytes, size), size);
    close(file);
}

static inline bool exists(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0;
}

#endif
