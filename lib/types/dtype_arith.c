/* Arithmetic, comparison and bit operations on codes: the meaning of the
 * element-wise ops. */
#include "types/dtype.h"

#include "support/bits.h"

#include <math.h>
#include <string.h>

static bool is_signed(DType t)
{
    return dtype_info[t].kind == DKIND_INT;
}

/* An integer's value, sign-extended to 64 bits. */
static int64_t signed_value(DType t, uint64_t code)
{
    uint64_t sign = UINT64_C(1) << (dtype_bits(t) - 1);
    return (int64_t)((code ^ sign) - sign);
}

/* ---- sums and products ----------------------------------------------- */

/* Rounding to f64 in between does no harm. A product of two significands of at most 24
 * bits has 48, and its exponent is far inside f64's range: it is exact. A sum
 * that f64 cannot hold spans more than 53 bits, so one term is less than 1/16
 * of the other one's last place. The sum then lies that close to the larger
 * term, which the target holds, and no midpoint of the target is nearer than a
 * quarter of that last place: the sum and its rounding to f64 are on the same
 * side of every midpoint.
 * f64 itself rounds once, by the machine. */

uint64_t dtype_add(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t))
        return (a + b) & bits_mask(dtype_bits(t));
    return dtype_encode(t, dtype_decode(t, a) + dtype_decode(t, b));
}

uint64_t dtype_sub(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t))
        return (a - b) & bits_mask(dtype_bits(t));
    return dtype_encode(t, dtype_decode(t, a) - dtype_decode(t, b));
}

uint64_t dtype_mul(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t))
        return (a * b) & bits_mask(dtype_bits(t));
    return dtype_encode(t, dtype_decode(t, a) * dtype_decode(t, b));
}

uint64_t dtype_neg(DType t, uint64_t a)
{
    if (dtype_is_integer(t))
        return -a & bits_mask(dtype_bits(t));
    return dtype_encode(t, -dtype_decode(t, a));
}

/* ---- quotients ------------------------------------------------------- */

/* The quotient rounded toward minus infinity. */
static uint64_t divide_down(DType t, uint64_t a, uint64_t b)
{
    if (!is_signed(t))
        return a / b;
    if (b == bits_mask(dtype_bits(t)))      /* -1: the least one has no negation */
        return dtype_neg(t, a);
    int64_t x = signed_value(t, a), y = signed_value(t, b);
    int64_t quotient = x / y;
    quotient -= x % y != 0 && (x < 0) != (y < 0);
    return (uint64_t)quotient & bits_mask(dtype_bits(t));
}

/* A quotient of significands of at most 24 bits is nearer than f64 can tell to
 * a midpoint of the target only when it is one: rounding twice does no harm. */
uint64_t dtype_div(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t))
        return b == 0 ? bits_mask(dtype_bits(t)) : divide_down(t, a, b);
    return dtype_encode(t, dtype_decode(t, a) / dtype_decode(t, b));
}

uint64_t dtype_mod(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t))
        return b == 0 ? a : dtype_sub(t, a, dtype_mul(t, divide_down(t, a, b), b));
    double x = dtype_decode(t, a), y = dtype_decode(t, b);
    if (t == DTYPE_f64)
        return dtype_encode(t, fma(-floor(x / y), y, x));
    float quotient = floorf((float)x / (float)y);
    return dtype_encode(t, (double)fmaf(-quotient, (float)y, (float)x));
}

/* ---- fused multiply and add ------------------------------------------ */

/* The sum of two doubles rounded to odd: what was lost shows in the last bit,
 * so that one later rounding to at most 51 bits is right. */
static double add_to_odd(double a, double b)
{
    double sum = a + b, part = sum - a;
    double lost = (a - (sum - part)) + (b - part);      /* exact: Knuth's TwoSum */
    uint64_t bits;
    memcpy(&bits, &sum, sizeof bits);
    if (!isfinite(lost) || lost == 0 || bits & 1)
        return sum;
    bits += (lost < 0) == (sum < 0) ? 1 : UINT64_MAX;
    memcpy(&sum, &bits, sizeof bits);
    return sum;
}

uint64_t dtype_fma(DType t, uint64_t a, uint64_t b, uint64_t c)
{
    if (dtype_is_integer(t))
        return dtype_add(t, dtype_mul(t, a, b), c);
    double x = dtype_decode(t, a), y = dtype_decode(t, b), z = dtype_decode(t, c);
    return dtype_encode(t, t == DTYPE_f64 ? fma(x, y, z) : add_to_odd(x * y, z));
}

/* ---- integers next to floats ------------------------------------------ */

uint64_t dtype_floor(DType t, uint64_t a) { return dtype_encode(t, floor(dtype_decode(t, a))); }
uint64_t dtype_ceil(DType t, uint64_t a) { return dtype_encode(t, ceil(dtype_decode(t, a))); }
uint64_t dtype_round(DType t, uint64_t a) { return dtype_encode(t, rint(dtype_decode(t, a))); }

/* ---- order ----------------------------------------------------------- */

uint64_t dtype_abs(DType t, uint64_t a)
{
    if (dtype_is_integer(t))
        return is_signed(t) && signed_value(t, a) < 0 ? dtype_neg(t, a) : a;
    return dtype_encode(t, fabs(dtype_decode(t, a)));
}

DOrder dtype_order(DType t, uint64_t a, uint64_t b)
{
    if (dtype_is_integer(t)) {
        uint64_t flip = is_signed(t) ? UINT64_C(1) << (dtype_bits(t) - 1) : 0;
        a ^= flip, b ^= flip;
        return a < b ? DORDER_LESS : a > b ? DORDER_GREATER : DORDER_EQUAL;
    }
    double x = dtype_decode(t, a), y = dtype_decode(t, b);
    if (isnan(x) || isnan(y))
        return DORDER_NONE;
    return x < y ? DORDER_LESS : x > y ? DORDER_GREATER : DORDER_EQUAL;
}

/* Returns true when `a` is the lesser of two codes, -0 being less than +0. */
static bool is_lesser(DType t, uint64_t a, uint64_t b)
{
    DOrder order = dtype_order(t, a, b);
    if (order != DORDER_EQUAL || !dtype_is_float(t))
        return order == DORDER_LESS;
    return signbit(dtype_decode(t, a));
}

/* The code that encode gives for the value: padding is cleared, a NaN is quiet. */
static uint64_t canonical(DType t, uint64_t code)
{
    return dtype_is_integer(t) ? code : dtype_encode(t, dtype_decode(t, code));
}

/* A NaN stands for no number, so the other code is chosen. */
uint64_t dtype_lesser(DType t, uint64_t a, uint64_t b)
{
    bool first = isnan(dtype_decode(t, b)) || is_lesser(t, a, b);
    return canonical(t, first ? a : b);
}

uint64_t dtype_greater(DType t, uint64_t a, uint64_t b)
{
    bool first = isnan(dtype_decode(t, b)) || is_lesser(t, b, a);
    return canonical(t, first ? a : b);
}

/* ---- bits ------------------------------------------------------------ */

/* A bool's codes have one digit that counts. */
static uint64_t digits(DType t, uint64_t code)
{
    return t == DTYPE_bool ? code != 0 : code;
}

uint64_t dtype_and(DType t, uint64_t a, uint64_t b)
{
    return digits(t, a) & digits(t, b);
}

uint64_t dtype_or(DType t, uint64_t a, uint64_t b)
{
    return digits(t, a) | digits(t, b);
}

uint64_t dtype_xor(DType t, uint64_t a, uint64_t b)
{
    return digits(t, a) ^ digits(t, b);
}

uint64_t dtype_not(DType t, uint64_t a)
{
    return digits(t, a) ^ (t == DTYPE_bool ? 1 : bits_mask(dtype_bits(t)));
}

uint64_t dtype_shl(DType t, uint64_t a, uint64_t count)
{
    return count < dtype_bits(t) ? a << count & bits_mask(dtype_bits(t)) : 0;
}

uint64_t dtype_shr(DType t, uint64_t a, uint64_t count)
{
    unsigned bits = dtype_bits(t);
    if (!is_signed(t))
        return count < bits ? a >> count : 0;
    uint64_t shift = count < bits ? count : bits - 1;
    return (uint64_t)(signed_value(t, a) >> shift) & bits_mask(bits);
}
