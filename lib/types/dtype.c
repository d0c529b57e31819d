/* The meaning of every element type: decode, encode and cast.
 *
 * A float's code, without its sign and its padding, is its magnitude: the
 * exponent field above the mantissa field. Magnitudes grow with their values,
 * so the next value is the next magnitude, also from the subnormals to the
 * normals and from one exponent to the next:
 *
 *     f4e2m1   magnitude  000  001  010  011  100  101  110  111
 *              value      0    0.5  1    1.5  2    3    4    6
 *
 * Rounding therefore cuts the value to a magnitude and adds one or nothing;
 * a carry out of the mantissa needs no care, and a tie goes to the even code
 * even where there is no mantissa. Doubles are taken apart and put together as
 * bits: the interpreter calls these functions in its inner loops. */
#include "types/dtype.h"

#include "support/bits.h"
#include "support/real.h"

#include <math.h>
#include <string.h>

enum { F64_MANTISSA = 52, F64_BIAS = 1023, E8M0_BIAS = 127, E8M0_NAN = 255 };

const DTypeInfo dtype_info[DTYPE_COUNT] = {
    [DTYPE_none] = {.name = "none", .kind = DKIND_NONE},
#define TYPE(id, kind, bits, exponent, mantissa, special) \
    [DTYPE_##id] = {#id, DKIND_##kind, bits, exponent, mantissa, SPECIAL_##special},
#include "types/types.def"
};

/* Compares without calls, as the parser asks for each name of a text. */
static bool is_name(DType t, const char *name, size_t len)
{
    const char *own = dtype_info[t].name;
    size_t i = 0;
    while (i < len && own[i] && own[i] == name[i])
        i++;
    return i == len && !own[i];
}

DType dtype_find(const char *name, size_t len)
{
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++)
        if (is_name(t, name, len))
            return t;
    return DTYPE_none;
}

bool dtype_integer_range(DType t, int64_t *least, int64_t *most)
{
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    if (!dtype_is_integer(t) || t == DTYPE_u64)
        return false;
    unsigned bits = dtype_bits(t) - is_signed;      /* at most 63 */
    *most = (int64_t)((UINT64_C(1) << bits) - 1);
    *least = is_signed ? -*most - 1 : 0;
    return true;
}

unsigned dtype_align(DType t)
{
    unsigned bytes = 1;
    while (8 * bytes < dtype_bits(t))
        bytes *= 2;
    return bytes;
}

bool dtype_has_infinity(DType t)
{
    return dtype_info[t].special == SPECIAL_IEEE;
}

bool dtype_has_nan(DType t)
{
    return dtype_info[t].special != SPECIAL_FINITE;
}

/* ---- doubles and formats as bits ------------------------------------- */

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static double bits_double(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* 2^exponent, of a normal double. */
static double power_of_two(int exponent)
{
    return bits_double((uint64_t)(exponent + F64_BIAS) << F64_MANTISSA);
}

static int float_bias(const DTypeInfo *t)
{
    return (1 << (t->exponent - 1)) - 1;
}

/* Zero bits below the mantissa of a signed float. */
static unsigned float_pad(const DTypeInfo *t)
{
    return t->bits - 1 - t->exponent - t->mantissa;
}

/* The largest magnitude; every bit set. */
static uint64_t magnitude_mask(const DTypeInfo *t)
{
    return bits_mask(t->exponent + t->mantissa);
}

/* The magnitude of infinity, where the format has one. */
static uint64_t magnitude_infinity(const DTypeInfo *t)
{
    return bits_mask(t->exponent) << t->mantissa;
}

static uint64_t magnitude_max_finite(const DTypeInfo *t)
{
    switch (t->special) {
    case SPECIAL_IEEE: return magnitude_infinity(t) - 1;
    case SPECIAL_FN:
    case SPECIAL_E8M0: return magnitude_mask(t) - 1;
    case SPECIAL_FINITE: break;
    }
    return magnitude_mask(t);
}

/* ---- decode ---------------------------------------------------------- */

static double decode_e8m0(uint64_t code)
{
    return code == E8M0_NAN ? (double)NAN : power_of_two((int)code - E8M0_BIAS);
}

/* The value of a magnitude that is neither infinity nor NaN. Exact: f32 has the
 * smallest numbers, multiples of 2^-149, and these are normal doubles. */
static double magnitude_value(const DTypeInfo *t, uint64_t magnitude)
{
    uint64_t exponent = magnitude >> t->mantissa;
    int bias = float_bias(t);
    if (exponent == 0)
        return (double)magnitude * power_of_two(1 - bias - (int)t->mantissa);
    uint64_t rebias = (uint64_t)(F64_BIAS - bias) << F64_MANTISSA;
    return bits_double((magnitude << (F64_MANTISSA - t->mantissa)) + rebias);
}

static double decode_float(const DTypeInfo *t, uint64_t code)
{
    if (t->bits == 64)
        return bits_double(code);
    uint64_t magnitude = code >> float_pad(t) & magnitude_mask(t);
    double value;
    if (magnitude <= magnitude_max_finite(t))
        value = magnitude_value(t, magnitude);
    else if (t->special == SPECIAL_IEEE && magnitude == magnitude_infinity(t))
        value = (double)INFINITY;
    else
        return (double)NAN;
    return code >> (t->bits - 1) & 1 ? -value : value;
}

/* The value of an integer's code as sign and magnitude. */
static uint64_t integer_magnitude(const DTypeInfo *t, uint64_t code, bool *negative)
{
    *negative = t->kind == DKIND_INT && code >> (t->bits - 1) & 1;
    return *negative ? -code & bits_mask(t->bits) : code;
}

static double decode_integer(const DTypeInfo *t, uint64_t code)
{
    bool negative;
    uint64_t magnitude = integer_magnitude(t, code, &negative);
    return negative ? -(double)magnitude : (double)magnitude;
}

double dtype_decode(DType t, uint64_t code)
{
    const DTypeInfo *info = &dtype_info[t];
    switch (info->kind) {
    case DKIND_BOOL: return code != 0;
    case DKIND_UINT:
    case DKIND_INT: return decode_integer(info, code);
    case DKIND_FLOAT:
        return info->special == SPECIAL_E8M0 ? decode_e8m0(code) : decode_float(info, code);
    case DKIND_NONE: break;
    }
    return (double)NAN;
}

/* ---- encode ---------------------------------------------------------- */

/* The magnitude nearest to the non-negative double, infinity included, whose
 * bits are given, in a format narrower than f64. */
static uint64_t encode_magnitude(const DTypeInfo *t, uint64_t bits)
{
    uint64_t magnitude = real_magnitude(bits, t->exponent, t->mantissa);
    uint64_t most = magnitude_max_finite(t) + (t->special == SPECIAL_IEEE);
    return magnitude < most ? magnitude : most;
}

/* The positive quiet NaN. All ones are FN's only NaN, and the largest value of
 * a format that has none. */
static uint64_t magnitude_nan(const DTypeInfo *t)
{
    if (t->special != SPECIAL_IEEE)
        return magnitude_mask(t);
    return magnitude_infinity(t) | (uint64_t)1 << (t->mantissa - 1);
}

static uint64_t encode_float(const DTypeInfo *t, double value)
{
    if (isnan(value))
        return magnitude_nan(t) << float_pad(t);
    uint64_t bits = double_bits(value);
    if (t->bits == 64)
        return bits;
    uint64_t magnitude = encode_magnitude(t, bits & bits_mask(63));
    return (bits >> 63) << (t->bits - 1) | magnitude << float_pad(t);
}

/* The nearest power of two, which has no sign and no zero. */
static uint64_t encode_e8m0(double value)
{
    if (isnan(value))
        return E8M0_NAN;
    if (value < power_of_two(-E8M0_BIAS))
        return 0;
    uint64_t bits = double_bits(value);
    uint64_t code = (bits >> F64_MANTISSA) - (F64_BIAS - E8M0_BIAS);
    code = real_round(code, bits & bits_mask(F64_MANTISSA), F64_MANTISSA);
    return code < E8M0_NAN ? code : E8M0_NAN - 1;
}

/* The largest value of an integer type: also its code. */
static uint64_t integer_max(const DTypeInfo *t)
{
    return bits_mask(t->bits) >> (t->kind == DKIND_INT);
}

/* The code of the integer nearest to plus or minus `magnitude`. */
static uint64_t encode_integer(const DTypeInfo *t, bool negative, uint64_t magnitude)
{
    uint64_t most = integer_max(t);
    if (!negative)
        return magnitude < most ? magnitude : most;
    uint64_t least = t->kind == DKIND_INT ? most + 1 : 0;
    return -(magnitude < least ? magnitude : least) & bits_mask(t->bits);
}

/* The integer nearest to a non-negative value, ties to even; 2^64 - 1 stands
 * for everything larger. */
static uint64_t round_to_integer(double value)
{
    if (value >= power_of_two(64))
        return UINT64_MAX;
    uint64_t floor = (uint64_t)value;
    double rest = value - (double)floor;        /* 0 from 2^52 on, else exact */
    return floor + (rest > 0.5 || (rest == 0.5 && floor & 1));
}

uint64_t dtype_encode(DType t, double value)
{
    const DTypeInfo *info = &dtype_info[t];
    switch (info->kind) {
    case DKIND_BOOL: return value != 0;
    case DKIND_UINT:
    case DKIND_INT:
        return isnan(value) ? integer_max(info)
                            : encode_integer(info, value < 0, round_to_integer(fabs(value)));
    case DKIND_FLOAT:
        return info->special == SPECIAL_E8M0 ? encode_e8m0(value) : encode_float(info, value);
    case DKIND_NONE: break;
    }
    return 0;
}

/* ---- cast ------------------------------------------------------------ */

/* A double from which every narrower format rounds `magnitude` correctly: cut
 * to 53 bits, the last of them set when anything was lost (round to odd). The
 * cut value lies strictly on the same side of each number of at most 52 bits,
 * so of each midpoint that matters, as the integer did. */
static double integer_to_odd(uint64_t magnitude)
{
    int drop = 0;
    bool lost = false;
    for (; magnitude >> (F64_MANTISSA + 1); magnitude >>= 1, drop++)
        lost |= magnitude & 1;
    return (double)(magnitude | lost) * power_of_two(drop);
}

uint64_t dtype_encode_integer(DType t, bool negative, uint64_t magnitude)
{
    if (dtype_is_integer(t))
        return encode_integer(&dtype_info[t], negative, magnitude);
    double value = t == DTYPE_f64 ? (double)magnitude : integer_to_odd(magnitude);
    return dtype_encode(t, negative ? -value : value);
}

uint64_t dtype_cast(DType to, DType from, uint64_t code)
{
    if (to == from)
        return code;
    if (!dtype_is_integer(from))
        return dtype_encode(to, dtype_decode(from, code));
    bool negative;
    uint64_t magnitude = integer_magnitude(&dtype_info[from], code, &negative);
    return dtype_encode_integer(to, negative, magnitude);
}

/* ---- extremes -------------------------------------------------------- */

double dtype_max(DType t)
{
    const DTypeInfo *info = &dtype_info[t];
    switch (info->kind) {
    case DKIND_BOOL: return 1;
    case DKIND_UINT:
    case DKIND_INT: return dtype_decode(t, integer_max(info));
    case DKIND_FLOAT:
        if (info->special == SPECIAL_E8M0)
            return dtype_decode(t, magnitude_max_finite(info));
        return dtype_decode(t, magnitude_max_finite(info) << float_pad(info));
    case DKIND_NONE: break;
    }
    return (double)NAN;
}

double dtype_min(DType t)
{
    const DTypeInfo *info = &dtype_info[t];
    if (info->kind == DKIND_INT)
        return dtype_decode(t, integer_max(info) + 1);
    if (info->kind == DKIND_FLOAT && info->special != SPECIAL_E8M0)
        return -dtype_max(t);
    return dtype_decode(t, 0);
}
