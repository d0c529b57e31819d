/* Arithmetic of whole numbers that C lacks. Results must be representable. */
#ifndef TILUS_INTEGER_H
#define TILUS_INTEGER_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Returns a / b rounded up, for a >= 0 and b > 0. */
static inline int64_t ceil_div_i64(int64_t a, int64_t b)
{
    assert(a >= 0 && b > 0);
    return a / b + (a % b != 0);
}

/* Returns the least multiple of `step` that is at least `a`. */
static inline int64_t round_up_i64(int64_t a, int64_t step)
{
    return ceil_div_i64(a, step) * step;
}

static inline size_t ceil_div_size(size_t a, size_t b)
{
    assert(b > 0);
    return a / b + (a % b != 0);
}

static inline size_t round_up_size(size_t a, size_t step)
{
    return ceil_div_size(a, step) * step;
}

#endif
