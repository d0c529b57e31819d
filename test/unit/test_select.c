/* Matrices and memory traffic: ldmatrix is modelled from its description in the
 * PTX ISA, and must give each thread what the tile's layout says. */
#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "ir/verify.h"
#include "select/matrix.h"
#include "select/select.h"
#include "select/traffic.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Fixture {
    Diag diag;
    Module *module;
    Op *load;           /* the last op that has a layout in memory */
} Fixture;

static bool keep_access(Op *op, void *data)
{
    if (op_attr(op, ATTR_OFFSETS))
        *(Op **)data = op;
    return true;
}

static void open_text(Fixture *f, const char *text)
{
    diag_init(&f->diag);
    f->module = module_new(&f->diag);
    assert_non_null(f->module);
    if (setjmp(f->diag.oom.jump))
        fail_msg("out of memory");
    diag_set_source(&f->diag, "test", text, strlen(text), 1);
    if (!parse_module(f->module, NULL, 0) || !verify_module(f->module))
        fail_msg("%s: %s", text, f->diag.count ? f->diag.messages[0].text : "?");
    region_walk(f->module->programs->body, keep_access, &f->load);
}

static void open_shared(Fixture *f, unsigned warps, const char *tensor, const char *load)
{
    char text[512];
    snprintf(text, sizeof text, "program @p<1>() warps(%u) {\n %%s = allocate_shared : %s\n"
             " %%x = load_shared %%s%s\n}\n", warps, tensor, load);
    open_text(f, text);
}

static void close_text(Fixture *f)
{
    module_free(f->module);
    diag_free(&f->diag);
}

/* ---- matrices -------------------------------------------------------------- */

/* The tile's index of element `e` of the row whose address lane `lane` gives for
 * matrices `first` and up. */
static void row_element(const MatrixPlan *plan, int64_t warp, int64_t first, unsigned lane,
                        unsigned e, int64_t *index)
{
    int64_t low[LIMIT_RANK], high[LIMIT_RANK];
    layout_index(plan->outer, warp, first, index);
    matrix_steps(plan, low, high);
    for (unsigned d = 0; d < plan->outer->rank; d++)
        index[d] = index[d] * plan->extents[d] + (lane >> 3 & 1) * low[d] +
                   (lane >> 4 & 1) * high[d];
    index[plan->row] += lane & 7;
    index[plan->column] += e;
}

/* Element `e` of the 32-bit word that `lane` gets of matrix `j`: PTX ISA,
 * "ldmatrix". */
static void loaded_element(const MatrixPlan *plan, int64_t warp, int64_t first, unsigned j,
                           unsigned lane, unsigned e, unsigned word, int64_t *index)
{
    unsigned row = lane / 4, column = lane % 4 * word + e;
    if (via_info[plan->via].transposed)
        row_element(plan, warp, first, 8 * j + column, row, index);
    else
        row_element(plan, warp, first, 8 * j + row, column, index);
}

static void check_matrices(const Fixture *f, const MatrixPlan *plan)
{
    const Type *tile = op_tile_type(f->load);
    unsigned word = 32 / dtype_bits(tile->dtype), n = via_info[plan->via].matrices;
    for (int64_t thread = 0; thread < tile->layout->threads; thread++)
        for (int64_t slot = 0; slot < tile->layout->slots; slot++) {
            int64_t expected[LIMIT_RANK], got[LIMIT_RANK], i = slot / word;
            layout_index(tile->layout, thread, slot, expected);
            loaded_element(plan, thread / 32, i / n * n, (unsigned)(i % n),
                           (unsigned)(thread % 32), (unsigned)(slot % word), word, got);
            for (unsigned d = 0; d < tile->rank; d++)
                if (got[d] != expected[d])
                    fail_msg("thread %lld, slot %lld, dimension %u: %lld, expected %lld",
                             (long long)thread, (long long)slot, d, (long long)got[d],
                             (long long)expected[d]);
        }
}

typedef struct MatrixCase {
    const char *via;            /* or NULL: no matrices ... */
    const char *why;            /* ... for this reason */
    unsigned warps;
    const char *tensor, *load;
} MatrixCase;

#define A "local(2, 1).column_local(2, 2).spatial(8, 4).local(1, 2)"
#define B "local(2, 1).column_spatial(4, 8).local(2, 1)"

static const MatrixCase matrix_cases[] = {
    {"ldmatrix.x1", NULL, 1, "f16[8, 8]", "[0, 0] : f16[8, 8] @ spatial(8, 4).local(1, 2)"},
    {"ldmatrix.x2", NULL, 1, "f16[16, 8]",
     "[0, 0] : f16[16, 8] @ local(2, 1).spatial(8, 4).local(1, 2)"},
    {"ldmatrix.x4", NULL, 1, "bf16[32, 16]", "[0, 0] : bf16[32, 16] @ " A},
    {"ldmatrix.x4", NULL, 2, "f16[64, 16]", "[0, 0] : f16[64, 16] @ spatial(2, 1)." A},
    {"ldmatrix.x4", NULL, 4, "f16[64, 16]", "[0, 0] : f16[64, 16] @ replicate(2).spatial(2, 1)." A},
    {"ldmatrix.x4", NULL, 1, "f16[64, 64] shared strides(72, 1)", "[8, 16] : f16[32, 16] @ " A},
    {"ldmatrix.x4", NULL, 1, "u8[32, 32]",
     "[0, 0] : u8[32, 32] @ local(2, 1).column_local(2, 2).spatial(8, 4).local(1, 4)"},
    {"ldmatrix.x4", NULL, 1, "tf32[16, 8]", "[0, 0] : tf32[16, 8] @ column_local(2, 2).spatial(8, 4)"},
    {"ldmatrix.x4", NULL, 1, "u4[16, 64]",
     "[0, 0] : u4[16, 64] @ column_local(2, 2).spatial(8, 4).local(1, 8)"},
    {"ldmatrix.x2.trans", NULL, 1, "f16[16, 8]", "[0, 0] : f16[16, 8] @ " B},
    {"ldmatrix.x4.trans", NULL, 2, "f16[16, 32]",
     "[0, 0] : f16[16, 32] @ spatial(1, 2).local(1, 2)." B},
    {"ldmatrix.x2", NULL, 1, "f16[16, 8] shared strides(1, 16)", "[0, 0] : f16[16, 8] @ " B},
    {"ldmatrix.x4.trans", NULL, 1, "f16[32, 16] shared strides(1, 32)",
     "[0, 0] : f16[32, 16] @ " A},
    {"ldmatrix.x2", NULL, 1, "f16[16, 24]",     /* three by two */
     "[0, 0] : f16[16, 24] @ column_local(2, 3).spatial(8, 4).local(1, 2)"},
    {"ldmatrix.x1", NULL, 1, "f16[16, 24]",     /* two by three: pairs lie differently */
     "[0, 0] : f16[16, 24] @ local(2, 3).spatial(8, 4).local(1, 2)"},
    {"ldmatrix.x2", NULL, 1, "f16[16, 4, 8]",
     "[0, 2, 0] {dims = [0, 2]} : f16[16, 8] @ local(2, 1).spatial(8, 4).local(1, 2)"},
    {"ldmatrix.x2", NULL, 1, "f16[2, 8, 8]",
     "[0, 0, 0] : f16[2, 8, 8] @ local(2, 1, 1).spatial(1, 8, 4).local(1, 1, 2)"},
    /* refused */
    {NULL, "row stride 24 bytes is not a multiple of 16", 1, "f16[16, 8] shared strides(12, 1)",
     "[0, 0] : f16[16, 8] @ local(2, 1).spatial(8, 4).local(1, 2)"},
    {NULL, "offset 4 in dimension 1 is not known to be a multiple of 8, a width of 16 needs that", 1,
     "f16[16, 16]", "[0, 4] : f16[16, 8] @ local(2, 1).spatial(8, 4).local(1, 2)"},
    {NULL, "in dimension 0, stride 136 bytes is not a multiple of 16", 1,
     "f16[2, 8, 8] shared strides(68, 8, 1)",
     "[0, 0, 0] : f16[2, 8, 8] @ local(2, 1, 1).spatial(1, 8, 4).local(1, 1, 2)"},
    {NULL, "the layout does not end in spatial(8, 4).local(1, 2), the matrix of 16-byte rows", 1,
     "f16[16, 16]", "[0, 0] : f16[16, 16] @ spatial(16, 2).local(1, 8)"},
    {NULL, "it would be transposed, which moves 16-bit elements, these have 8 bits", 1,
     "u8[16, 8]", "[0, 0] : u8[16, 8] @ column_spatial(4, 8).local(4, 1)"},
    {NULL, "neither dimension of the matrix has stride 1", 1,
     "f16[8, 8] shared strides(16, 2)", "[0, 0] : f16[8, 8] @ spatial(8, 4).local(1, 2)"},
};

static void test_matrices(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof matrix_cases / sizeof *matrix_cases; i++) {
        const MatrixCase *c = &matrix_cases[i];
        Fixture f;
        open_shared(&f, c->warps, c->tensor, c->load);
        MatrixPlan plan;
        const char *why = NULL;
        bool fits = matrix_plan(f.module, f.load, &plan, &why);
        if (!fits && (!c->why || strcmp(why, c->why)))
            fail_msg("case %zu: %s", i, why);
        if (fits && (!c->via || strcmp(via_info[plan.via].spelling, c->via)))
            fail_msg("case %zu: %s", i, via_info[plan.via].spelling);
        if (fits)
            check_matrices(&f, &plan);
        close_text(&f);
    }
}

/* ---- traffic ------------------------------------------------------------------ */

typedef struct ConflictCase {
    unsigned ways, lane_bytes;
    const char *tensor, *load;
} ConflictCase;

static const ConflictCase conflict_cases[] = {
    {1, 4, "f32[32]", "[0] : f32[32] @ spatial(32)"},
    {32, 4, "f32[32, 32]", "[0, 0] : f32[32, 1] @ spatial(32, 1)"},
    {1, 4, "f32[32, 32] shared strides(33, 1)", "[0, 0] : f32[32, 1] @ spatial(32, 1)"},
    {2, 4, "f32[32, 2]", "[0, 0] : f32[32, 1] @ spatial(32, 1)"},
    {1, 16, "f32[128]", "[0] : f32[128] @ spatial(32).local(4)"},
    {1, 8, "f32[64]", "[0] : f32[64] @ spatial(32).local(2)"},
    {8, 16, "f32[32, 32]", "[0, 0] : f32[32, 4] @ spatial(32, 1).local(1, 4)"},
    {1, 2, "f16[64]", "[0] : f16[32] @ spatial(32)"},
    {1, 4, "f32[1]", "[0] : f32[1] @ replicate(32)"},
    {8, 16, "f16[16, 64]", "[0, 0] : f16[16, 16] @ column_local(2, 2).spatial(8, 4).local(1, 2)"},
    {1, 16, "f16[16, 64] shared strides(72, 1)",
     "[0, 0] : f16[16, 16] @ column_local(2, 2).spatial(8, 4).local(1, 2)"},
    {1, 1, "u6[64]", "[0] : u6[64] @ spatial(32).local(2)"},
};

static void test_conflicts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof conflict_cases / sizeof *conflict_cases; i++) {
        const ConflictCase *c = &conflict_cases[i];
        Fixture f;
        open_shared(&f, 1, c->tensor, c->load);
        Access a = select_access(f.module, f.load, 0);
        unsigned ways = access_conflict_ways(f.module, f.load, &a);
        unsigned bytes = access_lane_bytes(f.load, &a);
        if (ways != c->ways || bytes != c->lane_bytes)
            fail_msg("case %zu: %u ways, %u bytes a lane", i, ways, bytes);
        close_text(&f);
    }
}

typedef struct SectorCase {
    unsigned sectors, least;
    const char *view, *load;
} SectorCase;

static const SectorCase sector_cases[] = {
    {16, 16, "f16[256]", "[0] : f16[256] @ spatial(32).local(8)"},
    {4, 4, "f32[32]", "[0] : f32[32] @ spatial(32)"},
    {5, 4, "f32[64]", "[4] : f32[32] @ spatial(32)"},                       /* from byte 16 on */
    {32, 4, "f32[32, 8]", "[0, 0] : f32[32, 1] @ spatial(32, 1)"},
    {32, 4, "f32[32, %n]", "[0, 0] : f32[32, 1] @ spatial(32, 1)"},
    {8, 4, "f16[8, %n]", "[0, 0] : f16[8, 8] @ spatial(8, 4).local(1, 2)"},
    {1, 1, "f32[1]", "[0] : f32[1] @ replicate(32)"},
    {1, 1, "u6[64]", "[0] : u6[32] @ spatial(32)"},
};

static void test_sectors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof sector_cases / sizeof *sector_cases; i++) {
        const SectorCase *c = &sector_cases[i];
        char text[512];
        Fixture f;
        snprintf(text, sizeof text, "program @p<1>(%%g: ptr<f64> {align = 16}, %%n: i32 {divisible "
                 "= 8, range = [8, 64]}) warps(1) {\n %%v = view_global %%g : %s\n"
                 " %%x = load_global %%v%s\n}\n", c->view, c->load);
        open_text(&f, text);
        Access a = select_access(f.module, f.load, 0);
        unsigned least, sectors = access_sectors(f.module, f.load, &a, &least);
        if (sectors != c->sectors || least != c->least)
            fail_msg("case %zu: %u sectors, %u at least", i, sectors, least);
        close_text(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrices),
        cmocka_unit_test(test_conflicts),
        cmocka_unit_test(test_sectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
