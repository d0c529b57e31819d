#include "interp/fold.h"

#include <math.h>

double fold_float(ReduceKind kind, double a, double b)
{
    if (kind == REDUCE_SUM)
        return a + b;
    if (kind == REDUCE_PRODUCT)
        return a * b;
    if (isnan(a) || isnan(b))
        return isnan(a) ? b : a;
    bool larger = a > b || (a == b && !signbit(a));
    return larger == (kind == REDUCE_MAX) ? a : b;
}

double fold_neutral_float(ReduceKind kind)
{
    return kind == REDUCE_SUM ? -0.0 : kind == REDUCE_PRODUCT ? 1 : NAN;
}

uint64_t fold_integer(ReduceKind kind, bool is_signed, uint64_t a, uint64_t b)
{
    if (kind == REDUCE_SUM)
        return a + b;
    if (kind == REDUCE_PRODUCT)
        return a * b;
    bool larger = is_signed ? (int64_t)a > (int64_t)b : a > b;
    return larger == (kind == REDUCE_MAX) ? a : b;
}

uint64_t fold_neutral_integer(ReduceKind kind, bool is_signed)
{
    if (kind == REDUCE_SUM || kind == REDUCE_PRODUCT)
        return kind == REDUCE_PRODUCT;
    uint64_t least = is_signed ? (uint64_t)INT64_MIN : 0;
    return kind == REDUCE_MAX ? least : ~least;
}

uint64_t fold_extend(DType t, uint64_t code)
{
    uint64_t sign = UINT64_C(1) << (dtype_bits(t) - 1);
    return dtype_info[t].kind == DKIND_INT ? (code ^ sign) - sign : code;
}

double fold_start_float(ReduceKind kind, DType t)
{
    if (kind == REDUCE_SUM || kind == REDUCE_PRODUCT)
        return kind == REDUCE_PRODUCT;
    double least = dtype_has_infinity(t) ? -INFINITY : dtype_min(t);
    double most = dtype_has_infinity(t) ? INFINITY : dtype_max(t);
    return kind == REDUCE_MAX ? least : most;
}

uint64_t fold_start_integer(ReduceKind kind, DType t)
{
    if (kind == REDUCE_SUM || kind == REDUCE_PRODUCT)
        return kind == REDUCE_PRODUCT;
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    uint64_t above = is_signed ? UINT64_C(1) << (dtype_bits(t) - 1) : 0;
    uint64_t most = is_signed ? above - 1 : UINT64_MAX >> (64 - dtype_bits(t));
    return kind == REDUCE_MAX ? -above : most;
}
