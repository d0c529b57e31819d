/* Scalar arithmetic: one meaning of each operator of a scalar
 * expression, shared by constant folding, the interpreter and the
 * runtime (which evaluates grid expressions). Exact in i64: an overflow is an
 * error, never a wrapped number. */
#ifndef TILUS_SUPPORT_SCALAR_H
#define TILUS_SUPPORT_SCALAR_H

#include <stdbool.h>
#include <stdint.h>

typedef enum ScalarOp {
#define SCALAR_OP(id, spelling, precedence, operands) SCALAR_##id,
#include "support/scalar_ops.def"
    SCALAR_OP_COUNT
} ScalarOp;

typedef struct ScalarOpInfo {
    const char *name;       /* the identifier, "ceil_div" */
    const char *spelling;
    unsigned precedence;    /* 0: call form */
    unsigned operands;
} ScalarOpInfo;

extern const ScalarOpInfo scalar_op_info[SCALAR_OP_COUNT];

/* Applies `op` to `a` and `b` (`b` is ignored by unary operators). Returns
 * NULL and sets `*out`, or the reason in words ("division by zero",
 * "overflow of 64 bits"). Comparisons and logic give 0 or 1; any non-zero
 * operand of `and`, `or`, `not` is true. */
const char *scalar_apply(ScalarOp op, int64_t a, int64_t b, int64_t *out);

/* Rounds toward minus infinity; `b` must not be 0, nor -1 with INT64_MIN. */
int64_t floor_div(int64_t a, int64_t b);
int64_t floor_mod(int64_t a, int64_t b);

/* Greatest common divisor of the magnitudes; gcd(0, b) = |b|. Where that is
 * 2^63, which i64 cannot hold, the common divisor 2^62. */
int64_t gcd_i64(int64_t a, int64_t b);

#endif
