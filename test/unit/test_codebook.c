/* Plans of `lookup` against the definition: every code at every place among random
 * others, in random tables, run word by word on this machine. */
#include "cast/plan.h"
#include "support/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const DType codes_of[] = {DTYPE_none, DTYPE_u1, DTYPE_u2, DTYPE_u3, DTYPE_u4};

/* Inputs of a plan: words of codes, then words of the table. */
enum { CODE_WORDS = 4, TABLE_WORDS = 8, BITS_MAX = 4 };

static uint64_t random_u64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static CastQuery query_of(DType from, DType to, unsigned elements)
{
    return (CastQuery){.from = from, .to = to, .elements = elements, .sm = 90};
}

static void check_codes(const CastPlan *plan, const uint8_t *codes)
{
    const CastQuery *q = &plan->query;
    unsigned bits = dtype_bits(q->from), width = dtype_bits(q->to);
    uint32_t in[CODE_WORDS + TABLE_WORDS], before[CODE_WORDS + TABLE_WORDS];
    uint32_t out[CAST_WORDS_MAX];
    for (unsigned i = 0; i < CODE_WORDS + TABLE_WORDS; i++)
        in[i] = (uint32_t)random_u64();
    for (unsigned e = 0; e < q->elements; e++)
        bits_set(in, e, bits, codes[e]);
    memcpy(before, in, sizeof in);
    cast_run(plan, in, out);
    assert_memory_equal(in, before, sizeof in);
    for (unsigned e = 0; e < q->elements; e++) {
        uint64_t got = bits_get(out, e, width);
        uint64_t expected = bits_get(in + cast_source_words(q), codes[e], width);
        if (got != expected)
            fail_msg("%s in a table of %s, element %u of %u, code %u: %#llx, expected %#llx",
                     dtype_name(q->from), dtype_name(q->to), e, q->elements, codes[e],
                     (unsigned long long)got, (unsigned long long)expected);
    }
}

/* Each place runs through all codes in an order of its own. */
static void check_plan(const CastPlan *plan)
{
    unsigned mask = (unsigned)bits_mask(dtype_bits(plan->query.from));
    for (unsigned round = 0; round < 4; round++) {
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

/* Plans and checks; its operations go to `count`. */
static bool check_query(CastQuery q, CastPlan *plan, CastCount *count)
{
    Arena arena;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    bool planned = cast_plan_codebook(&arena, &q, plan);
    if (planned) {
        check_plan(plan);
        *count = cast_count(plan);
    }
    arena_free(&arena);
    return planned;
}

static void test_every_table(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16, DTYPE_u16, DTYPE_f8e4m3, DTYPE_i8};
    CastPlan plan;
    CastCount count;
    for (unsigned bits = 1; bits <= BITS_MAX; bits++)
        for (unsigned i = 0; i < sizeof to / sizeof *to; i++)
            for (unsigned n = 1; n <= CAST_ELEMENTS_MAX; n++) {
                CastQuery q = query_of(codes_of[bits], to[i], n);
                if (!check_query(q, &plan, &count))
                    fail_msg("no plan for %u codes of %u bits in %s", n, bits,
                             dtype_name(to[i]));
            }
}

/* The operations of 32 elements, and those that split the table. */
static void test_counts(void **state)
{
    (void)state;
    static const unsigned halves[] = {0, 39, 48, 67, 84}, bytes[] = {0, 28, 32, 43, 44};
    static const unsigned tables[] = {0, 2, 2, 4, 8};
    CastPlan plan;
    CastCount count;
    for (unsigned bits = 1; bits <= BITS_MAX; bits++) {
        check_query(query_of(codes_of[bits], DTYPE_f16, 32), &plan, &count);
        assert_int_equal(count.total, halves[bits]);
        assert_int_equal(count.unit[CAST_UNIT_INT], halves[bits]);
        assert_int_equal(plan.table_ops, tables[bits]);
        check_query(query_of(codes_of[bits], DTYPE_u8, 32), &plan, &count);
        assert_int_equal(count.total, bytes[bits]);
    }
}

/* Codes past 4 bits, and entries of other widths, have no plan; casts never go by it. */
static void test_refused(void **state)
{
    (void)state;
    CastPlan plan;
    CastCount count;
    assert_false(check_query(query_of(DTYPE_u5, DTYPE_f16, 8), &plan, &count));
    assert_false(check_query(query_of(DTYPE_i4, DTYPE_f16, 8), &plan, &count));
    assert_false(check_query(query_of(DTYPE_u4, DTYPE_f32, 8), &plan, &count));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_table),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
