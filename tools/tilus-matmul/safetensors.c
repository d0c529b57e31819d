/* A file is the header's length in 8 bytes, the header, and the data:
 *
 *   {"__metadata__":{"format":"pt"},"w":{"dtype":"F16","shape":[4,8],"data_offsets":[0,64]}}
 *
 * The tensors cover the data without overlap and without gaps, as the format demands. */
#include "tilus-matmul/safetensors.h"

#include "support/integer.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LENGTH = 8, SHOWN = 64 };        /* bytes of the length; of a name in a message */

static const char metadata_name[] = "__metadata__";

static const struct {
    const char *name;
    unsigned bits;
} types[] = {
    {"BOOL", 8}, {"U8", 8}, {"I8", 8}, {"F8_E4M3", 8}, {"F8_E5M2", 8}, {"F8_E8M0", 8},
    {"U16", 16}, {"I16", 16}, {"F16", 16}, {"BF16", 16}, {"U32", 32}, {"I32", 32}, {"F32", 32},
    {"U64", 64}, {"I64", 64}, {"F64", 64},
};

typedef struct Reader {
    Safetensors *out;
    const char *name;           /* of the tensor that is read */
    char *message;
    size_t message_size;
} Reader;

__attribute__((format(printf, 2, 3)))
static bool fail(const Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int used = r->name ? snprintf(r->message, r->message_size, "tensor '%.*s': ", SHOWN, r->name)
                       : 0;
    if (used >= 0 && (size_t)used < r->message_size)
        vsnprintf(r->message + used, r->message_size - (size_t)used, format, args);
    va_end(args);
    return false;
}

/* ---- one tensor ---------------------------------------------------------- */

static bool read_dtype(const Reader *r, const json_t *object, SafeTensor *t, unsigned *bits)
{
    const char *name = json_string_value(json_object_get(object, "dtype"));
    if (!name)
        return fail(r, "it has no dtype");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (strcmp(types[i].name, name) == 0) {
            t->dtype = types[i].name;
            *bits = types[i].bits;
            return true;
        }
    return fail(r, "its dtype '%.16s' is not known", name);
}

/* Reads a number that is not negative. */
static bool read_count(const json_t *value, int64_t *count)
{
    *count = json_is_integer(value) ? (int64_t)json_integer_value(value) : -1;
    return *count >= 0;
}

/* Sets *size to the bytes that the shape has. */
static bool read_shape(const Reader *r, const json_t *object, SafeTensor *t, unsigned bits,
                       size_t *size)
{
    const json_t *shape = json_object_get(object, "shape");
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > SAFETENSORS_RANK)
        return json_is_array(shape) ? fail(r, "it has %zu dimensions, at most %d are read", rank,
                                           SAFETENSORS_RANK)
                                    : fail(r, "it has no shape");
    *size = bits / 8;
    t->rank = (unsigned)rank;
    for (size_t d = 0; d < rank; d++)
        if (!read_count(json_array_get(shape, d), &t->extents[d]))
            return fail(r, "extent %zu of its shape is no number from 0 on", d);
        else if (__builtin_mul_overflow(*size, (size_t)t->extents[d], size))
            return fail(r, "its shape has 2^64 bytes or more");
    return true;
}

static bool read_offsets(const Reader *r, const json_t *object, SafeTensor *t, size_t size)
{
    const json_t *offsets = json_object_get(object, "data_offsets");
    int64_t begin, end;
    if (json_array_size(offsets) != 2 || !read_count(json_array_get(offsets, 0), &begin) ||
        !read_count(json_array_get(offsets, 1), &end))
        return fail(r, "its data_offsets are not two numbers");
    if (begin > end || (uint64_t)end > r->out->size)
        return fail(r, "its data_offsets are %" PRId64 " and %" PRId64 ", of %zu bytes of data",
                    begin, end, r->out->size);
    t->begin = (size_t)begin;
    t->size = (size_t)(end - begin);
    if (t->size != size)
        return fail(r, "its data_offsets have %zu bytes, its shape of %s has %zu", t->size,
                    t->dtype, size);
    return true;
}

static bool read_tensor(const Reader *r, const json_t *object, SafeTensor *t)
{
    unsigned bits = 0;
    size_t size = 0;
    if (!json_is_object(object))
        return fail(r, "it is no object");
    return read_dtype(r, object, t, &bits) && read_shape(r, object, t, bits, &size) &&
           read_offsets(r, object, t, size);
}

/* ---- all ------------------------------------------------------------------- */

static bool check_metadata(const Reader *r, json_t *metadata)
{
    const char *key;
    json_t *value;
    if (!json_is_object(metadata))
        return fail(r, "__metadata__ is no object");
    json_object_foreach(metadata, key, value)
        if (!json_is_string(value))
            return fail(r, "__metadata__ has '%.*s', which is no string", SHOWN, key);
    return true;
}

static int by_begin(const void *a, const void *b)
{
    const SafeTensor *x = a, *y = b;
    if (x->begin != y->begin)
        return x->begin < y->begin ? -1 : 1;
    return (x->size > y->size) - (x->size < y->size);
}

static bool check_cover(Reader *r)
{
    const Safetensors *s = r->out;
    size_t end = 0;
    for (size_t i = 0; i < s->count; i++) {
        const SafeTensor *t = &s->tensors[i];
        r->name = t->name;
        if (t->begin != end)
            return fail(r, "its data begin at %zu, those before it end at %zu", t->begin, end);
        end += t->size;
    }
    r->name = NULL;
    return end == s->size || fail(r, "the tensors have %zu bytes of data, the file has %zu", end,
                                  s->size);
}

static bool read_tensors(Reader *r)
{
    Safetensors *s = r->out;
    const char *name;
    json_t *value;
    s->tensors = calloc(json_object_size(s->root) + 1, sizeof *s->tensors);
    if (!s->tensors)
        return fail(r, "out of memory");
    json_object_foreach(s->root, name, value) {
        if (strcmp(name, metadata_name) == 0) {
            if (!check_metadata(r, value))
                return false;
            continue;
        }
        r->name = name;
        s->tensors[s->count].name = name;
        if (!read_tensor(r, value, &s->tensors[s->count++]))
            return false;
        r->name = NULL;
    }
    qsort(s->tensors, s->count, sizeof *s->tensors, by_begin);
    return check_cover(r);
}

/* Finds the header's length, and where the data are. */
static bool read_length(const Reader *r, const unsigned char *file, size_t size, size_t *length)
{
    uint64_t value = 0;
    if (size < LENGTH)
        return fail(r, "it has %zu bytes, not even the header's length", size);
    for (unsigned i = 0; i < LENGTH; i++)
        value |= (uint64_t)file[i] << 8 * i;
    if (value > size - LENGTH)
        return fail(r, "its header has %" PRIu64 " bytes, of which there are %zu", value,
                    size - LENGTH);
    if (value > SAFETENSORS_HEADER)
        return fail(r, "its header has %" PRIu64 " bytes, at most %d are read", value,
                    SAFETENSORS_HEADER);
    *length = (size_t)value;
    r->out->data = file + LENGTH + *length;
    r->out->size = size - LENGTH - *length;
    return true;
}

bool safetensors_read(const void *file, size_t size, Safetensors *out, char *message,
                      size_t message_size)
{
    Reader r = {.out = out, .message = message, .message_size = message_size};
    json_error_t error;
    size_t length = 0;
    *out = (Safetensors){0};
    if (!read_length(&r, file, size, &length))
        return false;
    json_t *root = json_loadb((const char *)file + LENGTH, length, JSON_REJECT_DUPLICATES, &error);
    out->root = root;
    bool ok = root ? json_is_object(root) || fail(&r, "its header is no JSON object")
                   : fail(&r, "its header is no JSON: byte %d: %s", error.position, error.text);
    ok = ok && read_tensors(&r);
    if (!ok)
        safetensors_free(out);
    return ok;
}

void safetensors_free(Safetensors *s)
{
    free(s->tensors);
    json_decref(s->root);
    *s = (Safetensors){0};
}

const SafeTensor *safetensors_find(const Safetensors *s, const char *name)
{
    for (size_t i = 0; i < s->count; i++)
        if (strcmp(s->tensors[i].name, name) == 0)
            return &s->tensors[i];
    return NULL;
}

const char *safetensors_metadata(const Safetensors *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->root, metadata_name), key));
}

/* ---- writing ----------------------------------------------------------------- */

static json_t *tensor_json(const SafeTensor *t, size_t begin)
{
    json_t *shape = json_array();
    for (unsigned d = 0; d < t->rank; d++)
        json_array_append_new(shape, json_integer(t->extents[d]));
    return json_pack("{s:s, s:o, s:[I, I]}", "dtype", t->dtype, "shape", shape, "data_offsets",
                     (json_int_t)begin, (json_int_t)(begin + t->size));
}

static json_t *header_json(const SafeTensor *tensors, size_t count, const SafeMetadata *metadata,
                           size_t metadata_count)
{
    json_t *root = json_object(), *texts = json_object();
    bool ok = root && texts;
    size_t begin = 0;
    for (size_t i = 0; ok && i < metadata_count; i++)
        ok = json_object_set_new(texts, metadata[i].key, json_string(metadata[i].value)) == 0;
    ok = json_object_set_new(root, metadata_name, texts) == 0 && ok;
    for (size_t i = 0; ok && i < count; begin += tensors[i++].size)
        ok = json_object_set_new(root, tensors[i].name, tensor_json(&tensors[i], begin)) == 0;
    if (ok)
        return root;
    json_decref(root);
    return NULL;
}

char *safetensors_header(const SafeTensor *tensors, size_t count, const SafeMetadata *metadata,
                         size_t metadata_count, size_t *size)
{
    json_t *root = header_json(tensors, count, metadata, metadata_count);
    size_t length = root ? json_dumpb(root, NULL, 0, JSON_COMPACT) : 0;
    *size = round_up_size(LENGTH + length, SAFETENSORS_ALIGN);
    char *header = length ? malloc(*size) : NULL;
    if (header) {
        uint64_t padded = *size - LENGTH;
        memset(header, ' ', *size);
        json_dumpb(root, header + LENGTH, length, JSON_COMPACT);
        for (unsigned i = 0; i < LENGTH; i++)
            header[i] = (char)(padded >> 8 * i & 0xff);
    }
    json_decref(root);
    return header;
}
