/* Constants of the program text: exact values, their codes and their spelling. */
#include "types/constant.h"

#include "support/bits.h"
#include "support/numeral.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const double two_to_64 = 18446744073709551616.0;

/* ---- making and comparing -------------------------------------------------------- */

Constant constant_of_magnitude(bool negative, uint64_t magnitude)
{
    return (Constant){.negative = negative, .magnitude = magnitude};
}

Constant constant_of_integer(int64_t value)
{
    return constant_of_magnitude(value < 0, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
}

Constant constant_of_real(double value)
{
    double size = fabs(value);
    if (size < two_to_64 && size == floor(size))
        return constant_of_magnitude(signbit(value), (uint64_t)size);
    return (Constant){.is_real = true, .real = isnan(value) ? (double)NAN : value};
}

Constant constant_negate(Constant n)
{
    if (n.is_real)
        return constant_of_real(-n.real);
    return constant_of_magnitude(!n.negative, n.magnitude);
}

bool constant_equal(Constant a, Constant b)
{
    /* Bytes of the doubles, so that a NaN equals itself. */
    return a.is_real == b.is_real && a.negative == b.negative && a.magnitude == b.magnitude &&
           !memcmp(&a.real, &b.real, sizeof a.real);
}

bool constant_is_zero(Constant n)
{
    return !n.is_real && n.magnitude == 0;
}

/* ---- codes ----------------------------------------------------------------------- */

Constant constant_decode(DType t, uint64_t code)
{
    if (!dtype_is_integer(t))
        return constant_of_real(dtype_decode(t, code));
    bool negative = dtype_info[t].kind == DKIND_INT && code >> (dtype_bits(t) - 1) & 1;
    return constant_of_magnitude(negative, negative ? -code & bits_mask(dtype_bits(t)) : code);
}

uint64_t constant_encode(DType t, Constant n)
{
    return n.is_real ? dtype_encode(t, n.real) : dtype_encode_integer(t, n.negative, n.magnitude);
}

/* ---- range ----------------------------------------------------------------------- */

/* The greatest magnitude of an integer of that sign. */
static uint64_t integer_limit(DType t, bool negative)
{
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    uint64_t most = bits_mask(dtype_bits(t)) >> is_signed;
    return !negative ? most : is_signed ? most + 1 : 0;
}

static bool integer_fits(DType t, Constant n)
{
    return !n.is_real && n.magnitude <= integer_limit(t, n.negative);
}

/* Returns true when the magnitude rounds to a finite number of a type without infinity, which
 * saturates: it is nearer to the greatest number than to the one that would follow. A tie goes
 * to the even code. */
static bool rounds_below_overflow(DType t, double size)
{
    const DTypeInfo *info = &dtype_info[t];
    bool is_signed = info->special != SPECIAL_E8M0;
    double most = dtype_max(t);
    uint64_t unit = UINT64_C(1) << (info->bits - is_signed - info->exponent - info->mantissa);
    uint64_t code = dtype_encode(t, most);
    double step = info->mantissa ? most - dtype_decode(t, code - unit) : most;
    return code & unit ? size - most < step / 2 : size - most <= step / 2;
}

static bool float_fits(DType t, Constant n)
{
    double value = n.is_real ? n.real : n.negative ? -(double)n.magnitude : (double)n.magnitude;
    if (isnan(value))
        return dtype_has_nan(t);
    if (isinf(value))
        return dtype_has_infinity(t);
    if (dtype_has_infinity(t))
        return !isinf(dtype_decode(t, constant_encode(t, n)));
    if (dtype_info[t].special == SPECIAL_E8M0 && value < 0)
        return false;
    return rounds_below_overflow(t, fabs(value));
}

bool constant_fits(DType t, Constant n)
{
    if (dtype_is_integer(t))
        return integer_fits(t, n);
    if (dtype_is_float(t))
        return float_fits(t, n);
    return !n.is_real && n.magnitude <= !n.negative;
}

/* The extremes of a type. */
static Constant greatest(DType t)
{
    return dtype_is_integer(t) ? constant_of_magnitude(false, integer_limit(t, false))
                               : constant_of_real(dtype_max(t));
}

static Constant least(DType t)
{
    if (!dtype_is_integer(t))
        return constant_of_real(dtype_min(t));
    return constant_of_magnitude(integer_limit(t, true), integer_limit(t, true));
}

void constant_print_range(Text *out, DType t)
{
    constant_print(out, least(t), dtype_is_float(t));
    text_add(out, " to ");
    constant_print(out, greatest(t), dtype_is_float(t));
}

/* ---- spelling -------------------------------------------------------------------- */

static void print_real(Text *out, double value, bool is_float)
{
    char digits[40];
    if (isnan(value) || isinf(value)) {
        text_printf(out, "%s%s", signbit(value) ? "-" : "", isnan(value) ? "nan" : "inf");
        return;
    }
    for (int precision = 1; precision <= 17; precision++) {
        numeral_format(digits, sizeof digits, "%.*g", precision, value);
        if (numeral_read(digits, NULL) == value)
            break;
    }
    text_add(out, digits);
    if (is_float && !strpbrk(digits, ".e"))
        text_add(out, ".0");
}

void constant_print(Text *out, Constant n, bool is_float)
{
    bool exact = n.magnitude <= UINT64_C(1) << 53;
    if (n.is_real)
        print_real(out, n.real, is_float);
    else if (is_float && exact)
        print_real(out, n.negative ? -(double)n.magnitude : (double)n.magnitude, true);
    else
        text_printf(out, "%s%llu", n.negative ? "-" : "", (unsigned long long)n.magnitude);
}

const char *constant_misfit(Arena *arena, DType t, Constant n)
{
    Text text;
    text_init(&text, arena);
    bool is_finite = !n.is_real || isfinite(n.real);
    if (!is_finite)
        text_printf(&text, "%s has no code for ", dtype_name(t));
    constant_print(&text, n, false);
    if (is_finite && n.is_real && dtype_is_integer(t) && fabs(n.real) < two_to_64) {
        text_printf(&text, " is no integer, which %s holds: cast what stands beside it, as in "
                    "f32(..)", dtype_name(t));
    } else if (is_finite) {
        text_printf(&text, " does not fit %s, whose numbers are ", dtype_name(t));
        constant_print_range(&text, t);
    }
    return text_string(&text);
}
