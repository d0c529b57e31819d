/* What scalars become: Philox 4x32-10 against its published answers, codes of arguments of
 * floats; and the errors of functions that compiled code approximates by formulas of its own,
 * on the CPU engine. */
#include "support/kernel_info.h"
#include "support/philox.h"
#include "tilus/tilus.h"
#include "types/dtype.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- Philox --------------------------------------------------------------- */

/* Random123's tests/kat_vectors, philox4x32 of 10 rounds. */
static const struct Answer {
    uint32_t counter[PHILOX_WORDS], key[PHILOX_KEYS], words[PHILOX_WORDS];
} answers[] = {
    {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
    {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
     {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
    {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
     {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
};

static void philox_gives_known_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        uint32_t words[PHILOX_WORDS];
        philox_block(answers[i].counter, answers[i].key, words);
        assert_memory_equal(words, answers[i].words, sizeof words);
    }
}

/* Four numbers one after the other have the words of one block; seed and counter are 64 bits. */
static void philox_numbers_words(void **state)
{
    (void)state;
    const uint64_t seed = 0x0123456789abcdef, first = UINT64_C(0x2345678900000000) * 4;
    const uint32_t counter[] = {0, 0x23456789, 0, 0}, key[] = {0x89abcdef, 0x01234567};
    uint32_t words[PHILOX_WORDS];
    philox_block(counter, key, words);
    for (unsigned i = 0; i < PHILOX_WORDS; i++) {
        assert_int_equal(philox_word(0, i), answers[0].words[i]);
        assert_int_equal(philox_word(seed, first + i), words[i]);
    }
}

/* ---- arguments of floats ---------------------------------------------------- */

static const struct Kind {
    tilus_arg_kind kind;
    DType type;
} kinds[] = {
    {TILUS_ARG_F16, DTYPE_f16}, {TILUS_ARG_BF16, DTYPE_bf16}, {TILUS_ARG_F32, DTYPE_f32},
};

static void assert_rounds(double value)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(kernel_float_code(kinds[i].kind, value),
                         dtype_encode(kinds[i].type, value));
}

static void arguments_round_as_casts(void **state)
{
    (void)state;
    static const double corners[] = {0, -0.0, 1, 65504, 65519.99, 65520, 6e-8, 2.9e-8, 3.4e38,
                                     3.5e38, 1e-45, 7e-46, 1e-310, 1e308, INFINITY, NAN};
    uint64_t bits = 0x9e3779b97f4a7c15;
    for (size_t i = 0; i < sizeof corners / sizeof *corners; i++) {
        assert_rounds(corners[i]);
        assert_rounds(-corners[i]);
    }
    for (unsigned i = 0; i < 100000; i++) {
        double value;
        bits = bits * 6364136223846793005 + 1442695040888963407;
        memcpy(&value, &bits, sizeof value);
        assert_rounds(value);
        assert_rounds(ldexp((double)(int64_t)bits, -60 - (int)(bits >> 32) % 32));
    }
}

/* ---- approximate functions ------------------------------------------------------ */

enum { COUNT = 1 << 16 };

static const char functions[] =
    "param SIZE = 65536\n"
    "program @functions<SIZE / 512>(%x: ptr<f32>, %e: ptr<f32>, %s: ptr<f32>, %c: ptr<f32>) {\n"
    "  %i = block_indices\n"
    "  %gx = view_global %x : f32[SIZE]\n"
    "  %ge = view_global %e : f32[SIZE]\n"
    "  %gs = view_global %s : f32[SIZE]\n"
    "  %gc = view_global %c : f32[SIZE]\n"
    "  %v = load_global %gx[%i * 512] : f32[512] @ spatial(32).local(16)\n"
    "  %ev = erf %v\n"
    "  %sv = sin %v\n"
    "  %cv = cos %v\n"
    "  store_global %ev, %ge[%i * 512]\n"
    "  store_global %sv, %gs[%i * 512]\n"
    "  store_global %cv, %gc[%i * 512]\n"
    "}\n";

/* Runs the functions over COUNT floats from `least` to `most`; values[0] gets these. */
static void run_functions(double least, double most, float values[4][COUNT])
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "functions", functions, strlen(functions), 1, NULL, 0);
    const tilus_cpu_options options = {.struct_size = sizeof options,
                                       .cpu = "sm_80", .opt_level = 2, .host_threads = 1};
    const tilus_arg args[] = {{.pointer = 0}, {.pointer = 1}, {.pointer = 2}, {.pointer = 3}};
    tilus_buffer buffers[4];
    for (unsigned i = 0; i < 4; i++)
        buffers[i] = (tilus_buffer){values[i], sizeof values[i]};
    for (unsigned i = 0; i < COUNT; i++)
        values[0][i] = (float)(least + (most - least) * i / (COUNT - 1));
    assert_non_null(m);
    assert_int_equal(tilus_run_on_cpu(m, "functions", args, 4, buffers, 4, &options, NULL),
                     TILUS_OK);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

static double worst(const float *x, const float *y, double (*f)(double))
{
    double most = 0;
    for (unsigned i = 0; i < COUNT; i++)
        most = fmax(most, fabs((double)y[i] - f((double)x[i])));
    return most;
}

static void assert_functions(double least, double most)
{
    float (*values)[COUNT] = malloc(4 * sizeof *values);
    assert_non_null(values);
    run_functions(least, most, values);
    double errors[] = {worst(values[0], values[1], erf), worst(values[0], values[2], sin),
                       worst(values[0], values[3], cos)};
    free(values);
    print_message("[%g, %g]: erf %.3g, sin %.3g, cos %.3g\n", least, most, errors[0], errors[1],
                  errors[2]);
    assert_true(errors[0] < 2e-7);
    assert_true(errors[1] < 4e-7);      /* of sin.approx, as much again */
    assert_true(errors[2] < 4e-7);
}

static void functions_keep_their_bounds(void **state)
{
    (void)state;
    assert_functions(-1.25, 1.25);
    assert_functions(-5, 5);
    assert_functions(-100, 100);
    assert_functions(99000, 100000);
    assert_functions(-1e-30, 1e-30);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(philox_gives_known_answers),
        cmocka_unit_test(philox_numbers_words),
        cmocka_unit_test(arguments_round_as_casts),
        cmocka_unit_test(functions_keep_their_bounds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
