/* Buffers from the text of --arg: generated data, or a file. */
#include "run.h"

#include "common/file.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A source of elements. */
typedef struct Stream {
    const char *type;
    unsigned bits;
    uint64_t state;             /* of the random numbers */
    uint64_t position;          /* of the next element of a sequence */
    double numbers[2];          /* what follows the count or the shape */
    unsigned number_count;
} Stream;

/* One kind of data. `code` gives the next element's code; NULL: the buffer is
 * filled with the byte 0xAB. */
typedef struct Generator {
    const char *name;
    unsigned least, most;       /* numbers that may follow the count */
    uint64_t (*code)(Stream *s);
} Generator;

/* The parsed text of --arg: a kind of data and its numbers. */
typedef struct Request {
    const Generator *generator;
    Stream stream;
    int64_t count;              /* of elements */
    Shape shape;                /* rank 0: only the count is known */
    char why[160];              /* what is wrong with it */
} Request;

/* ---- random numbers ------------------------------------------------- */

/* SplitMix64: 64 random bits. */
static uint64_t random_bits(Stream *s)
{
    uint64_t z = s->state += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

/* A number of [0, 1), a multiple of 2^-53. */
static double random_unit(Stream *s)
{
    return (double)(random_bits(s) >> 11) * 0x1p-53;
}

/* A normal number, by Box and Muller. */
static double random_normal(Stream *s)
{
    double radius = sqrt(-2 * log(1 - random_unit(s)));
    return radius * cos(6.283185307179586 * random_unit(s));
}

/* ---- elements ------------------------------------------------------- */

static uint64_t code_mask(const Stream *s)
{
    return s->bits == 64 ? UINT64_MAX : (UINT64_C(1) << s->bits) - 1;
}

static uint64_t normal_code(Stream *s)
{
    float scale = s->number_count ? (float)s->numbers[0] : 1;
    return tilus_encode(s->type, (float)random_normal(s) * scale);
}

static uint64_t uniform_code(Stream *s)
{
    double width = s->numbers[1] - s->numbers[0];
    return tilus_encode(s->type, s->numbers[0] + width * random_unit(s));
}

static uint64_t constant_code(Stream *s)
{
    return tilus_encode(s->type, s->number_count ? s->numbers[0] : 0);
}

/* The code of the same number that has no ignored bits set (bool, tf32). */
static uint64_t canonical(const Stream *s, uint64_t code)
{
    bool has_ignored = tilus_type_is_float(s->type) || strcmp(s->type, "bool") == 0;
    return has_ignored ? tilus_encode(s->type, tilus_decode(s->type, code)) : code;
}

static uint64_t any_code(Stream *s)
{
    uint64_t lo = 0, width = code_mask(s);      /* codes of [lo, lo + width] */
    if (s->number_count == 2) {
        lo = (uint64_t)(int64_t)s->numbers[0];
        width = (uint64_t)(int64_t)s->numbers[1] - lo;
    }
    uint64_t code;
    do {
        code = random_bits(s);
        code = (lo + (width == UINT64_MAX ? code : code % (width + 1))) & code_mask(s);
    } while (!isfinite(tilus_decode(s->type, code)));
    return canonical(s, code);
}

/* Codes one after the other, from a first one; they wrap around. */
static uint64_t next_code(Stream *s)
{
    uint64_t first = s->number_count ? (uint64_t)(int64_t)s->numbers[0] : 0;
    return (first + s->position++) & code_mask(s);
}

/* Numbers one after the other, from a first one. */
static uint64_t next_number(Stream *s)
{
    double first = s->number_count ? s->numbers[0] : 0;
    return tilus_encode(s->type, first + (double)s->position++);
}

static const Generator generators[] = {
    {"randn", 0, 1, normal_code},   {"uniform", 2, 2, uniform_code},
    {"codes", 0, 2, any_code},      {"sequence", 0, 1, next_code},
    {"iota", 0, 1, next_number},    {"zeros", 0, 0, constant_code},
    {"fill", 1, 1, constant_code},  {"undef", 0, 0, NULL},
};

/* ---- text ----------------------------------------------------------- */

static const Generator *find_generator(const char *text, size_t len)
{
    for (size_t i = 0; i < COUNT(generators); i++)
        if (strlen(generators[i].name) == len && memcmp(generators[i].name, text, len) == 0)
            return &generators[i];
    return NULL;
}

__attribute__((format(printf, 2, 3)))
static const char *complain(Request *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(r->why, sizeof r->why, format, args);
    va_end(args);
    return r->why;
}

/* Parses "<separator> number, number..." at `*at`, if it stands there. */
static const char *parse_numbers(const char **at, char separator, Stream *s)
{
    for (; **at == separator; separator = ',') {
        char *end;
        if (s->number_count == COUNT(s->numbers))
            return "too many numbers";
        double number = strtod(*at + 1, &end);
        if (end == *at + 1 || !isfinite(number))
            return "a finite number must follow ',' or ';'";
        s->numbers[s->number_count++] = number;
        *at = end + strspn(end, " \t");
    }
    return NULL;
}

/* Returns true for an integer of the type's bits, a negative one in two's complement. */
static bool is_code(const Stream *s, double code)
{
    double half = ldexp(1, (int)s->bits - 1);
    return code == floor(code) && code >= -half && code < 2 * half;
}

static const char *check_first_code(const Stream *s)
{
    return s->number_count == 0 || (is_code(s, s->numbers[0]) && s->numbers[0] < 0x1p63)
               ? NULL : "the first code is not a code of the type";
}

/* Checks a range of codes: both ends are codes of the type, and at least one code in it is finite. */
static const char *check_codes(const Stream *s)
{
    if (s->number_count == 0)
        return NULL;
    double lo = s->numbers[0], hi = s->numbers[1];
    if (s->number_count == 1 || lo != floor(lo) || hi != floor(hi) || lo > hi)
        return "codes takes a lowest and a highest code";
    if (!is_code(s, lo) || !is_code(s, hi) || hi - lo >= ldexp(1, (int)s->bits) ||
        lo < -0x1p53 || hi > 0x1p53)
        return "a code that the type does not have";
    enum { TRIES = 1 << 16 };
    for (double code = lo; code <= hi && code - lo < TRIES; code++)
        if (isfinite(tilus_decode(s->type, (uint64_t)(int64_t)code & code_mask(s))))
            return NULL;
    return "the range begins with too many codes of NaN or infinity";
}

/* Length of the type's name that stands at `at`, 0 when none does. A scalar of that
 * name comes first: then it is an expression. */
static size_t type_length(const Run *run, const char *at, char name[16])
{
    size_t len = 0;
    while (isalnum((unsigned char)at[len]))
        len++;
    if (len >= 16)
        return 0;
    memcpy(name, at, len);
    name[len] = 0;
    for (size_t i = 0; i < run->info->arg_count; i++)
        if (strcmp(run->info->args[i].name, name) == 0)
            return 0;
    return tilus_type_bits(name) ? len : 0;
}

/* Parses ", extent" as often as it stands at `*at`, into the shape and the count. */
static const char *parse_shape(const Run *run, const char **at, Request *r)
{
    r->count = 1;
    for (*at += strspn(*at, " \t"); **at == ','; *at += strspn(*at, " \t")) {
        int64_t extent;
        if (r->shape.rank == SHAPE_RANK)
            return complain(r, "more than %d dimensions", SHAPE_RANK);
        ++*at;
        const char *error = run_evaluate(run, at, &extent);
        if (error)
            return error;
        if (extent < 0)
            return complain(r, "the extent of dimension %u is negative: %" PRId64,
                            r->shape.rank, extent);
        if (__builtin_mul_overflow(r->count, extent, &r->count))
            return "too many elements";
        r->shape.extents[r->shape.rank++] = extent;
    }
    return r->shape.rank > 0 ? NULL : "extents must follow the type: (f16, m, k)";
}

/* Parses what stands between the parentheses: "f16, m, k; 0.5", or "m*k, 0.5". */
static const char *parse_size(const Run *run, const char **at, Request *r)
{
    char type[16];
    *at += strspn(*at, " \t");
    size_t len = type_length(run, *at, type);
    if (len == 0) {
        const char *error = run_evaluate(run, at, &r->count);
        if (!error && r->count < 0)
            error = complain(r, "the count is negative: %" PRId64, r->count);
        return error ? error : parse_numbers(at, ',', &r->stream);
    }
    *at += len;
    if (strcmp(type, r->stream.type) != 0)
        return complain(r, "the data are %s, the argument is ptr<%s>", type, r->stream.type);
    const char *error = parse_shape(run, at, r);
    return error ? error : parse_numbers(at, ';', &r->stream);
}

/* Parses "name(size and numbers)". */
static const char *parse_data(const Run *run, const char *text, Request *r)
{
    size_t len = strcspn(text, "(");
    r->generator = find_generator(text, len);
    if (!r->generator || !text[len])
        return "expected @file, or randn, uniform, codes, sequence, iota, zeros, fill or undef "
               "of (count) or (type, extents)";
    const char *at = text + len + 1;
    const char *error = parse_size(run, &at, r);
    if (error)
        return error;
    if (strcmp(at, ")") != 0)
        return *at == ';' ? "numbers follow a count after ',', and a type and extents after ';'"
                          : "expected ')' at the end";
    unsigned given = r->stream.number_count, least = r->generator->least;
    unsigned most = r->generator->most;
    const char *size = r->shape.rank ? "shape" : "count";
    const char *follow = given == 1 ? " follows" : "s follow";
    if (given != least && least == most)
        return complain(r, "%u number%s the %s, %s takes %u", given, follow, size,
                        r->generator->name, least);
    if (given < least || given > most)
        return complain(r, "%u number%s the %s, %s takes %u to %u", given, follow, size,
                        r->generator->name, least, most);
    return r->generator->code == any_code    ? check_codes(&r->stream)
           : r->generator->code == next_code ? check_first_code(&r->stream)
                                             : NULL;
}

/* ---- buffers -------------------------------------------------------- */

static int fail(const Run *run, size_t arg, const char *text, const char *error, int status)
{
    fprintf(stderr, "%s: error: %s=%s: %s\n", TOOL, run->info->args[arg].name, text, error);
    return status;
}

static void fill(tilus_buffer *buffer, size_t count, const Generator *generator, Stream *s)
{
    if (!generator->code) {
        memset(buffer->data, 0xab, buffer->size);
        return;
    }
    for (size_t i = 0; i < count; i++)
        tilus_set_bits(buffer->data, i, s->bits, generator->code(s));
}

int data_make(const Run *run, size_t arg, const char *text, tilus_buffer *buffer,
              size_t *count, Shape *shape)
{
    const char *type = run->info->args[arg].dtype;
    Request r = {.stream = {.type = type, .bits = tilus_type_bits(type)}};
    Stream *s = &r.stream;
    if (text[0] == '@')
        return data_read(text + 1, type, buffer, count, shape);
    const char *error = parse_data(run, text, &r);
    if (!error && (uint64_t)r.count > FILE_SIZE_MAX / s->bits)
        error = "too many elements";
    if (error)
        return fail(run, arg, text, error, EXIT_USAGE);
    *count = (size_t)r.count;
    *shape = r.shape;
    buffer->size = (*count * s->bits + 7) / 8;
    buffer->data = calloc(buffer->size + 1, 1);
    if (!buffer->data)
        return fail(run, arg, text, "out of memory", EXIT_DIAGNOSTICS);
    /* Each argument has random numbers of its own. */
    s->state = ((uint64_t)run->options.seed << 32) + arg;
    s->state = random_bits(s);
    fill(buffer, *count, r.generator, s);
    return EXIT_OK;
}
