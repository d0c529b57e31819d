/* The IR through the public interface: reading, layouts, building, changing, passes of callers;
 * and random edits, after which nothing crashes, and what the verifier takes is text that the
 * parser takes. */
#define _GNU_SOURCE
#include "failing_memory.h"
#include "tilus/artefact.h"
#include "tilus/pass.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

/* ---- a program ---------------------------------------------------------- */

static const char text[] =
    "tilus 1\n"
    "program @f<ceil_div(%n, 32), 1>(%p: ptr<f32> {align = 16},\n"
    "    %n: i32 {divisible = 4, range = [0, 4096]}, %k: i64) warps(1) {\n"
    "  %b, %unused = block_indices\n"
    "  %g = view_global %p : f32[%n]\n"
    "  %s = allocate_shared : f32[32]\n"
    "  %x = load_global %g[%b * 32] : f32[32] @ spatial(32)\n"
    "  %one = allocate_register 1.0 : f32[32] @ spatial(32)\n"
    "  %y, %last = for %i in 0 .. 3 unroll iter(%t = %x, %m = %one) {\n"
    "    %u = add %t, %one\n"
    "    %w = abs %u\n"
    "    yield %w, %u\n"
    "  }\n"
    "  store_shared %y, %s[0]\n"
    "  synchronize\n"
    "  %z = load_shared %s[0] : f32[32] @ spatial(32)\n"
    "  %sum = reduce %z {kind = sum, dims = [0]}\n"
    "  if %n > 0 and %k == %k {\n"
    "    store_global %z, %g[%b * 32]\n"
    "  }\n"
    "}\n"
    "program @h<1>(%q: ptr<f16>) warps(1) {\n"
    "  %g = view_global %q : f16[32]\n"
    "}\n";

typedef struct Fixture {
    tilus_diag *diag;
    tilus_module *m;
    tilus_program *f;
    tilus_block *body;
} Fixture;

static Fixture open_fixture(void)
{
    Fixture x = {.diag = tilus_diag_new()};
    x.m = tilus_parse(x.diag, "f.tilus", text, strlen(text), 1, NULL, 0);
    assert_non_null(x.m);
    x.f = tilus_program_find(x.m, "f");
    x.body = tilus_program_body(x.f);
    return x;
}

static void close_fixture(Fixture *x)
{
    tilus_module_free(x->m);
    tilus_diag_free(x->diag);
}

/* The i-th op called `name` in the program's order. */
typedef struct Search {
    const char *name;
    unsigned skip;
    tilus_op *found;
} Search;

static tilus_walk look(tilus_op *op, void *data)
{
    Search *s = data;
    if (strcmp(tilus_op_name(op), s->name) != 0 || s->skip--)
        return TILUS_WALK_ON;
    s->found = op;
    return TILUS_WALK_STOP;
}

static tilus_op *find(const Fixture *x, const char *name, unsigned i)
{
    Search s = {name, i, NULL};
    assert_false(tilus_block_walk(x->body, look, &s));
    return s.found;
}

/* Expects that the last error says this. */
static void expect_error(const Fixture *x, const char *message)
{
    size_t i = tilus_diag_count(x->diag);
    assert_true(i > 0);
    while (i > 1 && tilus_diag_severity(x->diag, i - 1) == TILUS_SEVERITY_NOTE)
        i--;
    if (!strstr(tilus_diag_text(x->diag, i - 1), message))
        fail_msg("expected `%s`, got `%s`", message, tilus_diag_text(x->diag, i - 1));
}

static void expect_text(char *printed, const char *expected)
{
    assert_non_null(printed);
    assert_string_equal(printed, expected);
    tilus_free(printed);
}

/* ---- reading --------------------------------------------------------------- */

static void reads_programs(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    assert_ptr_equal(tilus_program_at(x.m, 0), x.f);
    assert_null(tilus_program_at(x.m, 2));
    assert_null(tilus_program_find(x.m, "none"));
    assert_string_equal(tilus_program_symbol(x.f), "f");
    assert_ptr_equal(tilus_program_module(x.f), x.m);
    assert_int_equal(tilus_program_warps(x.f), 1);
    assert_int_equal(tilus_program_parameter_count(x.f), 3);
    assert_null(tilus_program_parameter(x.f, 3));
    tilus_value *n = tilus_program_parameter(x.f, 1), *p = tilus_program_parameter(x.f, 0);
    assert_string_equal(tilus_value_name(n), "n");
    assert_int_equal(tilus_value_divisor(n), 4);
    assert_int_equal(tilus_value_least(n), 0);
    assert_int_equal(tilus_value_most(n), 4096);
    assert_int_equal(tilus_value_alignment(p), 16);
    assert_int_equal(tilus_type_kind(tilus_value_type(p)), TILUS_KIND_POINTER);
    assert_int_equal(tilus_program_grid_rank(x.f), 2);
    const tilus_expr *grid = tilus_program_grid(x.f, 0);
    assert_string_equal(tilus_expr_operator(grid), "ceil_div");
    assert_ptr_equal(tilus_expr_value(tilus_expr_operand(grid, 0)), n);
    assert_int_equal(tilus_expr_integer(tilus_expr_operand(grid, 1)), 32);
    assert_null(tilus_expr_operand(grid, 2));
    expect_text(tilus_expr_print(x.m, grid), "ceil_div(%n, 32)");
    close_fixture(&x);
}

static void reads_ops(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    tilus_op *loop = find(&x, "for", 0), *load = find(&x, "load_global", 0);
    assert_int_equal(tilus_op_code(loop), tilus_op_find_code("for"));
    assert_string_equal(tilus_op_code_name(tilus_op_code(loop)), "for");
    assert_int_equal(tilus_op_find_code("none"), TILUS_NO_CODE);
    assert_null(tilus_op_code_name(TILUS_NO_CODE));
    assert_int_equal(tilus_op_effect(load), TILUS_EFFECT_READS);
    assert_int_equal(tilus_op_effect(loop), TILUS_EFFECT_CONTROL);
    assert_string_equal(tilus_op_file(load), "f.tilus");
    assert_int_equal(tilus_op_line(load), 7);
    assert_int_equal(tilus_op_column(load), 8);
    assert_int_equal(tilus_op_region_count(loop), 1);
    tilus_block *body = tilus_op_region(loop, 0);
    assert_int_equal(tilus_block_argument_count(body), 3);
    assert_ptr_equal(tilus_value_block(tilus_block_argument(body, 1)), body);
    assert_ptr_equal(tilus_block_parent(body), loop);
    assert_int_equal(tilus_block_threads(body), 32);
    assert_string_equal(tilus_op_name(tilus_block_last(body)), "yield");
    assert_ptr_equal(tilus_op_parent(tilus_block_first(body)), loop);
    assert_ptr_equal(tilus_op_next(tilus_block_first(x.body)),
                     tilus_op_previous(tilus_op_next(tilus_op_next(tilus_block_first(x.body)))));
    assert_ptr_equal(tilus_op_program(tilus_block_first(body)), x.f);
    assert_int_equal(tilus_value_user_count(tilus_op_result(find(&x, "block_indices", 0), 0)), 2);
    assert_int_equal(tilus_value_user_count(tilus_program_parameter(x.f, 1)), 2);
    close_fixture(&x);
}

static void reads_attributes(void **state)
{
    Fixture x = open_fixture();
    tilus_attr a;
    (void)state;
    tilus_op *loop = find(&x, "for", 0), *reduce = find(&x, "reduce", 0);
    assert_true(tilus_op_attr(loop, "upper", &a));
    assert_int_equal(a.kind, TILUS_ATTR_EXPR);
    assert_int_equal(tilus_expr_integer(a.expr), 3);
    assert_true(tilus_op_attr(loop, "unroll", &a));
    assert_null(a.expr);
    assert_false(tilus_op_attr(loop, "step", &a));
    assert_false(tilus_op_attr(loop, "none", &a));
    assert_true(tilus_op_attr(reduce, "kind", &a));
    assert_string_equal(a.text, "sum");
    assert_true(tilus_op_attr(reduce, "dims", &a));
    assert_int_equal(a.count, 1);
    assert_int_equal(a.integers[0], 0);
    assert_int_equal(tilus_op_attr_count(reduce), 2);
    assert_true(tilus_op_attr_at(reduce, 1, &a));
    assert_false(tilus_op_attr_at(reduce, 2, &a));
    double one;
    assert_true(tilus_value_constant(tilus_op_result(find(&x, "allocate_register", 0), 0), &one));
    assert_true(one == 1);
    close_fixture(&x);
}

static void reads_nothing_of_null(void **state)
{
    tilus_attr a;
    (void)state;
    assert_null(tilus_op_name(NULL));
    assert_null(tilus_op_next(NULL));
    assert_int_equal(tilus_op_operand_count(NULL), 0);
    assert_null(tilus_op_operand(NULL, 0));
    assert_false(tilus_op_attr(NULL, "dims", &a));
    assert_null(tilus_value_type(NULL));
    assert_int_equal(tilus_type_extent(NULL, 0), -1);
    assert_int_equal(tilus_layout_threads(NULL), 0);
    assert_true(tilus_block_walk(NULL, look, NULL));
    assert_false(tilus_op_erase(NULL));
    assert_null(tilus_op_build(NULL));
    assert_false(tilus_verify(NULL));
}

/* ---- types and layouts ---------------------------------------------------------- */

static void makes_types(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    const tilus_type *t = tilus_type_parse(x.m, TILUS_KIND_REGISTER,
                                           "f16[16, 8] @ spatial(8, 4).local(2, 2)");
    assert_int_equal(tilus_type_rank(t), 2);
    assert_int_equal(tilus_type_extent(t, 0), 16);
    assert_int_equal(tilus_type_extent(t, 2), -1);
    assert_int_equal(tilus_type_elements(t), 128);
    assert_string_equal(tilus_type_element(t), "f16");
    const tilus_type *wide = tilus_type_with_element(x.m, t, "f32");
    const tilus_type *open = tilus_type_with_layout(x.m, wide, NULL);
    expect_text(tilus_type_print(x.m, open), "f32[16, 8]");
    assert_true(tilus_type_is_open(open) && !tilus_type_is_open(wide));
    assert_ptr_equal(tilus_type_with_layout(x.m, open, tilus_type_layout(t)), wide);
    const tilus_expr *n = tilus_expr_of_value(tilus_program_parameter(x.f, 1));
    const tilus_expr *extents[] = {n, tilus_expr_of_integer(x.m, 64)};
    const tilus_type *global = tilus_type_memory(x.m, TILUS_KIND_GLOBAL, "f16", 2, extents, NULL);
    expect_text(tilus_type_print(x.m, global), "f16[%n, 64] global");
    assert_int_equal(tilus_type_elements(global), -1);
    assert_null(tilus_type_memory(x.m, TILUS_KIND_SHARED, "f16", 2, extents, NULL));
    expect_error(&x, "an extent of a shared tensor is %n, not a constant from 1");
    assert_null(tilus_type_parse(x.m, TILUS_KIND_REGISTER, "f16[16, 8] @ spatial(7)"));
    assert_string_equal(tilus_diag_file(x.diag, tilus_diag_count(x.diag) - 1), "<type>");
    assert_null(tilus_type_parse(x.m, TILUS_KIND_GLOBAL, "f16[%n]"));
    assert_null(tilus_type_with_element(x.m, t, "f17"));
    expect_error(&x, "no element type f17");
    assert_null(tilus_type_with_layout(x.m, t, tilus_layout_parse(x.m, "spatial(32)")));
    expect_error(&x, "a layout of another shape");
    close_fixture(&x);
}

static void makes_layouts(void **state)
{
    Fixture x = open_fixture();
    int64_t index[2], thread, slot;
    (void)state;
    const tilus_layout *f = tilus_layout_parse(x.m, "local(2, 1)");
    const tilus_layout *g = tilus_layout_parse(x.m, "spatial(8, 4).local(1, 2)");
    const tilus_layout *h = tilus_layout_compose(x.m, f, g);
    expect_text(tilus_layout_print(h), "local(2, 1).spatial(8, 4).local(1, 2)");
    assert_int_equal(tilus_layout_threads(h), 32);
    assert_int_equal(tilus_layout_slots(h), 4);
    assert_int_equal(tilus_layout_replicas(h), 1);
    for (int64_t t = 0; t < 32; t++)
        for (int64_t s = 0; s < 4; s++) {
            assert_true(tilus_layout_element(h, t, s, index));
            assert_true(tilus_layout_place(h, index, &thread, &slot));
            assert_int_equal(thread, t);
            assert_int_equal(slot, s);
        }
    assert_false(tilus_layout_element(h, 32, 0, index));
    assert_false(tilus_layout_place(h, (int64_t[]){16, 0}, &thread, &slot));
    assert_int_equal(tilus_layout_run(h, 1), 2);
    assert_ptr_equal(tilus_layout_divide(x.m, h, g), f);
    assert_ptr_equal(tilus_layout_divide_left(x.m, h, f), g);
    assert_ptr_equal(tilus_layout_permute(x.m, tilus_layout_permute(x.m, h, (int64_t[]){1, 0}, 2),
                                          (int64_t[]){1, 0}, 2), h);
    expect_text(tilus_layout_print(tilus_layout_reduce(x.m, g, 2)), "spatial(8, 1).replicate(4)");
    assert_int_equal(tilus_layout_rank(tilus_layout_drop(x.m, g, 2)), 1);
    assert_int_equal(tilus_layout_rank(tilus_layout_concat(x.m, f, g)), 4);
    assert_ptr_equal(tilus_layout_reshape(x.m, tilus_layout_reshape(x.m, h, (int64_t[]){128}, 1),
                                          (int64_t[]){16, 8}, 2), h);
    assert_int_equal(tilus_layout_slots(tilus_layout_slice(x.m, h, (int64_t[]){8, 8}, 2)), 2);
    assert_null(tilus_layout_reduce(x.m, g, 4));
    assert_null(tilus_layout_parse(x.m, "spatial(8"));
    Fixture other = open_fixture();
    assert_null(tilus_layout_compose(other.m, f, g));
    expect_error(&other, "not of this module");
    close_fixture(&other);
    close_fixture(&x);
}

static void makes_expressions(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    const tilus_expr *n = tilus_expr_of_value(tilus_program_parameter(x.f, 1));
    const tilus_expr *two = tilus_expr_of_integer(x.m, 2);
    expect_text(tilus_expr_print(x.m, tilus_expr_apply(x.m, "mul", n, two)), "%n * 2");
    assert_int_equal(tilus_expr_integer(tilus_expr_apply(x.m, "add", two, two)), 4);
    assert_null(tilus_expr_apply(x.m, "div", n, tilus_expr_of_integer(x.m, 0)));
    expect_error(&x, "div: division by zero");
    assert_null(tilus_expr_apply(x.m, "neg", n, two));
    assert_null(tilus_expr_of_value(tilus_program_parameter(x.f, 0)));
    expect_error(&x, "no scalar: ptr<f32>");
    const tilus_expr *e = n;    /* its tree doubles */
    for (int i = 0; e && i < 64; i++)
        e = tilus_expr_apply(x.m, "add", e, e);
    assert_null(e);
    expect_error(&x, "more than 4096");
    close_fixture(&x);
}

/* ---- building and changing ------------------------------------------------------- */

static tilus_op *build_unary(tilus_op *before, const char *name, tilus_value *operand)
{
    const tilus_type *t = tilus_value_type(operand);
    return tilus_op_build(&(tilus_op_description){
        .struct_size = sizeof(tilus_op_description), .name = name, .operands = &operand,
        .operand_count = 1, .results = &t, .result_count = 1, .before = before});
}

static void builds_ops(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    tilus_op *store = find(&x, "store_shared", 0);
    tilus_value *y = tilus_op_operand(store, 0);
    tilus_op *neg = build_unary(store, "neg", y);
    assert_int_equal(tilus_op_line(neg), tilus_op_line(store));
    tilus_value *half = tilus_value_build_constant(store, tilus_value_type(y), 0.5);
    tilus_value *operands[] = {tilus_op_result(neg, 0), half};
    const tilus_type *t = tilus_value_type(y);
    tilus_op *mul = tilus_op_build(&(tilus_op_description){
        .struct_size = sizeof(tilus_op_description), .name = "mul", .operands = operands,
        .operand_count = 2, .results = &t, .result_count = 1, .before = store});
    assert_true(tilus_value_set_name(tilus_op_result(mul, 0), "scaled_y"));
    assert_true(tilus_value_replace_uses(y, tilus_op_result(mul, 0), neg));
    assert_true(tilus_verify(x.m));
    char *printed = tilus_print(x.m);
    assert_non_null(strstr(printed, "= neg %y : "));
    assert_non_null(strstr(printed, "store_shared %scaled_y, %s[0]"));
    tilus_free(printed);
    assert_true(tilus_run_passes(x.m, NULL, NULL));
    close_fixture(&x);
}

static void builds_a_loop(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    tilus_op *store = find(&x, "store_shared", 0);
    tilus_value *y = tilus_op_operand(store, 0);
    const tilus_type *t = tilus_value_type(y);
    const tilus_attr bounds[] = {
        {.name = "lower", .kind = TILUS_ATTR_EXPR, .expr = tilus_expr_of_integer(x.m, 0)},
        {.name = "upper", .kind = TILUS_ATTR_EXPR, .expr = tilus_expr_of_integer(x.m, 8)}};
    tilus_op *loop = tilus_op_build(&(tilus_op_description){
        .struct_size = sizeof(tilus_op_description), .name = "for", .operands = &y,
        .operand_count = 1, .results = &t, .result_count = 1, .attrs = bounds, .attr_count = 2,
        .before = store});
    tilus_block *body = tilus_op_region(loop, 0);
    tilus_value *carried = tilus_block_argument(body, 1), *one;
    one = tilus_op_result(find(&x, "allocate_register", 0), 0);
    tilus_op *add = tilus_op_build(&(tilus_op_description){
        .struct_size = sizeof(tilus_op_description), .name = "add",
        .operands = (tilus_value *[]){carried, one}, .operand_count = 2, .results = &t,
        .result_count = 1, .in = body});
    assert_non_null(add);
    tilus_value *sum = tilus_op_result(add, 0);
    assert_true(tilus_op_set_operands(tilus_block_last(body), &sum, 1));
    assert_true(tilus_op_set_operand(store, 0, tilus_op_result(loop, 0)));
    assert_true(tilus_verify(x.m));
    tilus_op *copy = tilus_op_clone(loop, store);
    assert_non_null(copy);
    assert_true(tilus_op_replace(loop, (tilus_value *[]){tilus_op_result(copy, 0)}, 1));
    assert_false(tilus_op_erase(loop));
    assert_true(tilus_verify(x.m));
    assert_true(tilus_run_passes(x.m, NULL, NULL));
    close_fixture(&x);
}

static void refuses_what_is_wrong(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    tilus_op *add = find(&x, "add", 0), *loop = find(&x, "for", 0), *abs = find(&x, "abs", 0);
    tilus_op *yield = tilus_block_last(tilus_op_region(loop, 0));
    tilus_value *pointer = tilus_program_parameter(x.f, 0);
    assert_false(tilus_op_set_operand(add, 0, pointer));
    expect_error(&x, "operand 1 of add is a register tensor, %p is a pointer");
    assert_false(tilus_op_set_operand(add, 2, tilus_op_operand(add, 0)));
    expect_error(&x, "operand 2 of add, which has 2");
    assert_false(tilus_op_erase(add));
    expect_error(&x, "add cannot be erased: %u is used");
    assert_false(tilus_op_erase(yield));
    expect_error(&x, "a yield stays at the end of its region");
    assert_false(tilus_op_move_after(add, yield));
    expect_error(&x, "a place behind a yield");
    assert_false(tilus_op_move_before(loop, add));
    expect_error(&x, "for goes into itself");
    assert_false(tilus_op_remove_attr(loop, "upper"));
    expect_error(&x, "for needs attribute upper");
    assert_false(tilus_op_set_attr(add, &(tilus_attr){.name = "dim", .kind = TILUS_ATTR_INTEGER}));
    expect_error(&x, "add has no attribute dim");
    tilus_op *reduce = find(&x, "reduce", 0);
    assert_false(tilus_op_set_attr(reduce, &(tilus_attr){.name = "kind", .kind = TILUS_ATTR_WORD,
                                                         .text = "mean"}));
    expect_error(&x, "attribute kind is sum, max,");
    assert_false(tilus_op_set_attr(reduce, &(tilus_attr){.name = "dims",
                                                         .kind = TILUS_ATTR_INTEGER}));
    tilus_op *print = tilus_op_build(&(tilus_op_description){
        .struct_size = sizeof(tilus_op_description), .name = "print", .before = add,
        .operands = (tilus_value *[]){tilus_op_operand(add, 0)}, .operand_count = 1,
        .attrs = &(tilus_attr){.name = "label", .kind = TILUS_ATTR_TEXT, .text = "\xc3\xa9"},
        .attr_count = 1});
    assert_non_null(print);
    assert_false(tilus_op_set_attr(print, &(tilus_attr){.name = "label", .kind = TILUS_ATTR_TEXT,
                                                        .text = "\xff"}));
    expect_error(&x, "attribute label is one line of UTF-8 without quotes");
    assert_null(build_unary(add, "nothing", tilus_op_operand(add, 0)));
    expect_error(&x, "no op is called nothing");
    assert_null(build_unary(add, "yield", tilus_op_operand(add, 0)));
    assert_null(build_unary(add, "compare", tilus_op_operand(add, 0)));
    expect_error(&x, "compare needs attribute predicate");
    assert_false(tilus_value_set_name(tilus_op_result(add, 0), "a b"));
    assert_false(tilus_value_set_type(pointer, tilus_value_type(pointer)));
    assert_true(tilus_op_set_operand(abs, 0, tilus_op_operand(abs, 0)));
    Fixture other = open_fixture();
    assert_false(tilus_op_set_operand(add, 0, tilus_op_result(find(&other, "add", 0), 0)));
    expect_error(&x, "is no value of @f");
    assert_false(tilus_value_set_type(tilus_op_result(add, 0),
                                      tilus_value_type(tilus_op_result(find(&other, "add", 0), 0))));
    expect_error(&x, "a type that is not of this module");
    close_fixture(&other);
    assert_true(tilus_verify(x.m));
    close_fixture(&x);
}

static void verifies_before_use(void **state)
{
    Fixture x = open_fixture();
    (void)state;
    assert_true(tilus_op_move_before(find(&x, "store_shared", 0), tilus_block_first(x.body)));
    assert_false(tilus_run_passes(x.m, "dce", NULL));
    expect_error(&x, "store_shared uses %y, which is not defined before it");
    assert_false(tilus_verify(x.m));
    char *ptx = tilus_compile(x.m, &(tilus_compile_options){
        .struct_size = sizeof(tilus_compile_options), .cpu = "sm_80"}, NULL);
    assert_null(ptx);
    close_fixture(&x);
}

/* ---- walks that change what they walk ---------------------------------------------- */

typedef struct Tour {
    tilus_block *body;
    unsigned visits, inner;
} Tour;

/* Returns false, and ends a walk that does not, after many visits. */
static bool goes_on(Tour *t) { return ++t->visits < 100; }

static bool is_called(const tilus_op *op, const char *name)
{
    return !strcmp(tilus_op_name(op), name);
}

static tilus_walk hoist(tilus_op *op, void *data)
{
    Tour *t = data;
    if (is_called(op, "allocate_shared") || is_called(op, "allocate_register"))
        assert_true(tilus_op_move_before(op, tilus_block_first(t->body)));
    return goes_on(t) ? TILUS_WALK_ON : TILUS_WALK_STOP;
}

static tilus_walk sink(tilus_op *op, void *data)
{
    Tour *t = data;
    if (is_called(op, "store_shared") || is_called(op, "synchronize"))
        assert_true(tilus_op_move_after(op, tilus_block_last(t->body)));
    return goes_on(t) ? TILUS_WALK_ON : TILUS_WALK_STOP;
}

/* Erases a store with what follows it, and an `if` from inside. */
static tilus_walk erase_around(tilus_op *op, void *data)
{
    Tour *t = data;
    t->inner += tilus_op_parent(op) && is_called(tilus_op_parent(op), "if");
    if (is_called(op, "store_shared")) {
        assert_true(tilus_op_erase(tilus_op_next(op)));
        assert_true(tilus_op_erase(op));
    } else if (is_called(op, "store_global")) {
        assert_true(tilus_op_erase(tilus_op_parent(op)));
    }
    return goes_on(t) ? TILUS_WALK_ON : TILUS_WALK_STOP;
}

static void walks_what_changes(void **state)
{
    static tilus_walk (*const visits[])(tilus_op *op, void *data) = {hoist, sink, erase_around};
    static const unsigned ops[] = {17, 17, 14};     /* not what is erased: one op, two yields */
    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        Fixture x = open_fixture();
        Tour tour = {.body = x.body};
        assert_true(tilus_block_walk(x.body, visits[i], &tour));
        assert_int_equal(tour.visits, ops[i]);
        assert_int_equal(tour.inner, i == 2);
        close_fixture(&x);
    }
}

static bool erase_both(tilus_op *user, void *data)
{
    tilus_op **other = data;
    assert_non_null(tilus_op_block(user));      /* no user comes that is erased */
    if (*other)
        assert_true(tilus_op_erase(*other) && tilus_op_erase(user));
    *other = NULL;
    return true;
}

static void walks_users_that_go(void **state)
{
    Fixture x = open_fixture();
    tilus_op *stores[] = {find(&x, "store_shared", 0), NULL};
    tilus_value *y = tilus_op_operand(stores[0], 0);
    (void)state;
    stores[1] = tilus_op_clone(stores[0], tilus_op_next(stores[0]));
    assert_int_equal(tilus_value_user_count(y), 2);
    assert_true(tilus_value_walk_users(y, erase_both, &stores[1]));
    assert_int_equal(tilus_value_user_count(y), 0);
    close_fixture(&x);
}

/* ---- artefacts ------------------------------------------------------------------------ */

/* An engine runs the text of an artefact, which that of a changed program is not. */
static void artefacts_of_changed_programs(void **state)
{
    const tilus_compile_options options = {.struct_size = sizeof options, .program = "f",
                                           .cpu = "sm_80"};
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        Fixture x = open_fixture();
        tilus_artefact *artefact;
        void *bytes;
        size_t size;
        tilus_op *reduce = find(&x, "reduce", 0);
        assert_true(i == 0 || tilus_op_erase(reduce));
        assert_true(tilus_run_passes(x.m, NULL, NULL));
        assert_int_equal(tilus_compile_artefact(x.m, &options, NULL, NULL, &bytes, &size), TILUS_OK);
        assert_int_equal(tilus_artefact_read(bytes, size, &artefact, NULL, 0), TILUS_OK);
        assert_string_equal(tilus_artefact_source(artefact), i ? "" : text);
        tilus_free(artefact);
        tilus_free(bytes);
        close_fixture(&x);
    }
}

/* ---- memory that runs out -------------------------------------------------------- */

/* Changes much, so that the module's memory has to grow; false when a call failed. */
static bool change_much(Fixture *x)
{
    tilus_op *loop = find(x, "for", 0);
    bool ok = true;
    for (int i = 0; ok && i < 200; i++) {
        tilus_op *copy = tilus_op_clone(loop, loop);
        tilus_value *y = tilus_op_result(copy, 0);
        const tilus_type *t = tilus_type_parse(x->m, TILUS_KIND_REGISTER,
                                               "f16[64, 8] @ local(8, 1).spatial(8, 4).local(1, 2)");
        const tilus_expr *n = tilus_expr_of_value(tilus_program_parameter(x->f, 1));
        const tilus_expr *e = tilus_expr_apply(x->m, "add", n, tilus_expr_of_integer(x->m, i));
        ok = y && t && e && tilus_layout_compose(x->m, tilus_layout_parse(x->m, "local(2, 1)"),
                                                 tilus_type_layout(t)) &&
             tilus_value_set_name(y, "copy") &&
             tilus_op_set_attr(copy, &(tilus_attr){.name = "upper", .kind = TILUS_ATTR_EXPR,
                                                   .expr = e}) &&
             tilus_op_set_operand(copy, 0, tilus_value_build_constant(copy, tilus_value_type(y), i));
    }
    return ok && tilus_verify(x->m);
}

static void survives_lack_of_memory(void **state)
{
    bool ok = false;
    long n = 0;
    (void)state;
    for (; !ok && n < 1000; n++) {
        Fixture x = open_fixture();
        allocations_left = n;
        ok = change_much(&x);
        allocations_left = -1;
        char *printed = tilus_print(x.m);
        assert_non_null(printed);
        tilus_free(printed);
        assert_true(tilus_verify(x.m));
        close_fixture(&x);
    }
    assert_true(ok && n > 2);
}

/* Time that runs out while the verifier has values marked leaves no mark behind. */
static void survives_lack_of_time(void **state)
{
    Fixture x = open_fixture();
    tilus_op *view = find(&x, "view_global", 0);
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_true(tilus_set_limit(x.diag, "milliseconds", 1));
        nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
        assert_false(i ? tilus_run_passes(x.m, "dce", NULL) : tilus_verify(x.m));
        expect_error(&x, "in 1 ms, its limit");
        tilus_op *copy = tilus_op_clone(view, view);
        assert_ptr_equal(tilus_op_operand(copy, 0), tilus_program_parameter(x.f, 0));
    }
    assert_true(tilus_verify(x.m));
    close_fixture(&x);
}

/* ---- passes --------------------------------------------------------------------- */

static bool drop_abs(tilus_program *program, void *user)
{
    unsigned *runs = user;
    Search s = {"abs", 0, NULL};
    ++*runs;
    tilus_block_walk(tilus_program_body(program), look, &s);
    if (!s.found)
        return true;
    tilus_op_remark(s.found, "gone");
    tilus_pass_count(tilus_program_module(program), "ops", 1);
    tilus_free(tilus_print(tilus_program_module(program)));
    tilus_value *operand = tilus_op_operand(s.found, 0);
    return tilus_op_replace(s.found, &operand, 1);
}

static void runs_passes(void **state)
{
    Fixture x = open_fixture();
    char why[200];
    unsigned runs = 0;
    tilus_pass pass = {.struct_size = sizeof pass, .name = "drop-abs", .summary = "drop abs",
                       .run_on_program = drop_abs, .user = &runs};
    (void)state;
    assert_true(tilus_register_pass(&pass, why, sizeof why));
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    assert_string_equal(why, "pass: there is a pass called drop-abs already");
    pass.name = "Drop";
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    pass.name = "dce";
    assert_false(tilus_register_pass(&pass, NULL, 0));
    pass.name = "neither", pass.run_on_program = NULL;
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    pass.run_on_program = drop_abs;
    pass.options = &(tilus_pass_option){sizeof(tilus_pass_option), NULL, "n", "a number", 0, 3, 4};
    pass.option_count = 1;
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    assert_string_equal(why, "pass neither: option n is 4, which is not 0 .. 3");
    pass.option_count = 17;
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    pass.struct_size = 0;
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    size_t i = 0;
    while (tilus_pass_name(i) && strcmp(tilus_pass_name(i), "drop-abs") != 0)
        i++;
    assert_string_equal(tilus_pass_summary(i), "drop abs");
    assert_null(tilus_pass_name(i + 1));
    assert_true(tilus_run_passes(x.m, "drop-abs,canonicalize", NULL));
    assert_int_equal(runs, 2);
    char *printed = tilus_print(x.m);
    assert_null(strstr(printed, "abs"));
    tilus_free(printed);
    static const tilus_pass_option twice[] = {
        {sizeof(tilus_pass_option), NULL, "n", "a number", 0, INT64_MAX, 4},
        {sizeof(tilus_pass_option), NULL, "n", "another", 0, 3, 1}};
    pass = (tilus_pass){.struct_size = sizeof pass, .name = "twice", .summary = "twice",
                        .run_on_program = drop_abs, .user = &runs, .options = twice,
                        .option_count = 2};
    assert_false(tilus_register_pass(&pass, why, sizeof why));
    assert_string_equal(why, "pass twice: two options are called n");
    pass.option_count = 1;
    assert_true(tilus_register_pass(&pass, why, sizeof why));
    assert_true(tilus_check_passes("twice{n=9223372036854775807}", why, sizeof why));
    assert_false(tilus_check_passes("twice{n=9223372036854775808}", why, sizeof why));
    assert_false(tilus_load_plugin("/nowhere.so", why, sizeof why));
    assert_non_null(strstr(why, "cannot load plugin: /nowhere.so"));
    close_fixture(&x);
}

/* Leaves the layout of a load open whose width is written. */
static bool open_load(tilus_program *program, void *user)
{
    Search s = {"load_global", 0, NULL};
    (void)user;
    if (tilus_block_walk(tilus_program_body(program), look, &s))
        return true;
    tilus_value *x = tilus_op_result(s.found, 0);
    return tilus_value_set_type(x, tilus_type_with_layout(tilus_program_module(program),
                                                          tilus_value_type(x), NULL));
}

/* Proofs of choices read IR as the verifier leaves it: what a pass broke, and layouts that it
 * left open, are looked at before. */
static void proves_after_verifying(void **state)
{
    Fixture x = open_fixture();
    const tilus_pass pass = {.struct_size = sizeof pass, .name = "open-load", .summary = "open",
                             .run_on_program = open_load};
    (void)state;
    assert_true(tilus_register_pass(&pass, NULL, 0));
    assert_true(tilus_run_passes(x.m, "select-instructions", NULL));
    assert_false(tilus_run_passes(x.m, "open-load,dce", NULL));
    close_fixture(&x);
}

/* ---- remarks ---------------------------------------------------------------------------- */

static bool remark_all(tilus_module *module, void *user)
{
    for (size_t i = 0; tilus_program_at(module, i); i++)
        tilus_op_remark(tilus_block_first(tilus_program_body(tilus_program_at(module, i))), user);
    return true;
}

static void take_text(void *data, const char *part, size_t length)
{
    char *all = data;
    size_t used = strlen(all);
    assert_true(used + length < 2000);
    memcpy(all + used, part, length);
    all[used + length] = '\0';
}

/* A remark of a pass on the module is of its op's program, and its text may have any bytes. */
static void writes_remarks(void **state)
{
    char any[] = "two\nlines, \"it's\" \xff\xc3\xa9", all[2000];
    const tilus_pass pass = {.struct_size = sizeof pass, .name = "remark-all", .summary = "remark",
                             .run_on_module = remark_all, .user = any};
    tilus_pass_options options = {.struct_size = sizeof options, .remarks = take_text,
                                  .remarks_data = all};
    (void)state;
    assert_true(tilus_register_pass(&pass, NULL, 0));
    for (unsigned i = 0; i < 2; i++) {
        Fixture x = open_fixture();
        *all = '\0';
        options.remarks_format = i ? TILUS_REMARKS_JSON : TILUS_REMARKS_YAML;
        assert_true(tilus_run_passes(x.m, "cse,remark-all", &options));
        assert_non_null(strstr(all, i ? "\"program\": \"f\"" : "\nFunction: f\n"));
        assert_non_null(strstr(all, i ? "\"program\": \"h\"" : "\nFunction: h\n"));
        assert_non_null(strstr(all, i ? "\"Text\": \"two\\u000alines, \\\"it's\\\" \\ufffd\xc3\xa9\""
                                      : "\n  - Text: \"two\\u000alines, \\\"it's\\\" \\ufffd\xc3\xa9\"\n"));
        close_fixture(&x);
    }
}

/* ---- random edits -------------------------------------------------------------------- */

enum { HANDLES = 256 };

/* A trial: what it may choose from, in part erased or of another module. */
typedef struct Trial {
    uint64_t seed;
    tilus_module *m;
    tilus_op *ops[HANDLES];
    tilus_value *values[HANDLES];
    const tilus_type *types[HANDLES];
    const tilus_expr *exprs[HANDLES];
    size_t op_count, value_count, type_count, expr_count;
} Trial;

static uint64_t next(Trial *t)
{
    t->seed = t->seed * 6364136223846793005u + 1442695040888963407u;
    return t->seed >> 33;
}

static unsigned choose(Trial *t, size_t n) { return n ? (unsigned)(next(t) % n) : 0; }

static void add_value(Trial *t, tilus_value *v)
{
    if (v && t->value_count < HANDLES)
        t->values[t->value_count++] = v;
    if (v && t->type_count < HANDLES)
        t->types[t->type_count++] = tilus_value_type(v);
}

static tilus_walk collect(tilus_op *op, void *data)
{
    Trial *t = data;
    tilus_attr a;
    if (t->op_count < HANDLES)
        t->ops[t->op_count++] = op;
    for (size_t i = 0; i < tilus_op_result_count(op); i++)
        add_value(t, tilus_op_result(op, i));
    for (size_t i = 0; i < tilus_op_region_count(op); i++)
        for (size_t j = 0; j < tilus_block_argument_count(tilus_op_region(op, i)); j++)
            add_value(t, tilus_block_argument(tilus_op_region(op, i), j));
    for (size_t i = 0; tilus_op_attr_at(op, i, &a); i++) {
        if (a.expr && t->expr_count < HANDLES)
            t->exprs[t->expr_count++] = a.expr;
        for (size_t j = 0; a.exprs && j < a.count && t->expr_count < HANDLES; j++)
            t->exprs[t->expr_count++] = a.exprs[j];
    }
    return TILUS_WALK_ON;
}

static void collect_all(Trial *t)
{
    for (size_t i = 0; tilus_program_at(t->m, i); i++) {
        tilus_program *p = tilus_program_at(t->m, i);
        for (size_t j = 0; j < tilus_program_parameter_count(p); j++)
            add_value(t, tilus_program_parameter(p, j));
        tilus_block_walk(tilus_program_body(p), collect, t);
    }
}

static tilus_op *any_op(Trial *t) { return t->ops[choose(t, t->op_count)]; }
static tilus_value *any_value(Trial *t) { return t->values[choose(t, t->value_count)]; }
static const tilus_type *any_type(Trial *t) { return t->types[choose(t, t->type_count)]; }

static const tilus_expr *any_expr(Trial *t)
{
    static const char *const names[] = {"add", "sub", "mul", "div", "mod", "neg", "lt", "min"};
    if (choose(t, 4) == 0)
        return tilus_expr_of_value(any_value(t));
    if (choose(t, 4) == 0 || !t->expr_count)
        return tilus_expr_of_integer(t->m, (int64_t)choose(t, 70) - 2);
    const tilus_expr *a = t->exprs[choose(t, t->expr_count)];
    return choose(t, 3) ? a
                        : tilus_expr_apply(t->m, names[choose(t, 8)], a,
                                           t->exprs[choose(t, t->expr_count)]);
}

static const char *const attr_names[] = {
    "offsets", "source_offsets", "indexed", "init", "predicate", "cond", "message", "label",
    "value", "counter", "lower", "upper", "step", "pipelined", "begin", "threads", "unroll",
    "drain", "number", "state", "element", "dims", "dim", "kind", "exclusive", "source_dims",
    "shape", "order", "scope", "blocks", "via", "width", "unit", "checked", "offset", "prefetch",
    "evict", "rank", "multicast", "count", "of", "zeroed", "place", "finite", "negate", "commit",
    "pending", "read", "reduce"};
enum { ATTR_NAMES = sizeof attr_names / sizeof *attr_names };

typedef struct AnyAttr {
    tilus_attr attr;
    int64_t integers[8];
    const tilus_expr *exprs[8];
} AnyAttr;

static void any_attr(Trial *t, const tilus_op *op, AnyAttr *out)
{
    static const char *const words[] = {"max", "true", "lt", "first", "wgmma", "sum", "no\"text"};
    tilus_attr a;
    memset(out, 0, sizeof *out);
    if (choose(t, 4) && tilus_op_attr_at(op, choose(t, tilus_op_attr_count(op)), &a))
        out->attr = (tilus_attr){.name = a.name, .kind = a.kind};
    else
        out->attr = (tilus_attr){.name = attr_names[choose(t, ATTR_NAMES)],
                                 .kind = (tilus_attr_kind)choose(t, 7)};
    out->attr.integer = (int64_t)choose(t, 40) - 2;
    for (unsigned i = 0; i < 8; i++) {
        out->integers[i] = (int64_t)choose(t, 6) - 1;
        out->exprs[i] = any_expr(t);
    }
    out->attr.integers = out->integers;
    out->attr.exprs = out->exprs;
    out->attr.count = choose(t, 10) ? choose(t, 5) : choose(t, 9);
    out->attr.expr = any_expr(t);
    out->attr.number = (double)choose(t, 1000) / 4;
    out->attr.text = words[choose(t, 7)];
}

/* Builds an op like another one, with some things changed. */
static void build_like(Trial *t)
{
    const tilus_op *model = any_op(t);
    tilus_value *operands[16];
    const tilus_type *results[16];
    AnyAttr attrs[8];
    tilus_attr list[8];
    size_t n = tilus_op_operand_count(model), r = tilus_op_result_count(model), count = 0;
    for (size_t i = 0; i < 16; i++) {
        operands[i] = i < n && choose(t, 4) ? tilus_op_operand(model, i) : any_value(t);
        results[i] = i < r && choose(t, 4) ? tilus_value_type(tilus_op_result(model, i))
                                           : any_type(t);
    }
    for (; count < 8 && tilus_op_attr_at(model, count, &list[count]); count++)
        if (choose(t, 6) == 0) {
            any_attr(t, model, &attrs[count]);
            list[count] = attrs[count].attr;
        }
    unsigned code = choose(t, 4) ? tilus_op_code(model) : choose(t, 130);
    size_t more = choose(t, 8) == 0;
    tilus_op *beside = any_op(t), *built;
    tilus_op_description d = {
        .struct_size = sizeof d, .name = tilus_op_code_name(code), .operands = operands,
        .operand_count = n + more < 16 ? n + more : 16, .results = results,
        .result_count = r < 16 ? r : 16, .attrs = list, .attr_count = count};
    *(choose(t, 2) ? &d.before : &d.after) = beside;
    if (choose(t, 8) == 0)
        d.before = d.after = NULL, d.in = tilus_op_region(beside, 0);
    built = tilus_op_build(&d);
    if (built)
        collect(built, t);
}

static void edit(Trial *t)
{
    tilus_op *op = any_op(t);
    AnyAttr a;
    tilus_value *values[] = {any_value(t), any_value(t)};
    switch (choose(t, 13)) {
    case 0: tilus_op_set_operand(op, choose(t, 3), any_value(t)); break;
    case 1:
        any_attr(t, op, &a);
        tilus_op_set_attr(op, &a.attr);
        break;
    case 2: tilus_op_remove_attr(op, attr_names[choose(t, ATTR_NAMES)]); break;
    case 3: tilus_value_set_type(any_value(t), any_type(t)); break;
    case 4: tilus_value_replace_uses(any_value(t), any_value(t), any_op(t)); break;
    case 5: tilus_op_erase(op); break;
    case 6: tilus_op_replace(op, values, tilus_op_result_count(op) == 2 ? 2 : 1); break;
    case 7: tilus_op_move_before(op, any_op(t)); break;
    case 8: tilus_op_move_after(op, any_op(t)); break;
    case 9: {
        tilus_op *copy = tilus_op_clone(op, any_op(t));
        if (copy)
            collect(copy, t);
        break;
    }
    case 10: tilus_op_set_operands(op, values, choose(t, 3)); break;
    default: build_like(t); break;
    }
}

/* Checks that a verified module prints as text that parses, and that passes and the compiler
 * take it. */
static void check_module(Trial *t)
{
    char *printed = tilus_print(t->m);
    assert_non_null(printed);
    if (tilus_verify(t->m)) {
        tilus_diag *diag = tilus_diag_new();
        tilus_module *again = tilus_parse(diag, "again", printed, strlen(printed), 1, NULL, 0);
        if (!again) {
            tilus_diag_write(diag, NULL, NULL);
            fail_msg("seed %llu: verified, but does not parse:\n%s",
                     (unsigned long long)t->seed, printed);
        }
        tilus_module_free(again);
        tilus_diag_free(diag);
        tilus_run_passes(t->m, choose(t, 2) ? "infer-layouts,canonicalize" : NULL, NULL);
    }
    tilus_free(printed);
}

static unsigned run_trial(const char *program, uint64_t seed)
{
    tilus_diag *diag = tilus_diag_new();
    Trial t = {.seed = seed, .m = tilus_parse(diag, "t", program, strlen(program), 1, NULL, 0)};
    assert_non_null(t.m);
    collect_all(&t);
    for (unsigned i = 0, n = 1 + choose(&t, 12); i < n; i++)
        edit(&t);
    unsigned verified = tilus_verify(t.m);
    check_module(&t);
    tilus_module_free(t.m);
    tilus_diag_free(diag);
    return verified;
}

static char *read_program(const char *path)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    char *program = calloc(1, 1 << 16);
    assert_true(fread(program, 1, (1 << 16) - 1, file) > 0);
    fclose(file);
    return program;
}

static bool parses(const char *program)
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "t", program, strlen(program), 1, NULL, 0);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return m;
}

static uint64_t count_trials(void)
{
    const char *given = getenv("TILUS_TRIALS");
    return given ? strtoull(given, NULL, 10) : 100;
}

/* Makes trials of files that parse without parameters, for long laps. */
static int run_files(int count, char **paths)
{
    unsigned verified = 0, trials = 0;
    for (int f = 0; f < count; f++) {
        char *program = read_program(paths[f]);
        for (uint64_t i = 0; parses(program) && i < count_trials(); i++, trials++)
            verified += run_trial(program, i);
        free(program);
    }
    printf("%u trials, %u verified\n", trials, verified);
    return 0;
}

/* TILUS_TRIALS=N makes N trials of each program, for long laps. */
static void survives_random_edits(void **state)
{
    static const char *const kernels[] = {"dequantize.tilus", "matmul_f16_i6.tilus"};
    uint64_t trials = count_trials();
    unsigned verified = 0;
    char path[512];
    (void)state;
    for (uint64_t i = 0; i < trials; i++)
        verified += run_trial(text, i);
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        snprintf(path, sizeof path, "%s/%s", TILUS_KERNELS, kernels[k]);
        char *program = read_program(path);
        for (uint64_t i = 0; i < trials / 2; i++)
            verified += run_trial(program, i);
        free(program);
    }
    assert_true(verified > trials / 10);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        return run_files(argc - 1, argv + 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_programs), cmocka_unit_test(reads_ops),
        cmocka_unit_test(reads_attributes), cmocka_unit_test(reads_nothing_of_null),
        cmocka_unit_test(makes_types), cmocka_unit_test(makes_layouts),
        cmocka_unit_test(makes_expressions), cmocka_unit_test(builds_ops),
        cmocka_unit_test(builds_a_loop), cmocka_unit_test(refuses_what_is_wrong),
        cmocka_unit_test(verifies_before_use),
        cmocka_unit_test(survives_lack_of_memory), cmocka_unit_test(survives_lack_of_time),
        cmocka_unit_test(artefacts_of_changed_programs), cmocka_unit_test(runs_passes),
        cmocka_unit_test(walks_what_changes), cmocka_unit_test(walks_users_that_go),
        cmocka_unit_test(proves_after_verifying), cmocka_unit_test(writes_remarks),
        cmocka_unit_test(survives_random_edits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
