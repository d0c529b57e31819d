/* Problems, parameters and the space of the matmul template, against the compiler. */
#define _GNU_SOURCE
#include "matmul/config.h"
#include "tilus/artefact.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static MatmulSpec spec_of(tilus_matmul_problem p)
{
    char message[256] = "";
    MatmulSpec s;
    if (!matmul_spec(&p, &s, message, sizeof message))
        fail_msg("%s", message);
    return s;
}

static MatmulDevice h200(void)
{
    return matmul_device("NVIDIA H200", 90, 132, 232448);
}

/* ---- problems --------------------------------------------------------- */

static void test_defaults(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 1, .k = 1});
    assert_int_equal(s.codes, DTYPE_u4);
    assert_int_equal(s.product, DTYPE_f16);
    assert_int_equal(s.result, DTYPE_f16);
    assert_int_equal(s.deferred_scale, -21);
    s = spec_of((tilus_matmul_problem){.weights = "i3", .activations = "bf16", .n = 8, .k = 8,
                                       .group = 512});
    assert_int_equal(s.codes, DTYPE_u3);
    assert_int_equal(s.offset, 4);
    assert_int_equal(s.scales, DTYPE_bf16);
    assert_int_equal(s.product, DTYPE_bf16);
    assert_int_equal(s.deferred_scale, -60);
    assert_int_equal(s.group, 128);
    assert_int_equal(s.repeats, 4);
}

/* Groups are parts that divide a packed block, of equal scales. */
static void test_groups(void **state)
{
    (void)state;
    static const int64_t groups[][3] = {{0, 0, 1}, {16, 16, 1}, {48, 16, 3},
                                        {80, 16, 5}, {32, 32, 1}, {64, 64, 1}, {96, 32, 3},
                                        {128, 128, 1}, {160, 32, 5}, {192, 64, 3}, {384, 128, 3},
                                        {1 << 23, 128, 1 << 16}};
    for (size_t i = 0; i < COUNT(groups); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 1, .k = 100,
                                                      .group = groups[i][0]});
        assert_int_equal(s.group, groups[i][1]);
        assert_int_equal(s.repeats, groups[i][2]);
    }
}

/* Scales of groups of 16 act on weights for any rows, and others on sums for few. */
static void count_scales(void *data, const MatmulConfig *c)
{
    ((int *)data)[c->scale_weights]++;
}

static void test_scales_of_16(void **state)
{
    (void)state;
    const MatmulDevice device = matmul_device("NVIDIA H200", 90, 132, 232448);
    for (int64_t m = 1; m <= 64; m *= 8)
        for (int64_t group = 16; group <= 32; group *= 2) {
            int counts[2] = {0};
            MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "f4e2m1", .n = 512, .k = 512,
                                                          .group = group, .scales = "f8e4m3"});
            matmul_enumerate(&s, 0, m, &device, count_scales, counts);
            assert_true(matmul_has_factor(&s) && s.result == DTYPE_f16);
            assert_int_equal(counts[0] > 0, group == 32);
            assert_int_equal(counts[1] > 0, group == 16 || m >= 32);
        }
}

/* A that is made no larger has kernels of its own, but where scales act on weights. */
static void test_wide_range(void **state)
{
    (void)state;
    tilus_matmul_problem problem = {.weights = "u4", .n = 64, .k = 256, .group = 128,
                                    .zeros = TILUS_ZEROS_INTEGER, .wide_range = true};
    MatmulConfig c = {64, 1, 4, 1, 4, 8, 2, 2, 0, 1, 1, 0};
    MatmulSpec s = spec_of(problem);
    char name[MATMUL_NAME_MAX];
    assert_int_equal(s.deferred_scale, -24);
    assert_false(matmul_zeros_by_mma(&s, &c));
    matmul_name(&s, &c, MATMUL_PREPARE, "sm_90a", name);
    assert_string_equal(name, "prepare-u4-f16-f16-g128-z1-wide-24-c8-t2-d128-sm_90a");
    c.scale_weights = 1;
    matmul_name(&s, &c, MATMUL_PREPARE, "sm_90a", name);
    assert_string_equal(name, "prepare-u4-f16-f16-g128-z1-l1-c8-t2-d128-sm_90a");
    problem.weights = "f6e3m2";
    problem.zeros = TILUS_ZEROS_FLOAT;
    assert_int_equal(spec_of(problem).deferred_scale, -12);
    problem.activations = "bf16";
    assert_false(spec_of(problem).wide_range);
    assert_int_equal(spec_of(problem).deferred_scale, -60);
}

/* The numbers of f8e5m2 are multiplied by 2^0 there, which names say, too. */
static void test_wide_range_of_f8e5m2(void **state)
{
    (void)state;
    static const MatmulProgram programs[] = {MATMUL_PREPARE, MATMUL_PRODUCT, MATMUL_ARRANGE,
                                             MATMUL_WGMMA};
    tilus_matmul_problem problem = {.weights = "f8e5m2", .n = 64, .k = 256, .group = 128};
    MatmulConfig c = {64, 1, 4, 1, 4, 8, 2, 2, 0, 1, 1, 0};
    MatmulSpec usual = spec_of(problem);
    problem.wide_range = true;
    MatmulSpec s = spec_of(problem);
    assert_int_equal(usual.deferred_scale, 3);
    assert_int_equal(s.deferred_scale, 0);
    for (size_t i = 0; i < 2 * COUNT(programs); i++) {
        char name[MATMUL_NAME_MAX], other[MATMUL_NAME_MAX];
        c.scale_weights = i >= COUNT(programs);
        matmul_name(&s, &c, programs[i % COUNT(programs)], "sm_90a", name);
        matmul_name(&usual, &c, programs[i % COUNT(programs)], "sm_90a", other);
        assert_int_equal(strcmp(name, other) == 0, c.scale_weights);
        assert_int_equal(strstr(name, "-wide0-") != NULL, !c.scale_weights);
    }
}

/* f16 holds the numbers of all but five types, whose exponents are too wide. */
static void test_product_types(void **state)
{
    (void)state;
    static const char *const wide[] = {"f6e5m0", "f7e5m1", "f7e6m0", "f8e6m1", "f8e7m0"};
    unsigned found = 0;
    for (DType t = 1; t < DTYPE_COUNT; t++) {
        if (dtype_bits(t) > 8 || !dtype_is_float(t) || t == DTYPE_ue8m0)
            continue;
        MatmulSpec s =
            spec_of((tilus_matmul_problem){.weights = dtype_name(t), .n = 1, .k = 1});
        bool listed = false;
        for (size_t i = 0; i < COUNT(wide); i++)
            listed |= strcmp(wide[i], dtype_name(t)) == 0;
        assert_int_equal(s.product, listed ? DTYPE_bf16 : DTYPE_f16);
        assert_int_equal(s.scales, DTYPE_f16);
        found += listed;
    }
    assert_int_equal(found, COUNT(wide));
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "f4e2m1", .n = 1, .k = 1});
    assert_int_equal(s.deferred_scale, -11);
}

/* One exponent bit: sign and magnitude of integers times 2^(1 - mantissa bits). */
static void test_floats_as_integers(void **state)
{
    (void)state;
    static const struct {
        const char *weights;
        DType stored, codes;
        int offset, fraction;
        unsigned count, stored_codes[16];
    } cases[] = {
        {"f3e1m1", DTYPE_i3, DTYPE_u3, 4, 0, 8, {0, 1, 2, 3, 0, 7, 6, 5}},
        {"f4e1m2", DTYPE_i4, DTYPE_u4, 8, 1, 16,
         {0, 1, 2, 3, 4, 5, 6, 7, 0, 15, 14, 13, 12, 11, 10, 9}},
        {"f5e1m3", DTYPE_i5, DTYPE_u5, 16, 2, 3, {0, 1, 2}},
        {"f6e1m4", DTYPE_i6, DTYPE_u6, 32, 3, 3, {0, 1, 2}},
        {"f7e1m5", DTYPE_i7, DTYPE_u7, 64, 4, 3, {0, 1, 2}},
        {"f8e1m6", DTYPE_i8, DTYPE_u8, 128, 5, 3, {0, 1, 2}},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = cases[i].weights, .n = 1,
                                                      .k = 1});
        assert_string_equal(dtype_name(s.weights), cases[i].weights);
        assert_int_equal(s.stored, cases[i].stored);
        assert_int_equal(s.codes, cases[i].codes);
        assert_int_equal(s.offset, cases[i].offset);
        assert_int_equal(s.fraction, cases[i].fraction);
        assert_int_equal(s.deferred_scale, -21);
        for (unsigned code = 0; code < cases[i].count; code++)
            assert_int_equal(matmul_stored_code(&s, code), cases[i].stored_codes[code]);
        unsigned least = (1u << dtype_bits(s.weights)) - 1;
        assert_int_equal(matmul_stored_code(&s, least), cases[i].offset + 1);
    }
}

/* Codes of other types stay as they are, also where two have one value. */
static void test_stored_as_they_are(void **state)
{
    (void)state;
    static const char *const types[] = {"u4", "i3", "f4e2m1", "f8e5m2"};
    for (size_t i = 0; i < COUNT(types); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = types[i], .n = 1, .k = 1});
        assert_int_equal(s.stored, s.weights);
        assert_int_equal(s.fraction, 0);
        for (unsigned code = 0; code < 1u << dtype_bits(s.weights); code++)
            assert_int_equal(matmul_stored_code(&s, code), code);
    }
}

static void test_refused(void **state)
{
    (void)state;
    const struct {
        tilus_matmul_problem problem;
        const char *message;
    } cases[] = {
        {{.n = 1, .k = 1}, "weights is NULL"},
        {{.weights = "u9", .n = 1, .k = 1}, "weights is \"u9\", which is none of u1"},
        {{.weights = "ue8m0", .n = 1, .k = 1}, "weights is \"ue8m0\""},
        {{.weights = "bool", .n = 1, .k = 1}, "weights is \"bool\""},
        {{.weights = "f16", .n = 1, .k = 1}, "weights is \"f16\""},
        {{.weights = "u4", .activations = "f32", .n = 1, .k = 1}, "activations is \"f32\""},
        {{.weights = "u4", .scales = "f32", .n = 1, .k = 1}, "scales is \"f32\""},
        {{.weights = "u4", .result = "i8", .n = 1, .k = 1},
         "result is \"i8\", which is none of f16, bf16 and f32"},
        {{.weights = "u4", .n = 0, .k = 1}, "n is 0, not 1 to 1048576"},
        {{.weights = "u4", .n = 1, .k = 8388609}, "k is 8388609, not 1 to 8388608"},
        {{.weights = "u4", .n = 1, .k = 1, .group = 40}, "group is 40, not 0 or a multiple of 16"},
        {{.weights = "f4e2m1", .n = 1, .k = 1, .scales = "f8e5m2", .group = 16},
         "scales is \"f8e5m2\", which is none of f16, bf16 and f8e4m3"},
        {{.weights = "f4e2m1", .n = 1, .k = 1, .scales = "f8e4m3"},
         "scales is \"f8e4m3\", but group is 0"},
        {{.weights = "u4", .n = 1, .k = 1, .scales = "f8e4m3", .group = 16,
          .zeros = TILUS_ZEROS_INTEGER},
         "scales is \"f8e4m3\", but zeros is not TILUS_ZEROS_NONE"},
        {{.weights = "u4", .n = 1, .k = 1, .scales = "f8e4m3", .group = 128, .product = "i8"},
         "scales is \"f8e4m3\", which products of i8 do not take: f16 or bf16"},
        {{.weights = "u4", .n = 1, .k = 1, .group = 48, .product = "i8"},
         "group is 48, which products of i8 do not take: multiples of 32"},
        {{.weights = "f8e5m2", .n = 1, .k = 1, .group = 16, .zeros = TILUS_ZEROS_FLOAT},
         "group is 16, but scales of less than 32 act on weights, and f16 does not hold"},
        {{.weights = "u4", .n = 1, .k = 1, .group = -128}, "group is -128"},
        {{.weights = "f4e2m1", .n = 1, .k = 1, .zeros = TILUS_ZEROS_INTEGER},
         "weights is \"f4e2m1\""},
        {{.weights = "u4", .n = 1, .k = 1, .zeros = (tilus_zeros)7}, "zeros is 7"},
        {{.weights = "u4", .n = 1, .k = 1, .function = (tilus_epilogue)9}, "function is 9"},
        {{.weights = "u4", .n = 1, .k = 1, .product = "f16"},
         "product is \"f16\", which is none of f8e4m3 and i8"},
        {{.weights = "u5", .n = 1, .k = 1, .product = "f8e4m3"},
         "weights is \"u5\", which is none of those that products of f8e4m3 take"},
        {{.weights = "i4", .n = 1, .k = 1, .product = "f8e4m3"}, "weights is \"i4\""},
        {{.weights = "f8e5m2", .n = 1, .k = 1, .product = "f8e4m3"}, "weights is \"f8e5m2\""},
        {{.weights = "f4e2m1", .n = 1, .k = 1, .product = "i8"},
         "weights is \"f4e2m1\", which is none of those that products of i8 take"},
        {{.weights = "u4", .activations = "i8", .n = 1, .k = 1, .product = "f8e4m3"},
         "activations is \"i8\", which products of f8e4m3 do not take: f16, bf16 or f8e4m3"},
        {{.weights = "u4", .n = 1, .k = 1, .zeros = TILUS_ZEROS_FLOAT, .product = "i8"},
         "zeros is given, but products of i8 take integer zero points alone, of u1 to u7 and i1 to i7"},
        {{.weights = "i8", .n = 1, .k = 1, .zeros = TILUS_ZEROS_INTEGER, .product = "i8"},
         "zeros is given, but products of i8 take integer zero points alone"},
        {{.weights = "f4e2m1", .n = 1, .k = 1, .zeros = TILUS_ZEROS_FLOAT, .product = "f8e4m3"},
         "zeros is given, but products of f8e4m3 take integer zero points alone, of u1 to u4"},
        {{.weights = "u4", .n = 1, .k = 1, .experts = 2, .product = "i8"}, "experts is given"},
        {{.weights = "u4", .n = 1, .k = 1, .residual = true, .multiply = true, .product = "i8"},
         "multiply is given"},
        {{.weights = "u4", .n = 24, .k = 1, .gated = true}, "n is 24, with gated not a multiple of 16"},
        {{.weights = "u4", .n = 32, .k = 1, .residual = true, .multiply = true, .gated = true},
         "gated is given, but multiply is, too"},
        {{.weights = "u4", .n = 32, .k = 1, .experts = 2, .combine = true, .gated = true},
         "gated is given, but combine is, too"},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s;
        char message[256] = "";
        assert_false(matmul_spec(&cases[i].problem, &s, message, sizeof message));
        if (!strstr(message, cases[i].message))
            fail_msg("'%s' is not in '%s'", cases[i].message, message);
    }
}

/* ---- parameters ------------------------------------------------------- */

static void assert_text(const MatmulSpec *s, const MatmulConfig *c, MatmulProgram program,
                        const char *parameters, const char *name)
{
    char text[MATMUL_TEXT_MAX], found[MATMUL_NAME_MAX];
    matmul_parameters(s, c, program, text);
    matmul_name(s, c, program, "sm_90a", found);
    assert_string_equal(text, parameters);
    assert_string_equal(found, name);
}

static void test_parameters(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "i4", .n = 64, .k = 256,
        .group = 128, .zeros = TILUS_ZEROS_INTEGER, .function = TILUS_EPILOGUE_SILU,
        .result = "f32"});
    MatmulConfig c = {64, 2, 4, 1, 2, 8, 2, 2, 0, 3, 0, 0};
    assert_text(&s, &c, MATMUL_PRODUCT,
                "W=i4 U=u4 A=f16 T=f16 S=f16 C=f32 OFFSET=8 GROUP=128 ZERO=1 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 ROWS=64 WARPS_N=2 WARPS_K=4 "
                "STAGE_K_TILES=1 BLOCKS=3 REGISTERS=0 STAGES=2 PREARRANGED_A=2 COLUMNS=8 "
                "TILES=2 BIAS=0 RESIDUAL=0 FUNCTION=1 DIVISOR=128",
                "matmul-i4-f16-f16-f16-f32-g128-z1-r64-x2-w4-e1-b3-s2-p2-c8-t2-function1-d128-"
                "sm_90a");
    assert_text(&s, &c, MATMUL_PREPARE,
                "W=u4 U=u4 A=f16 T=f16 GROUP=128 ZERO=1 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 COLUMNS=8 TILES=2 DIVISOR=128", "prepare-u4-f16-f16-g128-z1-c8-t2-d128-sm_90a");
    assert_text(&s, &c, MATMUL_PACK,
                "W=i4 U=u4 T=f16 S=f16 OFFSET=8 GROUP=128 ZERO=1 REPEATS=1 ROWS=64 "
                "TRANSPOSED=0", "pack-i4-f16-f16-g128-z1-x1-r64-sm_90a");
    c.scale_weights = 1;
    s.k = 24;
    assert_text(&s, &c, MATMUL_PREPARE,
                "W=u4 U=u4 A=f16 T=f16 GROUP=128 ZERO=1 SCALE_WEIGHTS=1 "
                "DEFERRED_SCALE=0 ZEROS_BY_MMA=0 COLUMNS=8 TILES=2 DIVISOR=8", "prepare-u4-f16-f16-g128-z1-l1-c8-t2-d8-sm_90a");
    c.scale_weights = 0;
    s.k = 25;
    s.zeros = TILUS_ZEROS_NONE;
    assert_text(&s, &c, MATMUL_PACK_ACROSS,
                "W=i4 U=u4 T=f16 S=f16 OFFSET=0 GROUP=128 ZERO=0 REPEATS=1 ROWS=64 "
                "TRANSPOSED=1", "pack-i4-f16-f16-g128-x1-r64-across1-sm_90a");
    assert_text(&s, &c, MATMUL_PREPARE,
                "W=u4 U=u4 A=f16 T=f16 GROUP=128 ZERO=1 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 COLUMNS=8 TILES=2 DIVISOR=1", "prepare-u4-f16-f16-g128-z1-c8-t2-d1-sm_90a");
}

/* The product that has the most parameters has them all, and room for their text and its name. */
static void test_most_parameters(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "f8e1m6", .activations = "bf16", .n = 1 << 16,
        .k = 1 << 14, .group = 128, .function = TILUS_EPILOGUE_GELU, .bias = true, .residual = true,
        .gated = true, .experts = 1024, .top = 8, .gather = true, .scatter = true});
    const MatmulConfig c = {128, 4, 1, 8, 16, 8, 16, 4, 0, 1, 1, 1};
    char text[MATMUL_TEXT_MAX], name[MATMUL_NAME_MAX];
    matmul_parameters(&s, &c, MATMUL_PRODUCT_EXPERTS, text);
    matmul_name(&s, &c, MATMUL_PRODUCT_EXPERTS, "sm_90a", name);
    static const char *const keys[] = {"W", "U", "A", "T", "S", "C", "OFFSET", "FRACTION", "GROUP", "ZERO",
        "SCALE_WEIGHTS", "DEFERRED_SCALE", "ZEROS_BY_MMA", "A_SUM_SCALE", "ROWS", "WARPS_N", "WARPS_K",
        "STAGE_K_TILES", "BLOCKS", "REGISTERS", "COPIER_REGISTERS", "STAGES", "PREARRANGED_A", "A_SLICES",
        "DIGITS", "FEW", "COLUMNS", "TILES", "BIAS", "RESIDUAL", "FUNCTION", "GATED", "DIVISOR", "EXPERTS", "GATHER",
        "SCATTER"};
    const char *at = text;
    for (size_t i = 0; i < COUNT(keys); i++) {
        size_t length = strlen(keys[i]);
        if (strncmp(at, keys[i], length) != 0 || at[length] != '=')
            fail_msg("%s is not at '%s'", keys[i], at);
        at += strcspn(at, " ");
        at += *at == ' ';
    }
    assert_string_equal(at, "");
    assert_string_equal(name, "matmul_experts-i8-bf16-bf16-bf16-bf16-q5-g128-i1-r128-x4-w1-e8-b1-n248-s16-"
                              "p4-a128-digits1-c8-t16-bias1-residual1-function2-gated1-d128-experts1024-gather1-scatter1-sm_90a");
}

/* Gates are of packing, of unpacking and of products alone, and halve C. */
static void test_gated_parameters(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 64, .k = 256, .group = 128,
        .function = TILUS_EPILOGUE_SILU, .gated = true});
    static const MatmulProgram gated[] = {MATMUL_PACK, MATMUL_PACK_ACROSS, MATMUL_UNPACK_F32, MATMUL_PRODUCT,
                                          MATMUL_WGMMA, MATMUL_PRODUCT_EXPERTS, MATMUL_WGMMA_EXPERTS, MATMUL_A8};
    static const MatmulProgram others[] = {MATMUL_PREPARE, MATMUL_ARRANGE, MATMUL_QUANTIZE, MATMUL_COMBINE};
    const MatmulConfig by_mma = {64, 2, 4, 1, 2, 8, 2, 2, 0, 3, 0, 0};
    const MatmulConfig by_wgmma = {64, 4, 1, 1, 2, 8, 16, 3, 1, 1, 0, 1};
    char text[MATMUL_TEXT_MAX], name[MATMUL_NAME_MAX];
    for (size_t i = 0; i < COUNT(gated) + COUNT(others); i++) {
        MatmulProgram program = i < COUNT(gated) ? gated[i] : others[i - COUNT(gated)];
        bool wgmma = program == MATMUL_WGMMA || program == MATMUL_WGMMA_EXPERTS || program == MATMUL_A8;
        matmul_parameters(&s, wgmma ? &by_wgmma : &by_mma, program, text);
        matmul_name(&s, wgmma ? &by_wgmma : &by_mma, program, "sm_90a", name);
        assert_int_equal(strstr(text, " GATED=1") != NULL, i < COUNT(gated));
        assert_int_equal(strstr(name, "-gated1") != NULL, i < COUNT(gated));
    }
    assert_int_equal(matmul_columns_of_c(&s, s.n), 32);
    assert_int_equal(matmul_row_of_b(&s, 8), 32);
    assert_int_equal(matmul_row_of_b(&s, 17), 9);
    assert_int_equal(matmul_row_of_b(&s, 63), 63);
    assert_int_equal(matmul_row_of_b(&s, 64), 64);
    s.gated = false;
    assert_int_equal(matmul_columns_of_c(&s, s.n), 64);
    assert_int_equal(matmul_row_of_b(&s, 8), 8);
}

/* Signed integers lift their offset, in a @prepare that is as of any integers with zero
 * points. */
static void test_lifted_parameters(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "i4", .n = 64, .k = 256,
                                                  .group = 128, .activations = "bf16"});
    MatmulConfig c = {64, 1, 8, 1, 2, 8, 2, 2, 0, 1, 1, 1};
    assert_text(&s, &c, MATMUL_PRODUCT,
                "W=i4 U=u4 A=bf16 T=bf16 S=bf16 C=bf16 OFFSET=8 GROUP=128 ZERO=0 "
                "SCALE_WEIGHTS=0 DEFERRED_SCALE=-60 ZEROS_BY_MMA=1 ROWS=64 WARPS_N=1 "
                "WARPS_K=8 STAGE_K_TILES=1 BLOCKS=1 REGISTERS=232 COPIER_REGISTERS=40 STAGES=2 PREARRANGED_A=2 "
                "COLUMNS=8 TILES=2 BIAS=0 RESIDUAL=0 FUNCTION=0 DIVISOR=128",
                "matmul-i4-bf16-bf16-bf16-bf16-g128-i1-r64-x1-w8-e1-b1-n232-s2-p2-c8-t2-"
                "d128-sm_90a");
    assert_text(&s, &c, MATMUL_PREPARE,
                "W=u4 U=u4 A=bf16 T=bf16 GROUP=128 ZERO=1 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-60 ZEROS_BY_MMA=1 A_SUM_SCALE=71 COLUMNS=8 TILES=2 "
                "DIVISOR=128",
                "prepare-u4-bf16-bf16-g128-z1-i1-c8-t2-d128-sm_90a");
    assert_true(matmul_zeros_by_mma(&s, &c));
    c.scale_weights = 1;
    assert_false(matmul_zeros_by_mma(&s, &c));
    c.scale_weights = 0;
    s.zeros = TILUS_ZEROS_FLOAT;
    assert_false(matmul_zeros_by_mma(&s, &c));
}

/* Products by wgmma, and rows of A for them. */
static void test_parameters_by_wgmma(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "i4", .n = 64, .k = 256,
        .group = 128, .zeros = TILUS_ZEROS_FLOAT, .bias = true});
    MatmulConfig c = {64, 4, 1, 1, 4, 8, 16, 3, 1, 1, 0, 1};
    assert_int_equal(matmul_product_program(&c), MATMUL_WGMMA);
    assert_int_equal(matmul_prepare_program(&c), MATMUL_ARRANGE);
    assert_text(&s, &c, MATMUL_WGMMA,
                "W=i4 U=u4 A=f16 T=f16 S=f16 C=f16 OFFSET=8 GROUP=128 ZERO=2 SCALE_WEIGHTS=1 "
                "DEFERRED_SCALE=0 ROWS=64 BM=128 STAGES=4 M_STEP=16 BIAS=1 RESIDUAL=0 FUNCTION=0 "
                "BULK_STORE=1 "
                "WGMMA=1",
                "matmul_wgmma-i4-f16-f16-f16-f16-g128-z2-l1-r64-m128-s4-bias1-u1-sm_90a");
    assert_text(&s, &c, MATMUL_ARRANGE,
                "W=u4 U=u4 A=f16 T=f16 SCALE_WEIGHTS=1 DEFERRED_SCALE=0 DIVISOR=128 WGMMA=1",
                "arrange-u4-f16-f16-l1-d128-sm_90a");
    c.prearranged_a = 2;
    assert_int_equal(matmul_product_program(&c), MATMUL_PRODUCT);
    assert_int_equal(matmul_prepare_program(&c), MATMUL_PREPARE);
}

/* Blocks of a cluster that have parts of k share no A. */
static void test_parameters_of_parts(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 4096, .k = 4096, .group = 128});
    MatmulConfig c = {64, 2, 3, 1, 4, 8, 16, 3, 1, 1, 0, 1};
    assert_int_equal(matmul_product_program(&c), MATMUL_PARTS);
    assert_int_equal(matmul_parts(&c), 3);
    assert_int_equal(matmul_cluster(&s, &c), 1);
    assert_text(&s, &c, MATMUL_PARTS,
                "W=u4 U=u4 A=f16 T=f16 S=f16 C=f16 OFFSET=0 GROUP=128 ZERO=0 SCALE_WEIGHTS=1 DEFERRED_SCALE=0 ROWS=64 BM=128 "
                "TILE_N=128 A_STAGES=4 PARTS=3 STAGES=4 M_STEP=32 BIAS=0 RESIDUAL=0 FUNCTION=0 BULK_STORE=1 WGMMA=1",
                "matmul_parts-u4-f16-f16-f16-f16-g128-l1-r64-m128-n128-parts3-s4-u1-sm_90a");
    c.warps_k = 1;
    assert_int_equal(matmul_parts(&c), 1);
    assert_int_equal(matmul_cluster(&s, &c), 2);
    c.prearranged_a = 2;
    c.warps_k = 4;
    assert_int_equal(matmul_parts(&c), 1);
}

/* Clusters lie within parts of a device, so that those of some sizes leave multiprocessors idle. */
static void test_clusters_at_once(void **state)
{
    (void)state;
    const MatmulDevice h200 = matmul_device("NVIDIA H200", 90, 132, 232448);
    const MatmulDevice small = matmul_device("a part of one", 90, 4, 232448);
    const int h200_clusters[] = {132, 66, 39, 30, 22, 17, 15, 15};
    for (int parts = 1; parts <= (int)COUNT(h200_clusters); parts++)
        assert_int_equal(matmul_clusters_at_once(parts, &h200), h200_clusters[parts - 1]);
    assert_int_equal(matmul_clusters_at_once(4, &small), 1);
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 256, .k = 1024, .group = 128});
    MatmulConfig c = {64, 4, 8, 1, 4, 8, 8, 3, 0, 1, 0, 1};
    assert_true(matmul_config_fits(&s, &c, &h200));
    assert_false(matmul_config_fits(&s, &c, &small));
}

/* Neighbors in n share A where tiles have single fragments, and each has one. */
static void test_clusters(void **state)
{
    (void)state;
    enum { SINGLE = 24, PAIR = 16 };
    const struct {
        tilus_matmul_problem problem;
        int tiles, cluster;
    } cases[] = {
        {{.weights = "u4", .n = 256, .k = 512, .group = 128}, SINGLE, 2},
        {{.weights = "u8", .n = 256, .k = 512, .group = 128}, SINGLE, 2},
        {{.weights = "u4", .n = 255, .k = 512, .group = 128}, SINGLE, 2},
        {{.weights = "u4", .n = 128, .k = 512, .group = 128}, SINGLE, 1},
        {{.weights = "u4", .n = 257, .k = 512, .group = 128}, SINGLE, 1},
        {{.weights = "u4", .n = 31 * 128, .k = 512, .group = 128}, SINGLE, 1},
        {{.weights = "u4", .n = 33 * 128, .k = 512, .group = 128}, SINGLE, 2},
        {{.weights = "u4", .n = 256, .k = 512, .group = 128}, PAIR, 1},
        {{.weights = "u4", .n = 256, .k = 512, .group = 128, .experts = 8}, SINGLE, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of(cases[i].problem);
        bool single = cases[i].tiles == SINGLE;
        MatmulConfig c = {64, single ? 2 : 4, 1, 1, 4, 8, cases[i].tiles, 3, 1, 1, 0, 1};
        char name[MATMUL_NAME_MAX];
        assert_int_equal(matmul_cluster(&s, &c), cases[i].cluster);
        matmul_name(&s, &c, MATMUL_WGMMA, "sm_90a", name);
        assert_int_equal(strstr(name, "-cluster2-") != NULL, cases[i].cluster == 2);
    }
}

/* Products of 8 bits: where bytes of weights have codes, and the rows of A. */
static void test_parameters_of_bytes(void **state)
{
    (void)state;
    MatmulConfig c = {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1};
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 64, .k = 256,
        .group = 128, .product = "f8e4m3"});
    assert_int_equal(matmul_program_of(&s, MATMUL_WGMMA), MATMUL_A8);
    assert_int_equal(matmul_program_of(&s, MATMUL_ARRANGE), MATMUL_QUANTIZE);
    assert_text(&s, &c, MATMUL_A8,
                "W=u4 U=u4 O=f8e4m3 P=f8e4m3 S=f16 C=f16 INTEGERS=0 PLACE=0 DOWN=0 "
                "DEFERRED_SCALE=-9 GROUP=128 ROWS=64 BM=64 STAGES=4 M_STEP=32 M_GROUP=16 BIAS=0 "
                "RESIDUAL=0 FUNCTION=0 BULK_STORE=1 A8=1",
                "matmul_a8-u4-f8e4m3-f16-f16-g128-r64-m64-s4-u1-sm_90a");
    assert_text(&s, &c, MATMUL_QUANTIZE, "A=f16 P=f8e4m3 INTEGERS=0 DIVISOR=128 A8=1",
                "quantize-f16-f8e4m3-d128-sm_90a");
    s = spec_of((tilus_matmul_problem){.weights = "f4e2m1", .n = 64, .k = 256, .group = 128,
        .product = "f8e4m3", .activations = "f8e4m3"});
    assert_int_equal(matmul_program_of(&s, MATMUL_ARRANGE), MATMUL_COPY_ROWS);
    assert_false(matmul_prepares(&s, &c));
    assert_int_equal(s.place, 4);
    assert_int_equal(s.down, 2);
    assert_int_equal(s.deferred_scale, -6);
    s.a_stride = 264;
    assert_true(matmul_prepares(&s, &c));
    s = spec_of((tilus_matmul_problem){.weights = "f5e1m3", .n = 64, .k = 256, .group = 32,
        .product = "i8"});
    assert_text(&s, &c, MATMUL_A8,
                "W=i5 U=u5 O=i8 P=i8 S=f16 C=f16 INTEGERS=1 PLACE=3 DOWN=0 DEFERRED_SCALE=5 "
                "FRACTION=2 GROUP=32 ROWS=64 BM=64 STAGES=4 M_STEP=32 M_GROUP=16 BIAS=0 RESIDUAL=0 "
                "FUNCTION=0 BULK_STORE=1 A8=1",
                "matmul_a8-i5-i8-f16-f16-q2-g32-r64-m64-s4-u1-sm_90a");
}

/* Products by wgmma read A where it is, or behind @arrange. */
static void test_reads_a_where_it_is(void **state)
{
    (void)state;
    const struct {
        tilus_matmul_problem problem;
        int scale_weights;
        bool prepares;
    } cases[] = {
        {{.weights = "u4", .n = 64, .k = 320, .group = 128}, 1, false},
        {{.weights = "u4", .n = 64, .k = 320, .group = 128}, 0, true},      /* powers of two */
        {{.weights = "u4", .n = 64, .k = 320, .group = 16}, 1, true},       /* another order of k */
        {{.weights = "u4", .n = 64, .k = 328, .group = 128}, 1, true},
        {{.weights = "u4", .n = 64, .k = 320, .a_stride = 328, .group = 128}, 1, false},
        {{.weights = "u4", .n = 64, .k = 320, .a_stride = 325, .group = 128}, 1, true},
        {{.weights = "u4", .n = 64, .k = 320, .group = 128, .activations = "bf16"}, 1, false},
        {{.weights = "u4", .n = 64, .k = 320, .group = 128, .activations = "f8e4m3"}, 1, true},
        {{.weights = "u4", .n = 64, .k = 320, .group = 128, .experts = 8}, 1, false},
        {{.weights = "u4", .n = 64, .k = 320, .group = 128, .experts = 8, .gather = true}, 1, true},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of(cases[i].problem);
        MatmulConfig c = {64, 4, 1, 1, 4, 8, 8, 3, cases[i].scale_weights, 1, 0, 0};
        assert_int_equal(matmul_prepares(&s, &c), cases[i].prepares);
        c.prearranged_a = 2;
        assert_true(matmul_prepares(&s, &c));
    }
}

/* Configurations that the template has, on the one architecture. */
static void test_fits_by_wgmma(void **state)
{
    (void)state;
    const MatmulDevice h200 = matmul_device("NVIDIA H200", 90, 132, 232448);
    const MatmulDevice a100 = matmul_device("A100", 80, 108, 166912);
    const struct {
        const char *weights;
        int64_t group;
        tilus_zeros zeros;
        MatmulConfig config;
        bool fits;
    } cases[] = {
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}, true},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 16, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 0, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 16, 3, 0, 1, 0, 1}, true},
        {"f4e2m1", 64, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_FLOAT, {64, 4, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 32, TILUS_ZEROS_FLOAT, {64, 4, 1, 1, 4, 8, 16, 3, 1, 1, 0, 1}, true},
        {"u8", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 3, 8, 16, 3, 1, 1, 0, 1}, true},
        {"u8", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 16, 3, 1, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 2, 1, 1, 4, 8, 8, 3, 1, 1, 0, 1}, true},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 2, 1, 1, 4, 8, 8, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 24, 3, 1, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 1, 1, 1, 4, 8, 8, 3, 1, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 8, 1, 4, 8, 8, 3, 0, 1, 0, 1}, true},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 9, 1, 4, 8, 8, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 2, 1, 3, 8, 8, 3, 0, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 2, 2, 1, 3, 8, 32, 3, 1, 1, 0, 1}, true},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 4, 8, 1, 3, 1, 1, 0, 1}, false},
        {"f4e2m1", 128, TILUS_ZEROS_NONE, {64, 4, 1, 1, 0, 8, 8, 3, 1, 1, 0, 1}, false},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){
            .weights = cases[i].weights, .n = 512, .k = 1024, .group = cases[i].group,
            .zeros = cases[i].zeros});
        assert_int_equal(matmul_config_fits(&s, &cases[i].config, &h200), cases[i].fits);
        assert_false(matmul_config_fits(&s, &cases[i].config, &a100));
    }
}

/* They share what follows from the integers alone. */
static void test_parameters_of_floats_as_integers(void **state)
{
    (void)state;
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "f3e1m1", .n = 64, .k = 256,
                                                  .group = 128});
    MatmulConfig c = {64, 2, 4, 1, 2, 8, 2, 2, 0, 3, 0, 0};
    assert_text(&s, &c, MATMUL_PRODUCT,
                "W=i3 U=u3 A=f16 T=f16 S=f16 C=f16 OFFSET=4 GROUP=128 ZERO=0 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 ROWS=64 WARPS_N=2 WARPS_K=4 "
                "STAGE_K_TILES=1 BLOCKS=3 REGISTERS=0 STAGES=2 PREARRANGED_A=2 COLUMNS=8 "
                "TILES=2 BIAS=0 RESIDUAL=0 FUNCTION=0 DIVISOR=128",
                "matmul-i3-f16-f16-f16-f16-g128-r64-x2-w4-e1-b3-s2-p2-c8-t2-d128-sm_90a");
    assert_text(&s, &c, MATMUL_PACK,
                "W=i3 U=u3 F=f3e1m1 T=f16 S=f16 OFFSET=0 GROUP=128 ZERO=0 REPEATS=1 ROWS=64 "
                "TRANSPOSED=0", "pack-i3-f3e1m1-f16-f16-g128-x1-r64-sm_90a");
    s = spec_of((tilus_matmul_problem){.weights = "f6e1m4", .n = 64, .k = 256, .group = 128,
                                       .zeros = TILUS_ZEROS_FLOAT});
    assert_text(&s, &c, MATMUL_PRODUCT,
                "W=i6 U=u6 A=f16 T=f16 S=f16 C=f16 OFFSET=32 FRACTION=3 GROUP=128 ZERO=2 "
                "SCALE_WEIGHTS=0 DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 ROWS=64 WARPS_N=2 "
                "WARPS_K=4 STAGE_K_TILES=1 BLOCKS=3 REGISTERS=0 STAGES=2 PREARRANGED_A=2 "
                "COLUMNS=8 TILES=2 BIAS=0 RESIDUAL=0 FUNCTION=0 DIVISOR=128",
                "matmul-i6-f16-f16-f16-f16-q3-g128-z2-r64-x2-w4-e1-b3-s2-p2-c8-t2-d128-sm_90a");
    assert_text(&s, &c, MATMUL_PREPARE,
                "W=u6 U=u6 A=f16 T=f16 GROUP=128 ZERO=1 SCALE_WEIGHTS=0 "
                "DEFERRED_SCALE=-21 ZEROS_BY_MMA=0 COLUMNS=8 TILES=2 DIVISOR=128", "prepare-u6-f16-f16-g128-z1-c8-t2-d128-sm_90a");
    assert_text(&s, &c, MATMUL_PACK,
                "W=i6 U=u6 F=f6e1m4 T=f16 S=f16 OFFSET=0 FRACTION=3 GROUP=128 ZERO=2 "
                "REPEATS=1 ROWS=64 TRANSPOSED=0", "pack-i6-f6e1m4-f16-f16-g128-z2-x1-r64-sm_90a");
    assert_text(&s, &c, MATMUL_UNPACK_BF16,
                "W=i6 U=u6 T=f16 S=f16 O=bf16 OFFSET=32 FRACTION=3 GROUP=128 ZERO=2 ROWS=64 "
                "DIVISOR=128", "unpack-i6-f16-f16-bf16-q3-g128-z2-r64-d128-sm_90a");
}

static void test_sizes(void **state)
{
    (void)state;
    const int64_t slices[][2] = {{1, 2}, {128, 2}, {129, 2}, {300, 4}, {1024, 8}, {1100, 10},
                                 {127 * 128, 128}, {57344, 448}, {28672, 224}, {4608, 36}};
    for (size_t i = 0; i < COUNT(slices); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 1,
                                                      .k = slices[i][0]});
        assert_int_equal(matmul_slices(&s), slices[i][1]);
    }
    assert_int_equal(matmul_bucket(1), 1);
    assert_int_equal(matmul_bucket(17), 32);
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 8192, .k = 57344,
        .group = 128, .zeros = TILUS_ZEROS_INTEGER});
    MatmulConfig c = {64, 2, 4, 2, 2, 1, 1, 2, 0, 2, 0, 0};
    PackedForm form = matmul_packed_form(&s, 64, 1);
    assert_int_equal(form.codes, 4096);
    assert_int_equal(form.scales, 128);
    assert_int_equal(form.zeros, 64);
    assert_int_equal(form.block, 4096 + 128 + 64);
    assert_int_equal(form.panel, 4 * (64 + 4));
    assert_int_equal(matmul_packed_blocks(&s, 64), 128 * 448);
    assert_int_equal(matmul_iterations(&s, &c), 64 * 56);
    assert_int_equal(matmul_blocks(&s, &c, 132), 264);
    c.per_sm = 0;
    assert_int_equal(matmul_blocks(&s, &c, 132), 64);
    s.n = 257;                                  /* padded to 256 */
    assert_int_equal(matmul_packed_blocks(&s, 128), 4 * 448);
    s.n = 8192;
    /* 2.50 us and all bytes at the rate of reads. */
    MatmulDevice device = h200();
    assert_true(matmul_floor(&s, 1, &device) > 56.2 && matmul_floor(&s, 1, &device) < 56.4);
}

/* ---- against the compiler --------------------------------------------- */

extern const char matmul_template[];
extern const size_t matmul_template_size;

/* "A=1 B=2" cut in place at its spaces and signs. */
static size_t split_defines(char *text, tilus_define *defines, size_t most)
{
    size_t count = 0;
    char *rest = text;
    for (char *word; (word = strsep(&rest, " "));) {
        assert_true(count < most);
        char *sign = strchr(word, '=');
        *sign = '\0';
        defines[count++] = (tilus_define){word, sign + 1};
    }
    return count;
}

static size_t compiled_shared_bytes(const MatmulSpec *s, const MatmulConfig *c,
                                    MatmulProgram program)
{
    char parameters[MATMUL_TEXT_MAX];
    matmul_parameters(s, c, program, parameters);
    tilus_define defines[40];
    size_t size, count = split_defines(parameters, defines, COUNT(defines));
    char message[256];
    void *bytes;
    tilus_diag *diag = tilus_diag_new();
    tilus_jit_options options = {.struct_size = sizeof options,
                                 .defines = defines, .define_count = count,
                                 .program = matmul_program_name(program),
                                 .target = "sm_90a", .opt_level = 0};
    tilus_status status = tilus_jit(diag, matmul_template, matmul_template_size, &options,
                                    &bytes, &size);
    tilus_diag_write(diag, NULL, NULL);
    assert_int_equal(status, TILUS_OK);
    tilus_artefact *artefact;
    status = tilus_artefact_read(bytes, size, &artefact, message, sizeof message);
    assert_int_equal(status, TILUS_OK);
    size_t shared = artefact->info->shared_bytes;
    free(artefact);
    free(bytes);
    tilus_diag_free(diag);
    return shared;
}

enum { STAGES_MAX = 32 };       /* two mbarriers each, of 64 that a program may have */

/* Configurations of all kinds that take shared memory. */
static const struct {
    tilus_matmul_problem problem;
    MatmulConfig config;
} shared_cases[] = {
    {{.weights = "u4", .n = 64, .k = 512, .group = 128},
     {64, 1, 4, 2, 2, 8, 1, 2, 0, 2, 0, 0}},
    {{.weights = "i4", .n = 64, .k = 512, .group = 64, .zeros = TILUS_ZEROS_INTEGER},
     {32, 2, 2, 1, 3, 1, 1, 1, 0, 2, 0, 0}},
    {{.weights = "f6e3m2", .n = 64, .k = 512, .group = 32, .zeros = TILUS_ZEROS_FLOAT},
     {64, 2, 1, 2, 3, 8, 2, 2, 1, 1, 0, 0}},
    {{.weights = "f5e1m3", .n = 64, .k = 512, .group = 64, .zeros = TILUS_ZEROS_FLOAT},
     {32, 2, 2, 1, 3, 1, 1, 2, 0, 1, 0, 0}},
    {{.weights = "u2", .n = 64, .k = 512, .group = 128},
     {32, 2, 1, 1, 3, 8, 1, 1, 0, 0, 0, 0}},
    {{.weights = "u2", .n = 64, .k = 512, .group = 128},
     {32, 2, 2, 1, 3, 8, 1, 2, 0, 0, 0, 0}},
    {{.weights = "u1", .n = 64, .k = 1024}, {32, 1, 2, 4, 5, 2, 1, 2, 0, 0, 0, 0}},
    {{.weights = "u1", .n = 64, .k = 512}, {32, 1, 2, 1, STAGES_MAX, 1, 1, 2, 0, 0, 0, 0}},
    {{.weights = "u8", .n = 64, .k = 512, .group = 256},
     {32, 1, 4, 1, 0, 8, 1, 1, 0, 0, 0, 0}},
    {{.weights = "i4", .n = 64, .k = 1024, .group = 32},
     {64, 1, 8, 1, 2, 8, 2, 2, 0, 1, 1, 1}},
    {{.weights = "u4", .n = 64, .k = 512, .group = 128},
     {64, 4, 1, 1, 5, 8, 8, 3, 1, 1, 0, 1}},
    {{.weights = "f3e2m0", .n = 63, .k = 512, .group = 128},
     {32, 8, 1, 1, 3, 8, 6, 3, 0, 1, 0, 1}},
    {{.weights = "u8", .n = 64, .k = 512, .result = "f32", .zeros = TILUS_ZEROS_INTEGER},
     {128, 2, 1, 1, 2, 8, 16, 3, 1, 1, 0, 1}},
    {{.weights = "u3", .n = 64, .k = 512, .group = 128, .experts = 3, .scatter = true},
     {64, 4, 1, 1, 3, 8, 4, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 64, .k = 512, .group = 128},
     {64, 2, 1, 1, 3, 8, 24, 3, 1, 1, 0, 1}},
    {{.weights = "u8", .n = 255, .k = 512, .group = 128, .zeros = TILUS_ZEROS_INTEGER},
     {32, 4, 1, 1, 3, 8, 32, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 256, .k = 1024, .group = 128}, {64, 2, 4, 1, 3, 8, 8, 3, 1, 1, 0, 1}},
    {{.weights = "u8", .n = 256, .k = 1024, .group = 128}, {32, 4, 2, 1, 3, 8, 16, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 256, .k = 1024, .group = 128}, {64, 2, 2, 1, 3, 8, 32, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 255, .k = 1024, .result = "f32", .zeros = TILUS_ZEROS_INTEGER},
     {128, 2, 3, 1, 4, 8, 8, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 256, .k = 1024, .group = 128, .zeros = TILUS_ZEROS_INTEGER},
     {32, 8, 5, 1, 4, 8, 6, 3, 0, 1, 1, 1}},
    {{.weights = "u4", .n = 512, .k = 1024, .group = 128, .gated = true}, {64, 4, 8, 1, 4, 8, 16, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 256, .k = 512, .group = 128}, {64, 2, 1, 1, 3, 8, 8, 3, 1, 1, 0, 1}},
    {{.weights = "u5", .n = 64, .k = 512, .experts = 3, .residual = true},
     {32, 4, 1, 1, 2, 8, 32, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 64, .k = 512, .experts = 3, .residual = true},
     {32, 8, 1, 1, 2, 8, 8, 3, 0, 1, 0, 1}},
    {{.weights = "u3", .n = 64, .k = 512, .group = 64, .product = "f8e4m3"},
     {64, 4, 1, 1, 5, 8, 8, 3, 0, 1, 0, 1}},
    {{.weights = "i8", .n = 63, .k = 512, .activations = "i8", .product = "i8"},
     {128, 2, 1, 1, 3, 8, 16, 3, 0, 1, 0, 1}},
    {{.weights = "u4", .n = 64, .k = 1024, .group = 128}, {32, 1, 2, 1, 2, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 1024, .group = 32, .zeros = TILUS_ZEROS_INTEGER},
     {64, 1, 2, 1, 3, 1, 1, 4, 0, 1, 1, 0}},
    {{.weights = "u6", .n = 64, .k = 1024, .group = 128, .prologue = TILUS_PROLOGUE_RMS_NORM},
     {32, 2, 2, 1, 2, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "i4", .n = 64, .k = 2048, .group = 64, .prologue = TILUS_PROLOGUE_RMS_NORM},
     {32, 2, 4, 1, 2, 1, 1, 4, 0, 1, 1, 0}},
    {{.weights = "u4", .n = 64, .k = 8192, .group = 64, .zeros = TILUS_ZEROS_FLOAT, .prologue = TILUS_PROLOGUE_RMS_NORM},
     {32, 2, 4, 1, 3, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 1280, .group = 64, .zeros = TILUS_ZEROS_INTEGER, .prologue = TILUS_PROLOGUE_RMS_NORM},
     {32, 4, 2, 1, 3, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 768, .group = 128, .experts = 3, .gather = true},
     {32, 4, 1, 2, 3, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "u2", .n = 64, .k = 4096, .zeros = TILUS_ZEROS_INTEGER, .prologue = TILUS_PROLOGUE_RMS_NORM},
     {32, 1, 4, 2, 5, 1, 1, 4, 0, 1, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 512, .group = 128, .gated = true},
     {64, 1, 4, 2, 2, 8, 1, 2, 0, 2, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 512, .group = 128, .gated = true},
     {64, 4, 1, 1, 5, 8, 8, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 256, .k = 512, .group = 128, .gated = true},
     {64, 2, 1, 1, 3, 8, 24, 3, 1, 1, 0, 1}},
    {{.weights = "u8", .n = 64, .k = 512, .result = "f32", .group = 128, .gated = true},
     {32, 4, 1, 1, 3, 8, 32, 3, 1, 1, 0, 1}},
    {{.weights = "u5", .n = 64, .k = 512, .experts = 3, .gated = true},
     {32, 4, 1, 1, 2, 8, 32, 3, 1, 1, 0, 1}},
    {{.weights = "u4", .n = 64, .k = 512, .experts = 3, .residual = true, .gated = true},
     {32, 8, 1, 1, 2, 8, 8, 3, 0, 1, 0, 1}},
    {{.weights = "u3", .n = 64, .k = 512, .group = 64, .product = "f8e4m3", .gated = true},
     {64, 4, 1, 1, 5, 8, 8, 3, 0, 1, 0, 1}},
    {{.weights = "u4", .n = 64, .k = 768, .group = 128, .experts = 128, .top = 8, .combine = true},
     {32, 1, 8, 1, 3, 1, 1, 6, 0, 1, 0, 0}},
    {{.weights = "i5", .n = 64, .k = 1024, .group = 32, .zeros = TILUS_ZEROS_FLOAT, .experts = 1024, .top = 3,
      .combine = true, .gather = true, .residual = true, .bias = true},
     {128, 1, 2, 1, 4, 1, 1, 5, 0, 1, 0, 0}},
    {{.weights = "f4e2m1", .n = 64, .k = 512, .group = 16, .scales = "f8e4m3", .experts = 32, .top = 8,
      .combine = true, .early_routing = true},
     {64, 1, 4, 1, 1, 1, 1, 8, 1, 1, 0, 0}},
    {{.weights = "u4", .n = 64, .k = 512, .group = 64, .zeros = TILUS_ZEROS_INTEGER, .experts = 8, .top = 4,
      .combine = true}, {64, 1, 4, 1, 2, 1, 1, 6, 0, 1, 0, 0}},
    {{.weights = "i4", .n = 64, .k = 2048, .group = 128, .experts = 256, .top = 8, .combine = true},
     {32, 1, 8, 1, 2, 1, 1, 5, 0, 1, 0, 0}},
    {{.weights = "u1", .n = 64, .k = 128, .group = 128, .experts = 1024, .top = 1, .combine = true},
     {32, 1, 2, 1, 1, 1, 1, 5, 0, 1, 0, 0}},
};

/* All programs but @unpack, which compile with these parameters. */
static void test_shared_bytes(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(shared_cases); i++) {
        MatmulSpec s = spec_of(shared_cases[i].problem);
        MatmulProgram product = matmul_product_program(&shared_cases[i].config);
        assert_int_equal(matmul_shared_bytes(&s, &shared_cases[i].config),
                         compiled_shared_bytes(&s, &shared_cases[i].config,
                                               matmul_program_of(&s, product)));
        if (!matmul_is_a8(&s))
            assert_int_equal(compiled_shared_bytes(&s, &shared_cases[i].config,
                                                   matmul_prepare_program(&shared_cases[i].config)), 0);
        assert_int_equal(compiled_shared_bytes(&s, &shared_cases[i].config, MATMUL_PACK), 0);
        assert_int_equal(compiled_shared_bytes(&s, &shared_cases[i].config, MATMUL_PACK_ACROSS), 0);
    }
}

/* ---- the space -------------------------------------------------------- */

typedef struct Seen {
    const MatmulSpec *spec;
    const MatmulDevice *device;
    unsigned count;
} Seen;

static void see(void *data, const MatmulConfig *c)
{
    Seen *seen = data;
    assert_true(matmul_config_fits(seen->spec, c, seen->device));
    assert_int_equal(matmul_slices(seen->spec) % (c->warps_k * c->stage_k_tiles), 0);
    assert_true(matmul_cost(seen->spec, c, 8, seen->device) > 0);
    seen->count++;
}

/* Blocks arrange A where as many of them have room for it, or where two of a multiprocessor become one that has. */
static void test_arranged_in_blocks(void **state)
{
    (void)state;
    const struct {
        const char *weights;
        int64_t k, n;
        MatmulConfig before, after;
    } cases[] = {
        {"u4", 8192, 8192, {32, 2, 2, 4, 4, 1, 1, 2, 0, 0, 0, 0}, {32, 2, 2, 4, 4, 1, 1, 4, 0, 0, 0, 0}},
        {"u3", 8192, 8192, {32, 2, 2, 4, 4, 1, 1, 2, 0, 0, 0, 0}, {32, 2, 2, 4, 4, 1, 1, 4, 0, 0, 0, 0}},
        {"u4", 28672, 8192, {32, 1, 4, 4, 2, 1, 1, 2, 0, 0, 0, 0}, {32, 2, 4, 2, 4, 1, 1, 4, 0, 0, 0, 0}},
        {"u2", 28672, 8192, {32, 1, 4, 4, 2, 1, 1, 2, 0, 0, 0, 0}, {32, 2, 4, 2, 4, 1, 1, 4, 0, 0, 0, 0}},
        {"u3", 28672, 8192, {32, 1, 4, 4, 2, 1, 1, 2, 0, 0, 0, 0}, {32, 1, 4, 4, 2, 1, 1, 2, 0, 0, 0, 0}},
        {"u4", 28672, 8192, {32, 1, 4, 4, 2, 1, 1, 2, 0, 2, 0, 0}, {32, 2, 4, 2, 4, 1, 1, 4, 0, 1, 0, 0}},
        {"u4", 28672, 8192, {32, 1, 4, 4, 3, 1, 1, 2, 0, 0, 0, 0}, {32, 1, 4, 4, 3, 1, 1, 2, 0, 0, 0, 0}},
        {"u4", 28672, 8192, {64, 1, 4, 4, 3, 1, 1, 2, 0, 0, 0, 0}, {64, 1, 4, 4, 3, 1, 1, 2, 0, 0, 0, 0}},
        {"u4", 5120, 55296, {64, 2, 2, 2, 3, 1, 1, 2, 0, 2, 0, 0}, {64, 4, 2, 1, 6, 1, 1, 4, 0, 1, 0, 0}},
        {"u8", 27648, 5120, {128, 1, 8, 1, 2, 1, 1, 2, 0, 1, 0, 0}, {128, 1, 8, 1, 2, 1, 1, 4, 0, 1, 0, 0}},
        {"u3", 27648, 5120, {128, 1, 8, 1, 2, 1, 1, 2, 0, 1, 0, 0}, {128, 1, 8, 1, 2, 1, 1, 2, 0, 1, 0, 0}},
        {"u3", 5120, 7168, {32, 2, 4, 2, 4, 1, 1, 2, 0, 1, 0, 0}, {32, 2, 4, 2, 4, 1, 1, 4, 0, 1, 0, 0}},
        {"u4", 27648, 5120, {64, 1, 4, 2, 4, 1, 1, 2, 0, 1, 0, 0}, {64, 1, 4, 2, 4, 1, 1, 2, 0, 1, 0, 0}},
        {"u4", 768, 2048, {32, 4, 1, 2, 8, 1, 1, 2, 0, 1, 0, 0}, {32, 4, 1, 2, 8, 1, 1, 4, 0, 1, 0, 0}},
        {"u4", 8192, 8192, {32, 2, 2, 4, 4, 2, 1, 2, 0, 0, 0, 0}, {32, 2, 2, 4, 4, 2, 1, 2, 0, 0, 0, 0}},
        {"u4", 8192, 8192, {32, 2, 2, 4, 0, 1, 1, 1, 0, 0, 0, 0}, {32, 2, 2, 4, 0, 1, 1, 1, 0, 0, 0, 0}},
    };
    MatmulDevice device = h200();
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = cases[i].weights, .n = cases[i].n,
                                                      .k = cases[i].k, .group = 128});
        MatmulConfig c = cases[i].before;
        matmul_arrange_in_blocks(&s, &c, &device);
        assert_memory_equal(&c, &cases[i].after, sizeof c);
    }
}

/* Configurations of earlier programs that read A as it is. */
static void test_renewed(void **state)
{
    (void)state;
    static const int cases[][3] = {{4, 0, 2}, {0, 0, 1}, {4, 1, 1}, {4, 2, 2}};     /* stages, before, after */
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulConfig c = {.stages = cases[i][0], .prearranged_a = cases[i][1]};
        matmul_config_renew(&c);
        assert_int_equal(c.prearranged_a, cases[i][2]);
    }
}

/* Where threads that multiply get more by it than as many as all have. */
static void test_lending(void **state)
{
    (void)state;
    const struct {
        MatmulConfig config;
        int limit;              /* 0: it does not fit */
    } cases[] = {
        {{32, 8, 1, 1, 2, 8, 4, 2, 0, 1, 0, 0}, 168},
        {{32, 8, 1, 1, 2, 8, 8, 2, 0, 1, 0, 1}, 232},
        {{32, 4, 1, 1, 2, 8, 2, 2, 0, 2, 0, 1}, 216},
        {{32, 4, 1, 1, 2, 8, 1, 2, 0, 1, 0, 1}, 0},     /* 248 of 255 */
        {{32, 4, 1, 1, 2, 8, 1, 2, 0, 3, 0, 1}, 0},     /* 120 of 128 */
        {{32, 4, 2, 1, 0, 8, 1, 1, 0, 1, 0, 1}, 0},     /* none that copies */
        {{32, 1, 2, 1, 2, 8, 1, 2, 0, 2, 0, 1}, 0},     /* no warpgroup that multiplies */
    };
    MatmulDevice device = h200();
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u2", .n = 8192, .k = 8192});
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(matmul_config_fits(&s, &cases[i].config, &device),
                         cases[i].limit > 0);
        if (cases[i].limit)
            assert_int_equal(matmul_registers_limit(&cases[i].config), cases[i].limit);
    }
    device.capability = 103;        /* its code is that of 9.0, without setmaxnreg */
    assert_true(matmul_config_fits(&s, &cases[0].config, &device));
    assert_false(matmul_config_fits(&s, &cases[1].config, &device));
}

typedef struct Options {
    bool zeros_by_mma, register_reallocation;
} Options;

static void see_options(void *data, const MatmulConfig *c)
{
    Options *seen = data;
    seen->zeros_by_mma |= c->zeros_by_mma;
    seen->register_reallocation |= c->register_reallocation;
}

/* Where they have won (docs/tuning.md): zero points by mma for 1 and 2 bits, lent registers
 * from 4 tiles on. */
static void test_space_of_options(void **state)
{
    (void)state;
    const struct {
        const char *weights;
        tilus_zeros zeros;
        int64_t m;
        Options options;
    } cases[] = {
        {"u2", TILUS_ZEROS_INTEGER, 16, {true, false}},
        {"i1", TILUS_ZEROS_NONE, 16, {true, false}},
        {"u2", TILUS_ZEROS_NONE, 16, {false, false}},
        {"u3", TILUS_ZEROS_INTEGER, 16, {false, false}},
        {"u4", TILUS_ZEROS_NONE, 64, {false, true}},
        {"u1", TILUS_ZEROS_INTEGER, 64, {true, true}},
    };
    MatmulDevice device = h200();
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = cases[i].weights, .n = 8192,
            .k = 8192, .group = 128, .zeros = cases[i].zeros});
        Options seen = {false, false};
        matmul_enumerate(&s, 0, cases[i].m, &device, see_options, &seen);
        assert_int_equal(seen.zeros_by_mma, cases[i].options.zeros_by_mma);
        assert_int_equal(seen.register_reallocation, cases[i].options.register_reallocation);
    }
}

static void test_space(void **state)
{
    (void)state;
    MatmulDevice device = h200();
    MatmulSpec s = spec_of((tilus_matmul_problem){.weights = "u4", .n = 8192, .k = 57344,
                                                  .group = 128});
    Seen seen = {&s, &device, 0};
    matmul_enumerate(&s, 0, 8, &device, see, &seen);
    assert_in_range(seen.count, 200, 3000);
    /* Before 9.0 there are no bulk copies, and no ring. */
    MatmulConfig c = {64, 1, 4, 1, 2, 8, 1, 1, 0, 2, 0, 0};
    assert_true(matmul_config_fits(&s, &c, &device));
    device.capability = 89;
    assert_false(matmul_config_fits(&s, &c, &device));
    c.stages = 0;
    assert_true(matmul_config_fits(&s, &c, &device));
    MatmulConfig ring = {32, 1, 2, 1, STAGES_MAX, 1, 1, 1, 0, 1, 0, 0};
    device.capability = 90;
    assert_true(matmul_config_fits(&s, &ring, &device));
    ring.stages++;
    assert_false(matmul_config_fits(&s, &ring, &device));
    /* Zero points as large as weights leave f16 when they are taken off these. */
    const MatmulConfig scaled = {32, 2, 2, 1, 0, 8, 2, 1, 1, 1, 0, 0};
    tilus_matmul_problem wide = {.weights = "f8e5m2", .n = 8192, .k = 57344, .group = 128};
    MatmulSpec centred = spec_of(wide);
    assert_true(matmul_config_fits(&centred, &scaled, &device));
    wide.zeros = TILUS_ZEROS_FLOAT;
    centred = spec_of(wide);
    assert_false(matmul_config_fits(&centred, &scaled, &device));
    wide.activations = "bf16";
    centred = spec_of(wide);
    assert_true(matmul_config_fits(&centred, &scaled, &device));
    seen.count = 0;
    device.shared_block = 1000;
    matmul_enumerate(&s, 0, 4, &device, see, &seen);
    assert_int_equal(seen.count, 0);
}

/* Blocks that stay on a multiprocessor of an H200, by the registers that ptxas 13.0 takes. */
static void test_resident(void **state)
{
    (void)state;
    MatmulDevice device = h200();
    const struct {
        const char *weights;
        MatmulConfig config;
        int blocks;
    } cases[] = {
        {"u1", {128, 1, 4, 1, 2, 1, 1, 2, 0, 1, 0, 0}, 2},
        {"u1", {128, 2, 2, 1, 2, 8, 2, 2, 0, 1, 0, 0}, 1},
        {"u2", {64, 1, 4, 1, 2, 1, 1, 2, 0, 1, 0, 0}, 2},
        {"u2", {64, 1, 4, 1, 2, 1, 1, 2, 0, 3, 0, 0}, 3},
        {"u4", {64, 1, 4, 1, 4, 1, 1, 2, 0, 1, 0, 0}, 2},
        {"u4", {64, 1, 8, 1, 2, 1, 1, 2, 0, 1, 0, 0}, 1},
        {"u4", {64, 1, 4, 2, 2, 1, 1, 2, 0, 0, 0, 0}, 2},
        {"u8", {32, 1, 4, 1, 4, 1, 1, 2, 0, 1, 0, 0}, 2},
        {"u8", {64, 1, 4, 1, 2, 1, 1, 2, 0, 1, 0, 0}, 1},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        MatmulSpec s = spec_of((tilus_matmul_problem){.weights = cases[i].weights, .n = 8192,
            .k = 8192, .group = 128, .zeros = TILUS_ZEROS_INTEGER});
        assert_int_equal(matmul_resident(&s, &cases[i].config, &device), cases[i].blocks);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),          cmocka_unit_test(test_product_types),
        cmocka_unit_test(test_scales_of_16),
        cmocka_unit_test(test_refused),           cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_most_parameters),
        cmocka_unit_test(test_gated_parameters),
        cmocka_unit_test(test_lifted_parameters), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_shared_bytes),      cmocka_unit_test(test_arranged_in_blocks),
        cmocka_unit_test(test_renewed),           cmocka_unit_test(test_lending),
        cmocka_unit_test(test_space_of_options),  cmocka_unit_test(test_groups),
        cmocka_unit_test(test_wide_range),
        cmocka_unit_test(test_wide_range_of_f8e5m2),
        cmocka_unit_test(test_space),             cmocka_unit_test(test_resident),
        cmocka_unit_test(test_floats_as_integers),
        cmocka_unit_test(test_stored_as_they_are),
        cmocka_unit_test(test_parameters_by_wgmma),
        cmocka_unit_test(test_parameters_of_parts),
        cmocka_unit_test(test_clusters_at_once),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_parameters_of_bytes),
        cmocka_unit_test(test_reads_a_where_it_is), cmocka_unit_test(test_fits_by_wgmma),
        cmocka_unit_test(test_parameters_of_floats_as_integers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
