/* A process whose locale has a comma before the fraction, as a host of the libraries may have set:
 * programs, reports and prints mean and say what they do in any other. */
#define _GNU_SOURCE     /* newlocale, uselocale, setenv, mkdtemp */
#include "ir/op_info.h"
#include "support/arena.h"
#include "support/numeral.h"
#include "support/report.h"
#include "support/writer.h"
#include "tilus/tilus.h"
#include "types/constant.h"

#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a locale with commas ---------------------------------------------- */

static bool has_comma(const char *name)
{
    return setlocale(LC_ALL, name) && strcmp(localeconv()->decimal_point, ",") == 0;
}

/* Compiles de_DE into a folder of its own, where glibc's localedef and sources are. */
static bool make_locale(void)
{
    char folder[] = "locales.XXXXXX", command[256];
    if (!mkdtemp(folder))
        return false;
    snprintf(command, sizeof command,
             "localedef -i de_DE -f UTF-8 ./%s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    char *path = system(command) == 0 ? realpath(folder, NULL) : NULL;
    bool ok = path && setenv("LOCPATH", path, 1) == 0 && has_comma("de_DE.UTF-8");
    free(path);
    snprintf(command, sizeof command, "rm -r ./%s", folder);
    return system(command) == 0 && ok;
}

static int set_locale(void **state)
{
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "fr_FR.utf8",
                                        "de_DE", "fr_FR"};
    static bool found;
    *state = &found;
    for (size_t i = 0; i < sizeof names / sizeof *names && !found; i++)
        found = has_comma(names[i]);
    found = found || make_locale();
    return 0;
}

/* Skips the test by name where the machine has no such locale and cannot make one. */
static void need_locale(void **state)
{
    if (*(bool *)*state)
        return;
    print_message("no locale with a decimal comma is installed, and localedef makes none\n");
    skip();
}

/* The C library does what the libraries must not. */
static void expect_comma(void)
{
    char text[16];
    snprintf(text, sizeof text, "%.1f", 2.5);
    assert_string_equal(text, "2,5");
}

/* ---- numbers ------------------------------------------------------------ */

static void numbers_have_a_point(void **state)
{
    need_locale(state);
    char *end, text[32];
    assert_true(numeral_read("2.5e1x", &end) == 25 && *end == 'x');
    assert_true(numeral_read("2,5", &end) == 2 && *end == ',');
    assert_true(isinf(numeral_read("-inf", NULL)));
    assert_int_equal(numeral_format(text, sizeof text, "%.17g %s %a", 0.1, "ä", 1.5), 31);
    assert_int_equal(numeral_format(text, sizeof text, "%g %s", 0.5, "ä"), 6);
    assert_string_equal(text, "0.5 ä");
    report_fault((Report){text, sizeof text}, "%g", 1.25);
    assert_string_equal(text, "1.25");
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_int_equal(numeral_print(file, "%.1f us", 2.5), 6);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    assert_string_equal(text, "2.5 us");
    fclose(file);
    expect_comma();
}

/* A locale that the thread chose for itself is there afterwards. */
static void the_thread_keeps_its_locale(void **state)
{
    need_locale(state);
    locale_t own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    assert_non_null(own);
    locale_t before = uselocale(own);
    numeral_read("0.5", NULL);
    assert_ptr_equal(uselocale(before), own);
    freelocale(own);
    expect_comma();
}

static void add_text(void *to, const char *text, size_t len)
{
    strncat(to, text, len);
}

static void printers_write_a_point(void **state)
{
    need_locale(state);
    Arena arena;
    Text text;
    arena_init(&arena, NULL);
    text_init(&text, &arena);
    constant_print(&text, constant_of_real(0.1), true);
    text_printf(&text, " %.3f", 1.5);
    assert_string_equal(text_string(&text), "0.1 1.500");
    arena_free(&arena);
    char line[32] = "";
    writer_printf(&(Writer){add_text, line}, "%.2f", 0.25);
    assert_string_equal(line, "0.25");
    assert_string_equal(attr_name(ATTR_INIT), "init");
}

/* ---- programs ----------------------------------------------------------- */

static const char program[] =
    "tilus 1\n"
    "param SCALE = 1.5, BIAS = 0.25\n"
    "program @tell<1>() warps(1) {\n"
    "  %x = allocate_register SCALE : f32[1] @ replicate(32).local(1)\n"
    "  %y = allocate_register BIAS : f32[1] @ replicate(32).local(1)\n"
    "  %z = add %x, %y\n"
    "  print \"z\", %z\n"
    "}\n";

static tilus_module *parse(tilus_diag *diag, const char *text)
{
    const tilus_define scale = {"SCALE", "2.5"};
    tilus_module *m = tilus_parse(diag, "test.tilus", text, strlen(text), 1, &scale, 1);
    if (!m)
        tilus_diag_write(diag, NULL, NULL);
    assert_non_null(m);
    return m;
}

static void programs_mean_the_same(void **state)
{
    need_locale(state);
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = parse(diag, program);
    char *text = tilus_print(m);
    assert_non_null(text);
    assert_non_null(strstr(text, "2.5"));
    assert_non_null(strstr(text, "0.25"));
    assert_null(strstr(text, "2,5"));
    free(text);
    char said[128] = "", said_by_cpu[128] = "";
    const tilus_interpret_options options = {.struct_size = sizeof options, .print = add_text,
                                             .printer = said};
    assert_int_equal(tilus_interpret(m, "tell", NULL, 0, NULL, 0, &options), TILUS_OK);
    assert_non_null(strstr(said, "[2.75]"));
    assert_true(tilus_run_passes(m, NULL, NULL));
    const tilus_cpu_options cpu = {.struct_size = sizeof cpu, .cpu = "sm_80",
                                   .host_threads = 1, .print = add_text,
                                   .printer = said_by_cpu};
    assert_int_equal(tilus_run_on_cpu(m, "tell", NULL, 0, NULL, 0, &cpu, NULL), TILUS_OK);
    assert_string_equal(said_by_cpu, said);
    tilus_module_free(m);
    tilus_diag_free(diag);
    expect_comma();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_have_a_point),
        cmocka_unit_test(the_thread_keeps_its_locale),
        cmocka_unit_test(printers_write_a_point),
        cmocka_unit_test(programs_mean_the_same),
    };
    return cmocka_run_group_tests_name("locale", tests, set_locale, NULL);
}
