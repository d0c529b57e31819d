/* Functions of f32 that PTX approximates: here what the C library rounds to; and arithmetic
 * that code generation asks for by name. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include <float.h>
#include <math.h>
#include <string.h>

static float to_float(uint64_t word)
{
    uint32_t bits = (uint32_t)word;
    float v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

static uint64_t to_word(float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

#define MATH(id, expression)                                                  \
    void cpu_##id(const uint64_t *args, uint64_t *results)                    \
    {                                                                         \
        float x = to_float(args[0]);                                          \
        results[0] = to_word(expression);                                     \
    }

/* Gives zero for a subnormal result, as `.ftz` does; a subnormal argument makes 1 anyway. */
static float exp2_flushed(float x)
{
    float power = exp2f(x);
    return power < FLT_MIN ? 0 : power;
}

MATH(exp2_f32, exp2_flushed(x))
MATH(log2_f32, log2f(x))
MATH(rcp_f32, x == 0 ? copysignf(INFINITY, x) : 1 / x)
MATH(rsqrt_f32, x == 0 ? copysignf(INFINITY, x) : 1 / sqrtf(x))
MATH(sqrt_f32, sqrtf(x))
MATH(tanh_f32, tanhf(x))
MATH(sin_f32, sinf(x))
MATH(cos_f32, cosf(x))

/* The mask of two comparisons of halves of type `t`. */
#define SET(id, t, compare)                                                   \
    void cpu_set_##id(const uint64_t *args, uint64_t *results)                \
    {                                                                         \
        uint32_t mask = 0;                                                    \
        for (unsigned at = 0; at < 32; at += 16)                              \
            if (dtype_decode(t, args[0] >> at & 0xffff) compare               \
                dtype_decode(t, args[1] >> at & 0xffff))                      \
                mask |= UINT32_C(0xffff) << at;                               \
        results[0] = mask;                                                    \
    }
#define SETS(id, compare)                                                     \
    SET(id##_f16, DTYPE_f16, compare)                                         \
    SET(id##_bf16, DTYPE_bf16, compare)

SETS(eq, ==)
SETS(ne, !=)
SETS(lt, <)
SETS(le, <=)
SETS(gt, >)
SETS(ge, >=)

void cpu_mul_wide(const uint64_t *args, uint64_t *results)
{
    uint64_t product = args[0] * args[1];       /* of two words */
    results[0] = (uint32_t)product;
    results[1] = product >> 32;
}

void cpu_low_half(const uint64_t *args, uint64_t *results)
{
    results[0] = (uint16_t)args[0];
}
