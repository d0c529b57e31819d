/* Public API of libtilus_rt: arrays of elements. What vectorized loops do not encode as
 * dtype_encode would (infinities, NaN, 64 bits) goes through it one by one. */
#include "support/bits.h"
#include "support/parallel.h"
#include "support/report.h"
#include "tilus/types.h"
#include "types/convert.h"

#include <inttypes.h>
#include <string.h>

enum {
    PART = 1 << 16,             /* elements that a thread takes at once; a multiple of 8 */
    STEP = 256,                 /* elements of a loop's buffers */
    TABLE = 256,                /* codes that are decoded by a table */
};

static DType find(const char *type)
{
    return type ? dtype_find(type, strlen(type)) : DTYPE_none;
}

static bool is_number_type(DType t)
{
    return t == DTYPE_f16 || t == DTYPE_bf16 || t == DTYPE_f32 || t == DTYPE_f64;
}

size_t tilus_packed_bytes(const char *type, size_t count)
{
    size_t bits = dtype_bits(find(type)), rest;
    if (__builtin_mul_overflow(count / 8, bits, &rest) ||
        __builtin_add_overflow(rest, (count % 8 * bits + 7) / 8, &rest))
        return 0;
    return rest;
}

typedef struct Array {
    DType type, number;         /* of codes and of values */
    size_t count;
    const void *from;
    void *to;
    Encoder encoder;
    bool vectorized;
    uint64_t table[TABLE];      /* the values of codes, as codes of `number` */
} Array;

/* Checks both sides of a conversion. */
static bool check(Array *a, const char *type, const char *number, const char *field,
                  const void *codes, size_t size, const void *values, Report why)
{
    a->type = find(type);
    a->number = find(number);
    if (a->type == DTYPE_none)
        return report_fault(why, "type is '%s', which is none", type ? type : "");
    if (!is_number_type(a->number))
        return report_fault(why, "%s is '%s', not f16, bf16, f32 or f64", field,
                            number ? number : "");
    size_t bytes = tilus_packed_bytes(type, a->count);
    if (size != bytes || (a->count > 0 && bytes == 0))
        return report_fault(why, "codes_size is %zu, not the %zu bytes of %zu elements of %s",
                            size, bytes, a->count, dtype_name(a->type));
    if (a->count > 0 && (!codes || !values))
        return report_fault(why, "%s is NULL", codes ? "values" : "codes");
    return true;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void run(Array *a, unsigned threads, void (*part)(void *array, size_t i))
{
    parallel_for(threads, a->count / PART + (a->count % PART > 0), part, a);
}

/* ---- encoding ----------------------------------------------------------- */

static void encode_one_by_one(const Array *a, size_t first, size_t count)
{
    unsigned bits = dtype_bits(a->type), from = dtype_bits(a->number);
    for (size_t i = first; i < first + count; i++)
        bits_set(a->to, i, bits,
                 dtype_encode(a->type, dtype_decode(a->number, bits_get(a->from, i, from))));
}

static void encode_step(const Array *a, size_t first, size_t count)
{
    float values[STEP];
    union { uint8_t bytes[STEP]; uint16_t halves[STEP]; } codes;
    unsigned bits = dtype_bits(a->type);
    convert_to_f32(a->number, (const char *)a->from + first * (dtype_bits(a->number) / 8), count,
                   values);
    Extremes e = find_extremes(values, count);
    bool fits = e.magnitude < F32_INFINITY_BITS &&
                (!dtype_has_infinity(a->type) ||
                 (e.low >= a->encoder.least && e.high <= a->encoder.most));
    if (!fits) {
        encode_one_by_one(a, first, count);
    } else if (bits > 8) {
        encode_halves(&a->encoder, values, count, codes.halves);
        memcpy((char *)a->to + 2 * first, codes.halves, 2 * count);
    } else {
        encode_codes(&a->encoder, values, count, codes.bytes);
        store_codes(codes.bytes, count, bits, a->to, first);
    }
}

static void encode_part(void *array, size_t part)
{
    const Array *a = array;
    size_t end = least(a->count, (part + 1) * PART);
    for (size_t i = part * PART; i < end; i += STEP)
        if (a->vectorized)
            encode_step(a, i, least(end - i, STEP));
        else
            encode_one_by_one(a, i, least(end - i, STEP));
}

tilus_status tilus_encode_array(const char *type, const char *from, const void *values,
                                size_t count, void *codes, size_t codes_size, unsigned threads,
                                char *message, size_t message_size)
{
    Array a = {.count = count, .from = values, .to = codes};
    if (!check(&a, type, from, "from", codes, codes_size, values,
               (Report){message, message_size}))
        return TILUS_ERROR_ARGUMENT;
    a.vectorized = encoder_of(a.type, &a.encoder) && a.number != DTYPE_f64;
    if (count > 0)
        ((unsigned char *)codes)[codes_size - 1] = 0;
    run(&a, threads, encode_part);
    return TILUS_OK;
}

/* ---- decoding ----------------------------------------------------------- */

/* Returns the value of a code as a code of the array's numbers. */
static uint64_t number_of(const Array *a, uint64_t code)
{
    return dtype_encode(a->number, dtype_decode(a->type, code));
}

#define DECODE(name, word)                                                                     \
    static void name(const Array *a, const uint8_t *codes, size_t count, char *to)             \
    {                                                                                          \
        for (size_t i = 0; i < count; i++, to += sizeof(word)) {                               \
            word value = (word)a->table[codes[i]];                                             \
            memcpy(to, &value, sizeof value);                                                  \
        }                                                                                      \
    }
DECODE(decode_16, uint16_t)
DECODE(decode_32, uint32_t)
DECODE(decode_64, uint64_t)
#undef DECODE

static void decode_by_table(const Array *a, size_t first, size_t count)
{
    uint8_t codes[STEP];
    unsigned bytes = dtype_bits(a->number) / 8;
    char *to = (char *)a->to + first * bytes;
    load_codes(a->from, first, count, dtype_bits(a->type), codes);
    if (bytes == 2)
        decode_16(a, codes, count, to);
    else if (bytes == 4)
        decode_32(a, codes, count, to);
    else
        decode_64(a, codes, count, to);
}

static void decode_one_by_one(const Array *a, size_t first, size_t count)
{
    unsigned bits = dtype_bits(a->type), to = dtype_bits(a->number);
    for (size_t i = first; i < first + count; i++)
        bits_set(a->to, i, to, number_of(a, bits_get(a->from, i, bits)));
}

/* Decodes f16 or bf16 to f32; a NaN becomes the canonical one, so not by the loop. */
static void widen(const Array *a, size_t first, size_t count)
{
    float values[STEP];
    convert_to_f32(a->type, (const char *)a->from + 2 * first, count, values);
    if (find_extremes(values, count).magnitude <= F32_INFINITY_BITS)
        memcpy((char *)a->to + 4 * first, values, 4 * count);
    else
        decode_one_by_one(a, first, count);
}

static void decode_part(void *array, size_t part)
{
    const Array *a = array;
    bool widens = a->number == DTYPE_f32 && (a->type == DTYPE_f16 || a->type == DTYPE_bf16);
    size_t end = least(a->count, (part + 1) * PART);
    for (size_t i = part * PART; i < end; i += STEP)
        if (a->vectorized)
            decode_by_table(a, i, least(end - i, STEP));
        else if (widens)
            widen(a, i, least(end - i, STEP));
        else
            decode_one_by_one(a, i, least(end - i, STEP));
}

tilus_status tilus_decode_array(const char *type, const void *codes, size_t codes_size,
                                size_t count, const char *to, void *values, unsigned threads,
                                char *message, size_t message_size)
{
    Array a = {.count = count, .from = codes, .to = values};
    if (!check(&a, type, to, "to", codes, codes_size, values, (Report){message, message_size}))
        return TILUS_ERROR_ARGUMENT;
    a.vectorized = dtype_bits(a.type) <= 8;
    for (uint64_t code = 0; a.vectorized && code >> dtype_bits(a.type) == 0; code++)
        a.table[code] = number_of(&a, code);
    run(&a, threads, decode_part);
    return TILUS_OK;
}
