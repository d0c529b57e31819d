/* Bounds proofs and access plans: programs in text, one access each. */
#include "ir/tile.h"
#include "ir/verify.h"
#include "scalar/bounds.h"
#include "select/access.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct Fixture {
    Diag diag;
    Module *module;
} Fixture;

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
}

static void close_text(Fixture *f)
{
    module_free(f->module);
    diag_free(&f->diag);
}

static bool keep_load(Op *op, void *data)
{
    if (op->code == OP_load_global || op->code == OP_load_shared)
        *(const Op **)data = op;
    return true;
}

/* The last load of the module. */
static const Op *find_load(Fixture *f)
{
    const Op *load = NULL;
    region_walk(f->module->programs->body, keep_load, (void *)&load);
    assert_non_null(load);
    return load;
}

/* ---- bounds ---------------------------------------------------------- */

/* A program whose loop or block index makes `offset` of a tile of `span` in a
 * view of `extent`. */
typedef struct BoundsCase {
    bool proved;
    const char *arguments;      /* after %g */
    const char *grid;
    const char *loop;           /* "lower .. upper [step s]" of %i */
    const char *extent, *offset;
    int span;
} BoundsCase;

static const BoundsCase bounds_cases[] = {
    /* constants and ranges */
    {true, "", "1", "0 .. 1", "64", "0", 64},
    {true, "", "1", "0 .. 1", "64", "32", 32},
    {false, "", "1", "0 .. 1", "64", "33", 32},
    {false, "", "1", "0 .. 1", "64", "0 - 1", 32},
    {true, "%m: i32 {range = [64, 128]}", "1", "0 .. 1", "%m", "0", 64},
    {false, "%m: i32 {range = [63, 128]}", "1", "0 .. 1", "%m", "0", 64},
    {false, "%m: i32", "1", "0 .. 1", "%m", "0", 32},
    {true, "", "2", "0 .. 1", "64", "%b * 32", 32},
    {false, "", "3", "0 .. 1", "64", "%b * 32", 32},
    /* block indices below E / c */
    {true, "%m: i32 {divisible = 32}", "%m / 32", "0 .. 1", "%m", "%b * 32", 32},
    {true, "%m: i32", "%m / 32", "0 .. 1", "%m", "%b * 32", 32},
    {true, "%m: i32", "%m / 32", "0 .. 1", "%m", "32 * %b", 32},
    {true, "%m: i32", "%m / 64", "0 .. 1", "%m", "%b * 64 + 32", 32},
    {true, "%m: i32", "%m / 64", "0 .. 1", "%m", "(%b * 2 + 1) * 32", 32},
    {false, "%m: i32", "%m / 32", "0 .. 1", "%m", "%b * 32 + 1", 32},
    {false, "%m: i32", "%m / 32", "0 .. 1", "%m", "%b * 32 - 1", 32},
    {false, "%m: i32", "%m / 32", "0 .. 1", "%m", "%b * 64", 32},
    {false, "%m: i32, %n: i32", "%n / 32", "0 .. 1", "%m", "%b * 32", 32},
    {false, "%m: i32", "%m", "0 .. 1", "%m", "%b", 32},
    {false, "%m: i32", "ceil_div(%m, 32)", "0 .. 1", "%m", "%b * 32", 32},
    {true, "%m: i32 {divisible = 32}", "ceil_div(%m, 32)", "0 .. 1", "%m", "%b * 32", 32},
    {true, "%m: i32", "%m", "0 .. 1", "%m * 32", "%b * 32", 32},
    {true, "%m: i32", "%m", "0 .. 1", "64 * %m", "%b * 32", 32},
    {false, "%m: i32", "%m", "0 .. 1", "%m * 31", "%b * 31", 32},
    /* loop indices */
    {true, "%m: i32", "1", "0 .. %m / 32", "%m", "%i * 32", 32},
    {false, "%m: i32", "1", "0 - 1 .. %m / 32", "%m", "%i * 32", 32},
    {false, "%m: i32", "1", "0 .. %m / 32 + 1", "%m", "%i * 32", 32},
    {true, "%m: i32 {divisible = 32}", "1", "0 .. %m step 32", "%m", "%i", 32},
    {false, "%m: i32 {divisible = 16}", "1", "0 .. %m step 32", "%m", "%i", 32},
    {false, "%m: i32 {divisible = 32}", "1", "1 .. %m step 32", "%m", "%i", 32},
    {false, "%m: i32, %s: i32", "1", "%s .. %m / 32", "%m", "%i * 32", 32},
    /* two indices, one of which fills what the other leaves */
    {true, "%m: i32", "%m / 128", "0 .. 4", "%m", "%b * 128 + %i * 32", 32},
    {false, "%m: i32", "%m / 128", "0 .. 5", "%m", "%b * 128 + %i * 32", 32},
    {false, "%m: i32", "%m / 128", "0 .. 4", "%m", "%b * 128 - %i * 32", 32},
    {true, "%m: i32", "%m / 128", "0 .. 4", "%m", "%b * 128 - %i * 32 + 96", 32},
    /* an offset without indices, where an iteration is sure */
    {true, "%m: i32", "%m", "0 .. 1", "%m", "0", 1},
    {false, "%m: i32", "%m", "0 .. 1", "%m", "0", 2},
    {false, "%m: i32", "%m", "0 .. 1", "%m", "1", 1},
    {true, "%m: i32", "%m / 32", "0 .. 1", "%m", "16", 16},
    {false, "%m: i32", "%m / 32", "0 .. 1", "%m", "17", 16},
    {true, "%m: i32 {divisible = 32}", "%m", "0 .. 1", "%m", "0", 32},
    {true, "%m: i32 {range = [0, 1]}", "1", "0 .. %m", "%m", "0", 1},
    {true, "%m: i32", "1", "0 .. %m / 8", "%m", "0", 8},
    {false, "%m: i32", "1", "0 - 1 .. %m", "%m", "0", 1},
};

static void test_bounds(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounds_cases / sizeof *bounds_cases; i++) {
        const BoundsCase *c = &bounds_cases[i];
        char text[512];
        snprintf(text, sizeof text,
                 "program @p<%s>(%%g: ptr<f32>%s%s) warps(1) {\n %%b = block_indices\n"
                 " %%v = view_global %%g : f32[%s]\n for %%i in %s {\n"
                 "  %%x = load_global %%v[%s] : f32[%d] @ local(%d).replicate(32)\n }\n}\n",
                 c->grid, *c->arguments ? ", " : "", c->arguments, c->extent, c->loop,
                 c->offset, c->span, c->span);
        Fixture f;
        open_text(&f, text);
        const Op *load = find_load(&f);
        const Type *view = op_memory_operand(load)->type;
        const Expr *offset = op_attr(load, ATTR_OFFSETS)->exprs[0];
        if (bounds_proved(load, offset, c->span, view->extents[0]) != c->proved)
            fail_msg("case %zu, expected %s:\n%s", i, c->proved ? "a proof" : "none", text);
        close_text(&f);
    }
}

/* ---- access plans ------------------------------------------------------ */

typedef struct AccessCase {
    int64_t unit;
    unsigned bytes;
    uint32_t checked;
    const char *pointer;        /* its type and facts */
    const char *view, *load;
} AccessCase;

static const AccessCase access_cases[] = {
    /* alignment of the pointer */
    {8, 16, 0, "ptr<f16> {align = 16}", "f16[256]", "[0] : f16[256] @ spatial(32).local(8)"},
    {8, 4, 0, "ptr<f16> {align = 4}", "f16[256]", "[0] : f16[256] @ spatial(32).local(8)"},
    {8, 2, 0, "ptr<f16>", "f16[256]", "[0] : f16[256] @ spatial(32).local(8)"},
    {16, 16, 0, "ptr<f16> {align = 64}", "f16[512]", "[0] : f16[512] @ spatial(32).local(16)"},
    /* of the layout: slots apart, or a run of an odd length */
    {1, 2, 0, "ptr<f16> {align = 16}", "f16[256]", "[0] : f16[256] @ local(8).spatial(32)"},
    {3, 2, 0, "ptr<f16> {align = 16}", "f16[96]", "[0] : f16[96] @ spatial(32).local(3)"},
    {6, 4, 0, "ptr<f16> {align = 16}", "f16[192]", "[0] : f16[192] @ spatial(32).local(6)"},
    /* of offsets and strides */
    {8, 8, 0, "ptr<f16> {align = 16}", "f16[512]", "[4] : f16[256] @ spatial(32).local(8)"},
    {8, 16, 0, "ptr<f16> {align = 16}", "f16[32, 24]",
     "[0, 0] : f16[32, 8] @ spatial(32, 1).local(1, 8)"},
    {8, 4, 0, "ptr<f16> {align = 16}", "f16[32, 10]",
     "[0, 0] : f16[32, 8] @ spatial(32, 1).local(1, 8)"},
    {8, 16, 0, "ptr<f16> {align = 16}", "f16[8, 32] strides(1, 8)",
     "[0, 0] : f16[8, 32] @ spatial(1, 32).local(8, 1)"},
    {1, 2, 0, "ptr<f16> {align = 16}", "f16[8, 32] strides(32, 2)",
     "[0, 0] : f16[8, 32] @ spatial(8, 4).local(1, 8)"},
    /* of checks: 4 divides the extent, 8 does not */
    {4, 8, 1, "ptr<f16> {align = 16}", "f16[252]", "[0] : f16[256] @ spatial(32).local(8)"},
    {1, 2, 1, "ptr<f16> {align = 16}", "f16[251]", "[0] : f16[256] @ spatial(32).local(8)"},
    {8, 16, 1, "ptr<f16> {align = 16}", "f16[31, 8]",
     "[0, 0] : f16[32, 8] @ spatial(32, 1).local(1, 8)"},
    /* below a byte */
    {8, 4, 0, "ptr<u4> {align = 4}", "u4[256]", "[0] : u4[256] @ spatial(32).local(8)"},
    {4, 1, 0, "ptr<u6> {align = 4}", "u6[128]", "[0] : u6[128] @ spatial(32).local(4)"},
    {16, 4, 0, "ptr<u6> {align = 4}", "u6[512]", "[0] : u6[512] @ spatial(32).local(16)"},
    {1, 0, 0, "ptr<u6> {align = 4}", "u6[64]", "[0] : u6[64] @ spatial(32).local(2)"},
    {1, 0, 0, "ptr<u4> {align = 4}", "u4[256]", "[1] : u4[128] @ spatial(32).local(4)"},
};

static void test_access(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof access_cases / sizeof *access_cases; i++) {
        const AccessCase *c = &access_cases[i];
        char text[512];
        snprintf(text, sizeof text,
                 "program @p<1>(%%g: %s) warps(1) {\n %%v = view_global %%g : %s\n"
                 " %%x = load_global %%v%s\n}\n", c->pointer, c->view, c->load);
        Fixture f;
        open_text(&f, text);
        Access a = access_plan(f.module, find_load(&f));
        if (a.unit != c->unit || a.bytes != c->bytes || a.checked != c->checked)
            fail_msg("case %zu: unit %lld, bytes %u, checked %u:\n%s", i, (long long)a.unit,
                     a.bytes, a.checked, text);
        close_text(&f);
    }
}

static void expect_shared(int64_t unit, unsigned bytes, const char *type, const char *load)
{
    char text[512];
    snprintf(text, sizeof text, "program @p<1>() warps(1) {\n %%s = allocate_shared : %s\n"
             " %%x = load_shared %%s%s\n}\n", type, load);
    Fixture f;
    open_text(&f, text);
    Access a = access_plan(f.module, find_load(&f));
    if (a.unit != unit || a.bytes != bytes || a.checked)
        fail_msg("unit %lld, bytes %u, checked %u:\n%s", (long long)a.unit, a.bytes, a.checked,
                 text);
    close_text(&f);
}

static void test_access_shared(void **state)
{
    (void)state;
    expect_shared(8, 16, "f16[32, 32]", "[0, 0] : f16[32, 8] @ spatial(32, 1).local(1, 8)");
}

/* A swizzle lets units be as long as the runs that it keeps. */
static void test_access_swizzled(void **state)
{
    (void)state;
    static const char f16[] = "[0, 0] : f16[32, 8] @ spatial(32, 1).local(1, 8)";
    static const char wide[] = "[0, 0] : f16[32, 32] @ spatial(32, 1).local(1, 32)";
    static const char i6[] = "[0, 0] : i6[32, 16] @ spatial(32, 1).local(1, 16)";
    expect_shared(8, 16, "f16[32, 32] swizzle(3, 3, 3)", f16);
    expect_shared(4, 8, "f16[32, 32] swizzle(3, 2, 3)", f16);
    expect_shared(1, 2, "f16[32, 32] swizzle(3, 0, 3)", f16);
    expect_shared(8, 16, "f16[32, 32] swizzle(3, 3, 3)", wide);
    expect_shared(16, 16, "f16[32, 32] swizzle(1, 4, 1)", wide);
    expect_shared(16, 4, "i6[32, 16]", i6);
    expect_shared(16, 4, "i6[32, 16] swizzle(1, 4, 1)", i6);
    expect_shared(8, 2, "i6[32, 16] swizzle(1, 3, 1)", i6);
    expect_shared(4, 1, "i6[32, 16] swizzle(2, 2, 2)", i6);
    expect_shared(1, 0, "i6[32, 16] swizzle(2, 1, 2)", i6);
    expect_shared(1, 2, "f16[32, 36] swizzle(1, 3, 1)",
                  "[0, 1] : f16[32, 8] @ spatial(32, 1).local(1, 8)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_access),
        cmocka_unit_test(test_access_shared),
        cmocka_unit_test(test_access_swizzled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
