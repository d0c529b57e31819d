/* Element types: decode and encode against independent definitions, over every
 * code of the types of 16 bits or fewer; casts, arithmetic, and the public
 * functions. */
#include "tilus/tilus.h"
#include "types/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANDOM_CASES = 20000 };

/* ---- helpers --------------------------------------------------------- */

static uint64_t random_u64(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * 0x2545f4914f6cdd1du;
}

static uint64_t bits_of_double(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static uint32_t bits_of_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static bool same_value(double a, double b)
{
    return (isnan(a) && isnan(b)) || bits_of_double(a) == bits_of_double(b);
}

static void check_value(DType t, uint64_t code, double expected)
{
    double value = dtype_decode(t, code);
    if (!same_value(value, expected))
        fail_msg("decode(%s, 0x%llx) is %a, expected %a", dtype_name(t),
                 (unsigned long long)code, value, expected);
}

static void check_code(DType t, double value, uint64_t expected)
{
    uint64_t code = dtype_encode(t, value);
    if (code != expected)
        fail_msg("encode(%s, %a) is 0x%llx, expected 0x%llx", dtype_name(t), value,
                 (unsigned long long)code, (unsigned long long)expected);
}

static void check_cast(DType to, DType from, uint64_t code, uint64_t expected)
{
    uint64_t result = dtype_cast(to, from, code);
    if (result != expected)
        fail_msg("cast(%s, %s, 0x%llx) is 0x%llx, expected 0x%llx", dtype_name(to),
                 dtype_name(from), (unsigned long long)code, (unsigned long long)result,
                 (unsigned long long)expected);
}

static bool is_narrow(DType t)
{
    return dtype_bits(t) <= 16;
}

static uint64_t code_count(DType t)
{
    return (uint64_t)1 << dtype_bits(t);
}

static bool has_sign_bit(DType t)
{
    return dtype_is_float(t) && dtype_info[t].special != SPECIAL_E8M0;
}

/* ---- decode ---------------------------------------------------------- */

/* The value by the formula in types.def, with ldexp. */
static double formula(DType t, uint64_t code)
{
    const DTypeInfo *info = &dtype_info[t];
    int x = (int)info->exponent, m = (int)info->mantissa, bias = (1 << (x - 1)) - 1;
    int e = (int)(code >> m & ((1u << x) - 1));
    int f = (int)(code & ((1u << m) - 1));
    bool ones = e == (1 << x) - 1;
    double sign = code >> (x + m) & 1 ? -1.0 : 1.0;
    if (info->special == SPECIAL_E8M0)
        return ones ? (double)NAN : ldexp(1.0, e - 127);
    if (info->special == SPECIAL_IEEE && ones)
        return f ? (double)NAN : sign * (double)INFINITY;
    if (info->special == SPECIAL_FN && ones && f == (1 << m) - 1)
        return (double)NAN;
    int significand = e ? f + (1 << m) : f;
    return sign * ldexp(significand, (e ? e : 1) - bias - m);
}

static void decode_follows_the_formula(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        if (!dtype_is_float(t) || !is_narrow(t))
            continue;
        for (uint64_t code = 0; code < code_count(t); code++)
            check_value(t, code, formula(t, code));
    }
}

static void decode_of_integers(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        if (!dtype_is_integer(t) || !is_narrow(t))
            continue;
        for (uint64_t code = 0; code < code_count(t); code++) {
            bool negative = dtype_info[t].kind == DKIND_INT && code >= code_count(t) / 2;
            check_value(t, code, (double)code - (negative ? (double)code_count(t) : 0));
        }
    }
    check_value(DTYPE_i1, 1, -1);
    check_value(DTYPE_i32, 0x80000000, -2147483648.0);
    check_value(DTYPE_u32, 0xffffffff, 4294967295.0);
    check_value(DTYPE_i64, UINT64_MAX, -1);
    check_value(DTYPE_i64, (uint64_t)1 << 63, -0x1p63);
    check_value(DTYPE_u64, UINT64_MAX, 0x1p64);
}

static void decode_of_bool(void **state)
{
    (void)state;
    check_value(DTYPE_bool, 0, 0);
    for (uint64_t code = 1; code < 256; code++)
        check_value(DTYPE_bool, code, 1);
}

static void decode_of_wide_floats(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint64_t code = random_u64(&seed);
        uint32_t low = (uint32_t)code;
        double wide;
        memcpy(&wide, &code, sizeof wide);
        check_value(DTYPE_f64, code, wide);
        check_value(DTYPE_f32, low, (double)float_of_bits(low));
        check_value(DTYPE_tf32, low, (double)float_of_bits(low & ~0x1fffu));
    }
    for (uint32_t code = 0; code < 0x10000; code++)
        check_value(DTYPE_bf16, code, (double)float_of_bits(code << 16));
    check_value(DTYPE_f32, 1, 0x1p-149);
    check_value(DTYPE_tf32, 0x2000, 0x1p-136);
    check_value(DTYPE_tf32, 0x1fff, 0);
    check_value(DTYPE_tf32, 0x7f801fff, (double)INFINITY);
}

/* ---- encode ---------------------------------------------------------- */

/* The code of a value, NaN being canonical and bool 0 or 1. */
static uint64_t canonical(DType t, uint64_t code)
{
    if (t == DTYPE_bool)
        return code != 0;
    if (!isnan(dtype_decode(t, code)))
        return code;
    return t == DTYPE_f8e4m3 ? 0x7f : t == DTYPE_f8e5m2 ? 0x7e : t == DTYPE_ue8m0 ? 0xff
         : t == DTYPE_f16 ? 0x7e00 : t == DTYPE_bf16 ? 0x7fc0 : 0xbad;
}

static void encode_inverts_decode(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++)
        for (uint64_t code = 0; is_narrow(t) && code < code_count(t); code++)
            check_code(t, dtype_decode(t, code), canonical(t, code));
}

typedef struct Entry {
    double value;
    uint64_t code;
} Entry;

static int compare_entries(const void *a, const void *b)
{
    double x = ((const Entry *)a)->value, y = ((const Entry *)b)->value;
    return (x > y) - (x < y);
}

/* The finite values of a type in growing order, -0 left out. The caller frees
 * them. */
static Entry *sorted_values(DType t, size_t *count)
{
    Entry *entries = calloc(code_count(t), sizeof *entries);
    assert_non_null(entries);
    *count = 0;
    for (uint64_t code = 0; code < code_count(t); code++) {
        double value = dtype_decode(t, code);
        if (isfinite(value) && !(value == 0 && signbit(value)))
            entries[(*count)++] = (Entry){value, code};
    }
    qsort(entries, *count, sizeof *entries, compare_entries);
    return entries;
}

/* The code that `value`, rounded to `e`, has: zero takes the value's sign. */
static uint64_t entry_code(DType t, Entry e, double value)
{
    bool negative_zero = e.value == 0 && signbit(value) && has_sign_bit(t);
    return negative_zero ? code_count(t) / 2 : e.code;
}

/* Everything between two neighbours goes to the nearer one. */
static void check_gap(DType t, Entry low, Entry high)
{
    double middle = low.value / 2 + high.value / 2;     /* exact */
    Entry even = low.code & 1 ? high : low;
    const struct { double value; Entry nearest; } points[] = {
        {nextafter(low.value, INFINITY), low}, {nextafter(middle, -INFINITY), low},
        {middle, even}, {nextafter(middle, INFINITY), high},
        {nextafter(high.value, -INFINITY), high},
    };
    for (size_t i = 0; i < sizeof points / sizeof *points; i++)
        check_code(t, points[i].value, entry_code(t, points[i].nearest, points[i].value));
}

static void encode_finds_the_nearest_value(void **state)
{
    (void)state;
    for (DType t = DTYPE_bool + 1; t < DTYPE_COUNT; t++) {
        if (!is_narrow(t))
            continue;
        size_t count;
        Entry *entries = sorted_values(t, &count);
        for (size_t i = 0; i + 1 < count; i++)
            check_gap(t, entries[i], entries[i + 1]);
        free(entries);
    }
}

/* Past the extreme `last`, whose neighbour is `before`, toward `far`: the same
 * code for ever, or infinity from half a step on. */
static void check_beyond(DType t, Entry before, Entry last, double far)
{
    double limit = last.value + (last.value - before.value) / 2;
    uint64_t end = last.code + dtype_has_infinity(t);
    check_code(t, nextafter(last.value, far), last.code);
    check_code(t, nextafter(limit, last.value), last.code);
    check_code(t, limit, end);
    check_code(t, far, end);
    check_code(t, 2 * far, end);
}

static void encode_saturates_or_overflows(void **state)
{
    (void)state;
    for (DType t = DTYPE_bool + 1; t < DTYPE_COUNT; t++) {
        if (!is_narrow(t))
            continue;
        size_t count;
        Entry *entries = sorted_values(t, &count);
        check_beyond(t, entries[count - 2], entries[count - 1], 0x1p1023);
        check_beyond(t, entries[1], entries[0], -0x1p1023);
        free(entries);
    }
}

static void encode_of_nan(void **state)
{
    (void)state;
    for (int sign = 0; sign < 2; sign++) {
        double nan = copysign((double)NAN, sign ? -1 : 1);
        check_code(DTYPE_bool, nan, 1);
        check_code(DTYPE_u3, nan, 7);
        check_code(DTYPE_i1, nan, 0);
        check_code(DTYPE_i3, nan, 3);
        check_code(DTYPE_i64, nan, INT64_MAX);
        check_code(DTYPE_u64, nan, UINT64_MAX);
        check_code(DTYPE_f6e3m2, nan, 0x1f);
        check_code(DTYPE_f8e4m3, nan, 0x7f);
        check_code(DTYPE_f8e5m2, nan, 0x7e);
        check_code(DTYPE_ue8m0, nan, 0xff);
        check_code(DTYPE_f16, nan, 0x7e00);
        check_code(DTYPE_bf16, nan, 0x7fc0);
        check_code(DTYPE_tf32, nan, 0x7fc00000);
        check_code(DTYPE_f32, nan, 0x7fc00000);
        check_code(DTYPE_f64, nan, 0x7ff8000000000000);
    }
}

static void encode_of_zero_and_tiny(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        uint64_t minus = has_sign_bit(t) ? (uint64_t)1 << (dtype_bits(t) - 1) : 0;
        bool nonzero = t == DTYPE_bool;
        check_code(t, 0.0, 0);
        check_code(t, -0.0, minus);
        if (t == DTYPE_f64)
            continue;
        check_code(t, 0x1p-1074, nonzero);
        check_code(t, -0x1p-1074, minus | nonzero);
        check_code(t, 0x1p-200, nonzero);
    }
}

static void encode_of_bool(void **state)
{
    (void)state;
    check_code(DTYPE_bool, 0.25, 1);
    check_code(DTYPE_bool, -3, 1);
    check_code(DTYPE_bool, -(double)INFINITY, 1);
}

static void encode_of_ue8m0(void **state)
{
    (void)state;
    check_code(DTYPE_ue8m0, 1, 127);
    check_code(DTYPE_ue8m0, 1.5, 128);     /* between 127 and 128 */
    check_code(DTYPE_ue8m0, 3, 128);       /* between 128 and 129 */
    check_code(DTYPE_ue8m0, -1, 0);
    check_code(DTYPE_ue8m0, -(double)INFINITY, 0);
    check_code(DTYPE_ue8m0, 0x1p127, 254);
    check_code(DTYPE_ue8m0, (double)INFINITY, 254);
}

/* ---- encode of wide types, by the machine and by bits ---------------- */

/* A double that lies close to a midpoint of f32, tf32 or bf16 half the time. */
static double tricky_double(uint64_t *seed)
{
    uint64_t bits = random_u64(seed), near = random_u64(seed);
    unsigned kept[] = {52, 24, 23, 11, 10, 8, 7, 1};
    bits &= ~(UINT64_MAX >> 12 >> kept[near & 7]);
    bits += (near >> 3) % 3 - 1;
    /* Exponents about as far as f32's go, subnormals included. */
    bits = (bits & 0x800fffffffffffff) | (860 + (near >> 8) % 300) << 52;
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static void encode_of_f32_is_the_machines(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < RANDOM_CASES; i++) {
        double value = tricky_double(&seed);
        check_code(DTYPE_f32, value, bits_of_float((float)value));
        check_code(DTYPE_f64, value, bits_of_double(value));
    }
    check_code(DTYPE_f32, 0x1.fffffefffffffp127, 0x7f7fffff);
    check_code(DTYPE_f32, 0x1.ffffffp127, 0x7f800000);
    check_code(DTYPE_f32, 0x1p-150, 0);
    check_code(DTYPE_f32, 0x1.8p-149, 2);
}

/* A float cut to its upper bits, to nearest even, by addition on its bits. */
static uint32_t cut_float(float value, unsigned dropped)
{
    uint32_t bits = bits_of_float(value);
    bits += ((1u << (dropped - 1)) - 1) + (bits >> dropped & 1);
    return bits >> dropped;
}

static void encode_of_bf16_and_tf32_by_bits(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint32_t bits = (uint32_t)random_u64(&seed);
        if (i & 1)
            bits &= i & 2 ? 0xffff8000 : 0xfffff000;    /* ties are common */
        float value = float_of_bits(bits);
        if (isnan(value))
            continue;
        check_code(DTYPE_bf16, (double)value, cut_float(value, 16));
        check_code(DTYPE_tf32, (double)value, cut_float(value, 13) << 13);
    }
    check_code(DTYPE_tf32, 1.0 + 0x1p-11, 0x3f800000);
    check_code(DTYPE_tf32, 1.0 + 0x1p-11 + 0x1p-52, 0x3f802000);
    check_code(DTYPE_tf32, 1.0 + 0x3p-11, 0x3f804000);
}

#ifdef __FLT16_MANT_DIG__
__extension__ typedef _Float16 Half;

static void f16_is_the_compilers(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (uint32_t code = 0; code < 0x10000; code++) {
        uint16_t bits = (uint16_t)code;
        Half half;
        memcpy(&half, &bits, sizeof half);
        check_value(DTYPE_f16, code, (double)half);
    }
    for (int i = 0; i < RANDOM_CASES; i++) {
        double value = tricky_double(&seed);
        Half half = (Half)value;
        uint16_t bits;
        memcpy(&bits, &half, sizeof bits);
        check_code(DTYPE_f16, value, bits);
    }
}
#else
static void f16_is_the_compilers(void **state)
{
    (void)state;
    skip();
}
#endif

/* ---- known constants ------------------------------------------------- */

static void known_extremes(void **state)
{
    (void)state;
    static const struct { DType t; double min, max; } known[] = {
        {DTYPE_bool, 0, 1}, {DTYPE_u1, 0, 1}, {DTYPE_i1, -1, 0}, {DTYPE_u6, 0, 63},
        {DTYPE_i6, -32, 31}, {DTYPE_i16, -32768, 32767}, {DTYPE_u32, 0, 4294967295.0},
        {DTYPE_i64, -0x1p63, 0x1p63}, {DTYPE_u64, 0, 0x1p64},
        {DTYPE_f3e1m1, -3, 3}, {DTYPE_f3e2m0, -4, 4}, {DTYPE_f4e2m1, -6, 6},
        {DTYPE_f6e2m3, -7.5, 7.5}, {DTYPE_f6e3m2, -28, 28}, {DTYPE_f8e4m3, -448, 448},
        {DTYPE_f8e5m2, -57344, 57344}, {DTYPE_f8e7m0, -0x1p64, 0x1p64},
        {DTYPE_ue8m0, 0x1p-127, 0x1p127}, {DTYPE_f16, -65504, 65504},
        {DTYPE_bf16, -0x1.fep127, 0x1.fep127}, {DTYPE_tf32, -0x1.ffcp127, 0x1.ffcp127},
        {DTYPE_f32, -0x1.fffffep127, 0x1.fffffep127},
        {DTYPE_f64, -0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        assert_true(same_value(dtype_max(known[i].t), known[i].max));
        assert_true(same_value(dtype_min(known[i].t), known[i].min));
    }
    assert_true(isnan(dtype_max(DTYPE_none)) && isnan(dtype_min(DTYPE_none)));
}

static void extremes_are_the_sorted_ends(void **state)
{
    (void)state;
    for (DType t = DTYPE_bool + 1; t < DTYPE_COUNT; t++) {
        if (!is_narrow(t))
            continue;
        size_t count;
        Entry *entries = sorted_values(t, &count);
        assert_true(same_value(dtype_min(t), entries[0].value));
        assert_true(same_value(dtype_max(t), entries[count - 1].value));
        free(entries);
    }
}

static void known_codes(void **state)
{
    (void)state;
    static const double f4e2m1[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    static const double f3e1m1[] = {0, 1, 2, 3};
    static const double f3e2m0[] = {0, 1, 2, 4};
    for (uint64_t code = 0; code < 8; code++)
        check_value(DTYPE_f4e2m1, code, f4e2m1[code]);
    for (uint64_t code = 0; code < 4; code++) {
        check_value(DTYPE_f3e1m1, code, f3e1m1[code]);
        check_value(DTYPE_f3e2m0, code, f3e2m0[code]);
    }
    check_value(DTYPE_f6e3m2, 0x01, 0.0625);
    check_value(DTYPE_f6e2m3, 0x21, -0.125);
    check_value(DTYPE_f8e4m3, 0x01, 0x1p-9);
    check_value(DTYPE_f8e4m3, 0xff, (double)NAN);
    check_value(DTYPE_f8e5m2, 0xfc, -(double)INFINITY);
    check_value(DTYPE_ue8m0, 0xff, (double)NAN);
}

static void infinity_and_nan(void **state)
{
    (void)state;
    for (DType t = DTYPE_none; t < DTYPE_COUNT; t++) {
        bool infinity = t == DTYPE_f8e5m2 || t == DTYPE_f16 || t == DTYPE_bf16 ||
                        t == DTYPE_tf32 || t == DTYPE_f32 || t == DTYPE_f64;
        assert_int_equal(dtype_has_infinity(t), infinity);
        assert_int_equal(dtype_has_nan(t), infinity || t == DTYPE_f8e4m3 || t == DTYPE_ue8m0);
    }
}

static void alignment(void **state)
{
    (void)state;
    assert_int_equal(dtype_align(DTYPE_u1), 1);
    assert_int_equal(dtype_align(DTYPE_f8e4m3), 1);
    assert_int_equal(dtype_align(DTYPE_bf16), 2);
    assert_int_equal(dtype_align(DTYPE_tf32), 4);
    assert_int_equal(dtype_align(DTYPE_i64), 8);
}

/* A float's name states its exponent and mantissa. */
static void names_state_the_format(void **state)
{
    (void)state;
    for (DType t = DTYPE_f3e1m1; t < DTYPE_ue8m0; t++) {
        const DTypeInfo *info = &dtype_info[t];
        char name[16];
        snprintf(name, sizeof name, "f%ue%um%u", info->bits, info->exponent, info->mantissa);
        assert_string_equal(dtype_name(t), name);
        assert_int_equal(info->bits, 1 + info->exponent + info->mantissa);
    }
}

static void find_round_trip(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        char text[32];
        snprintf(text, sizeof text, "%s]", dtype_name(t));
        assert_int_equal(dtype_find(text, strlen(text) - 1), t);
        assert_int_equal(dtype_find(text, strlen(text)), DTYPE_none);
    }
    static const char *const unknown[] = {"", "none", "f", "f6", "f6e3m", "u9", "i", "F16"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++)
        assert_int_equal(dtype_find(unknown[i], strlen(unknown[i])), DTYPE_none);
}

/* ---- cast ------------------------------------------------------------ */

static void cast_between_narrow_types(void **state)
{
    (void)state;
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++) {
        uint64_t step = dtype_bits(from) > 8 ? 11 : 1;
        for (uint64_t code = 0; is_narrow(from) && code < code_count(from); code += step) {
            double value = dtype_decode(from, code);
            for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++)
                check_cast(to, from, code, to == from ? code : dtype_encode(to, value));
        }
    }
}

static void cast_between_integers_saturates(void **state)
{
    (void)state;
    uint64_t minus_one = UINT64_MAX, least = (uint64_t)1 << 63;
    check_cast(DTYPE_u64, DTYPE_i64, minus_one, 0);
    check_cast(DTYPE_i64, DTYPE_u64, UINT64_MAX, INT64_MAX);
    check_cast(DTYPE_i64, DTYPE_i64, least, least);
    check_cast(DTYPE_i32, DTYPE_i64, least, 0x80000000);
    check_cast(DTYPE_i32, DTYPE_i64, INT64_MAX, INT32_MAX);
    check_cast(DTYPE_i32, DTYPE_i64, (uint64_t)-5, (uint32_t)-5);
    check_cast(DTYPE_u32, DTYPE_u64, (uint64_t)1 << 32, UINT32_MAX);
    check_cast(DTYPE_i64, DTYPE_i32, 0x80000000, 0xffffffff80000000);
    check_cast(DTYPE_i64, DTYPE_i1, 1, minus_one);
    check_cast(DTYPE_i1, DTYPE_i64, (uint64_t)-9, 1);
    check_cast(DTYPE_i1, DTYPE_i64, 9, 0);
    check_cast(DTYPE_u3, DTYPE_i8, 0x80, 0);
    check_cast(DTYPE_bool, DTYPE_u64, least, 1);
    check_cast(DTYPE_bool, DTYPE_i64, 0, 0);
    check_cast(DTYPE_i64, DTYPE_bool, 0x80, 1);
    /* Exact where no double is. */
    check_cast(DTYPE_u64, DTYPE_i64, INT64_MAX, INT64_MAX);
    check_cast(DTYPE_i64, DTYPE_u64, INT64_MAX - 1, INT64_MAX - 1);
}

static void cast_of_f64_to_integers(void **state)
{
    (void)state;
    static const struct { double value; DType to; uint64_t code; } known[] = {
        {0.5, DTYPE_i64, 0}, {1.5, DTYPE_i64, 2}, {2.5, DTYPE_u64, 2}, {-0.5, DTYPE_i64, 0},
        {-1.5, DTYPE_i64, UINT64_MAX - 1}, {-2.5, DTYPE_i8, 0xfe},
        {0x1p63, DTYPE_i64, INT64_MAX}, {0x1p63, DTYPE_u64, (uint64_t)1 << 63},
        {-0x1p63, DTYPE_i64, (uint64_t)1 << 63}, {-0x1p70, DTYPE_i64, (uint64_t)1 << 63},
        {0x1.fffffffffffffp63, DTYPE_u64, 0xfffffffffffff800}, {0x1p64, DTYPE_u64, UINT64_MAX},
        {(double)INFINITY, DTYPE_u64, UINT64_MAX}, {-1, DTYPE_u64, 0},
        {0x1.fffffffffffffp52, DTYPE_i64, ((uint64_t)1 << 53) - 1},
        {0x1p51 + 0.5, DTYPE_i64, (uint64_t)1 << 51},
        {0x1p51 + 1.5, DTYPE_i64, ((uint64_t)1 << 51) + 2},
        {(double)NAN, DTYPE_i64, INT64_MAX}, {127.5, DTYPE_i8, 127}, {-128.5, DTYPE_i8, 0x80},
        {0.49999999999999994, DTYPE_i64, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        check_cast(known[i].to, DTYPE_f64, bits_of_double(known[i].value), known[i].code);
}

/* The integers next to the midpoint between a float and the next one, where
 * rounding to f64 on the way would lose the difference. */
static void check_integer_midpoint(DType to, uint64_t low)
{
    uint64_t next = low + ((uint64_t)1 << (to == DTYPE_tf32 ? 13 : 0));
    uint64_t unit = next - low, even = low & unit ? next : low;
    uint64_t middle = ((uint64_t)dtype_decode(to, low) + (uint64_t)dtype_decode(to, next)) / 2;
    check_cast(to, DTYPE_u64, middle - 1, low);
    check_cast(to, DTYPE_u64, middle, even);
    check_cast(to, DTYPE_u64, middle + 1, next);
    if (!has_sign_bit(to))
        return;
    uint64_t minus = (uint64_t)1 << (dtype_bits(to) - 1);
    check_cast(to, DTYPE_i64, -(middle - 1), low | minus);
    check_cast(to, DTYPE_i64, -middle, even | minus);
    check_cast(to, DTYPE_i64, -(middle + 1), next | minus);
}

static void cast_of_64_bit_integers_rounds_once(void **state)
{
    (void)state;
    static const DType types[] = {DTYPE_f32, DTYPE_tf32, DTYPE_bf16, DTYPE_f8e7m0,
                                  DTYPE_ue8m0};
    uint64_t seed = 5;
    for (int i = 0; i < RANDOM_CASES / 10; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            double value = ldexp(1 + (double)(random_u64(&seed) >> 11) * 0x1p-53,
                                 (int)(random_u64(&seed) % 8) + 54);
            check_integer_midpoint(types[k], dtype_encode(types[k], value));
        }
    /* 2^61 + 2^37 is a midpoint of f32; f64 cannot see the one above it. */
    uint64_t trap = ((uint64_t)1 << 61) + ((uint64_t)1 << 37);
    check_cast(DTYPE_f32, DTYPE_i64, trap, 0x5e000000);
    check_cast(DTYPE_f32, DTYPE_i64, trap + 1, 0x5e000001);
    check_cast(DTYPE_f32, DTYPE_i64, -(trap + 1), 0xde000001);
}

static void cast_of_64_bit_integers_is_the_machines(void **state)
{
    (void)state;
    uint64_t seed = 6;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint64_t code = random_u64(&seed) >> (i & 63);
        code = i & 64 ? code : code & ~(UINT64_MAX >> 27 >> (i & 31));
        int64_t number = (int64_t)code;
        check_cast(DTYPE_f32, DTYPE_u64, code, bits_of_float((float)code));
        check_cast(DTYPE_f32, DTYPE_i64, code, bits_of_float((float)number));
        check_cast(DTYPE_f64, DTYPE_u64, code, bits_of_double((double)code));
        check_cast(DTYPE_f64, DTYPE_i64, code, bits_of_double((double)number));
        uint32_t low = (uint32_t)code;
        check_cast(DTYPE_f64, DTYPE_i32, low, bits_of_double((double)(int32_t)low));
        check_cast(DTYPE_f32, DTYPE_u32, low, bits_of_float((float)low));
    }
}

static void cast_of_64_bit_integers_overflows(void **state)
{
    (void)state;
    uint64_t least = (uint64_t)1 << 63;
    check_cast(DTYPE_f16, DTYPE_u64, 65519, 0x7bff);
    check_cast(DTYPE_f16, DTYPE_u64, 65520, 0x7c00);
    check_cast(DTYPE_f16, DTYPE_i64, least, 0xfc00);
    check_cast(DTYPE_f8e4m3, DTYPE_u64, UINT64_MAX, 0x7e);
    check_cast(DTYPE_f8e4m3, DTYPE_i64, least, 0xfe);
    check_cast(DTYPE_f8e7m0, DTYPE_u64, UINT64_MAX, 0x7f);
    check_cast(DTYPE_f64, DTYPE_u64, UINT64_MAX, 0x43f0000000000000);
    check_cast(DTYPE_ue8m0, DTYPE_u64, UINT64_MAX, 127 + 64);
    check_cast(DTYPE_ue8m0, DTYPE_i64, least, 0);
}

static void cast_between_wide_floats(void **state)
{
    (void)state;
    uint64_t seed = 7;
    for (int i = 0; i < RANDOM_CASES; i++) {
        double value = tricky_double(&seed);
        uint32_t narrow = bits_of_float((float)value);
        check_cast(DTYPE_f32, DTYPE_f64, bits_of_double(value), narrow);
        check_cast(DTYPE_f64, DTYPE_f32, narrow, bits_of_double((double)(float)value));
    }
    /* Through f32 this would be a tie and give 1. */
    check_cast(DTYPE_f16, DTYPE_f64, bits_of_double(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    check_cast(DTYPE_f64, DTYPE_f32, 0xffc12345, 0x7ff8000000000000);
    check_cast(DTYPE_f64, DTYPE_f64, 0xfff0000000000001, 0xfff0000000000001);
    check_cast(DTYPE_tf32, DTYPE_tf32, 0x3f801234, 0x3f801234);
}

/* ---- arithmetic ------------------------------------------------------ */

static void integers_wrap(void **state)
{
    (void)state;
    assert_int_equal(dtype_add(DTYPE_u3, 7, 2), 1);
    assert_int_equal(dtype_sub(DTYPE_u8, 0, 1), 255);
    assert_int_equal(dtype_mul(DTYPE_i4, 7, 7), 1);
    assert_int_equal(dtype_neg(DTYPE_i4, 8), 8);
    assert_int_equal(dtype_neg(DTYPE_i4, 3), 13);
    assert_int_equal(dtype_neg(DTYPE_u5, 1), 31);
    assert_int_equal(dtype_add(DTYPE_i1, 1, 1), 0);
    assert_true(dtype_add(DTYPE_i64, INT64_MAX, 1) == (uint64_t)1 << 63);
    assert_true(dtype_mul(DTYPE_u64, UINT64_MAX, UINT64_MAX) == 1);
    assert_true(dtype_sub(DTYPE_i32, 0, 1) == 0xffffffff);
}

static void bools_are_true_when_not_zero(void **state)
{
    (void)state;
    assert_int_equal(dtype_add(DTYPE_bool, 1, 1), 1);
    assert_int_equal(dtype_add(DTYPE_bool, 0, 0), 0);
    assert_int_equal(dtype_sub(DTYPE_bool, 1, 1), 0);
    assert_int_equal(dtype_sub(DTYPE_bool, 0, 1), 1);
    assert_int_equal(dtype_mul(DTYPE_bool, 1, 0), 0);
    assert_int_equal(dtype_neg(DTYPE_bool, 1), 1);
}

static void check_f32(uint64_t result, float expected)
{
    if (isnan(expected))
        assert_int_equal(result, 0x7fc00000);
    else
        assert_int_equal(result, bits_of_float(expected));
}

static void f32_arithmetic_is_the_machines(void **state)
{
    (void)state;
    uint64_t seed = 8;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint32_t a = (uint32_t)random_u64(&seed), b = (uint32_t)random_u64(&seed);
        if (i & 1)      /* exponents that meet, and few bits: ties */
            b = (b & 0x80fff001) | ((a + ((uint32_t)i << 22)) & 0x7f800000);
        volatile float x = float_of_bits(a), y = float_of_bits(b);
        volatile float sum = x + y, difference = x - y, product = x * y;
        check_f32(dtype_add(DTYPE_f32, a, b), sum);
        check_f32(dtype_sub(DTYPE_f32, a, b), difference);
        check_f32(dtype_mul(DTYPE_f32, a, b), product);
        check_f32(dtype_neg(DTYPE_f32, a), -x);
    }
}

/* Ties of the larger term's last place, and what is just above them. */
static void f32_sums_do_not_round_twice(void **state)
{
    (void)state;
    uint64_t one = 0x3f800000, odd = 0x3f800001;
    uint64_t tie = 0x33800000, above = 0x33800001;      /* 2^-24, and a step more */
    assert_int_equal(dtype_add(DTYPE_f32, one, tie), one);
    assert_int_equal(dtype_add(DTYPE_f32, one, above), odd);
    assert_int_equal(dtype_add(DTYPE_f32, odd, tie), odd + 1);
    assert_int_equal(dtype_sub(DTYPE_f32, odd, above), one);
    assert_int_equal(dtype_sub(DTYPE_f32, one, 1), one);
    assert_int_equal(dtype_mul(DTYPE_f32, 1, 1), 0);
}

static void f64_arithmetic(void **state)
{
    (void)state;
    uint64_t third = bits_of_double(1.0 / 3), big = bits_of_double(0x1p1023);
    assert_true(dtype_add(DTYPE_f64, third, third) == bits_of_double(2.0 / 3));
    assert_true(dtype_mul(DTYPE_f64, big, big) == bits_of_double((double)INFINITY));
    assert_true(dtype_neg(DTYPE_f64, 0) == (uint64_t)1 << 63);
}

static void small_float_arithmetic(void **state)
{
    (void)state;
    assert_int_equal(dtype_add(DTYPE_f8e4m3, 0x7e, 0x7e), 0x7e);    /* saturates */
    assert_int_equal(dtype_mul(DTYPE_f8e4m3, 0x7e, 0xfe), 0xfe);
    assert_int_equal(dtype_add(DTYPE_f8e4m3, 0xff, 0x38), 0x7f);    /* NaN */
    assert_int_equal(dtype_add(DTYPE_f8e5m2, 0x7b, 0x7b), 0x7c);    /* infinity */
    assert_int_equal(dtype_sub(DTYPE_f8e5m2, 0x7c, 0x7c), 0x7e);
    assert_int_equal(dtype_add(DTYPE_f4e2m1, 0x5, 0x1), 0x6);       /* 3 + 0.5: a tie, 4 */
    assert_int_equal(dtype_sub(DTYPE_f4e2m1, 0x5, 0x5), 0);
    assert_int_equal(dtype_add(DTYPE_f4e2m1, 0x8, 0x8), 0x8);       /* -0 - 0 */
    assert_int_equal(dtype_neg(DTYPE_f4e2m1, 0), 0x8);
    assert_int_equal(dtype_add(DTYPE_f16, 0x3c00, 0x1000), 0x3c00); /* 1 + 2^-11: a tie */
    assert_int_equal(dtype_add(DTYPE_f16, 0x3c00, 0x1001), 0x3c01);
    assert_int_equal(dtype_mul(DTYPE_bf16, 0x3f81, 0x3f81), 0x3f82);
    assert_int_equal(dtype_add(DTYPE_tf32, 0x3f800000, 0x3a000000), 0x3f800000);
    assert_int_equal(dtype_add(DTYPE_ue8m0, 127, 127), 128);
    assert_int_equal(dtype_neg(DTYPE_ue8m0, 127), 0);
}

/* ---- division, fma, order, bits --------------------------------------- */

static uint64_t masked(DType t, int64_t value)
{
    return (uint64_t)value & (UINT64_MAX >> (64 - dtype_bits(t)));
}

/* Every pair of codes: the quotient by f64 and floor. */
static void integers_divide_downward(void **state)
{
    (void)state;
    static const DType types[] = {DTYPE_i1, DTYPE_u1, DTYPE_i4, DTYPE_u5, DTYPE_i8, DTYPE_u8};
    for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
        DType t = types[k];
        for (uint64_t a = 0; a < code_count(t); a++) {
            assert_int_equal(dtype_div(t, a, 0), code_count(t) - 1);
            assert_int_equal(dtype_mod(t, a, 0), a);
            for (uint64_t b = 1; b < code_count(t); b++) {
                double x = dtype_decode(t, a), y = dtype_decode(t, b);
                int64_t quotient = (int64_t)floor(x / y);
                assert_int_equal(dtype_div(t, a, b), masked(t, quotient));
                assert_int_equal(dtype_mod(t, a, b),
                                 masked(t, (int64_t)x - quotient * (int64_t)y));
            }
        }
    }
}

static void wide_integers_divide(void **state)
{
    (void)state;
    uint64_t least = (uint64_t)1 << 63;
    assert_true(dtype_div(DTYPE_i64, least, UINT64_MAX) == least);
    assert_true(dtype_mod(DTYPE_i64, least, UINT64_MAX) == 0);
    assert_true(dtype_div(DTYPE_i64, (uint64_t)-7, 2) == (uint64_t)-4);
    assert_true(dtype_mod(DTYPE_i64, (uint64_t)-7, 4) == 1);
    assert_true(dtype_mod(DTYPE_i64, 7, (uint64_t)-4) == (uint64_t)-1);
    assert_true(dtype_div(DTYPE_u64, UINT64_MAX, 2) == INT64_MAX);
    assert_int_equal(dtype_div(DTYPE_i32, 0x80000000, 0xffffffff), 0x80000000);
}

static void f32_division_is_the_machines(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint32_t a = (uint32_t)random_u64(&seed), b = (uint32_t)random_u64(&seed);
        if (i & 1)      /* subnormal quotients */
            a = (a & 0x80ffffff) | 0x00800000, b = (b & 0x807fffff) | 0x46000000;
        volatile float x = float_of_bits(a), y = float_of_bits(b), quotient = x / y;
        check_f32(dtype_div(DTYPE_f32, a, b), quotient);
    }
}

static void mod_of_floats(void **state)
{
    (void)state;
    static const struct { double a, b, mod; } known[] = {
        {7, 4, 3}, {-7, 4, 1}, {7, -4, -1}, {-7, -4, -3}, {8, 4, 0}, {5.5, 0.75, 0.25},
        {-0.5, 4, 3.5}, {3, 0, NAN}, {INFINITY, 2, NAN}, {2, INFINITY, NAN}, {NAN, 2, NAN},
    };
    static const DType types[] = {DTYPE_f16, DTYPE_bf16, DTYPE_tf32, DTYPE_f32, DTYPE_f64};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
            DType t = types[k];
            uint64_t a = dtype_encode(t, known[i].a), b = dtype_encode(t, known[i].b);
            assert_true(same_value(dtype_decode(t, dtype_mod(t, a, b)), known[i].mod));
        }
}

static void f32_fma_is_the_machines(void **state)
{
    (void)state;
    uint64_t seed = 10;
    for (int i = 0; i < RANDOM_CASES; i++) {
        uint32_t a = (uint32_t)random_u64(&seed), b = (uint32_t)random_u64(&seed);
        uint32_t c = (uint32_t)random_u64(&seed);
        if (i & 1) {    /* products of few bits near a midpoint, and small or equal terms */
            a = (a & 0x807ff000) | 0x3f800000, b = (b & 0x807ff000) | 0x3f800000;
            c = (c & 0x80000fff) | (uint32_t)(0x3f + i % 3 * -0x10) << 24;
        }
        check_f32(dtype_fma(DTYPE_f32, a, b, c),
                  fmaf(float_of_bits(a), float_of_bits(b), float_of_bits(c)));
    }
}

/* 7 * 37/256 is a midpoint of bf16; what is added is far below f64's last bit. */
static void fma_rounds_once(void **state)
{
    (void)state;
    uint64_t seven = 0x40e0, other = dtype_encode(DTYPE_bf16, 37.0 / 256);
    uint64_t tiny = dtype_encode(DTYPE_bf16, 0x1p-100), minus = dtype_neg(DTYPE_bf16, tiny);
    assert_int_equal(dtype_fma(DTYPE_bf16, seven, other, 0), 0x3f82);
    assert_int_equal(dtype_fma(DTYPE_bf16, seven, other, tiny), 0x3f82);
    assert_int_equal(dtype_fma(DTYPE_bf16, seven, other, minus), 0x3f81);
    for (uint64_t a = 0; a < 64; a++)
        for (uint64_t b = 0; b < 64; b++)
            for (uint64_t c = 0; c < 64; c++) {
                DType t = DTYPE_f6e3m2;
                double exact = dtype_decode(t, a) * dtype_decode(t, b) + dtype_decode(t, c);
                assert_int_equal(dtype_fma(t, a, b, c), dtype_encode(t, exact));
            }
    assert_int_equal(dtype_fma(DTYPE_i8, 100, 3, 5), 49);
}

static void minimum_and_maximum(void **state)
{
    (void)state;
    assert_int_equal(dtype_lesser(DTYPE_i4, 8, 7), 8);
    assert_int_equal(dtype_greater(DTYPE_i4, 8, 7), 7);
    assert_int_equal(dtype_lesser(DTYPE_u4, 8, 7), 7);
    assert_int_equal(dtype_lesser(DTYPE_f16, 0x8000, 0), 0x8000);       /* -0 below +0 */
    assert_int_equal(dtype_lesser(DTYPE_f16, 0, 0x8000), 0x8000);
    assert_int_equal(dtype_greater(DTYPE_f16, 0, 0x8000), 0);
    assert_int_equal(dtype_greater(DTYPE_f16, 0x8000, 0), 0);
    assert_int_equal(dtype_lesser(DTYPE_f16, 0xfe00, 0x3c00), 0x3c00);  /* the number */
    assert_int_equal(dtype_greater(DTYPE_f16, 0x3c00, 0x7e00), 0x3c00);
    assert_int_equal(dtype_lesser(DTYPE_f16, 0xfe01, 0x7e02), 0x7e00);
    assert_int_equal(dtype_abs(DTYPE_i8, 0x80), 0x80);
    assert_int_equal(dtype_abs(DTYPE_i8, 0xff), 1);
    assert_int_equal(dtype_abs(DTYPE_u8, 0xff), 0xff);
    assert_int_equal(dtype_abs(DTYPE_f6e3m2, 0x25), 0x05);
}

static void order(void **state)
{
    (void)state;
    assert_int_equal(dtype_order(DTYPE_i64, UINT64_MAX, 0), DORDER_LESS);
    assert_int_equal(dtype_order(DTYPE_u64, UINT64_MAX, UINT64_MAX - 1), DORDER_GREATER);
    assert_int_equal(dtype_order(DTYPE_f32, 0x80000000, 0), DORDER_EQUAL);
    assert_int_equal(dtype_order(DTYPE_f8e4m3, 0x7f, 0x7f), DORDER_NONE);
    assert_int_equal(dtype_order(DTYPE_bool, 1, 255), DORDER_EQUAL);
    assert_int_equal(dtype_order(DTYPE_i1, 1, 0), DORDER_LESS);
}

static void bit_operations(void **state)
{
    (void)state;
    assert_int_equal(dtype_and(DTYPE_u4, 12, 10), 8);
    assert_int_equal(dtype_or(DTYPE_u4, 12, 10), 14);
    assert_int_equal(dtype_xor(DTYPE_i4, 12, 10), 6);
    assert_int_equal(dtype_not(DTYPE_u5, 1), 30);
    assert_int_equal(dtype_and(DTYPE_bool, 1, 2), 1);
    assert_int_equal(dtype_xor(DTYPE_bool, 1, 2), 0);
    assert_int_equal(dtype_not(DTYPE_bool, 2), 0);
    assert_int_equal(dtype_shl(DTYPE_u4, 5, 1), 10);
    assert_int_equal(dtype_shl(DTYPE_u4, 5, 4), 0);
    assert_int_equal(dtype_shr(DTYPE_u4, 12, 2), 3);
    assert_int_equal(dtype_shr(DTYPE_i4, 12, 2), 15);
    assert_int_equal(dtype_shr(DTYPE_i4, 12, 9), 15);
    assert_int_equal(dtype_shr(DTYPE_i4, 7, 9), 0);
    assert_true(dtype_shr(DTYPE_i64, (uint64_t)1 << 63, 64) == UINT64_MAX);
    assert_true(dtype_shr(DTYPE_u64, UINT64_MAX, 64) == 0);
}

/* ---- public functions ------------------------------------------------ */

static void public_names(void **state)
{
    (void)state;
    size_t count = 0;
    for (const char *name; (name = tilus_type_name(count)); count++)
        assert_int_equal(tilus_type_bits(name), dtype_bits((DType)count + 1));
    assert_int_equal(count, DTYPE_COUNT - 1);
    assert_null(tilus_type_name(SIZE_MAX));
    assert_true(tilus_type_is_float("f6e3m2"));
    assert_false(tilus_type_is_float("i6"));
    assert_true(tilus_type_max("f8e4m3") == 448);
    assert_true(tilus_type_min("i6") == -32);
}

static void public_unknown_types(void **state)
{
    (void)state;
    static const char *const unknown[] = {"", "none", "f6", NULL};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_int_equal(tilus_type_bits(unknown[i]), 0);
        assert_false(tilus_type_is_float(unknown[i]));
        assert_true(isnan(tilus_type_max(unknown[i])));
        assert_true(isnan(tilus_decode(unknown[i], 0)));
        assert_true(tilus_encode(unknown[i], 1) == 0);
    }
}

static void public_codes(void **state)
{
    (void)state;
    assert_true(tilus_decode("i4", 0xf) == -1);
    assert_true(tilus_decode("u4", 0xff) == 15);        /* bits above are ignored */
    assert_true(tilus_decode("f4e2m1", 0xf7) == 6);
    assert_true(tilus_encode("f6e3m2", 1e9) == 0x1f);
    unsigned char data[3] = {0, 0, 0};
    tilus_set_bits(data, 1, 6, 0x3f);
    assert_true(data[0] == 0xc0 && data[1] == 0x0f && data[2] == 0);
    assert_true(tilus_get_bits(data, 1, 6) == 0x3f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decode_follows_the_formula),
        cmocka_unit_test(decode_of_integers),
        cmocka_unit_test(decode_of_bool),
        cmocka_unit_test(decode_of_wide_floats),
        cmocka_unit_test(encode_inverts_decode),
        cmocka_unit_test(encode_finds_the_nearest_value),
        cmocka_unit_test(encode_saturates_or_overflows),
        cmocka_unit_test(encode_of_nan),
        cmocka_unit_test(encode_of_zero_and_tiny),
        cmocka_unit_test(encode_of_bool),
        cmocka_unit_test(encode_of_ue8m0),
        cmocka_unit_test(encode_of_f32_is_the_machines),
        cmocka_unit_test(encode_of_bf16_and_tf32_by_bits),
        cmocka_unit_test(f16_is_the_compilers),
        cmocka_unit_test(known_extremes),
        cmocka_unit_test(extremes_are_the_sorted_ends),
        cmocka_unit_test(known_codes),
        cmocka_unit_test(infinity_and_nan),
        cmocka_unit_test(alignment),
        cmocka_unit_test(names_state_the_format),
        cmocka_unit_test(find_round_trip),
        cmocka_unit_test(cast_between_narrow_types),
        cmocka_unit_test(cast_between_integers_saturates),
        cmocka_unit_test(cast_of_f64_to_integers),
        cmocka_unit_test(cast_of_64_bit_integers_rounds_once),
        cmocka_unit_test(cast_of_64_bit_integers_is_the_machines),
        cmocka_unit_test(cast_of_64_bit_integers_overflows),
        cmocka_unit_test(cast_between_wide_floats),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(bools_are_true_when_not_zero),
        cmocka_unit_test(f32_arithmetic_is_the_machines),
        cmocka_unit_test(f32_sums_do_not_round_twice),
        cmocka_unit_test(f64_arithmetic),
        cmocka_unit_test(small_float_arithmetic),
        cmocka_unit_test(integers_divide_downward),
        cmocka_unit_test(wide_integers_divide),
        cmocka_unit_test(f32_division_is_the_machines),
        cmocka_unit_test(mod_of_floats),
        cmocka_unit_test(f32_fma_is_the_machines),
        cmocka_unit_test(fma_rounds_once),
        cmocka_unit_test(minimum_and_maximum),
        cmocka_unit_test(order),
        cmocka_unit_test(bit_operations),
        cmocka_unit_test(public_names),
        cmocka_unit_test(public_unknown_types),
        cmocka_unit_test(public_codes),
    };
    return cmocka_run_group_tests_name("types", tests, NULL, NULL);
}
