/* Operands and reference of the matmul benchmark: what it checks products with. */
#include "matmul/bench.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

enum { N = 208, K = 300, M = 3 };

typedef struct Case {
    const char *weights, *activations, *result;
    int64_t group;
    tilus_zeros zeros;
    const char *product;
    bool gated;
} Case;

static MatmulSpec spec_of(const Case *c)
{
    const tilus_matmul_problem problem = {
        .weights = c->weights, .activations = c->activations, .result = c->result, .n = N,
        .k = K, .group = c->group, .zeros = c->zeros, .product = c->product,
        .function = c->gated ? TILUS_EPILOGUE_SILU : TILUS_EPILOGUE_NONE, .gated = c->gated};
    MatmulSpec spec;
    char message[256] = "";
    bool ok = matmul_spec(&problem, &spec, message, sizeof message);
    assert_string_equal(message, "");
    assert_true(ok);
    return spec;
}

/* Returns row m of A times column n of B. */
static double dot(const Data *data, int64_t m, int64_t n)
{
    double a[K], b[K], sum = 0;
    data_row(data, m, a);
    data_column(data, n, b);
    for (int64_t k = 0; k < K; k++)
        sum += a[k] * b[k];
    return sum;
}

/* All of C by the definition, with one rounding. */
static uint8_t *multiply(const Data *data)
{
    DType type = data->spec->result;
    size_t size = dtype_bits(type) / 8;
    uint8_t *c = malloc(M * N * size);
    int64_t columns = data->spec->gated ? N / 2 : N;
    for (int64_t n = 0; n < columns; n++)
        for (int64_t m = 0; m < M; m++) {
            double value = dot(data, m, n);
            if (data->spec->gated)
                value *= dot(data, m, columns + n) / (1 + exp(-value));
            uint64_t code = dtype_encode(type, value);
            memcpy(c + (size_t)(m * columns + n) * size, &code, size);
        }
    return c;
}

/* A right C passes; one whose checked elements are zero, or one of them no number, does not;
 * nor does one in which only the last row of A is wrong. */
static void check_case(const Case *c)
{
    enum { SEED = 7 };
    MatmulSpec spec = spec_of(c);
    Data data;
    Reference reference;
    assert_true(data_make(&data, &spec, M, SEED));
    assert_true(reference_make(&reference, &data, SEED));
    uint8_t *right = multiply(&data);
    size_t size = dtype_bits(spec.result) / 8, row = (spec.gated ? N / 2 : N) * size;
    double tolerance = reference_tolerance(&spec);
    assert_true(reference_error(&reference, M, right) < tolerance);
    memset(right + (M - 1) * row, 0, row);
    assert_true(reference_error(&reference, M, right) > 0.1);
    memset(right, 0, M * row);
    assert_true(fabs(reference_error(&reference, M, right) - 1) < 1e-9);
    memset(right + (size_t)reference.columns[9] * size, 0xff, size);
    assert_true(isnan(reference_error(&reference, M, right)));
    free(right);
    reference_free(&reference);
    data_free(&data);
}

static void test_reference(void **state)
{
    static const Case cases[] = {
        {"u1", NULL, NULL, 128, TILUS_ZEROS_NONE, NULL, false},
        {"u3", "bf16", NULL, 32, TILUS_ZEROS_INTEGER, NULL, false},
        {"i4", NULL, "f32", 0, TILUS_ZEROS_INTEGER, NULL, false},
        {"u4", "i8", "bf16", 64, TILUS_ZEROS_FLOAT, NULL, false},
        {"f6e3m2", "f8e4m3", NULL, 256, TILUS_ZEROS_NONE, NULL, false},
        {"f8e4m3", NULL, NULL, 128, TILUS_ZEROS_NONE, NULL, false},
        {"f8e5m2", NULL, NULL, 0, TILUS_ZEROS_FLOAT, NULL, false},
        {"u4", NULL, "f32", 128, TILUS_ZEROS_NONE, NULL, true},
        {"u4", NULL, NULL, 128, TILUS_ZEROS_NONE, "f8e4m3", false},
        {"i6", "bf16", NULL, 32, TILUS_ZEROS_NONE, "i8", true},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* Plain operands as the library takes them: element e in the bits from e * bits on. */
static void test_operands(void **state)
{
    (void)state;
    const Case c = {"i3", NULL, NULL, 128, TILUS_ZEROS_INTEGER, NULL, false};
    MatmulSpec spec = spec_of(&c);
    Data data;
    double column[K];
    assert_true(data_make(&data, &spec, M, 1));
    assert_int_equal(data.groups, 3);
    assert_int_equal(data.code_bytes, (N * K * 3 + 7) / 8);
    assert_int_equal(data.zero_bytes, N * 3);
    data_column(&data, 5, column);
    for (int64_t k = 0; k < K; k++) {
        uint64_t element = 5 * K + (uint64_t)k, code = 0;
        for (unsigned bit = 0; bit < 3; bit++) {
            uint64_t at = 3 * element + bit;
            code |= (uint64_t)(data.codes[at / 8] >> at % 8 & 1) << bit;
        }
        size_t group = (size_t)(5 * 3 + k / 128);
        uint64_t scale = data.scales[2 * group] | (uint64_t)data.scales[2 * group + 1] << 8;
        double wanted = (dtype_decode(DTYPE_i3, code) - (int8_t)data.zeros[group]) *
                        dtype_decode(DTYPE_f16, scale);
        assert_true(column[k] == wanted);
        assert_in_range((data.zeros[group] + 4) & 0xff, 0, 7);
    }
    data_free(&data);
}

/* Columns are of all parts of n, its ends among them, at different places in tiles. */
static void test_columns(void **state)
{
    (void)state;
    const Case c = {"u1", NULL, NULL, 128, TILUS_ZEROS_NONE, NULL, false};
    MatmulSpec spec = spec_of(&c);
    Data data;
    Reference reference;
    bool places[32] = {false};
    int places_met = 0;
    assert_true(data_make(&data, &spec, M, 1));
    assert_true(reference_make(&reference, &data, 1));
    assert_int_equal(reference.count, CHECKED_COLUMNS);
    assert_int_equal(reference.columns[0], 0);
    assert_int_equal(reference.columns[CHECKED_COLUMNS - 1], N - 1);
    for (int i = 0; i < CHECKED_COLUMNS; i++) {
        assert_true(i == 0 || reference.columns[i] > reference.columns[i - 1]);
        places_met += !places[reference.columns[i] % 32];
        places[reference.columns[i] % 32] = true;
    }
    assert_true(places_met > 20);
    reference_free(&reference);
    data_free(&data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_reference),
                                       cmocka_unit_test(test_operands),
                                       cmocka_unit_test(test_columns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
