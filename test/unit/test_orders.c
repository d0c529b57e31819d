/* What orders.def promises, and the goals: operations of the integer pipe that casts and
 * decodes from storage orders take. A shift to the left is not one, since ptxas makes it a
 * multiplication on the other pipe; docs/casts.md counts machine code. */
#include "cast/plan.h"
#include "types/storage.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Operations of a plan for 32 elements. */
typedef struct Operations {
    unsigned ints, lefts;
    bool planned, half;         /* there is a plan; it has arithmetic of halves */
} Operations;

static Operations operations(DType from, DType to, bool deferred)
{
    Arena arena;
    OutOfMemory oom;
    CastPlan plan;
    CastQuery query = {.from = from, .to = to, .elements = CAST_ELEMENTS_MAX, .sm = 90,
                       .packed = to, .finite = true, .deferred = deferred};
    Operations n = {0};
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        fail_msg("out of memory");
    n.planned = cast_plan(&arena, &query, &plan);
    for (uint32_t i = 0; n.planned && i < plan.count; i++) {
        CastUnit unit = cast_op_info[plan.ops[i].code].unit;
        n.lefts += plan.ops[i].code == CAST_shl;
        n.ints += unit == CAST_UNIT_INT && plan.ops[i].code != CAST_shl;
        n.half |= unit == CAST_UNIT_HALF;
    }
    arena_free(&arena);
    return n;
}

/* ---- promises --------------------------------------------------------------------- */

typedef struct Promise {
    bool is_float;
    unsigned bits, low, ints, lefts;
    DType to;
} Promise;

static const Promise promises[] = {
#define FLOAT_ORDER(bits, low, ints, lefts, ...) {true, bits, low, ints, lefts, DTYPE_none},
#define INTEGER_ORDER(bits, to, ints, lefts, lows, ...) \
    {false, bits, 0, ints, lefts, DTYPE_##to},
#include "types/orders.def"
};

static bool is_promised(const Promise *p, DType from, DType to)
{
    const DTypeInfo *f = &dtype_info[from], *t = &dtype_info[to];
    if (f->bits != p->bits || dtype_is_float(from) != p->is_float)
        return false;
    if (!p->is_float)
        return dtype_is_integer(from) && p->to == to;
    return f->special != SPECIAL_E8M0 && f->exponent <= t->exponent &&
           (unsigned)(t->mantissa - f->mantissa) == p->low;
}

/* Casts take what their row says, and each row has one. */
static void test_promises(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16};
    for (size_t i = 0; i < sizeof promises / sizeof *promises; i++) {
        const Promise *p = &promises[i];
        bool used = false;
        for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
            for (unsigned k = 0; k < 2; k++) {
                if (from == DTYPE_bool || !is_promised(p, from, to[k]))
                    continue;
                unsigned groups = CAST_ELEMENTS_MAX / cast_group(from);
                Operations n = operations(from, to[k], false);
                used = true;
                if (n.ints > groups * p->ints || n.lefts > groups * p->lefts)
                    fail_msg("%s -> %s takes %u + %u operations, not %u + %u",
                             dtype_name(from), dtype_name(to[k]), n.ints, n.lefts,
                             groups * p->ints, groups * p->lefts);
            }
        if (!used)
            fail_msg("no type has the order of %u bits at place %u", p->bits, p->low);
    }
}

/* ---- goals ------------------------------------------------------------------------ */

/* Where a goal is not met, what is: operations of 32 elements. */
typedef struct Limit {
    DType from, to;
    bool deferred;
    unsigned ints;
} Limit;

static const Limit limits[] = {
    {DTYPE_u7, DTYPE_bf16, true, 36},
    {DTYPE_f5e1m3, DTYPE_bf16, true, 35},
    {DTYPE_f6e1m4, DTYPE_bf16, true, 36},
    {DTYPE_f7e1m5, DTYPE_f16, true, 36},
    {DTYPE_f7e1m5, DTYPE_bf16, true, 36},
    {DTYPE_f7e2m4, DTYPE_f16, true, 36},
    {DTYPE_f7e2m4, DTYPE_bf16, true, 36},
    {DTYPE_f7e3m3, DTYPE_f16, true, 34},
    {DTYPE_f7e3m3, DTYPE_bf16, true, 36},
    {DTYPE_f7e4m2, DTYPE_bf16, true, 36},
    {DTYPE_f7e5m1, DTYPE_bf16, true, 36},
    {DTYPE_f7e6m0, DTYPE_bf16, true, 34},
    {DTYPE_f8e2m5, DTYPE_f16, true, 36},
    {DTYPE_f8e2m5, DTYPE_bf16, true, 36},
    {DTYPE_f8e3m4, DTYPE_bf16, true, 36},
    {DTYPE_f8e5m2, DTYPE_bf16, true, 36},
};

/* Operations of 32 elements that casts may take. */
static unsigned cast_goal(DType from, DType to)
{
    enum { LEAST = 20, ODD = 32, WIDE = 38, ANY = 96 };     /* 0.63, 1.0, 1.2 and 3 each */
    const DTypeInfo *f = &dtype_info[from];
    if (dtype_is_float(from))
        return to == DTYPE_f16 && f->exponent > 4 ? ANY : WIDE;
    return f->bits == 3 || f->bits == 5 ? ODD : f->bits == 6 || f->bits == 7 ? WIDE : LEAST;
}

static unsigned decode_goal(DType from)
{
    static const unsigned goals[] = {[1] = 17, [2] = 18, [4] = 20, [8] = 16};
    unsigned bits = dtype_bits(from);
    bool is_power = !(bits & (bits - 1));
    return is_power && !dtype_is_float(from) ? goals[bits] : 32;
}

static unsigned goal_of(DType from, DType to, bool deferred)
{
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (limits[i].from == from && limits[i].to == to && limits[i].deferred == deferred)
            return limits[i].ints;
    return deferred ? decode_goal(from) : cast_goal(from, to);
}

static void test_goals(void **state)
{
    (void)state;
    static const DType to[] = {DTYPE_f16, DTYPE_bf16};
    for (DType from = DTYPE_none + 1; from < DTYPE_COUNT; from++)
        for (unsigned i = 0; i < 4; i++) {
            bool deferred = i % 2;
            if (from == DTYPE_bool || !cast_has_storage(from, to[i / 2]))
                continue;
            Operations n = operations(from, to[i / 2], deferred);
            if (n.ints > goal_of(from, to[i / 2], deferred))
                fail_msg("%s of %s to %s takes %u operations, more than %u",
                         deferred ? "decode" : "cast", dtype_name(from),
                         dtype_name(to[i / 2]), n.ints, goal_of(from, to[i / 2], deferred));
            assert_false(deferred && n.half);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises),
        cmocka_unit_test(test_goals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
