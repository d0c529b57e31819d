/* tilus-reduce: the command line, and the loop of reductions. */
#define _GNU_SOURCE
#include "reduce.h"

#include "common/defines.h"
#include "common/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Settings {
    const char *input, *output;
    StringList inputs, define_texts;
    tilus_define *defines;
    bool text_only;
    Reduction reduction;
} Settings;

static bool parse_settings(Settings *s, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        TOOL, "shrink a program that shows a fault", "--test=COMMAND [options] [file | -]",
        "Runs the command, with {} in it replaced by the name of a file, on smaller and\n"
        "smaller programs, and keeps each on which it succeeds (status 0): say, because\n"
        "`not --crash tilus-llc {}` does. Ops go, with numbers in the place of what they\n"
        "gave; branches, loops, arguments and attributes go; numbers shrink; and in the\n"
        "end lines and words of the text. A valid program stays valid. Any other text\n"
        "loses lines, words and numbers only.\n"};
    const Option table[] = {
        {"test", "command", "a command of the shell that succeeds on a file that shows the fault",
         OPTION_STRING, &s->reduction.test, NULL},
        {"o", "file", "write to file, each time it gets better; - is standard output",
         OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &s->define_texts, NULL},
        {"max-tests", "N", "run the command at most this many times (0: no limit)", OPTION_UNSIGNED,
         &s->reduction.max_tests, NULL},
        {"text", NULL, "treat the program as any text: for faults of the parser",
         OPTION_FLAG, &s->text_only, NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->inputs, status))
        return false;
    *status = EXIT_USAGE;
    s->input = s->inputs.count ? s->inputs.items[0] : "-";
    if (s->inputs.count > 1)
        fprintf(stderr, "%s: error: one input at a time, got '%s' and '%s'\n", TOOL, s->input,
                s->inputs.items[1]);
    else if (!s->reduction.test || !strstr(s->reduction.test, "{}"))
        fprintf(stderr, "%s: error: --test needs a command with {} where the file's name "
                "shall be\n", TOOL);
    else
        return defines_parse(TOOL, &s->define_texts, &s->defines);
    return false;
}

/* The canonical text of a valid program, with templates instantiated; NULL when it is
 * none. */
static char *canonical(const Settings *s, const char *text, size_t size)
{
    tilus_diag *diag = tilus_diag_new();
    tilus_module *m = diag ? tilus_parse(diag, s->input, text, size, 1, s->defines,
                                         s->define_texts.count)
                           : NULL;
    char *printed = m ? tilus_print(m) : NULL;
    tilus_module_free(m);
    tilus_diag_free(diag);
    return printed;
}

/* Returns true when the text shows the fault, as a program or unparsed. */
static bool begin(Settings *s, char *text, size_t size)
{
    Reduction *r = &s->reduction;
    r->best = s->text_only ? NULL : canonical(s, text, size);
    r->is_program = r->best != NULL;
    if (r->is_program && reduction_holds(r)) {
        free(text);
        return true;
    }
    free(r->best);
    r->best = text;
    r->is_program = false;
    return reduction_holds(r);
}

/* The text comes last: what edits of the program print would undo it. */
static void reduce(Reduction *r)
{
    bool any = r->is_program;
    while (any && !r->stopped) {
        any = reduce_program(r);
        any |= reduce_numbers(r);
    }
    while (!r->stopped && reduce_text(r)) {
    }
}

static int run(Settings *s)
{
    Reduction *r = &s->reduction;
    char *text;
    size_t size;
    if (!file_check_output(TOOL, s->input, s->output) ||
        !file_read(TOOL, s->input, FILE_SIZE_MAX, &text, &size))
        return EXIT_DIAGNOSTICS;
    r->output = strcmp(s->output, "-") ? s->output : NULL;
    if (!begin(s, text, size)) {
        fprintf(stderr, "%s: error: the command does not succeed on '%s' itself\n", TOOL,
                s->input);
        return EXIT_DIAGNOSTICS;
    }
    reduce(r);
    size_t left = strlen(r->best);
    fprintf(stderr, "%s: %zu bytes are left of %zu, after %u tests%s\n", TOOL, left, size,
            r->tests, r->is_program ? "" : "; the text is no valid program");
    return file_write(TOOL, s->output, r->best, left) ? EXIT_OK : EXIT_DIAGNOSTICS;
}

static bool make_path(Settings *s)
{
    const char *folder = getenv("TMPDIR");
    int fd = -1;
    if (asprintf(&s->reduction.path, "%s/tilus-reduce-XXXXXX.tilus",
                 folder ? folder : "/tmp") < 0)
        s->reduction.path = NULL;
    else
        fd = mkstemps(s->reduction.path, (int)strlen(".tilus"));
    if (fd >= 0)
        return close(fd) == 0;
    perror(TOOL ": error: cannot make a temporary file");
    return false;
}

int main(int argc, char **argv)
{
    Settings s = {.output = "-"};
    int status;
    if (parse_settings(&s, argc, argv, &status)) {
        status = make_path(&s) ? run(&s) : EXIT_DIAGNOSTICS;
        if (s.reduction.path)
            unlink(s.reduction.path);
    }
    free(s.reduction.path);
    free(s.reduction.best);
    defines_free(s.defines, s.define_texts.count);
    string_list_free(&s.define_texts);
    string_list_free(&s.inputs);
    return status;
}
