/* The checks of launch arguments, which need no driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "rt_fixture.h"

/* Checks (p, m, n, k); NULL expects success. */
static void assert_check(uint64_t p, int64_t m, int64_t n, int64_t k, const char *expected)
{
    int64_t grid[3];
    char message[256] = "stale";
    tilus_arg args[] = {{.pointer = p}, {.integer = m}, {.integer = n}, {.integer = k}};
    tilus_status status = tilus_kernel_check(&scale, args, 4, grid, message, sizeof message);
    assert_int_equal(status, expected ? TILUS_ERROR_ARGUMENT : TILUS_OK);
    assert_string_equal(message, expected ? expected : "");
}

static void names_the_broken_fact(void **state)
{
    (void)state;
    assert_check(32, 64, 5, 6, NULL);
    assert_check(0x7f0008, 64, 5, 6, "argument %p = 0x7f0008 is not aligned to 16 bytes");
    assert_check(0, 100, 5, 6, "argument %m = 100 is not divisible by 16");
    assert_check(0, 4112, 5, 6, "argument %m = 4112 is outside [-64, 4096]");
    assert_check(0, -80, 5, 6, "argument %m = -80 is outside [-64, 4096]");
    assert_check(0, INT64_C(1) << 31, 5, 6, "argument %m = 2147483648 does not fit in i32");
    assert_check(0, 64, -1, 6, "argument %n = -1 does not fit in u32");
    assert_check(0, 64, INT64_C(1) << 32, 6, "argument %n = 4294967296 does not fit in u32");
}

static void limits_the_grid(void **state)
{
    (void)state;
    assert_check(0, -64, 5, 6, "the grid's extent of dimension 0 is -4");
    assert_check(0, 64, 3 * 65535, 6, NULL);
    assert_check(0, 64, 3 * 65535 + 1, 6, "the grid's extent of dimension 1 is 65536, more than 65535");
    assert_check(0, 64, 5, INT64_MIN, "the grid's extent of dimension 2 is -9223372036854775808");
}

static void counts_arguments(void **state)
{
    (void)state;
    int64_t grid[3];
    char message[64];
    tilus_arg args[5] = {{0}};
    assert_int_equal(tilus_kernel_check(&scale, args, 5, grid, message, sizeof message),
                     TILUS_ERROR_ARGUMENT);
    assert_string_equal(message, "program takes 4 arguments, got 5");
    assert_int_equal(tilus_kernel_check(&scale, NULL, 0, grid, NULL, 0), TILUS_ERROR_ARGUMENT);
}

/* Evaluates one code as the first extent of a program with (p, m, n, k). */
static void assert_extent(const tilus_code *code, size_t length, int64_t expected,
                          const char *error)
{
    int64_t grid[3];
    char message[128];
    tilus_arg args[] = {{.pointer = 0}, {.integer = 64}, {.integer = 10}, {.integer = 23}};
    tilus_kernel_info info = scale;
    info.grid_rank = 1;
    info.grid[0] = code;
    info.grid_length[0] = length;
    tilus_status status = tilus_kernel_check(&info, args, 4, grid, message, sizeof message);
    assert_string_equal(message, error ? error : "");
    assert_int_equal(status, error ? TILUS_ERROR_ARGUMENT : TILUS_OK);
    if (!error)
        assert_int_equal(grid[0], expected);
    if (!error)
        assert_true(grid[1] == 1 && grid[2] == 1);
}

#define EXTENT(expected, error, ...)                                          \
    assert_extent((const tilus_code[]){__VA_ARGS__},                          \
                  COUNT(((const tilus_code[]){__VA_ARGS__})), expected, error)

static void evaluates_grids(void **state)
{
    (void)state;
    EXTENT(8, NULL, A(3), C(3), OP(ceil_div));
    EXTENT(7, NULL, A(3), C(3), OP(div));
    EXTENT(2, NULL, A(3), C(3), OP(mod));
    EXTENT(10, NULL, A(2), A(1), OP(min));
    EXTENT(64, NULL, A(2), A(1), OP(max));
    EXTENT(13, NULL, A(2), OP(neg), A(3), OP(add));
    EXTENT(54 * 2, NULL, A(1), A(2), OP(sub), C(2), OP(mul));
    EXTENT(INT32_MAX, NULL, C(INT32_MAX));
    EXTENT(0, "the grid's extent of dimension 0 is 2147483648, more than 2147483647", C(INT64_C(1) << 31));
    EXTENT(0, "the grid's extent of dimension 0: division by zero", A(1), C(0), OP(div));
    EXTENT(0, "the grid's extent of dimension 0: overflow of 64 bits", C(INT64_MAX), C(2), OP(mul));
}

static void refuses_malformed_code(void **state)
{
    (void)state;
    EXTENT(0, "the grid's extent of dimension 0: malformed code", A(4));
    EXTENT(0, "the grid's extent of dimension 0: malformed code", C(1), OP(add));
    EXTENT(0, "the grid's extent of dimension 0: malformed code", OP(neg));
    EXTENT(0, "the grid's extent of dimension 0: malformed code", C(1), C(2));
    EXTENT(0, "the grid's extent of dimension 0: malformed code", C(1), OP(OP_COUNT));
    assert_extent(NULL, 0, 0, "the grid's extent of dimension 0: malformed code");
    tilus_code *many = calloc(100000, sizeof *many);
    assert_extent(many, 100000, 0, "the grid's extent of dimension 0: malformed code");
    free(many);
}

static void names_every_status(void **state)
{
    (void)state;
    assert_string_equal(tilus_status_name(TILUS_OK), "TILUS_OK");
    for (int i = 0; i <= TILUS_ERROR_INTERNAL; i++)
        assert_int_equal(strncmp(tilus_status_name((tilus_status)i), "TILUS_", 6), 0);
    assert_string_equal(tilus_status_name((tilus_status)99), "unknown status");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_the_broken_fact),
        cmocka_unit_test(limits_the_grid),
        cmocka_unit_test(counts_arguments),
        cmocka_unit_test(evaluates_grids),
        cmocka_unit_test(refuses_malformed_code),
        cmocka_unit_test(names_every_status),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
