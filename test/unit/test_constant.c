/* Constants: exact codes of every type, and the numbers that overflow one. */
#include "support/arena.h"
#include "types/constant.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static const uint64_t wide_codes[] = {
    0, 1, 3, UINT64_C(0x7fffffff), UINT64_C(0x80000000), UINT64_C(0xffffffff),
    UINT64_C(0x20000000000001), UINT64_C(0x76543210fedcba98), UINT64_C(0x7fffffffffffffff),
    UINT64_C(0x8000000000000000), UINT64_C(0x8000000000000001), UINT64_C(0xffffffffffffffff)};

static uint64_t code_mask(DType t)
{
    return UINT64_MAX >> (64 - dtype_bits(t));
}

static void check_code(DType t, uint64_t code)
{
    Constant n = constant_decode(t, code);
    assert_true(constant_equal(n, constant_decode(t, code)));
    assert_true(constant_equal(n, constant_negate(constant_negate(n))));
    assert_true(constant_fits(t, n));
    uint64_t again = constant_encode(t, n);
    assert_true(constant_equal(constant_decode(t, again), n));
    if (dtype_is_integer(t))
        assert_int_equal(again, code);
}

static void test_codes(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        for (uint64_t code = 0; dtype_bits(t) <= 16 && code <= code_mask(t); code++)
            check_code(t, code);
        for (size_t i = 0; i < sizeof wide_codes / sizeof *wide_codes; i++)
            check_code(t, wide_codes[i] & code_mask(t));
    }
}

/* The least and the greatest integer fit, their neighbors outside do not. */
static void test_integers(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        if (!dtype_is_integer(t))
            continue;
        bool is_signed = dtype_info[t].kind == DKIND_INT;
        uint64_t most = code_mask(t) >> is_signed, least = is_signed ? most + 1 : 0;
        assert_true(constant_fits(t, constant_of_magnitude(false, most)));
        assert_true(constant_fits(t, constant_of_magnitude(true, least)));
        assert_true(constant_fits(t, constant_of_real(-0.0)));
        assert_false(constant_fits(t, constant_of_real(-0.5)));
        assert_false(constant_fits(t, constant_of_magnitude(true, least + 1)));
        assert_false(constant_fits(t, constant_of_real(1e20)));
        assert_false(constant_fits(t, constant_of_real(INFINITY)));
        assert_false(constant_fits(t, constant_of_real(NAN)));
        if (dtype_bits(t) < 64)
            assert_false(constant_fits(t, constant_of_magnitude(false, most + 1)));
    }
}

/* Overflow begins halfway to the number that would follow the greatest. */
static void test_floats(void **state)
{
    (void)state;
    for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
        const DTypeInfo *info = &dtype_info[t];
        if (!dtype_is_float(t) || t == DTYPE_f64)
            continue;
        double most = dtype_max(t), binade = exp2(floor(log2(most)));
        double half = binade * exp2(-(double)info->mantissa) / 2;
        double sign = t == DTYPE_ue8m0 ? 1 : -1;
        assert_true(constant_fits(t, constant_of_real(sign * most)));
        assert_true(constant_fits(t, constant_of_real(sign * nextafter(most + half, 0))));
        assert_false(constant_fits(t, constant_of_real(sign * nextafter(most + half, INFINITY))));
        assert_false(constant_fits(t, constant_of_real(1e300)));
        assert_int_equal(constant_fits(t, constant_of_real(INFINITY)), dtype_has_infinity(t));
        assert_int_equal(constant_fits(t, constant_of_real(NAN)), dtype_has_nan(t));
    }
    /* Ties go to the even code, which 448 of f8e4m3 has and 6 of f4e2m1 has not. */
    assert_true(constant_fits(DTYPE_f8e4m3, constant_of_integer(464)));
    assert_false(constant_fits(DTYPE_f4e2m1, constant_of_integer(7)));
    assert_true(constant_fits(DTYPE_f32, constant_of_magnitude(true, UINT64_MAX)));
}

static void check_text(Constant n, bool is_float, const char *expected)
{
    OutOfMemory oom;
    Arena arena;
    Text text;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    text_init(&text, &arena);
    constant_print(&text, n, is_float);
    assert_string_equal(text_string(&text), expected);
    arena_free(&arena);
}

static void test_text(void **state)
{
    (void)state;
    check_text(constant_of_magnitude(false, UINT64_MAX), false, "18446744073709551615");
    check_text(constant_of_integer(INT64_MIN), false, "-9223372036854775808");
    check_text(constant_of_integer(3), true, "3.0");
    check_text(constant_of_real(-0.0), true, "-0.0");
    check_text(constant_of_real(1e6), false, "1000000");
    check_text(constant_of_real(0.1), true, "0.1");
    check_text(constant_of_real(-INFINITY), true, "-inf");
    check_text(constant_of_real(NAN), true, "nan");
    check_text(constant_of_integer((INT64_C(1) << 53) + 1), true, "9007199254740993");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes), cmocka_unit_test(test_integers),
        cmocka_unit_test(test_floats), cmocka_unit_test(test_text)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
