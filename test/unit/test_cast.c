/* Cast plans against dtype_cast: every plan, every code at every element position
 * among random others, run word by word on this machine; and in storage orders
 * other than the plain one. */
#include "cast/plan.h"
#include "support/bits.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const DType targets[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32,    DTYPE_tf32,
                                DTYPE_i8,  DTYPE_u8,   DTYPE_f8e4m3, DTYPE_f8e5m2};
enum { TARGETS = sizeof targets / sizeof *targets, BITS_MAX = 8 * CAST_ELEMENTS_MAX };
static const unsigned machines[] = {80, 89, 90};

static uint64_t random_u64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static bool is_source(DType t)
{
    return dtype_bits(t) <= 8 && t != DTYPE_bool;
}

/* Of f16 and wider types any NaN is as good as another. */
static bool is_same(DType t, uint64_t a, uint64_t b)
{
    bool is_free = dtype_bits(t) > 8;
    return a == b || (is_free && isnan(dtype_decode(t, a)) && isnan(dtype_decode(t, b)));
}

/* Stores element codes as the plan's order says; the other bits stay. */
static void store_codes(const CastQuery *q, const uint8_t *codes, uint32_t *words)
{
    unsigned bits = dtype_bits(q->from);
    for (unsigned i = 0; i < q->elements * bits; i++) {
        unsigned at = q->order ? q->order[i] : i;
        uint32_t bit = UINT32_C(1) << at % 32;
        words[at / 32] = codes[i / bits] >> i % bits & 1 ? words[at / 32] | bit
                                                         : words[at / 32] & ~bit;
    }
}

static void check_codes(const CastPlan *plan, const uint8_t *codes)
{
    const CastQuery *q = &plan->query;
    uint32_t in[8], out[CAST_WORDS_MAX], before[8];
    for (unsigned i = 0; i < 8; i++)
        in[i] = (uint32_t)random_u64();
    store_codes(q, codes, in);
    memcpy(before, in, sizeof in);
    cast_run(plan, in, out);
    assert_memory_equal(in, before, sizeof in);
    for (unsigned e = 0; e < q->elements; e++) {
        uint64_t got = bits_get(out, e, dtype_bits(q->to));
        uint64_t expected = dtype_cast(q->to, q->from, codes[e]);
        if (!is_same(q->to, got, expected))
            fail_msg("%s -> %s on sm_%u, element %u of %u, code %#x: %#llx, expected %#llx",
                     dtype_name(q->from), dtype_name(q->to), q->sm, e, q->elements, codes[e],
                     (unsigned long long)got, (unsigned long long)expected);
    }
}

/* Every code in every place, among random others: each place runs through all
 * codes in an order of its own, some rounds long. */
static void check_plan(const CastPlan *plan)
{
    enum { ROUNDS = 3 };
    unsigned mask = (unsigned)bits_mask(dtype_bits(plan->query.from));
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint8_t keys[CAST_ELEMENTS_MAX], codes[CAST_ELEMENTS_MAX];
        for (unsigned e = 0; e < CAST_ELEMENTS_MAX; e++)
            keys[e] = (uint8_t)(random_u64() & mask);
        for (unsigned code = 0; code <= mask; code++) {
            for (unsigned e = 0; e < plan->query.elements; e++)
                codes[e] = (uint8_t)(code ^ keys[e]);
            check_codes(plan, codes);
        }
    }
}

/* Plans and checks; whether there is a plan. */
static bool check_cast(CastQuery q)
{
    Arena arena;
    CastPlan plan;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    bool planned = cast_plan(&arena, &q, &plan);
    if (planned)
        check_plan(&plan);
    arena_free(&arena);
    return planned;
}

/* The casts that have no plan, and why. */
static bool is_planned(DType to, DType from, unsigned sm)
{
    const DTypeInfo *info = &dtype_info[from];
    if (to == from)
        return false;                       /* nothing to do but for NaN */
    if ((to != DTYPE_f8e4m3 && to != DTYPE_f8e5m2) || info->bits == 4)
        return true;
    bool is_float = info->kind == DKIND_FLOAT;
    if (to == DTYPE_f8e5m2 && is_float && (info->exponent > 5 || info->special == SPECIAL_FN))
        return false;                       /* infinity and NaN, which cvt saturates */
    if (sm >= 89)
        return true;
    /* Without cvt only where f8e5m2 is the upper byte of f16. */
    if (to == DTYPE_f8e4m3)
        return false;
    return is_float ? info->mantissa <= 2 : info->bits - (info->kind == DKIND_INT) <= 3;
}

static void test_every_cast(void **state)
{
    (void)state;
    static const unsigned elements[] = {CAST_ELEMENTS_MAX, 5, 1};
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned i = 0; is_source(from) && i < TARGETS; i++)
            for (unsigned s = 0; s < 3; s++)
                for (unsigned n = 0; n < 3; n++) {
                    CastQuery q = {from, targets[i], elements[n], machines[s], NULL};
                    bool planned = check_cast(q);
                    if (planned != is_planned(targets[i], from, machines[s]))
                        fail_msg("%s -> %s on sm_%u has %s plan", dtype_name(from),
                                 dtype_name(targets[i]), machines[s], planned ? "a" : "no");
                }
}

static void test_every_length(void **state)
{
    (void)state;
    static const DType from[] = {DTYPE_u1, DTYPE_i3, DTYPE_f4e2m1, DTYPE_f6e3m2, DTYPE_i8};
    for (unsigned f = 0; f < sizeof from / sizeof *from; f++)
        for (unsigned n = 1; n <= CAST_ELEMENTS_MAX; n++)
            for (unsigned i = 0; i < TARGETS; i++)
                check_cast((CastQuery){from[f], targets[i], n, 90, NULL});
}

/* Elements in another order, whole; then every bit for itself. */
static void test_orders(void **state)
{
    (void)state;
    static const DType from[] = {DTYPE_u2, DTYPE_i4, DTYPE_f4e2m1, DTYPE_u5, DTYPE_i8,
                                 DTYPE_f6e3m2, DTYPE_f8e4m3};
    enum { ELEMENTS = 8 };
    uint16_t order[8 * ELEMENTS];
    for (unsigned f = 0; f < sizeof from / sizeof *from; f++) {
        unsigned bits = dtype_bits(from[f]), count = bits * ELEMENTS;
        for (unsigned parted = 0; parted < 2; parted++) {
            for (unsigned i = 0; i < count; i++)
                order[i] = (uint16_t)(parted ? i * 5 % count
                                             : (i / bits * 3 % ELEMENTS) * bits + i % bits);
            if (parted && count % 5 == 0)
                for (unsigned i = 0; i < count; i++)
                    order[i] = (uint16_t)(i * 7 % count);
            for (unsigned i = 0; i < TARGETS; i++)
                check_cast((CastQuery){from[f], targets[i], ELEMENTS, 90, order});
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cast),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_orders),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
