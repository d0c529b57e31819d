/* What runs tell those who watch: blocks done, on both engines, and what lines did. */
#include "tilus/tilus.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCKS = 5 };

static const char text[] =
    "tilus 1\n"
    "program @p<5>(%x: ptr<i32>, %bad: i32) warps(1) {\n"
    "  %b = block_indices\n"
    "  %g = view_global %x : i32[160]\n"
    "  %v = allocate_register 1 : i32[32] @ spatial(32)\n"
    "  assert %bad == 0, \"bad\"\n"
    "  store_global %v, %g[%b * 32]\n"
    "}\n";

typedef struct Watch {
    atomic_int calls, wrong;
    _Atomic int64_t most;
    bool in_order;              /* numbers must ascend by one */
} Watch;

static void watch(void *data, int64_t done, int64_t total)
{
    Watch *w = data;
    int64_t call = atomic_fetch_add(&w->calls, 1);
    if (total != BLOCKS || (w->in_order && done != call))
        atomic_fetch_add(&w->wrong, 1);
    int64_t most = atomic_load(&w->most);
    while (done > most && !atomic_compare_exchange_weak(&w->most, &most, done))
        continue;
}

static void expect_all(Watch *w)
{
    assert_int_equal(w->calls, BLOCKS + 1);
    assert_int_equal(w->wrong, 0);
    assert_int_equal(w->most, BLOCKS);
}

/* The program, after the default pipeline if it is to be compiled. */
static tilus_module *parse(tilus_diag *diag, bool compile)
{
    const tilus_pass_options passes = {.struct_size = sizeof passes, .target = "sm_80"};
    tilus_module *m = tilus_parse(diag, "p.tilus", text, strlen(text), 1, NULL, 0);
    assert_non_null(m);
    assert_true(!compile || tilus_run_passes(m, NULL, &passes));
    return m;
}

/* ---- progress ------------------------------------------------------------- */

static void test_interpreter(void **state)
{
    (void)state;
    int32_t x[32 * BLOCKS];
    Watch w = {.in_order = true};
    const tilus_arg args[] = {{.pointer = 0}, {.integer = 0}};
    const tilus_buffer buffer = {x, sizeof x};
    const tilus_interpret_options options = {.struct_size = sizeof options,
                                        .progress = watch, .watcher = &w};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, false);
    assert_int_equal(tilus_interpret(m, "p", args, 2, &buffer, 1, &options), TILUS_OK);
    expect_all(&w);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

static void test_cpu(void **state)
{
    (void)state;
    for (unsigned threads = 1; threads <= 4; threads += 3) {
        int32_t x[32 * BLOCKS];
        Watch w = {.in_order = threads == 1};
        const tilus_arg args[] = {{.pointer = 0}, {.integer = 0}};
        const tilus_buffer buffer = {x, sizeof x};
        const tilus_cpu_options options = {.struct_size = sizeof options,
            .cpu = "sm_80", .host_threads = threads, .progress = watch, .watcher = &w};
        tilus_diag *diag = tilus_diag_new();
        tilus_module *m = parse(diag, true);
        assert_int_equal(tilus_run_on_cpu(m, "p", args, 2, &buffer, 1, &options, NULL),
                         TILUS_OK);
        expect_all(&w);
        tilus_module_free(m);
        tilus_diag_free(diag);
    }
}

/* ---- lines ---------------------------------------------------------------- */

typedef struct Counts {
    unsigned calls, first, last;
    uint64_t stored;
} Counts;

static void count_lines(void *data, const tilus_line_profile *lines, size_t count)
{
    Counts *c = data;
    c->calls++;
    c->first = lines[0].line;
    c->last = lines[count - 1].line;
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(lines[i].ops, BLOCKS);
        assert_true(i == 0 || lines[i].line > lines[i - 1].line);
        c->stored += lines[i].global_written;
    }
}

static void profile(int64_t bad, tilus_status expected, Counts *c)
{
    int32_t x[32 * BLOCKS];
    const tilus_arg args[] = {{.pointer = 0}, {.integer = bad}};
    const tilus_buffer buffer = {x, sizeof x};
    const tilus_interpret_options options = {.struct_size = sizeof options,
                                        .profile = count_lines, .profiler = c};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, false);
    assert_int_equal(tilus_interpret(m, "p", args, 2, &buffer, 1, &options), expected);
    tilus_module_free(m);
    tilus_diag_free(diag);
}

static void test_profile(void **state)
{
    (void)state;
    Counts c = {0};
    profile(0, TILUS_OK, &c);
    assert_int_equal(c.calls, 1);
    assert_int_equal(c.first, 3);
    assert_int_equal(c.last, 7);
    assert_int_equal(c.stored, BLOCKS * 32 * 32);
}

/* Of a run that ended early, numbers would say nothing. */
static void test_no_profile_after_error(void **state)
{
    (void)state;
    Counts c = {0};
    profile(1, TILUS_ERROR_PROGRAM, &c);
    assert_int_equal(c.calls, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_interpreter),
        cmocka_unit_test(test_cpu),
        cmocka_unit_test(test_profile),
        cmocka_unit_test(test_no_profile_after_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
