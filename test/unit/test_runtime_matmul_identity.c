/* The identity of packed weights: what it says, and what it refuses. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "matmul_kernels.h"
#include "matmul_library.h"

static const tilus_matmul_problem base = {.weights = "u4", .n = 200, .k = 1100, .group = 128,
                                          .n_tile = 64};
/* Packs random weights; freed with free(). */
static unsigned char *pack(const tilus_matmul_plan *plan)
{
    Plain plain = plain_random(plan);
    const tilus_matmul_weights weights = weights_of(&plain, true);
    unsigned char *packed = malloc(tilus_matmul_packed_size(plan));
    assert_ok(tilus_matmul_pack(plan, &weights, packed));
    plain_free(&plain);
    return packed;
}

static void says_what_was_packed(void **state)
{
    (void)state;
    tilus_matmul_problem problem = base;
    problem.weights = "f4e1m2";         /* packed as integers */
    problem.group = 256;
    problem.zeros = TILUS_ZEROS_FLOAT;
    tilus_matmul_plan *plan = plan_of(matmul, problem);
    size_t size = tilus_matmul_packed_size(plan);
    unsigned char *packed = pack(plan);
    tilus_matmul_packed is = {.struct_size = sizeof is};
    assert_ok(tilus_matmul_packed_describe(packed, size, &is));
    assert_int_equal(is.identity, tilus_matmul_packed_identity(plan));
    assert_true(is.identity != 0);
    assert_int_equal(is.size, size);
    assert_int_equal(is.n, 200);
    assert_int_equal(is.k, 1100);
    assert_int_equal(is.group, 256);
    assert_int_equal(is.n_tile, 64);
    assert_int_equal(is.version, 1);
    assert_int_equal(is.zeros, TILUS_ZEROS_FLOAT);
    assert_string_equal(is.weights, "f4e1m2");
    assert_string_equal(is.product, "f16");
    assert_string_equal(is.scales, "f16");
    assert_ok(tilus_matmul_packed_check(plan, packed, size));
    free(packed);
    tilus_matmul_plan_free(plan);
}

/* A caller of an earlier version, whose struct is shorter. */
static void fills_shorter_structs(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, base);
    unsigned char *packed = pack(plan);
    size_t size = tilus_matmul_packed_size(plan);
    tilus_matmul_packed is = {.struct_size = offsetof(tilus_matmul_packed, form), .form = 7};
    assert_ok(tilus_matmul_packed_describe(packed, size, &is));
    assert_int_equal(is.identity, tilus_matmul_packed_identity(plan));
    assert_int_equal(is.form, 7);
    is.struct_size = 0;
    assert_fails(tilus_matmul_packed_describe(packed, size, &is), TILUS_ERROR_ARGUMENT,
                 "out: struct_size is 0, not sizeof(tilus_matmul_packed)");
    assert_fails(tilus_matmul_packed_describe(packed, size, NULL), TILUS_ERROR_ARGUMENT,
                 "out is NULL");
    free(packed);
    tilus_matmul_plan_free(plan);
}

static void names_what_differs(void **state)
{
    (void)state;
    struct {
        tilus_matmul_problem problem;
        const char *message;
    } cases[] = {
        {base, "weights is u4, the plan's u3"}, {base, "product is f16, the plan's bf16"},
        {base, "scales is f16, the plan's bf16"}, {base, "n is 200, the plan's 201"},
        {base, "k is 1100, the plan's 1101"}, {base, "group is 128, the plan's 64"},
        {base, "zeros is 0, the plan's 1"}, {base, "n_tile is 64, the plan's 32"},
    };
    cases[0].problem.weights = "u3";
    cases[1].problem.activations = "bf16";
    cases[2].problem.scales = "bf16";
    cases[3].problem.n = 201;
    cases[4].problem.k = 1101;
    cases[5].problem.group = 64;
    cases[6].problem.zeros = TILUS_ZEROS_INTEGER;
    cases[7].problem.n_tile = 32;
    tilus_matmul_plan *plan = plan_of(matmul, base);
    unsigned char *packed = pack(plan);
    size_t size = tilus_matmul_packed_size(plan);
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_plan *other = plan_of(matmul, cases[i].problem);
        assert_true(tilus_matmul_packed_identity(other) != tilus_matmul_packed_identity(plan));
        assert_fails(tilus_matmul_packed_check(other, packed, size), TILUS_ERROR_ARGUMENT,
                     cases[i].message);
        if (tilus_matmul_packed_size(other) == size)
            assert_fails(tilus_matmul_shard(other, packed, plan, 0, 0, packed),
                         TILUS_ERROR_ARGUMENT, "packed weights: ");
        tilus_matmul_plan_free(other);
    }
    free(packed);
    tilus_matmul_plan_free(plan);
}

/* The rows of gates lie elsewhere. */
static void tells_gates_apart(void **state)
{
    (void)state;
    tilus_matmul_problem problem = base;
    problem.n = 208;
    tilus_matmul_plan *plain = plan_of(matmul, problem);
    problem.gated = true;
    tilus_matmul_plan *gated = plan_of(matmul, problem);
    size_t size = tilus_matmul_packed_size(gated);
    unsigned char *packed = pack(gated);
    tilus_matmul_packed is = {.struct_size = sizeof is};
    assert_ok(tilus_matmul_packed_describe(packed, size, &is));
    assert_true(is.gated);
    unsigned char *other = pack(plain);
    tilus_matmul_packed turned = {.struct_size = sizeof turned};
    assert_ok(tilus_matmul_packed_describe(other, size, &turned));
    assert_true(!turned.gated && turned.form != is.form);       /* to callers that know no gates, too */
    free(other);
    assert_int_equal(size, tilus_matmul_packed_size(plain));
    assert_fails(tilus_matmul_packed_check(plain, packed, size), TILUS_ERROR_ARGUMENT,
                 "gated is 1, the plan's 0");
    free(packed);
    tilus_matmul_plan_free(plain);
    tilus_matmul_plan_free(gated);
}

/* A product's epilogue, result and A's stride have nothing to do with weights. */
static void does_not_depend_on_the_rest(void **state)
{
    (void)state;
    tilus_matmul_problem other = base;
    other.result = "f32";
    other.bias = other.residual = true;
    other.function = TILUS_EPILOGUE_SILU;
    other.a_stride = 1208;
    other.activations = "i8";
    tilus_matmul_plan *a = plan_of(matmul, base), *b = plan_of(matmul, other);
    assert_int_equal(tilus_matmul_packed_identity(a), tilus_matmul_packed_identity(b));
    tilus_matmul_plan_free(a);
    tilus_matmul_plan_free(b);
}

static void refuses_what_is_damaged(void **state)
{
    (void)state;
    tilus_matmul_plan *plan = plan_of(matmul, base);
    size_t size = tilus_matmul_packed_size(plan);
    unsigned char *packed = pack(plan), *at = packed + size - TILUS_MATMUL_IDENTITY;
    for (size_t i = 0; i < 128; i++) {
        at[i] ^= 0x40;
        assert_int_equal(tilus_matmul_packed_check(plan, packed, size), TILUS_ERROR_ARGUMENT);
        assert_contains(tilus_rt_error(), "packed weights: ");
        at[i] ^= 0x40;
    }
    assert_ok(tilus_matmul_packed_check(plan, packed, size));
    assert_fails(tilus_matmul_packed_check(plan, packed, 255), TILUS_ERROR_ARGUMENT,
                 "255 bytes, less than the 256 of their identity");
    assert_fails(tilus_matmul_packed_check(plan, packed, size - 256), TILUS_ERROR_ARGUMENT,
                 "no identity");
    assert_fails(tilus_matmul_packed_check(plan, packed + 256, size - 256),
                 TILUS_ERROR_ARGUMENT, "their identity says");
    assert_fails(tilus_matmul_packed_check(plan, NULL, size), TILUS_ERROR_ARGUMENT,
                 "packed is NULL");
    at[8] = 2;
    assert_fails(tilus_matmul_packed_check(plan, packed, size), TILUS_ERROR_ARGUMENT,
                 "version is 2, this library reads 1");
    free(packed);
    tilus_matmul_plan_free(plan);
}

/* FNV-1a of 64 bits. */
static uint64_t hash(const unsigned char *bytes, size_t size)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

/* Packed bytes of fixed weights, and the form that their identity says. Files of packed weights
 * outlive a library: whoever changes these bytes raises FORM_VERSION of identity.c. */
static void packs_as_ever(void **state)
{
    (void)state;
    static const struct {
        tilus_matmul_problem problem;
        uint64_t form, bytes;
    } cases[] = {
        {{.weights = "u4", .n = 40, .k = 256, .group = 128, .n_tile = 32},
         UINT64_C(0x4a3c65aa65964597), UINT64_C(0x97de46a03fa865d9)},
        {{.weights = "i3", .n = 40, .k = 300, .zeros = TILUS_ZEROS_INTEGER, .n_tile = 64},
         UINT64_C(0x357f01b7faead396), UINT64_C(0x0aa40ef5a79b9fdd)},
        {{.weights = "f6e3m2", .activations = "bf16", .n = 40, .k = 256, .group = 32,
          .zeros = TILUS_ZEROS_FLOAT, .n_tile = 128},
         UINT64_C(0x67e0f83628497831), UINT64_C(0x79c06445e1171b82)},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_matmul_plan *plan = plan_of(matmul, cases[i].problem);
        Plain plain = plain_random(plan);
        for (size_t b = 0; b < plain.code_bytes; b++)
            plain.codes[b] = (unsigned char)(b * 37 + b / 256);
        for (size_t b = 0; b < plain.scale_bytes; b++)
            plain.scales[b] = (unsigned char)(b * 11);
        for (size_t b = 0; b < plain.zero_bytes; b++)
            plain.zeros[b] = (unsigned char)(b * 3);
        plain_repair(plan, &plain);
        const tilus_matmul_weights weights = weights_of(&plain, false);
        size_t size = tilus_matmul_packed_size(plan);
        unsigned char *packed = malloc(size);
        tilus_matmul_packed is = {.struct_size = sizeof is};
        assert_ok(tilus_matmul_pack(plan, &weights, packed));
        assert_ok(tilus_matmul_packed_describe(packed, size, &is));
        uint64_t bytes = hash(packed, size - TILUS_MATMUL_IDENTITY);
        if (is.form != cases[i].form || bytes != cases[i].bytes)
            fail_msg("%s: form 0x%016llx, bytes 0x%016llx", cases[i].problem.weights,
                     (unsigned long long)is.form, (unsigned long long)bytes);
        free(packed);
        plain_free(&plain);
        tilus_matmul_plan_free(plan);
    }
}

/* Packing on a device writes the identity behind what its kernel writes. */
static void the_device_gets_it(void **state)
{
    (void)state;
    FakeCompiler compiler = {0};
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .compile = fake_compile, .compile_data = &compiler};
    tilus_rt *own;
    tilus_matmul *with = open_matmul(&own, &options);
    tilus_matmul_plan *plan = plan_of(with, base);
    const tilus_matmul_weights w = {sizeof w, (void *)0x1000, (void *)0x2000,
                                    .transposed = true};
    tilus_matmul_packed is = {.struct_size = sizeof is};
    size_t size = tilus_matmul_packed_size(plan);
    unsigned char *packed = pack(plan);
    assert_ok(tilus_matmul_pack_device(plan, NULL, &w, 0x100000));
    assert_int_equal(fake->uploaded_to, 0x100000 + size - TILUS_MATMUL_IDENTITY);
    assert_int_equal(fake->uploaded_bytes, TILUS_MATMUL_IDENTITY);
    assert_memory_equal(fake->uploaded, packed + size - TILUS_MATMUL_IDENTITY,
                        TILUS_MATMUL_IDENTITY);
    memcpy(packed + size - TILUS_MATMUL_IDENTITY, fake->uploaded, TILUS_MATMUL_IDENTITY);
    assert_ok(tilus_matmul_packed_describe(packed, size, &is));
    free(packed);
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(with);
    tilus_rt_close(own);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(says_what_was_packed),
        cmocka_unit_test(fills_shorter_structs),
        cmocka_unit_test(names_what_differs),
        cmocka_unit_test(tells_gates_apart),
        cmocka_unit_test(does_not_depend_on_the_rest),
        cmocka_unit_test(refuses_what_is_damaged),
        cmocka_unit_test(packs_as_ever),
        cmocka_unit_test(the_device_gets_it),
    };
    return cmocka_run_group_tests(tests, open_library, close_library);
}
