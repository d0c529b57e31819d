/* wgmma: fragments, descriptors and instructions' n, against the formulas of the PTX ISA
 * (9.7.15.5.1), written here anew. */
#include "passes/pass.h"
#include "select/plan.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static Arena arena;
static LayoutTable table;

/* ---- fragments --------------------------------------------------------------- */

/* Sums: element i of a thread, for any n. */
static void test_sums(void **state)
{
    (void)state;
    const char *why;
    const Layout *tile = wgmma_tile(&table);
    for (int64_t n = 8; n <= 256; n += 8) {
        const int64_t tiles[] = {1, n / 8};
        const Layout *l = layout_product(&table, layout_local(&table, 2, tiles, &why), tile, &why);
        assert_non_null(l);
        assert_int_equal(l->threads, 128);
        assert_int_equal(l->slots, n / 2);
        for (int64_t thread = 0; thread < 128; thread++)
            for (int64_t i = 0; i < n / 2; i++) {
                int64_t at[2], group = thread % 32 / 4, in_group = thread % 4;
                layout_index(l, thread, i, at);
                assert_int_equal(at[0], 16 * (thread / 32) + group + (i % 4 < 2 ? 0 : 8));
                assert_int_equal(at[1], 8 * (i / 4) + 2 * in_group + i % 2);
            }
    }
}

/* Fragments of a in registers: of 16 bits, of 8 bits, and of tf32. */
static void test_fragments(void **state)
{
    (void)state;
    for (const Wgmma *row = wgmma_table; row < wgmma_table + WGMMA_COUNT; row++) {
        const Layout *l = wgmma_step(&table, row);
        int64_t width = dtype_bits(row->types[MMA_A]), run = 32 / width;
        assert_int_equal(row->k * width, 256);
        assert_int_equal(l->threads, 128);
        assert_int_equal(l->slots, 4 * run);
        for (int64_t thread = 0; thread < 128; thread++)
            for (int64_t i = 0; i < l->slots; i++) {
                int64_t at[2], word = i / run, lane = thread % 32;
                layout_index(l, thread, i, at);
                assert_int_equal(at[0], 16 * (thread / 32) + lane / 4 +
                                            (word == 1 || word == 3 ? 8 : 0));
                assert_int_equal(at[1], lane % 4 * run + i % run + (word < 2 ? 0 : 4 * run));
            }
    }
}

/* ---- n ------------------------------------------------------------------------- */

static void test_counts(void **state)
{
    (void)state;
    static const int64_t integers[] = {8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176,
                                       192, 208, 224, 240, 256};
    for (const Wgmma *row = wgmma_table; row < wgmma_table + WGMMA_COUNT; row++)
        for (int64_t n = -8; n <= 300; n++) {
            bool has = n >= 8 && n <= 256 && n % 8 == 0, listed = false;
            for (size_t i = 0; i < sizeof integers / sizeof *integers; i++)
                listed = listed || integers[i] == n;
            bool integer = !dtype_is_float(row->types[MMA_C]);
            assert_int_equal(wgmma_has_n(row, n), integer ? listed : has);
        }
}

/* ---- descriptors ------------------------------------------------------------------- */

typedef struct Case {
    const char *a, *b;          /* types of allocations, "f16[64, 64] shared .." */
    const char *words;          /* between them and the product */
    const char *product;        /* "%a, %b : f32[64, 64] pending" */
    int64_t n;                  /* of an instruction */
} Case;

static const Case cases[] = {
    {"f16[64, 64]", "f16[256, 64]", "%b = permute %sb\n", "%sa, %b : f32[64, 256] pending", 256},
    {"f16[64, 64]", "f16[40, 64]", "%b = permute %sb\n", "%sa, %b : f32[64, 40] pending", 40},
    {"f16[64, 64]", "f16[64, 64]", "%a = permute %sa\n", "%a, %sb : f32[64, 64] pending", 64},
    {"f16[64, 32]", "f16[32, 32]", "", "%sa, %sb : f32[64, 32] pending", 32},
    {"bf16[64, 16]", "bf16[24, 16]", "%b = permute %sb\n", "%sa, %b : f32[64, 24] pending", 24},
    {"f8e4m3[64, 128]", "f8e4m3[48, 128]", "%b = permute %sb\n", "%sa, %b : f32[64, 48] pending",
     48},
    {"tf32[64, 32]", "tf32[16, 32]", "%b = permute %sb\n", "%sa, %b : f32[64, 16] pending", 16},
    {"i8[64, 64]", "i8[40, 64]", "%b = permute %sb\n", "%sa, %b : i32[64, 40] pending", 8},
    {"f16[64, 64]", "f16[3, 32, 64]",
     "%t = slice %sb[2, 8, 16] {dims = [1, 2]} : f16[16, 32]\n%b = permute %t\n"
     "%a = slice %sa[0, 32] : f16[64, 32]\n", "%a, %b : f32[64, 16] pending", 16},
};

/* The swizzle for the rows of a type "f16[.., 64]". */
static const char *swizzle_text(const char *type)
{
    const char *last = strrchr(type, ',');
    int64_t elements = strtoll(last + 1, NULL, 10);
    int64_t bytes = !strncmp(type, "f16", 3) || !strncmp(type, "bf16", 4) ? 2
                    : !strncmp(type, "tf32", 4)                           ? 4
                                                                          : 1;
    int bits = elements * bytes == 128 ? 3 : elements * bytes == 64 ? 2 : 1;
    return arena_printf(&arena, "swizzle(%d, %d, 3)", bits, bytes == 1 ? 4 : bytes == 2 ? 3 : 2);
}

static const char *program_text(const Case *c)
{
    return arena_printf(&arena, "program @p<1>() warps(4) {\n"
                        "%%sa = allocate_shared : %s shared %s\n"
                        "%%sb = allocate_shared : %s shared %s\n%s%%p = dot_async %s\n"
                        "%%q = dot_wait %%p\n}\n", c->a, swizzle_text(c->a), c->b,
                        swizzle_text(c->b), c->words, c->product);
}

/* The number of a part's first element in its allocation. */
static int64_t first_of(Module *m, const Value *v)
{
    int64_t first = 0;
    for (; v->def->operand_count; v = v->def->operands[0]) {
        const Attr *offsets = op_attr(v->def, ATTR_OFFSETS);
        for (unsigned d = 0; offsets && d < offsets->count; d++)
            first += offsets->exprs[d]->constant *
                     type_stride(m, v->def->operands[0]->type, d)->constant;
    }
    return first;
}

/* The address that hardware makes of element (mn, k) by a descriptor: the canonical layouts
 * of matrices in rows of 16 << bits bytes, whose pattern repeats each 8 rows. */
static uint64_t hardware_address(uint64_t d, bool mn_major, uint64_t mn, uint64_t k,
                                 uint64_t bytes)
{
    uint64_t start = (d & 0x3fff) * 16, stride = (d >> 32 & 0x3fff) * 16;
    uint64_t mode = d >> 62, bits = mode == 1 ? 3 : mode == 2 ? 2 : 1, width = UINT64_C(16) << bits;
    uint64_t row = mn_major ? k : mn, along = (mn_major ? mn : k) * bytes;
    assert_in_range(mode, 1, 3);
    assert_int_equal(d >> 49 & 7, 0);
    assert_true(along < width);
    uint64_t address = start + row / 8 * stride + row % 8 * width + along;
    return address ^ ((address >> 7 & (width / 16 - 1)) << 4);
}

/* Compares the places of all elements of an operand with those of its type, wherever its
 * allocation begins. */
static void expect_operand(Module *m, const Op *op, const WgmmaPlan *plan, unsigned i,
                           uint64_t begin)
{
    const Value *v = op->operands[i];
    const WgmmaMatrix *x = &plan->matrices[i];
    uint64_t bytes = dtype_bits(v->type->dtype) / 8;
    unsigned of_mn = i, of_k = !i;
    int64_t first = first_of(m, v), extent = type_extent(v->type, of_mn);
    int64_t width = i ? plan->n : 64;
    for (int64_t block = 0; block < extent; block += width)
        for (int64_t step = 0; step < plan->steps; step++) {
            uint64_t at = begin + (uint64_t)first * bytes;
            uint64_t d = wgmma_descriptor(x) + ((at & 0x3ffff) >> 4) +
                         (uint64_t)(block * x->mn_bytes + step * x->k_bytes) / 16;
            for (int64_t mn = 0; mn < width; mn++)
                for (int64_t k = 0; k < plan->row->k; k++) {
                    int64_t element = first +
                                      (block + mn) * type_stride(m, v->type, of_mn)->constant +
                                      (step * plan->row->k + k) *
                                          type_stride(m, v->type, of_k)->constant;
                    uint64_t place = begin + (uint64_t)swizzle_element(v->type->swizzle, element) *
                                                 bytes;
                    assert_int_equal(hardware_address(d, x->mn_major, (uint64_t)mn, (uint64_t)k,
                                                      bytes), place);
                }
        }
}

static void check_case(const Case *c)
{
    Diag diag;
    diag_init(&diag);
    if (setjmp(diag.oom.jump))
        fail_msg("out of memory");
    const char *text = program_text(c);
    Module *m = module_new(&diag);
    diag_set_source(&diag, "test", text, strlen(text), 1);
    if (!parse_module(m, NULL, 0) ||
        pass_infer_layouts(m->programs) == PASS_FAILED)
        fail_msg("%s: %s", diag.count ? diag.messages[0].text : "?", text);
    Op *op = m->programs->body->last->prev;
    Plan plan;
    assert_int_equal(op->code, OP_dot_async);
    if (!select_plan(m, op, 90, &plan))
        fail_msg("%s: %s", diag.messages[0].text, text);
    assert_int_equal(plan.wgmma.n, c->n);
    for (uint64_t begin = 0; begin < 4096; begin += 1024) {
        expect_operand(m, op, &plan.wgmma, 0, begin);
        expect_operand(m, op, &plan.wgmma, 1, begin);
    }
    module_free(m);
    diag_free(&diag);
}

static void test_descriptors(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_case(&cases[i]);
}

/* The constants of rows of 128 bytes along k, as CUTLASS has them. */
static void test_constants(void **state)
{
    (void)state;
    const WgmmaMatrix x = {.mode = 1, .leading = 16, .stride = 1024};
    assert_int_equal(wgmma_descriptor(&x), UINT64_C(0x4000004000010000));
}

/* ---- words of a in any slots ------------------------------------------------------- */

/* Word `word` of step `step` of a thread, by the PTX ISA's formula of fragments, in 64 rows. */
static void expect_word(const Layout *l, int64_t slot, int64_t thread, int64_t step, int64_t word)
{
    int64_t at[2], lane = thread % 32;
    for (int64_t i = 0; i < 2; i++) {
        layout_index(l, thread, 2 * slot + i, at);
        assert_int_equal(at[0], 16 * (thread / 32) + lane / 4 + 8 * (word % 2));
        assert_int_equal(at[1], 16 * step + lane % 4 * 2 + i + 8 * (word / 2));
    }
}

static void check_module_words(Module *m, const char *layout)
{
    const char *text = arena_printf(&m->arena,
        "program @p<1>(%%x: ptr<f16>) warps(4) {\n"
        "%%g = view_global %%x : f16[64, 64]\n%%s = allocate_shared : f16[32, 64] swizzle(3, 3, 3)\n"
        "%%b = permute %%s\n%%a = load_global %%g[0, 0] : f16[64, 64] @ %s\n"
        "%%p = dot_async %%a, %%b : f32[64, 32] pending\n%%q = dot_wait %%p\n}\n", layout);
    diag_set_source(m->diag, "test", text, strlen(text), 1);
    if (!parse_module(m, NULL, 0) || pass_infer_layouts(m->programs) == PASS_FAILED)
        fail_msg("%s", m->diag->messages[0].text);
    Op *op = m->programs->body->last->prev;
    Plan plan;
    if (!select_plan(m, op, 90, &plan))
        fail_msg("%s", m->diag->messages[0].text);
    for (int64_t thread = 0; thread < 128; thread++)
        for (int64_t i = 0; i < 4 * plan.wgmma.steps; i++)
            expect_word(op->operands[0]->type->layout, plan.wgmma.units[0].a_slots[i], thread, i / 4,
                        i % 4);
}

static void check_words(const char *layout)
{
    Diag diag;
    diag_init(&diag);
    if (setjmp(diag.oom.jump))
        fail_msg("out of memory");
    Module *m = module_new(&diag);
    check_module_words(m, layout);
    module_free(m);
    diag_free(&diag);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const layouts[] = {
        "local(1, 4).spatial(4, 1).column_local(2, 2).spatial(8, 4).local(1, 2)",
        "spatial(4, 1).local(2, 8).spatial(8, 4).local(1, 2)",
        "spatial(4, 1).column_local(2, 8).spatial(8, 4).local(1, 2)",
        "local(1, 2).spatial(4, 1).local(2, 4).spatial(8, 4).local(1, 2)"};
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        check_words(layouts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_fragments),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_descriptors),
        cmocka_unit_test(test_constants),
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
