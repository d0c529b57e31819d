/* Weights unpacked by the matmul library on the CPU engine, by public calls alone, beside the codes, scales and zero
 * points that were packed; and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "matmul_device.h"
#include "tilus/types.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

enum { PART = 128 };        /* of k */

static uint32_t draw(void)
{
    static uint32_t seed = 2463534242u;
    seed ^= seed << 13;
    seed ^= seed >> 17;
    return seed ^= seed << 5;
}

static tilus_matmul_plan *plan_of(tilus_matmul_problem problem)
{
    tilus_matmul_plan *plan;
    problem.struct_size = sizeof problem;
    assert_ok(tilus_matmul_plan_create(matmul, &problem, 0, &plan));
    return plan;
}

/* ---- weights ----------------------------------------------------------------------- */

/* Random weights, packed on the device, and what they stand for, [n, k]. */
typedef struct Weights {
    tilus_matmul_plan *plan;
    uint64_t packed;
    double *values;
} Weights;

/* Sets element `i` of `bytes` to the number of `type` that is nearest, and returns it. */
static double set_number(void *bytes, size_t i, const char *type, double value)
{
    uint64_t code = tilus_encode(type, value);
    tilus_set_bits(bytes, i, tilus_type_bits(type), code);
    return tilus_decode(type, code);
}

/* Draws a finite code of `type` for element `i`, and returns its number. */
static double set_code(void *bytes, size_t i, const char *type)
{
    unsigned bits = tilus_type_bits(type);
    uint64_t code = draw() & ((1u << bits) - 1);
    code = isfinite(tilus_decode(type, code)) ? code : 0;
    tilus_set_bits(bytes, i, bits, code);
    return tilus_decode(type, code);
}

/* Draws a zero point for element `i`. */
static double set_zero(void *bytes, size_t i, const tilus_matmul_problem *p, const char *scales)
{
    unsigned char code[2] = {0};
    if (p->zeros == TILUS_ZEROS_NONE)
        return 0;
    double value = set_code(code, 0, p->weights);
    if (p->zeros == TILUS_ZEROS_FLOAT)
        return set_number(bytes, i, scales, value / 3);
    ((unsigned char *)bytes)[i] = (unsigned char)(int)value;
    return value;
}

static Weights pack(const tilus_matmul_problem *p)
{
    const char *scales = p->scales ? p->scales : p->activations && strcmp(p->activations, "bf16") == 0 ? "bf16" : "f16";
    Weights w = {.plan = plan_of(*p), .values = calloc((size_t)(p->n * p->k), sizeof(double))};
    int64_t group = p->group ? p->group : p->k, groups = (p->k - 1) / group + 1;
    size_t entries = (size_t)(p->n * groups), size = tilus_matmul_packed_size(w.plan);
    unsigned char *codes = calloc(tilus_packed_bytes(p->weights, (size_t)(p->n * p->k)), 1);
    unsigned char *all_scales = calloc(entries, 2), *zeros = calloc(entries, 2), *packed = malloc(size);
    const float factor = 0.37f;
    bool has_factor = strcmp(scales, "f8e4m3") == 0;
    double most = fmax(tilus_decode(p->weights, tilus_encode(p->weights, INFINITY)), 1);
    for (int64_t i = 0; i < p->n * groups; i++) {
        double scale = set_number(all_scales, (size_t)i, scales, (has_factor ? 64 : 8 / most) * (1 + draw() % 100 / 100.0));
        double zero = set_zero(zeros, (size_t)i, p, scales);
        int64_t first = i % groups * group, end = first + group < p->k ? first + group : p->k;
        for (int64_t k = first; k < end; k++) {
            int64_t at = i / groups * p->k + k;
            w.values[at] = (set_code(codes, (size_t)at, p->weights) - zero) * scale * (has_factor ? (double)factor : 1);
        }
    }
    const tilus_matmul_weights weights = {.struct_size = sizeof weights, .codes = codes, .scales = all_scales,
                                          .zeros = p->zeros ? zeros : NULL, .transposed = true,
                                          .factor = has_factor ? &factor : NULL};
    assert_ok(tilus_matmul_pack(w.plan, &weights, packed));
    assert_ok(tilus_rt_allocate(rt, 0, size, &w.packed));
    assert_ok(tilus_rt_upload(rt, 0, w.packed, packed, size));
    free(codes);
    free(all_scales);
    free(zeros);
    free(packed);
    return w;
}

static void release(Weights *w)
{
    assert_ok(tilus_rt_release(rt, 0, w->packed));
    tilus_matmul_plan_free(w->plan);
    free(w->values);
}

/* ---- unpacking --------------------------------------------------------------------- */

/* Unpacks `count` of k from `first` on, and compares each weight: rounded twice, to f32 and to `type`. */
static void check_part(const Weights *w, const tilus_matmul_problem *p, const char *type, int64_t first, int64_t count)
{
    unsigned bits = tilus_type_bits(type);
    size_t size = (size_t)(p->n * count) * bits / 8;
    double part = bits == 32 ? 0x1p-22 : strcmp(type, "f16") == 0 ? 0x1p-11 : 0x1p-8;
    unsigned char *got = malloc(size);
    uint64_t to;
    assert_ok(tilus_rt_allocate(rt, 0, size, &to));
    assert_ok(tilus_matmul_unpack_device(w->plan, NULL, w->packed, first, count, type, to));
    assert_ok(tilus_rt_download(rt, 0, got, to, size));
    for (int64_t n = 0; n < p->n; n++)
        for (int64_t k = 0; k < count; k++) {
            double want = w->values[n * p->k + first + k], have;
            uint64_t code = 0;
            memcpy(&code, got + (size_t)(n * count + k) * bits / 8, bits / 8);
            have = tilus_decode(type, code);
            if (!(fabs(have - want) <= 1.01 * part * fabs(want) + 0x1p-24))
                fail_msg("%s in groups of %d to %s, n = %d, k = %d: %g, not %g", p->weights, (int)p->group, type, (int)n,
                         (int)(first + k), have, want);
        }
    assert_ok(tilus_rt_release(rt, 0, to));
    free(got);
}

static void unpacks_every_form(void **state)
{
    (void)state;
    static const char *const types[] = {"f16", "bf16", "f32"};
    static const tilus_matmul_problem problems[] = {
        {.weights = "u4", .n = 72, .k = 300, .group = 128, .zeros = TILUS_ZEROS_INTEGER},
        {.weights = "u1", .n = 7, .k = 40, .group = 32, .zeros = TILUS_ZEROS_FLOAT},
        {.weights = "i2", .n = 33, .k = 131, .group = 64, .activations = "bf16"},
        {.weights = "u3", .n = 130, .k = 256, .group = 16, .zeros = TILUS_ZEROS_INTEGER, .activations = "bf16"},
        {.weights = "i5", .n = 64, .k = 515, .group = 96, .zeros = TILUS_ZEROS_INTEGER},
        {.weights = "u6", .n = 40, .k = 640, .group = 384, .zeros = TILUS_ZEROS_FLOAT},
        {.weights = "i7", .n = 257, .k = 128},
        {.weights = "u8", .n = 65, .k = 200, .zeros = TILUS_ZEROS_INTEGER, .activations = "bf16"},
        {.weights = "i8", .n = 16, .k = 129, .zeros = TILUS_ZEROS_FLOAT},
        {.weights = "f3e1m1", .n = 40, .k = 200, .group = 32},
        {.weights = "f4e2m1", .n = 72, .k = 320, .group = 16, .scales = "f8e4m3"},
        {.weights = "f8e4m3", .n = 72, .k = 320, .group = 32, .scales = "f8e4m3", .activations = "bf16"},
        {.weights = "f5e1m3", .n = 64, .k = 256, .group = 128, .zeros = TILUS_ZEROS_FLOAT},
        {.weights = "f6e3m2", .n = 64, .k = 256, .group = 128, .zeros = TILUS_ZEROS_FLOAT, .activations = "bf16"},
        {.weights = "f8e5m2", .n = 64, .k = 256, .group = 128},
        {.weights = "f8e7m0", .n = 64, .k = 256, .group = 128, .scales = "bf16", .activations = "bf16"},
        {.weights = "u4", .n = 160, .k = 260, .group = 64, .gated = true, .function = TILUS_EPILOGUE_SILU},
        {.weights = "f6e3m2", .n = 48, .k = 256, .zeros = TILUS_ZEROS_FLOAT, .gated = true},
        {.weights = "f4e2m1", .n = 32, .k = 320, .group = 16, .scales = "f8e4m3", .gated = true},
    };
    for (size_t i = 0; i < COUNT(problems); i++) {
        const tilus_matmul_problem *p = &problems[i];
        Weights w = pack(p);
        check_part(&w, p, types[i % COUNT(types)], 0, p->k);
        if (p->k > PART)
            check_part(&w, p, types[i % COUNT(types)], PART, p->k - PART);
        if (p->k > 2 * PART)
            check_part(&w, p, types[i % COUNT(types)], PART, PART);
        release(&w);
    }
}

/* The kernels are listed with those that pack, and experts are matrices of their own. */
static void unpacks_one_expert(void **state)
{
    (void)state;
    const tilus_matmul_problem p = {.weights = "u4", .n = 64, .k = 128, .group = 128, .experts = 3, .top = 2,
                                    .gather = true};
    Weights w = pack(&p);
    check_part(&w, &p, "f16", 0, p.k);
    char *list = tilus_matmul_kernels(w.plan, 0);
    for (size_t i = 0; i < 3; i++) {
        static const char *const parts[] = {"\tunpack\tW=u4 U=u4 T=f16 S=f16 O=f16 ", " O=bf16 ", " O=f32 "};
        assert_non_null(strstr(list, parts[i]));
    }
    free(list);
    release(&w);
}

static void refuses(void **state)
{
    (void)state;
    const tilus_matmul_problem p = {.weights = "u4", .n = 64, .k = 300, .group = 128};
    tilus_matmul_plan *plan = plan_of(p);
    assert_refused(tilus_matmul_unpack_device(NULL, NULL, 256, 0, 300, "f16", 256), "plan is NULL");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 64, 236, "f16", 256), "k_first is 64, not a multiple of 128");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, -128, 128, "f16", 256), "k_first is -128");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 384, 1, "f16", 256), "k_first is 384");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 0, "f16", 256), "k_count is 0, not 1 to 300 from 0 on");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 128, 173, "f16", 256), "k_count is 173, not 1 to 172 from 128");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 130, "f16", 256), "k_count is 130, no multiple of 128");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, INT64_MAX, "f16", 256), "k_count is 9223372036854775807");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 300, "f64", 256), "type is \"f64\", not f16, bf16 or f32");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 300, NULL, 256), "type is NULL, not f16, bf16 or f32");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 128, 0, 300, "f16", 256), "packed");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 300, "f16", 8), "to");
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 300, "f16", 0), "to");
    tilus_matmul_plan_free(plan);
    plan = plan_of((tilus_matmul_problem){.weights = "u4", .n = 64, .k = 256, .group = 128, .product = "i8"});
    assert_refused(tilus_matmul_unpack_device(plan, NULL, 256, 0, 256, "f16", 256), "products of i8 have bit planes");
    char *list = tilus_matmul_kernels(plan, 0);
    assert_null(strstr(list, "unpack"));
    free(list);
    tilus_matmul_plan_free(plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(unpacks_every_form),
        cmocka_unit_test(unpacks_one_expert),
        cmocka_unit_test(refuses),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
