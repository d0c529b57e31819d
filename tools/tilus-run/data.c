/* Buffers: files and generated data. */
#include "run.h"

#include "common/file.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where elements come from. */
typedef struct Stream {
    const char *type;
    unsigned bits;
    uint64_t state;             /* of the random numbers */
    uint64_t position;          /* of the next element of a sequence */
    double numbers[2];          /* what follows the count */
    unsigned number_count;
} Stream;

/* One kind of data. `code` gives the next element's code; NULL: the buffer is
 * filled with the byte 0xAB. */
typedef struct Generator {
    const char *name;
    unsigned least, most;       /* numbers that may follow the count */
    uint64_t (*code)(Stream *s);
} Generator;

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

static const Generator generators[] = {
    {"randn", 0, 1, normal_code},   {"uniform", 2, 2, uniform_code},
    {"codes", 0, 2, any_code},      {"sequence", 0, 1, next_code},
    {"zeros", 0, 0, constant_code}, {"fill", 1, 1, constant_code},
    {"undef", 0, 0, NULL},
};

/* ---- text ----------------------------------------------------------- */

static const Generator *find_generator(const char *text, size_t len)
{
    for (size_t i = 0; i < COUNT(generators); i++)
        if (strlen(generators[i].name) == len && memcmp(generators[i].name, text, len) == 0)
            return &generators[i];
    return NULL;
}

/* Parses ", number" as often as it stands at `*at`. */
static const char *parse_numbers(const char **at, Stream *s)
{
    while (**at == ',') {
        char *end;
        if (s->number_count == COUNT(s->numbers))
            return "too many numbers";
        double number = strtod(*at + 1, &end);
        if (end == *at + 1 || !isfinite(number))
            return "a finite number must follow ','";
        s->numbers[s->number_count++] = number;
        *at = end + strspn(end, " \t");
    }
    return NULL;
}

/* Codes of a range are integers of the type's bits, negative ones in two's
 * complement, and one of them at least is a finite number. */
static const char *check_codes(const Stream *s)
{
    if (s->number_count == 0)
        return NULL;
    double lo = s->numbers[0], hi = s->numbers[1];
    double half = ldexp(1, (int)s->bits - 1);
    if (s->number_count == 1 || lo != floor(lo) || hi != floor(hi) || lo > hi)
        return "codes takes a lowest and a highest code";
    if (lo < -half || hi >= 2 * half || hi - lo >= 2 * half || lo < -0x1p53 || hi > 0x1p53)
        return "a code that the type does not have";
    enum { TRIES = 1 << 16 };
    for (double code = lo; code <= hi && code - lo < TRIES; code++)
        if (isfinite(tilus_decode(s->type, (uint64_t)(int64_t)code & code_mask(s))))
            return NULL;
    return "the range begins with too many codes of NaN or infinity";
}

/* Parses "name(count, numbers)" into the generator, the count and `s`. */
static const char *parse_data(const Run *run, const char *text, const Generator **generator,
                              int64_t *count, Stream *s)
{
    size_t len = strcspn(text, "(");
    *generator = find_generator(text, len);
    if (!*generator || !text[len])
        return "expected @file, or randn, uniform, codes, sequence, zeros, fill or undef of (count)";
    const char *at = text + len + 1;
    const char *error = run_evaluate(run, &at, count);
    if (!error)
        error = parse_numbers(&at, s);
    if (error)
        return error;
    if (strcmp(at, ")") != 0)
        return "expected ')' at the end";
    if (s->number_count < (*generator)->least || s->number_count > (*generator)->most)
        return "wrong number of numbers after the count";
    if (*count < 0)
        return "the count is negative";
    return (*generator)->code == any_code ? check_codes(s) : NULL;
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

static int read_data(const char *path, unsigned bits, tilus_buffer *buffer, size_t *count)
{
    char *data;
    if (!file_read(TOOL, path, FILE_SIZE_MAX, &data, &buffer->size))
        return EXIT_DIAGNOSTICS;
    buffer->data = data;
    *count = buffer->size / bits * 8 + buffer->size % bits * 8 / bits;
    return EXIT_OK;
}

int data_make(const Run *run, size_t arg, const char *text, tilus_buffer *buffer, size_t *count)
{
    const char *type = run->info->args[arg].dtype;
    Stream s = {.type = type, .bits = tilus_type_bits(type)};
    const Generator *generator;
    int64_t elements;
    if (text[0] == '@')
        return read_data(text + 1, s.bits, buffer, count);
    const char *error = parse_data(run, text, &generator, &elements, &s);
    if (error)
        return fail(run, arg, text, error, EXIT_USAGE);
    if ((uint64_t)elements > FILE_SIZE_MAX / s.bits)
        return fail(run, arg, text, "too many elements", EXIT_USAGE);
    *count = (size_t)elements;
    buffer->size = (*count * s.bits + 7) / 8;
    buffer->data = calloc(buffer->size + 1, 1);
    if (!buffer->data)
        return fail(run, arg, text, "out of memory", EXIT_DIAGNOSTICS);
    /* Each argument has random numbers of its own. */
    s.state = ((uint64_t)run->options.seed << 32) + arg;
    s.state = random_bits(&s);
    fill(buffer, *count, generator, &s);
    return EXIT_OK;
}
