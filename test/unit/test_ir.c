/* lib/ir: expressions, types, surgery on ops, the op table, names when
 * printing, what only hand-built IR can break, and every kernel as text. */
#include "ir/builder.h"
#include "ir/loop.h"
#include "ir/verify.h"
#include "syntax/syntax.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a module to build in ---------------------------------------------- */

typedef struct Fixture {
    Diag diag;
    Module *m;
    Program *p;         /* @p<4>(%n: i32, %a: ptr<f16>) warps(1) */
    Value *n, *a;
    const Type *tile;   /* f16[32] @ spatial(32) */
} Fixture;

static const Loc here = {1, 1, 1, 0};

static Fixture *fixture_new(void)
{
    Fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    diag_init(&f->diag);
    f->m = module_new(&f->diag);
    assert_non_null(f->m);
    f->p = build_program(f->m, "p", here);
    f->p->grid[0] = expr_constant(&f->m->exprs, 4);
    f->p->grid_rank = 1;
    f->n = build_argument(f->p, "n", here, type_scalar(f->m, DTYPE_i32));
    f->n->facts.min = INT32_MIN;
    f->n->facts.max = INT32_MAX;
    f->a = build_argument(f->p, "a", here, type_ptr(f->m, DTYPE_f16));
    f->a->facts.align = 2;
    const char *why;
    const Layout *lanes = layout_spatial(&f->m->layouts, 1, (int64_t[]){32}, &why);
    f->tile = type_reg(f->m, DTYPE_f16, lanes);
    return f;
}

static void fixture_free(Fixture *f)
{
    module_free(f->m);
    diag_free(&f->diag);
    free(f);
}

static const Expr *constant(Fixture *f, int64_t c)
{
    return expr_constant(&f->m->exprs, c);
}

static const Expr *make(Fixture *f, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why = NULL;
    const Expr *e = expr_make(&f->m->exprs, op, a, b, &why);
    if (!e)
        fail_msg("%s gives %s", scalar_op_info[op].name, why);
    return e;
}

/* Appends an op of one register tensor. */
static Value *append_op(Fixture *f, Region *r, OpCode code, const char *name,
                        Value *const *operands, unsigned count)
{
    Op *op = build_op(f->m, code, here, operands, count, NULL, 0);
    op_insert(r, op, NULL);
    return build_result(f->m, op, name, here, f->tile);
}

static Value *append_fill(Fixture *f, Region *r, const char *name)
{
    Attr zero = {.kind = ATTR_INIT};
    Op *op = build_op(f->m, OP_allocate_register, here, NULL, 0, &zero, 1);
    op_insert(r, op, NULL);
    return build_result(f->m, op, name, here, f->tile);
}

static void append_yield(Fixture *f, Region *r, Value *const *values, unsigned count)
{
    op_insert(r, build_op(f->m, OP_yield, here, values, count, NULL, 0), NULL);
}

/* A loop over 0 .. %n that carries `count` values; its body is empty. */
static Op *append_for(Fixture *f, Region *r, Value *const *initial, unsigned count)
{
    Attr bounds[] = {{.kind = ATTR_LOWER, .expr = constant(f, 0)},
                     {.kind = ATTR_UPPER, .expr = expr_value(&f->m->exprs, f->n)}};
    Op *op = build_op(f->m, OP_for, here, initial, count, bounds, 2);
    Region *body = build_region(f->p, op);
    build_op_region(f->m, op, body);
    build_region_argument(body, "i", here, type_scalar(f->m, DTYPE_i64));
    for (unsigned i = 0; i < count; i++) {
        build_region_argument(body, "s", here, f->tile);
        build_result(f->m, op, "r", here, f->tile);
    }
    op_insert(r, op, NULL);
    return op;
}

static Op *append_if(Fixture *f, Region *r, const Expr *condition)
{
    Attr attr = {.kind = ATTR_COND, .expr = condition};
    Op *op = build_op(f->m, OP_if, here, NULL, 0, &attr, 1);
    build_op_region(f->m, op, build_region(f->p, op));
    build_op_region(f->m, op, build_region(f->p, op));
    op_insert(r, op, NULL);
    return op;
}

static const char *printed(Fixture *f)
{
    Text text;
    text_init(&text, &f->m->arena);
    print_program(&text, f->p);
    return text_string(&text);
}

static void expect_print(Fixture *f, const char *body)
{
    const char *header = "program @p<4>(%n: i32, %a: ptr<f16>) warps(1) {\n", *text = printed(f);
    assert_memory_equal(text, header, strlen(header));
    assert_string_equal(text + strlen(header), body);
}

/* ---- expressions --------------------------------------------------------- */

static void equal_trees_are_one_pointer(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    const Expr *n = expr_value(&f->m->exprs, f->n);
    assert_ptr_equal(n, expr_value(&f->m->exprs, f->n));
    assert_ptr_equal(constant(f, 7), constant(f, 7));
    assert_ptr_not_equal(constant(f, 7), constant(f, -7));
    const Expr *sum = make(f, SCALAR_add, n, constant(f, 1));
    for (int64_t i = 0; i < 5000; i++)      /* the table grows meanwhile */
        make(f, SCALAR_mul, n, constant(f, i + 2));
    assert_ptr_equal(sum, make(f, SCALAR_add, n, constant(f, 1)));
    assert_ptr_not_equal(sum, make(f, SCALAR_add, constant(f, 1), n));
    assert_ptr_not_equal(sum, make(f, SCALAR_sub, n, constant(f, 1)));
    assert_ptr_equal(make(f, SCALAR_neg, sum, NULL), make(f, SCALAR_neg, sum, NULL));
    assert_ptr_not_equal(make(f, SCALAR_neg, sum, NULL), make(f, SCALAR_not, sum, NULL));
    fixture_free(f);
}

static void constants_fold_or_say_why(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    const Expr *n = expr_value(&f->m->exprs, f->n);
    const char *why = NULL;
    assert_ptr_equal(make(f, SCALAR_div, constant(f, -7), constant(f, 2)), constant(f, -4));
    assert_ptr_equal(make(f, SCALAR_mod, constant(f, -7), constant(f, 2)), constant(f, 1));
    assert_ptr_equal(make(f, SCALAR_not, constant(f, 3), NULL), constant(f, 0));
    assert_null(expr_make(&f->m->exprs, SCALAR_add, constant(f, INT64_MAX), constant(f, 1), &why));
    assert_string_equal(why, "overflow of 64 bits");
    assert_null(expr_make(&f->m->exprs, SCALAR_neg, constant(f, INT64_MIN), NULL, &why));
    assert_string_equal(why, "overflow of 64 bits");
    static const ScalarOp dividers[] = {SCALAR_div, SCALAR_mod, SCALAR_ceil_div};
    for (size_t i = 0; i < 3; i++) {
        why = NULL;
        assert_null(expr_make(&f->m->exprs, dividers[i], n, constant(f, 0), &why));
        assert_string_equal(why, "division by zero");
    }
    fixture_free(f);
}

static void depth_has_a_limit(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    const Expr *e = expr_value(&f->m->exprs, f->n);
    assert_int_equal(e->depth, 1);
    while (e->depth < LIMIT_DEPTH)
        e = make(f, SCALAR_add, constant(f, 1), e);
    const char *why = NULL;
    assert_null(expr_make(&f->m->exprs, SCALAR_add, e, constant(f, 1), &why));
    assert_string_equal(why, "an expression nested deeper than 256");
    assert_null(expr_make(&f->m->exprs, SCALAR_neg, e, NULL, &why));
    fixture_free(f);
}

/* A map that gives one value a number. */
typedef struct Given {
    ExprTable *table;
    const Value *value;
    int64_t number;
} Given;

static const Expr *given_expr(Value *v, void *data)
{
    const Given *g = data;
    return v == g->value ? expr_constant(g->table, g->number) : NULL;
}

static int64_t given_number(const Value *v, void *data)
{
    const Given *g = data;
    assert_ptr_equal(v, g->value);
    return g->number;
}

static void substitution_folds_where_it_can(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Value *k = build_argument(f->p, "k", here, type_scalar(f->m, DTYPE_i64));
    const Expr *n = expr_value(&f->m->exprs, f->n), *ek = expr_value(&f->m->exprs, k);
    const Expr *e = make(f, SCALAR_mul, make(f, SCALAR_add, n, constant(f, 1)), n);
    Given g = {&f->m->exprs, f->n, 6};
    assert_ptr_equal(expr_substitute(&f->m->exprs, e, given_expr, &g), constant(f, 42));
    const Expr *both = make(f, SCALAR_sub, ek, e);
    assert_ptr_equal(expr_substitute(&f->m->exprs, both, given_expr, &g),
                     make(f, SCALAR_sub, ek, constant(f, 42)));
    g.value = f->a;
    assert_ptr_equal(expr_substitute(&f->m->exprs, both, given_expr, &g), both);

    /* An expression that cannot fold stays as a tree that says so when evaluated. */
    static const struct { ScalarOp op; int64_t number; const char *why; } stuck[] = {
        {SCALAR_mul, INT64_MAX, "overflow of 64 bits"}, {SCALAR_div, 0, "division by zero"}};
    for (size_t i = 0; i < 2; i++) {
        int64_t out;
        g = (Given){&f->m->exprs, f->n, stuck[i].number};
        const Expr *made = make(f, stuck[i].op, constant(f, 2), n);
        const Expr *kept = expr_substitute(&f->m->exprs, made, given_expr, &g);
        assert_int_equal(kept->kind, EXPR_OP);
        assert_ptr_equal(kept->b, constant(f, stuck[i].number));
        assert_string_equal(expr_evaluate(kept, given_number, &g, &out), stuck[i].why);
    }
    fixture_free(f);
}

static void evaluation_agrees_with_the_operators(void **state)
{
    (void)state;
    static const int64_t numbers[] = {INT64_MIN, -7, -1, 0, 1, 2, 5, INT64_MAX};
    Fixture *f = fixture_new();
    const Expr *n = expr_value(&f->m->exprs, f->n);
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++)
        for (size_t i = 0; i < 8; i++)
            for (size_t j = 0; j < 8; j++) {
                bool unary = scalar_op_info[op].operands == 1;
                int64_t expected = 0, got = 0;
                const char *why = NULL;
                const char *error = scalar_apply(op, numbers[i], numbers[j], &expected);
                Given g = {&f->m->exprs, f->n, numbers[i]};
                const Expr *e = expr_make(&f->m->exprs, op, n,
                                          unary ? NULL : constant(f, numbers[j]), &why);
                if (e)
                    why = expr_evaluate(e, given_number, &g, &got);
                assert_int_equal(!why, !error);
                assert_int_equal(why ? 0 : got, error ? 0 : expected);
            }
    fixture_free(f);
}

/* ---- types ----------------------------------------------------------------- */

static void equal_types_are_one_pointer(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Module *m = f->m;
    assert_ptr_equal(type_scalar(m, DTYPE_i32), f->n->type);
    assert_ptr_not_equal(type_scalar(m, DTYPE_f16), type_ptr(m, DTYPE_f16));
    assert_ptr_equal(type_reg(m, DTYPE_f16, f->tile->layout), f->tile);
    assert_ptr_not_equal(type_reg(m, DTYPE_bf16, f->tile->layout), f->tile);
    assert_int_equal(type_extent(f->tile, 0), 32);
    const Expr *shape[] = {expr_value(&m->exprs, f->n), constant(f, 3)};
    const Type *global = type_memory(m, TYPE_GLOBAL, DTYPE_i6, 2, shape, NULL);
    assert_ptr_equal(global, type_memory(m, TYPE_GLOBAL, DTYPE_i6, 2, shape, NULL));
    assert_ptr_not_equal(global, type_memory(m, TYPE_GLOBAL, DTYPE_i6, 1, shape, NULL));
    assert_ptr_not_equal(global, type_memory(m, TYPE_SHARED, DTYPE_i6, 2, shape, NULL));
    fixture_free(f);
}

static void swizzles_are_part_of_the_type(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    const Expr *shape[] = {constant(f, 64)};
    const Type *plain = type_memory(f->m, TYPE_SHARED, DTYPE_f16, 1, shape, NULL);
    const Type *swizzled = type_swizzled(f->m, plain, (Swizzle){3, 2, 3});
    assert_ptr_not_equal(swizzled, plain);
    assert_ptr_equal(type_swizzled(f->m, plain, (Swizzle){3, 2, 3}), swizzled);
    assert_ptr_not_equal(type_swizzled(f->m, plain, (Swizzle){3, 2, 4}), swizzled);
    assert_ptr_not_equal(type_swizzled(f->m, plain, (Swizzle){3, 1, 3}), swizzled);
    assert_ptr_not_equal(type_swizzled(f->m, plain, (Swizzle){2, 2, 3}), swizzled);
    assert_ptr_equal(type_swizzled(f->m, swizzled, (Swizzle){0, 2, 3}), plain);
    assert_int_equal(type_shared_bits(swizzled), type_shared_bits(plain));
    fixture_free(f);
}

/* Each is a permutation of its blocks and keeps its runs. */
static void swizzles_permute(void **state)
{
    (void)state;
    enum { SIZE = 512 };
    assert_int_equal(swizzle_element((Swizzle){3, 3, 3}, 64), 72);
    assert_int_equal(swizzle_element((Swizzle){2, 1, 4}, 0x3f), 0x3d);
    for (uint8_t bits = 0; bits <= 3; bits++)
        for (uint8_t base = 0; base <= 3; base++)
            for (uint8_t shift = bits; shift <= 5; shift++) {
                Swizzle s = {bits, base, shift};
                bool seen[SIZE] = {false};
                for (int64_t e = 0; e < SIZE; e++) {
                    int64_t to = swizzle_element(s, e), run = INT64_C(1) << base;
                    assert_int_equal(to >> (base + bits), e >> (base + bits));
                    assert_int_equal(to % run, e % run);
                    assert_false(seen[to]);
                    seen[to] = true;
                }
            }
}

static void row_major_strides_become_none(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Module *m = f->m;
    const Expr *n = expr_value(&m->exprs, f->n), *one = constant(f, 1);
    const Expr *shape[] = {constant(f, 5), constant(f, 3), n};
    const Expr *dense[] = {make(f, SCALAR_mul, constant(f, 3), n), n, one};
    const Type *plain = type_memory(m, TYPE_GLOBAL, DTYPE_f16, 3, shape, NULL);
    assert_null(plain->strides);
    assert_ptr_equal(type_memory(m, TYPE_GLOBAL, DTYPE_f16, 3, shape, dense), plain);
    for (unsigned d = 0; d < 3; d++) {
        assert_ptr_equal(type_stride(m, plain, d), dense[d]);
        const Expr *other[] = {dense[0], dense[1], dense[2]};
        other[d] = constant(f, 0);
        const Type *strided = type_memory(m, TYPE_GLOBAL, DTYPE_f16, 3, shape, other);
        assert_ptr_not_equal(strided, plain);
        assert_ptr_equal(type_stride(m, strided, d), other[d]);
        other[d] = one;     /* the type owns its copy */
        assert_ptr_equal(type_stride(m, strided, d), constant(f, 0));
    }
    const Expr *huge[] = {one, constant(f, INT64_MAX), constant(f, 2)};
    const Type *over = type_memory(m, TYPE_GLOBAL, DTYPE_f16, 3, huge, NULL);
    assert_null(type_stride(m, over, 0));
    assert_ptr_equal(type_stride(m, over, 1), constant(f, 2));
    fixture_free(f);
}

static void thread_words_round_up(void **state)
{
    (void)state;
    static const struct { DType dtype; int64_t slots, bits, words; } cases[] = {
        {DTYPE_u1, 1, 1, 1}, {DTYPE_i3, 11, 33, 2}, {DTYPE_i6, 4, 24, 1}, {DTYPE_f16, 2, 32, 1},
        {DTYPE_f16, 3, 48, 2}, {DTYPE_f64, 1, 64, 2}, {DTYPE_bool, 4, 32, 1},
        {DTYPE_u7, 64, 448, 14}};
    Fixture *f = fixture_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why;
        const Layout *l = layout_local(&f->m->layouts, 1, &cases[i].slots, &why);
        const Type *t = type_reg(f->m, cases[i].dtype, l);
        assert_int_equal(type_thread_bits(t), cases[i].bits);
        assert_int_equal(type_thread_words(t), cases[i].words);
    }
    fixture_free(f);
}

static int64_t shared_bits(Fixture *f, DType dtype, const int64_t shape[2], const int64_t *strides)
{
    const Expr *extents[2], *steps[2];
    for (unsigned d = 0; d < 2; d++) {
        extents[d] = constant(f, shape[d]);
        steps[d] = constant(f, strides ? strides[d] : 0);
    }
    return type_shared_bits(type_memory(f->m, TYPE_SHARED, dtype, 2, extents,
                                        strides ? steps : NULL));
}

static void shared_bits_span_or_overflow(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    assert_int_equal(shared_bits(f, DTYPE_f16, (int64_t[]){4, 8}, NULL), 512);
    assert_int_equal(shared_bits(f, DTYPE_i6, (int64_t[]){3, 5}, NULL), 90);
    assert_int_equal(shared_bits(f, DTYPE_f16, (int64_t[]){4, 8}, (int64_t[]){9, 1}), 16 * 35);
    assert_int_equal(shared_bits(f, DTYPE_f16, (int64_t[]){4, 8}, (int64_t[]){0, 0}), 16);
    assert_int_equal(shared_bits(f, DTYPE_f16, (int64_t[]){INT64_MAX, 1}, NULL), -1);
    assert_int_equal(shared_bits(f, DTYPE_u1, (int64_t[]){INT64_MAX, 1}, NULL), INT64_MAX);
    assert_int_equal(shared_bits(f, DTYPE_u1, (int64_t[]){INT64_MAX, 2}, NULL), -1);
    assert_int_equal(shared_bits(f, DTYPE_u1, (int64_t[]){3, 2}, (int64_t[]){INT64_MAX, 1}), -1);
    fixture_free(f);
}

/* ---- surgery ------------------------------------------------------------------ */

/* The list is linked both ways and every op knows its region. */
static void expect_ops(const Region *r, Op *const *ops, unsigned count)
{
    const Op *prev = NULL, *op = r->first;
    for (unsigned i = 0; i < count; i++, prev = op, op = op->next) {
        assert_ptr_equal(op, ops[i]);
        assert_ptr_equal(op->prev, prev);
        assert_ptr_equal(op->parent, r);
    }
    assert_null(op);
    assert_ptr_equal(r->last, prev);
}

static void lists_stay_linked(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Region *r = f->p->body;
    Op *op[4];
    for (int i = 0; i < 4; i++)
        op[i] = build_op(f->m, OP_synchronize, here, NULL, 0, NULL, 0);
    expect_ops(r, NULL, 0);
    op_insert(r, op[1], NULL);
    op_insert(r, op[3], NULL);
    op_insert(r, op[0], op[1]);
    op_insert(r, op[2], op[3]);
    expect_ops(r, op, 4);
    op_remove(op[3]);
    expect_ops(r, op, 3);
    op_remove(op[1]);
    expect_ops(r, (Op *[]){op[0], op[2]}, 2);
    assert_null(op[1]->parent);
    assert_null(op[1]->prev);
    assert_null(op[1]->next);
    op_remove(op[0]);
    op_insert(r, op[0], NULL);
    expect_ops(r, (Op *[]){op[2], op[0]}, 2);
    op_remove(op[2]);
    op_remove(op[0]);
    expect_ops(r, NULL, 0);
    fixture_free(f);
}

static bool remove_barriers(Op *op, void *data)
{
    ++*(unsigned *)data;
    if (op->code == OP_synchronize || op->code == OP_if)
        op_remove(op);
    return op->code != OP_neg;
}

static void walks_survive_removal_and_stop(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Region *r = f->p->body;
    unsigned visited = 0;
    Op *branch = append_if(f, r, constant(f, 1));
    append_fill(f, branch->regions[0], "inner");
    Op *loop = append_for(f, r, NULL, 0);
    for (int i = 0; i < 3; i++)
        op_insert(loop->regions[0], build_op(f->m, OP_synchronize, here, NULL, 0, NULL, 0), NULL);
    append_yield(f, loop->regions[0], NULL, 0);
    /* The removed `if` is not entered: if, for, three barriers, yield. */
    assert_true(region_walk(r, remove_barriers, &visited));
    assert_int_equal(visited, 6);
    expect_ops(r, &loop, 1);
    assert_ptr_equal(loop->regions[0]->first, region_yield(loop->regions[0]));

    Value *x = append_fill(f, r, "x");
    append_op(f, r, OP_neg, "y", &x, 1);
    append_fill(f, r, "z");
    visited = 0;
    assert_false(region_walk(r, remove_barriers, &visited));
    assert_int_equal(visited, 4);
    fixture_free(f);
}

static void carried_values_drop_everywhere(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Region *r = f->p->body;
    Value *init[] = {append_fill(f, r, "x"), append_fill(f, r, "y"), append_fill(f, r, "z")};
    Op *loop = append_for(f, r, init, 3);
    Value *results[] = {loop->results[0], loop->results[1], loop->results[2]};
    Value *carried[] = {for_carried(loop, 0), for_carried(loop, 1), for_carried(loop, 2)};
    append_yield(f, loop->regions[0], carried, 3);
    op_drop_carried(loop, 1);
    Region *body = loop->regions[0];
    assert_int_equal(loop->result_count, 2);
    assert_int_equal(loop->operand_count, 2);
    assert_int_equal(body->arg_count, 3);
    assert_int_equal(region_yield(body)->operand_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_ptr_equal(loop->results[i], results[2 * i]);
        assert_ptr_equal(loop->operands[i], init[2 * i]);
        assert_ptr_equal(for_carried(loop, i), carried[2 * i]);
        assert_ptr_equal(region_yield(body)->operands[i], carried[2 * i]);
        assert_int_equal(loop->results[i]->index, i);
        assert_int_equal(for_carried(loop, i)->index, 1 + i);
    }
    assert_int_equal(for_index(loop)->index, 0);
    assert_true(verify_module(f->m));
    op_drop_carried(loop, 1);
    op_drop_carried(loop, 0);
    assert_int_equal(loop->result_count + loop->operand_count, 0);
    assert_true(verify_module(f->m));

    Op *branch = append_if(f, r, expr_value(&f->m->exprs, f->n));
    Value *kept = NULL;
    for (unsigned i = 0; i < 2; i++) {
        append_yield(f, branch->regions[i], init, 2);
        kept = build_result(f->m, branch, NULL, here, f->tile);
    }
    op_drop_carried(branch, 0);
    assert_ptr_equal(branch->results[0], kept);
    assert_int_equal(kept->index, 0);
    for (unsigned i = 0; i < 2; i++)
        assert_ptr_equal(region_yield(branch->regions[i])->operands[0], init[1]);
    assert_true(verify_module(f->m));
    fixture_free(f);
}

/* ---- the op table ---------------------------------------------------------------- */

static void every_op_is_found_by_name(void **state)
{
    (void)state;
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const char *name = op_info[code].name;
        size_t len = strlen(name);
        char longer[64];
        assert_int_equal(op_find(name, len), code);
        assert_int_not_equal(op_find(name, len - 1), code);
        snprintf(longer, sizeof longer, "%s_", name);
        assert_int_equal(op_find(longer, len + 1), OP_COUNT);
        for (OpCode other = 0; other < code; other++)
            assert_string_not_equal(name, op_info[other].name);
    }
    assert_int_equal(op_find("", 0), OP_COUNT);
}

static void rows_of_the_op_table_make_sense(void **state)
{
    (void)state;
    for (OpCode code = 0; code < OP_COUNT; code++) {
        const OpInfo *info = &op_info[code];
        assert_true(strlen(info->summary) > 0);
        assert_in_range(info->operand_count + 1, 0, OPERANDS_MAX + 1);
        assert_int_equal(info->result == RESULT_NONE, info->rule == RULE_NONE);
        assert_int_equal(info->result == RESULT_INDICES, info->rule == RULE_INDICES);
        assert_int_equal(info->result == RESULT_CARRIED, info->rule == RULE_CARRIED);
        assert_int_equal(info->attrs >> ATTR_COUNT, 0);
        int needed = info->rule == RULE_LAST ? 3
                     : info->rule == RULE_SAME || info->rule == RULE_ELEMENT ||
                             info->rule == RULE_BOOL || info->rule == RULE_REDUCE ||
                             info->rule == RULE_RESHAPE || info->rule == RULE_JOIN ||
                             info->result == RESULT_TENSOR ? 1 : 0;
        assert_true(info->operand_count == OPERANDS_ANY || info->operand_count >= needed);
        if (info->attrs & op_attr_bit(ATTR_OFFSETS) && info->operand_count != OPERANDS_ANY) {
            bool counted = info->attrs & op_attr_bit(ATTR_ELEMENT);
            OperandKind last = info->operands[info->operand_count - (counted ? 2 : 1)];
            assert_true(last == OPERAND_SHARED || last == OPERAND_GLOBAL ||
                        last == OPERAND_MEMORY || last == OPERAND_TENSOR);
            assert_true(info->effect == EFFECT_READS || info->effect == EFFECT_WRITES ||
                        info->effect == EFFECT_BARRIER || info->result == RESULT_TENSOR);
        }
    }
}

/* ---- names ------------------------------------------------------------------------- */

static void namesakes_and_the_nameless_get_names(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Region *r = f->p->body;
    Value *x = append_fill(f, r, "x"), *nameless = append_fill(f, r, NULL);
    append_fill(f, r, "x_1");
    append_fill(f, r, "1");
    Value *second = append_fill(f, r, "x");
    append_fill(f, r, NULL);
    append_op(f, r, OP_add, "n", (Value *[]){x, second}, 2);
    append_op(f, r, OP_neg, "a", &nameless, 1);
    expect_print(f, "  %x = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %0 = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %x_1 = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %1 = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %x_2 = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %2 = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %n_1 = add %x, %x_2 : f16[32] @ spatial(32)\n"
                    "  %a_1 = neg %0 : f16[32] @ spatial(32)\n"
                    "}\n");
    assert_string_equal(x->name, "x");
    assert_null(x->printed);
    assert_null(nameless->printed);
    fixture_free(f);
}

static void names_of_inner_scopes_are_free_again(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Region *r = f->p->body;
    Value *x = append_fill(f, r, "x");
    for (int i = 0; i < 2; i++) {
        Op *loop = append_for(f, r, &x, 1);
        Region *body = loop->regions[0];
        Value *inner = append_op(f, body, OP_neg, "r", (Value *[]){for_carried(loop, 0)}, 1);
        Value *shadow = append_op(f, body, OP_neg, "x", &inner, 1);
        append_yield(f, body, &shadow, 1);
    }
    expect_print(f, "  %x = allocate_register 0.0 : f16[32] @ spatial(32)\n"
                    "  %r = for %i in 0 .. %n iter(%s = %x) : f16[32] @ spatial(32) {\n"
                    "    %r = neg %s : f16[32] @ spatial(32)\n"
                    "    %x_1 = neg %r : f16[32] @ spatial(32)\n"
                    "    yield %x_1\n"
                    "  }\n"
                    "  %r_1 = for %i in 0 .. %n iter(%s = %x) : f16[32] @ spatial(32) {\n"
                    "    %r_1 = neg %s : f16[32] @ spatial(32)\n"
                    "    %x_1 = neg %r_1 : f16[32] @ spatial(32)\n"
                    "    yield %x_1\n"
                    "  }\n"
                    "}\n");
    fixture_free(f);
}

/* ---- what text cannot express --------------------------------------------------------- */

static void expect_broken(Fixture *f, const char *message)
{
    assert_false(verify_module(f->m));
    assert_true(f->diag.count > 0);
    assert_string_equal(f->diag.messages[0].text, message);
    /* Marks of visible values do not stay behind. */
    for (unsigned i = 0; i < f->p->arg_count; i++)
        assert_null(f->p->args[i]->data);
    for (const Op *op = f->p->body->first; op; op = op->next)
        for (unsigned i = 0; i < op->result_count; i++)
            assert_null(op->results[i]->data);
    fixture_free(f);
}

static void use_before_definition_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Value *x = append_fill(f, f->p->body, "x");
    append_op(f, f->p->body, OP_neg, "y", &x, 1);
    assert_true(verify_module(f->m));
    op_remove(x->def);
    op_insert(f->p->body, x->def, NULL);
    expect_broken(f, "neg uses %x, which is not defined before it");
}

static void use_of_a_removed_op_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Value *x = append_fill(f, f->p->body, "x");
    append_op(f, f->p->body, OP_neg, "y", &x, 1);
    op_remove(x->def);
    expect_broken(f, "neg uses %x, which is not defined before it");
}

static void use_of_a_sibling_region_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Op *branch = append_if(f, f->p->body, expr_value(&f->m->exprs, f->n));
    Value *x = append_fill(f, branch->regions[0], "x");
    append_yield(f, branch->regions[0], NULL, 0);
    append_op(f, branch->regions[1], OP_neg, "y", &x, 1);
    append_yield(f, branch->regions[1], NULL, 0);
    expect_broken(f, "neg uses %x, which is not defined before it");
}

static void use_of_an_inner_value_outside_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Op *loop = append_for(f, f->p->body, NULL, 0);
    append_yield(f, loop->regions[0], NULL, 0);
    append_yield(f, append_if(f, f->p->body, expr_value(&f->m->exprs, for_index(loop)))->regions[0],
                 NULL, 0);
    append_yield(f, f->p->body->last->regions[1], NULL, 0);
    expect_broken(f, "if uses %i, which is not defined before it");
}

static void use_of_another_programs_value_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Program *q = build_program(f->m, "q", here);
    q->grid[q->grid_rank++] = constant(f, 1);
    const Expr *shape[] = {expr_value(&f->m->exprs, f->n)};
    Value *a = build_argument(q, "b", here, type_ptr(f->m, DTYPE_u8));
    Op *op = build_op(f->m, OP_view_global, here, &a, 1, NULL, 0);
    op_insert(q->body, op, NULL);
    build_result(f->m, op, "g", here, type_memory(f->m, TYPE_GLOBAL, DTYPE_u8, 1, shape, NULL));
    expect_broken(f, "view_global uses %n, which is not defined before it");
}

static void a_missing_yield_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    append_for(f, f->p->body, NULL, 0);
    expect_broken(f, "a region of for without a yield");
}

static void a_wrong_number_of_results_is_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Op *op = build_op(f->m, OP_block_indices, here, NULL, 0, NULL, 0);
    op_insert(f->p->body, op, NULL);
    build_result(f->m, op, "x", here, type_scalar(f->m, DTYPE_i32));
    assert_true(verify_module(f->m));
    build_result(f->m, op, "y", here, type_scalar(f->m, DTYPE_i32));
    expect_broken(f, "block_indices gives 1 results here, got 2");
}

static void wrong_operands_and_attributes_are_refused(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    append_op(f, f->p->body, OP_neg, "y", (Value *[]){f->a}, 1);
    expect_broken(f, "operand 1 of neg is a register tensor, %a is a pointer: ptr<f16>");
    f = fixture_new();
    append_op(f, f->p->body, OP_neg, "y", NULL, 0);
    expect_broken(f, "neg takes 1 operand, got 0");
    f = fixture_new();
    Attr dims = {.kind = ATTR_DIMS};
    op_insert(f->p->body, build_op(f->m, OP_synchronize, here, NULL, 0, &dims, 1), NULL);
    expect_broken(f, "synchronize has no attribute dims");
}

static void carried_counts_must_agree(void **state)
{
    (void)state;
    Fixture *f = fixture_new();
    Value *x = append_fill(f, f->p->body, "x");
    Op *loop = append_for(f, f->p->body, &x, 1);
    append_yield(f, loop->regions[0], &x, 1);
    assert_true(verify_module(f->m));
    build_result(f->m, loop, "more", here, f->tile);
    expect_broken(f, "for carries 1 values and gives 2 results");
}

/* ---- kernels as text -------------------------------------------------------------------- */

/* Regions nest as deep in the IR as in text, and no deeper. */
static void nesting_has_a_limit(void **state)
{
    (void)state;
    for (unsigned past = 0; past < 2; past++) {
        Fixture *f = fixture_new();
        Region *r = f->p->body;
        for (unsigned depth = 1; depth < LIMIT_NESTING + past; depth++) {
            Op *op = append_if(f, r, expr_value(&f->m->exprs, f->n));
            append_yield(f, op->regions[1], NULL, 0);
            if (r != f->p->body)
                append_yield(f, r, NULL, 0);
            r = op->regions[0];
        }
        append_yield(f, r, NULL, 0);
        assert_int_equal(region_depth(r), LIMIT_NESTING + past);
        assert_int_equal(op_depth(f->p->body->first), LIMIT_NESTING + past);
        assert_true(verify_module(f->m) == !past);
        assert_int_equal(f->diag.count, past);
        if (past)
            assert_string_equal(f->diag.messages[0].text, "nested deeper than 256");
        fixture_free(f);
    }
}

static char *read_kernel(const char *name, size_t *len)
{
    char path[1024], *text = malloc(1 << 16);
    snprintf(path, sizeof path, "%s/%s.tilus", TILUS_KERNELS, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_non_null(text);
    *len = fread(text, 1, 1 << 16, file);
    assert_in_range(*len, 1, (1 << 16) - 1);
    fclose(file);
    return text;
}

/* Parses, verifies and prints; the caller frees the text. */
static char *reprint(const char *text, size_t len, const Define *defines, size_t count)
{
    Diag diag;
    diag_init(&diag);
    diag_set_source(&diag, "kernel", text, len, 1);
    Module *m = module_new(&diag);
    bool ok = parse_module(m, defines, count) && verify_module(m);
    if (!ok)
        tilus_diag_write(&diag, NULL, NULL);
    assert_true(ok);
    Text out;
    text_init(&out, &m->arena);
    print_module(&out, m);
    char *copy = malloc(out.len + 1);
    assert_non_null(copy);
    strcpy(copy, text_string(&out));
    module_free(m);
    diag_free(&diag);
    return copy;
}

static void kernels_print_to_a_fixpoint_for_every_weight_type(void **state)
{
    (void)state;
    static const char *const kernels[] = {"matmul_f16_i6", "matmul_f16_i6_scaled", "transform_b"};
    unsigned types = 0;
    for (size_t k = 0; k < sizeof kernels / sizeof *kernels; k++) {
        size_t len;
        char *text = read_kernel(kernels[k], &len);
        for (DType t = DTYPE_none + 1; t < DTYPE_COUNT; t++) {
            char tile[32];
            if (dtype_bits(t) > 8)
                continue;
            Define defines[] = {{"BK", "32"}, {"W", dtype_name(t)}};
            char *once = reprint(text, len, defines, 2);
            char *twice = reprint(once, strlen(once), NULL, 0);
            assert_string_equal(once, twice);
            snprintf(tile, sizeof tile, "%s[32, 8] @ ", dtype_name(t));
            assert_non_null(strstr(once, tile));
            free(twice);
            free(once);
            types++;
        }
        free(text);
    }
    assert_in_range(types, 3 * 43, 3 * 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_trees_are_one_pointer),
        cmocka_unit_test(constants_fold_or_say_why),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(substitution_folds_where_it_can),
        cmocka_unit_test(evaluation_agrees_with_the_operators),
        cmocka_unit_test(equal_types_are_one_pointer),
        cmocka_unit_test(swizzles_are_part_of_the_type),
        cmocka_unit_test(swizzles_permute),
        cmocka_unit_test(row_major_strides_become_none),
        cmocka_unit_test(thread_words_round_up),
        cmocka_unit_test(shared_bits_span_or_overflow),
        cmocka_unit_test(lists_stay_linked),
        cmocka_unit_test(walks_survive_removal_and_stop),
        cmocka_unit_test(carried_values_drop_everywhere),
        cmocka_unit_test(every_op_is_found_by_name),
        cmocka_unit_test(rows_of_the_op_table_make_sense),
        cmocka_unit_test(namesakes_and_the_nameless_get_names),
        cmocka_unit_test(names_of_inner_scopes_are_free_again),
        cmocka_unit_test(use_before_definition_is_refused),
        cmocka_unit_test(use_of_a_removed_op_is_refused),
        cmocka_unit_test(use_of_a_sibling_region_is_refused),
        cmocka_unit_test(use_of_an_inner_value_outside_is_refused),
        cmocka_unit_test(use_of_another_programs_value_is_refused),
        cmocka_unit_test(a_missing_yield_is_refused),
        cmocka_unit_test(a_wrong_number_of_results_is_refused),
        cmocka_unit_test(wrong_operands_and_attributes_are_refused),
        cmocka_unit_test(carried_counts_must_agree),
        cmocka_unit_test(nesting_has_a_limit),
        cmocka_unit_test(kernels_print_to_a_fixpoint_for_every_weight_type),
    };
    return cmocka_run_group_tests_name("ir", tests, NULL, NULL);
}
