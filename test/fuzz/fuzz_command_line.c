/* What tools read from command lines: the table's parser, tilus-run's expressions, and
 * the header of a reproducer. Any bytes are taken or refused with a message. */
#define _GNU_SOURCE
#include "target.h"

#include "common/options.h"
#include "common/reproducer.h"
#include "tilus-run/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { WORDS_MAX = 64 };

/* ---- options ------------------------------------------------------------------- */

/* Words end with a NUL byte. Every kind of option is there. */
static void read_options(char *text, size_t size)
{
    static const char *const engines[] = {"interp", "cpu", "gpu", NULL};
    static const ToolInfo tool = {"tool", "do something", "[options] file", "Some lines.\n"};
    bool flag = false;
    const char *string = NULL;
    StringList list = {0}, inputs = {0};
    unsigned number = 0;
    int choice = 0, integer = 0, status, argc = 1;
    double real = 0;
    const Option table[] = {
        {"o", "file", "write to file", OPTION_STRING, &string, NULL},
        {"D", "name=value", "set a parameter", OPTION_LIST, &list, NULL},
        {"O", "level", "optimization level", OPTION_UNSIGNED, &number, NULL},
        {"limit", "N", "how many", OPTION_INTEGER, &integer, NULL},
        {"tolerance", "rel", "how far", OPTION_REAL, &real, NULL},
        {"time", NULL, "print where time goes", OPTION_FLAG, &flag, NULL},
        {"engine", NULL, "what runs the program", OPTION_CHOICE, &choice, engines},
    };
    char *argv[WORDS_MAX + 2] = {"tool"};
    for (size_t at = 0; at < size && argc <= WORDS_MAX; at += strlen(text + at) + 1)
        argv[argc++] = text + at;
    if (options_parse(&tool, table, COUNT(table), argc, argv, &inputs, &status) &&
        (inputs.count > WORDS_MAX || choice < 0 || choice > 2 || real < 0))
        target_fail("options that cannot be");
    string_list_free(&list);
    string_list_free(&inputs);
}

/* ---- expressions ----------------------------------------------------------------- */

static void read_expression(const char *text)
{
    static const tilus_arg_info infos[] = {{.name = "m", .kind = TILUS_ARG_I64},
                                           {.name = "n", .kind = TILUS_ARG_I64},
                                           {.name = "p", .kind = TILUS_ARG_POINTER}};
    enum { ARGS = sizeof infos / sizeof *infos };
    static const tilus_kernel_info info = {.args = infos, .arg_count = ARGS};
    bool known[ARGS] = {true, false, true};
    tilus_arg args[ARGS] = {{.integer = 7}, {.integer = 0}, {.pointer = 2}};
    Run run = {.info = &info, .known = known, .args = args};
    const char *at = text;
    int64_t value;
    const char *error = run_evaluate(&run, &at, &value);
    if (at < text || at > text + strlen(text) || (error && !*error))
        target_fail("an expression is read beyond its end");
}

/* ---- reproducers ----------------------------------------------------------------- */

/* The words of the header in `text`, with `last` behind them; NULL if there is none.
 * The file is one without a name. */
static char **read_header(const char *text, size_t size, char *last, int *count)
{
    char path[32], *argv[] = {"tilus-opt", last, NULL}, **all = NULL;
    int fd = memfd_create("header", 0);
    StringList inputs = {0};
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    if (fd >= 0 && write(fd, text, size) == (ssize_t)size && string_list_add(&inputs, path))
        all = reproducer_arguments("tilus-opt", &inputs, 2, argv, count);
    string_list_free(&inputs);
    close(fd);
    return all;
}

/* A header gives back the word that was quoted into it. */
static void check_quoting(char *text)
{
    char *header = NULL;
    size_t size;
    int count;
    FILE *out = open_memstream(&header, &size);
    if (!out)
        return;
    text[strcspn(text, "\r\n")] = '\0';
    fputs("// tilus-opt", out);
    reproducer_add_option(out, "passes", text);
    fputs("\ntilus 1\n", out);
    fclose(out);
    char **all = read_header(header, size, "last", &count);
    if (!all || count != 3 || strncmp(all[1], "--passes=", 9) || strcmp(all[1] + 9, text) != 0)
        target_fail("'%s' is read as '%s'", text, all ? all[1] : "nothing");
    free(all);
    free(header);
}

static void check_header(const char *text, size_t size)
{
    int count;
    free(read_header(text, size, "last", &count));
}

/* ---- the target ------------------------------------------------------------------ */

/* The first byte says who reads the others. */
static void read_all(char *text, size_t size)
{
    switch (size ? text[0] : 0) {
    case 'o': read_options(text + 1, size - 1); break;
    case 'e': read_expression(text + 1); break;
    case 'q': check_quoting(text + 1); break;
    case 'h': check_header(text + 1, size - 1); break;
    default: break;
    }
}

/* Refusals and help go nowhere. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static FILE *nowhere;
    FILE *out = stdout, *err = stderr;
    if (!nowhere && !(nowhere = fopen("/dev/null", "w")))
        return 0;
    char *text = malloc(size + 1);
    if (!text)
        return 0;
    memcpy(text, data, size);
    text[size] = '\0';
    stdout = stderr = nowhere;
    read_all(text, size);
    stdout = out;
    stderr = err;
    free(text);
    return 0;
}
