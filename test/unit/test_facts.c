/* lib/scalar/facts.c, difference.c, determine.c and the fold pass against brute force: random
 * expressions over arguments, block indices and loop indices, evaluated for
 * every value that these can have. */
#include "ir/loop.h"
#include "ir/text.h"
#include "ir/verify.h"
#include "passes/pass.h"
#include "scalar/determine.h"
#include "scalar/difference.h"
#include "scalar/facts.h"
#include "syntax/syntax.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* A reproducible 64-bit random number (splitmix64). */
static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static int64_t random_in(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(state) % (uint64_t)(high - low + 1));
}

/* ---- worlds: a program and every point that it can reach ------------------- */

enum { A, B, BLOCK, I, J, VALUES, POINTS = 8192, OFFSETS = 5 };

typedef struct World {
    Diag diag;
    Module *m;
    Value *values[VALUES];
    Attr *offsets;                  /* of the store in the innermost loop */
    int64_t points[POINTS][VALUES];
    unsigned count;
} World;

/* The numbers from which a world's text and its points follow. */
typedef struct Shape {
    struct { int64_t divisible, min, max; } arg[2];
    int64_t blocks, lower, step, span, inner_step;
} Shape;

static Shape random_shape(uint64_t *seed)
{
    static const int64_t divisors[] = {1, 1, 2, 3, 4, 6, 8};
    Shape s;
    for (int i = 0; i < 2; i++) {
        s.arg[i].divisible = divisors[random_in(seed, 0, 6)];
        s.arg[i].min = random_in(seed, -12, 12);
        s.arg[i].max = s.arg[i].min + random_in(seed, 0, 3) * s.arg[i].divisible;
    }
    s.blocks = random_in(seed, 1, 4);
    s.lower = random_in(seed, -8, 4);
    s.step = random_in(seed, 1, 4);
    s.span = random_in(seed, 1, 4);
    s.inner_step = random_in(seed, 1, 2);
    return s;
}

static void add_loop_points(World *w, const Shape *s, int64_t a, int64_t b, int64_t block)
{
    for (int64_t i = a + s->lower; i < b; i += s->step)
        for (int64_t j = 2 * i; j < 2 * i + s->span; j += s->inner_step) {
            assert_true(w->count < POINTS);
            memcpy(w->points[w->count++], (int64_t[VALUES]){a, b, block, i, j},
                   sizeof *w->points);
        }
}

static void add_points(World *w, const Shape *s)
{
    for (int64_t a = s->arg[0].min; a <= s->arg[0].max; a++)
        for (int64_t b = s->arg[1].min; b <= s->arg[1].max; b++)
            for (int64_t block = 0; block < s->blocks; block++)
                if (a % s->arg[0].divisible == 0 && b % s->arg[1].divisible == 0)
                    add_loop_points(w, s, a, b, block);
}

static bool find_values(Op *op, void *data)
{
    World *w = data;
    if (op->code == OP_block_indices)
        w->values[BLOCK] = op->results[0];
    if (op->code == OP_for)
        w->values[w->values[I] ? J : I] = for_index(op);
    if (op->code == OP_store_global)
        w->offsets = (Attr *)op_attr(op, ATTR_OFFSETS);
    return true;
}

static const char *world_text(char *text, size_t size, const Shape *s)
{
    snprintf(text, size,
             "program @p<%lld>(%%a: i64 {divisible = %lld, range = [%lld, %lld]},\n"
             "  %%b: i32 {divisible = %lld, range = [%lld, %lld]}, %%p: ptr<u8>) warps(1) {\n"
             "  %%block = block_indices\n"
             "  %%g = view_global %%p : u8[%%b, 9, 9, 9, 9]\n"
             "  %%x = allocate_register 0 : u8[32] @ spatial(32)\n"
             "  for %%i in %%a + %lld .. %%b step %lld {\n"
             "    for %%j in 2 * %%i .. 2 * %%i + %lld step %lld {\n"
             "      store_global %%x, %%g[0, 0, 0, 0, 0]\n"
             "    }\n  }\n}\n",
             (long long)s->blocks, (long long)s->arg[0].divisible, (long long)s->arg[0].min,
             (long long)s->arg[0].max, (long long)s->arg[1].divisible,
             (long long)s->arg[1].min, (long long)s->arg[1].max, (long long)s->lower,
             (long long)s->step, (long long)s->span, (long long)s->inner_step);
    return text;
}

static World *world_new(const Shape *s)
{
    char text[1024];
    World *w = calloc(1, sizeof *w);
    assert_non_null(w);
    diag_init(&w->diag);
    world_text(text, sizeof text, s);
    diag_set_source(&w->diag, "world", text, strlen(text), 1);
    w->m = module_new(&w->diag);
    assert_non_null(w->m);
    bool ok = parse_module(w->m, NULL, 0) && verify_module(w->m);
    if (!ok)
        tilus_diag_write(&w->diag, NULL, NULL);
    assert_true(ok);
    w->values[A] = w->m->programs->args[0];
    w->values[B] = w->m->programs->args[1];
    region_walk(w->m->programs->body, find_values, w);
    add_points(w, s);
    return w;
}

static void world_free(World *w)
{
    module_free(w->m);
    diag_free(&w->diag);
    free(w);
}

/* ---- expressions -------------------------------------------------------------- */

static const Expr *random_constant(World *w, uint64_t *seed)
{
    static const int64_t special[] = {INT64_MIN, INT64_MAX, INT64_MIN + 1, INT64_C(1) << 62,
                                      INT32_MAX, 64, 1024, -64};
    int64_t c = random_in(seed, 0, 19) == 0 ? special[random_in(seed, 0, 7)]
                                            : random_in(seed, -9, 9);
    return expr_constant(&w->m->exprs, c);
}

static const Expr *random_leaf(World *w, uint64_t *seed)
{
    if (random_in(seed, 0, 2) == 0)
        return random_constant(w, seed);
    return expr_value(&w->m->exprs, w->values[random_in(seed, 0, VALUES - 1)]);
}

static const Expr *random_expr(World *w, uint64_t *seed, unsigned depth)
{
    if (depth == 0 || random_in(seed, 0, 5) == 0)
        return random_leaf(w, seed);
    ScalarOp op = (ScalarOp)random_in(seed, 0, SCALAR_OP_COUNT - 1);
    bool divides = op == SCALAR_div || op == SCALAR_mod || op == SCALAR_ceil_div;
    const Expr *a = random_expr(w, seed, depth - 1), *b = NULL;
    if (scalar_op_info[op].operands == 2)
        b = divides && random_in(seed, 0, 4) ? expr_constant(&w->m->exprs, random_in(seed, 1, 8))
                                             : random_expr(w, seed, depth - 1);
    const char *why;
    const Expr *e = expr_make(&w->m->exprs, op, a, b, &why);
    return e ? e : a;
}

typedef struct Point {
    const World *world;
    const int64_t *numbers;
} Point;

static int64_t number_at(const Value *v, void *data)
{
    const Point *p = data;
    for (int i = 0; i < VALUES; i++)
        if (p->world->values[i] == v)
            return p->numbers[i];
    fail_msg("an expression uses %%%s", v->name);
    return 0;
}

static const char *evaluate(const World *w, unsigned point, const Expr *e, int64_t *out)
{
    Point p = {w, w->points[point]};
    return expr_evaluate(e, number_at, &p, out);
}

/* Ends the test with the expression and the point that refute it. */
static void refute(World *w, unsigned point, const Expr *e, int64_t value, const char *claim)
{
    Text text;
    text_init(&text, &w->m->arena);
    print_expr(&text, e);
    text_printf(&text, " is %lld where", (long long)value);
    for (int i = 0; i < VALUES; i++)
        text_printf(&text, " %%%s = %lld", w->values[i]->name, (long long)w->points[point][i]);
    fail_msg("%s; %s", text_string(&text), claim);
}

/* ---- facts -------------------------------------------------------------------- */

static void check_facts(World *w, const Expr *e)
{
    ScalarFacts f = facts_of_expr(e);
    int64_t alignment = facts_alignment(e, 16), value;
    char claim[160];
    snprintf(claim, sizeof claim, "facts say [%lld, %lld], divisor %lld, alignment %lld",
             (long long)f.min, (long long)f.max, (long long)f.divisor, (long long)alignment);
    for (unsigned i = 0; i < w->count; i++) {
        if (evaluate(w, i, e, &value))
            continue;
        bool divides = f.divisor ? value % f.divisor == 0 : value == 0;
        if (value < f.min || value > f.max || !divides || value % alignment != 0)
            refute(w, i, e, value, claim);
    }
}

static void facts_hold_for_every_value(void **state)
{
    (void)state;
    uint64_t seed = 20250917;
    unsigned checked = 0, bounded = 0, divided = 0;
    while (checked < 20000) {
        Shape shape = random_shape(&seed);
        World *w = world_new(&shape);
        for (int i = 0; i < VALUES && w->count; i++)
            check_facts(w, expr_value(&w->m->exprs, w->values[i]));
        for (int i = 0; i < 50 && w->count; i++, checked++) {
            const Expr *e = random_expr(w, &seed, (unsigned)random_in(&seed, 1, 4));
            ScalarFacts f = facts_of_expr(e);
            bounded += f.min != INT64_MIN && f.max != INT64_MAX;
            divided += f.divisor > 1;
            check_facts(w, e);
        }
        world_free(w);
    }
    /* Knowing nothing would be right, too. */
    assert_in_range(bounded, checked / 2, checked);
    assert_in_range(divided, checked / 8, checked);
}

static void expect_facts(const Expr *e, ScalarFacts expected)
{
    ScalarFacts f = facts_of_expr(e);
    if (f.divisor != expected.divisor || f.min != expected.min || f.max != expected.max)
        fail_msg("%s: divisor %lld in [%lld, %lld]", scalar_op_info[e->op].spelling,
                 (long long)f.divisor, (long long)f.min, (long long)f.max);
}

/* %a: multiples of 16 in [16, 64]; %b: multiples of 4 in [-4, 8]; %i from
 * %a - 16 in steps of 4 below %b; %j from 2 * %i to 2 * %i + 3; 3 blocks. */
static void facts_are_as_sharp_as_stated(void **state)
{
    (void)state;
    static const struct { ScalarOp op; int value; int64_t constant; ScalarFacts facts; } cases[] = {
        {SCALAR_add, A, 0, {16, 16, 64}},       {SCALAR_add, B, 0, {4, -4, 8}},
        {SCALAR_add, BLOCK, 0, {1, 0, 2}},      {SCALAR_add, I, 0, {4, 0, 7}},
        {SCALAR_mul, A, 4, {64, 64, 256}},      {SCALAR_mul, B, -3, {12, -24, 12}},
        {SCALAR_div, A, 16, {1, 1, 4}},         {SCALAR_div, A, 8, {2, 2, 8}},
        {SCALAR_div, B, 3, {1, -2, 2}},         {SCALAR_ceil_div, B, 3, {1, -1, 3}},
        {SCALAR_mod, A, 16, {0, 0, 0}},         {SCALAR_mod, A, 24, {8, 0, 23}},
        {SCALAR_mod, A, 65, {16, 16, 64}},      {SCALAR_mod, BLOCK, 3, {1, 0, 2}},
        {SCALAR_sub, A, 6, {2, 10, 58}},        {SCALAR_min, A, 24, {8, 16, 24}},
        {SCALAR_max, A, 24, {8, 24, 64}},       {SCALAR_lt, A, 65, {1, 1, 1}},
        {SCALAR_ge, A, 65, {0, 0, 0}},          {SCALAR_eq, A, 32, {1, 0, 1}},
        {SCALAR_mul, A, 0, {0, 0, 0}},
        {SCALAR_and, A, 0, {0, 0, 0}},          {SCALAR_and, A, -5, {1, 1, 1}},
        {SCALAR_and, B, 1, {1, 0, 1}},          {SCALAR_or, B, 0, {1, 0, 1}},
        {SCALAR_or, A, 0, {1, 1, 1}},           {SCALAR_or, B, 7, {1, 1, 1}},
        {SCALAR_sub, B, INT64_MIN, {4, INT64_MIN, INT64_MAX}},
    };
    Shape shape = {{{16, 16, 64}, {4, -4, 8}}, 3, -16, 4, 3, 1};
    World *w = world_new(&shape);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why;
        const Expr *e = expr_make(&w->m->exprs, cases[i].op,
                                  expr_value(&w->m->exprs, w->values[cases[i].value]),
                                  expr_constant(&w->m->exprs, cases[i].constant), &why);
        expect_facts(e, cases[i].facts);
    }
    assert_int_equal(facts_alignment(expr_value(&w->m->exprs, w->values[A]), 128), 16);
    assert_int_equal(facts_alignment(expr_value(&w->m->exprs, w->values[A]), 4), 4);
    assert_int_equal(facts_alignment(expr_constant(&w->m->exprs, 0), 128), 128);
    ScalarFacts direct = facts_of_value(w->values[J]);
    assert_int_equal(direct.divisor, 1);
    assert_int_equal(direct.min, 0);
    assert_int_equal(direct.max, 16);
    world_free(w);
}

/* Values as above: the second operand's range counts, where it lies above 0. */
static void facts_follow_from_two_ranges(void **state)
{
    (void)state;
    static const struct { ScalarOp op; int a, b; ScalarFacts facts; } cases[] = {
        {SCALAR_div, A, A, {1, 0, 4}},          {SCALAR_div, B, A, {1, -1, 0}},
        {SCALAR_ceil_div, A, A, {1, 1, 4}},     {SCALAR_ceil_div, B, A, {1, 0, 1}},
        {SCALAR_mod, A, A, {16, 0, 63}},        {SCALAR_mod, B, A, {4, 0, 63}},
        {SCALAR_mod, BLOCK, A, {1, 0, 2}},      {SCALAR_mul, A, A, {256, 256, 4096}},
        {SCALAR_div, A, I, {1, INT64_MIN, INT64_MAX}},
        {SCALAR_mod, A, B, {1, INT64_MIN, INT64_MAX}},
    };
    Shape shape = {{{16, 16, 64}, {4, -4, 8}}, 3, -16, 4, 3, 1};
    World *w = world_new(&shape);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *why;
        expect_facts(expr_make(&w->m->exprs, cases[i].op,
                               expr_value(&w->m->exprs, w->values[cases[i].a]),
                               expr_value(&w->m->exprs, w->values[cases[i].b]), &why),
                     cases[i].facts);
    }
    world_free(w);
}

/* Bounds that refer to each other many times over end at the budget. */
static void facts_of_deep_nests_end(void **state)
{
    (void)state;
    enum { LOOPS = 100 };
    char *text = malloc(1 << 16);
    assert_non_null(text);
    int len = sprintf(text, "program @p<1>(%%n: i32) warps(1) {\n for %%i0 in 0 .. %%n {\n");
    for (int i = 1; i < LOOPS; i++)
        len += sprintf(text + len, " for %%i%d in %%i%d .. %%i%d + %%i%d {\n", i, i - 1, i - 1,
                       i - 1);
    for (int i = 0; i <= LOOPS; i++)
        len += sprintf(text + len, "}\n");
    Diag diag;
    diag_init(&diag);
    diag_set_source(&diag, "nest", text, (size_t)len, 1);
    Module *m = module_new(&diag);
    assert_true(parse_module(m, NULL, 0) && verify_module(m));
    const Op *loop = m->programs->body->first;
    while (loop->regions[0]->first->code == OP_for)
        loop = loop->regions[0]->first;
    assert_int_equal(facts_of_value(for_index(loop)).min, 0);
    module_free(m);
    diag_free(&diag);
    free(text);
}

/* The index of a loop that has no iterations is in a range that ends before it begins. */
static void facts_of_code_that_never_runs_end(void **state)
{
    (void)state;
    static const char text[] = "program @p<1>(%n: i32) warps(1) {\n for %i in 1 .. 1 {\n"
                               "  for %j in 100 mod %i .. 100 / %i + ceil_div(%n, %i) {\n"
                               "  }\n }\n}\n";
    Diag diag;
    diag_init(&diag);
    diag_set_source(&diag, "never", text, sizeof text - 1, 1);
    Module *m = module_new(&diag);
    assert_true(parse_module(m, NULL, 0) && verify_module(m));
    const Op *outer = m->programs->body->first, *inner = outer->regions[0]->first;
    ScalarFacts i = facts_of_value(for_index(outer)), j = facts_of_value(for_index(inner));
    assert_int_equal(i.min, 1);
    assert_int_equal(i.max, 0);
    assert_int_equal(j.min, INT64_MIN);
    assert_int_equal(j.max, INT64_MAX);
    module_free(m);
    diag_free(&diag);
}

/* ---- differences -------------------------------------------------------------- */

/* Two offsets like those of one access in two iterations: `a`, and `a` at another
 * value of a leaf, plus a constant. */
typedef struct Shift {
    const Value *of;
    const Expr *to;
} Shift;

static const Expr *shifted_value(Value *v, void *data)
{
    const Shift *s = data;
    return v == s->of ? s->to : NULL;
}

static const Expr *shifted_expr(World *w, uint64_t *seed, const Expr *a)
{
    const char *why;
    Value *v = w->values[random_in(seed, 0, VALUES - 1)];
    const Expr *leaf = expr_value(&w->m->exprs, v), *other = random_leaf(w, seed);
    Shift s = {v, expr_make(&w->m->exprs, SCALAR_add, leaf, other, &why)};
    const Expr *b = s.to ? expr_substitute(&w->m->exprs, a, shifted_value, &s) : a;
    const Expr *sum = b ? expr_make(&w->m->exprs, SCALAR_add, b, random_constant(w, seed), &why)
                        : NULL;
    return sum ? sum : b ? b : a;
}

static bool has_value(const Difference *d, int64_t value)
{
    for (unsigned i = 0; i < d->count; i++)
        if (d->values[i] == value)
            return true;
    return false;
}

/* Returns true when the differences within 8 are known and narrow to fewer than all. */
static bool check_difference(World *w, const Expr *a, const Expr *b)
{
    enum { WINDOW = 9 };
    Difference d = difference_of(a, b);
    int64_t x, y, apart;
    if (!difference_narrow(&d, WINDOW, WINDOW))
        return false;
    for (unsigned i = 0; i < w->count; i++)
        if (!evaluate(w, i, a, &x) && !evaluate(w, i, b, &y) &&
            !__builtin_sub_overflow(y, x, &apart) && apart > -WINDOW && apart < WINDOW &&
            !has_value(&d, apart))
            refute(w, i, b, y, "the difference is lost");
    return true;
}

static void differences_hold_for_every_value(void **state)
{
    (void)state;
    uint64_t seed = 20261122;
    unsigned checked = 0, narrowed = 0;
    while (checked < 20000) {
        Shape shape = random_shape(&seed);
        World *w = world_new(&shape);
        for (int i = 0; i < 50 && w->count; i++, checked++) {
            const Expr *a = random_expr(w, &seed, (unsigned)random_in(&seed, 1, 3));
            bool alike = random_in(&seed, 0, 1);
            narrowed += check_difference(w, a, alike ? shifted_expr(w, &seed, a)
                                                     : random_expr(w, &seed, 1));
        }
        world_free(w);
    }
    assert_in_range(narrowed, checked / 4, checked);
}

static const Expr *make(World *w, ScalarOp op, const Expr *a, const Expr *b)
{
    const char *why;
    const Expr *e = expr_make(&w->m->exprs, op, a, b, &why);
    assert_non_null(e);
    return e;
}

/* (x + c * k) / c * n - x / c * n is k * n, whatever c is. */
static void differences_cancel_in_products(void **state)
{
    (void)state;
    Shape shape = {{{16, 16, 64}, {4, -4, 8}}, 3, -16, 4, 3, 1};
    World *w = world_new(&shape);
    ExprTable *t = &w->m->exprs;
    const Expr *x = expr_value(t, w->values[I]), *c = expr_value(t, w->values[A]);
    const Expr *n = expr_value(t, w->values[B]), *j = expr_value(t, w->values[J]);
    for (int64_t k = -2; k <= 2; k++) {
        const Expr *more = make(w, SCALAR_add, x, make(w, SCALAR_mul, c, expr_constant(t, k)));
        const Expr *number = make(w, SCALAR_mul, make(w, SCALAR_div, more, c), n);
        const Expr *before = make(w, SCALAR_mul, make(w, SCALAR_div, x, c), n);
        const Expr *steps = make(w, SCALAR_mul, n, expr_constant(t, k));
        const Expr *end = make(w, SCALAR_add, make(w, SCALAR_add, before, steps), j);
        Difference d = difference_of(end, make(w, SCALAR_add, number, j));
        assert_true(difference_is_exact(&d));
        assert_int_equal(d.count, 1);
        assert_int_equal(d.values[0], 0);
        d = difference_of(make(w, SCALAR_mod, x, c), make(w, SCALAR_mod, more, c));
        assert_true(difference_is_exact(&d) && d.values[0] == 0);
        d = difference_of(make(w, SCALAR_div, x, c), make(w, SCALAR_div, more, c));
        assert_true(difference_is_exact(&d) && d.values[0] == k);
        d = difference_of(before, make(w, SCALAR_add, number, n));
        assert_int_equal(difference_is_exact(&d), k == -1);
    }
    world_free(w);
}

/* ---- expressions that others determine ----------------------------------------------- */

enum { KNOWN = 3 };

typedef struct Question {
    const Expr *known[KNOWN], *goal;
    const World *world;
    bool fixed[VALUES];
} Question;

static bool is_fixed(const Value *v, void *data)
{
    const Question *q = data;
    for (int i = 0; i < VALUES; i++)
        if (q->world->values[i] == v)
            return q->fixed[i];
    return false;
}

/* Parts of a number, put together in ways that tell it, or not. */
static const Expr *random_digits(World *w, uint64_t *seed, const Expr *x)
{
    const Expr *c = random_in(seed, 0, 3) ? expr_constant(&w->m->exprs, random_in(seed, 1, 4))
                                          : expr_value(&w->m->exprs, w->values[A]);
    const Expr *high = make(w, SCALAR_div, x, c), *low = make(w, SCALAR_mod, x, c);
    const Expr *by = expr_constant(&w->m->exprs, random_in(seed, 1, 4));
    switch (random_in(seed, 0, 5)) {
    case 0: return high;
    case 1: return low;
    case 2: return make(w, SCALAR_add, make(w, SCALAR_mul, high, by), low);
    case 3: return make(w, SCALAR_add, low, make(w, SCALAR_mul, high, c));
    case 4: return make(w, SCALAR_sub, make(w, SCALAR_mul, x, by), random_leaf(w, seed));
    default: return random_in(seed, 0, 1) ? random_digits(w, seed, high)
                                          : random_digits(w, seed, low);
    }
}

static bool all_equal(const Question *q, unsigned i, unsigned j)
{
    for (int n = 0; n < VALUES; n++)
        if (q->fixed[n] && q->world->points[i][n] != q->world->points[j][n])
            return false;
    for (int n = 0; n < KNOWN; n++) {
        int64_t a, b;
        if (evaluate(q->world, i, q->known[n], &a) || evaluate(q->world, j, q->known[n], &b) ||
            a != b)
            return false;
    }
    return true;
}

static bool check_determined(World *w, const Question *q)
{
    enum { SAMPLES = 120 };
    unsigned step = w->count / SAMPLES + 1;
    if (!exprs_determine(w->m, q->known, KNOWN, q->goal, is_fixed, (void *)q))
        return false;
    for (unsigned i = 0; i < w->count; i += step)
        for (unsigned j = 0; j < i; j += step) {
            int64_t a, b;
            if (all_equal(q, i, j) && !evaluate(w, i, q->goal, &a) &&
                !evaluate(w, j, q->goal, &b) && a != b)
                refute(w, i, q->goal, a, "it is not determined");
        }
    return true;
}

static void what_is_determined_is_equal(void **state)
{
    (void)state;
    uint64_t seed = 20261123;
    unsigned checked = 0, determined = 0;
    while (checked < 4000) {
        Shape shape = random_shape(&seed);
        World *w = world_new(&shape);
        for (int i = 0; i < 20 && w->count; i++, checked++) {
            Question q = {.world = w};
            const Expr *x = expr_value(&w->m->exprs, w->values[random_in(&seed, BLOCK, J)]);
            q.goal = random_in(&seed, 0, 3) ? x : random_leaf(w, &seed);
            for (int n = 0; n < VALUES; n++)
                q.fixed[n] = n < BLOCK && random_in(&seed, 0, 1);
            for (int n = 0; n < KNOWN; n++)
                q.known[n] = random_in(&seed, 0, 4) ? random_digits(w, &seed, x)
                                                    : random_expr(w, &seed, 2);
            determined += check_determined(w, &q);
        }
        world_free(w);
    }
    assert_in_range(determined, checked / 8, checked / 8 * 7);
}

/* ---- folding ------------------------------------------------------------------- */

static bool count_stores(Op *op, void *data)
{
    *(unsigned *)data += op->code == OP_store_global;
    return true;
}

static void check_fold(World *w, const Expr *before, const Expr *after)
{
    for (unsigned i = 0; i < w->count; i++) {
        int64_t expected, got = 0;
        if (evaluate(w, i, before, &expected))
            continue;
        const char *why = evaluate(w, i, after, &got);
        if (why || got != expected) {
            char claim[160];
            snprintf(claim, sizeof claim, "folded it gives %lld %s", (long long)got,
                     why ? why : "");
            refute(w, i, before, expected, claim);
        }
    }
}

static void folding_keeps_the_meaning(void **state)
{
    (void)state;
    uint64_t seed = 20251003;
    unsigned checked = 0, changed = 0;
    while (checked < 20000) {
        Shape shape = random_shape(&seed);
        World *w = world_new(&shape);
        for (int round = 0; round < 10 && w->count; round++) {
            const Expr *before[OFFSETS], *after[OFFSETS];
            for (int i = 0; i < OFFSETS; i++)
                before[i] = random_expr(w, &seed, (unsigned)random_in(&seed, 1, 4));
            w->offsets->exprs = before;
            PassResult result = pass_fold(w->m->programs);
            memcpy(after, w->offsets->exprs, sizeof after);
            unsigned stores = 0;
            region_walk(w->m->programs->body, count_stores, &stores);
            assert_int_equal(stores, 1);
            for (int i = 0; i < OFFSETS; i++, checked++) {
                check_fold(w, before[i], after[i]);
                changed += before[i] != after[i];
                assert_true(before[i] == after[i] || result == PASS_CHANGED);
            }
        }
        world_free(w);
    }
    assert_in_range(changed, checked / 8, checked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(facts_hold_for_every_value),
        cmocka_unit_test(facts_are_as_sharp_as_stated),
        cmocka_unit_test(facts_follow_from_two_ranges),
        cmocka_unit_test(facts_of_deep_nests_end),
        cmocka_unit_test(facts_of_code_that_never_runs_end),
        cmocka_unit_test(differences_hold_for_every_value),
        cmocka_unit_test(differences_cancel_in_products),
        cmocka_unit_test(what_is_determined_is_equal),
        cmocka_unit_test(folding_keeps_the_meaning),
    };
    return cmocka_run_group_tests_name("facts", tests, NULL, NULL);
}
