/* Rounding of doubles to narrower formats, on bits. */
#ifndef TILUS_SUPPORT_REAL_H
#define TILUS_SUPPORT_REAL_H

#include <stdint.h>

enum { REAL_MANTISSA = 52, REAL_BIAS = 1023 };      /* of a double */

/* Rounds to nearest even: `magnitude` came of the significand without its low `drop`
 * bits, which decide whether it grows by one. */
static inline uint64_t real_round(uint64_t magnitude, uint64_t significand, unsigned drop)
{
    uint64_t half = UINT64_C(1) << (drop - 1), rest = significand & (2 * half - 1);
    return magnitude + (rest > half || (rest == half && magnitude & 1));
}

/* Returns the code, without sign, nearest to the non-negative double whose bits are given, in
 * a format of `exponent` and `mantissa` bits as if exponents had no upper limit: the caller
 * clamps what is too large, infinity included. NaN is no number. mantissa < 52. */
static inline uint64_t real_magnitude(uint64_t bits, unsigned exponent, unsigned mantissa)
{
    /* Zero and f64's subnormals get a leading one too: all round to zero. */
    uint64_t one = UINT64_C(1) << REAL_MANTISSA, significand = (bits & (one - 1)) | one;
    int field = (int)(bits >> REAL_MANTISSA) - REAL_BIAS + (1 << (exponent - 1)) - 1;
    unsigned drop = REAL_MANTISSA - mantissa;
    if (field < 1) {
        /* Subnormal. When one bit more than the significand has is dropped, the
         * significand is less than half a unit: more makes no difference. */
        drop += (unsigned)(1 - field);
        drop = drop < REAL_MANTISSA + 2 ? drop : REAL_MANTISSA + 2;
        field = 1;
    }
    /* The significand's leading one adds the last 1 to the exponent field. */
    uint64_t magnitude = ((uint64_t)(field - 1) << mantissa) + (significand >> drop);
    return real_round(magnitude, significand, drop);
}

#endif
