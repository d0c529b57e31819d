/* The directory of the cache: which are taken, what happens in those that are full, read-only
 * or gone, and how it keeps its size. */
#define _GNU_SOURCE
#include "cache_fixture.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

enum { NOBODY = 65534 };

/* ---- directories ------------------------------------------------------------------ */

static void assert_directory(const char *given, const char *expected)
{
    char *path = cache_directory(given);
    if (expected)
        assert_string_equal(path, expected);
    else
        assert_null(path);
    free(path);
}

static void chooses_a_directory(void **state)
{
    (void)state;
    char *home = getenv("HOME") ? strdup(getenv("HOME")) : NULL;
    setenv("TILUS_CACHE_DIR", "/c/", 1);
    setenv("XDG_CACHE_HOME", "/x", 1);
    setenv("HOME", "/h", 1);
    assert_directory("/given//", "/given");
    assert_directory(NULL, "/c");
    setenv("TILUS_CACHE_DIR", "", 1);
    assert_directory(NULL, "/x/tilus");
    setenv("XDG_CACHE_HOME", "relative", 1);
    assert_directory(NULL, "/h/.cache/tilus");
    unsetenv("XDG_CACHE_HOME");
    assert_directory(NULL, "/h/.cache/tilus");
    unsetenv("HOME");
    assert_directory(NULL, NULL);
    const tilus_cache_options options = {.struct_size = sizeof options,
                                        .warn = warnings_add, .user = &warnings};
    assert_null(tilus_cache_open(&options));
    assert_contains(warnings.last, "none of TILUS_CACHE_DIR, XDG_CACHE_HOME and HOME is set");
    if (home)
        setenv("HOME", home, 1);
    free(home);
}

static void obeys_the_environment(void **state)
{
    (void)state;
    const tilus_cache_options options = {.struct_size = sizeof options,
                                        .warn = warnings_add, .user = &warnings};
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    setenv("TILUS_CACHE_DIR", directory, 1);
    setenv("TILUS_CACHE_SIZE", "3M", 1);
    tilus_cache *cache = tilus_cache_open(&options);
    tilus_cache_get_stats(cache, &stats);
    assert_string_equal(stats.directory, directory);
    assert_int_equal(stats.size, 3 << 20);
    tilus_cache_close(cache);
    setenv("TILUS_CACHE_SIZE", "lots", 1);
    cache = tilus_cache_open(&options);
    tilus_cache_get_stats(cache, &stats);
    assert_int_equal(stats.size, CACHE_LIMIT);
    assert_contains(warnings.last, "not \"lots\"");
    tilus_cache_close(cache);
    warnings.count = 0;
    setenv("TILUS_CACHE", "off", 1);
    assert_null(tilus_cache_open(&options));
    assert_null(tilus_cache_open(NULL));
    assert_int_equal(warnings.count, 0);
}

static void reads_sizes(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "0", "-1", "1T", "1KK", "K", " 1", "1 ",
                                        "99999999999999999999", "18446744073709551615K"};
    uint64_t size;
    assert_true(cache_parse_size("17", &size) && size == 17);
    assert_true(cache_parse_size("2K", &size) && size == 2048);
    assert_true(cache_parse_size("10M", &size) && size == 10 << 20);
    assert_true(cache_parse_size("8G", &size) && size == (uint64_t)8 << 30);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(cache_parse_size(wrong[i], &size));
}

static void makes_directories(void **state)
{
    (void)state;
    char path[2 * TEST_PATH];
    struct stat info;
    snprintf(path, sizeof path, "%s/a/b/c", directory);
    assert_null(cache_open(path, false, CACHE_LIMIT, warnings_add, &warnings));
    assert_contains(warnings.last, "No such file or directory");
    cache_close(cache_open(path, true, CACHE_LIMIT, NULL, NULL));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(stat(path, &info), 0);
        assert_int_equal(info.st_mode & 0777, 0700);
        *strrchr(path, '/') = '\0';
    }
}

static void assert_refused(const char *path, const char *why)
{
    warnings.count = 0;
    assert_null(cache_open(path, true, CACHE_LIMIT, warnings_add, &warnings));
    assert_null(cache_open(path, true, CACHE_LIMIT, NULL, NULL));
    assert_int_equal(warnings.count, 1);
    assert_contains(warnings.last, path);
    assert_contains(warnings.last, why);
}

static void refuses_what_others_may_write(void **state)
{
    (void)state;
    chmod(directory, 0770);
    assert_refused(directory, "its mode is 770, at most 755 is allowed");
    chmod(directory, 01777);
    assert_refused(directory, "its mode is 777");
    chmod(directory, 0755);
    cache_close(open_here());
}

static void refuses_what_is_no_directory(void **state)
{
    (void)state;
    char path[2 * TEST_PATH], link[2 * TEST_PATH];
    snprintf(path, sizeof path, "%s/file", directory);
    write_file(path, "", 0);
    assert_refused(path, "Not a directory");
    snprintf(link, sizeof link, "%s/link", directory);
    snprintf(path, sizeof path, "%s/real", directory);
    mkdir(path, 0700);
    assert_int_equal(symlink(path, link), 0);
    assert_refused(link, "it is a symbolic link");
    snprintf(link, sizeof link, "%s/link/", directory);
    warnings.count = 0;
    assert_null(cache_open(link, true, CACHE_LIMIT, warnings_add, &warnings));
    assert_contains(warnings.last, "it is a symbolic link");
}

static void refuses_another_users(void **state)
{
    (void)state;
    if (geteuid() == 0) {
        assert_int_equal(chown(directory, NOBODY, NOBODY), 0);
        assert_refused(directory, "it belongs to user 65534, this process is user 0");
    } else {
        assert_refused("/", "it belongs to user 0, this process is user ");
    }
}

/* ---- directories that take nothing ------------------------------------------------ */

/* Runs a test in a process of its own, as its failures there show. */
static void in_child(void (*test)(void))
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        test();
        _exit(EXIT_SUCCESS);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == EXIT_SUCCESS);
}

#define REQUIRE(condition)                                                        \
    do {                                                                          \
        if (!(condition)) {                                                       \
            fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, warnings.last); \
            _exit(EXIT_FAILURE);                                                  \
        }                                                                         \
    } while (0)

/* Reads go on, and of any number of writes one warns. */
static void require_only_reads(Cache *cache, const char *why)
{
    REQUIRE(has_number(cache, 1, "one"));
    for (unsigned i = 2; i < 5; i++) {
        REQUIRE(!put_number(cache, i, "a number"));
        REQUIRE(!has_number(cache, i, ""));
    }
    REQUIRE(warnings.count == 1);
    REQUIRE(strstr(warnings.last, why));
    REQUIRE(has_number(cache, 1, "one"));
    cache_close(cache);
}

static void read_only(void)
{
    REQUIRE(geteuid() != 0 || seteuid(NOBODY) == 0);    /* root writes anywhere */
    require_only_reads(open_here(), "cannot store a result: Permission denied");
}

static void goes_on_where_it_is_read_only(void **state)
{
    (void)state;
    Cache *cache = open_here();
    put_number(cache, 1, "one");
    cache_close(cache);
    chmod(directory, 0500);
    if (geteuid() == 0)
        directory_give(directory, NOBODY);
    in_child(read_only);
    chmod(directory, 0700);
}

/* As a writer names it. */
static const char temporary_name[] = ".tmp-0123456789abcdef";

static void full(void)
{
    const struct rlimit small = {40, 40};
    signal(SIGXFSZ, SIG_IGN);
    Cache *cache = open_here();
    REQUIRE(put_number(cache, 1, "one"));
    int left = openat(cache->directory, temporary_name, O_WRONLY | O_CREAT, 0600);
    REQUIRE(left >= 0 && close(left) == 0);
    cache_close(cache);
    cache = open_here();
    REQUIRE(setrlimit(RLIMIT_FSIZE, &small) == 0);
    require_only_reads(cache, "cannot store a result: File too large");
}

static void goes_on_where_it_is_full(void **state)
{
    (void)state;
    in_child(full);
    Cache *cache = open_here();
    CacheFiles files;
    assert_true(cache_list(cache, &files));
    assert_int_equal(files.count, 1);       /* nothing is left of what did not fit, nor of
                                               what dead writers left before */
    cache_files_free(&files);
    cache_close(cache);
}

static void goes_on_where_it_is_gone(void **state)
{
    (void)state;
    Cache *cache = open_here();
    put_number(cache, 1, "one");
    directory_remove(directory);
    assert_false(has_number(cache, 1, "one"));
    assert_false(put_number(cache, 1, "one"));
    assert_false(put_number(cache, 1, "one"));
    assert_int_equal(warnings.count, 1);
    assert_contains(warnings.last, "cannot store a result: No such file or directory; "
                                   "going on without");
    cache_close(cache);
}

/* ---- the size --------------------------------------------------------------------- */

static void age(unsigned i, time_t seconds)
{
    const struct timespec times[2] = {{.tv_sec = time(NULL) - seconds},
                                      {.tv_sec = time(NULL) - seconds}};
    assert_int_equal(utimensat(AT_FDCWD, number_path(i), times, 0), 0);
}

static void evicts_what_was_used_longest_ago(void **state)
{
    (void)state;
    enum { DATA = 1000 };
    char data[DATA + 1];
    memset(data, 'x', DATA);
    data[DATA] = '\0';
    Cache *cache = open_sized(5 * 1200);
    for (unsigned i = 0; i < 5; i++) {
        assert_true(put_number(cache, i, data));
        age(i, 100 - i);
    }
    assert_true(has_number(cache, 0, data));        /* now it is the youngest */
    assert_int_equal(cache->evicted, 0);
    assert_true(put_number(cache, 5, data));
    assert_true(has_number(cache, 0, data));
    assert_false(has_number(cache, 1, data));
    assert_true(has_number(cache, 4, data));
    assert_true(has_number(cache, 5, data));
    assert_in_range(cache->evicted, 1, 2);
    cache_close(cache);
}

/* The first entry of a process sweeps, and below the limit takes nothing away. */
static void evicts_nothing_below_the_limit(void **state)
{
    (void)state;
    char data[501];
    memset(data, 'y', 500);
    data[500] = '\0';
    Cache *cache = open_sized(100000);
    for (unsigned i = 0; i < 10; i++)
        assert_true(put_number(cache, i, data));
    uint64_t bytes = cache->bytes;
    cache_close(cache);
    cache = open_sized(bytes + bytes / 8);
    assert_true(put_number(cache, 10, data));
    assert_int_equal(cache->evicted, 0);
    for (unsigned i = 0; i <= 10; i++)
        assert_true(has_number(cache, i, data));
    cache_close(cache);
}

static void knows_of_others_entries(void **state)
{
    (void)state;
    enum { LIMIT = 20000 };
    Cache *ours = open_sized(LIMIT), *others = open_here();
    char data[501];
    memset(data, 'y', 500);
    data[500] = '\0';
    assert_true(put_number(ours, 0, data));
    for (unsigned i = 1; i < 100; i++)
        assert_true(put_number(others, i, data));
    for (unsigned i = 100; i < 104; i++)        /* more than LIMIT / 16 */
        assert_true(put_number(ours, i, data));
    CacheFiles files;
    assert_true(cache_list(ours, &files));
    assert_in_range(files.bytes, LIMIT / 2, LIMIT + LIMIT / 16);
    cache_files_free(&files);
    cache_close(ours);
    cache_close(others);
}

static void keeps_nothing_that_is_larger(void **state)
{
    (void)state;
    Cache *cache = open_sized(200);
    assert_true(put_number(cache, 1, "one"));
    char data[201];
    memset(data, 'z', 200);
    data[200] = '\0';
    assert_false(put_number(cache, 2, data));
    assert_true(has_number(cache, 1, "one"));
    uint64_t bytes = cache->bytes;      /* nor anything that would be the first to go */
    cache_close(cache);
    cache = open_sized(bytes + bytes / 16);
    assert_false(put_number(cache, 3, "six"));
    assert_true(has_number(cache, 1, "one"));
    assert_int_equal(warnings.count, 0);
    cache_close(cache);
}

static void lists_its_own_files(void **state)
{
    (void)state;
    char path[2 * TEST_PATH];
    Cache *cache = open_here();
    snprintf(path, sizeof path, "%s/notes.txt", directory);
    write_file(path, "mine", 4);
    put_number(cache, 1, "one");
    put_number(cache, 2, "two");
    age(1, 100);
    CacheFiles files;
    assert_true(cache_list(cache, &files));
    assert_int_equal(files.count, 2);
    assert_int_equal(files.entries, 2);
    assert_string_equal(files.items[0].name, strrchr(number_path(1), '/') + 1);
    cache_files_free(&files);
    CacheRemoved removed;
    assert_true(cache_sweep(cache, 0, &removed));
    assert_int_equal(removed.entries, 2);
    assert_true(exists(path));
    cache_close(cache);
}

/* ---- writers that die ------------------------------------------------------------- */

/* A writer that has locked its file and never ends. */
static pid_t start_writer(const char *path)
{
    int ready[2];
    char byte;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);   /* also when the test fails */
        int file = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
        if (file < 0 || flock(file, LOCK_EX) != 0 || write(ready[1], "r", 1) != 1)
            _exit(EXIT_FAILURE);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void removes_what_dead_writers_left(void **state)
{
    (void)state;
    char path[2 * TEST_PATH];
    CacheRemoved removed;
    snprintf(path, sizeof path, "%s/%s", directory, temporary_name);
    pid_t writer = start_writer(path);
    Cache *cache = open_here();
    put_number(cache, 1, "one");
    assert_true(cache_sweep(cache, UINT64_MAX, &removed));
    assert_int_equal(removed.temporaries, 0);
    assert_true(exists(path));
    kill(writer, SIGKILL);
    waitpid(writer, NULL, 0);
    assert_true(cache_sweep(cache, UINT64_MAX, &removed));
    assert_int_equal(removed.temporaries, 1);
    assert_false(exists(path));
    assert_true(has_number(cache, 1, "one"));
    cache_close(cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(chooses_a_directory),
        TEST(obeys_the_environment),
        TEST(reads_sizes),
        TEST(makes_directories),
        TEST(refuses_what_others_may_write),
        TEST(refuses_what_is_no_directory),
        TEST(refuses_another_users),
        TEST(goes_on_where_it_is_read_only),
        TEST(goes_on_where_it_is_full),
        TEST(goes_on_where_it_is_gone),
        TEST(evicts_what_was_used_longest_ago),
        TEST(evicts_nothing_below_the_limit),
        TEST(knows_of_others_entries),
        TEST(keeps_nothing_that_is_larger),
        TEST(lists_its_own_files),
        TEST(removes_what_dead_writers_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
