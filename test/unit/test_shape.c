/* Layouts of reduced, grouped and repeated tiles, and the plan of a reduction, against
 * their definitions, point by point on random layouts. */
#include "ir/ir.h"
#include "select/reduce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { CASES = 1500, POINTS = 4096 };

static Diag diag;
static Module *module;
static const char *why;

static uint64_t random_below(uint64_t *seed, uint64_t n)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (*seed >> 33) % n;
}

/* ---- random layouts --------------------------------------------------- */

/* NULL when it is too large. */
static const Layout *random_primitive(uint64_t *seed, unsigned rank)
{
    static const int64_t extents[] = {2, 2, 2, 3, 4, 8, 16};
    LayoutTable *t = &module->layouts;
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = random_below(seed, rank) ? 1 : extents[random_below(seed, 7)];
    switch (random_below(seed, 6)) {
    case 0: return layout_local(t, rank, shape, &why);
    case 1: return layout_column_local(t, rank, shape, &why);
    case 2: return layout_column_spatial(t, rank, shape, &why);
    case 3: return layout_replicate(t, rank, 2, &why);
    default: return layout_spatial(t, rank, shape, &why);
    }
}

/* Two products of the same factors in different orders: their shapes, threads
 * and slots are equal. */
typedef struct Pair {
    const Layout *first, *second;
} Pair;

static Pair random_pair(uint64_t *seed)
{
    LayoutTable *t = &module->layouts;
    unsigned rank = 1 + (unsigned)random_below(seed, 3), count = 1 + (unsigned)random_below(seed, 5);
    const Layout *f = random_primitive(seed, rank);
    while (!f)
        f = random_primitive(seed, rank);
    Pair pair = {f, f};
    while (count-- > 1) {
        const Layout *g = random_primitive(seed, rank);
        const Layout *first = g ? layout_product(t, pair.first, g, &why) : NULL;
        if (!first || first->threads * first->slots > POINTS)
            break;
        pair.second = random_below(seed, 2) ? layout_product(t, pair.second, g, &why)
                                            : layout_product(t, g, pair.second, &why);
        pair.first = first;
    }
    return pair;
}

static uint32_t random_dims(uint64_t *seed, const Layout *l)
{
    return (uint32_t)(1 + random_below(seed, (UINT64_C(1) << l->rank) - 1));
}

/* ---- elements ----------------------------------------------------------- */

static int64_t tile_size(const Layout *l)
{
    int64_t size = 1;
    for (unsigned d = 0; d < l->rank; d++)
        size *= l->shape[d];
    return size;
}

/* The row-major number, in `result`, of the group of what `slot` of `thread` holds in
 * `l`: the index divided by what a group has in the dimension. */
static int64_t element(const Layout *l, const Layout *result, int64_t thread, int64_t slot)
{
    int64_t index[LIMIT_RANK], number = 0;
    layout_index(l, thread, slot, index);
    for (unsigned d = 0; d < l->rank; d++)
        number = number * result->shape[d] + index[d] / (l->shape[d] / result->shape[d]);
    return number;
}

static bool thread_holds(const Layout *l, int64_t thread, int64_t number)
{
    for (int64_t slot = 0; slot < l->slots; slot++)
        if (element(l, l, thread, slot) == number)
            return true;
    return false;
}

static void reduction_keeps_what_threads_hold(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < CASES; i++) {
        const Layout *l = random_pair(&seed).first;
        uint32_t dims = random_dims(&seed, l);
        const Layout *r = layout_reduce(&module->layouts, l, dims, &why);
        assert_non_null(r);
        assert_int_equal(r->threads, l->threads);
        for (unsigned d = 0; d < l->rank; d++)
            assert_int_equal(r->shape[d], dims >> d & 1 ? 1 : l->shape[d]);
        /* Each slot has an element of its own, so the slots fit if all that
         * is needed is held and as many slots are left as kept modes make. */
        int64_t slots = 1;
        for (unsigned m = 0; m < l->local_count; m++)
            slots *= dims >> l->modes[l->local[m].mode].dim & 1 ? 1 : l->local[m].extent;
        assert_int_equal(r->slots, slots);
        for (int64_t thread = 0; thread < l->threads; thread++)
            for (int64_t slot = 0; slot < l->slots; slot++)
                assert_true(thread_holds(r, thread, element(l, r, thread, slot)));
    }
}

/* ---- plans --------------------------------------------------------------- */

static int64_t digits_number(const ThreadDigits *digits, int64_t thread)
{
    int64_t number = 0;
    for (unsigned i = 0; i < digits->count; i++)
        number = number * digits->digit[i].extent +
                 thread / digits->digit[i].weight % digits->digit[i].extent;
    return number;
}

static uint64_t value_of(int64_t number)
{
    uint64_t z = ((uint64_t)number + 1) * 0x9E3779B97F4A7C15u;
    return z ^ z >> 31;
}

/* sums[thread][slot of the result]: each thread's own slots. */
static void sum_slots(const Layout *l, const Layout *r, uint64_t *sums)
{
    for (int64_t thread = 0; thread < l->threads; thread++)
        for (int64_t slot = 0; slot < l->slots; slot++)
            for (int64_t to = 0; to < r->slots; to++)
                if (element(r, r, thread, to) == element(l, r, thread, slot))
                    sums[thread * r->slots + to] += value_of(element(l, l, thread, slot));
}

static void sum_lanes(const Layout *r, uint32_t lanes, uint64_t *sums)
{
    Arena *arena = &module->scratch;
    for (uint32_t distance = 1; distance <= lanes; distance *= 2) {
        if (!(lanes & distance))
            continue;
        uint64_t *before = arena_copy(arena, sums, (size_t)(r->threads * r->slots) * sizeof *sums);
        for (int64_t thread = 0; thread < r->threads; thread++) {
            assert_true((thread ^ distance) < r->threads);
            for (int64_t slot = 0; slot < r->slots; slot++)
                sums[thread * r->slots + slot] += before[(thread ^ distance) * r->slots + slot];
        }
    }
}

/* Scratch entries are written once each. */
static void sum_warps(const Layout *r, const ReducePlan *plan, uint64_t *sums)
{
    Arena *arena = &module->scratch;
    int64_t row = plan->places.size, slot_size = row * plan->partials.size;
    uint64_t *scratch = arena_array(arena, uint64_t, (size_t)(slot_size * r->slots));
    bool *written = arena_array(arena, bool, (size_t)(slot_size * r->slots));
    for (int64_t thread = 0; thread < r->threads; thread++)
        for (int64_t slot = 0; slot < r->slots && !(thread & plan->lanes); slot++) {
            int64_t at = slot * slot_size + digits_number(&plan->partials, thread) * row +
                         digits_number(&plan->places, thread);
            assert_false(written[at]);
            written[at] = true;
            scratch[at] = sums[thread * r->slots + slot];
        }
    for (int64_t i = 0; i < slot_size * r->slots; i++)
        assert_true(written[i]);
    for (int64_t thread = 0; thread < r->threads; thread++)
        for (int64_t slot = 0; slot < r->slots; slot++) {
            uint64_t sum = 0;
            for (int64_t p = 0; p < plan->partials.size; p++)
                sum += scratch[slot * slot_size + p * row + digits_number(&plan->places, thread)];
            sums[thread * r->slots + slot] = sum;
        }
}

/* expected[element of the result] */
static uint64_t *expected_sums(const Layout *l, const Layout *r)
{
    uint64_t *sums = arena_array(&module->scratch, uint64_t, (size_t)tile_size(r));
    bool *seen = arena_array(&module->scratch, bool, (size_t)tile_size(l));
    for (int64_t thread = 0; thread < l->threads; thread++)
        for (int64_t slot = 0; slot < l->slots; slot++) {
            int64_t e = element(l, l, thread, slot);
            if (!seen[e])
                sums[element(l, r, thread, slot)] += value_of(e);
            seen[e] = true;
        }
    return sums;
}

static ReducePlan plan_of(const Layout *l, const Layout *r, uint32_t dims)
{
    int64_t ints[LIMIT_RANK];
    Attr attr = {.kind = ATTR_DIMS, .ints = ints};
    for (unsigned d = 0; d < l->rank; d++)
        if (dims >> d & 1)
            ints[attr.count++] = d;
    Value from = {.type = type_reg(module, DTYPE_f32, l)};
    Value to = {.type = type_reg(module, DTYPE_f32, r)};
    Value *operand = &from, *result = &to;
    Op op = {.code = OP_reduce, .operands = &operand, .operand_count = 1, .results = &result,
             .result_count = 1, .attrs = &attr, .attr_count = 1};
    return reduce_plan(&op);
}

/* What the plan says, done to integers, sums each element once for everyone. */
static void plans_sum_everything_once(void **state)
{
    (void)state;
    uint64_t seed = 7, by_lanes = 0, by_warps = 0;
    for (int i = 0; i < CASES; i++) {
        ArenaMark mark = arena_mark(&module->scratch);
        const Layout *l = random_pair(&seed).first;
        uint32_t dims = random_dims(&seed, l);
        const Layout *r = layout_reduce(&module->layouts, l, dims, &why);
        ReducePlan plan = plan_of(l, r, dims);
        uint64_t *sums = arena_array(&module->scratch, uint64_t, (size_t)(r->threads * r->slots));
        sum_slots(l, r, sums);
        assert_true(plan.lanes < 32);
        sum_lanes(r, plan.lanes, sums);
        assert_int_equal(plan.scratch > 0, plan.partials.size > 1);
        if (plan.scratch)
            sum_warps(r, &plan, sums);
        const uint64_t *expected = expected_sums(l, r);
        for (int64_t thread = 0; thread < r->threads; thread++)
            for (int64_t slot = 0; slot < r->slots; slot++)
                assert_int_equal(sums[thread * r->slots + slot],
                                 expected[element(r, r, thread, slot)]);
        by_lanes += plan.lanes != 0;
        by_warps += plan.scratch != 0;
        arena_reset(&module->scratch, mark);
    }
    assert_true(by_lanes > CASES / 4 && by_warps > CASES / 10);
}

/* ---- groups ---------------------------------------------------------------- */

/* As many groups in each dimension as divide its extent. */
static void random_groups(uint64_t *seed, const Layout *l, int64_t *shape)
{
    for (unsigned d = 0; d < l->rank; d++) {
        shape[d] = 1 + (int64_t)random_below(seed, (uint64_t)l->shape[d]);
        while (l->shape[d] % shape[d])
            shape[d]++;
    }
}

/* Returns true when the thread's groups in `l` are the ones that it holds in `g`. */
static bool holds_its_groups(const Layout *l, const Layout *g, int64_t thread)
{
    for (int64_t slot = 0; slot < l->slots; slot++)
        if (!thread_holds(g, thread, element(l, g, thread, slot)))
            return false;
    for (int64_t slot = 0; slot < g->slots; slot++) {
        int64_t number = element(g, g, thread, slot), of = 0;
        while (of < l->slots && element(l, g, thread, of) != number)
            of++;
        if (of == l->slots)
            return false;
    }
    return true;
}

static void groups_are_held_by_who_holds_their_elements(void **state)
{
    (void)state;
    uint64_t seed = 5;
    int refused = 0;
    for (int i = 0; i < CASES; i++) {
        const Layout *l = random_pair(&seed).first;
        int64_t shape[LIMIT_RANK];
        random_groups(&seed, l, shape);
        const Layout *g = layout_group(&module->layouts, l, shape, &why);
        refused += !g;
        if (!g)
            continue;
        assert_int_equal(g->threads, l->threads);
        assert_memory_equal(g->shape, shape, l->rank * sizeof *shape);
        for (int64_t thread = 0; thread < l->threads; thread++)
            assert_true(holds_its_groups(l, g, thread));
    }
    assert_in_range(refused, 1, CASES / 4);
}

/* ---- broadcasts ------------------------------------------------------------ */

/* By trying every slot: whether one slot of `from` serves all threads. */
static bool one_slot_serves(const Layout *from, const Layout *to, int64_t slot)
{
    for (int64_t source = 0; source < from->slots; source++) {
        int64_t thread = 0;
        while (thread < to->threads &&
               element(from, from, thread, source) == element(to, from, thread, slot))
            thread++;
        if (thread == to->threads)
            return true;
    }
    return false;
}

static void broadcasts_need_one_slot_for_all_threads(void **state)
{
    (void)state;
    uint64_t seed = 3;
    int legal = 0, illegal = 0;
    for (int i = 0; i < CASES; i++) {
        Pair pair = random_pair(&seed);
        const Layout *to = pair.second;
        int64_t shape[LIMIT_RANK];
        random_groups(&seed, to, shape);
        const Layout *from = layout_group(&module->layouts, pair.first, shape, &why);
        if (!from || !layout_group(&module->layouts, to, shape, &why))
            continue;
        bool expected = true;
        for (int64_t slot = 0; expected && slot < to->slots; slot++)
            expected = one_slot_serves(from, to, slot);
        int64_t thread;
        assert_int_equal(layout_broadcasts(from, to, &thread), expected);
        *(expected ? &legal : &illegal) += 1;
        if (!expected) {
            assert_int_not_equal(element(to, from, thread, 0), element(from, from, thread, 0));
            continue;
        }
        for (int64_t slot = 0; slot < to->slots; slot++)
            for (thread = 0; thread < to->threads; thread++)
                assert_int_equal(element(to, from, thread, slot),
                                 element(from, from, thread,
                                         layout_broadcast_slot(from, to, slot)));
    }
    assert_true(legal > CASES / 10 && illegal > CASES / 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reduction_keeps_what_threads_hold),
        cmocka_unit_test(plans_sum_everything_once),
        cmocka_unit_test(groups_are_held_by_who_holds_their_elements),
        cmocka_unit_test(broadcasts_need_one_slot_for_all_threads),
    };
    diag_init(&diag);
    module = module_new(&diag);
    if (!module || setjmp(diag.oom.jump)) {
        fputs("out of memory\n", stderr);
        return 1;
    }
    int failures = cmocka_run_group_tests(tests, NULL, NULL);
    module_free(module);
    diag_free(&diag);
    return failures;
}
