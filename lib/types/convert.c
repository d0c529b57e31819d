/* Conversions of many elements at once. Loops are plain C without branches on data, so that
 * compilers vectorize them; floats and their bits change by memcpy. */
#include "types/convert.h"

#include "support/bits.h"

#include <assert.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "codes are combined in words");

enum { F32_MANTISSA = 23, F32_BIAS = 127, MAGNITUDE = 0x7fffffff };

static inline uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static inline float bits_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Chooses without a branch, which loops would not be vectorized with: `a` where `below` is less
 * than `limit`. All three are below 2^31. */
static inline uint32_t choose_below(uint32_t below, uint32_t limit, uint32_t a, uint32_t b)
{
    uint32_t mask = 0 - (uint32_t)((int32_t)below < (int32_t)limit);
    return (a & mask) | (b & ~mask);
}

/* ---- to f32 ------------------------------------------------------------- */

/* Moves exponents of normal numbers by 112, of infinity and NaN by 224. The mantissa of a
 * subnormal number stands after the exponent of 2^-14, which is subtracted again. */
static inline float half_value(uint32_t code)
{
    enum { LEAST_NORMAL = 113 << F32_MANTISSA, MOVE = 112 << F32_MANTISSA };
    uint32_t bits = (code & 0x7fff) << 13;
    uint32_t normal = bits + MOVE + choose_below(bits, 31u << F32_MANTISSA, 0, MOVE);
    float rest = bits_float(bits | LEAST_NORMAL) - bits_float(LEAST_NORMAL);
    uint32_t magnitude = choose_below(bits, 1u << F32_MANTISSA, float_bits(rest), normal);
    return bits_float(magnitude | (code & 0x8000) << 16);
}

static void halves_to_f32(const uint16_t *restrict values, size_t count, float *restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = half_value(values[i]);
}

static void bfloats_to_f32(const uint16_t *restrict values, size_t count, float *restrict to)
{
    for (size_t i = 0; i < count; i++)
        to[i] = bits_float((uint32_t)values[i] << 16);
}

/* Callers' values need not be aligned, so words of 16 bits go through a buffer where they are
 * not. */
void convert_to_f32(DType from, const void *values, size_t count, float *to)
{
    enum { STEP = 256 };
    uint16_t aligned[STEP];
    if (from == DTYPE_f32) {
        memcpy(to, values, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i += STEP) {
        size_t step = count - i < STEP ? count - i : STEP;
        memcpy(aligned, (const char *)values + 2 * i, 2 * step);
        if (from == DTYPE_f16)
            halves_to_f32(aligned, step, to + i);
        else
            bfloats_to_f32(aligned, step, to + i);
    }
}

/* ---- extremes ----------------------------------------------------------- */

/* Floats compare as these integers do. The function is its own inverse. */
static inline int32_t order_key(uint32_t bits)
{
    return (int32_t)(bits ^ ((uint32_t)((int32_t)bits >> 31) & MAGNITUDE));
}

Extremes find_extremes(const float *values, size_t count)
{
    int32_t low = 0, high = 0, magnitude = 0;
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = float_bits(values[i]);
        int32_t key = order_key(bits), size = (int32_t)(bits & MAGNITUDE);
        low = key < low ? key : low;
        high = key > high ? key : high;
        magnitude = size > magnitude ? size : magnitude;
    }
    return (Extremes){.low = bits_float((uint32_t)order_key((uint32_t)low)),
                      .high = bits_float((uint32_t)high), .magnitude = (uint32_t)magnitude};
}

/* ---- codes -------------------------------------------------------------- */

bool encoder_of(DType type, Encoder *encoder)
{
    const DTypeInfo *info = &dtype_info[type];
    bool is_float = info->kind == DKIND_FLOAT;
    if (is_float ? info->special == SPECIAL_E8M0 || info->bits > 16
                 : !dtype_is_integer(type) || info->bits > 8)
        return false;
    *encoder = (Encoder){.is_float = is_float, .mask = (uint32_t)bits_mask(info->bits),
                         .least = (float)dtype_min(type), .most = (float)dtype_max(type)};
    if (is_float) {
        int bias = (1 << (info->exponent - 1)) - 1, mantissa = (int)info->mantissa;
        encoder->drop = (unsigned)(F32_MANTISSA - mantissa);
        encoder->sign = 32 - info->bits;
        encoder->normal = (uint32_t)(F32_BIAS + 1 - bias) << F32_MANTISSA;
        encoder->rebias = (uint32_t)(F32_BIAS - bias) << mantissa;
        encoder->subnormal = bits_float((uint32_t)(F32_BIAS + F32_MANTISSA + 1 - bias - mantissa)
                                        << F32_MANTISSA);
    }
    return true;
}

/* Adds 3 * 2^22, beside which the last place is 1: the sum's low bits are the integer's. */
static inline uint32_t integer_code(const Encoder *e, float value)
{
    return float_bits(value + 0x1.8p23f) & e->mask;
}

/* Rounds a normal number's bits; one below the least normal number by the sum with
 * `subnormal`. */
static inline uint32_t float_code(const Encoder *e, float value)
{
    uint32_t bits = float_bits(value), magnitude = bits & MAGNITUDE;
    uint32_t half = (1u << (e->drop - 1)) - 1, odd = magnitude >> e->drop & 1;
    uint32_t normal = ((magnitude + half + odd) >> e->drop) - e->rebias;
    uint32_t small = float_bits(bits_float(magnitude) + e->subnormal) - float_bits(e->subnormal);
    return choose_below(magnitude, e->normal, small, normal) |
           (bits >> e->sign & ~(e->mask >> 1) & e->mask);
}

static inline float bring_in(const Encoder *e, float value)
{
    value = value < e->least ? e->least : value;
    return value > e->most ? e->most : value;
}

void encode_codes(const Encoder *encoder, const float *restrict values, size_t count,
                  uint8_t *restrict codes)
{
    const Encoder e = *encoder;
    for (size_t i = 0; e.is_float && i < count; i++)
        codes[i] = (uint8_t)float_code(&e, bring_in(&e, values[i]));
    for (size_t i = 0; !e.is_float && i < count; i++)
        codes[i] = (uint8_t)integer_code(&e, bring_in(&e, values[i]));
}

void encode_halves(const Encoder *encoder, const float *restrict values, size_t count,
                   uint16_t *restrict codes)
{
    const Encoder e = *encoder;
    assert(e.is_float);
    for (size_t i = 0; i < count; i++)
        codes[i] = (uint16_t)float_code(&e, bring_in(&e, values[i]));
}

/* Quantizes into a buffer of f32, then encodes: both loops are vectorized. -0 + 0 would lose its
 * sign, so without a zero point there is no sum. */
void quantize_codes(const Encoder *e, const float *restrict values, size_t count, float scale,
                    bool add, float zero, uint8_t *restrict codes)
{
    enum { STEP = 256 };
    float scaled[STEP];
    for (size_t i = 0; i < count; i += STEP) {
        size_t step = count - i < STEP ? count - i : STEP;
        for (size_t j = 0; j < step; j++)
            scaled[j] = values[i + j] / scale;
        for (size_t j = 0; add && j < step; j++)
            scaled[j] += zero;
        encode_codes(e, scaled, step, codes + i);
    }
}

/* ---- compact codes ------------------------------------------------------ */

/* Moves the low `bits` bits of eight bytes together: pairs, then fours, then all. */
static inline uint64_t squeeze(uint64_t x, unsigned bits)
{
    x = (x & 0x00ff00ff00ff00ff) | (x & 0xff00ff00ff00ff00) >> (8 - bits);
    x = (x & 0x0000ffff0000ffff) | (x & 0xffff0000ffff0000) >> (16 - 2 * bits);
    return (x & 0xffffffff) | x >> 32 << 4 * bits;
}

/* Undoes it; bits above 8 * bits are ignored. */
static inline uint64_t spread(uint64_t x, unsigned bits)
{
    uint64_t four = bits_mask(4 * bits), two = bits_mask(2 * bits) * 0x100000001;
    x = (x & four) | (x >> 4 * bits & four) << 32;
    x = (x & two) | (x >> 2 * bits & two) << 16;
    two = bits_mask(bits) * 0x0001000100010001;
    return (x & two) | (x >> bits & two) << 8;
}

/* Stores eights of codes from a byte's beginning on: as words of 8 bytes, which reach into the
 * next one's, while these are of the eights. */
static size_t store_eights(const uint8_t *codes, size_t count, unsigned bits, unsigned char *to)
{
    size_t i = 0, left = count / 8 * bits;
    for (uint64_t word; i + 8 <= count; i += 8, to += bits, left -= bits) {
        memcpy(&word, codes + i, 8);
        word = squeeze(word, bits);
        if (left >= 8)
            memcpy(to, &word, 8);
        else
            for (unsigned byte = 0; byte < bits; byte++)
                to[byte] = (unsigned char)(word >> 8 * byte);
    }
    return i;
}

static void combine(unsigned char *byte, uint64_t bits)
{
    __atomic_fetch_or(byte, (unsigned char)bits, __ATOMIC_RELAXED);
}

void store_codes(const uint8_t *codes, size_t count, unsigned bits, void *to, size_t first)
{
    unsigned have = (unsigned)(first % 8 * bits % 8), shared = have;
    unsigned char *at = (unsigned char *)to + first / 8 * bits + first % 8 * bits / 8;
    size_t i = have == 0 ? store_eights(codes, count, bits, at) : 0;
    uint64_t window = 0;
    for (at += i / 8 * bits; i < count; i++) {
        window |= (uint64_t)codes[i] << have;
        have += bits;
        if (have < 8)
            continue;
        if (shared)
            combine(at, window);
        else
            *at = (unsigned char)window;
        at++, shared = 0, window >>= 8, have -= 8;
    }
    if (have > 0)
        combine(at, window);
}

void load_codes(const void *from, size_t first, size_t count, unsigned bits, uint8_t *codes)
{
    size_t i = 0, size = count / 8 * bits;
    const unsigned char *at = (const unsigned char *)from + first / 8 * bits;
    for (; first % 8 == 0 && i + 8 <= count; i += 8) {
        uint64_t word = 0;
        size_t begin = i / 8 * bits;
        memcpy(&word, at + begin, size - begin < 8 ? bits : 8);
        word = spread(word, bits);
        memcpy(codes + i, &word, 8);
    }
    for (; i < count; i++)
        codes[i] = (uint8_t)bits_get(from, first + i, bits);
}
