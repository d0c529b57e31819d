/* lib/scalar/difference.c against enumeration: each Difference of small numbers, and
 * some at the ends of 64 bits, narrowed to each small window. */
#include "scalar/difference.h"
#include "support/scalar.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

/* A sum of 65 bits. */
typedef struct Wide {
    int64_t high, low;      /* high * 2^32 + low, 0 <= low < 2^32 */
} Wide;

static Wide wide_subtract(int64_t a, int64_t b)
{
    int64_t high = (a >> 32) - (b >> 32), low = (a & UINT32_MAX) - (b & UINT32_MAX);
    return (Wide){high + (low >> 32), low & UINT32_MAX};
}

static int wide_compare(Wide a, int64_t b)
{
    int64_t high = b >> 32, low = b & UINT32_MAX;
    if (a.high != high)
        return a.high < high ? -1 : 1;
    return a.low < low ? -1 : a.low > low;
}

static bool wide_is_multiple(Wide a, int64_t small)
{
    int64_t high = floor_mod(a.high, small) * floor_mod(INT64_C(1) << 32, small);
    return floor_mod(high + a.low, small) == 0;
}

/* Returns true when `sum` is a value plus a rest, by the definition. */
static bool has_sum(const Difference *d, int64_t sum)
{
    for (unsigned i = 0; i < d->count; i++) {
        Wide rest = wide_subtract(sum, d->values[i]);
        bool above = d->rest_min == INT64_MIN || wide_compare(rest, d->rest_min) >= 0;
        bool below = d->rest_max == INT64_MAX || wide_compare(rest, d->rest_max) <= 0;
        if (d->rest_divisor == 0 ? wide_compare(rest, 0) == 0
                                 : above && below && wide_is_multiple(rest, d->rest_divisor))
            return true;
    }
    return false;
}

static void check_narrow(const Difference *d, int64_t below, int64_t above)
{
    Difference inside = *d;
    unsigned expected = 0;
    for (int64_t sum = 1 - below; sum < above; sum++)
        expected += has_sum(d, sum);
    assert_int_equal(difference_narrow(&inside, below, above),
                     expected <= DIFFERENCE_VALUES);
    if (expected > DIFFERENCE_VALUES)
        return;
    assert_true(difference_is_exact(&inside));
    assert_int_equal(inside.count, expected);
    for (unsigned i = 0; i < inside.count; i++) {
        assert_in_range(inside.values[i] + below, 1, below + above - 1);
        assert_true(has_sum(d, inside.values[i]));
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(inside.values[i], inside.values[j]);
    }
}

static void check_windows(const Difference *d)
{
    for (int64_t below = 1; below <= 9; below += 2)
        for (int64_t above = 1; above <= 9; above += 4)
            check_narrow(d, below, above);
}

/* Ends of the rest and values at which sums leave 64 bits, too. */
static const int64_t ends[] = {INT64_MIN, INT64_MIN + 1, -7, -4, -1, 0, 1,
                               2,         5,             8,  39, INT64_MAX - 1, INT64_MAX};
static const int64_t values[] = {INT64_MIN, INT64_MIN + 3, -40, -6, -1, 0, 3, 41, INT64_MAX};
enum { ENDS = sizeof ends / sizeof *ends, VALUES = sizeof values / sizeof *values };

static void narrowed_sets_are_exact(void **state)
{
    (void)state;
    for (int64_t divisor = 0; divisor <= 6; divisor++)
        for (int lo = 0; lo < ENDS; lo++)
            for (int hi = lo; hi < ENDS; hi++)
                for (int v = 0; v < VALUES; v++) {
                    Difference d = {.count = 1 + (unsigned)v % 2,
                                    .values = {values[v], values[(v + 2) % VALUES]},
                                    .rest_divisor = divisor,
                                    .rest_min = divisor ? ends[lo] : 0,
                                    .rest_max = divisor ? ends[hi] : 0};
                    check_windows(&d);
                }
}

/* Two values whose rests interleave: none is lost, none is there twice. */
static void narrowed_sets_are_joined(void **state)
{
    (void)state;
    for (int64_t divisor = 1; divisor <= 8; divisor++)
        for (int64_t a = -12; a <= 12; a++)
            for (int64_t b = a; b <= 12; b++) {
                Difference d = {.count = 3, .values = {a, b, a - divisor},
                                .rest_min = -divisor - 1, .rest_max = 2 * divisor + 1,
                                .rest_divisor = divisor};
                check_windows(&d);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(narrowed_sets_are_exact),
        cmocka_unit_test(narrowed_sets_are_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
