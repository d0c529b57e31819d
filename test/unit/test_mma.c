/* Tensor core instructions: the fragments of each row of mma.def against the
 * formulas that the PTX ISA gives for the element i of lane g * 4 + t. */
#include "codegen/dot.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { LANES = 32 };

static Arena arena;
static LayoutTable table;

typedef struct Place {
    int64_t row, column;
} Place;

/* Numbers the elements of an operand as the manual does. */
typedef Place Formula(int g, int t, int i);

static Place a_tf32(int g, int t, int i)
{
    return (Place){i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
}

static Place b_tf32(int g, int t, int i)
{
    return (Place){i == 0 ? t : t + 4, g};
}

static Place a_half(int g, int t, int i)
{
    return (Place){i < 2 || (4 <= i && i < 6) ? g : g + 8, t * 2 + (i & 1) + (i < 4 ? 0 : 8)};
}

static Place b_half(int g, int t, int i)
{
    return (Place){t * 2 + (i & 1) + (i < 2 ? 0 : 8), g};
}

static Place a_byte(int g, int t, int i)
{
    return (Place){i < 4 || (8 <= i && i < 12) ? g : g + 8,
                   t * 4 + (i & 3) + (i < 8 ? 0 : 16)};
}

static Place b_byte(int g, int t, int i)
{
    return (Place){t * 4 + (i & 3) + (i < 4 ? 0 : 16), g};
}

static Place a_nibble(int g, int t, int i)
{
    return (Place){i < 8 || (16 <= i && i < 24) ? g : g + 8,
                   t * 8 + (i & 7) + (i < 16 ? 0 : 32)};
}

static Place b_nibble(int g, int t, int i)
{
    return (Place){t * 8 + (i & 7) + (i < 8 ? 0 : 32), g};
}

static Place c_any(int g, int t, int i)
{
    return (Place){i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

/* Returns the formula for the width of an element. */
static Formula *formula_of(unsigned operand, unsigned bits)
{
    static Formula *const of_a[] = {a_nibble, a_byte, a_half, a_tf32};
    static Formula *const of_b[] = {b_nibble, b_byte, b_half, b_tf32};
    unsigned width = bits == 4 ? 0 : bits == 8 ? 1 : bits == 16 ? 2 : 3;
    return operand == MMA_A ? of_a[width] : operand == MMA_B ? of_b[width] : c_any;
}

static void expect_fragment(const Mma *mma, unsigned operand)
{
    const Layout *l = mma_fragment(&table, mma, operand);
    Formula *formula = formula_of(operand, dtype_bits(mma->types[operand]));
    int64_t shape[2], at[2];
    mma_shape(mma, operand, shape);
    assert_non_null(l);
    assert_int_equal(l->threads, LANES);
    assert_int_equal(l->slots, shape[0] * shape[1] / LANES);
    assert_memory_equal(l->shape, shape, sizeof shape);
    for (int lane = 0; lane < LANES; lane++)
        for (int i = 0; i < l->slots; i++) {
            Place p = formula(lane >> 2, lane & 3, i);
            layout_index(l, lane, i, at);
            if (at[0] != p.row || at[1] != p.column)
                fail_msg("%s, operand %c: element %d of lane %d",
                         intrinsic_info[mma_intrinsic(mma)].name, "abc"[operand], i, lane);
        }
}

static void test_fragments(void **state)
{
    (void)state;
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        for (unsigned operand = 0; operand < MMA_OPERANDS; operand++)
            expect_fragment(mma, operand);
}

/* Batch dimensions change no place of a fragment. */
static void test_ranks(void **state)
{
    (void)state;
    for (unsigned operand = 0; operand < MMA_OPERANDS; operand++) {
        const Layout *l = mma_fragment(&table, mma_table, operand);
        const Layout *batch = mma_with_batch(&table, l, 4);
        int64_t at[2], in_batch[4];
        assert_ptr_equal(mma_with_batch(&table, l, 2), l);
        assert_int_equal(batch->rank, 4);
        for (int lane = 0; lane < LANES; lane++)
            for (int i = 0; i < l->slots; i++) {
                layout_index(l, lane, i, at);
                layout_index(batch, lane, i, in_batch);
                assert_true(!in_batch[0] && !in_batch[1]);
                assert_memory_equal(in_batch + 2, at, sizeof at);
            }
    }
}

/* Each row is found by its types, and its words are the intrinsic's letters. */
static void test_rows(void **state)
{
    (void)state;
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++) {
        assert_ptr_equal(mma_find(mma->types, mma->from, mma->k), mma);
        assert_ptr_equal(mma_find(mma->types, mma->to, mma->k), mma);
        assert_true(intrinsic_info[mma_intrinsic(mma)].sm <= mma->from);
        const char *signature = intrinsic_info[mma_intrinsic(mma)].signature;
        int64_t words[MMA_OPERANDS];
        for (unsigned i = 0; i < MMA_OPERANDS; i++)
            words[i] = mma_fragment(&table, mma, i)->slots * dtype_bits(mma->types[i]) / 32;
        assert_int_equal(strcspn(signature, ":"), words[MMA_C]);
        assert_int_equal(strlen(strchr(signature, ':') + 1),
                         words[MMA_A] + words[MMA_B] + words[MMA_C]);
    }
    assert_null(mma_find((DType[]){DTYPE_f16, DTYPE_bf16, DTYPE_f32}, 90, 16));
    assert_null(mma_find((DType[]){DTYPE_i8, DTYPE_i8, DTYPE_f32}, 90, 16));
    assert_null(mma_find((DType[]){DTYPE_f8e4m3, DTYPE_f8e4m3, DTYPE_f32}, 86, 32));
}

/* The greatest k that divides the depth. */
static void test_depths(void **state)
{
    (void)state;
    static const struct { int64_t depth, k; } cases[] = {
        {8, 8}, {16, 16}, {24, 8}, {48, 16}, {20, 8}, {1, 8}};
    const DType types[] = {DTYPE_f16, DTYPE_f16, DTYPE_f32};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(mma_find(types, 90, cases[i].depth)->k, cases[i].k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_depths),
    };
    static OutOfMemory oom;
    arena_init(&arena, &oom);
    if (setjmp(oom.jump))
        return 1;
    layout_table_init(&table, &arena);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_free(&arena);
    return failed;
}
