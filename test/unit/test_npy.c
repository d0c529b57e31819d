/* The reader of .npy files: what it takes, what it refuses and why, and that no bytes
 * make it read past their end. Files lie in blocks of just their size, so that
 * AddressSanitizer sees who does. */
#include "common/npy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define DICTIONARY(descr, order, shape)                                       \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

enum { FILE_MAX = 1024 };

/* Puts a file together, returns its size. */
static size_t make_file(unsigned char file[FILE_MAX], unsigned version,
                        const char *dictionary, size_t data)
{
    size_t length = strlen(dictionary), begin = version == 1 ? 10 : 12;
    assert_true(begin + length + data <= FILE_MAX);
    memcpy(file, "\x93NUMPY", 6);
    file[6] = (unsigned char)version;
    file[7] = 0;
    for (unsigned i = 0; i < begin - 8; i++)
        file[8 + i] = (unsigned char)(length >> 8 * i);
    memcpy(file + begin, dictionary, length);
    for (size_t i = 0; i < data; i++)
        file[begin + length + i] = (unsigned char)i;
    return begin + length + data;
}

/* Reads a copy that ends where its block does, and every byte of what is there. */
static bool read_copy(const unsigned char *file, size_t size, NpyArray *array, char *message,
                      size_t message_size)
{
    unsigned char *copy = malloc(size ? size : 1);
    volatile unsigned char read;
    assert_non_null(copy);
    memcpy(copy, file, size);
    bool ok = npy_read(copy, size, array, message, message_size);
    for (size_t i = 0; ok && i < array->count * array->bytes; i++)
        read = array->data[i];
    (void)read;
    free(copy);
    return ok;
}

/* ---- what is taken ------------------------------------------------------------ */

static void expect_array(unsigned version, const char *dictionary, size_t data,
                         const NpyArray *expected)
{
    unsigned char file[FILE_MAX];
    char message[256] = "";
    NpyArray is;
    size_t size = make_file(file, version, dictionary, data);
    bool ok = npy_read(file, size, &is, message, sizeof message);
    assert_string_equal(message, "");
    assert_true(ok);
    assert_int_equal(is.kind, expected->kind);
    assert_int_equal(is.bytes, expected->bytes);
    assert_int_equal(is.rank, expected->rank);
    assert_int_equal(is.count * is.bytes, data);
    assert_memory_equal(is.extents, expected->extents, sizeof is.extents);
    assert_ptr_equal(is.data, file + size - data);
}

static void test_versions(void **state)
{
    (void)state;
    const NpyArray matrix = {.kind = 'f', .bytes = 2, .rank = 2, .extents = {2, 3}};
    for (unsigned version = 1; version <= 3; version++)
        expect_array(version, DICTIONARY("<f2", "False", "(2, 3)"), 12, &matrix);
    expect_array(1, "{'shape':(2,3),'descr':\"<f2\",'fortran_order':False}  \n", 12, &matrix);
}

static void test_types(void **state)
{
    (void)state;
    static const char kinds[] = "fiuV";
    for (const char *kind = kinds; *kind; kind++)
        for (unsigned bytes = *kind == 'f' ? 2 : 1; bytes <= 8; bytes *= 2) {
            char text[128] = DICTIONARY("<??", "False", "(5,)");
            *strchr(text, '?') = *kind;
            *strchr(text, '?') = (char)('0' + bytes);
            expect_array(1, text, 5 * (size_t)bytes,
                         &(NpyArray){.kind = *kind, .bytes = bytes, .rank = 1, .extents = {5}});
        }
    expect_array(1, DICTIONARY("|b1", "False", "()"), 1, &(NpyArray){.kind = 'b', .bytes = 1});
    expect_array(1, DICTIONARY("|u1", "False", "(0, 7)"), 0,
                 &(NpyArray){.kind = 'u', .bytes = 1, .rank = 2, .extents = {0, 7}});
}

/* ---- what is refused ---------------------------------------------------------- */

static void expect_refusal(const unsigned char *file, size_t size, const char *why)
{
    NpyArray array;
    char message[256] = "";
    assert_false(read_copy(file, size, &array, message, sizeof message));
    assert_string_equal(message, why);
}

static void refuse(const char *dictionary, const char *why)
{
    unsigned char file[FILE_MAX];
    expect_refusal(file, make_file(file, 1, dictionary, 8), why);
}

static void test_refused_types(void **state)
{
    (void)state;
    refuse(DICTIONARY(">f4", "False", "(2,)"),
           "its elements are big-endian ('>f4'), little-endian ones are read");
    refuse(DICTIONARY("<f4", "True", "(2, 1)"),
           "it is in Fortran order, arrays in C order are read");
    refuse("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,)}",
           "its elements have fields");
    static const char *const types[] = {"<c8", "<f1", "|b2", "<i3", "<U4", "<f16", "=f4", ""};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        char text[128] = "{'descr': '", why[128] = "its elements are '";
        strcat(strcat(text, types[i]), "', 'fortran_order': False, 'shape': (2,)}");
        strcat(strcat(why, types[i]),
               "', only f2, f4, f8, i1 to i8, u1 to u8, b1 and V1 to V8 are read");
        refuse(text, why);
    }
}

static void test_refused_shapes(void **state)
{
    (void)state;
    refuse(DICTIONARY("<f4", "False", "(3,)"),
           "its shape has 3 elements of 4 bytes, the file has 8 bytes of them");
    refuse(DICTIONARY("<f4", "False", "(1,)"),
           "its shape has 1 elements of 4 bytes, the file has 8 bytes of them");
    refuse(DICTIONARY("<f4", "False", "(-2,)"), "an extent of the shape is no number");
    refuse(DICTIONARY("<f4", "False", "(9223372036854775808,)"),
           "an extent of the shape has more than 63 bits");
    refuse(DICTIONARY("<f4", "False", "(4294967296, 4294967296)"),
           "its shape has 2^64 elements or more");
    refuse(DICTIONARY("<f4", "False", "(2305843009213693954, 2)"),
           "its shape has 4611686018427387908 elements of 4 bytes, the file has 8 bytes of "
           "them");
    refuse(DICTIONARY("<f4", "False", "(1, 1, 1, 1, 1, 1, 1, 1, 2)"),
           "it has more than 8 dimensions");
    refuse(DICTIONARY("<f4", "False", "(1 2)"), "the shape lacks a ')'");
    refuse(DICTIONARY("<f4", "False", "2"), "the header lacks a '('");
}

static void test_refused_headers(void **state)
{
    (void)state;
    refuse("", "the header lacks a '{'");
    refuse("{", "the header lacks a string");
    refuse("{'descr", "a string of the header does not end");
    refuse("{'descr' '<f4'}", "the header lacks a ':'");
    refuse("{'descr': '<f4' 'shape': (2,)}", "the header lacks a '}'");
    refuse("{'descr': '<f4', 'fortran_order': False}", "the header says no shape");
    refuse("{'shape': (2,), 'fortran_order': False}", "the header says no descr");
    refuse("{'descr': '<f4', 'descr': '<f4'}", "the header says descr twice");
    refuse("{'color': '<f4'}", "the header says 'color', which is not known");
    refuse("{'fortran_order': No}", "fortran_order is neither True nor False");
    refuse(DICTIONARY("<f4", "False", "(2,)") "x", "something follows the header's '}'");
}

static void test_refused_files(void **state)
{
    (void)state;
    unsigned char file[FILE_MAX];
    size_t size = make_file(file, 1, DICTIONARY("<f4", "False", "(2,)"), 8);
    expect_refusal(file, 9, "it does not begin as a .npy file does");
    expect_refusal(file, 20, "its header has 57 bytes, of which there are 10");
    file[6] = 4;
    expect_refusal(file, size, "it has version 4.0 of the format, 1.0 to 3.0 are read");
    file[6] = 2;
    expect_refusal(file, 11, "it ends within its header");
    file[0] = 'P';
    expect_refusal(file, size, "it does not begin as a .npy file does");
}

/* ---- damage ------------------------------------------------------------------- */

static void test_truncation(void **state)
{
    (void)state;
    unsigned char file[FILE_MAX];
    char message[256];
    NpyArray array;
    for (unsigned version = 1; version <= 3; version++) {
        size_t size = make_file(file, version, DICTIONARY("<f2", "False", "(4, 4)"), 32);
        for (size_t cut = 0; cut < size; cut++)
            assert_false(read_copy(file, cut, &array, message, sizeof message));
        assert_true(read_copy(file, size, &array, message, sizeof message));
    }
}

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525 + 1013904223;
    return *state >> 8;
}

/* One to four bytes changed, or one run of them taken out. */
static size_t mutate(unsigned char *file, size_t size, uint32_t *random)
{
    for (uint32_t n = 1 + next_random(random) % 4; n > 0; n--) {
        static const unsigned char telling[] = "'\"{}(),: 09-<>|fiubVTFL\xff";
        size_t at = next_random(random) % size;
        file[at] = next_random(random) % 2
                       ? telling[next_random(random) % (sizeof telling - 1)]
                       : (unsigned char)next_random(random);
    }
    if (next_random(random) % 4)
        return size;
    size_t from = next_random(random) % size, gone = next_random(random) % 8;
    gone = gone < size - from ? gone : size - from;
    memmove(file + from, file + from + gone, size - from - gone);
    return size - gone;
}

/* Whatever becomes of it: read within its bytes, or refused with a reason. */
static void test_mutations(void **state)
{
    (void)state;
    enum { MUTATIONS = 10000 };
    uint32_t random = 1;
    unsigned taken = 0;
    for (unsigned i = 0; i < MUTATIONS; i++) {
        unsigned char file[FILE_MAX];
        char message[256] = "";
        NpyArray array;
        size_t size = make_file(file, 1 + i % 3, DICTIONARY("<f2", "False", "(4, 4)"), 32);
        size = mutate(file, size, &random);
        bool ok = read_copy(file, size, &array, message, sizeof message);
        assert_true(ok || *message);
        taken += ok;
    }
    assert_in_range(taken, 1, MUTATIONS - 1);
}

/* ---- writing ------------------------------------------------------------------ */

static void test_written(void **state)
{
    (void)state;
    char header[NPY_HEADER], message[256], descr[NPY_DESCR];
    const NpyArray none = {.kind = 'f', .bytes = 4, .rank = NPY_RANK,
                           .extents = {INT64_MAX, 0, INT64_MAX, INT64_MAX, INT64_MAX,
                                       INT64_MAX, INT64_MAX, 1}};
    size_t size = npy_write_header(&none, header);
    assert_int_equal(size % 64, 0);
    assert_true(size <= NPY_HEADER);
    assert_int_equal(header[size - 1], '\n');
    NpyArray vector = {.kind = 'u', .bytes = 1, .rank = 1, .extents = {0}}, is;
    size = npy_write_header(&vector, header);
    assert_true(npy_read(header, size, &is, message, sizeof message));
    npy_descr(&is, descr);
    assert_string_equal(descr, "|u1");
    assert_int_equal(is.rank, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions),        cmocka_unit_test(test_types),
        cmocka_unit_test(test_refused_types),   cmocka_unit_test(test_refused_shapes),
        cmocka_unit_test(test_refused_headers), cmocka_unit_test(test_refused_files),
        cmocka_unit_test(test_truncation),      cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
