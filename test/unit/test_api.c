/* The public API as a user sees it, and what each entry does when memory runs
 * out: at every allocation it fails with its status, leaks nothing, and leaves
 * the module fit for another try. The same for deadlines, at every look at the clock.
 * Linked with --wrap for malloc, calloc, strdup and clock_gettime (LLVM's own calls
 * are not touched). */
#define _GNU_SOURCE
#include "failing_memory.h"
#include "ir/loop.h"
#include "ir/verify.h"
#include "syntax/syntax.h"
#include "tilus/tilus.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* A clock that goes on by a millisecond at each look. */
int __wrap_clock_gettime(clockid_t clock, struct timespec *t);

static const tilus_pass_options no_options = {.struct_size = sizeof no_options};

static long long looks;

int __wrap_clock_gettime(clockid_t clock, struct timespec *t)
{
    (void)clock;
    looks++;
    *t = (struct timespec){.tv_sec = looks / 1000, .tv_nsec = looks % 1000 * 1000000};
    return 0;
}

/* ---- a program ------------------------------------------------------------------ */

/* Adds 3 to %n floats, 32 a block. */
static const char add_three[] =
    "tilus 1\n"
    "param STEPS = 3, T: type = f32\n"
    "layout LANES = spatial(32)\n"
    "program @add<ceil_div(%n, 32), 1>(%a: ptr<T> {align = 16},\n"
    "    %n: i32 {divisible = 4, range = [0, 4096]}, %k: i64) warps(1) {\n"
    "  %b, %unused = block_indices\n"
    "  %g = view_global %a : T[%n]\n"
    "  %s = allocate_shared : T[32]\n"
    "  %x = load_global %g[%b * 32 * 1] : T[32] @ LANES\n"
    "  %one = allocate_register 1.0 : T[32] @ LANES\n"
    "  %y, %last = for %i in 0 .. STEPS iter(%t = %x, %dead = %one) {\n"
    "    %u = add %t, %one\n"
    "    %v = add %t, %one\n"
    "    yield %v, %u\n"
    "  }\n"
    "  store_shared %y, %s[0]\n"
    "  synchronize\n"
    "  %z = load_shared %s[0] : T[32] @ LANES\n"
    "  if %n > 0 and %k == %k {\n"
    "    store_global %z, %g[%b * 32]\n"
    "  }\n"
    "}\n";

enum { COUNT = 40, SIZE = 48 };

typedef struct Subject {
    tilus_diag *diag;
    tilus_module *module;
    float data[SIZE];
} Subject;

static Subject subject_of(const char *text)
{
    Subject s = {.diag = tilus_diag_new()};
    assert_non_null(s.diag);
    s.module = tilus_parse(s.diag, "test.tilus", text, strlen(text), 1, NULL, 0);
    if (!s.module)
        tilus_diag_write(s.diag, NULL, NULL);
    assert_non_null(s.module);
    return s;
}

static void subject_free(Subject *s)
{
    tilus_module_free(s->module);
    tilus_diag_free(s->diag);
}

static tilus_status interpret(Subject *s)
{
    for (int i = 0; i < SIZE; i++)
        s->data[i] = (float)i;
    tilus_arg args[] = {{.pointer = 0}, {.integer = COUNT}, {.integer = 7}};
    tilus_buffer buffer = {s->data, COUNT * sizeof *s->data};
    return tilus_interpret(s->module, "add", args, 3, &buffer, 1, NULL);
}

static void expect_sums(const Subject *s)
{
    for (int i = 0; i < SIZE; i++)
        assert_true(s->data[i] == (float)(i < COUNT ? i + 3 : i));
}

static char *compile(Subject *s, const char *cpu, tilus_output_kind output)
{
    tilus_compile_options options = {.struct_size = sizeof options,
                                     .cpu = cpu, .opt_level = 1, .output = output};
    return tilus_compile(s->module, &options, NULL);
}

static void expect_text(const tilus_diag *diag, size_t i, const char *text)
{
    assert_true(i < tilus_diag_count(diag));
    assert_non_null(strstr(tilus_diag_text(diag, i), text));
}

/* ---- parsing -------------------------------------------------------------------- */

/* Two loops that stay as they are: warnings fail nothing, and past the limit they are counted. */
static void warnings_are_counted_apart(void **state)
{
    (void)state;
    static const char text[] = "program @p<1>(%n: i32) warps(1) {\n"
                               "  for %i in 0 .. %n pipelined(2) {\n"
                               "    synchronize\n"
                               "  }\n"
                               "  for %j in 0 .. %n pipelined(2) {\n"
                               "    synchronize\n"
                               "  }\n"
                               "}\n";
    for (int limit = 1; limit <= 2; limit++) {
        tilus_diag *diag = tilus_diag_new();
        assert_true(tilus_set_limit(diag, "errors", limit));
        tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, NULL, 0);
        assert_true(tilus_run_passes(m, "pipeline-loops", &no_options));
        assert_int_equal(tilus_diag_errors(diag), 0);
        assert_int_equal(tilus_diag_warnings(diag), 2);
        assert_int_equal(tilus_diag_count(diag), 2 * limit);
        assert_int_equal(tilus_diag_severity(diag, 0), TILUS_SEVERITY_WARNING);
        assert_int_equal(tilus_diag_line(diag, 0), 5);
        expect_text(diag, 0, "the loop is not pipelined, although it is marked: its body has no");
        assert_int_equal(tilus_diag_severity(diag, 1), TILUS_SEVERITY_NOTE);
        /* A repeated warning is not reported again. */
        assert_true(tilus_run_passes(m, "pipeline-loops", &no_options));
        assert_int_equal(tilus_diag_warnings(diag), limit == 2 ? 2 : 3);
        tilus_module_free(m);
        tilus_diag_free(diag);
    }
}

/* The groups that tilus_warning_at lists can be set, and messages name theirs. */
static void warnings_have_groups(void **state)
{
    (void)state;
    static const char text[] = "program @p<1>(%n: i32) warps(1) {\n"
                               "  for %i in 0 .. %n pipelined(2) {\n"
                               "    synchronize\n"
                               "  }\n"
                               "}\n";
    tilus_warning warning = {.struct_size = sizeof warning};
    size_t count = 0;
    for (; tilus_warning_at(count, &warning); count++)
        assert_true(tilus_set_warning(NULL, warning.name));
    assert_true(count > 1);
    assert_false(tilus_set_warning(NULL, "none"));
    for (int fatal = 0; fatal <= 1; fatal++) {
        tilus_diag *diag = tilus_diag_new();
        assert_true(tilus_set_warning(diag, fatal ? "error=pipeline" : "error=limits"));
        tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, NULL, 0);
        assert_int_equal(tilus_run_passes(m, "pipeline-loops", &no_options), !fatal);
        assert_int_equal(tilus_diag_errors(diag), fatal);
        assert_int_equal(tilus_diag_warnings(diag), !fatal);
        assert_string_equal(tilus_diag_group(diag, 0), "pipeline");
        assert_null(tilus_diag_group(diag, 1));
        tilus_module_free(m);
        tilus_diag_free(diag);
    }
}

/* Reads the output of ptxas -v, and the driver's log: of programs that spill, once each. */
static void spills_are_read_from_logs(void **state)
{
    (void)state;
    static const char text[] = "program @one<1>() warps(1) {\n}\n"
                               "program @two<1>() warps(1) min_blocks(2) {\n}\n";
    static const char log[] =
        "ptxas info    : Function properties for two\n"
        "    16 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads\n"
        "ptxas info    : Function properties for one\n"
        "ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        "ptxas info    : Function properties for other\n"
        "    8 bytes stack frame, 8 bytes spill stores, 8 bytes spill loads\n"
        "ptxas info    : Function properties for one";
    for (int fatal = 0; fatal <= 1; fatal++) {
        tilus_diag *diag = tilus_diag_new();
        assert_true(tilus_set_warning(diag, fatal ? "error=spills" : "spills"));
        tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, NULL, 0);
        assert_int_equal(tilus_report_spills(m, log), !fatal);
        assert_int_equal(tilus_diag_count(diag), 2);
        assert_int_equal(tilus_diag_line(diag, 0), 3);
        expect_text(diag, 0, "registers of @two spill: a thread stores 12 bytes to local memory "
                             "and loads 20 [-W");
        expect_text(diag, 1, "`min_blocks` limits the registers");
        assert_true(tilus_report_spills(m, ""));
        tilus_module_free(m);
        tilus_diag_free(diag);
    }
}

static void errors_have_a_place(void **state)
{
    (void)state;
    static const char text[] = "program @p<1>() warps(1) {\n"
                               "  %x = neg %y\n"
                               "  nothing\n"
                               "}\n";
    tilus_diag *diag = tilus_diag_new();
    assert_null(tilus_parse(diag, "test.tilus", text, strlen(text), 10, NULL, 0));
    assert_int_equal(tilus_diag_count(diag), 2);
    assert_int_equal(tilus_diag_errors(diag), 2);
    assert_int_equal(tilus_diag_severity(diag, 0), TILUS_SEVERITY_ERROR);
    assert_int_equal(tilus_diag_line(diag, 0), 11);
    assert_int_equal(tilus_diag_column(diag, 0), 12);
    assert_string_equal(tilus_diag_text(diag, 0), "%y is not defined");
    assert_int_equal(tilus_diag_line(diag, 1), 12);
    assert_int_equal(tilus_diag_column(diag, 1), 3);
    assert_string_equal(tilus_diag_text(diag, 1), "unknown op `nothing`");
    tilus_diag_free(diag);
}

static void text_ends_at_its_length(void **state)
{
    (void)state;
    static const char text[] = "program @p<1>() warps(1) { } what follows is not read";
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "t", text, 28, 1, NULL, 0);
    assert_non_null(m);
    tilus_module_free(m);
    tilus_diag_free(diag);
    diag = tilus_diag_new();
    assert_null(tilus_parse(diag, "t", text, strlen(text), 1, NULL, 0));
    assert_int_equal(tilus_diag_column(diag, 0), 30);
    tilus_diag_free(diag);
    diag = tilus_diag_new();
    m = tilus_parse(diag, "t", "", 0, 1, NULL, 0);
    assert_non_null(m);
    assert_int_equal(tilus_program_count(m), 0);
    assert_null(tilus_program_name(m, 0));
    tilus_module_free(m);
    tilus_diag_free(diag);
}

static void defines_choose_parameters(void **state)
{
    (void)state;
    tilus_define defines[] = {{"T", "f16"}, {"STEPS", "0x5"}};
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = tilus_parse(diag, "t", add_three, strlen(add_three), 1, defines, 2);
    assert_non_null(m);
    char *text = tilus_print(m);
    assert_non_null(strstr(text, "%a: ptr<f16> {align = 16}"));
    assert_non_null(strstr(text, "for %i in 0 .. 5 "));
    free(text);
    tilus_module_free(m);
    tilus_diag_free(diag);
    const tilus_define wide = {"I", "300"};
    diag = tilus_diag_new();
    assert_null(tilus_parse(diag, "t", "param I = i8(5)", 15, 1, &wide, 1));
    expect_text(diag, 0, "parameter I is of i8, whose numbers are -128 to 127, -D gives it `300`");
    tilus_diag_free(diag);
    defines[0].name = "U";
    diag = tilus_diag_new();
    assert_null(tilus_parse(diag, "t", add_three, strlen(add_three), 1, defines, 2));
    expect_text(diag, 0, "there is no parameter U");
    assert_int_equal(tilus_diag_line(diag, 0), 0);
    tilus_diag_free(diag);
}

static void freeing_nothing_is_fine(void **state)
{
    (void)state;
    tilus_module_free(NULL);
    tilus_diag_free(NULL);
}

static void programs_have_names(void **state)
{
    (void)state;
    Subject s = subject_of("program @b<1>() warps(1) { }\nprogram @a<1>() warps(2) { }\n");
    assert_int_equal(tilus_program_count(s.module), 2);
    assert_string_equal(tilus_program_name(s.module, 0), "b");
    assert_string_equal(tilus_program_name(s.module, 1), "a");
    assert_null(tilus_program_name(s.module, 2));
    subject_free(&s);
}

/* ---- passes and printing ------------------------------------------------------------ */

static void printing_gives_text_that_parses(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    char *text = tilus_print(s.module);
    assert_memory_equal(text, "tilus 1\n\nprogram @add<", 22);
    Subject again = subject_of(text);
    char *twice = tilus_print(again.module);
    assert_string_equal(text, twice);
    free(text);
    free(twice);
    subject_free(&again);
    subject_free(&s);
}

static void every_pass_runs_by_name(void **state)
{
    (void)state;
    size_t count = 0;
    bool canonicalize = false;
    for (const char *name; (name = tilus_pass_name(count)); count++) {
        Subject s = subject_of(add_three);
        assert_true(strlen(tilus_pass_summary(count)) > 0);
        assert_true(tilus_run_passes(s.module, name, NULL));
        assert_int_equal(interpret(&s), TILUS_OK);
        expect_sums(&s);
        canonicalize |= !strcmp(name, "canonicalize");
        subject_free(&s);
    }
    assert_true(canonicalize);
    assert_null(tilus_pass_summary(count));
    assert_non_null(tilus_default_pipeline());
    Subject s = subject_of(add_three);
    assert_true(tilus_run_passes(s.module, NULL, NULL));
    assert_true(tilus_run_passes(s.module, "", NULL));
    char *text = tilus_print(s.module);
    assert_null(strstr(text, "%last"));
    free(text);
    subject_free(&s);
}

static void unknown_passes_are_refused(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    char *before = tilus_print(s.module);
    tilus_pass_options options = {.struct_size = sizeof options, .print_after = "nope"};
    assert_false(tilus_run_passes(s.module, "canonicalize, foldd", NULL));
    expect_text(s.diag, 0, "unknown pass `foldd`");
    assert_false(tilus_run_passes(s.module, "dce", &options));
    expect_text(s.diag, 1, "unknown pass `nope`");
    char *after = tilus_print(s.module);
    assert_string_equal(before, after);     /* nothing ran before the check */
    free(before);
    free(after);
    subject_free(&s);
}

/* Text, all that a tilus_write gets. */
typedef struct Printed {
    char text[1 << 14];
    size_t length;
} Printed;

static void keep(void *data, const char *text, size_t length)
{
    Printed *p = data;
    assert_true(length < sizeof p->text - p->length);
    memcpy(p->text + p->length, text, length);
    p->length += length;
}

static void passes_print_where_they_are_told(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    Printed out = {0};
    tilus_pass_options options = {.struct_size = sizeof options,
                                  .verify_each = true, .time_passes = TILUS_TABLE_TEXT, .print_before = "dce",
                                  .print_after = "fold,dce", .write = keep,
                                  .write_data = &out};
    assert_true(tilus_run_passes(s.module, "fold,cse,dce", &options));
    const char *text = out.text;
    assert_non_null(strstr(text, "// ---- after fold ----\ntilus 1\n"));
    assert_non_null(strstr(text, "// ---- before dce ----\n"));
    assert_non_null(strstr(text, "// ---- after dce ----\n"));
    assert_null(strstr(text, "cse ----"));
    assert_non_null(strstr(text, " 1  cse\n"));
    assert_non_null(strstr(text, " 100.0%      "));
    subject_free(&s);
}

/* The events of a run: a letter each, and the last one's pipeline and text. */
typedef struct Seen {
    char kinds[16];
    char pipeline[64];
    unsigned runs;
    bool has_text;
} Seen;

static void see(void *observer, const tilus_pass_event *event)
{
    Seen *seen = observer;
    seen->kinds[strlen(seen->kinds)] = "bfx"[event->kind];
    snprintf(seen->pipeline, sizeof seen->pipeline, "%s", event->pipeline);
    seen->runs = event->runs;
    seen->has_text = event->text && !strncmp(event->text, "tilus 1\n", 8);
}

static Seen observe(const char *pipeline, const char *skip)
{
    Seen seen = {0};
    Subject s = subject_of(add_three);
    tilus_pass_options options = {.struct_size = sizeof options,
                                  .verify_each = true, .skip = skip, .observe = see,
                                  .observer = &seen};
    tilus_run_passes(s.module, pipeline, &options);
    subject_free(&s);
    return seen;
}

static void observers_see_passes_begin_and_fail(void **state)
{
    (void)state;
    Seen seen = observe("fold,cse,dce", "cse");
    assert_string_equal(seen.kinds, "bb");
    assert_string_equal(seen.pipeline, "dce");
    assert_int_equal(seen.runs, 1);
    assert_true(seen.has_text);
    seen = observe("fold,trigger_failure,dce", NULL);
    assert_string_equal(seen.kinds, "bbf");
    assert_string_equal(seen.pipeline, "trigger_failure,dce");
    assert_false(seen.has_text);
    seen = observe("trigger_invalid,dce", NULL);
    assert_string_equal(seen.kinds, "bx");
    assert_string_equal(seen.pipeline, "trigger_invalid,dce");
}

static void the_op_reference_is_a_table(void **state)
{
    (void)state;
    char *text = tilus_op_reference();
    assert_non_null(text);
    assert_memory_equal(text, "| op | result |", 15);
    assert_non_null(strstr(text, "\n| `dot` | register | register, register, register | "));
    free(text);
}

/* A drawing names thread and slot; a broken layout is the diag's error. */
static void a_layout_is_drawn(void **state)
{
    (void)state;
    tilus_diag *diag = tilus_diag_new();
    char *text = tilus_layout_draw(diag, "spatial(2, 1).local(1, 2)", TILUS_DRAWING_TEXT);
    assert_string_equal(text, "spatial(2, 1).local(1, 2)  [2, 2], 2 threads, 2 slots\n\n"
                              "     0    1\n0  0:0  0:1\n1  1:0  1:1\n");
    free(text);
    tilus_diag_free(diag);
    diag = tilus_diag_new();
    assert_null(tilus_layout_draw(diag, "spatial(2, 0)", TILUS_DRAWING_SVG));
    assert_string_equal(tilus_diag_text(diag, 0),
                        "an extent is at least 1, dimension 1 has 0");
    tilus_diag_free(diag);
    diag = tilus_diag_new();
    assert_null(tilus_layout_draw(diag, "local(2)", (tilus_drawing)2));
    assert_string_equal(tilus_diag_text(diag, 0), "kind is 2, not a tilus_drawing");
    tilus_diag_free(diag);
}

static void layouts_of_names_can_be_drawn(void **state)
{
    (void)state;
    static const char names[] = "param N = 4\nlayout L = spatial(N).local(2)\n";
    const tilus_define define = {"N", "1"};
    tilus_diag *diag = tilus_diag_new();
    char *text = tilus_text_layout_draw(diag, "n.tilus", names, strlen(names), &define, 1,
                                        "L.spatial(N + 1)", TILUS_DRAWING_TEXT);
    assert_non_null(text);
    assert_memory_equal(text, "local(2).spatial(2)  [4], 2 threads, 2 slots\n", 45);
    free(text);
    tilus_diag_free(diag);
}

/* ---- what a launcher must know ---------------------------------------------------- */

static void kernel_info_tells_the_launcher(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    const tilus_kernel_info *info = tilus_module_kernel_info(s.module, "add");
    assert_non_null(info);
    assert_string_equal(info->name, "add");
    assert_int_equal(info->arg_count, 3);
    assert_int_equal(info->threads, 32);
    assert_int_equal(info->grid_rank, 2);
    assert_in_range(info->shared_bytes, 128, 256);
    assert_false(info->overlaps);
    const tilus_arg_info *a = &info->args[0], *n = &info->args[1], *k = &info->args[2];
    assert_string_equal(a->name, "a");
    assert_int_equal(a->kind, TILUS_ARG_POINTER);
    assert_string_equal(a->dtype, "f32");
    assert_int_equal(a->align, 16);
    assert_string_equal(n->name, "n");
    assert_int_equal(n->kind, TILUS_ARG_I32);
    assert_int_equal(n->divisible, 4);
    assert_int_equal(n->min, 0);
    assert_int_equal(n->max, 4096);
    assert_int_equal(k->kind, TILUS_ARG_I64);
    assert_string_equal(k->dtype, "i64");
    assert_int_equal(k->divisible, 1);
    assert_true(k->min == INT64_MIN && k->max == INT64_MAX);
    assert_null(tilus_module_kernel_info(s.module, "other"));
    subject_free(&s);
}

/* A launch that does not wait by itself must not begin early. */
static void kernel_info_says_what_overlaps(void **state)
{
    (void)state;
    Subject s = subject_of("program @waits<1>() warps(1) {\n"
                           "  launch_dependents\n"
                           "  wait_dependencies\n"
                           "}\n"
                           "program @lets<1>() warps(1) {\n"
                           "  launch_dependents\n"
                           "}\n");
    assert_true(tilus_module_kernel_info(s.module, "waits")->overlaps);
    assert_false(tilus_module_kernel_info(s.module, "lets")->overlaps);
    subject_free(&s);
}

static void launches_are_checked_with_the_info(void **state)
{
    (void)state;
    static const struct { uint64_t a; int64_t n, grid; const char *message; } launches[] = {
        {256, 40, 2, ""}, {16, 0, 0, ""}, {0, 4096, 128, ""},
        {8, 40, 0, "argument %a = 0x8 is not aligned to 16 bytes"},
        {16, 42, 0, "argument %n = 42 is not divisible by 4"},
        {16, -4, 0, "argument %n = -4 is outside [0, 4096]"}};
    Subject s = subject_of(add_three);
    const tilus_kernel_info *info = tilus_module_kernel_info(s.module, "add");
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++) {
        char message[128];
        int64_t grid[3];
        tilus_arg args[] = {{.pointer = launches[i].a}, {.integer = launches[i].n},
                            {.integer = -1}};
        tilus_status status = tilus_kernel_check(info, args, 3, grid, message, sizeof message);
        assert_string_equal(message, launches[i].message);
        assert_int_equal(status, *message ? TILUS_ERROR_ARGUMENT : TILUS_OK);
        if (status == TILUS_OK) {
            assert_int_equal(grid[0], launches[i].grid);
            assert_int_equal(grid[1], 1);
            assert_int_equal(grid[2], 1);
        }
    }
    subject_free(&s);
}

/* Every scalar operator goes the way from text to postfix code. */
static void grid_code_computes_what_the_text_says(void **state)
{
    (void)state;
    Subject s = subject_of("program @p<(%n + 7) / 8 * (%m - 1) mod 100, max(min(%n, %m), -%k),\n"
                           "  (%n > %m or not %k == 3 and %n != 0) + ceil_div(%n, 5)>\n"
                           "  (%n: u32, %m: i64, %k: i32) warps(2) { }\n");
    const tilus_kernel_info *info = tilus_module_kernel_info(s.module, "p");
    assert_int_equal(info->args[0].kind, TILUS_ARG_U32);
    assert_int_equal(info->threads, 64);
    assert_int_equal(info->shared_bytes, 0);
    for (int64_t n = 0; n < 40; n += 3)
        for (int64_t m = 1; m < 40; m += 5)
            for (int64_t k = -6; k < 0; k++) {
                char message[128];
                int64_t grid[3], least = n < m ? n : m;
                tilus_arg args[] = {{.integer = n}, {.integer = m}, {.integer = k}};
                assert_int_equal(tilus_kernel_check(info, args, 3, grid, message, 128), TILUS_OK);
                assert_int_equal(grid[0], (n + 7) / 8 * (m - 1) % 100);
                assert_int_equal(grid[1], least > -k ? least : -k);
                assert_int_equal(grid[2], (n > m || (k != 3 && n != 0)) + (n + 4) / 5);
            }
    subject_free(&s);
}

/* ---- running and compiling ---------------------------------------------------------- */

static void the_interpreter_runs_programs(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    assert_int_equal(interpret(&s), TILUS_OK);
    expect_sums(&s);
    assert_true(tilus_run_passes(s.module, NULL, NULL));
    assert_int_equal(interpret(&s), TILUS_OK);
    expect_sums(&s);
    assert_int_equal(tilus_diag_count(s.diag), 0);
    subject_free(&s);
}

static void the_interpreter_refuses_bad_calls(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    tilus_arg args[] = {{.pointer = 0}, {.integer = 41}, {.integer = 7}};
    tilus_buffer buffer = {s.data, sizeof s.data};
    assert_int_equal(tilus_interpret(s.module, "sub", args, 3, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 0, "the module has no program @sub");
    assert_int_equal(tilus_interpret(s.module, "add", args, 2, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 1, "program takes 3 arguments, got 2");
    assert_int_equal(tilus_interpret(s.module, "add", args, 3, &buffer, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 2, "argument %n = 41 is not divisible by 4");
    args[1].integer = 40;
    assert_int_equal(tilus_interpret(s.module, "add", args, 3, &buffer, 0, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 3, "argument %a is buffer 0, but there are 0 buffers");
    buffer.size = 100;      /* bytes: fewer than %n floats */
    assert_int_equal(tilus_interpret(s.module, "add", args, 3, &buffer, 1, NULL),
                     TILUS_ERROR_PROGRAM);
    assert_int_equal(tilus_diag_line(s.diag, 4), 9);
    size_t next = tilus_diag_count(s.diag);
    const tilus_buffer nowhere = {NULL, 160}, everything = {s.data, SIZE_MAX};
    assert_int_equal(tilus_interpret(s.module, "add", args, 3, &nowhere, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, next, "argument %a is buffer 0, whose data is NULL and size 160");
    assert_int_equal(tilus_interpret(s.module, "add", args, 3, &everything, 1, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, next + 1, "whose size is 18446744073709551615, more than memory has");
    assert_int_equal(interpret(&s), TILUS_OK);
    expect_sums(&s);
    subject_free(&s);
}

static void collect(void *printer, const char *text, size_t len)
{
    strncat(printer, text, len);
}

static void what_a_program_prints_goes_to_the_caller(void **state)
{
    (void)state;
    char text[256] = "";
    const tilus_interpret_options options = {.struct_size = sizeof options,
                                        .print = collect, .printer = text};
    Subject s = subject_of("tilus 1\n"
                           "program @tell<2>(%n: i32) warps(1) {\n"
                           "  %x = allocate_register -1 : i8[2, 2] @ local(2, 2).replicate(32)\n"
                           "  print \"x\", %x\n"
                           "  print \"100%\", %n - 1 {blocks = all}\n"
                           "}\n");
    tilus_arg arg = {.integer = 7};
    assert_int_equal(tilus_interpret(s.module, "tell", &arg, 1, NULL, 0, &options), TILUS_OK);
    assert_string_equal(text, "x: i8[2, 2], block (0)\n"
                              "[[-1, -1],\n [-1, -1]]\n"
                              "100%: 6, block (0)\n"
                              "100%: 6, block (1)\n");
    const tilus_interpret_options nobody = {.struct_size = sizeof nobody, .print = NULL};
    assert_int_equal(tilus_interpret(s.module, "tell", &arg, 1, NULL, 0, &nobody), TILUS_OK);
    assert_int_equal(tilus_interpret(s.module, "tell", &arg, 1, NULL, 0, NULL), TILUS_OK);
    subject_free(&s);
}

static void the_driver_keeps_its_names(void **state)
{
    (void)state;
    Subject s = subject_of("tilus 1\nprogram @vprintf<1>() warps(1) {\n}\n");
    assert_null(compile(&s, "sm_80", TILUS_OUTPUT_PTX));
    expect_text(s.diag, 0, "the driver has a function called vprintf");
    subject_free(&s);
}

static void every_target_gives_ptx(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    assert_true(tilus_run_passes(s.module, NULL, NULL));
    size_t count = 0;
    for (const char *cpu; (cpu = tilus_target_name(count)); count++) {
        char line[32] = ".target ";
        char *ptx = compile(&s, cpu, TILUS_OUTPUT_PTX);
        if (!ptx)
            tilus_diag_write(s.diag, NULL, NULL);
        assert_non_null(ptx);
        assert_non_null(strstr(ptx, strcat(line, cpu)));
        assert_non_null(strstr(ptx, ".entry add("));
        free(ptx);
        char *llvm = compile(&s, cpu, TILUS_OUTPUT_LLVM_IR);
        assert_non_null(llvm);
        assert_non_null(strstr(llvm, "define "));
        free(llvm);
    }
    assert_true(count >= 5);
    assert_int_equal(tilus_diag_count(s.diag), 0);
    subject_free(&s);
}

static void bad_compile_options_are_refused(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    static const char *const unknown[] = {"sm_12", "sm_90b", "", "x86-64"};
    for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
        assert_null(compile(&s, unknown[i], TILUS_OUTPUT_PTX));
        assert_int_equal(tilus_diag_errors(s.diag), i + 1);
        expect_text(s.diag, i, unknown[i]);
    }
    tilus_compile_options options = {.struct_size = sizeof options, .cpu = "sm_90", .opt_level = 4};
    assert_null(tilus_compile(s.module, &options, NULL));
    expect_text(s.diag, 4, "optimization level 4");
    options.output = (tilus_output_kind)2;
    assert_null(tilus_compile(s.module, &options, NULL));
    expect_text(s.diag, 5, "options: output is 2, not a tilus_output_kind");
    options.output = TILUS_OUTPUT_PTX;
    tilus_compile_times times = {.struct_size = sizeof times, -1, -1};
    options.opt_level = 3;
    char *ptx = tilus_compile(s.module, &options, &times);
    assert_non_null(ptx);
    assert_true(times.llvm_seconds >= 0 && times.ptx_seconds >= 0);
    free(ptx);
    options.program = "nobody";
    assert_null(tilus_compile(s.module, &options, NULL));
    expect_text(s.diag, 6, "the module has no program @nobody");
    subject_free(&s);
}

static void one_program_is_compiled_alone(void **state)
{
    (void)state;
    Subject s = subject_of("tilus 1\nprogram @one<1>() warps(1) {\n}\n"
                           "program @big<1>() warps(1) {\n"
                           "  %s = allocate_shared : u8[300000] shared\n}\n");
    tilus_compile_options options = {.struct_size = sizeof options,
                                     .cpu = "sm_90a", .program = "one"};
    char *ptx = tilus_compile(s.module, &options, NULL);
    assert_non_null(ptx);
    assert_non_null(strstr(ptx, ".entry one("));
    assert_null(strstr(ptx, "big"));
    free(ptx);
    options.program = NULL;
    assert_null(tilus_compile(s.module, &options, NULL));
    subject_free(&s);
}

static void targets_suit_devices(void **state)
{
    (void)state;
    static const struct { int capability; const char *name; } devices[] = {
        {80, "sm_80"}, {86, "sm_86"}, {87, "sm_86"}, {89, "sm_89"}, {90, "sm_90a"}};
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        assert_string_equal(tilus_target_for(devices[i].capability), devices[i].name);
    assert_null(tilus_target_for(75));
}

static void versions_are_told(void **state)
{
    (void)state;
    unsigned major, minor, patch;
    assert_int_equal(sscanf(tilus_version(), "%u.%u.%u", &major, &minor, &patch), 3);
    assert_int_equal(sscanf(tilus_llvm_version(), "%u.%u.%u", &major, &minor, &patch), 3);
    assert_true(major >= 22);
    assert_true(strlen(tilus_git_revision()) > 0);
}

/* ---- memory that runs out ------------------------------------------------------------ */

typedef enum Entry { PRINT, PASSES, INFO, INTERPRET, COMPILE, ENTRIES } Entry;

/* Returns true when there is a text, which must contain `within`; frees the text. */
static bool call_text(char *text, const char *within)
{
    bool ok = text != NULL;
    if (ok)
        assert_non_null(strstr(text, within));
    free(text);
    return ok;
}

/* Calls `entry`; true if it succeeded with the right result, false if it
 * failed with its status. */
static bool call(Subject *s, Entry entry)
{
    tilus_status status;
    const tilus_kernel_info *info;
    switch (entry) {
    case PRINT:
        return call_text(tilus_print(s->module), "store_global %z, %g[%b * 32]");
    case PASSES:
        return tilus_run_passes(s->module, NULL, NULL);
    case INFO:
        info = tilus_module_kernel_info(s->module, "add");
        assert_true(!info || (info->grid_length[0] == 3 && info->grid_length[1] == 1));
        return info != NULL;
    case INTERPRET:
        status = interpret(s);
        if (status == TILUS_OK)
            expect_sums(s);
        else
            assert_int_equal(status, TILUS_ERROR_MEMORY);
        return status == TILUS_OK;
    case COMPILE:
        return call_text(compile(s, "sm_80", TILUS_OUTPUT_PTX), "st.global");
    case ENTRIES:
        break;
    }
    return false;
}

/* After a failure everything works again; but what passes left half done is
 * only good for printing and freeing. */
static void expect_recovery(Subject *s, Entry entry)
{
    if (entry == PASSES) {
        free(tilus_print(s->module));
        return;
    }
    assert_true(call(s, PRINT));
    assert_true(call(s, PASSES));
    assert_true(call(s, entry));
    assert_true(call(s, INTERPRET));
    assert_int_equal(tilus_diag_count(s->diag), 0);
}

static void entries_survive_every_malloc_that_fails(void **state)
{
    (void)state;
    for (Entry entry = 0; entry < ENTRIES; entry++) {
        bool ok = false;
        for (long n = 0; !ok; n++) {
            Subject s = subject_of(add_three);
            allocations_left = n;
            ok = call(&s, entry);
            allocations_left = -1;
            expect_recovery(&s, entry);
            subject_free(&s);
            assert_true(n < 1000);
        }
    }
}

static void makers_survive_every_malloc_that_fails(void **state)
{
    (void)state;
    allocations_left = 0;
    assert_null(tilus_diag_new());
    allocations_left = -1;
    char *text = NULL;
    for (long n = 0; !text; n++) {
        allocations_left = n;
        text = tilus_op_reference();
        allocations_left = -1;
        assert_true(text || n < 100);
    }
    free(text);
    tilus_module *m = NULL;
    for (long n = 0; !m; n++) {
        tilus_diag *diag = tilus_diag_new();
        allocations_left = n;
        m = tilus_parse(diag, "t", add_three, strlen(add_three), 1, NULL, 0);
        allocations_left = -1;
        tilus_module_free(m);
        tilus_diag_free(diag);
        assert_true(m || n < 100);
        assert_true(!m || n >= 3);      /* module, its arena, the diag's */
    }
}

static void drawing_survives_every_malloc_that_fails(void **state)
{
    (void)state;
    char *text = NULL;
    for (long n = 0; !text; n++) {
        tilus_diag *diag = tilus_diag_new();
        allocations_left = n;
        text = tilus_layout_draw(diag, "spatial(8, 4).local(1, 2)", TILUS_DRAWING_SVG);
        allocations_left = -1;
        assert_int_equal(tilus_diag_errors(diag), 0);
        tilus_diag_free(diag);
        assert_true(text || n < 100);
        assert_true(!text || n >= 3);   /* module, its arena, the copy */
    }
    free(text);
}

/* Leaves `room` bytes in an arena, in steps of what one chunk holds. */
static void leave_room(Arena *a, size_t room)
{
    enum { CHUNK = 64 * 1024 };
    if (setjmp(a->oom->jump))
        fail_msg("memory ran out before the test began");
    arena_alloc(a, CHUNK - room % CHUNK);
    a->limit = a->reserved + room / CHUNK * (CHUNK + 64);
}

static Arena *arena_of(Subject *s, int i)
{
    return i == 0 ? &s->diag->arena : i == 1 ? &s->module->arena : &s->module->scratch;
}

/* Code generation is slow and allocates little between calls of LLVM. */
static size_t stride_of(Entry entry) { return entry == COMPILE ? 112 : 16; }

static void entries_survive_every_allocation_that_fails(void **state)
{
    (void)state;
    for (Entry entry = 0; entry < ENTRIES; entry++)
        for (int arena = 0; arena < 3; arena++) {
            bool ok = false;
            for (size_t room = 16; !ok; room += stride_of(entry)) {
                Subject s = subject_of(add_three);
                leave_room(arena_of(&s, arena), room);
                ok = call(&s, entry);
                arena_of(&s, arena)->limit = SIZE_MAX;
                expect_recovery(&s, entry);
                subject_free(&s);
                assert_true(room < 1 << 20);
            }
        }
}

/* Prints with `room` bytes, then lets messages quote an expression; true if
 * the print succeeded. Text cannot name two values %n, so the test does. */
static bool print_then_quote(size_t room)
{
    Subject s = subject_of("program @add<1>(%a: ptr<f32>, %n: i32, %k: i32) warps(1) {\n"
                           "  for %i in 7 .. 8 {\n"
                           "    if %n / (%i - %k) == 0 { }\n"
                           "  }\n"
                           "}\n");
    for_index(s.module->programs->body->first)->name = "n";
    leave_room(&s.module->arena, room);
    char *text = tilus_print(s.module);
    bool ok = text != NULL;
    free(text);
    s.module->arena.limit = SIZE_MAX;
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(interpret(&s), TILUS_ERROR_PROGRAM);
        expect_text(s.diag, i, "%n / (%n - %k)");
    }
    subject_free(&s);
    return ok;
}

/* Names that the printer chose end with the print, however that ends. */
static void names_of_a_failed_print_are_forgotten(void **state)
{
    (void)state;
    size_t room = 16;
    while (!print_then_quote(room))
        room += 16;
    assert_true(room > 512);
}

/* tilus_parse makes its module itself; this is what it does inside. */
static bool parse_with_room(int arena, size_t room, const char *text)
{
    Diag diag;
    diag_init(&diag);
    Module *m = module_new(&diag);
    volatile bool ok = false;
    leave_room(arena == 0 ? &diag.arena : arena == 1 ? &m->arena : &m->scratch, room);
    if (setjmp(diag.oom.jump) == 0) {
        diag_set_source(&diag, "t", text, strlen(text), 1);
        ok = parse_module(m, NULL, 0) && verify_module(m);
        ok = ok || diag.errors;
    }
    module_free(m);
    diag_free(&diag);
    return ok;
}

static void parsing_survives_every_allocation_that_fails(void **state)
{
    (void)state;
    static const char broken[] = "layout L = local(0)\nprogram @p<1>() warps(1) {\n"
                                 "  %x = neg %y\n  %z = cast %x : i99\n}\n";
    for (int arena = 0; arena < 3; arena++) {
        size_t room = 16;
        while (!parse_with_room(arena, room, add_three))
            room += 16;
        assert_true(arena == 2 || room > 512);
        for (room = 16; !parse_with_room(arena, room, broken);)
            room += 16;
    }
}

/* ---- limits ------------------------------------------------------------------------ */

static void limits_are_listed_and_set(void **state)
{
    (void)state;
    tilus_limit limit = {.struct_size = sizeof limit};
    tilus_diag *diag = tilus_diag_new();
    size_t count = 0, settable = 0;
    for (; tilus_limit_at(count, &limit); count++) {
        assert_true(*limit.what && !*limit.name == !limit.most);
        if (!limit.most)
            continue;
        settable++;
        assert_true(limit.value <= limit.most);
        assert_true(tilus_set_limit(NULL, limit.name, limit.most));
        assert_true(tilus_set_limit(diag, limit.name, limit.most));
        assert_false(tilus_set_limit(diag, limit.name, limit.most + 1));
        assert_false(tilus_set_limit(NULL, limit.name, limit.most + 1));
        assert_false(tilus_set_limit(diag, limit.name, -1));
    }
    assert_true(count > settable && settable >= 8);
    assert_false(tilus_set_limit(diag, "", 1));
    assert_false(tilus_set_limit(diag, "rank", 1));
    assert_int_equal(tilus_diag_count(diag), 0);
    tilus_diag_free(diag);
}

/* Parses, runs passes and compiles with so many looks at the clock; whether that was
 * enough. What fails gives one located error, unless it was between ops. */
static bool compile_in_time(long long milliseconds)
{
    static const char pipeline[] = "canonicalize,unroll-loops,simplify-bounds,check-hazards,"
                                   "plan-shared";
    tilus_diag *diag = tilus_diag_new();
    tilus_compile_options options = {.struct_size = sizeof options, .cpu = "sm_80", .opt_level = 0};
    assert_true(tilus_set_limit(diag, "milliseconds", milliseconds));
    tilus_module *m = tilus_parse(diag, "test.tilus", add_three, strlen(add_three), 1, NULL, 0);
    char *text = m && tilus_run_passes(m, pipeline, NULL) ? tilus_compile(m, &options, NULL)
                                                          : NULL;
    assert_int_equal(tilus_diag_errors(diag), text ? 0 : 1);
    if (!text)
        expect_text(diag, 0, "the compile has come so far in");
    if (!text && m)
        free(tilus_print(m));
    bool ok = text;
    free(text);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return ok;
}

static void deadlines_end_a_compile_at_every_look(void **state)
{
    (void)state;
    long long needed = 1;
    while (!compile_in_time(needed))
        needed++;
    assert_true(needed > 50);
    assert_true(compile_in_time(needed + 1));
}

/* ---- the CPU engine ---------------------------------------------------------------- */

static tilus_status run_on_cpu(Subject *s, const char *program, unsigned level)
{
    tilus_arg args[] = {{.pointer = 0}, {.integer = COUNT}, {.integer = 7}};
    tilus_buffer buffer = {s->data, COUNT * sizeof *s->data};
    tilus_cpu_options options = {.struct_size = sizeof options,
                                 .cpu = "sm_80", .opt_level = level, .host_threads = 1};
    return tilus_run_on_cpu(s->module, program, args, 3, &buffer, 1, &options, NULL);
}

static void the_cpu_engine_refuses_bad_calls(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    assert_int_equal(run_on_cpu(&s, "nobody", 0), TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 0, "the module has no program @nobody");
    assert_int_equal(run_on_cpu(&s, "add", 4), TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 1, "optimization level 4");
    const tilus_arg args[] = {{.pointer = 0}, {.integer = COUNT}, {.integer = 7}};
    const tilus_buffer nowhere = {NULL, 160};
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80"};
    assert_int_equal(tilus_run_on_cpu(s.module, "add", args, 3, &nowhere, 1, &options, NULL),
                     TILUS_ERROR_ARGUMENT);
    expect_text(s.diag, 2, "argument %a is buffer 0, whose data is NULL and size 160");
    subject_free(&s);
    s = subject_of("program @add<1>(%n: i32) warps(1) {\n"
                   "  %r = allocate_register 0.0 : f32[32]\n  %s = neg %r\n}\n");
    assert_int_equal(run_on_cpu(&s, "add", 0), TILUS_ERROR_PROGRAM);
    subject_free(&s);
}

static volatile sig_atomic_t opened;    /* faults that the server's handler has cured */
static void *closed_page;

static void open_page(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    opened += info->si_addr == closed_page;
    if (mprotect(closed_page, 1, PROT_READ | PROT_WRITE) != 0 || info->si_addr != closed_page)
        _exit(1);
}

static void *touch_page(void *unused)
{
    *(volatile char *)closed_page = 1;
    return unused;
}

/* Has another thread fault where the server's own handler helps. */
static void fault_elsewhere(void *unused, const char *text, size_t size)
{
    pthread_t thread;
    (void)unused;
    (void)text;
    (void)size;
    assert_int_equal(pthread_create(&thread, NULL, touch_page, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
}

/* Faults of other threads go to the server's handler, and the engine still has those of blocks. */
static void the_cpu_engine_shares_signals(void **state)
{
    (void)state;
    Subject s = subject_of("tilus 1\n"
                           "program @outside<1>(%a: ptr<f32>) warps(1) {\n"
                           "  %r = allocate_register 0.0 : f32[32] @ spatial(32)\n"
                           "  print \"r\", %r\n"
                           "  %g = view_global %a : f32[32]\n"
                           "  store_global %r, %g[0]\n"
                           "}\n");
    const struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    struct sigaction before;
    tilus_arg arg = {.pointer = 0};
    tilus_buffer buffer = {s.data, 16};
    const tilus_cpu_options options = {.struct_size = sizeof options, .cpu = "sm_80",
                                       .print = fault_elsewhere};
    closed_page = mmap(NULL, 1, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(closed_page, MAP_FAILED);
    sigaction(SIGSEGV, &action, &before);
    opened = 0;
    assert_int_equal(tilus_run_on_cpu(s.module, "outside", &arg, 1, &buffer, 1, &options, NULL),
                     TILUS_ERROR_PROGRAM);
    sigaction(SIGSEGV, &before, NULL);
    assert_int_equal(opened, 1);
    expect_text(s.diag, 0, "argument %a");
    munmap(closed_page, 1);
    subject_free(&s);
}

/* Its compile has a deadline, its run has none. */
static void the_cpu_engine_compiles_in_time_or_says_so(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    assert_true(tilus_set_limit(s.diag, "milliseconds", 1));
    assert_int_equal(run_on_cpu(&s, "add", 0), TILUS_ERROR_PROGRAM);
    expect_text(s.diag, 0, "the compile has come so far in 1 ms");
    subject_free(&s);
    s = subject_of(add_three);
    for (int i = 0; i < SIZE; i++)
        s.data[i] = (float)i;
    assert_true(tilus_set_limit(s.diag, "milliseconds", 1000));
    assert_int_equal(run_on_cpu(&s, "add", 0), TILUS_OK);
    expect_sums(&s);
    subject_free(&s);
}

/* ---- passes as data --------------------------------------------------- */

typedef struct SeenRemarks {
    unsigned count;
    int64_t copies;
    char program[16], text[80];
} SeenRemarks;

static void see_remark(void *data, const tilus_remark *r)
{
    SeenRemarks *seen = data;
    seen->count++;
    if (strcmp(r->name, "LoopUnrolled") != 0)
        return;
    assert_int_equal(r->struct_size, sizeof *r);
    assert_int_equal(r->kind, TILUS_REMARK_PASSED);
    assert_string_equal(r->pass, "unroll-loops");
    assert_int_equal(r->argument_count, 1);
    assert_string_equal(r->arguments[0].name, "Iterations");
    assert_int_equal(r->arguments[0].type, TILUS_REMARK_INTEGER);
    seen->copies = r->arguments[0].integer;
    snprintf(seen->program, sizeof seen->program, "%s", r->program);
    snprintf(seen->text, sizeof seen->text, "%s", r->text);
}

static void remarks_are_given_as_data(void **state)
{
    (void)state;
    SeenRemarks seen = {0};
    Printed out = {0};
    Subject s = subject_of("tilus 1\nprogram @p<1>(%x: ptr<f32>, %n: i32) warps(1) {\n"
                           "  %g = view_global %x : f32[%n]\n  for %i in 0 .. %n unroll(3) {\n"
                           "    %v = load_global %g[%i] : f32[32] @ spatial(32)\n  }\n}\n");
    const tilus_pass_options options = {
        .struct_size = sizeof options, .remark = see_remark, .remark_data = &seen,
        .remarks = keep, .remarks_data = &out, .remarks_format = TILUS_REMARKS_JSON};
    assert_true(tilus_run_passes(s.module, "unroll-loops{factor=5}", &options));
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.copies, 5);
    assert_string_equal(seen.program, "p");
    assert_string_equal(seen.text, "5 iterations of the loop are unrolled into one");
    assert_non_null(strstr(out.text, "\"args\": {\"Iterations\": 5}}\n"));
    subject_free(&s);
}

static void remarks_are_listed(void **state)
{
    (void)state;
    tilus_remark_info r = {.struct_size = sizeof r};
    size_t count = 0;
    bool found = false;
    for (; tilus_remark_at(count, &r); count++) {
        assert_non_null(r.pass);
        assert_true(*r.meaning && (r.cure != NULL) == (r.kind == TILUS_REMARK_MISSED));
        found = found || strcmp(r.name, "TensorCopyChosen") == 0;
    }
    assert_true(found && count > 40);
    r.struct_size = 0;
    assert_false(tilus_remark_at(0, &r));
}

static void options_of_passes_are_checked(void **state)
{
    (void)state;
    char why[256];
    assert_true(tilus_check_passes("fold, unroll-loops{factor=4},check-hazards{strict}", why,
                                   sizeof why));
    assert_true(tilus_check_passes(tilus_default_pipeline(), why, sizeof why));
    assert_false(tilus_check_passes("unroll-loops{factr=4}", why, sizeof why));
    assert_string_equal(why, "pass unroll-loops has no option `factr`, did you mean `factor`?");
    assert_false(tilus_check_passes("fold,,pipeline-loops{stages=17}", why, sizeof why));
    assert_string_equal(why, "option `stages` of pass pipeline-loops is 0 .. 16, got `17`");
    assert_false(tilus_check_passes("unroll-loops{factor=4}dce", why, sizeof why));
    assert_string_equal(why, "a comma follows the options of pass unroll-loops, got `dce`");
    assert_false(tilus_check_passes("{", why, sizeof why));
    tilus_pass_option o = {.struct_size = sizeof o};
    size_t i = 0;
    while (tilus_pass_option_at(i, &o) && strcmp(o.name, "factor") != 0)
        i++;
    assert_string_equal(o.pass, "unroll-loops");
    assert_int_equal(o.value, 0);
    o.struct_size = 1;
    assert_false(tilus_pass_option_at(0, &o));
}

static void reports_are_json(void **state)
{
    (void)state;
    Printed out = {0};
    Subject s = subject_of(add_three);
    tilus_pass_options options = {.struct_size = sizeof options, .stats = TILUS_TABLE_JSON,
                                  .time_passes = TILUS_TABLE_JSON, .write = keep,
                                  .write_data = &out};
    assert_true(tilus_run_passes(s.module, "dce,dce", &options));
    assert_non_null(strstr(out.text, "{\"times\": [{\"pass\": \"dce\", \"seconds\": 0."));
    assert_non_null(strstr(out.text, "\"runs\": 2}"));
    assert_non_null(strstr(out.text, "{\"statistics\": {"));
    subject_free(&s);
}

/* Every part of a description as the struct has it. */
static void descriptions_are_read_by_parts(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    assert_true(tilus_run_passes(s.module, NULL, NULL));
    const tilus_kernel_info *info = tilus_module_kernel_info(s.module, "add");
    assert_non_null(info);
    assert_string_equal(tilus_kernel_name(info), "add");
    assert_int_equal(tilus_kernel_arg_count(info), 3);
    assert_string_equal(tilus_kernel_arg_name(info, 0), "a");
    assert_string_equal(tilus_kernel_arg_type(info, 0), "f32");
    assert_int_equal(tilus_kernel_arg_kind(info, 0), TILUS_ARG_POINTER);
    assert_int_equal(tilus_kernel_arg_align(info, 0), 16);
    int64_t min, max;
    tilus_kernel_arg_range(info, 1, &min, &max);
    assert_int_equal(min, 0);
    assert_int_equal(max, 4096);
    assert_int_equal(tilus_kernel_arg_divisible(info, 1), 4);
    assert_int_equal(tilus_kernel_arg_align(info, 1), 1);
    assert_int_equal(tilus_kernel_arg_kind(info, 2), TILUS_ARG_I64);
    assert_string_equal(tilus_kernel_arg_name(info, 3), "");
    unsigned cluster[3];
    tilus_kernel_cluster(info, cluster);
    assert_int_equal(cluster[0] * cluster[1] * cluster[2], 1);
    assert_int_equal(tilus_kernel_threads(info), 32);
    assert_int_equal(tilus_kernel_grid_rank(info), 2);
    assert_int_equal(tilus_kernel_shared_bytes(info), info->shared_bytes);
    assert_false(tilus_kernel_overlaps(info));
    subject_free(&s);
}

/* ---- sizes of structs ------------------------------------------------- */

static void options_say_their_size(void **state)
{
    (void)state;
    Subject s = subject_of(add_three);
    tilus_pass_options passes = {.verify_each = true};
    assert_false(tilus_run_passes(s.module, NULL, &passes));
    expect_text(s.diag, 0, "options: struct_size is 0, not sizeof(tilus_pass_options), ");
    passes = no_options;
    assert_true(tilus_run_passes(s.module, NULL, &passes));
    tilus_compile_options compile = {.struct_size = 1 << 20};
    assert_null(tilus_compile(s.module, &compile, NULL));
    expect_text(s.diag, 1, "options: struct_size is 1048576, not ");
    compile = (tilus_compile_options){.struct_size = sizeof compile};
    assert_null(tilus_compile(s.module, &compile, NULL));
    expect_text(s.diag, 2, "options: cpu is NULL, not a target");
    tilus_compile_times times = {0};
    compile.cpu = "sm_80";
    assert_null(tilus_compile(s.module, &compile, &times));
    expect_text(s.diag, 3, "times: struct_size is 0, not sizeof(tilus_compile_times), ");
    tilus_interpret_options run = {0};
    assert_int_equal(tilus_interpret(s.module, "add_three", NULL, 0, NULL, 0, &run),
                     TILUS_ERROR_ARGUMENT);
    subject_free(&s);
}

/* A caller that was compiled before `debug_lines`, and one that has a field more. */
static void callers_may_be_of_other_versions(void **state)
{
    (void)state;
    struct {
        tilus_compile_options known;
        uint64_t later;
    } options = {{.struct_size = sizeof options, .cpu = "sm_80"}, 0};
    Subject s = subject_of(add_three);
    assert_true(tilus_run_passes(s.module, NULL, NULL));
    tilus_free(tilus_compile(s.module, &options.known, NULL));
    assert_int_equal(tilus_diag_errors(s.diag), 0);
    options.later = 1;
    assert_null(tilus_compile(s.module, &options.known, NULL));
    expect_text(s.diag, 0, "options: fields past byte ");
    options.known.struct_size = offsetof(tilus_compile_options, features);
    options.known.features = "nonsense";
    char *ptx = tilus_compile(s.module, &options.known, NULL);
    assert_non_null(ptx);
    tilus_free(ptx);
    subject_free(&s);
}

static void results_fit_the_caller(void **state)
{
    (void)state;
    tilus_limit limit = {.what = "untouched"};
    assert_false(tilus_limit_at(0, &limit));
    limit.struct_size = offsetof(tilus_limit, what);
    assert_true(tilus_limit_at(0, &limit));
    assert_int_equal(limit.struct_size, offsetof(tilus_limit, what));
    assert_string_equal(limit.what, "untouched");
    tilus_warning warning = {0};
    assert_false(tilus_warning_at(0, &warning));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_say_their_size),
        cmocka_unit_test(remarks_are_given_as_data),
        cmocka_unit_test(remarks_are_listed),
        cmocka_unit_test(options_of_passes_are_checked),
        cmocka_unit_test(reports_are_json),
        cmocka_unit_test(descriptions_are_read_by_parts),
        cmocka_unit_test(callers_may_be_of_other_versions),
        cmocka_unit_test(results_fit_the_caller),
        cmocka_unit_test(warnings_are_counted_apart),
        cmocka_unit_test(warnings_have_groups),
        cmocka_unit_test(spills_are_read_from_logs),
        cmocka_unit_test(errors_have_a_place),
        cmocka_unit_test(text_ends_at_its_length),
        cmocka_unit_test(defines_choose_parameters),
        cmocka_unit_test(freeing_nothing_is_fine),
        cmocka_unit_test(programs_have_names),
        cmocka_unit_test(printing_gives_text_that_parses),
        cmocka_unit_test(every_pass_runs_by_name),
        cmocka_unit_test(unknown_passes_are_refused),
        cmocka_unit_test(passes_print_where_they_are_told),
        cmocka_unit_test(observers_see_passes_begin_and_fail),
        cmocka_unit_test(the_op_reference_is_a_table),
        cmocka_unit_test(a_layout_is_drawn),
        cmocka_unit_test(layouts_of_names_can_be_drawn),
        cmocka_unit_test(kernel_info_tells_the_launcher),
        cmocka_unit_test(kernel_info_says_what_overlaps),
        cmocka_unit_test(launches_are_checked_with_the_info),
        cmocka_unit_test(grid_code_computes_what_the_text_says),
        cmocka_unit_test(the_interpreter_runs_programs),
        cmocka_unit_test(the_interpreter_refuses_bad_calls),
        cmocka_unit_test(what_a_program_prints_goes_to_the_caller),
        cmocka_unit_test(the_driver_keeps_its_names),
        cmocka_unit_test(every_target_gives_ptx),
        cmocka_unit_test(bad_compile_options_are_refused),
        cmocka_unit_test(one_program_is_compiled_alone),
        cmocka_unit_test(targets_suit_devices),
        cmocka_unit_test(versions_are_told),
        cmocka_unit_test(limits_are_listed_and_set),
        cmocka_unit_test(deadlines_end_a_compile_at_every_look),
        cmocka_unit_test(the_cpu_engine_refuses_bad_calls),
        cmocka_unit_test(the_cpu_engine_shares_signals),
        cmocka_unit_test(the_cpu_engine_compiles_in_time_or_says_so),
        cmocka_unit_test(makers_survive_every_malloc_that_fails),
        cmocka_unit_test(drawing_survives_every_malloc_that_fails),
        cmocka_unit_test(entries_survive_every_malloc_that_fails),
        cmocka_unit_test(entries_survive_every_allocation_that_fails),
        cmocka_unit_test(names_of_a_failed_print_are_forgotten),
        cmocka_unit_test(parsing_survives_every_allocation_that_fails),
    };
    return cmocka_run_group_tests_name("api", tests, NULL, NULL);
}
