/* Plans for casts from f16, bf16 and f32 to types of up to 8 bits against
 * dtype_cast, run word by word on this machine: all 65536 codes of f16 and bf16,
 * each at every place of a group of elements; of f32 every exponent with a dense
 * choice of mantissas, the numbers around every tie of the target, and random codes,
 * others for each target. */
#include "cast/plan.h"
#include "support/bits.h"
#include "sweep.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { HALF_CODES = 1 << 16, RANDOM_CODES = 200000, GROUP = 8 };

static const DType sources[] = {DTYPE_f16, DTYPE_bf16, DTYPE_f32};
enum { SOURCES = sizeof sources / sizeof *sources };

/* Where plans differ: without and with instructions for f8e4m3, and by cost. */
static const unsigned machines[] = {80, 89, 90};

static uint64_t random_u64(void)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static bool is_target(DType t)
{
    return dtype_bits(t) <= 8 && t != DTYPE_bool;
}

/* A list of codes of a source. */
typedef struct Codes {
    uint32_t *at;
    size_t count, capacity;
} Codes;

static void add_code(Codes *codes, uint32_t code)
{
    if (codes->count == codes->capacity) {
        codes->capacity = codes->capacity ? 2 * codes->capacity : 1024;
        codes->at = realloc(codes->at, codes->capacity * sizeof *codes->at);
        assert_non_null(codes->at);
    }
    codes->at[codes->count++] = code;
}

/* ---- plans ------------------------------------------------------------------- */

typedef struct Fixture {
    Arena arena;
    OutOfMemory oom;
} Fixture;

/* Elements of `from` in words; bits past the last one are random. */
static void store_codes(DType from, const uint32_t *codes, unsigned count, uint32_t *words)
{
    unsigned bits = dtype_bits(from);
    for (unsigned i = 0; i < CAST_ELEMENTS_MAX; i++)
        bits_set(words, i, bits, i < count ? codes[i] : random_u64() & bits_mask(bits));
}

static void check_codes(const CastPlan *plan, const uint32_t *codes)
{
    const CastQuery *q = &plan->query;
    uint32_t in[CAST_WORDS_MAX], before[CAST_WORDS_MAX], out[CAST_WORDS_MAX];
    store_codes(q->from, codes, q->elements, in);
    memcpy(before, in, sizeof in);
    cast_run(plan, in, out);
    assert_memory_equal(in, before, sizeof in);
    for (unsigned e = 0; e < q->elements; e++) {
        uint64_t got = bits_get(out, e, dtype_bits(q->to));
        uint64_t expected = dtype_cast(q->to, q->from, codes[e]);
        if (got != expected)
            fail_msg("%s -> %s on sm_%u, element %u of %u, code %#x: %#llx, expected %#llx",
                     dtype_name(q->from), dtype_name(q->to), q->sm, e, q->elements, codes[e],
                     (unsigned long long)got, (unsigned long long)expected);
    }
}

/* Runs a plan over a list: `step` codes further from one run to the next, so that
 * a step of 1 shows each code to each element. */
static void check_list(const CastPlan *plan, const Codes *codes, unsigned step)
{
    uint32_t part[CAST_ELEMENTS_MAX];
    for (size_t first = 0; first < codes->count; first += step) {
        for (unsigned e = 0; e < plan->query.elements; e++)
            part[e] = codes->at[(first + e) % codes->count];
        check_codes(plan, part);
    }
}

static bool plan_cast(Fixture *f, DType from, DType to, unsigned elements, unsigned sm,
                      CastPlan *plan)
{
    CastQuery query = {.from = from, .to = to, .elements = elements, .sm = sm};
    return cast_plan(&f->arena, &query, plan);
}

/* Returns true when two plans are the same operations. */
static bool is_same_plan(const CastPlan *a, const CastPlan *b)
{
    return a->count == b->count && !memcmp(a->out, b->out, a->out_words * sizeof *a->out) &&
           !memcmp(a->ops, b->ops, a->count * sizeof *a->ops);
}

/* Every plan of a cast, whatever its target, once. */
static void check_cast(Fixture *f, DType from, DType to, unsigned elements, const Codes *codes,
                       unsigned step)
{
    CastPlan plan, last = {0};
    for (unsigned s = 0; s < sizeof machines / sizeof *machines; s++) {
        if (!plan_cast(f, from, to, elements, machines[s], &plan) ||
            (last.ops && is_same_plan(&plan, &last)))
            continue;
        check_list(&plan, codes, step);
        last = plan;
    }
}

/* ---- 16 bits ------------------------------------------------------------------- */

/* All codes, in an order in which neighbours differ much. */
static Codes all_halves(void)
{
    Codes codes = {0};
    for (uint32_t i = 0; i < HALF_CODES; i++)
        add_code(&codes, i * 40503 & 0xffff);
    return codes;
}

static void check_halves(DType from)
{
    Fixture f;
    Codes codes = all_halves();
    for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++) {
        if (!is_target(to) || !sweep_takes(to))
            continue;
        arena_init(&f.arena, &f.oom);
        if (setjmp(f.oom.jump))
            fail_msg("out of memory");
        check_cast(&f, from, to, GROUP, &codes, 1);
        check_cast(&f, from, to, CAST_ELEMENTS_MAX, &codes, CAST_ELEMENTS_MAX);
        arena_free(&f.arena);
    }
    free(codes.at);
}

static void test_f16(void **state)
{
    (void)state;
    check_halves(DTYPE_f16);
}

static void test_bf16(void **state)
{
    (void)state;
    check_halves(DTYPE_bf16);
}

/* ---- f32 ----------------------------------------------------------------------- */

/* Every sign and exponent with every upper part of the mantissa, followed by what
 * is below, at and above a tie that some target has there. */
static void add_dense(Codes *codes)
{
    enum { UPPER = 7, LOWER = 23 - UPPER };
    static const uint32_t lower[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    for (uint32_t upper = 0; upper < UINT32_C(1) << (32 - LOWER); upper++)
        for (unsigned i = 0; i < sizeof lower / sizeof *lower; i++)
            add_code(codes, upper << LOWER | lower[i]);
}

static void add_around(Codes *codes, double value)
{
    uint32_t code = (uint32_t)dtype_encode(DTYPE_f32, value);
    for (uint32_t step = 0; step < 3; step++) {
        add_code(codes, code + step - 1);
        add_code(codes, (code + step - 1) ^ 0x80000000);
    }
}

/* The values of a target, the ties between them, and what lies past its ends. */
static void add_ties(Codes *codes, DType to)
{
    for (unsigned code = 0; code < 1u << dtype_bits(to); code++) {
        double value = dtype_decode(to, code);
        double above = dtype_decode(to, (code + 1) & bits_mask(dtype_bits(to)));
        add_around(codes, value);
        add_around(codes, (value + above) / 2);
    }
    double most = dtype_max(to);
    for (int bits = 0; bits < 9; bits++)
        add_around(codes, most * (1 + ldexp(1, -bits)));
}

static void test_f32(void **state)
{
    (void)state;
    Fixture f;
    Codes codes = {0};
    add_dense(&codes);
    size_t common = codes.count;
    for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++) {
        if (!is_target(to) || !sweep_takes(to))
            continue;
        arena_init(&f.arena, &f.oom);
        if (setjmp(f.oom.jump))
            fail_msg("out of memory");
        codes.count = common;
        add_ties(&codes, to);
        for (unsigned i = 0; i < RANDOM_CODES; i++)
            add_code(&codes, (uint32_t)random_u64());
        check_cast(&f, DTYPE_f32, to, CAST_ELEMENTS_MAX, &codes, CAST_ELEMENTS_MAX);
        arena_free(&f.arena);
    }
    free(codes.at);
}

/* ---- plans and lengths ----------------------------------------------------------- */

/* Every one of these casts has a plan on every target. */
static void test_plans(void **state)
{
    (void)state;
    Fixture f;
    CastPlan plan;
    arena_init(&f.arena, &f.oom);
    if (setjmp(f.oom.jump))
        fail_msg("out of memory");
    for (unsigned i = 0; i < SOURCES; i++)
        for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++)
            for (unsigned s = 0; is_target(to) && s < 3; s++)
                if (!plan_cast(&f, sources[i], to, CAST_ELEMENTS_MAX, machines[s], &plan))
                    fail_msg("%s -> %s on sm_%u has no plan", dtype_name(sources[i]),
                             dtype_name(to), machines[s]);
    arena_free(&f.arena);
}

/* Groups of every length, whose last word is filled in part. */
static void test_lengths(void **state)
{
    (void)state;
    Fixture f;
    Codes codes = all_halves();
    codes.count = 1024;
    for (DType to = DTYPE_none + 1; to < DTYPE_COUNT; to++) {
        if (!is_target(to))
            continue;
        arena_init(&f.arena, &f.oom);
        if (setjmp(f.oom.jump))
            fail_msg("out of memory");
        for (unsigned n = 1; n <= CAST_ELEMENTS_MAX; n++)
            for (unsigned i = 0; i < SOURCES; i++)
                check_cast(&f, sources[i], to, n, &codes, 37);
        arena_free(&f.arena);
    }
    free(codes.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_f16),
        cmocka_unit_test(test_bf16),
        cmocka_unit_test(test_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
