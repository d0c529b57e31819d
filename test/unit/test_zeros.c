/* Plans that take zero points off, against the difference of two casts: every pair of
 * a code and a zero point of its own type, and shared ones of every type that a plan
 * takes; codes in every storage order. */
#include "cast/plan.h"
#include "support/bits.h"
#include "types/storage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const DType targets[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32};
static const DType orders[] = {DTYPE_none, DTYPE_f16, DTYPE_bf16};
enum { TARGETS = sizeof targets / sizeof *targets, ORDERS = sizeof orders / sizeof *orders };

static uint64_t random_u64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* The zero point and the code of each element. */
typedef struct Elements {
    uint8_t code[CAST_ELEMENTS_MAX], zero[CAST_ELEMENTS_MAX];
} Elements;

static void store_codes(const CastQuery *q, const Elements *e, uint32_t *words)
{
    uint32_t plain[8] = {0};
    CastStorage s;
    for (unsigned i = 0; i < q->elements; i++)
        bits_set(plain, i, dtype_bits(q->from), e->code[i]);
    memcpy(words, plain, sizeof plain);
    if (!q->packed)
        return;
    cast_storage(q->from, q->packed, &s);
    for (unsigned i = 0; i < q->elements / s.elements; i++)
        cast_pack_group(&s, plain + i * s.words, words + i * s.words);
}

/* Zero points behind the codes, in the result's type; of words whose zero points are
 * those of an earlier one, which no plan may read, something else. */
static void store_zeros(const CastPlan *plan, const CastZeros *zeros, const Elements *e,
                        uint32_t *words)
{
    const CastQuery *q = &plan->query;
    unsigned lanes = 32 / dtype_bits(q->to);
    for (unsigned i = 0; i < q->elements; i++) {
        uint64_t zero = dtype_cast(q->to, zeros->type, e->zero[i]);
        bits_set(words, i, dtype_bits(q->to), zero);
    }
    for (unsigned w = 0; (w + 1) * lanes <= q->elements; w++)
        for (unsigned other = 0; other < w; other++)
            if (!memcmp(zeros->of + w * lanes, zeros->of + other * lanes,
                        lanes * sizeof *zeros->of))
                words[w] = 0xdeadbeef;
}

static void check_elements(const CastPlan *plan, const CastZeros *zeros, const Elements *e)
{
    const CastQuery *q = &plan->query;
    uint32_t in[8 + CAST_WORDS_MAX] = {0}, out[CAST_WORDS_MAX];
    store_codes(q, e, in);
    store_zeros(plan, zeros, e, in + (q->elements * dtype_bits(q->from) + 31) / 32);
    cast_run(plan, in, out);
    for (unsigned i = 0; i < q->elements; i++) {
        uint64_t got = bits_get(out, i, dtype_bits(q->to));
        uint64_t expected = dtype_sub(q->to, dtype_cast(q->to, q->from, e->code[i]),
                                      dtype_cast(q->to, zeros->type, e->zero[i]));
        if (got != expected)
            fail_msg("%s - %s -> %s, element %u of %u, code %#x, zero point %#x: %#llx, "
                     "expected %#llx", dtype_name(q->from), dtype_name(zeros->type),
                     dtype_name(q->to), i, q->elements, e->code[i], e->zero[i],
                     (unsigned long long)got, (unsigned long long)expected);
    }
}

/* Plans with zero points `zeros`, and calls check; whether there is a plan. */
static bool with_plan(CastQuery q, const CastZeros *zeros,
                      void (*check)(const CastPlan *plan, const CastZeros *zeros))
{
    Arena arena;
    CastPlan plan;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    bool planned = cast_plan_zeros(&arena, &q, zeros, &plan);
    if (planned)
        check(&plan, zeros);
    arena_free(&arena);
    return planned;
}

static void check_pairs(const CastPlan *plan, const CastZeros *zeros)
{
    unsigned bits = dtype_bits(plan->query.from), mask = (1u << bits) - 1;
    for (unsigned pair = 0; pair < 1u << 2 * bits; pair += plan->query.elements) {
        unsigned turn = (unsigned)random_u64();
        Elements e;
        for (unsigned i = 0; i < plan->query.elements; i++) {
            unsigned p = pair + (i + turn) % plan->query.elements;
            e.code[i] = p & mask;
            e.zero[i] = p >> bits & mask;
        }
        check_elements(plan, zeros, &e);
    }
}

static void test_every_pair(void **state)
{
    (void)state;
    CastZeros zeros;
    for (uint16_t i = 0; i < CAST_ELEMENTS_MAX; i++)
        zeros.of[i] = i;
    for (DType t = DTYPE_u1; t <= DTYPE_i8; t++)
        for (unsigned i = 0; dtype_bits(t) <= 8 && i < TARGETS * ORDERS; i++) {
            zeros.type = t;
            CastQuery q = {.from = t, .to = targets[i % TARGETS], .packed = orders[i / TARGETS],
                           .elements = CAST_ELEMENTS_MAX, .sm = 90};
            assert_true(with_plan(q, &zeros, check_pairs));
        }
}

static void check_shared(const CastPlan *plan, const CastZeros *zeros)
{
    uint64_t code = bits_mask(dtype_bits(plan->query.from));
    uint64_t zero = bits_mask(dtype_bits(zeros->type));
    for (unsigned round = 0; round < 64; round++) {
        Elements e;
        for (unsigned i = 0; i < plan->query.elements; i++) {
            e.code[i] = (uint8_t)(random_u64() & code);
            e.zero[i] = (uint8_t)(random_u64() & zero);
            for (unsigned k = 0; k < i; k++)
                if (zeros->of[k] == zeros->of[i])
                    e.zero[i] = e.zero[k];
        }
        check_elements(plan, zeros, &e);
    }
}

/* Not where bf16, of 8 bits, holds no sum of the constant and a zero point. */
static bool is_planned(const CastQuery *q, DType zero)
{
    bool linear = dtype_bits(q->from) == 8 || q->packed;    /* without 2^M */
    double constant = (linear ? 0 : 128) + (dtype_min(q->from) < 0 ? -dtype_min(q->from) : 0);
    return q->to != DTYPE_bf16 || constant + dtype_max(zero) <= 256;
}

/* Groups of some elements, side by side or every so many, of lengths that end in a
 * word. */
static void test_shared_zeros(void **state)
{
    (void)state;
    static const unsigned lengths[] = {CAST_ELEMENTS_MAX, 13, 1};
    for (DType from = DTYPE_u1; from <= DTYPE_i8; from++)
        for (DType zero = DTYPE_u1; zero <= DTYPE_i8; zero++)
            for (unsigned i = 0; i < TARGETS * 3; i++) {
                if (dtype_bits(from) > 8 || dtype_bits(zero) > 8)
                    continue;
                CastZeros zeros = {.type = zero};
                unsigned group = 1 + (unsigned)(random_u64() % 12), length = lengths[i / TARGETS];
                bool beside = random_u64() & 1;
                for (unsigned e = 0; e < length; e++)
                    zeros.of[e] = (uint16_t)(beside ? e / group : e % group);
                DType to = targets[i % TARGETS];
                CastQuery q = {.from = from, .to = to, .elements = length, .sm = 80};
                if (length == CAST_ELEMENTS_MAX)
                    q.packed = orders[random_u64() % ORDERS];
                if (with_plan(q, &zeros, check_shared) != is_planned(&q, zero))
                    fail_msg("%s - %s -> %s has %s plan", dtype_name(from), dtype_name(zero),
                             dtype_name(to), is_planned(&q, zero) ? "no" : "a");
            }
}

/* A zero point for all costs an operation for each constant, not for each word. */
static void test_cost(void **state)
{
    (void)state;
    Arena arena;
    CastPlan plain, less;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    CastQuery q = {.from = DTYPE_u4, .to = DTYPE_f16, .elements = CAST_ELEMENTS_MAX, .sm = 90};
    CastZeros zeros = {.type = DTYPE_u4};
    assert_true(cast_plan(&arena, &q, &plain) && cast_plan_zeros(&arena, &q, &zeros, &less));
    unsigned constants = 0;
    for (uint32_t i = 0; i < less.count; i++)
        constants += less.ops[i].code == CAST_f16_sub;
    assert_in_range(constants, 1, 3);
    assert_int_equal(cast_count(&less).total, cast_count(&plain).total + constants);
    arena_free(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_pair),
        cmocka_unit_test(test_shared_zeros),
        cmocka_unit_test(test_cost),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
