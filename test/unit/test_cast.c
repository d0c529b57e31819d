/* Cast plans against dtype_cast: every plan, every code at every element position
 * among random others, run word by word on this machine; and in storage orders
 * other than the plain one. */
#include "cast/plan.h"
#include "support/bits.h"
#include "sweep.h"
#include "types/storage.h"

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

/* Takes any NaN of f16 and wider types for any other. */
static bool is_same(DType t, uint64_t a, uint64_t b)
{
    bool is_free = dtype_bits(t) > 8;
    return a == b || (is_free && isnan(dtype_decode(t, a)) && isnan(dtype_decode(t, b)));
}

/* Stores element codes as the plan's order says; the other bits stay. */
static void store_codes(const CastQuery *q, const uint8_t *codes, uint32_t *words)
{
    unsigned bits = dtype_bits(q->from);
    CastStorage storage;
    uint32_t plain[8];
    memcpy(plain, words, sizeof plain);
    for (unsigned e = 0; e < q->elements; e++)
        bits_set(plain, e, bits, codes[e]);
    memcpy(words, plain, sizeof plain);
    if (!q->packed)
        return;
    cast_storage(q->from, q->packed, &storage);
    for (unsigned w = 0; w < q->elements * bits / 32; w += storage.words)
        cast_pack_group(&storage, plain + w, words + w);
}

/* The expected result of element `e`. */
static uint64_t expected_code(const CastPlan *plan, unsigned e, unsigned code)
{
    const CastQuery *q = &plan->query;
    if (!q->deferred)
        return dtype_cast(q->to, q->from, code);
    double value = ldexp(dtype_decode(q->from, code), plan->exponents[e]);
    uint64_t exact = dtype_encode(q->to, value);
    if (dtype_decode(q->to, exact) != value)
        fail_msg("%s has no number %g, %s %#x times 2^%d", dtype_name(q->to), value,
                 dtype_name(q->from), code, plan->exponents[e]);
    return exact;
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
        if ((q->finite || q->deferred) && !isfinite(dtype_decode(q->from, codes[e])))
            continue;
        uint64_t expected = expected_code(plan, e, codes[e]);
        if (!is_same(q->to, got, expected))
            fail_msg("%s -> %s on sm_%u, element %u of %u, code %#x: %#llx, expected %#llx",
                     dtype_name(q->from), dtype_name(q->to), q->sm, e, q->elements, codes[e],
                     (unsigned long long)got, (unsigned long long)expected);
    }
}

/* A plan has the operations that its result needs alone. */
static void check_used(const CastPlan *plan)
{
    bool *used = calloc(plan->count, sizeof *used);
    for (unsigned i = 0; i < plan->out_words; i++)
        used[plan->out[i]] = true;
    for (uint32_t i = plan->count; i-- > 0;) {
        const CastOp *op = &plan->ops[i];
        if (!used[i])
            fail_msg("%s -> %s: operation %u, %s, is not used", dtype_name(plan->query.from),
                     dtype_name(plan->query.to), i, cast_op_info[op->code].name);
        for (unsigned k = 0; k < cast_op_info[op->code].inputs; k++)
            used[op->in[k]] = true;
    }
    free(used);
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
    if (planned) {
        check_used(&plan);
        check_plan(&plan);
    }
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
                    CastQuery q = {.from = from, .to = targets[i], .elements = elements[n],
                                   .sm = machines[s]};
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
                check_cast((CastQuery){.from = from[f], .to = targets[i], .elements = n,
                                       .sm = 90});
}

/* All casts that have plans from storage orders; those to the order's own type must. */
static void test_storage_orders(void **state)
{
    (void)state;
    static const DType orders[] = {DTYPE_f16, DTYPE_bf16};
    size_t turn = 0;
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned o = 0; is_source(from) && o < 2; o++)
            for (unsigned i = 0; i < TARGETS; i++)
                for (unsigned s = 0; s < 3; s++)
                    for (int finite = 0; finite < 2; finite++) {
                        if (!sweep_takes(turn++))
                            continue;
                        CastQuery q = {.from = from, .to = targets[i],
                                       .elements = CAST_ELEMENTS_MAX, .sm = machines[s],
                                       .packed = orders[o], .finite = finite};
                        if (!check_cast(q) && q.to == q.packed)
                            fail_msg("%s packed(%s) has no plan", dtype_name(from),
                                     dtype_name(q.packed));
                        q.elements = cast_group(from);
                        check_cast(q);
                    }
}

/* Codes and the decode's elements: all but signed integers, and what does not fit. */
static bool is_decoded(DType from, DType to)
{
    const DTypeInfo *f = &dtype_info[from], *t = &dtype_info[to];
    if (f->kind != DKIND_FLOAT)
        return f->kind == DKIND_UINT;
    if (f->special == SPECIAL_E8M0 || f->mantissa > t->mantissa)
        return false;
    return f->exponent < t->exponent ||
           (f->exponent == t->exponent && f->special == SPECIAL_IEEE);
}

static void test_decode(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16};
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned i = 0; is_source(from) && i < 2; i++) {
            CastQuery q = {.from = from, .to = to[i], .elements = CAST_ELEMENTS_MAX,
                           .sm = 90, .packed = to[i],
                           .deferred = true};
            if (check_cast(q) != is_decoded(from, to[i]))
                fail_msg("decode of %s to %s", dtype_name(from), dtype_name(to[i]));
        }
}

/* The exponents that types carry are those of every plan, in each group. */
static void test_exponents(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16};
    Arena arena;
    OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned i = 0; is_source(from) && i < 2; i++)
            for (unsigned s = 0; s < 3; s++) {
                int16_t exponents[CAST_GROUP_MAX];
                CastPlan plan;
                CastQuery q = {.from = from, .to = to[i], .elements = CAST_ELEMENTS_MAX,
                               .sm = machines[s], .packed = to[i],
                               .deferred = true};
                bool planned = cast_plan(&arena, &q, &plan);
                assert_int_equal(planned, cast_exponents(&arena, from, to[i], exponents));
                for (unsigned e = 0; planned && e < CAST_ELEMENTS_MAX; e++)
                    assert_int_equal(plan.exponents[e], exponents[e % cast_group(from)]);
                assert_true(!planned || cast_count(&plan).unit[CAST_UNIT_INT] ==
                                            cast_count(&plan).total);
            }
    arena_free(&arena);
}

/* Orders are permutations of a group's bits, and packing has an inverse. */
static void test_packing(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16};
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned i = 0; is_source(from) && i < 2; i++) {
            CastStorage s;
            bool taken[CAST_GROUP_BITS_MAX] = {false};
            uint32_t plain[8], packed[8], back[8];
            assert_true(cast_has_storage(from, to[i]));
            cast_storage(from, to[i], &s);
            assert_int_equal(s.elements * dtype_bits(from), 32 * s.words);
            for (unsigned b = 0; b < 32 * s.words; b++) {
                assert_in_range(s.order[b], 0, 32 * s.words - 1);
                assert_false(taken[s.order[b]]);
                taken[s.order[b]] = true;
            }
            for (unsigned w = 0; w < s.words; w++)
                plain[w] = (uint32_t)random_u64();
            cast_pack_group(&s, plain, packed);
            cast_unpack_group(&s, packed, back);
            assert_memory_equal(plain, back, s.words * sizeof *plain);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_cast),
        cmocka_unit_test(test_every_length),
        cmocka_unit_test(test_storage_orders),
        cmocka_unit_test(test_decode),
        cmocka_unit_test(test_exponents),
        cmocka_unit_test(test_packing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
