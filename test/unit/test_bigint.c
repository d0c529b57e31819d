/* Products of big integers on a software device with the CPU engine, by public calls alone,
 * against products of 32-bit words; and what the library refuses. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "library_fixture.h"

#include "bigint/internal.h"

static tilus_bigint *bigint;

static int set_up(void **state)
{
    (void)state;
    const tilus_bigint_options options = {.struct_size = sizeof options,
                                          .compile = compile_plainly, .compile_data = "bigint"};
    open_rt();
    assert_ok(tilus_bigint_open(rt, &options, &bigint));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    tilus_bigint_close(bigint);
    tilus_rt_close(rt);
    return 0;
}

/* ---- a reference -------------------------------------------------------- */

/* Copies a number to words, zeros behind it; returns how many words there are. */
static size_t to_words(const unsigned char *bytes, size_t size, uint32_t **words)
{
    size_t count = (size + 3) / 4;
    *words = calloc(count, sizeof **words);
    assert_non_null(*words);
    for (size_t i = 0; i < size; i++)
        (*words)[i / 4] |= (uint32_t)bytes[i] << i % 4 * 8;
    return count;
}

static void multiply(const unsigned char *a, size_t a_size, const unsigned char *b, size_t b_size,
                     unsigned char *c)
{
    uint32_t *x, *y;
    size_t nx = to_words(a, a_size, &x), ny = to_words(b, b_size, &y);
    uint32_t *z = calloc(nx + ny, sizeof *z);
    assert_non_null(z);
    for (size_t i = 0; i < nx; i++) {
        uint64_t carry = 0;
        for (size_t j = 0; j < ny; j++) {
            carry += (uint64_t)x[i] * y[j] + z[i + j];
            z[i + j] = (uint32_t)carry;
            carry >>= 32;
        }
        z[i + ny] = (uint32_t)carry;
    }
    for (size_t i = 0; i < a_size + b_size; i++)
        c[i] = (unsigned char)(z[i / 4] >> i % 4 * 8);
    free(x);
    free(y);
    free(z);
}

/* ---- numbers ------------------------------------------------------------ */

enum { RANDOM, ONES, ZERO, ONE, HIGHEST_BIT, KINDS };

static uint32_t seed = 1;

static void fill(unsigned char *to, size_t size, int kind)
{
    memset(to, kind == ONES ? 0xff : 0, size);
    for (size_t i = 0; i < size && kind == RANDOM; i++)
        to[i] = (unsigned char)((seed = seed * 1664525 + 1013904223) >> 24);
    if (kind == ONE)
        to[0] = 1;
    if (kind == HIGHEST_BIT)
        to[size - 1] = 0x80;
}

/* ---- products ----------------------------------------------------------- */

static uint64_t allocate(size_t size)
{
    uint64_t address;
    assert_ok(tilus_rt_allocate(rt, 0, size, &address));
    return address;
}

/* Multiplies a batch on the device, into c. */
static void run(tilus_bigint_plan *plan, const tilus_bigint_problem *p, const unsigned char *a,
                const unsigned char *b, unsigned char *c)
{
    size_t batch = (size_t)p->batch;
    size_t na = batch * (size_t)p->a_bytes, nb = batch * (size_t)p->b_bytes;
    tilus_bigint_call call = {.struct_size = sizeof call, .a = allocate(na),
                              .b = p->square ? 0 : allocate(nb), .c = allocate(na + nb),
                              .workspace_size = tilus_bigint_workspace_size(plan)};
    call.workspace = allocate(call.workspace_size);
    assert_ok(tilus_rt_upload(rt, 0, call.a, a, na));
    if (call.b)
        assert_ok(tilus_rt_upload(rt, 0, call.b, b, nb));
    assert_ok(tilus_rt_fill(rt, 0, call.workspace, 0xa5, call.workspace_size));
    assert_ok(tilus_bigint_mul(plan, NULL, &call));
    assert_ok(tilus_rt_download(rt, 0, c, call.c, na + nb));
    tilus_rt_release(rt, 0, call.a);
    if (call.b)
        tilus_rt_release(rt, 0, call.b);
    tilus_rt_release(rt, 0, call.c);
    tilus_rt_release(rt, 0, call.workspace);
}

static tilus_bigint_plan *plan_of(const tilus_bigint_problem *problem)
{
    tilus_bigint_plan *plan;
    assert_ok(tilus_bigint_plan_create(bigint, problem, 0, &plan));
    assert_ok(tilus_bigint_prepare(plan));
    return plan;
}

static void compare(const tilus_bigint_problem *p, const unsigned char *a, const unsigned char *b,
                    const unsigned char *c, unsigned char *expected)
{
    size_t na = (size_t)p->a_bytes, nb = (size_t)p->b_bytes;
    for (size_t i = 0; i < (size_t)p->batch; i++) {
        multiply(a + i * na, na, b + i * nb, nb, expected);
        for (size_t k = 0; k < na + nb; k++)
            if (c[i * (na + nb) + k] != expected[k])
                fail_msg("%zu x %zu bytes, pair %zu, byte %zu: 0x%02x, not 0x%02x", na, nb, i, k,
                         c[i * (na + nb) + k], expected[k]);
    }
}

/* Multiplies pairs of all kinds of numbers, as many as the batch holds. */
static void check(const tilus_bigint_problem *problem)
{
    tilus_bigint_problem p = *problem;
    p.struct_size = sizeof p;
    size_t na = (size_t)p.a_bytes, nb = (size_t)p.b_bytes, batch = (size_t)p.batch;
    unsigned char *a = malloc(na * batch), *b = malloc(nb * batch), *c = malloc((na + nb) * batch);
    unsigned char *expected = malloc(na + nb);
    assert_true(a && b && c && expected);
    for (size_t i = 0; i < batch; i++) {
        fill(a + i * na, na, (int)i % KINDS);
        fill(b + i * nb, nb, (int)(i / KINDS + i) % KINDS);
    }
    tilus_bigint_plan *plan = plan_of(&p);
    run(plan, &p, a, p.square ? a : b, c);
    compare(&p, a, p.square ? a : b, c, expected);
    tilus_bigint_plan_free(plan);
    free(a);
    free(b);
    free(c);
    free(expected);
}

static void multiplies_by_tensor_cores(void **state)
{
    (void)state;
    const tilus_bigint_problem problems[] = {
        {.a_bytes = 32, .b_bytes = 32, .batch = 25}, {.a_bytes = 1, .b_bytes = 1, .batch = 25},
        {.a_bytes = 512, .b_bytes = 512, .batch = 25},
        {.a_bytes = 1024, .b_bytes = 1024, .batch = 3},
        {.a_bytes = 2000, .b_bytes = 1001, .batch = 3},
        {.a_bytes = 96, .b_bytes = 20000, .batch = 3},
        {.a_bytes = 512, .b_bytes = 512, .batch = 5, .square = true},
        {.a_bytes = 4096, .b_bytes = 4096, .batch = 5, .square = true},
        {.a_bytes = 5001, .b_bytes = 5001, .batch = 2, .square = true}};
    for (size_t i = 0; i < COUNT(problems); i++) {
        tilus_bigint_problem p = problems[i];
        p.method = TILUS_BIGINT_SCHOOLBOOK;
        check(&p);
    }
}

static void multiplies_by_transforms(void **state)
{
    (void)state;
    const tilus_bigint_problem problems[] = {
        {.a_bytes = 4096, .b_bytes = 4096, .batch = 10},
        {.a_bytes = 1, .b_bytes = 8000, .batch = 2},
        {.a_bytes = 4096, .b_bytes = 4096, .batch = 5, .square = true},
        {.a_bytes = 128, .b_bytes = 12000, .batch = 2}};
    for (size_t i = 0; i < COUNT(problems); i++) {
        tilus_bigint_problem p = problems[i];
        p.method = TILUS_BIGINT_TRANSFORM;
        check(&p);
    }
}

/* ---- plans -------------------------------------------------------------- */

static void describes_plans(void **state)
{
    (void)state;
    const struct {
        tilus_bigint_problem problem;
        const char *text;
    } cases[] = {
        {{.a_bytes = 512, .b_bytes = 512, .batch = 1000},
         "1000 products of 512 x 512 bytes: schoolbook by tensor cores, 1000 blocks of 1024 bytes "
         "of the products, one launch\nworkspace 0 bytes; 16 bytes at a time\n"},
        {{.a_bytes = 16384, .square = true},
         "1 square of 16384 bytes: schoolbook by tensor cores, half of the digits' products, 32 "
         "blocks of 1024 bytes of the products, carries between blocks in a second launch\n"
         "workspace 512 bytes; 16 bytes at a time\n"},
        {{.a_bytes = 64 << 20, .b_bytes = 64 << 20},
         "1 product of 67108864 x 67108864 bytes: number-theoretic transforms of 2^26 points of 16 "
         "bits, 3 of them a product, in passes of 512 x 512 x 256\n"
         "workspace 1073872896 bytes; 16 bytes at a time\n"},
        {{.a_bytes = 1000001, .square = true, .batch = 500},
         "500 squares of 1000001 bytes: number-theoretic transforms of 2^20 points of 16 bits, 2 of "
         "them a product, in passes of 128 x 128 x 64, 64 pairs at a time\n"
         "workspace 536996352 bytes; bytes one by one, as a length is no multiple of 16\n"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_bigint_problem p = cases[i].problem;
        tilus_bigint_plan *plan;
        p.struct_size = sizeof p;
        assert_ok(tilus_bigint_plan_create(bigint, &p, 0, &plan));
        char *text = tilus_bigint_describe(plan);
        assert_string_equal(text, cases[i].text);
        tilus_free(text);
        tilus_bigint_plan_free(plan);
    }
}

static void lists_kernels(void **state)
{
    (void)state;
    const tilus_bigint_problem p = {.struct_size = sizeof p, .a_bytes = 512, .b_bytes = 512};
    tilus_bigint_plan *plan;
    assert_ok(tilus_bigint_plan_create(bigint, &p, 0, &plan));
    char *text = tilus_bigint_kernels(plan), *all = tilus_bigint_kernels(NULL);
    assert_string_equal(text, "bigint_product_1024_sm_90a\tproduct\tM=16 B=64 DIVISOR=16\n");
    size_t lines = 0;
    for (const char *s = all; (s = strchr(s, '\n')); s++)
        lines++;
    assert_int_equal(lines, BIGINT_KERNELS * BIGINT_TARGETS);
    assert_non_null(strstr(all, "bigint_backward_512_last_sm_80\tbackward\tR1=16 R2=32 LAST=1\n"));
    assert_non_null(strstr(all, "bigint_backward_512_last_sm_90a\tbackward\tR1=16 R2=32 LAST=1\n"));
    tilus_free(text);
    tilus_free(all);
    tilus_bigint_plan_free(plan);
}

static void refuses_problems(void **state)
{
    (void)state;
    const struct {
        tilus_bigint_problem problem;
        const char *message;
    } cases[] = {
        {{.a_bytes = 0, .b_bytes = 1}, "problem: a_bytes is 0, not 1 to 67108864"},
        {{.a_bytes = 1, .b_bytes = 67108865}, "problem: b_bytes is 67108865, not 1 to 67108864"},
        {{.a_bytes = 1, .b_bytes = 1, .batch = -1}, "problem: batch is -1, not 1 to 1048576"},
        {{.a_bytes = 5, .b_bytes = 6, .square = true},
         "problem: b_bytes of a square is 6, not 0 or a_bytes, 5"},
        {{.a_bytes = 5, .b_bytes = 6, .method = 3}, "problem: method is 3, not 0 to 2"},
        {{.a_bytes = 65537, .b_bytes = 70000, .method = TILUS_BIGINT_SCHOOLBOOK},
         "problem: the schoolbook method is for a factor of at most 65536 bytes, the shorter "
         "one has 65537"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        tilus_bigint_problem p = cases[i].problem;
        tilus_bigint_plan *plan;
        p.struct_size = sizeof p;
        assert_int_equal(tilus_bigint_plan_create(bigint, &p, 0, &plan), TILUS_ERROR_ARGUMENT);
        assert_null(plan);
        assert_string_equal(tilus_rt_error(), cases[i].message);
    }
}

static void refuses_calls(void **state)
{
    (void)state;
    const tilus_bigint_problem p = {.struct_size = sizeof p, .a_bytes = 16384, .b_bytes = 16384};
    tilus_bigint_plan *plan;
    tilus_bigint_call call = {.struct_size = sizeof call, .a = 256, .b = 256, .c = 256};
    assert_ok(tilus_bigint_plan_create(bigint, &p, 0, &plan));
    assert_int_equal(tilus_bigint_mul(plan, NULL, &call), TILUS_ERROR_STATE);
    assert_ok(tilus_bigint_prepare(plan));
    assert_int_equal(tilus_bigint_mul(plan, NULL, NULL), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "call is NULL");
    assert_int_equal(tilus_bigint_mul(plan, NULL, &call), TILUS_ERROR_ARGUMENT);
    assert_non_null(strstr(tilus_rt_error(), "call: workspace_size is 0, and the plan needs "));
    call.b = 257;
    assert_int_equal(tilus_bigint_mul(plan, NULL, &call), TILUS_ERROR_ARGUMENT);
    assert_string_equal(tilus_rt_error(), "call: b is 0x101, not a multiple of 16");
    tilus_bigint_plan_free(plan);
}

static void misses_kernels(void **state)
{
    (void)state;
    const tilus_bigint_problem p = {.struct_size = sizeof p, .a_bytes = 16, .b_bytes = 16};
    const tilus_bigint_kernel damaged = {"bigint_product_512_sm_90a", "tilus", 5};
    const tilus_bigint_options options[] = {
        {.struct_size = sizeof *options, .directory = "/nowhere"},
        {.struct_size = sizeof *options, .kernels = &damaged, .kernel_count = 1}};
    const tilus_status statuses[] = {TILUS_ERROR_NO_KERNEL, TILUS_ERROR_ARTEFACT};
    for (size_t i = 0; i < COUNT(options); i++) {
        tilus_bigint *other;
        tilus_bigint_plan *plan;
        assert_ok(tilus_bigint_open(rt, &options[i], &other));
        assert_ok(tilus_bigint_plan_create(other, &p, 0, &plan));
        assert_int_equal(tilus_bigint_prepare(plan), statuses[i]);
        assert_non_null(strstr(tilus_rt_error(), "bigint_product_512_sm_90a"));
        tilus_bigint_plan_free(plan);
        tilus_bigint_close(other);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(multiplies_by_tensor_cores), cmocka_unit_test(multiplies_by_transforms),
        cmocka_unit_test(describes_plans),            cmocka_unit_test(lists_kernels),
        cmocka_unit_test(refuses_problems),           cmocka_unit_test(refuses_calls),
        cmocka_unit_test(misses_kernels),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
