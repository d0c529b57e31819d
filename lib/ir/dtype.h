/* Element types and the meaning of their codes.
 *
 * A value of an element type is a code: an unsigned number of `bits` bits,
 * bits above are zero. `dtype_decode` and `dtype_encode` define what each
 * code means; every other conversion in the system (interpreter, generated
 * code, packing) is tested against them. Pure functions, thread safe. */
#ifndef TILUS_IR_DTYPE_H
#define TILUS_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum DType {
    DTYPE_none,
#define TYPE(id, kind, bits, exponent, mantissa, special) DTYPE_##id,
#include "ir/types.def"
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

/* cast(code): encode(decode(code)) with one rounding, for every pair of
 * types, including 64-bit integers. This is the meaning of the op `cast`. */
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

#endif
