/* The cache on disk: what is put comes back, and nothing else ever does. */
#define _GNU_SOURCE
#include "cache_fixture.h"

#include "cache/bytes.h"

/* ---- keys ------------------------------------------------------------------------- */

static void keys_are_their_parts(void **state)
{
    (void)state;
    CacheKey a = {0}, b = {0};
    cache_key_add_text(&a, "text", "ab");
    cache_key_add_text(&a, "options", "c");
    cache_key_add_text(&b, "text", "a");
    cache_key_add_text(&b, "options", "bc");
    assert_int_equal(a.size, b.size);
    assert_memory_not_equal(a.bytes, b.bytes, a.size);
    CachePart part;
    assert_true(cache_key_find(b.bytes, b.size, "options", &part));
    assert_int_equal(part.value_size, 2);
    assert_memory_equal(part.value, "bc", 2);
    assert_false(cache_key_find(b.bytes, b.size, "option", &part));
    /* Whatever a key is cut to, only whole parts are found. */
    for (size_t size = 0; size < b.size; size++)
        assert_false(cache_key_find(b.bytes, size, "options", &part));
    cache_key_free(&a);
    cache_key_free(&b);
}

static void names_are_blake3(void **state)
{
    (void)state;
    char name[CACHE_NAME + 1];
    cache_key_name("", 0, name);    /* of the empty string, as the BLAKE3 paper has it */
    assert_string_equal(name, "af1349b9f5f9a1a6a0404dea36dcc949"
                              "9bcb25c9adc112b7cc9a93cae41f3262");
}

/* ---- getting and putting ---------------------------------------------------------- */

static void gives_what_was_put(void **state)
{
    (void)state;
    Cache *cache = open_here();
    assert_false(has_number(cache, 1, ""));
    assert_true(put_number(cache, 1, "one"));
    assert_true(put_number(cache, 2, ""));
    assert_true(has_number(cache, 1, "one"));
    assert_true(has_number(cache, 2, ""));
    assert_false(has_number(cache, 3, ""));
    assert_true(put_number(cache, 1, "another"));
    cache_close(cache);
    cache = open_here();
    assert_true(has_number(cache, 1, "another"));
    cache_close(cache);
    assert_int_equal(warnings.count, 0);
    struct stat info;
    assert_int_equal(stat(number_path(1), &info), 0);
    assert_int_equal(info.st_mode & 0777, 0600);
}

static void counts(void **state)
{
    (void)state;
    const tilus_cache_options options = {.struct_size = sizeof options,
                                        .directory = directory, .size = 1 << 20};
    tilus_cache *cache = tilus_cache_open(&options);
    has_number(cache, 1, "one");
    put_number(cache, 1, "one");
    has_number(cache, 1, "one");
    has_number(cache, 1, "one");
    write_file(number_path(2), "damage", 6);
    has_number(cache, 2, "");
    tilus_cache_stats stats = {.struct_size = sizeof stats};
    tilus_cache_get_stats(cache, &stats);
    assert_string_equal(stats.directory, directory);
    assert_true(stats.writable);
    assert_int_equal(stats.entries, 1);
    struct stat info;
    assert_int_equal(stat(number_path(1), &info), 0);
    assert_int_equal(stats.bytes, info.st_size);
    assert_int_equal(stats.size, 1 << 20);
    assert_int_equal(stats.hits, 2);
    assert_int_equal(stats.misses, 2);
    assert_int_equal(stats.stored, 1);
    assert_int_equal(stats.dropped, 1);
    assert_int_equal(stats.evicted, 0);
    tilus_cache_close(cache);
    tilus_cache_get_stats(NULL, &stats);
    assert_null(stats.directory);
    tilus_cache_close(NULL);
}

/* A file that is whole, with the name of one key and the contents of another. */
static void compares_the_whole_key(void **state)
{
    (void)state;
    Cache *cache = open_here();
    char other[2 * TEST_PATH];
    put_number(cache, 1, "one");
    snprintf(other, sizeof other, "%s", number_path(1));
    assert_int_equal(rename(other, number_path(2)), 0);
    assert_false(has_number(cache, 2, ""));
    assert_true(put_number(cache, 2, "two"));
    assert_true(has_number(cache, 2, "two"));
    cache_close(cache);
}

static void drops_what_is_damaged(void **state)
{
    (void)state;
    Cache *cache = open_here();
    assert_true(put_number(cache, 1, "one"));
    int file = open(number_path(1), O_WRONLY);
    assert_int_equal(pwrite(file, "X", 1, ENTRY_HEADER + 5), 1);
    close(file);
    assert_false(has_number(cache, 1, ""));
    assert_false(exists(number_path(1)));
    assert_true(put_number(cache, 1, "one"));
    assert_int_equal(truncate(number_path(1), 50), 0);
    assert_false(has_number(cache, 1, ""));
    assert_false(exists(number_path(1)));
    assert_int_equal(symlink("/etc/passwd", number_path(2)), 0);
    assert_false(has_number(cache, 2, ""));
    assert_false(exists(number_path(2)));
    assert_int_equal(mkfifo(number_path(3), 0600), 0);
    assert_false(has_number(cache, 3, ""));
    assert_false(exists(number_path(3)));
    assert_int_equal(mkdir(number_path(4), 0700), 0);
    assert_false(has_number(cache, 4, ""));
    assert_int_equal(warnings.count, 0);
    assert_false(put_number(cache, 4, "four"));
    assert_contains(warnings.last, "cannot store a result: ");
    cache_close(cache);
}

/* ---- mutated files ---------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_below(uint64_t limit)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % limit;
}

/* Changes `*size` bytes, of which there is room for twice as many. */
static void mutate(uint8_t *bytes, size_t *size)
{
    static const uint64_t numbers[] = {0, 1, UINT32_MAX, INT64_MAX, UINT64_MAX, ENTRY_MAX};
    switch (random_below(6)) {
    case 0: bytes[random_below(*size)] ^= (uint8_t)(1u << random_below(8)); break;
    case 1: bytes[random_below(ENTRY_HEADER)] = (uint8_t)random_below(256); break;
    case 2: *size = random_below(*size) + 1; break;
    case 3: bytes[*size] = (uint8_t)random_below(256), *size += 1; break;
    case 4: bytes_put(bytes + 8 + 8 * random_below(3), 8, numbers[random_below(6)]); break;
    case 5: memmove(bytes + random_below(*size / 2), bytes + random_below(*size / 2),
                    random_below(*size / 2) + 1); break;
    }
}

/* A view that lies within the bytes and makes them again. */
static void assert_consistent(const EntryView *view, const uint8_t *bytes, size_t size)
{
    size_t again_size;
    assert_ptr_equal(view->key, bytes + ENTRY_HEADER);
    assert_ptr_equal(view->data, view->key + view->key_size);
    assert_int_equal(ENTRY_HEADER + view->key_size + view->data_size + ENTRY_HASH, size);
    uint8_t *again = entry_write(view, &again_size);
    assert_int_equal(again_size, size);
    assert_memory_equal(again, bytes, size);
    free(again);
}

/* As a file, with the checksum as it is: it is dropped, or nothing was changed. */
static void check_mutated_file(Cache *cache, const uint8_t *bytes, size_t size, bool same)
{
    write_file(number_path(1), bytes, size);
    assert_int_equal(has_number(cache, 1, "the result"), same);
    assert_int_equal(exists(number_path(1)), same);
}

/* In memory, with the right checksum: refused, or read within its bounds. */
static void check_mutated_entry(const uint8_t *mutated, size_t size)
{
    EntryView view;
    uint8_t *bytes = malloc(size);      /* the sanitizer sees who reads behind it */
    memcpy(bytes, mutated, size);
    if (size >= ENTRY_HEADER + ENTRY_HASH)
        entry_seal(bytes, size);
    if (!entry_read(bytes, size, &view)) {
        CachePart part;
        size_t at = 0;
        assert_consistent(&view, bytes, size);
        while (cache_key_next(view.key, view.key_size, &at, &part))
            assert_true(at <= view.key_size &&
                        (const uint8_t *)part.value + part.value_size == view.key + at);
    }
    free(bytes);
}

static void takes_no_mutated_file(void **state)
{
    (void)state;
    enum { MUTATIONS = 10000 };
    uint8_t bytes[1024], good[512];
    size_t good_size, size;
    Cache *cache = open_here();
    CacheKey key = numbered_key(1);
    const char *data = "the result";
    const EntryView view = {key.bytes, (const uint8_t *)data, key.size, strlen(data)};
    uint8_t *file = entry_write(&view, &good_size);
    memcpy(good, file, good_size);
    free(file);
    cache_key_free(&key);
    random_state = 20261121;
    for (int i = 0; i < MUTATIONS; i++) {
        memcpy(bytes, good, size = good_size);
        for (uint64_t n = random_below(3) + 1; n > 0; n--)
            mutate(bytes, &size);
        check_mutated_file(cache, bytes, size,
                           size == good_size && !memcmp(bytes, good, size));
        check_mutated_entry(bytes, size);
    }
    cache_close(cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(keys_are_their_parts),
        TEST(names_are_blake3),
        TEST(gives_what_was_put),
        TEST(counts),
        TEST(compares_the_whole_key),
        TEST(drops_what_is_damaged),
        TEST(takes_no_mutated_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
