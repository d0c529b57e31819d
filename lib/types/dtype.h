/* Element types and the meaning of their codes.
 *
 * A value of an element type is a code: an unsigned number of `bits` bits,
 * bits above are zero. `dtype_decode` and `dtype_encode` define what each
 * code means; every other conversion in the system (interpreter, generated
 * code, packing) is tested against them. Pure functions, thread safe. */
#ifndef TILUS_TYPES_DTYPE_H
#define TILUS_TYPES_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
    DTYPE_none,
#define TYPE(id, kind, bits, exponent, mantissa, special) DTYPE_##id,
#include "types/types.def"
    DTYPE_COUNT
} DType;

typedef enum DTypeKind { DKIND_NONE, DKIND_BOOL, DKIND_UINT, DKIND_INT, DKIND_FLOAT } DTypeKind;
typedef enum DTypeSpecial { SPECIAL_FINITE, SPECIAL_FN, SPECIAL_IEEE, SPECIAL_E8M0 } DTypeSpecial;

typedef struct DTypeInfo {
    const char *name;
    DTypeKind kind;
    unsigned bits;          /* of storage: 1..64 */
    unsigned exponent;      /* floats only */
    unsigned mantissa;
    DTypeSpecial special;
} DTypeInfo;

extern const DTypeInfo dtype_info[DTYPE_COUNT];

/* The type spelled name[0..len), or DTYPE_none. */
DType dtype_find(const char *name, size_t len);

static inline unsigned dtype_bits(DType t) { return dtype_info[t].bits; }
static inline const char *dtype_name(DType t) { return dtype_info[t].name; }
static inline bool dtype_is_float(DType t) { return dtype_info[t].kind == DKIND_FLOAT; }
static inline bool dtype_is_integer(DType t)
{
    return dtype_info[t].kind == DKIND_INT || dtype_info[t].kind == DKIND_UINT;
}

/* Smallest power of two of bytes that holds a code: the natural alignment. */
unsigned dtype_align(DType t);
/* The numbers of a type of integers that i64 holds; false for other types. */
bool dtype_integer_range(DType t, int64_t *least, int64_t *most);

bool dtype_has_infinity(DType t);
bool dtype_has_nan(DType t);

/* The value of a code of any float, bool, or integer of at most 32 bits; also
 * of i64 and u64 whose magnitude is at most 2^53 (others round). Exact. */
double dtype_decode(DType t, uint64_t code);

/* The code whose value is nearest to `value`, ties to the even code. Types
 * without infinity saturate, types with infinity overflow to it as IEEE 754
 * rounds; NaN gives the positive quiet NaN without payload, and to a type
 * without NaN its largest value. A bool is false for zero only. `value` is what
 * one rounding should see: a caller that holds a 64-bit integer uses
 * dtype_cast. */
uint64_t dtype_encode(DType t, double value);
/* The code nearest to plus or minus `magnitude`, rounded once; -0 of floats keeps its sign. */
uint64_t dtype_encode_integer(DType t, bool negative, uint64_t magnitude);

/* cast(code): encode(decode(code)) with one rounding, for every pair of
 * types, including 64-bit integers; to the same type the code itself, also of a
 * NaN. This is the meaning of the op `cast`. */
uint64_t dtype_cast(DType to, DType from, uint64_t code);

/* The largest and the least finite value, as decode gives them; NaN for
 * DTYPE_none. */
double dtype_max(DType t);
double dtype_min(DType t);

/* The code of the sum, difference or product of two codes of one type, or of
 * a code's negation, rounded once: floats as IEEE 754 (f32 and narrower through
 * f64, which rounds once for these formats), a NaN being the canonical one;
 * integers wrap modulo 2^bits, as PTX does; bool is true when the result is not
 * zero. These define the ops add, sub, mul, neg. */
uint64_t dtype_add(DType t, uint64_t a, uint64_t b);
uint64_t dtype_sub(DType t, uint64_t a, uint64_t b);
uint64_t dtype_mul(DType t, uint64_t a, uint64_t b);
uint64_t dtype_neg(DType t, uint64_t a);

/* The quotient and the remainder. Integers: the quotient is rounded toward minus
 * infinity and wraps, and div(a, b) * b + mod(a, b) is a; div(a, 0) has all bits
 * set and mod(a, 0) is a. Floats: div rounds once; mod is a - floor(a / b) * b,
 * where the quotient is rounded to f32 (of f64: to f64), product and difference
 * are rounded together to that type, and the result to `t`. */
uint64_t dtype_div(DType t, uint64_t a, uint64_t b);
uint64_t dtype_mod(DType t, uint64_t a, uint64_t b);

/* a * b + c, of floats rounded once; integers wrap. */
uint64_t dtype_fma(DType t, uint64_t a, uint64_t b, uint64_t c);

/* The magnitude; the least signed integer wraps to itself. */
uint64_t dtype_abs(DType t, uint64_t a);

/* Of a float: the greatest integer that is not above it, the least that is not below it, the
 * nearest one, of two the even one. -0 and what rounds to 0 from below give -0. A type that
 * does not hold the integer rounds it as `cast` does. They define floor, ceil and round. */
uint64_t dtype_floor(DType t, uint64_t a);
uint64_t dtype_ceil(DType t, uint64_t a);
uint64_t dtype_round(DType t, uint64_t a);

/* How two codes of a type compare. NONE: one is a NaN. -0 equals +0. */
typedef enum DOrder { DORDER_LESS, DORDER_EQUAL, DORDER_GREATER, DORDER_NONE } DOrder;
DOrder dtype_order(DType t, uint64_t a, uint64_t b);

/* The lesser and the greater of two codes, -0 below +0; of a NaN and a number
 * the number, of two NaNs the canonical one. Padding is cleared. They define the
 * ops min and max. */
uint64_t dtype_lesser(DType t, uint64_t a, uint64_t b);
uint64_t dtype_greater(DType t, uint64_t a, uint64_t b);

/* Bit by bit, of integers; of bools by their truth. `t` of the shifts is an
 * integer type and `count` an unsigned number; shr fills with the sign of a
 * signed type, and every bit that comes from beyond the type is 0 or the sign. */
uint64_t dtype_and(DType t, uint64_t a, uint64_t b);
uint64_t dtype_or(DType t, uint64_t a, uint64_t b);
uint64_t dtype_xor(DType t, uint64_t a, uint64_t b);
uint64_t dtype_not(DType t, uint64_t a);
uint64_t dtype_shl(DType t, uint64_t a, uint64_t count);
uint64_t dtype_shr(DType t, uint64_t a, uint64_t count);

#endif
