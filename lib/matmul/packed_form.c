/* The packed form of weights, and panels of A, by the definitions in kernels/matmul/common.tilus,
 * which the build writes as C (cmake/packed_form.cmake). */
#include "matmul/config.h"

#include "support/integer.h"

static int64_t min(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

static int64_t ceil_div(int64_t a, int64_t b)
{
    return ceil_div_i64(a, b);
}

static int64_t bits(DType type)
{
    return dtype_bits(type);
}

PackedForm matmul_packed_form(const MatmulSpec *spec, int rows, int columns)
{
    const DType W = spec->stored, S = spec->scales;
    const DType Z = spec->zeros == TILUS_ZEROS_INTEGER ? DTYPE_u8 : spec->scales;
    const int64_t GROUP = spec->group, ZERO = spec->zeros, ROWS = rows, COLUMNS = columns;
#include "packed_form.inc"
    enum { WORD = 4 };
    return (PackedForm){.codes = WORD * CODES, .scales = WORD * SCALES, .zeros = WORD * ZEROS,
                        .block = WORD * PACKED_BLOCK, .panel = WORD * PANEL};
}
