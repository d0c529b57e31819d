/* lib/support: arenas, text, diagnostics, interning, scalar arithmetic and
 * compact storage. */
#define _GNU_SOURCE     /* fmemopen */

#include "support/arena.h"
#include "support/bits.h"
#include "support/diag.h"
#include "support/diff.h"
#include "support/intern.h"
#include "support/integer.h"
#include "support/limits.h"
#include "support/scalar.h"
#include "support/sized.h"
#include "support/text.h"
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { PRINTED_MAX = 8192 };

static uint64_t random_u64(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * 0x2545f4914f6cdd1du;
}

/* ---- arena ----------------------------------------------------------- */

static void arena_memory_is_zeroed_and_aligned(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    ArenaMark mark = arena_mark(&a);
    for (int round = 0; round < 2; round++) {       /* the second in used memory */
        for (size_t size = 0; size < 300; size++) {
            unsigned char *p = arena_alloc(&a, size);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t i = 0; i < size; i++)
                assert_int_equal(p[i], 0);
            memset(p, 0xff, size);
        }
        arena_reset(&a, mark);
    }
    arena_free(&a);
}

static void arena_reset_keeps_what_is_older(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    char *old = arena_strdup(&a, "old");
    size_t reserved = a.reserved;
    ArenaMark mark = arena_mark(&a);
    char *first = arena_alloc(&a, 100);
    memset(arena_alloc(&a, 1 << 20), 1, 1 << 20);
    assert_true(a.reserved > reserved);
    arena_reset(&a, mark);
    assert_int_equal(a.reserved, reserved);
    assert_string_equal(old, "old");
    assert_ptr_equal(arena_alloc(&a, 100), first);  /* the same room again */
    arena_free(&a);
    assert_int_equal(a.reserved, 0);
}

static void arena_marks_nest(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    ArenaMark outer = arena_mark(&a);
    int *number = arena_new(&a, int);
    *number = 7;
    ArenaMark inner = arena_mark(&a);
    arena_alloc(&a, 200000);
    arena_reset(&a, inner);
    assert_int_equal(*number, 7);
    arena_reset(&a, outer);
    assert_int_equal(a.reserved, 0);
    arena_free(&a);
}

typedef void Allocation(Arena *a);

static void past_the_limit(Arena *a)
{
    a->limit = 1 << 20;
    for (;;)
        arena_alloc(a, 1000);
}

static void one_large_block(Arena *a)
{
    a->limit = 1 << 20;
    arena_alloc(a, 1 << 20);
}

static void whole_address_space(Arena *a)
{
    arena_alloc(a, SIZE_MAX);
}

static void array_that_overflows(Arena *a)
{
    arena_alloc_array(a, SIZE_MAX / 4, 8);
}

static void full_array(Arena *a)
{
    char *items = NULL;
    uint32_t capacity = (uint32_t)1 << 31;
    arena_grow(a, &items, capacity, &capacity, 1);
}

static bool runs_out_of_memory(Allocation *allocate)
{
    OutOfMemory oom;
    Arena a;
    arena_init(&a, &oom);
    volatile bool jumped = true;
    if (!setjmp(oom.jump)) {
        allocate(&a);
        jumped = false;
    }
    assert_true(a.reserved <= a.limit);
    arena_free(&a);
    return jumped;
}

static void arena_jumps_when_memory_runs_out(void **state)
{
    (void)state;
    assert_true(runs_out_of_memory(past_the_limit));
    assert_true(runs_out_of_memory(one_large_block));
    assert_true(runs_out_of_memory(whole_address_space));
    assert_true(runs_out_of_memory(array_that_overflows));
    assert_true(runs_out_of_memory(full_array));
}

static void arena_limit_is_reached_exactly(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    arena_alloc(&a, 1 << 20);
    size_t reserved = a.reserved;
    arena_free(&a);
    arena_init(&a, NULL);
    a.limit = reserved;
    arena_alloc(&a, 1 << 20);
    assert_int_equal(a.reserved, reserved);
    arena_free(&a);
}

static void arena_push_grows(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    uint32_t *items = NULL, count = 0, capacity = 0;
    for (uint32_t i = 0; i < 10000; i++)
        arena_push(&a, items, count, capacity, i * i);
    assert_int_equal(count, 10000);
    assert_true(capacity >= count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(items[i], i * i);
    arena_free(&a);
}

static void arena_copies(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    int numbers[] = {1, 2, 3};
    assert_memory_equal(arena_copy(&a, numbers, sizeof numbers), numbers, sizeof numbers);
    assert_string_equal(arena_strndup(&a, "abcdef", 3), "abc");
    assert_string_equal(arena_strndup(&a, NULL, 0), "");
    assert_string_equal(arena_printf(&a, "%d-%s", 5, "x"), "5-x");
    assert_int_equal(strlen(arena_printf(&a, "%*s", 5000, "")), 5000);
    arena_free(&a);
}

/* ---- text ------------------------------------------------------------ */

static void text_collects(void **state)
{
    (void)state;
    Arena a;
    Text t;
    arena_init(&a, NULL);
    text_init(&t, &a);
    assert_string_equal(text_string(&t), "");
    text_indent(&t, 2);
    text_add(&t, "for ");
    text_char(&t, '%');
    text_add_n(&t, "input", 1);
    text_printf(&t, " = %d", 42);
    text_add_n(&t, NULL, 0);
    assert_string_equal(text_string(&t), "  for %i = 42");
    assert_int_equal(t.len, strlen("  for %i = 42"));
    arena_free(&a);
}

static void text_grows(void **state)
{
    (void)state;
    Arena a;
    Text t;
    arena_init(&a, NULL);
    text_init(&t, &a);
    for (int i = 0; i < 10000; i++)
        text_char(&t, (char)('a' + i % 26));
    text_printf(&t, "%*s", 100000, "");
    assert_int_equal(t.len, 110000);
    assert_int_equal(strlen(text_string(&t)), 110000);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(t.data[i], 'a' + i % 26);
    arena_free(&a);
}

/* The final NUL has room of its own, whatever the length. */
static void text_owns_its_end(void **state)
{
    (void)state;
    Arena a;
    arena_init(&a, NULL);
    char line[300];
    memset(line, '-', sizeof line);
    for (size_t len = 1; len < sizeof line; len++) {
        Text t;
        text_init(&t, &a);
        text_add_n(&t, line, len);
        memset(arena_alloc(&a, 16), 'x', 16);
        assert_int_equal(strlen(text_string(&t)), len);
    }
    arena_free(&a);
}

static void text_escapes(void **state)
{
    (void)state;
    Arena a;
    Text t;
    arena_init(&a, NULL);
    text_init(&t, &a);
    text_add_escaped(&t, "a ~\x1f\x7f\x80\xff\n\0z", 10);
    assert_string_equal(text_string(&t), "a ~\\x1f\\x7f\\x80\\xff\\x0a\\x00z");
    arena_free(&a);
}

/* ---- differences ----------------------------------------------------- */

typedef struct Kept {
    char text[512];
    size_t length;
} Kept;

static void keep(void *data, const char *text, size_t length)
{
    Kept *k = data;
    assert_true(length < sizeof k->text - k->length);
    memcpy(k->text + k->length, text, length);
    k->length += length;
}

static void check_difference(const char *before, const char *after, const char *expected)
{
    Kept kept = {{0}, 0};
    const Writer out = {keep, &kept};
    Arena a;
    arena_init(&a, NULL);
    diff_write(&out, &a, before, after);
    assert_string_equal(kept.text, expected);
    arena_free(&a);
}

/* What `diff -u` prints, without the names. */
static void differences_are_hunks(void **state)
{
    (void)state;
    check_difference("", "", "");
    check_difference("a\nb\n", "a\nb\n", "");
    check_difference("", "a\nb\n", "@@ -0,0 +1,2 @@\n+a\n+b\n");
    check_difference("a\n", "", "@@ -1,1 +0,0 @@\n-a\n");
    check_difference("a\nb\nc\nd\ne\n", "a\nb\nx\nc\nd\ny\n",
                     "@@ -1,5 +1,6 @@\n a\n b\n+x\n c\n d\n-e\n+y\n");
    check_difference("1\n2\n3\n4\n5\n6\n7\n8\n9\n", "x\n2\n3\n4\n5\n6\n7\n8\ny\n",
                     "@@ -1,4 +1,4 @@\n-1\n+x\n 2\n 3\n 4\n"
                     "@@ -6,4 +6,4 @@\n 6\n 7\n 8\n-9\n+y\n");
    check_difference("a\nlast", "a\nend", "@@ -1,2 +1,2 @@\n a\n-last\n+end\n");
}

/* ---- diagnostics ----------------------------------------------------- */

/* The text that diag_write writes. */
static void print_to(char text[PRINTED_MAX], const Diag *d)
{
    char *all = tilus_diag_format(d);
    assert_non_null(all);
    assert_true(strlen(all) < PRINTED_MAX);
    strcpy(text, all);
    tilus_free(all);
}

static void check_printed(const Diag *d, const char *expected)
{
    char text[PRINTED_MAX];
    print_to(text, d);
    assert_string_equal(text, expected);
}

static void start(Diag *d, const char *text, uint32_t first_line)
{
    diag_init(d);
    diag_set_source(d, "a.tilus", text, strlen(text), first_line);
}

static void diag_prints_place_line_and_caret(void **state)
{
    (void)state;
    Diag d;
    start(&d, "one\n%d = dot %a, %b\n", 1);
    assert_false(diag_error(&d, (Loc){2, 6, 3, 0}, "dot takes %d operands, got %d", 3, 2));
    assert_false(diag_note(&d, (Loc){1, 1, 1, 0}, "%s", "here"));
    assert_true(diag_warning(&d, WARNING_PIPELINE, (Loc){0, 0, 0, 0}, "no place"));
    assert_int_equal(d.errors, 1);
    check_printed(&d, "a.tilus:2:6: error: dot takes 3 operands, got 2\n"
                      "%d = dot %a, %b\n"
                      "     ^~~\n"
                      "a.tilus:1:1: note: here\n"
                      "one\n"
                      "^\n"
                      "a.tilus: warning: no place [-Wpipeline]\n");
    diag_free(&d);
}

/* A group that is off drops its notes, one whose warnings are errors counts them as such, and
 * a repeated message is recorded once. */
static void diag_obeys_groups_of_warnings(void **state)
{
    (void)state;
    static const Loc at = {1, 1, 1, 0};
    Diag d;
    start(&d, "one\n", 1);
    assert_true(warning_set_apply(&d.groups, "no-limits"));
    assert_true(warning_set_apply(&d.groups, "error=spills"));
    assert_true(diag_warning(&d, WARNING_LIMITS, at, "off"));
    assert_false(diag_note(&d, at, "of what is off"));
    assert_int_equal(d.count, 0);
    for (int i = 0; i < 2; i++) {
        assert_false(diag_warning(&d, WARNING_SPILLS, at, "fatal"));
        diag_note(&d, at, "of an error");
        assert_true(diag_warning(&d, WARNING_BOUNDS, at, "on"));
        assert_true(diag_is_noted(&d, WARNING_SPILLS, at));
        assert_false(diag_is_noted(&d, WARNING_BOUNDS, at));
        assert_false(diag_is_noted(&d, WARNING_SPILLS, (Loc){1, 2, 1, 0}));
    }
    assert_int_equal(d.errors, 1);
    assert_int_equal(d.warnings, 1);
    check_printed(&d, "a.tilus:1:1: error: fatal [-Werror=spills]\none\n^\n"
                      "a.tilus:1:1: note: of an error\none\n^\n"
                      "a.tilus:1:1: warning: on [-Wbounds]\none\n^\n");
    diag_free(&d);
}

static void check_set(const char *flag, uint32_t on, uint32_t fatal)
{
    WarningSet set = {.on = 1 << WARNING_PIPELINE, .fatal = 1 << WARNING_BOUNDS};
    assert_true(warning_set_apply(&set, flag));
    assert_int_equal(set.on, on);
    assert_int_equal(set.fatal, fatal);
}

static void flags_set_groups_of_warnings(void **state)
{
    (void)state;
    static const char *const wrong[] = {"", "x", "no-", "no-x", "error=", "error=x", "no-no-all",
                                        "error=error", "pipeline=1", "no-error=no-all"};
    const uint32_t p = 1 << WARNING_PIPELINE, b = 1 << WARNING_BOUNDS, h = 1 << WARNING_HAZARDS;
    const uint32_t all = (1 << WARNING_COUNT) - 1;
    check_set("hazards", p | h, b);
    check_set("no-pipeline", 0, b);
    check_set("error=hazards", p | h, b | h);
    check_set("no-error=bounds", p, 0);
    check_set("error", p, all);
    check_set("no-error", p, 0);
    check_set("all", all, b);
    check_set("no-all", 0, b);
    check_set("error=all", all, all);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        WarningSet set = {p, b};
        assert_false(warning_set_apply(&set, wrong[i]));
        assert_int_equal(set.on, p);
        assert_int_equal(set.fatal, b);
    }
    assert_true(warning_defaults().on & p);
    assert_false(warning_defaults().on & h);
    assert_int_equal(warning_defaults().fatal, 0);
}

static void diag_prints_without_a_source(void **state)
{
    (void)state;
    Diag d;
    diag_init(&d);
    diag_error(&d, (Loc){3, 4, 1, 0}, "lost");
    diag_error(&d, (Loc){0, 0, 0, 0}, "nowhere");
    check_printed(&d, "3:4: error: lost\nerror: nowhere\n");
    diag_free(&d);
}

static void diag_counts_lines_from_the_first(void **state)
{
    (void)state;
    Diag d;
    size_t len = 0;
    start(&d, "ten\neleven", 10);
    assert_null(source_line(&d.source, 9, &len));
    assert_memory_equal(source_line(&d.source, 10, &len), "ten", 3);
    assert_int_equal(len, 3);
    assert_memory_equal(source_line(&d.source, 11, &len), "eleven", 6);
    assert_int_equal(len, 6);
    assert_null(source_line(&d.source, 12, &len));
    diag_error(&d, (Loc){11, 7, 1, 0}, "at the end");
    diag_error(&d, (Loc){9, 1, 1, 0}, "too early");
    check_printed(&d, "a.tilus:11:7: error: at the end\n"
                      "eleven\n"
                      "      ^\n"
                      "a.tilus:9:1: error: too early\n");
    diag_free(&d);
}

static void diag_cleans_the_source_line(void **state)
{
    (void)state;
    Diag d;
    start(&d, "\ta\x01g", 1);
    diag_error(&d, (Loc){1, 2, 99, 0}, "the rest");
    check_printed(&d, "a.tilus:1:2: error: the rest\n a?g\n ^~~\n");
    diag_free(&d);
}

/* Shows a window of a line of 400 bytes, with the caret in place. */
static void diag_cuts_long_lines(void **state)
{
    (void)state;
    Diag d;
    char line[401];
    memset(line, '.', 400);
    line[400] = '\0';
    line[300] = '#';
    start(&d, line, 1);
    diag_error(&d, (Loc){1, 301, 1, 0}, "far");
    char text[PRINTED_MAX];
    print_to(text, &d);
    const char *shown = strchr(text, '\n') + 1, *mark = strchr(shown, '#');
    const char *caret_line = strchr(shown, '\n') + 1, *caret = strchr(caret_line, '^');
    assert_true(caret_line - shown <= 161);
    assert_non_null(mark);
    assert_int_equal(mark - shown, caret - caret_line);
    diag_free(&d);
}

static void diag_escapes_what_it_quotes(void **state)
{
    (void)state;
    Diag d;
    diag_init(&d);
    diag_error(&d, (Loc){0, 0, 0, 0}, "unknown op '%s'", "\x1b[31m");
    assert_string_equal(d.messages[0].text, "unknown op '\\x1b[31m'");
    diag_free(&d);
}

static void diag_stops_at_the_error_limit(void **state)
{
    (void)state;
    Diag d;
    diag_init(&d);
    for (unsigned i = 0; i < LIMIT_ERRORS + 5; i++) {
        diag_error(&d, (Loc){0, 0, 0, 0}, "error %u", i);
        diag_note(&d, (Loc){0, 0, 0, 0}, "note %u", i);
    }
    assert_int_equal(d.errors, LIMIT_ERRORS + 5);
    assert_int_equal(d.count, 2 * LIMIT_ERRORS);
    assert_string_equal(d.messages[d.count - 1].text, "note 99");
    char text[PRINTED_MAX];
    print_to(text, &d);
    assert_non_null(strstr(text, "note: note 99\n5 more errors were not kept\n"));
    diag_free(&d);
}

/* ---- interning ------------------------------------------------------- */

static bool equal_numbers(const void *a, const void *b)
{
    return *(const int *)a == *(const int *)b;
}

static void intern_keeps_members_while_it_grows(void **state)
{
    (void)state;
    Arena a;
    InternSet set;
    arena_init(&a, NULL);
    intern_init(&set, &a, equal_numbers);
    enum { COUNT = 5000 };
    int *numbers = arena_array(&a, int, COUNT);
    for (int i = 0; i < COUNT; i++) {
        numbers[i] = i;
        uint64_t hash = hash_u64(0, (uint64_t)i);
        assert_null(intern_find(&set, hash, &i));
        intern_add(&set, hash, &numbers[i]);
    }
    assert_int_equal(set.count, COUNT);
    for (int i = 0; i < COUNT; i++)
        assert_ptr_equal(intern_find(&set, hash_u64(0, (uint64_t)i), &i), &numbers[i]);
    arena_free(&a);
}

static void intern_tells_equal_hashes_apart(void **state)
{
    (void)state;
    Arena a;
    InternSet set;
    arena_init(&a, NULL);
    intern_init(&set, &a, equal_numbers);
    int numbers[100], absent = 100;
    for (int i = 0; i < 100; i++) {
        numbers[i] = i;
        intern_add(&set, UINT64_MAX, &numbers[i]);
    }
    for (int i = 0; i < 100; i++)
        assert_ptr_equal(intern_find(&set, UINT64_MAX, &i), &numbers[i]);
    assert_null(intern_find(&set, UINT64_MAX, &absent));
    assert_null(intern_find(&set, 5, &numbers[50]));    /* another hash: no member */
    arena_free(&a);
}

static void hashes_see_every_byte(void **state)
{
    (void)state;
    unsigned char bytes[24] = {0};
    for (size_t size = 0; size <= sizeof bytes; size++) {
        uint64_t hash = hash_bytes(1, bytes, size);
        assert_true(size == sizeof bytes || hash != hash_bytes(1, bytes, size + 1));
        for (size_t i = 0; i < size; i++) {
            bytes[i] ^= 1;
            assert_true(hash_bytes(1, bytes, size) != hash);
            bytes[i] ^= 1;
        }
    }
    assert_true(hash_u64(1, 2) != hash_u64(2, 1));
}

/* ---- scalar arithmetic ----------------------------------------------- */

/* The quotient rounded toward minus infinity, by search. */
static int64_t slow_floor(int64_t a, int64_t b)
{
    int64_t q = -1000;
    while (b > 0 ? (q + 1) * b <= a : (q + 1) * b >= a)
        q++;
    return q;
}

/* The meaning of `op`, for small operands and divisors other than 0. */
static int64_t slow_apply(ScalarOp op, int64_t a, int64_t b)
{
    switch (op) {
    case SCALAR_or: return a != 0 ? 1 : b != 0;
    case SCALAR_and: return a != 0 ? b != 0 : 0;
    case SCALAR_not: return a == 0;
    case SCALAR_eq: return a - b == 0;
    case SCALAR_ne: return a - b != 0;
    case SCALAR_lt: return a - b < 0;
    case SCALAR_le: return a - b <= 0;
    case SCALAR_gt: return b - a < 0;
    case SCALAR_ge: return b - a <= 0;
    case SCALAR_add: return a + b;
    case SCALAR_sub: return a - b;
    case SCALAR_mul: return a * b;
    case SCALAR_neg: return 0 - a;
    case SCALAR_min: return a - b < 0 ? a : b;
    case SCALAR_max: return a - b < 0 ? b : a;
    case SCALAR_div: return slow_floor(a, b);
    case SCALAR_mod: return a - b * slow_floor(a, b);
    case SCALAR_ceil_div: return -slow_floor(-a, b);
    case SCALAR_OP_COUNT: break;
    }
    fail_msg("no such operator");
    return 0;
}

static bool divides(ScalarOp op)
{
    return op == SCALAR_div || op == SCALAR_mod || op == SCALAR_ceil_div;
}

static void scalar_apply_on_small_numbers(void **state)
{
    (void)state;
    for (ScalarOp op = 0; op < SCALAR_OP_COUNT; op++)
        for (int64_t a = -20; a <= 20; a++)
            for (int64_t b = -20; b <= 20; b++) {
                int64_t out = 12345;
                const char *reason = scalar_apply(op, a, b, &out);
                if (divides(op) && b == 0) {
                    assert_string_equal(reason, "division by zero");
                    continue;
                }
                assert_null(reason);
                assert_int_equal(out, slow_apply(op, a, b));
            }
}

static void scalar_apply_at_the_ends(void **state)
{
    (void)state;
    enum { FAILS = 1 };
    static const struct { ScalarOp op; int64_t a, b, out; int fails; } known[] = {
        {SCALAR_add, INT64_MAX, 1, 0, FAILS}, {SCALAR_add, INT64_MAX, 0, INT64_MAX, 0},
        {SCALAR_add, INT64_MIN, -1, 0, FAILS}, {SCALAR_add, INT64_MIN, INT64_MAX, -1, 0},
        {SCALAR_sub, INT64_MIN, 1, 0, FAILS}, {SCALAR_sub, 0, INT64_MIN, 0, FAILS},
        {SCALAR_sub, -1, INT64_MIN, INT64_MAX, 0},
        {SCALAR_mul, INT64_MIN, -1, 0, FAILS}, {SCALAR_mul, 1ll << 32, 1ll << 31, 0, FAILS},
        {SCALAR_mul, -(1ll << 32), 1ll << 31, INT64_MIN, 0},
        {SCALAR_neg, INT64_MIN, 0, 0, FAILS}, {SCALAR_neg, INT64_MAX, 0, -INT64_MAX, 0},
        {SCALAR_div, INT64_MIN, -1, 0, FAILS}, {SCALAR_div, INT64_MIN, 1, INT64_MIN, 0},
        {SCALAR_ceil_div, INT64_MIN, -1, 0, FAILS}, {SCALAR_mod, INT64_MIN, -1, 0, 0},
        {SCALAR_mod, INT64_MAX, INT64_MIN, -1, 0}, {SCALAR_mod, -1, 5, 4, 0},
        {SCALAR_mod, -1, INT64_MAX, INT64_MAX - 1, 0}, {SCALAR_div, -1, INT64_MIN, 0, 0},
        {SCALAR_div, INT64_MAX, INT64_MIN, -1, 0}, {SCALAR_not, INT64_MIN, 0, 0, 0},
        {SCALAR_ceil_div, INT64_MAX, 2, 1ll << 62, 0}, {SCALAR_lt, INT64_MIN, INT64_MAX, 1, 0},
        {SCALAR_max, INT64_MIN, INT64_MAX, INT64_MAX, 0},
        {SCALAR_min, INT64_MIN, INT64_MAX, INT64_MIN, 0},
    };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        int64_t out = 12345;
        const char *reason = scalar_apply(known[i].op, known[i].a, known[i].b, &out);
        if (known[i].fails) {
            assert_non_null(reason);
            assert_string_equal(reason, "overflow of 64 bits");
        } else {
            assert_null(reason);
            assert_int_equal(out, known[i].out);
        }
    }
}

static void scalar_operators_have_names(void **state)
{
    (void)state;
    assert_string_equal(scalar_op_info[SCALAR_ceil_div].name, "ceil_div");
    assert_string_equal(scalar_op_info[SCALAR_div].spelling, "/");
    assert_string_equal(scalar_op_info[SCALAR_mod].spelling, "mod");
    assert_int_equal(scalar_op_info[SCALAR_neg].operands, 1);
    assert_int_equal(scalar_op_info[SCALAR_min].precedence, 0);
    assert_true(scalar_op_info[SCALAR_mul].precedence > scalar_op_info[SCALAR_add].precedence);
}

static int64_t slow_gcd(int64_t a, int64_t b)
{
    int64_t most = llabs(a) > llabs(b) ? llabs(a) : llabs(b);
    for (int64_t d = most; d > 1; d--)
        if (a % d == 0 && b % d == 0)
            return d;
    return most != 0;
}

static void rounding_up_of_integers(void **state)
{
    (void)state;
    assert_int_equal(ceil_div_i64(0, 8), 0);
    assert_int_equal(ceil_div_i64(1, 8), 1);
    assert_int_equal(ceil_div_i64(8, 8), 1);
    assert_int_equal(ceil_div_i64(INT64_MAX, 2), INT64_MAX / 2 + 1);
    assert_int_equal(round_up_i64(9, 8), 16);
    assert_int_equal(round_up_i64(0, 8), 0);
    assert_int_equal(ceil_div_size(SIZE_MAX, 2), SIZE_MAX / 2 + 1);
    assert_int_equal(round_up_size(16, 16), 16);
    assert_int_equal(round_up_size(17, 16), 32);
}

static void gcd_is_the_greatest(void **state)
{
    (void)state;
    for (int64_t a = -40; a <= 40; a++)
        for (int64_t b = -40; b <= 40; b++)
            assert_int_equal(gcd_i64(a, b), slow_gcd(a, b));
    assert_int_equal(gcd_i64(INT64_MIN, 48), 16);
    assert_int_equal(gcd_i64(INT64_MAX, 0), INT64_MAX);
    assert_int_equal(gcd_i64(INT64_MIN, 0), 1ll << 62);
    assert_int_equal(gcd_i64(INT64_MIN, INT64_MIN), 1ll << 62);
}

/* ---- compact storage ------------------------------------------------- */

static bool plain_bit(const unsigned char *data, size_t bit)
{
    return data[bit / 8] >> bit % 8 & 1;
}

static void bits_get_reads_every_width_and_offset(void **state)
{
    (void)state;
    uint64_t seed = 9;
    for (unsigned width = 1; width <= 64; width++) {
        /* Exactly as long as its elements: a byte too far is seen by ASan. */
        unsigned char *data = malloc(width * 2);
        assert_non_null(data);
        for (unsigned i = 0; i < width * 2; i++)
            data[i] = (unsigned char)random_u64(&seed);
        for (size_t i = 0; i < 16; i++) {
            uint64_t expected = 0;
            for (unsigned k = 0; k < width; k++)
                expected |= (uint64_t)plain_bit(data, i * width + k) << k;
            assert_true(bits_get(data, i, width) == expected);
        }
        free(data);
    }
}

static void bits_set_leaves_neighbours_alone(void **state)
{
    (void)state;
    uint64_t seed = 10;
    for (unsigned width = 1; width <= 64; width++)
        for (size_t i = 0; i < 16; i++) {
            unsigned char *data = malloc(width * 2), before[128];
            assert_non_null(data);
            for (unsigned k = 0; k < width * 2; k++)
                data[k] = before[k] = (unsigned char)random_u64(&seed);
            uint64_t code = random_u64(&seed);      /* its upper bits are ignored */
            bits_set(data, i, width, code);
            for (size_t bit = 0; bit < (size_t)width * 16; bit++) {
                bool inside = bit / width == i;
                bool expected = inside ? code >> bit % width & 1 : plain_bit(before, bit);
                assert_int_equal(plain_bit(data, bit), expected);
            }
            free(data);
        }
}

/* A struct of today's library, and the same of callers before and after it. */
typedef struct SizedOld {
    size_t struct_size;
    size_t a;
} SizedOld;

typedef struct Sized {
    size_t struct_size;
    size_t a, b;
} Sized;

typedef struct SizedNew {
    size_t struct_size;
    size_t a, b, c, d;
} SizedNew;

static void sized_copy_takes_structs_of_other_versions(void **state)
{
    (void)state;
    char text[200] = "";
    Report why = {text, sizeof text};
    Sized to;
    SizedOld old = {sizeof old, 1};
    assert_true(sized_copy(&to, sizeof to, &old, "options", "sized", why));
    assert_int_equal(to.struct_size, sizeof to);
    assert_int_equal(to.a, 1);
    assert_int_equal(to.b, 0);
    SizedNew newer = {.struct_size = sizeof newer, .a = 1, .b = 2};
    assert_true(sized_copy(&to, sizeof to, &newer, "options", "sized", why));
    assert_int_equal(to.b, 2);
    newer.d = 4;
    assert_false(sized_copy(&to, sizeof to, &newer, "options", "sized", why));
    assert_string_equal(text, "options: fields past byte 24 of sized are of a newer version of "
                        "this library");
    assert_int_equal(to.a, 0);
    assert_true(sized_copy(&to, sizeof to, NULL, "options", "sized", why));
    assert_int_equal(to.struct_size, sizeof to);
}

static void sized_copy_refuses_what_is_no_size(void **state)
{
    (void)state;
    char text[200] = "";
    Report why = {text, sizeof text};
    Sized to, from = {0};
    assert_false(SIZED_COPY(Sized, &to, &from, "options", why));
    assert_string_equal(text, "options: struct_size is 0, not sizeof(Sized), 24");
    from.struct_size = (size_t)-1;
    assert_false(SIZED_COPY(Sized, &to, &from, "options", why));
    assert_false(SIZED_FILL(Sized, &from, &to, "options", why));
}

static void sized_fill_keeps_within_the_caller(void **state)
{
    (void)state;
    Sized from = {sizeof from, 1, 2};
    SizedOld old[2] = {{sizeof *old, 0}, {7, 7}};
    assert_true(sized_fill(old, &from, sizeof from, "stats", "sized", (Report){NULL, 0}));
    assert_int_equal(old[0].struct_size, sizeof *old);
    assert_int_equal(old[0].a, 1);
    assert_int_equal(old[1].struct_size, 7);
    SizedNew newer = {.struct_size = sizeof newer, .d = 4};
    assert_true(sized_fill(&newer, &from, sizeof from, "stats", "sized", (Report){NULL, 0}));
    assert_int_equal(newer.struct_size, sizeof newer);
    assert_int_equal(newer.b, 2);
    assert_int_equal(newer.d, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(differences_are_hunks),
        cmocka_unit_test(arena_memory_is_zeroed_and_aligned),
        cmocka_unit_test(arena_reset_keeps_what_is_older),
        cmocka_unit_test(arena_marks_nest),
        cmocka_unit_test(arena_jumps_when_memory_runs_out),
        cmocka_unit_test(arena_limit_is_reached_exactly),
        cmocka_unit_test(arena_push_grows),
        cmocka_unit_test(arena_copies),
        cmocka_unit_test(text_collects),
        cmocka_unit_test(text_grows),
        cmocka_unit_test(text_owns_its_end),
        cmocka_unit_test(text_escapes),
        cmocka_unit_test(diag_prints_place_line_and_caret),
        cmocka_unit_test(diag_obeys_groups_of_warnings),
        cmocka_unit_test(flags_set_groups_of_warnings),
        cmocka_unit_test(diag_prints_without_a_source),
        cmocka_unit_test(diag_counts_lines_from_the_first),
        cmocka_unit_test(diag_cleans_the_source_line),
        cmocka_unit_test(diag_cuts_long_lines),
        cmocka_unit_test(diag_escapes_what_it_quotes),
        cmocka_unit_test(diag_stops_at_the_error_limit),
        cmocka_unit_test(intern_keeps_members_while_it_grows),
        cmocka_unit_test(intern_tells_equal_hashes_apart),
        cmocka_unit_test(hashes_see_every_byte),
        cmocka_unit_test(scalar_apply_on_small_numbers),
        cmocka_unit_test(scalar_apply_at_the_ends),
        cmocka_unit_test(scalar_operators_have_names),
        cmocka_unit_test(rounding_up_of_integers),
        cmocka_unit_test(gcd_is_the_greatest),
        cmocka_unit_test(sized_copy_takes_structs_of_other_versions),
        cmocka_unit_test(sized_copy_refuses_what_is_no_size),
        cmocka_unit_test(sized_fill_keeps_within_the_caller),
        cmocka_unit_test(bits_get_reads_every_width_and_offset),
        cmocka_unit_test(bits_set_leaves_neighbours_alone),
    };
    return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
