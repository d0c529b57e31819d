/* The header of a .npy file is a magic number, a version, a length, and a dictionary in
 * Python's notation:
 *
 *   {'descr': '<f2', 'fortran_order': False, 'shape': (64, 256), }
 */
#include "common/npy.h"

#include "support/integer.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};

enum { ALIGN = 64 };            /* of the data in a file that is written */

/* A key of the dictionary. */
typedef enum Key { KEY_DESCR, KEY_ORDER, KEY_SHAPE, KEY_COUNT } Key;

static const char *const keys[] = {"descr", "fortran_order", "shape"};

typedef struct Reader {
    const char *at, *end;       /* of the dictionary */
    NpyArray *out;
    char *message;
    size_t message_size;
} Reader;

__attribute__((format(printf, 2, 3)))
static bool fail(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->message, r->message_size, format, args);
    va_end(args);
    return false;
}

/* ---- words ---------------------------------------------------------- */

static void skip_space(Reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool stands(Reader *r, char c)
{
    skip_space(r);
    return r->at < r->end && *r->at == c;
}

static bool accept(Reader *r, char c)
{
    bool there = stands(r, c);
    r->at += there;
    return there;
}

static bool expect(Reader *r, char c)
{
    return accept(r, c) || fail(r, "the header lacks a '%c'", c);
}

static bool accept_word(Reader *r, const char *word)
{
    size_t len = strlen(word);
    skip_space(r);
    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

/* Sets `*text` and `*len` to what stands between quotes. */
static bool read_string(Reader *r, const char **text, size_t *len)
{
    char quote = accept(r, '\'') ? '\'' : '"';
    if (quote == '"' && !accept(r, '"'))
        return fail(r, "the header lacks a string");
    const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
    if (!close)
        return fail(r, "a string of the header does not end");
    *text = r->at;
    *len = (size_t)(close - r->at);
    r->at = close + 1;
    return true;
}

/* ---- values --------------------------------------------------------- */

static bool has_type(char kind, unsigned bytes)
{
    bool power = bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8;
    switch (kind) {
    case 'f': return power && bytes > 1;
    case 'i': case 'u': case 'V': return power;
    case 'b': return bytes == 1;
    default: return false;
    }
}

static bool read_descr(Reader *r)
{
    const char *text;
    size_t len;
    if (stands(r, '['))
        return fail(r, "its elements have fields");
    if (!read_string(r, &text, &len))
        return false;
    if (len > 0 && text[0] == '>')
        return fail(r, "its elements are big-endian ('%.*s'), little-endian ones are read",
                    (int)(len < NPY_DESCR ? len : NPY_DESCR), text);
    bool known = len == 3 && (text[0] == '<' || text[0] == '|') && text[2] >= '1' &&
                 has_type(text[1], (unsigned)(text[2] - '0'));
    if (!known)
        return fail(r, "its elements are '%.*s', only f2, f4, f8, i1 to i8, u1 to u8, b1 and "
                    "V1 to V8 are read", (int)(len < 16 ? len : 16), text);
    r->out->kind = text[1];
    r->out->bytes = (unsigned)(text[2] - '0');
    return true;
}

static bool read_order(Reader *r)
{
    if (accept_word(r, "True"))
        return fail(r, "it is in Fortran order, arrays in C order are read");
    return accept_word(r, "False") || fail(r, "fortran_order is neither True nor False");
}

static bool read_extent(Reader *r, int64_t *extent)
{
    *extent = 0;
    if (r->at == r->end || !isdigit((unsigned char)*r->at))
        return fail(r, "an extent of the shape is no number");
    for (; r->at < r->end && isdigit((unsigned char)*r->at); r->at++)
        if (__builtin_mul_overflow(*extent, 10, extent) ||
            __builtin_add_overflow(*extent, *r->at - '0', extent))
            return fail(r, "an extent of the shape has more than 63 bits");
    return true;
}

static bool read_shape(Reader *r)
{
    NpyArray *a = r->out;
    if (!expect(r, '('))
        return false;
    while (!accept(r, ')')) {
        if (a->rank == NPY_RANK)
            return fail(r, "it has more than %d dimensions", NPY_RANK);
        if (!read_extent(r, &a->extents[a->rank++]))
            return false;
        if (!accept(r, ',') && !stands(r, ')'))
            return fail(r, "the shape lacks a ')'");
    }
    return true;
}

/* ---- the dictionary ------------------------------------------------- */

static bool read_entry(Reader *r, bool found[KEY_COUNT])
{
    static bool (*const readers[])(Reader *) = {read_descr, read_order, read_shape};
    const char *text;
    size_t len;
    if (!read_string(r, &text, &len) || !expect(r, ':'))
        return false;
    for (Key key = 0; key < KEY_COUNT; key++) {
        if (strlen(keys[key]) != len || memcmp(keys[key], text, len) != 0)
            continue;
        if (found[key])
            return fail(r, "the header says %s twice", keys[key]);
        found[key] = true;
        return readers[key](r);
    }
    return fail(r, "the header says '%.*s', which is not known", (int)(len < 32 ? len : 32),
                text);
}

static bool read_dictionary(Reader *r)
{
    bool found[KEY_COUNT] = {false};
    if (!expect(r, '{'))
        return false;
    while (!accept(r, '}')) {
        if (!read_entry(r, found))
            return false;
        if (!accept(r, ',') && !stands(r, '}'))
            return fail(r, "the header lacks a '}'");
    }
    skip_space(r);
    if (r->at != r->end)
        return fail(r, "something follows the header's '}'");
    for (Key key = 0; key < KEY_COUNT; key++)
        if (!found[key])
            return fail(r, "the header says no %s", keys[key]);
    return true;
}

/* ---- the file ------------------------------------------------------- */

/* Finds the dictionary; `*data` is where it ends. */
static bool find_dictionary(Reader *r, const unsigned char *file, size_t size, size_t *data)
{
    enum { SHORT = 10, LONG = 12 };         /* bytes before the dictionary */
    if (size < SHORT || memcmp(file, magic, sizeof magic) != 0)
        return fail(r, "it does not begin as a .npy file does");
    unsigned version = file[6];
    size_t begin = version == 1 ? SHORT : LONG;
    if (version < 1 || version > 3 || file[7] != 0)
        return fail(r, "it has version %u.%u of the format, 1.0 to 3.0 are read", version,
                    file[7]);
    if (size < begin)
        return fail(r, "it ends within its header");
    size_t length = file[8] | (size_t)file[9] << 8;
    if (version > 1)
        length |= (size_t)file[10] << 16 | (size_t)file[11] << 24;
    if (length > size - begin)
        return fail(r, "its header has %zu bytes, of which there are %zu", length,
                    size - begin);
    r->at = (const char *)file + begin;
    r->end = r->at + length;
    *data = begin + length;
    return true;
}

static bool check_size(Reader *r, size_t size)
{
    NpyArray *a = r->out;
    size_t bytes;
    a->count = 1;
    for (unsigned d = 0; d < a->rank; d++)
        if (__builtin_mul_overflow(a->count, (size_t)a->extents[d], &a->count))
            return fail(r, "its shape has 2^64 elements or more");
    if (__builtin_mul_overflow(a->count, a->bytes, &bytes) || bytes != size)
        return fail(r, "its shape has %zu elements of %u bytes, the file has %zu bytes of "
                    "them", a->count, a->bytes, size);
    return true;
}

bool npy_read(const void *file, size_t size, NpyArray *out, char *message,
              size_t message_size)
{
    Reader r = {.out = out, .message = message, .message_size = message_size};
    size_t data = 0;
    *out = (NpyArray){0};
    if (!find_dictionary(&r, file, size, &data) || !read_dictionary(&r))
        return false;
    out->data = (const unsigned char *)file + data;
    return check_size(&r, size - data);
}

void npy_descr(const NpyArray *array, char descr[NPY_DESCR])
{
    snprintf(descr, NPY_DESCR, "%c%c%u", array->bytes == 1 ? '|' : '<', array->kind,
             array->bytes % 10);
}

size_t npy_write_header(const NpyArray *array, char header[NPY_HEADER])
{
    enum { BEGIN = 10 };
    char descr[NPY_DESCR];
    npy_descr(array, descr);
    size_t n = BEGIN;
    n += (size_t)snprintf(header + n, NPY_HEADER - n,
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", descr);
    for (unsigned d = 0; d < array->rank; d++)
        n += (size_t)snprintf(header + n, NPY_HEADER - n, "%lld, ",
                              (long long)array->extents[d]);
    n += (size_t)snprintf(header + n, NPY_HEADER - n, "), }");
    size_t end = round_up_size(n + 1, ALIGN);
    memset(header + n, ' ', end - n);
    header[end - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[6] = 1;
    header[7] = 0;
    header[8] = (char)((end - BEGIN) & 0xff);
    header[9] = (char)((end - BEGIN) >> 8);
    return end;
}
