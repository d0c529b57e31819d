/* .safetensors: what is written is read again, and hostile headers are refused. */
#include "tilus-matmul/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { MESSAGE = 256, ROOM = 4096 };

/* A file with this header and so many bytes of data. */
static size_t make_file(char file[ROOM], const char *header, size_t data)
{
    size_t length = strlen(header);
    memset(file, 7, ROOM);
    for (unsigned i = 0; i < 8; i++)
        file[i] = (char)(length >> 8 * i & 0xff);
    memcpy(file + 8, header, length);
    return 8 + length + data;
}

static void written_files_are_read(void **state)
{
    (void)state;
    static const SafeTensor tensors[] = {
        {.name = "a", .dtype = "F16", .rank = 2, .extents = {3, 4}, .size = 24},
        {.name = "b \"quoted\"\n", .dtype = "U8", .rank = 1, .extents = {9}, .size = 9},
        {.name = "scalar", .dtype = "F64", .size = 8},
        {.name = "empty", .dtype = "BF16", .rank = 2, .extents = {0, 5}},
    };
    static const SafeMetadata metadata[] = {{"format", "tilus"}, {"text", "{\"x\": 1}"}};
    size_t begin, end = 0;
    char *header = safetensors_header(tensors, COUNT(tensors), metadata, COUNT(metadata), &begin);
    assert_non_null(header);
    assert_int_equal(begin % SAFETENSORS_ALIGN, 0);
    char *file = calloc(begin + 41, 1), message[MESSAGE] = "";
    memcpy(file, header, begin);
    Safetensors s;
    if (!safetensors_read(file, begin + 41, &s, message, sizeof message))
        fail_msg("%s", message);
    assert_int_equal(s.count, COUNT(tensors));
    assert_string_equal(safetensors_metadata(&s, "text"), "{\"x\": 1}");
    assert_null(safetensors_metadata(&s, "other"));
    for (size_t i = 0; i < COUNT(tensors); end += tensors[i++].size) {
        const SafeTensor *t = safetensors_find(&s, tensors[i].name);
        assert_non_null(t);
        assert_string_equal(t->dtype, tensors[i].dtype);
        assert_int_equal(t->rank, tensors[i].rank);
        assert_memory_equal(t->extents, tensors[i].extents, sizeof t->extents);
        assert_int_equal(t->size, tensors[i].size);
        assert_int_equal(t->begin, end);
    }
    assert_null(safetensors_find(&s, "c"));
    safetensors_free(&s);
    free(file);
    free(header);
}

typedef struct Refusal {
    const char *header;
    size_t data;
    const char *message;
} Refusal;

#define TENSOR(dtype, shape, offsets) \
    "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

static const Refusal refusals[] = {
    {"", 0, "its header is no JSON: byte 0"},
    {"[]", 0, "its header is no JSON object"},
    {"{\"w\":1}", 0, "tensor 'w': it is no object"},
    {"{\"w\":{},\"w\":{}}", 0, "duplicate object key"},
    {"{\"__metadata__\":[]}", 0, "__metadata__ is no object"},
    {"{\"__metadata__\":{\"x\":1}}", 0, "__metadata__ has 'x', which is no string"},
    {"{}", 1, "the tensors have 0 bytes of data, the file has 1"},
    {"{\"w\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "tensor 'w': it has no dtype"},
    {TENSOR("F12", "[1]", "[0,1]"), 1, "its dtype 'F12' is not known"},
    {TENSOR("U8", "3", "[0,3]"), 3, "it has no shape"},
    {TENSOR("U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]"), 1, "it has 9 dimensions, at most 8"},
    {TENSOR("U8", "[-3]", "[0,3]"), 3, "extent 0 of its shape is no number from 0 on"},
    {TENSOR("U8", "[3.0]", "[0,3]"), 3, "extent 0 of its shape is no number"},
    {TENSOR("F64", "[4294967296,2147483648]", "[0,0]"), 0, "its shape has 2^64 bytes or more"},
    {TENSOR("U8", "[3]", "[0]"), 3, "its data_offsets are not two numbers"},
    {TENSOR("U8", "[3]", "[0,\"3\"]"), 3, "its data_offsets are not two numbers"},
    {TENSOR("U8", "[3]", "[3,0]"), 3, "its data_offsets are 3 and 0, of 3 bytes of data"},
    {TENSOR("U8", "[4]", "[0,4]"), 3, "its data_offsets are 0 and 4, of 3 bytes of data"},
    {TENSOR("F16", "[2]", "[0,3]"), 3, "its data_offsets have 3 bytes, its shape of F16 has 4"},
    {TENSOR("U8", "[2]", "[1,3]"), 3, "its data begin at 1, those before it end at 0"},
    {TENSOR("U8", "[2]", "[0,2]"), 3, "the tensors have 2 bytes of data, the file has 3"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3,
     "tensor 'b': its data begin at 1, those before it end at 2"},
};

static void refuse(const char *file, size_t size, const char *wanted)
{
    Safetensors s;
    char message[MESSAGE] = "", *copy = malloc(size + 1);     /* exact, for AddressSanitizer */
    memcpy(copy, file, size);
    assert_false(safetensors_read(copy, size, &s, message, sizeof message));
    if (!strstr(message, wanted))
        fail_msg("'%s' lacks '%s'", message, wanted);
    assert_null(s.tensors);
    free(copy);
}

static void hostile_headers_are_refused(void **state)
{
    (void)state;
    char file[ROOM];
    for (size_t i = 0; i < COUNT(refusals); i++)
        refuse(file, make_file(file, refusals[i].header, refusals[i].data), refusals[i].message);
    refuse(file, 7, "it has 7 bytes, not even the header's length");
    make_file(file, "{}", 0);
    file[7] = 1;
    refuse(file, 10, "its header has 72057594037927938 bytes, of which there are 2");
}

static void long_headers_are_refused(void **state)
{
    (void)state;
    size_t length = SAFETENSORS_HEADER + 1;
    char *file = calloc(length + 8, 1), message[MESSAGE] = "";
    Safetensors s;
    memset(file + 8, ' ', length);
    for (unsigned i = 0; i < 8; i++)
        file[i] = (char)(length >> 8 * i & 0xff);
    assert_false(safetensors_read(file, length + 8, &s, message, sizeof message));
    assert_string_equal(message, "its header has 16777217 bytes, at most 16777216 are read");
    free(file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(written_files_are_read),
        cmocka_unit_test(hostile_headers_are_refused),
        cmocka_unit_test(long_headers_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
