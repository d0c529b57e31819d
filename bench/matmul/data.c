/* Random operands, and the numbers that they mean. */
#include "bench.h"

#include "support/integer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- randomness --------------------------------------------------------- */

/* xorshift64*: fast, and good enough for weights. */
static uint64_t draw(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 0x2545f4914f6cdd1d;
}

/* In [-1, 1), its mean 0 and its deviation 1/3, like a normal distribution. */
static double draw_bell(uint64_t *state)
{
    double sum = 0;
    uint64_t bits = draw(state);
    for (int i = 0; i < 3; i++, bits >>= 21)
        sum += (double)(bits & 0x1fffff) / 0x200000;
    return (sum - 1.5) / 1.5;
}

static double draw_level(uint64_t *state)
{
    return (double)(draw(state) >> 11) / 9007199254740992.0;
}

/* ---- elements ------------------------------------------------------------ */

static size_t element_bytes(DType type)
{
    return dtype_bits(type) / 8;
}

static void put(uint8_t *to, DType type, uint64_t code)
{
    for (size_t i = 0; i < element_bytes(type); i++)
        to[i] = (uint8_t)(code >> 8 * i);
}

static double get(const uint8_t *from, DType type)
{
    uint64_t code = 0;
    for (size_t i = 0; i < element_bytes(type); i++)
        code |= (uint64_t)from[i] << 8 * i;
    return dtype_decode(type, code);
}

static unsigned code_at(const Data *d, uint64_t element)
{
    unsigned bits = dtype_bits(d->spec->weights);
    uint64_t bit = element * bits;
    const uint8_t *at = d->codes + bit / 8;
    return (unsigned)(at[0] | at[1] << 8) >> bit % 8 & ((1u << bits) - 1);
}

/* ---- codes ---------------------------------------------------------------- */

/* The deviation of random codes' numbers, so that scales can bring C to ordinary sizes. */
static double deviation(DType type)
{
    double sum = 0, squares = 0, count = 0;
    for (uint64_t code = 0; code < UINT64_C(1) << dtype_bits(type); code++) {
        double value = dtype_decode(type, code);
        if (!isfinite(value))
            continue;
        sum += value;
        squares += value * value;
        count++;
    }
    return sqrt(fmax(squares / count - sum / count * (sum / count), 0));
}

/* Replaces codes that are no numbers by codes of half their bits. Types with such codes all take
 * a byte. */
static void avoid_specials(Data *d)
{
    uint8_t table[256];
    DType type = d->spec->weights;
    if (!dtype_has_nan(type) && !dtype_has_infinity(type))
        return;
    for (unsigned code = 0; code < 256; code++)
        table[code] = (uint8_t)(isfinite(dtype_decode(type, code)) ? code : code & 0x8f);
    for (size_t i = 0; i < d->code_bytes; i++)
        d->codes[i] = table[d->codes[i]];
}

static void fill_codes(Data *d, uint64_t *state)
{
    size_t i = 0;
    for (; i + 8 <= d->code_bytes; i += 8) {
        uint64_t word = draw(state);
        memcpy(d->codes + i, &word, 8);
    }
    for (; i < d->code_bytes; i++)
        d->codes[i] = (uint8_t)(draw(state) >> 56);
    avoid_specials(d);
}

/* ---- the others ----------------------------------------------------------- */

/* Scales with a factor are those of others times 2^14, which leaves f8e4m3 its precision. */
static void fill_scales(Data *d, uint64_t *state)
{
    const float factor = 0x1p-14F;
    DType type = d->spec->scales;
    d->factor = matmul_has_factor(d->spec) ? factor : 1;
    double unit = 1 / (deviation(d->spec->weights) + 0.3) / (double)d->factor;
    for (size_t at = 0; at < d->scale_bytes; at += element_bytes(type))
        put(d->scales + at, type,
            dtype_encode(type, (0.005 + 0.015 * draw_level(state)) * unit));
}

/* Integers are any code's number, floats are as large as most of them. */
static void fill_zeros(Data *d, uint64_t *state)
{
    const MatmulSpec *s = d->spec;
    unsigned mask = (1u << dtype_bits(s->weights)) - 1;
    double size = deviation(s->weights);
    if (s->zeros == TILUS_ZEROS_INTEGER)
        for (size_t i = 0; i < d->zero_bytes; i++)
            d->zeros[i] = (uint8_t)((int)(draw(state) >> 32 & mask) - s->offset);
    else if (s->zeros == TILUS_ZEROS_FLOAT)
        for (size_t at = 0; at < d->zero_bytes; at += element_bytes(s->scales))
            put(d->zeros + at, s->scales,
                dtype_encode(s->scales, 2 * size * draw_bell(state)));
}

/* Rounding each of millions of numbers would take longer than all else: they come from a
 * table. */
static void fill_a(Data *d, uint64_t *state)
{
    enum { TABLE = 4096 };
    DType type = d->spec->activations;
    size_t size = element_bytes(type);
    uint8_t table[TABLE][2];
    double unit = dtype_is_integer(type) ? dtype_max(type) : 3;
    for (int i = 0; i < TABLE; i++)
        put(table[i], type, dtype_encode(type, unit * draw_bell(state)));
    for (size_t at = 0; at < d->a_bytes; at += size)
        memcpy(d->a + at, table[draw(state) >> 52], size);
}

bool data_make(Data *d, const MatmulSpec *spec, int64_t m_max, unsigned seed)
{
    enum { MARGIN = 1 };        /* code_at reads a byte beyond */
    uint64_t state = seed + UINT64_C(0x9e3779b97f4a7c15);
    uint64_t count = (uint64_t)spec->n * (uint64_t)spec->k;
    int64_t group = spec->group ? spec->group * spec->repeats : spec->k;
    *d = (Data){.spec = spec, .group = group, .groups = ceil_div_i64(spec->k, group)};
    size_t scales = (size_t)(spec->n * d->groups);
    d->code_bytes = ceil_div_size(count * dtype_bits(spec->weights), 8);
    d->scale_bytes = scales * element_bytes(spec->scales);
    d->zero_bytes = spec->zeros == TILUS_ZEROS_NONE      ? 0
                    : spec->zeros == TILUS_ZEROS_INTEGER ? scales
                                                         : d->scale_bytes;
    d->a_bytes = (size_t)(m_max * spec->k) * element_bytes(spec->activations);
    d->codes = calloc(d->code_bytes + MARGIN, 1);
    d->scales = malloc(d->scale_bytes);
    d->zeros = d->zero_bytes ? malloc(d->zero_bytes) : NULL;
    d->a = malloc(d->a_bytes);
    if (!d->codes || !d->scales || (d->zero_bytes && !d->zeros) || !d->a) {
        fprintf(stderr, BENCH_USER ": out of memory for the operands\n");
        return false;
    }
    fill_codes(d, &state);
    fill_scales(d, &state);
    fill_zeros(d, &state);
    fill_a(d, &state);
    return true;
}

void data_free(Data *d)
{
    free(d->codes);
    free(d->scales);
    free(d->zeros);
    free(d->a);
}

/* ---- what they mean -------------------------------------------------------- */

static double zero_point(const Data *d, size_t index)
{
    const MatmulSpec *s = d->spec;
    if (s->zeros == TILUS_ZEROS_NONE)
        return 0;
    if (s->zeros == TILUS_ZEROS_FLOAT)
        return get(d->zeros + index * element_bytes(s->scales), s->scales);
    return s->offset ? (double)(int8_t)d->zeros[index] : (double)d->zeros[index];
}

void data_column(const Data *d, int64_t n, double *values)
{
    const MatmulSpec *s = d->spec;
    double numbers[256];
    for (unsigned code = 0; code < 1u << dtype_bits(s->weights); code++)
        numbers[code] = dtype_decode(s->weights, code);
    for (int64_t g = 0; g < d->groups; g++) {
        size_t index = (size_t)(n * d->groups + g);
        double scale = get(d->scales + index * element_bytes(s->scales), s->scales);
        double zero = zero_point(d, index);
        for (int64_t k = g * d->group; k < (g + 1) * d->group && k < s->k; k++)
            values[k] = (numbers[code_at(d, (uint64_t)(n * s->k + k))] - zero) * scale *
                        (double)d->factor;
    }
}

/* Rounds a row as @quantize does, in f32. */
static void round_row(const MatmulSpec *s, double *row)
{
    float range = dtype_is_integer(s->product) ? 127 : 448, most = 0x1p-100F;
    for (int64_t k = 0; k < s->k; k++)
        most = fmaxf(most, fabsf((float)row[k]));
    for (int64_t k = 0; k < s->k; k++) {
        uint64_t code = dtype_encode(s->product, (double)((float)row[k] * (range / most)));
        row[k] = dtype_decode(s->product, code) * (double)(most / range);
    }
}

void data_row(const Data *d, int64_t m, double *values)
{
    DType type = d->spec->activations;
    const uint8_t *row = d->a + (size_t)(m * d->spec->k) * element_bytes(type);
    for (int64_t k = 0; k < d->spec->k; k++)
        values[k] = get(row + (size_t)k * element_bytes(type), type);
    if (matmul_is_a8(d->spec) && !matmul_has_a_scales(d->spec))
        round_row(d->spec, values);
}
