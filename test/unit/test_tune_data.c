/* The check of results by tilus-tune: one wrong element is seen in any column. */
#include "tilus-tune/data.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

enum { N = 200, K = 300, M = 3, STEP = 7 };

typedef struct Fixture {
    Data data;
    float *right;               /* [M, N] */
} Fixture;

static double weight(const Data *d, int64_t n, int64_t k)
{
    double zero = ((const uint8_t *)d->zeros)[n];
    double scale = dtype_decode(d->spec.scales, ((const uint16_t *)d->scales)[n]);
    return (d->code_values[n * K + k] - zero) * scale;
}

static int set_up(void **state)
{
    const tilus_matmul_problem problem = {.weights = "u4", .activations = "f16",
                                          .result = "f32", .n = N, .k = K,
                                          .zeros = TILUS_ZEROS_INTEGER};
    MatmulSpec spec;
    char message[256];
    Fixture *f = calloc(1, sizeof *f);
    f->right = calloc(M * N, sizeof *f->right);
    assert_true(matmul_spec(&problem, &spec, message, sizeof message));
    assert_true(data_make(&f->data, &spec, M));
    for (int64_t i = 0; i < M * N; i++) {
        double sum = 0;
        for (int64_t k = 0; k < K; k++)
            sum += (double)f->data.a_values[i / N * K + k] * weight(&f->data, i % N, k);
        f->right[i] = (float)sum;
    }
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    Fixture *f = *state;
    data_free(&f->data);
    free(f->right);
    free(f);
    return 0;
}

static bool passes(Fixture *f)
{
    double error;
    char message[256];
    return data_check(&f->data, M, f->right, &error, message, sizeof message);
}

/* Of the result with `value` there. */
static bool passes_with(Fixture *f, int64_t row, int64_t column, float value)
{
    float *element = &f->right[row * N + column], before = *element;
    *element = value;
    bool ok = passes(f);
    *element = before;
    return ok;
}

static void test_right(void **state)
{
    assert_true(passes(*state));
}

/* The other rows are right. */
static void test_nan(void **state)
{
    for (int64_t row = 0; row < M; row++)
        for (int64_t column = 0; column < N; column += STEP)
            assert_false(passes_with(*state, row, column, NAN));
}

static void test_wrong(void **state)
{
    for (int64_t row = 0; row < M; row++)
        for (int64_t column = 0; column < N; column += STEP)
            assert_false(passes_with(*state, row, column, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_wrong),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
