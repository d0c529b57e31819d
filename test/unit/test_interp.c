/* The interpreter: what each op means, and what it refuses. */
#include "ir/ir.h"
#include "support/bits.h"
#include "tilus/tilus.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- running programs ----------------------------------------------- */

/* One program over two buffers, on one warp. Its body begins on line 3. */
#define PROGRAM(grid, body)                                                   \
    "tilus 1\n"                                                               \
    "program @p<" grid ">(%a: ptr<u8> {align = 16}, %b: ptr<u8> {align = 16}, " \
    "%n: i32) warps(1) {\n"                                                   \
    body "}\n"

enum { BUFFER = 4096 };

typedef struct Run {
    tilus_diag *diag;
    tilus_module *module;
    unsigned char a[BUFFER], b[BUFFER];
    int64_t n;              /* the argument %n */
} Run;

static tilus_module *parse(tilus_diag *diag, const char *text, const tilus_define *defines,
                           size_t define_count)
{
    tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, defines,
                                  define_count);
    if (!m)
        tilus_diag_write(diag, NULL, NULL);
    assert_non_null(m);
    return m;
}

static Run *run_new(const char *text)
{
    Run *r = calloc(1, sizeof *r);
    assert_non_null(r);
    r->diag = tilus_diag_new();
    r->module = parse(r->diag, text, NULL, 0);
    return r;
}

static void run_free(Run *r)
{
    tilus_module_free(r->module);
    tilus_diag_free(r->diag);
    free(r);
}

static tilus_status run_sized(Run *r, size_t a_size, size_t b_size)
{
    tilus_arg args[3] = {{.pointer = 0}, {.pointer = 1}, {.integer = r->n}};
    tilus_buffer buffers[2] = {{r->a, a_size}, {r->b, b_size}};
    return tilus_interpret(r->module, "p", args, 3, buffers, 2, NULL);
}

static void run_ok(Run *r)
{
    tilus_status status = run_sized(r, BUFFER, BUFFER);
    if (status)
        tilus_diag_write(r->diag, NULL, NULL);
    assert_int_equal(status, TILUS_OK);
}

/* Message `i` stands on `line` and contains `text`. */
static void expect_message(const Run *r, size_t i, tilus_severity severity, unsigned line,
                           const char *text)
{
    if (i >= tilus_diag_count(r->diag) || tilus_diag_line(r->diag, i) != line ||
        !strstr(tilus_diag_text(r->diag, i), text))
        tilus_diag_write(r->diag, NULL, NULL);
    assert_true(i < tilus_diag_count(r->diag));
    assert_int_equal(tilus_diag_severity(r->diag, i), severity);
    assert_int_equal(tilus_diag_line(r->diag, i), line);
    assert_non_null(strstr(tilus_diag_text(r->diag, i), text));
}

/* `body` on 64-byte buffers fails with an error and a note; note_line 0: none. */
static void expect_error_on(const char *program, int64_t n, unsigned line, const char *error,
                            unsigned note_line, const char *note)
{
    Run *r = run_new(program);
    r->n = n;
    assert_int_equal(run_sized(r, 64, 64), TILUS_ERROR_PROGRAM);
    expect_message(r, 0, TILUS_SEVERITY_ERROR, line, error);
    if (note_line)
        expect_message(r, 1, TILUS_SEVERITY_NOTE, note_line, note);
    assert_int_equal(tilus_diag_count(r->diag), note_line ? 2 : 1);
    run_free(r);
}

#define expect_error(body, ...) expect_error_on(PROGRAM("1", body), 0, __VA_ARGS__)

static void expect_ok(const char *program)
{
    Run *r = run_new(program);
    run_ok(r);
    run_free(r);
}

/* A reproducible 64-bit random number (splitmix64). */
static uint64_t random_bits(uint64_t *state)
{
    uint64_t z = *state += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

/* ---- loads and stores ----------------------------------------------- */

static void store_keeps_neighbours_of_subbyte_elements(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u3[32]\n"
        "  %out = view_global %b : u3[40]\n"
        "  %x = load_global %in[0] : u3[32] @ spatial(32)\n"
        "  store_global %x, %out[5]\n"));
    uint64_t seed = 1;
    for (size_t i = 0; i < 32; i++)
        tilus_set_bits(r->a, i, 3, random_bits(&seed) & 7);
    memset(r->b, 0xA5, BUFFER);
    unsigned char before[BUFFER];
    memcpy(before, r->b, BUFFER);
    run_ok(r);
    for (size_t i = 0; i < 64; i++)
        assert_int_equal(tilus_get_bits(r->b, i, 3),
                         i >= 5 && i < 37 ? tilus_get_bits(r->a, i - 5, 3)
                                          : tilus_get_bits(before, i, 3));
    run_free(r);
}

static void elements_outside_the_view_are_zero_and_ignored(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u8[4, 10]\n"
        "  %out = view_global %b : u8[64]\n"
        "  %x = load_global %in[1, -2] : u8[32] @ spatial(32)\n"
        "  store_global %x, %out[40]\n"
        "  %gone = load_global %in[4, 0] : u8[32] @ spatial(32)\n"
        "  store_global %gone, %out[0]\n"));
    memset(r->b, 0xEE, BUFFER);
    for (int i = 0; i < 40; i++)
        r->a[i] = (unsigned char)(i + 1);
    run_ok(r);
    for (int i = 0; i < 32; i++)
        assert_int_equal(r->b[i], 0);
    for (int i = 40; i < 64; i++)
        assert_int_equal(r->b[i], i >= 42 && i < 52 ? r->a[10 + i - 42] : 0);
    assert_int_equal(r->b[64], 0xEE);
    run_free(r);
}

static void dims_and_strides_choose_the_elements(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u8[32, 3]\n"
        "  %row = view_global %a : u8[4, 8] strides(0, 1)\n"
        "  %out = view_global %b : u8[64]\n"
        "  %x = load_global %in[0, 2] {dims = [0]} : u8[32] @ spatial(32)\n"
        "  store_global %x, %out[0]\n"
        "  %y = load_global %row[0, 0] : u8[4, 8] @ spatial(4, 8)\n"
        "  %flat = view %y : u8[32] @ spatial(32)\n"
        "  store_global %flat, %out[32]\n"));
    for (int i = 0; i < 96; i++)
        r->a[i] = (unsigned char)(i + 1);
    run_ok(r);
    for (int i = 0; i < 32; i++) {
        assert_int_equal(r->b[i], r->a[i * 3 + 2]);
        assert_int_equal(r->b[32 + i], r->a[i % 8]);
    }
    run_free(r);
}

static void wide_elements_cross_words(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : i64[64]\n"
        "  %out = view_global %b : i64[64]\n"
        "  %x = load_global %in[0] : i64[64] @ spatial(32).local(2)\n"
        "  %y = neg %x\n"
        "  store_global %y, %out[0]\n"));
    uint64_t seed = 2;
    for (size_t i = 0; i < 64; i++)
        tilus_set_bits(r->a, i, 64, random_bits(&seed));
    run_ok(r);
    for (size_t i = 0; i < 64; i++)
        assert_true(tilus_get_bits(r->b, i, 64) == 0 - tilus_get_bits(r->a, i, 64));
    run_free(r);
}

static void shared_memory_passes_elements_between_threads(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u4[64]\n"
        "  %out = view_global %b : u4[64]\n"
        "  %s = allocate_shared : u4[64]\n"
        "  %x = load_global %in[0] : u4[64] @ spatial(32).local(2)\n"
        "  store_shared %x, %s[0]\n"
        "  synchronize\n"
        "  %y = load_shared %s[0] : u4[64] @ local(2).spatial(32)\n"
        "  store_global %y, %out[0]\n"));
    uint64_t seed = 3;
    for (int i = 0; i < 32; i++)
        r->a[i] = (unsigned char)random_bits(&seed);
    run_ok(r);
    assert_memory_equal(r->a, r->b, 32);
    run_free(r);
}

/* ---- registers ------------------------------------------------------ */

static void view_keeps_the_bits_of_each_thread(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : i6[16, 8]\n"
        "  %out = view_global %b : u8[96]\n"
        "  %x = load_global %in[0, 0] : i6[16, 8] "
        "@ local(2, 1).column_spatial(4, 8).local(2, 1)\n"
        "  %y = view %x : u8[96] @ local(3).spatial(32)\n"
        "  store_global %y, %out[0]\n"));
    uint64_t seed = 4;
    for (int i = 0; i < 96; i++)
        r->a[i] = (unsigned char)random_bits(&seed);
    run_ok(r);
    for (unsigned t = 0; t < 32; t++) {
        uint64_t bits = 0;
        for (unsigned s = 0; s < 4; s++) {
            unsigned row = s / 2 * 8 + t % 4 * 2 + s % 2, column = t / 4;
            bits |= tilus_get_bits(r->a, row * 8 + column, 6) << (6 * s);
        }
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(r->b[i * 32 + t], bits >> (8 * i) & 0xFF);
    }
    run_free(r);
}

static void casts_and_arithmetic_follow_the_types(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : i6[64]\n"
        "  %out = view_global %b : f16[5, 64]\n"
        "  %x = load_global %in[0] : i6[64] @ spatial(32).local(2)\n"
        "  %f = cast %x : f16\n"
        "  store_global %f, %out[0, 0]\n"
        "  %c = allocate_register 0.3 : f16[64] @ spatial(32).local(2)\n"
        "  %add = add %f, %c\n"
        "  store_global %add, %out[1, 0]\n"
        "  %sub = sub %f, %c\n"
        "  store_global %sub, %out[2, 0]\n"
        "  %mul = mul %f, %c\n"
        "  store_global %mul, %out[3, 0]\n"
        "  %neg = neg %f\n"
        "  store_global %neg, %out[4, 0]\n"));
    for (size_t i = 0; i < 64; i++)
        tilus_set_bits(r->a, i, 6, i);
    run_ok(r);
    double c = tilus_decode("f16", tilus_encode("f16", 0.3));
    for (size_t i = 0; i < 64; i++) {
        double x = (double)i - (i >= 32 ? 64 : 0);
        double want[5] = {x, x + c, x - c, x * c, -x};
        for (size_t row = 0; row < 5; row++) {
            uint64_t code = tilus_encode("f16", want[row]);
            if (row == 4 && i == 0)
                code = 0x8000;
            assert_int_equal(tilus_get_bits(r->b, row * 64 + i, 16), code);
        }
    }
    run_free(r);
}

static void integers_wrap(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %out = view_global %b : i8[32]\n"
        "  %x = allocate_register 100 : i8[32] @ spatial(32)\n"
        "  %y = add %x, %x\n"
        "  store_global %y, %out[0]\n"));
    run_ok(r);
    assert_int_equal((signed char)r->b[31], -56);
    run_free(r);
}

/* ---- dot ------------------------------------------------------------ */

typedef struct DotCase {
    const char *in, *out;
    double tolerance;       /* of one rounding, relative; 0: exact */
} DotCase;

#define DOT_PROGRAM                                                                   \
    "tilus 1\n"                                                                       \
    "param T: type = f16\n"                                                           \
    "param U: type = f32\n"                                                           \
    "program @p<1>(%a: ptr<T>, %b: ptr<T>, %c: ptr<U>) warps(1) {\n"                  \
    "  %ga = view_global %a : T[16, 8]\n"                                             \
    "  %gb = view_global %b : T[8, 12]\n"                                             \
    "  %gc = view_global %c : U[16, 12]\n"                                            \
    "  %x = load_global %ga[0, 0] : T[16, 8] @ local(2, 2).spatial(8, 4)\n"           \
    "  %y = load_global %gb[0, 0] : T[8, 12] @ spatial(8, 4).local(1, 3)\n"           \
    "  %z = load_global %gc[0, 0] : U[16, 12] @ local(2, 1).spatial(8, 4).local(1, 3)\n" \
    "  %d = dot %x, %y, %z\n"                                                         \
    "  store_global %d, %gc[0, 0]\n"                                                  \
    "}\n"

static void fill_small(unsigned char *data, size_t count, const char *type, uint64_t *seed)
{
    for (size_t i = 0; i < count; i++) {
        double x = (double)(random_bits(seed) % 2001) / 10.0 - 100;
        tilus_set_bits(data, i, tilus_type_bits(type), tilus_encode(type, x));
    }
}

static double element(const unsigned char *data, size_t i, const char *type)
{
    return tilus_decode(type, tilus_get_bits(data, i, tilus_type_bits(type)));
}

static void check_dot(const DotCase *t)
{
    enum { M = 16, N = 12, K = 8 };
    static unsigned char a[M * K * 4], b[K * N * 4], c[M * N * 4], d[M * N * 4];
    tilus_define defines[2] = {{"T", t->in}, {"U", t->out}};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, DOT_PROGRAM, defines, 2);
    uint64_t seed = 5;
    fill_small(a, M * K, t->in, &seed);
    fill_small(b, K * N, t->in, &seed);
    fill_small(c, M * N, t->out, &seed);
    memcpy(d, c, sizeof c);
    tilus_arg args[3] = {{.pointer = 0}, {.pointer = 1}, {.pointer = 2}};
    tilus_buffer buffers[3] = {{a, sizeof a}, {b, sizeof b}, {d, sizeof d}};
    assert_int_equal(tilus_interpret(m, "p", args, 3, buffers, 3, NULL), TILUS_OK);
    for (size_t i = 0; i < M; i++)
        for (size_t j = 0; j < N; j++) {
            double sum = element(c, i * N + j, t->out), size = 1;
            for (size_t k = 0; k < K; k++) {
                double x = element(a, i * K + k, t->in), y = element(b, k * N + j, t->in);
                sum += x * y;
                size += fabs(x * y);
            }
            double got = element(d, i * N + j, t->out);
            assert_true(fabs(got - sum) <= t->tolerance * size);
        }
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* What `reduce` gives for a tile whose first column holds four codes and whose
 * other elements are 0, in that column. */
static void expect_reduced(const char *type, const char *kind, uint64_t a, uint64_t b,
                           uint64_t c, uint64_t d, uint64_t expected)
{
    static const char format[] =
        "param T: type = %s\n"
        "program @p<1>(%%a: ptr<u8> {align = 16}, %%b: ptr<u8> {align = 16}, %%n: i32) {\n"
        "  %%in = view_global %%a : T[4, 32]\n"
        "  %%out = view_global %%b : T[1, 32]\n"
        "  %%x = load_global %%in[0, 0] : T[4, 32] @ spatial(2, 16).local(2, 2)\n"
        "  %%y = reduce %%x {kind = %s, dims = [0]}\n"
        "  store_global %%y, %%out[0, 0]\n"
        "}\n";
    const uint64_t column[4] = {a, b, c, d};
    char text[sizeof format + 64];
    unsigned bits = tilus_type_bits(type);
    snprintf(text, sizeof text, format, type, kind);
    Run *r = run_new(text);
    for (size_t i = 0; i < 4; i++)
        tilus_set_bits(r->a, i * 32, bits, column[i]);
    run_ok(r);
    assert_int_equal(tilus_get_bits(r->b, 0, bits), expected);
    run_free(r);
}

static void reductions_follow_the_types(void **state)
{
    (void)state;
    expect_reduced("i4", "sum", 7, 7, 1, 0xF, 14);
    expect_reduced("i4", "max", 0xF, 0x8, 2, 0xE, 2);
    expect_reduced("i4", "min", 0xF, 0x8, 2, 0xE, 0x8);
    expect_reduced("u4", "max", 0xF, 0x8, 2, 0xE, 0xF);
    expect_reduced("u64", "max", 1, UINT64_MAX, 2, 3, UINT64_MAX);
    expect_reduced("i64", "max", 1, UINT64_MAX, 2, 3, 3);
    expect_reduced("i64", "sum", INT64_MAX, 1, 0, 0, (uint64_t)INT64_MIN);
    /* Rounded once: 2048 + 1 is no f16, but 2048 + 1 + 1 is. */
    expect_reduced("f16", "sum", tilus_encode("f16", 2048), tilus_encode("f16", 1),
                   tilus_encode("f16", 1), 0, tilus_encode("f16", 2050));
    /* The sum of negative zeros is one; of zeros, the larger is positive. */
    expect_reduced("f16", "sum", 0x8000, 0x8000, 0x8000, 0x8000, 0x8000);
    expect_reduced("f16", "max", 0x8000, 0x8000, 0, 0x8000, 0);
    expect_reduced("f16", "min", 0, 0, 0x8000, 0, 0x8000);
    /* Numbers win over NaNs, unless there is none. */
    expect_reduced("f16", "max", 0x7E01, 0xFC00, 0x7E00, 0xBC00, 0xBC00);
    expect_reduced("f16", "min", 0x7C00, 0x7E01, 0x7C00, 0xFE00, 0x7C00);
    expect_reduced("f16", "max", 0x7E01, 0x7E01, 0xFE00, 0x7E01, 0x7E00);
    expect_reduced("f16", "sum", 0x7C00, 0, 0xFC00, 0, 0x7E00);
}

/* Four codes, in order. */
typedef struct Column {
    uint64_t code[4];
} Column;

/* Holds the column that `op` makes of one of type `type` against `expected`, of type `to`. */
static void expect_column(const char *type, const char *op, const char *to, Column from,
                          Column expected, size_t rows)
{
    static const char format[] =
        "param T: type = %s, R: type = %s\n"
        "program @p<1>(%%a: ptr<u8> {align = 16}, %%b: ptr<u8> {align = 16}, %%n: i32) {\n"
        "  %%in = view_global %%a : T[4, 32]\n"
        "  %%out = view_global %%b : R[%zu, 32]\n"
        "  %%x = load_global %%in[0, 0] : T[4, 32] @ spatial(2, 16).local(2, 2)\n"
        "  %%y = %s\n"
        "  store_global %%y, %%out[0, 0]\n"
        "}\n";
    char text[sizeof format + 128];
    snprintf(text, sizeof text, format, type, to, rows, op);
    Run *r = run_new(text);
    for (size_t i = 0; i < 4; i++)
        tilus_set_bits(r->a, i * 32, tilus_type_bits(type), from.code[i]);
    run_ok(r);
    for (size_t i = 0; i < rows; i++)
        assert_int_equal(tilus_get_bits(r->b, i * 32, tilus_type_bits(to)), expected.code[i]);
    run_free(r);
}

static void expect_index(const char *type, const char *kind, Column from, uint64_t index)
{
    char op[64];
    snprintf(op, sizeof op, "reduce %%x {kind = %s, dims = [0]}", kind);
    expect_column(type, op, "i32", from, (Column){{index}}, 1);
}

static void indices_are_of_the_first_of_equals(void **state)
{
    (void)state;
    expect_index("i8", "argmax", (Column){{1, 0x80, 7, 7}}, 2);
    expect_index("i8", "argmin", (Column){{1, 0x80, 7, 0x80}}, 1);
    expect_index("u8", "argmax", (Column){{1, 0x80, 7, 0x80}}, 1);
    expect_index("u64", "argmin", (Column){{UINT64_MAX, 1, 2, 1}}, 1);
    /* Zeros of both signs are equal; a NaN is preferred to nothing. */
    expect_index("f16", "argmax", (Column){{0x8000, 0, 0x8000, 0}}, 0);
    expect_index("f16", "argmin", (Column){{0x7E00, 0, 0x8000, 0}}, 1);
    expect_index("f16", "argmax", (Column){{0x7E00, 0xFC00, 0xFE01, 0xFC00}}, 1);
    expect_index("f16", "argmax", (Column){{0x7E00, 0x7E01, 0xFE00, 0x7E00}}, 0);
}

static void products_and_bools_are_reduced(void **state)
{
    (void)state;
    expect_reduced("i4", "product", 3, 0xF, 2, 1, 0xA);
    expect_reduced("u64", "product", UINT64_C(1) << 63, 3, 1, 1, UINT64_C(1) << 63);
    expect_reduced("f16", "product", 0x8000, 0x3C00, 0x3C00, 0x3C00, 0x8000);
    /* Rounded once: 2^-24 * 2^-1 is no f16, but times 2 it is. */
    expect_reduced("f16", "product", 1, 0x3800, 0x4000, 0x3C00, 1);
    expect_reduced("bool", "any", 0, 0, 2, 0, 1);
    expect_reduced("bool", "any", 0, 0, 0, 0, 0);
    expect_reduced("bool", "all", 1, 2, 3, 255, 1);
    expect_reduced("bool", "all", 1, 1, 0, 1, 0);
}

static void expect_scan(const char *type, const char *attrs, Column from, Column expected)
{
    char op[64];
    snprintf(op, sizeof op, "scan %%x {dim = 0, %s}", attrs);
    expect_column(type, op, type, from, expected, 4);
}

static void scans_combine_what_comes_before(void **state)
{
    (void)state;
    expect_scan("i4", "kind = sum", (Column){{3, 4, 5, 6}}, (Column){{3, 7, 12, 2}});
    expect_scan("i4", "kind = sum, exclusive = true", (Column){{3, 4, 5, 6}},
                (Column){{0, 3, 7, 12}});
    expect_scan("i4", "kind = product", (Column){{3, 2, 0xF, 6}}, (Column){{3, 6, 10, 12}});
    expect_scan("i4", "kind = max, exclusive = true", (Column){{0xE, 0xF, 2, 1}},
                (Column){{0x8, 0xE, 0xF, 2}});
    expect_scan("u4", "kind = min, exclusive = true", (Column){{9, 0xC, 2, 1}},
                (Column){{0xF, 9, 9, 2}});
    /* An exclusive scan of floats begins with 0, an infinity, or the last number. */
    expect_scan("f16", "kind = sum, exclusive = true", (Column){{0x8000, 0x8000, 0x3C00, 0}},
                (Column){{0, 0, 0, 0x3C00}});
    expect_scan("f16", "kind = sum", (Column){{0x8000, 0x8000, 0x3C00, 0xBC00}},
                (Column){{0x8000, 0x8000, 0x3C00, 0}});
    expect_scan("f16", "kind = max, exclusive = true", (Column){{0x7E00, 0x3C00, 0x7E00, 0}},
                (Column){{0xFC00, 0xFC00, 0x3C00, 0x3C00}});
    expect_scan("f16", "kind = max", (Column){{0x7E01, 0x3C00, 0x7E00, 0}},
                (Column){{0x7E00, 0x3C00, 0x3C00, 0x3C00}});
    expect_scan("f6e3m2", "kind = min, exclusive = true", (Column){{4, 2, 0x21, 0}},
                (Column){{0x1F, 4, 2, 0x21}});
    /* Each is rounded once: 2048 + 1 + 1. */
    expect_scan("f16", "kind = sum", (Column){{0x6800, 0x3C00, 0x3C00, 0}},
                (Column){{0x6800, 0x6800, 0x6801, 0x6801}});
}

static void shuffles_take_zeros_from_outside(void **state)
{
    (void)state;
    expect_column("i8", "shuffle %x, %x {dim = 0}", "i8", (Column){{3, 0, 0xFF, 4}},
                  (Column){{4, 3, 0, 0}}, 4);
    expect_column("u8", "shuffle %x, %x {dim = 0}", "u8", (Column){{1, 2, 3, 0xFF}},
                  (Column){{2, 3, 0xFF, 0}}, 4);
}

static void broadcast_repeats_elements(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : i16[8, 1]\n"
        "  %out = view_global %b : i16[8, 16]\n"
        "  %x = load_global %in[0, 0] : i16[8, 1] @ spatial(4, 1).replicate(8).local(2, 1)\n"
        "  %y = broadcast %x : i16[8, 16] @ spatial(4, 8).local(1, 2).local(2, 1)\n"
        "  store_global %y, %out[0, 0]\n"));
    for (size_t i = 0; i < 8; i++)
        tilus_set_bits(r->a, i, 16, 100 + i);
    run_ok(r);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(tilus_get_bits(r->b, i, 16), 100 + i / 16);
    run_free(r);
}

/* Steps of dequantize, each of which rounds in bf16: 5.6 is 5.59375, 0.3 is
 * 0.30078125, and products are rounded again. */
static void dequantize_rounds_each_step(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u4[4, 64]\n"
        "  %out = view_global %b : bf16[4, 64]\n"
        "  %w = load_global %in[0, 0] : u4[4, 64] @ local(4, 1).spatial(1, 32).local(1, 2)\n"
        "  %s = allocate_register 0.3 : f32[2, 1] @ local(2, 1).replicate(32)\n"
        "  %z = allocate_register 5.6 : f32[1, 1] @ replicate(32)\n"
        "  %y = dequantize %w, %s, %z : bf16\n"
        "  store_global %y, %out[0, 0]\n"));
    for (size_t i = 0; i < 256; i++)
        tilus_set_bits(r->a, i, 4, i * 5 % 16);
    run_ok(r);
    for (size_t i = 0; i < 256; i++) {
        double less = tilus_decode("bf16", tilus_encode("bf16", (double)(i * 5 % 16) - 5.59375));
        uint64_t expected = tilus_encode("bf16", less * 0.30078125);
        assert_int_equal(tilus_get_bits(r->b, i, 16), expected);
    }
    run_free(r);
}

/* Blocks of 2 x 4 of them, of which each has a scale and a zero point. */
static void dequantize_groups_elements(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u8[8, 16]\n"
        "  %scales = view_global %a : f8e4m3[4, 4]\n"
        "  %zeros = view_global %a : i8[4, 1]\n"
        "  %out = view_global %b : f16[8, 16]\n"
        "  %w = load_global %in[0, 0] : u8[8, 16] @ local(2, 1).spatial(4, 8).local(1, 2)\n"
        "  %s = load_global %scales[0, 0] : f8e4m3[4, 4]"
        " @ local(2, 1).spatial(2, 1).replicate(2).spatial(1, 4).replicate(2)\n"
        "  %z = load_global %zeros[0, 0] : i8[4, 1] @ local(2, 1).spatial(2, 1).replicate(16)\n"
        "  %y = dequantize %w, %s, %z : f16\n"
        "  store_global %y, %out[0, 0]\n"));
    for (size_t i = 0; i < 128; i++)
        r->a[i] = (unsigned char)(56 + i % 32);
    run_ok(r);
    for (size_t i = 0; i < 128; i++) {
        size_t row = i / 16 / 2, column = i % 16 / 4;
        double scale = tilus_decode("f8e4m3", r->a[row * 4 + column]), zero = r->a[row];
        assert_int_equal(tilus_get_bits(r->b, i, 16),
                         tilus_encode("f16", (r->a[i] - zero) * scale));
    }
    run_free(r);
}

static void dot_sums_products(void **state)
{
    (void)state;
    static const DotCase cases[] = {
        {"f16", "f32", 6e-8}, {"bf16", "f32", 6e-8}, {"f16", "f16", 5e-4}, {"i8", "i32", 0},
        {"f16", "i32", 1e-3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        check_dot(&cases[i]);
}

static void dot_reads_the_least_of_replicas(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : i8[32]\n"
        "  %out = view_global %b : i32[4, 16]\n"
        "  %bytes = load_global %in[0] : i8[32] @ spatial(32)\n"
        "  %x = view %bytes : i8[4, 2] @ spatial(4, 2).replicate(4)\n"
        "  %y = allocate_register 1 : i8[2, 16] @ spatial(2, 16)\n"
        "  %z = allocate_register 0 : i32[4, 16] @ spatial(4, 8).local(1, 2)\n"
        "  %d = dot %x, %y, %z\n"
        "  store_global %d, %out[0, 0]\n"));
    for (int i = 0; i < 32; i++)
        r->a[i] = (unsigned char)(i * 3);
    run_ok(r);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(tilus_get_bits(r->b, i * 16 + 5, 32), r->a[8 * i] + r->a[8 * i + 4]);
    run_free(r);
}

/* Sums of integers, then of floats: d = a * b + 5 for each of three matrices. */
static void dot_multiplies_batches(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %ga = view_global %a : i8[3, 4, 2]\n"
        "  %gb = view_global %a : i8[3, 2, 8]\n"
        "  %out = view_global %b : i32[6, 4, 8]\n"
        "  %x = load_global %ga[0, 0, 0] : i8[3, 4, 2] @ local(3, 1, 1).replicate(4).spatial(1, 4, 2)\n"
        "  %y = load_global %gb[0, 0, 0] : i8[3, 2, 8] @ local(3, 1, 1).replicate(2).spatial(1, 2, 8)\n"
        "  %z = allocate_register 5 : i32[3, 4, 8] @ local(3, 1, 1).spatial(1, 4, 8)\n"
        "  %d = dot %x, %y, %z\n"
        "  store_global %d, %out[0, 0, 0]\n"
        "  %xf = cast %x : f16\n"
        "  %yf = cast %y : f16\n"
        "  %zf = cast %z : f32\n"
        "  %df = dot %xf, %yf, %zf\n"
        "  %e = cast %df : i32\n"
        "  store_global %e, %out[3, 0, 0]\n"));
    for (int i = 0; i < 48; i++)
        r->a[i] = (unsigned char)(i * 7 - 90);
    run_ok(r);
    const signed char *in = (const signed char *)r->a;
    for (size_t e = 0; e < 96; e++) {
        const signed char *a = in + e / 8 * 2, *b = in + e / 32 * 16 + e % 8;
        int32_t expected = a[0] * b[0] + a[1] * b[8] + 5;
        assert_int_equal((int32_t)tilus_get_bits(r->b, e, 32), expected);
        assert_int_equal((int32_t)tilus_get_bits(r->b, 96 + e, 32), expected);
    }
    run_free(r);
}

/* ---- control -------------------------------------------------------- */

static void loops_carry_values(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %out = view_global %b : i32[4, 32]\n"
        "  %one = allocate_register 1 : i32[32] @ spatial(32)\n"
        "  %zero = allocate_register 0 : i32[32] @ spatial(32)\n"
        "  %f, %g = for %i in 0 .. %n iter(%x = %zero, %y = %one) {\n"
        "    %s = add %x, %y\n"
        "    yield %y, %s\n"
        "  }\n"
        "  store_global %f, %out[0, 0]\n"
        "  %p, %q = for %i in 10 .. 17 step 3 iter(%x = %zero, %y = %one) {\n"
        "    yield %y, %x\n"
        "  }\n"
        "  store_global %p, %out[1, 0]\n"
        "  store_global %q, %out[2, 0]\n"
        "  %none = for %i in 5 .. 5 iter(%x = %one) {\n"
        "    yield %zero\n"
        "  }\n"
        "  store_global %none, %out[3, 0]\n"));
    r->n = 10;
    run_ok(r);
    static const int want[4] = {55, 1, 0, 1};
    for (size_t row = 0; row < 4; row++)
        assert_int_equal(tilus_get_bits(r->b, row * 32 + 7, 32), want[row]);
    run_free(r);
}

static void conditions_choose_a_region(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("3, 2",
        "  %i, %j = block_indices\n"
        "  %out = view_global %b : u8[2, 3, 32]\n"
        "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
        "  %y = if %i == 1 and %j > 0 {\n"
        "    %two = add %x, %x\n"
        "    yield %two\n"
        "  } else {\n"
        "    yield %x\n"
        "  }\n"
        "  if %i < 2 {\n"
        "    store_global %y, %out[%j, %i, 0]\n"
        "  }\n"));
    run_ok(r);
    for (unsigned j = 0; j < 2; j++)
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(r->b[(j * 3 + i) * 32], i == 2 ? 0 : i == 1 && j == 1 ? 2 : 1);
    run_free(r);
}

static void exit_ends_one_block(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("4",
        "  %i = block_indices\n"
        "  %out = view_global %b : i32[4, 32]\n"
        "  %one = allocate_register 1 : i32[32] @ spatial(32)\n"
        "  for %j in 0 .. 3 {\n"
        "    %s = add %one, %one\n"
        "    if %i == 1 or (%i == 2 and %j == 2) {\n"
        "      exit\n"
        "    }\n"
        "    store_global %s, %out[%i, 0]\n"
        "  }\n"
        "  store_global %one, %out[%i, 0]\n"
        "  exit\n"
        "  store_global %one, %out[99, 0]\n"));
    run_ok(r);
    static const uint64_t expected[] = {1, 0, 2, 1};
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(tilus_get_bits(r->b, i, 32), expected[i / 32]);
    run_free(r);
}

static void an_empty_grid_runs_nothing(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("%n",
        "  %out = view_global %b : u8[32]\n"
        "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
        "  store_global %x, %out[0]\n"));
    run_ok(r);
    assert_int_equal(r->b[0], 0);
    r->n = 1;
    run_ok(r);
    assert_int_equal(r->b[0], 1);
    run_free(r);
}

/* ---- errors --------------------------------------------------------- */

static void undefined_data_is_reported(void **state)
{
    (void)state;
    expect_error("  %out = view_global %b : u8[32]\n"
                 "  %x = allocate_register : u8[32] @ spatial(32)\n"
                 "  %v = view %x : i8[32] @ spatial(32)\n"
                 "  %y = for %i in 0 .. 2 iter(%c = %v) {\n"
                 "    yield %c\n"
                 "  }\n"
                 "  %z = neg %y\n",
                 9, "neg reads an element that was never written", 4, "without a value");
    expect_error("  %out = view_global %b : u8[32]\n"
                 "  %x = allocate_register : u8[32] @ spatial(32)\n"
                 "  store_global %x, %out[0]\n",
                 5, "store_global reads an element that was never written", 4, "allocated");
    expect_error("  %s = allocate_shared : u4[64]\n"
                 "  %x = allocate_register 1 : u4[32] @ spatial(32)\n"
                 "  store_shared %x, %s[1]\n"
                 "  synchronize\n"
                 "  %y = load_shared %s[0] : u4[32] @ spatial(32)\n",
                 7, "reads byte 0 of shared tensor %s, which was never written",
                 3, "shared tensor %s is allocated here");
}

static void each_execution_of_an_allocation_is_undefined(void **state)
{
    (void)state;
    expect_error("  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
                 "  for %i in 0 .. 2 {\n"
                 "    %s = allocate_shared : u8[32]\n"
                 "    if %i == 0 {\n"
                 "      store_shared %x, %s[0]\n"
                 "    }\n"
                 "    %y = load_shared %s[0] : u8[32] @ spatial(32)\n"
                 "  }\n",
                 9, "reads byte 0 of shared tensor %s, which was never written",
                 5, "is allocated here");
}

static void accesses_out_of_bounds_are_reported(void **state)
{
    (void)state;
    expect_error("  %in = view_global %a : u8[128]\n"
                 "  %x = load_global %in[48] : u8[32] @ spatial(32)\n",
                 4, "reads byte 64 of argument %a, which has 64 bytes", 3, "the view");
    expect_error("  %out = view_global %b : f16[64]\n"
                 "  %x = allocate_register 0 : f16[32] @ spatial(32)\n"
                 "  store_global %x, %out[16]\n",
                 5, "writes byte 64 of argument %b, which has 64 bytes", 3, "the view");
    expect_error("  %in = view_global %a : u8[32] strides(-1)\n"
                 "  %x = load_global %in[0] : u8[32] @ spatial(32)\n",
                 4, "reads byte -1 of argument %a", 3, "the view");
    expect_error("  %s = allocate_shared : u8[4, 16]\n"
                 "  %x = allocate_register 0 : u8[4, 8] @ spatial(4, 8)\n"
                 "  store_shared %x, %s[0, %n + 9]\n",
                 5, "writes index 16 in dimension 1 of shared tensor %s, which has extent 16",
                 3, "is allocated here");
}

static void bad_scalars_are_reported(void **state)
{
    (void)state;
    expect_error_on(PROGRAM("1", "  %in = view_global %a : u8[%n, 4]\n"), -3,
                    3, "the extent of dimension 0 is -3", 0, NULL);
    expect_error("  %in = view_global %a : u8[64 / %n]\n", 3, "division by zero in 64 / %n",
                 0, NULL);
    expect_error_on(PROGRAM("1", "  %in = view_global %a : u8[%n * 2147483647, 4, 2]\n"),
                    2147483647, 3, "the view spans more than 2^63", 0, NULL);
    expect_error("  for %i in 0 .. 4 step %n {\n  }\n", 3, "the step of a loop is 0", 0, NULL);
}

/* ---- races ---------------------------------------------------------- */

static void reads_race_with_writes(void **state)
{
    (void)state;
    expect_error("  %s = allocate_shared : u8[32]\n"
                 "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
                 "  store_shared %x, %s[0]\n"
                 "  %y = load_shared %s[0] : u8[8] @ spatial(8).replicate(4)\n",
                 6, "race: thread 1 of block (0) reads byte 0 of shared tensor %s, thread 0 "
                 "of block (0) has written it, and no synchronize lies between",
                 5, "thread 0 of block (0) has written it here");
}

static void writes_race_with_reads(void **state)
{
    (void)state;
    expect_error("  %in = view_global %a : u8[32]\n"
                 "  %out = view_global %a : u8[2, 32] strides(0, 1)\n"
                 "  %x = load_global %in[0] : u8[32] @ spatial(32)\n"
                 "  %y = load_global %in[0] : u8[8] @ spatial(8).replicate(4)\n"
                 "  store_global %x, %out[0, 0]\n",
                 7, "race: thread 0 of block (0) writes byte 0 of argument %a, thread 1 of "
                 "block (0) has read it", 6, "thread 1 of block (0) has read it here");
}

/* Thread 0's second write must not hide its first from thread 1's. */
static void a_threads_later_write_hides_nothing(void **state)
{
    (void)state;
    expect_error("  %s = allocate_shared : u8[32]\n"
                 "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
                 "  %y = allocate_register 1 : u8[8] @ spatial(8).replicate(4)\n"
                 "  store_shared %x, %s[0]\n"
                 "  store_shared %y, %s[0]\n",
                 7, "race: thread 1 of block (0) writes byte 0", 6, "thread 0");
}

static void iterations_race(void **state)
{
    (void)state;
    expect_error("  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
                 "  for %i in 0 .. 2 {\n"
                 "    %s = allocate_shared : u8[32]\n"
                 "    store_shared %x, %s[0]\n"
                 "    synchronize\n"
                 "    %y = load_shared %s[0] : u8[8] @ spatial(8).replicate(4)\n"
                 "  }\n",
                 6, "race: thread 0 of block (0) writes byte 0 of shared tensor %s, thread 1 "
                 "of block (0) has read it", 8, "thread 1");
}

static void different_values_in_one_store_race(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %in = view_global %a : u4[32]\n"
        "  %out = view_global %b : u4[32, 8] strides(0, 1)\n"
        "  %x = load_global %in[0] : u4[32] @ spatial(32)\n"
        "  store_global %x, %out[0, 3] {dims = [0]}\n"));
    memset(r->a, 0x77, BUFFER);
    run_ok(r);
    assert_int_equal(r->b[1], 0x70);
    r->a[3] = 0x79;
    assert_int_equal(run_sized(r, BUFFER, BUFFER), TILUS_ERROR_PROGRAM);
    expect_message(r, 0, TILUS_SEVERITY_ERROR, 6,
                   "threads 0 and 6 of block (0) write different values to byte 1 of "
                   "argument %b");
    expect_message(r, 1, TILUS_SEVERITY_NOTE, 4, "");
    run_free(r);
}

static void blocks_race(void **state)
{
    (void)state;
    expect_error_on(PROGRAM("2, 2",
        "  %i, %j = block_indices\n"
        "  %out = view_global %b : u4[64]\n"
        "  %x = allocate_register 1 : u4[32] @ spatial(32)\n"
        "  if %i == 1 {\n"
        "    synchronize\n"
        "    store_global %x, %out[%j * 31]\n"
        "  }\n"), 0,
        8, "race: thread 0 of block (1, 1) writes byte 15 of argument %b, thread 30 of block "
        "(1, 0) has written it, and blocks are not ordered",
        8, "thread 30 of block (1, 0) has written it here");
    expect_error_on(PROGRAM("2",
        "  %i = block_indices\n"
        "  %g = view_global %a : u8[32]\n"
        "  %x = load_global %g[0] : u8[32] @ spatial(32)\n"
        "  if %i == 1 {\n"
        "    store_global %x, %g[0]\n"
        "  }\n"), 0,
        7, "race: thread 0 of block (1) writes byte 0 of argument %a, thread 0 of block (0) "
        "has read it", 5, "has read it here");
    expect_error_on(PROGRAM("2",
        "  %i = block_indices\n"
        "  %g = view_global %a : u8[32]\n"
        "  %x = load_global %g[0] : u8[32] @ spatial(32)\n"
        "  store_global %x, %g[0]\n"), 0,
        5, "race: thread 0 of block (1) reads byte 0 of argument %a, thread 0 of block (0) "
        "has written it", 6, "has written it here");
}

static void ordered_accesses_do_not_race(void **state)
{
    (void)state;
    expect_ok(PROGRAM("1",      /* one thread's own bytes need no barrier */
        "  %s = allocate_shared : u8[64]\n"
        "  %x = allocate_register 1 : u8[64] @ spatial(32).local(2)\n"
        "  store_shared %x, %s[0]\n"
        "  %y = load_shared %s[0] : u8[64] @ spatial(32).local(2)\n"
        "  store_shared %y, %s[0]\n"));
    expect_ok(PROGRAM("4",      /* barriers in a loop; shared memory is the block's own */
        "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"
        "  for %i in 0 .. 3 {\n"
        "    %s = allocate_shared : u8[32]\n"
        "    store_shared %x, %s[0]\n"
        "    synchronize\n"
        "    %y = load_shared %s[0] : u8[8] @ spatial(8).replicate(4)\n"
        "    synchronize\n"
        "  }\n"));
    expect_ok(PROGRAM("1",      /* replicas write one value; many read it */
        "  %s = allocate_shared : u4[16]\n"
        "  %x = allocate_register 1 : u4[8] @ spatial(8).replicate(4)\n"
        "  store_shared %x, %s[3]\n"
        "  synchronize\n"
        "  %y = load_shared %s[3] : u4[8] @ replicate(4).spatial(8)\n"
        "  %z = load_shared %s[3] : u4[8] @ replicate(4).spatial(8)\n"));
    expect_ok(PROGRAM("4",      /* blocks read what all read, write what is theirs */
        "  %i = block_indices\n"
        "  %in = view_global %a : u8[32]\n"
        "  %out = view_global %b : u8[128]\n"
        "  %x = load_global %in[0] : u8[32] @ spatial(32)\n"
        "  store_global %x, %out[%i * 32]\n"));
}

/* ---- atomic ops ------------------------------------------------------- */

/* 64 bytes of %a and one word for each thread, more than fit; the text after it begins
 * on line 5. */
#define ONES                                                                  \
    "  %g = view_global %a : i32[16]\n"                                       \
    "  %x = allocate_register 1 : i32[32] @ spatial(32)\n"

static void atomics_change_each_element_once(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("3",
        "  %g = view_global %a : i32[2, 8]\n"
        "  %f = view_global %b : f32[2]\n"
        "  %x = allocate_register -5 : i32[8] @ replicate(2).spatial(4).replicate(4).local(2)\n"
        "  %y = allocate_register 16777216.0 : f32[1] @ replicate(32)\n"
        "  %z = allocate_register 1.0 : f32[1] @ replicate(32)\n"
        "  atomic_add %x, %g[0, 0]\n"
        "  atomic_min %x, %g[1, 3]\n"      /* the last three are outside */
        "  atomic_max %x, %g[1, -6]\n"
        "  atomic_add %y, %f[0]\n"
        "  atomic_add %z, %f[0]\n"          /* rounds to even, each time */
        "  atomic_exch %z, %f[1]\n"));
    int32_t before[16] = {1, 2, 3, 4, 5, 6, 7, 8, -9, 4, 6, 5, -7, 0, -1, -2};
    int32_t after[17] = {-14, -13, -12, -11, -10, -9, -8, -7, -5, 4, 6, -5, -7, -5, -5, -5};
    float floats[3] = {50331648.0f, 1.0f};
    memcpy(r->a, before, sizeof before);
    run_ok(r);
    assert_memory_equal(r->a, after, sizeof after);
    assert_memory_equal(r->b, floats, sizeof floats);
    run_free(r);
}

static void atomics_of_floats_know_zeros_and_nans(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %f = view_global %b : f32[4, 4]\n"
        "  %zero = allocate_register 0.0 : f32[4] @ replicate(32).local(4)\n"
        "  %none = allocate_register nan : f32[4] @ replicate(32).local(4)\n"
        "  %one = allocate_register 1.0 : f32[4] @ replicate(32).local(4)\n"
        "  atomic_max %zero, %f[0, 0]\n"
        "  atomic_max %none, %f[1, 0]\n"
        "  atomic_min %zero, %f[2, 0]\n"
        "  atomic_cas %zero, %one, %f[3, 0]\n"
        "  atomic_cas %none, %one, %f[3, 0]\n"));
    float row[4] = {-0.0f, NAN, -INFINITY, 2.0f}, before[16], after[16];
    float greater[4] = {0.0f, 0.0f, 0.0f, 2.0f}, lesser[4] = {-0.0f, 0.0f, -INFINITY, 0.0f};
    for (unsigned i = 0; i < 4; i++)
        memcpy(before + 4 * i, row, sizeof row);
    memcpy(after, before, sizeof before);
    memcpy(after, greater, sizeof greater);
    memcpy(after + 8, lesser, sizeof lesser);
    after[13] = 1.0f;
    memcpy(r->b, before, sizeof before);
    run_ok(r);
    assert_memory_equal(r->b, after, sizeof after);
    run_free(r);
}

static void atomics_race_with_other_accesses(void **state)
{
    (void)state;
    const char *changes = "race: thread 1 of block (0) atomically changes byte 4 of argument %a, "
                          "thread 0 of block (0) has ";
    const char *changed = "thread 0 of block (0) has atomically changed it, and no synchronize "
                          "lies between";
    expect_error(ONES "  %y = load_global %g[1] : i32[32] @ spatial(32)\n"
                 "  atomic_add %x, %g[0]\n", 6, changes, 5, "has read it here");
    expect_error(ONES "  store_global %x, %g[1]\n  atomic_add %x, %g[0]\n", 6, changes, 5,
                 "has written it here");
    expect_error(ONES "  atomic_exch %x, %g[0]\n  %y = load_global %g[0] : i32[32] @ "
                 "local(2).spatial(16).replicate(2)\n", 6, changed, 5,
                 "has atomically changed it here");
    expect_error(ONES "  atomic_exch %x, %g[1]\n  store_global %x, %g[0]\n", 6, changed, 5,
                 "thread 0 of block (0) has atomically changed it here");
    expect_error(ONES "  %s = allocate_shared : i32[32]\n  atomic_add %x, %g[0]\n"
                 "  copy_async %g[0], %s[0] {shape = [32]}\n", 7,
                 "the copy_async of block (0) reads byte 0 of argument %a, thread 0", 6,
                 "has atomically changed it here");
    expect_error(ONES "  %s = allocate_shared : i32[32]\n"
                 "  copy_async %g[0], %s[0] {shape = [32]}\n  atomic_add %x, %g[0]\n", 7,
                 "race: thread 0 of block (0) atomically changes byte 0", 6, "has read it here");
}

/* Also after a `synchronize`, and with an op of the block itself between. */
static void atomics_race_with_other_blocks(void **state)
{
    (void)state;
    expect_error_on(PROGRAM("2", ONES
        "  %i = block_indices\n"
        "  atomic_add %x, %g[0] {order = acq_rel, scope = system}\n"
        "  if %i == 1 {\n"
        "    synchronize\n"
        "    %y = load_global %g[0] : i32[32] @ spatial(32)\n"
        "  }\n"), 0, 9, "thread 0 of block (1) reads byte 0 of argument %a, thread 0 of block (0) "
        "has atomically changed it, and blocks are not ordered", 6, "block (0)");
    expect_error_on(PROGRAM("2", ONES
        "  %i = block_indices\n"
        "  if %i == 0 {\n"
        "    %y = load_global %g[0] : i32[32] @ spatial(32)\n"
        "  }\n"
        "  synchronize\n"
        "  atomic_add %x, %g[0]\n"), 0, 10, "thread 0 of block (1) atomically changes byte 0 of "
        "argument %a, thread 0 of block (0) has read it, and blocks are not ordered", 7, "");
}

static void atomics_do_not_race_with_each_other(void **state)
{
    (void)state;
    expect_ok(PROGRAM("4", ONES         /* of all threads and blocks */
        "  %y = allocate_register 1 : i32[32] @ local(2).spatial(16).replicate(2)\n"
        "  for %i in 0 .. 3 {\n"
        "    atomic_add %x, %g[%i]\n"
        "    atomic_max %y, %g[0] {order = acquire}\n"
        "  }\n"));
    expect_ok(PROGRAM("2", ONES         /* a synchronize between orders */
        "  %s = allocate_shared : i32[32]\n"
        "  atomic_exch %x, %s[0]\n"     /* which only writes */
        "  synchronize\n"
        "  %y = load_shared %s[0] : i32[32] @ local(2).spatial(16).replicate(2)\n"
        "  synchronize\n"
        "  atomic_add %y, %s[0]\n"));
    expect_ok(PROGRAM("1", ONES         /* one thread's own */
        "  store_global %x, %g[0]\n"
        "  atomic_add %x, %g[0]\n"
        "  %y = load_global %g[0] : i32[32] @ spatial(32)\n"));
}

static void atomics_are_checked(void **state)
{
    (void)state;
    expect_error(ONES "  %s = allocate_shared : i32[40]\n  atomic_add %x, %s[0]\n", 6,
                 "reads byte 0 of shared tensor %s, which was never written", 5, "");
    expect_error(ONES "  %s = allocate_shared : i32[40]\n  atomic_exch %x, %s[9 + %n]\n", 6,
                 "writes index 40 in dimension 0 of shared tensor %s, which has extent 40", 5, "");
    expect_error(ONES "  %y = allocate_register : i32[32] @ spatial(32)\n"
                 "  atomic_add %y, %g[0]\n", 6,
                 "atomic_add reads an element that was never written", 5, "");
    expect_error(ONES "  %h = view_global %a : i32[20]\n  atomic_add %x, %h[0]\n", 6,
                 "writes byte 64 of argument %a, which has 64 bytes", 5, "");
}

/* ---- copies --------------------------------------------------------- */

/* 32 bytes of %a on their way into %s; the text that follows begins on line 6. */
#define START                                                                 \
    "  %g = view_global %a : u8[32]\n"                                        \
    "  %s = allocate_shared : u8[32]\n"                                       \
    "  copy_async %g[0], %s[0] {shape = [32]}\n"
#define WAIT                                                                  \
    "  copy_async_commit_group\n"                                             \
    "  copy_async_wait_group 0\n"
#define FILL "  %x = allocate_register 1 : u8[32] @ spatial(32)\n"

static void copies_conflict_until_they_are_waited_for(void **state)
{
    (void)state;
    const char *written = "race: thread 0 of block (0) writes byte 0 of ";
    const char *started = "the copy_async of block (0) has";
    expect_error(START FILL "  store_shared %x, %s[0]\n", 7, written, 5, started);
    expect_error(START FILL "  store_global %x, %g[0]\n", 7, written, 5, started);
    expect_error(START FILL "  synchronize\n  store_global %x, %g[0]\n", 8,
                 "has read it, and no copy_async_wait_group lies between", 5, started);
    expect_error(START WAIT FILL "  store_global %x, %g[0]\n", 9,
                 "has read it, and no synchronize lies between", 5, started);
    expect_error(START "  copy_async %g[0], %s[0] {shape = [8]}\n", 6,
                 "race: the copy_async of block (0) writes byte 0 of shared tensor %s, the "
                 "copy_async of block (0) has written it, and no copy_async_wait_group", 5,
                 started);
}

/* What stands before a copy must be ordered before its start: nobody knows
 * when its bytes move. */
static void copies_conflict_with_earlier_accesses(void **state)
{
    (void)state;
    expect_error(FILL
                 "  %g = view_global %a : u8[32]\n"
                 "  %s = allocate_shared : u8[32]\n"
                 "  store_global %x, %g[0]\n"
                 "  copy_async %g[0], %s[0] {shape = [32]}\n",
                 7, "race: the copy_async of block (0) reads byte 0 of argument %a, thread 0 of "
                 "block (0) has written it, and no synchronize lies between", 6, "thread 0");
    expect_error(FILL
                 "  %g = view_global %a : u8[32]\n"
                 "  %s = allocate_shared : u8[32]\n"
                 "  store_shared %x, %s[0]\n"
                 "  synchronize\n"
                 "  %y = load_shared %s[0] : u8[32] @ spatial(32)\n"
                 "  copy_async %g[0], %s[0] {shape = [32]}\n",
                 9, "race: the copy_async of block (0) writes byte 0 of shared tensor %s, thread 0 "
                 "of block (0) has read it", 8, "thread 0");
}

static void copies_must_end(void **state)
{
    (void)state;
    expect_error(START, 5, "block (0) ends while this copy_async is in flight: no "
                 "copy_async_commit_group follows it", 0, NULL);
    expect_error(START "  copy_async_commit_group\n  copy_async_wait_group 1\n", 5,
                 "block (0) ends while this copy_async is in flight: no copy_async_wait_group "
                 "waits for it", 0, NULL);
    expect_error("  %g = view_global %a : u8[32]\n"
                 "  for %i in 0 .. 2 {\n"
                 "    %s = allocate_shared : u8[32]\n"
                 "    copy_async %g[0], %s[0] {shape = [32]}\n"
                 "    copy_async_commit_group\n"
                 "  }\n",
                 5, "shared tensor %s is allocated again while a copy_async into it is in flight",
                 6, "no copy_async_wait_group waits for it");
}

/* Nothing moves a bit twice with different values, nothing outside the source
 * is read and nothing outside the target written. */
static void copies_are_checked(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
                             "  %g = view_global %a : u8[32]\n"
                             "  %s = allocate_shared : u8[32] shared strides(0)\n"
                             "  copy_async %g[0], %s[0] {shape = [32]}\n" WAIT));
    r->a[7] = 1;
    assert_int_equal(run_sized(r, 64, 64), TILUS_ERROR_PROGRAM);
    expect_message(r, 0, TILUS_SEVERITY_ERROR, 5, "race: the copy_async of block (0) writes "
                   "different values to byte 0 of shared tensor %s");
    run_free(r);
    expect_error("  %g = view_global %a : u8[96]\n"
                 "  %s = allocate_shared : u8[96]\n"
                 "  copy_async %g[0], %s[0] {shape = [96]}\n",
                 5, "reads byte 64 of argument %a, which has 64 bytes", 3, "the view is made here");
    expect_error_on(PROGRAM("1",
                            "  %g = view_global %a : u8[32]\n"
                            "  %s = allocate_shared : u8[40]\n"
                            "  copy_async %g[0], %s[%n] {shape = [32]}\n"),
                    9, 5, "writes index 40 in dimension 0 of shared tensor %s, which has extent 40",
                    4, "shared tensor %s is allocated here");
}

/* Three groups in a ring of three tiles; each wait leaves the newest two. The
 * first byte of each tile lies before the source. */
static void waits_leave_the_newest_groups(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("2",
        "  %block = block_indices\n"
        "  %g = view_global %a : u8[256]\n"
        "  %h = view_global %b : u8[2, 256]\n"
        "  %s = allocate_shared : u8[3, 32]\n"
        "  for %i in 0 .. 2 {\n"
        "    copy_async %g[%i * 32 - 1], %s[%i, 0] {shape = [32]}\n"
        "    copy_async_commit_group\n"
        "  }\n"
        "  for %i in 0 .. 8 {\n"
        "    copy_async %g[%i * 32 + 63], %s[(%i + 2) mod 3, 0] {shape = [32]}\n"
        "    copy_async_commit_group\n"
        "    copy_async_wait_group 2\n"
        "    synchronize\n"
        "    %x = load_shared %s[%i mod 3, 0] : u8[32] @ spatial(32)\n"
        "    store_global %x, %h[%block, %i * 32]\n"
        "    synchronize\n"
        "  }\n"
        "  copy_async_wait_group 0\n"));
    for (unsigned i = 0; i < 256; i++)
        r->a[i] = (unsigned char)(i * 7 + 3);
    run_ok(r);
    for (unsigned i = 0; i < 512; i++)
        assert_int_equal(r->b[i], i % 256 ? r->a[i % 256 - 1] : 0);
    run_free(r);
}

/* Elements of 6 bits, a column of which becomes a row; their neighbours in the
 * shared bytes stay. */
static void copies_follow_dims_and_strides(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %g = view_global %a : i6[4, 8] strides(1, 4)\n"
        "  %s = allocate_shared : i6[2, 32]\n"
        "  %h = view_global %b : i6[2, 32]\n"
        "  %one = allocate_register -1 : i6[2, 32] @ local(2, 1).spatial(1, 32)\n"
        "  store_shared %one, %s[0, 0]\n"
        "  synchronize\n"
        "  copy_async %g[1, 2], %s[1, 3] {shape = [5], source_dims = [1], dims = [1]}\n" WAIT
        "  synchronize\n"
        "  %x = load_shared %s[0, 0] : i6[2, 32] @ local(2, 1).spatial(1, 32)\n"
        "  store_global %x, %h[0, 0]\n"));
    for (unsigned i = 0; i < 32; i++)
        bits_set(r->a, i, 6, i);
    run_ok(r);
    for (unsigned i = 0; i < 64; i++) {
        bool copied = i >= 35 && i < 40;
        assert_int_equal(bits_get(r->b, i, 6), copied ? 1 + (2 + i - 35) * 4 : 63);
    }
    run_free(r);
}

/* ---- launches ------------------------------------------------------- */

static void launches_are_checked(void **state)
{
    (void)state;
    Run *r = run_new("tilus 1\n"
                     "program @p<1>(%a: ptr<u8>, %n: i32 {divisible = 16}) warps(1) {\n}\n");
    tilus_buffer buffer = {r->a, BUFFER};
    tilus_arg odd[2] = {{.pointer = 0}, {.integer = 17}};
    tilus_arg stray[2] = {{.pointer = 1}, {.integer = 16}};
    assert_int_equal(tilus_interpret(r->module, "p", odd, 2, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_message(r, 0, TILUS_SEVERITY_ERROR, 0, "n");
    assert_int_equal(tilus_interpret(r->module, "p", stray, 2, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_message(r, 1, TILUS_SEVERITY_ERROR, 0, "argument %a is buffer 1, but there are 1");
    assert_int_equal(tilus_interpret(r->module, "p", odd, 1, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    assert_int_equal(tilus_interpret(r->module, "q", odd, 2, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    run_free(r);
}

static void memory_may_run_out(void **state)
{
    (void)state;
    Run *r = run_new(PROGRAM("1",
        "  %out = view_global %b : u8[8192]\n"
        "  %x = allocate_register 7 : u8[4096] @ spatial(32).local(128)\n"
        "  store_global %x, %out[0]\n"));
    r->module->scratch.limit = 100000;
    assert_int_equal(run_sized(r, BUFFER, BUFFER), TILUS_ERROR_MEMORY);
    assert_null(r->module->programs->args[0]->data);
    assert_int_equal(r->module->scratch.reserved, 0);
    r->module->scratch.limit = SIZE_MAX;
    run_ok(r);
    assert_int_equal(r->b[4095], 7);
    assert_null(r->module->programs->args[0]->data);
    run_free(r);
}

/* ---- the samples ---------------------------------------------------- */

#define W_PARAMS                                                              \
    "param BM = 16, BN = 8, BK = 16\n"                                        \
    "param W: type = i6\n"                                                    \
    "param BYTES = BK * BN * bits(W) / 8\n"

static const char transform_b[] =
    "tilus 1\n" W_PARAMS
    "program @transform_b<%k / BK, %n / BN>(%b: ptr<W>, %bt: ptr<u8>,\n"
    "                    %k: i32 {divisible = BK}, %n: i32 {divisible = BN}) warps(1) {\n"
    "  %bk, %bj = block_indices\n"
    "  %in = view_global %b : W[%k, %n]\n"
    "  %out = view_global %bt : u8[%k / BK, %n / BN, BYTES]\n"
    "  %tile = load_global %in[%bk * BK, %bj * BN] : W[BK, BN] @ local(BK / 16, 1)"
    ".local(2, 1).column_spatial(4, 8).local(2, 1)\n"
    "  %bytes = view %tile : u8[BYTES] @ local(BYTES / 32).spatial(32)\n"
    "  store_global %bytes, %out[%bk, %bj, 0]\n"
    "}\n";

static const char matmul[] =
    "tilus 1\n" W_PARAMS
    "layout LA = local(1, BK / 16).column_local(2, 2).spatial(8, 4).local(1, 2)\n"
    "layout LB = local(BK / 16, 1).local(2, 1).column_spatial(4, 8).local(2, 1)\n"
    "layout LC = local(2, 1).spatial(8, 4).local(1, 2)\n"
    "program @matmul<%m / BM, %n / BN>(%a: ptr<f16>, %b: ptr<u8>, %c: ptr<f16>,\n"
    "                %m: i32 {divisible = BM}, %n: i32 {divisible = BN},\n"
    "                %k: i32 {divisible = BK}) warps(1) {\n"
    "  %bi, %bj = block_indices\n"
    "  %ga = view_global %a : f16[%m, %k]\n"
    "  %gb = view_global %b : u8[%k / BK, %n / BN, BYTES]\n"
    "  %gc = view_global %c : f16[%m, %n]\n"
    "  %zero = allocate_register 0.0 : f32[BM, BN] @ LC\n"
    "  %acc = for %bk in 0 .. %k / BK iter(%sum = %zero) {\n"
    "    %ra = load_global %ga[%bi * BM, %bk * BK] : f16[BM, BK] @ LA\n"
    "    %bytes = load_global %gb[%bk, %bj, 0] : u8[BYTES] @ local(BYTES / 32).spatial(32)\n"
    "    %rw = view %bytes : W[BK, BN] @ LB\n"
    "    %rb = cast %rw : f16\n"
    "    %next = dot %ra, %rb, %sum\n"
    "    yield %next\n"
    "  }\n"
    "  %out = cast %acc : f16\n"
    "  store_global %out, %gc[%bi * BM, %bj * BN]\n"
    "}\n";

enum { SM = 32, SN = 24, SK = 64 };

static void interpret_sample(const char *text, const char *name, const tilus_define *defines,
                             const tilus_arg *args, size_t arg_count,
                             const tilus_buffer *buffers, size_t buffer_count)
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, text, defines, 2);
    tilus_status status = tilus_interpret(m, name, args, arg_count, buffers, buffer_count, NULL);
    tilus_diag_write(diag, NULL, NULL);
    assert_int_equal(status, TILUS_OK);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

/* Packs B with @transform_b, multiplies with @matmul, and compares with sums
 * in double of the same codes. Small integers: every sum is exact. */
static void check_samples(const char *w, const char *bk)
{
    static unsigned char a[SM * SK * 2], b[SK * SN], packed[SK * SN], c[SM * SN * 2];
    unsigned bits = tilus_type_bits(w);
    uint64_t seed = 7;
    for (size_t i = 0; i < SM * SK; i++)
        tilus_set_bits(a, i, 16, tilus_encode("f16", (double)(random_bits(&seed) % 7) - 3));
    for (size_t i = 0; i < SK * SN; i++)
        tilus_set_bits(b, i, bits, random_bits(&seed) & ((1u << bits) - 1));
    tilus_define defines[2] = {{"W", w}, {"BK", bk}};
    size_t size = SK * SN * bits / 8;
    tilus_arg pack[4] = {{.pointer = 0}, {.pointer = 1}, {.integer = SK}, {.integer = SN}};
    tilus_buffer packing[2] = {{b, size}, {packed, size}};
    interpret_sample(transform_b, "transform_b", defines, pack, 4, packing, 2);
    tilus_arg multiply[6] = {{.pointer = 0}, {.pointer = 1}, {.pointer = 2},
                             {.integer = SM}, {.integer = SN}, {.integer = SK}};
    tilus_buffer buffers[3] = {{a, sizeof a}, {packed, size}, {c, sizeof c}};
    interpret_sample(matmul, "matmul", defines, multiply, 6, buffers, 3);
    for (size_t i = 0; i < SM; i++)
        for (size_t j = 0; j < SN; j++) {
            double sum = 0;
            for (size_t k = 0; k < SK; k++)
                sum += element(a, i * SK + k, "f16") * element(b, k * SN + j, w);
            assert_int_equal(tilus_get_bits(c, i * SN + j, 16), tilus_encode("f16", sum));
        }
}

static void samples_multiply(void **state)
{
    (void)state;
    check_samples("i6", "16");
    check_samples("i6", "32");
    check_samples("u3", "32");
    check_samples("f5e2m2", "32");
    check_samples("i1", "32");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(store_keeps_neighbours_of_subbyte_elements),
        cmocka_unit_test(elements_outside_the_view_are_zero_and_ignored),
        cmocka_unit_test(dims_and_strides_choose_the_elements),
        cmocka_unit_test(wide_elements_cross_words),
        cmocka_unit_test(shared_memory_passes_elements_between_threads),
        cmocka_unit_test(view_keeps_the_bits_of_each_thread),
        cmocka_unit_test(casts_and_arithmetic_follow_the_types),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(reductions_follow_the_types),
        cmocka_unit_test(indices_are_of_the_first_of_equals),
        cmocka_unit_test(products_and_bools_are_reduced),
        cmocka_unit_test(scans_combine_what_comes_before),
        cmocka_unit_test(shuffles_take_zeros_from_outside),
        cmocka_unit_test(broadcast_repeats_elements),
        cmocka_unit_test(dequantize_rounds_each_step),
        cmocka_unit_test(dequantize_groups_elements),
        cmocka_unit_test(dot_sums_products),
        cmocka_unit_test(dot_reads_the_least_of_replicas),
        cmocka_unit_test(dot_multiplies_batches),
        cmocka_unit_test(loops_carry_values),
        cmocka_unit_test(conditions_choose_a_region),
        cmocka_unit_test(exit_ends_one_block),
        cmocka_unit_test(an_empty_grid_runs_nothing),
        cmocka_unit_test(undefined_data_is_reported),
        cmocka_unit_test(each_execution_of_an_allocation_is_undefined),
        cmocka_unit_test(accesses_out_of_bounds_are_reported),
        cmocka_unit_test(bad_scalars_are_reported),
        cmocka_unit_test(reads_race_with_writes),
        cmocka_unit_test(writes_race_with_reads),
        cmocka_unit_test(a_threads_later_write_hides_nothing),
        cmocka_unit_test(iterations_race),
        cmocka_unit_test(different_values_in_one_store_race),
        cmocka_unit_test(blocks_race),
        cmocka_unit_test(ordered_accesses_do_not_race),
        cmocka_unit_test(atomics_change_each_element_once),
        cmocka_unit_test(atomics_of_floats_know_zeros_and_nans),
        cmocka_unit_test(atomics_race_with_other_accesses),
        cmocka_unit_test(atomics_race_with_other_blocks),
        cmocka_unit_test(atomics_do_not_race_with_each_other),
        cmocka_unit_test(atomics_are_checked),
        cmocka_unit_test(copies_conflict_until_they_are_waited_for),
        cmocka_unit_test(copies_conflict_with_earlier_accesses),
        cmocka_unit_test(copies_must_end),
        cmocka_unit_test(copies_are_checked),
        cmocka_unit_test(waits_leave_the_newest_groups),
        cmocka_unit_test(copies_follow_dims_and_strides),
        cmocka_unit_test(launches_are_checked),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(samples_multiply),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
