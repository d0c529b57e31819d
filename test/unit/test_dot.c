/* Plans of dots by tensor cores: the pieces that a plan brings together must be, lane by
 * lane, what the instruction wants (mma_fragment, which test_mma.c holds to the PTX ISA). */
#include "ir/verify.h"
#include "select/dot.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { WARP = 32, TARGET = 80 };

typedef struct DotCase {
    const char *why;            /* NULL: by tensor cores */
    unsigned warps;
    const char *types[MMA_OPERANDS];
} DotCase;

typedef struct Fixture {
    const DotCase *it;
    Diag diag;
    Module *module;
    Op *dot;
    DotPlan plan;
} Fixture;

/* ---- programs --------------------------------------------------------------- */

static bool find_dot(Op *op, void *data)
{
    if (op->code == OP_dot)
        *(Op **)data = op;
    return true;
}

static void open_case(Fixture *f, const DotCase *it)
{
    char text[1024];
    *f = (Fixture){.it = it};
    snprintf(text, sizeof text, "program @p<1>() warps(%u) {\n"
             " %%a = allocate_register 1 : %s\n %%b = allocate_register 1 : %s\n"
             " %%c = allocate_register 1 : %s\n %%d = dot %%a, %%b, %%c\n}\n", it->warps,
             it->types[MMA_A], it->types[MMA_B], it->types[MMA_C]);
    diag_init(&f->diag);
    f->module = module_new(&f->diag);
    assert_non_null(f->module);
    if (setjmp(f->diag.oom.jump))
        fail_msg("out of memory");
    diag_set_source(&f->diag, "test", text, strlen(text), 1);
    if (!parse_module(f->module, NULL, 0) || !verify_module(f->module))
        fail_msg("%s: %s", text, f->diag.count ? f->diag.messages[0].text : "?");
    region_walk(f->module->programs->body, find_dot, &f->dot);
    f->plan = dot_plan(f->module, f->dot, TARGET);
}

static void close_case(Fixture *f)
{
    module_free(f->module);
    diag_free(&f->diag);
}

/* ---- what meets --------------------------------------------------------------- */

static const Layout *fragment_of(const Fixture *f, unsigned side)
{
    LayoutTable *t = &f->module->layouts;
    return mma_with_batch(t, mma_fragment(t, f->plan.mma, side), f->plan.rank);
}

/* The slot of the thread in which the plan has element `e` of a fragment. */
static int64_t element_slot(const Fixture *f, unsigned side, int64_t unit, int64_t k,
                            int64_t e)
{
    const DotSide *s = &f->plan.sides[side];
    int64_t in_piece = s->type->layout->slots / s->quotient->slots;
    return dot_slots(&f->plan, side, unit, k)[e / in_piece] * in_piece + e % in_piece;
}

/* The element of the tile in which the fragment of c begins, of which `thread` has
 * element 0. */
static void unit_origin(const Fixture *f, int64_t thread, int64_t unit, int64_t *origin)
{
    int64_t in_fragment[LIMIT_RANK];
    const Layout *fragment = fragment_of(f, MMA_C);
    layout_index(f->plan.sides[MMA_C].type->layout, thread, element_slot(f, MMA_C, unit, 0, 0),
                 origin);
    layout_index(fragment, thread % WARP, 0, in_fragment);
    for (unsigned d = 0; d < f->plan.rank; d++) {
        origin[d] -= in_fragment[d];
        assert_int_equal(origin[d] % fragment->shape[d], 0);
    }
}

/* Each element of a fragment that `thread` brings is where the instruction wants it. */
static void expect_fragment(const Fixture *f, unsigned side, int64_t thread, int64_t unit,
                            int64_t k)
{
    const Layout *fragment = fragment_of(f, side), *l = f->plan.sides[side].type->layout;
    unsigned row = f->plan.rank - 2, column = row + 1;
    int64_t origin[LIMIT_RANK], in_fragment[LIMIT_RANK], got[LIMIT_RANK];
    unit_origin(f, thread, unit, origin);
    if (side == MMA_A)
        origin[column] = k * f->plan.mma->k;
    else if (side == MMA_B)
        origin[row] = k * f->plan.mma->k;
    for (int64_t e = 0; e < fragment->slots; e++) {
        layout_index(l, thread, element_slot(f, side, unit, k, e), got);
        layout_index(fragment, thread % WARP, e, in_fragment);
        for (unsigned d = 0; d < f->plan.rank; d++)
            if (got[d] != origin[d] + in_fragment[d])
                fail_msg("%s: unit %lld, step %lld: element %lld of thread %lld has %lld in "
                         "dimension %u, expected %lld", f->it->types[side], (long long)unit,
                         (long long)k, (long long)e, (long long)thread, (long long)got[d], d,
                         (long long)(origin[d] + in_fragment[d]));
    }
}

/* The units of c take each slot once. */
static void expect_all_of_c(const Fixture *f)
{
    const DotSide *c = &f->plan.sides[MMA_C];
    int64_t count = f->plan.units * dot_pieces(c);
    bool taken[64] = {false};
    assert_int_equal(count, c->quotient->slots);
    assert_true(count <= (int64_t)(sizeof taken / sizeof *taken));
    for (int64_t i = 0; i < count; i++) {
        assert_false(taken[c->slots[i]]);
        taken[c->slots[i]] = true;
    }
}

static void expect_plan(const Fixture *f)
{
    const Layout *a = f->plan.sides[MMA_A].type->layout;
    if (!f->plan.mma)
        fail_msg("%s", f->plan.no_mma.why);
    assert_int_equal(f->plan.depth * f->plan.mma->k, a->shape[f->plan.rank - 1]);
    expect_all_of_c(f);
    for (int64_t thread = 0; thread < a->threads; thread++)
        for (int64_t unit = 0; unit < f->plan.units; unit++)
            for (int64_t k = 0; k < f->plan.depth; k++)
                for (unsigned side = MMA_A; side < MMA_OPERANDS; side++)
                    expect_fragment(f, side, thread, unit, k);
}

/* ---- cases -------------------------------------------------------------------- */

#define A "spatial(8, 4).local(1, 2)"
#define B "column_spatial(4, 8).local(2, 1)"
#define A8 "spatial(8, 4).local(1, 4)"
#define B8 "column_spatial(4, 8).local(4, 1)"
#define A3 "spatial(1, 8, 4).local(1, 1, 2)"
#define B3 "column_spatial(1, 4, 8).local(1, 2, 1)"

static const DotCase cases[] = {
    /* Fragments in one piece. */
    {NULL, 1, {"f16[32, 32] @ local(2, 2).column_local(2, 2)." A,
               "f16[32, 16] @ local(2, 2).local(2, 1)." B,
               "f32[32, 16] @ local(2, 2).local(2, 1)." A}},
    /* Rows of pieces, and columns of them. */
    {NULL, 1, {"f16[32, 32] @ local(4, 4)." A, "f16[32, 16] @ local(4, 2)." B,
               "f32[32, 16] @ local(4, 2)." A}},
    {NULL, 1, {"f16[32, 32] @ column_local(4, 4)." A, "f16[32, 16] @ column_local(4, 2)." B,
               "f16[32, 16] @ column_local(4, 2)." A}},
    {NULL, 4, {"i8[64, 64] @ spatial(2, 1).replicate(2).local(4, 4)." A8,
               "u8[64, 32] @ replicate(2).spatial(1, 2).local(4, 2)." B8,
               "i32[64, 32] @ spatial(2, 2).local(4, 2)." A}},
    {NULL, 2, {"u4[32, 128] @ spatial(2, 1).local(2, 4).spatial(8, 4).local(1, 8)",
               "i4[128, 16] @ replicate(2).local(4, 2).column_spatial(4, 8).local(8, 1)",
               "i32[32, 16] @ spatial(2, 1).local(2, 2)." A}},
    {NULL, 1, {"tf32[32, 16] @ local(4, 4).spatial(8, 4)",
               "tf32[16, 16] @ local(4, 2).column_spatial(4, 8)",
               "f32[32, 16] @ local(4, 2)." A}},
    /* Fragments of k = 8, of one and of three pieces along k. */
    {NULL, 1, {"f16[32, 8] @ column_local(4, 1)." A, "f16[8, 16] @ local(1, 2)." B,
               "f32[32, 16] @ local(4, 2)." A}},
    {NULL, 2, {"bf16[32, 24] @ spatial(2, 1).local(2, 3)." A,
               "bf16[24, 16] @ replicate(2).column_local(3, 2)." B,
               "f32[32, 16] @ spatial(2, 1).local(2, 2)." A}},
    /* Between those of other matrices of a batch. */
    {NULL, 2, {"bf16[4, 16, 32] @ spatial(2, 1, 1).local(1, 2, 4).local(2, 1, 1)." A3,
               "bf16[4, 32, 8] @ spatial(2, 1, 1).local(1, 4, 1).local(2, 1, 1)." B3,
               "f32[4, 16, 8] @ spatial(2, 1, 1).local(1, 2, 1).local(2, 1, 1)." A3}},
    /* Lanes or words lie differently. */
    {"operand a of dot, f16 @ local(1, 4).spatial(8, 4).local(2, 1), does not fit pieces "
     "spatial(8, 4).local(1, 2) of mma.m16n8k16: ", 1,
     {"f16[16, 16] @ local(1, 4).spatial(8, 4).local(2, 1)", "f16[16, 8] @ local(2, 1)." B,
      "f32[16, 8] @ local(2, 1)." A}},
    {"operand c of dot, f32 @ ", 1,
     {"f16[16, 16] @ local(2, 2)." A, "f16[16, 8] @ local(2, 1)." B,
      "f32[16, 8] @ spatial(8, 4).local(2, 2)"}},
    /* Half a fragment, of each operand. */
    {": extent 8 in dimension 0 is no multiple of 16", 1,
     {"f16[8, 16] @ local(1, 2)." A, "f16[16, 8] @ local(2, 1)." B, "f32[8, 8] @ " A}},
    {": extent 48 in dimension 1 is no multiple of 32", 1,
     {"i8[16, 48] @ local(2, 3)." A8, "i8[48, 8] @ local(3, 1)." B8,
      "i32[16, 8] @ local(2, 1)." A}},
    /* Needs a piece that another warp has. */
    {": warp 0 does not hold piece (0, 2), which its part of c needs", 2,
     {"f16[16, 32] @ spatial(1, 2).local(2, 2)." A, "f16[32, 8] @ replicate(2).local(4, 1)." B,
      "f32[16, 8] @ replicate(2).local(2, 1)." A}},
    {": warp 0 does not hold piece (1, 0), which one of its fragments needs", 2,
     {"f16[16, 16] @ replicate(2).local(2, 2)." A, "f16[16, 8] @ replicate(2).local(2, 1)." B,
      "f32[16, 8] @ spatial(2, 1)." A}},
    {": warp 0 does not hold piece (3, 0), which one of its fragments needs", 2,
     {"f16[48, 16] @ replicate(2).local(6, 2)." A, "f16[16, 8] @ replicate(2).local(2, 1)." B,
      "f32[48, 8] @ spatial(2, 1).local(3, 1)." A}},
    /* Different slots in different warps. */
    {": warp 1 holds piece (0, 1) in slot 1, warp 0 its counterpart in slot 0", 2,
     {"f16[16, 16] @ replicate(2).local(2, 2)." A, "f16[16, 16] @ replicate(2).local(2, 2)." B,
      "f32[16, 16] @ spatial(1, 2).local(2, 1)." A}},
    {": warp 1 holds piece (1, 0, 0) in slot 1, warp 0 its counterpart in slot 0", 2,
     {"f16[2, 16, 16] @ spatial(2, 1, 1).local(1, 2, 2)." A3,
      "f16[2, 16, 8] @ replicate(2).local(1, 2, 1).local(2, 1, 1)." B3,
      "f32[2, 16, 8] @ spatial(2, 1, 1).local(1, 2, 1)." A3}},
};

static void test_plans(void **state)
{
    (void)state;
    for (const DotCase *it = cases; it < cases + sizeof cases / sizeof *cases; it++) {
        Fixture f;
        open_case(&f, it);
        if (!it->why)
            expect_plan(&f);
        else if (f.plan.mma)
            fail_msg("expected '%s', got a plan", it->why);
        else if (!strstr(f.plan.no_mma.why, it->why))
            fail_msg("expected '%s', got '%s'", it->why, f.plan.no_mma.why);
        close_case(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
