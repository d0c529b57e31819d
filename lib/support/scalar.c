/* The meaning of every scalar operator. */
#include "support/scalar.h"

#include <stddef.h>

const ScalarOpInfo scalar_op_info[SCALAR_OP_COUNT] = {
#define SCALAR_OP(id, spelling, precedence, operands)                         \
    [SCALAR_##id] = {#id, spelling, precedence, operands},
#include "support/scalar_ops.def"
};

int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

int64_t floor_mod(int64_t a, int64_t b)
{
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

int64_t gcd_i64(int64_t a, int64_t b)
{
    uint64_t x = a < 0 ? -(uint64_t)a : (uint64_t)a;
    uint64_t y = b < 0 ? -(uint64_t)b : (uint64_t)b;
    while (y) {
        uint64_t r = x % y;
        x = y;
        y = r;
    }
    return x > INT64_MAX ? INT64_MAX / 2 + 1 : (int64_t)x;
}

static const char *divide(ScalarOp op, int64_t a, int64_t b, int64_t *out)
{
    if (b == 0)
        return "division by zero";
    if (a == INT64_MIN && b == -1) {
        *out = 0;
        return op == SCALAR_mod ? NULL : "overflow of 64 bits";
    }
    int64_t q = floor_div(a, b), r = floor_mod(a, b);
    *out = op == SCALAR_mod ? r : op == SCALAR_ceil_div ? q + (r != 0) : q;
    return NULL;
}

const char *scalar_apply(ScalarOp op, int64_t a, int64_t b, int64_t *out)
{
    bool overflow = false;
    switch (op) {
    case SCALAR_or: *out = a || b; break;
    case SCALAR_and: *out = a && b; break;
    case SCALAR_not: *out = !a; break;
    case SCALAR_eq: *out = a == b; break;
    case SCALAR_ne: *out = a != b; break;
    case SCALAR_lt: *out = a < b; break;
    case SCALAR_le: *out = a <= b; break;
    case SCALAR_gt: *out = a > b; break;
    case SCALAR_ge: *out = a >= b; break;
    case SCALAR_add: overflow = __builtin_add_overflow(a, b, out); break;
    case SCALAR_sub: overflow = __builtin_sub_overflow(a, b, out); break;
    case SCALAR_mul: overflow = __builtin_mul_overflow(a, b, out); break;
    case SCALAR_neg: overflow = __builtin_sub_overflow(0, a, out); break;
    case SCALAR_min: *out = a < b ? a : b; break;
    case SCALAR_max: *out = a > b ? a : b; break;
    case SCALAR_div:
    case SCALAR_mod:
    case SCALAR_ceil_div: return divide(op, a, b, out);
    case SCALAR_OP_COUNT: break;
    }
    return overflow ? "overflow of 64 bits" : NULL;
}
