/* tilus-lsp: the command line. */
#include "lsp.h"

#include "common/defines.h"
#include "common/options.h"
#include "target/target.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define TOOL "tilus-lsp"

typedef struct Settings {
    const char *target;
    StringList define_texts, import_paths, inputs;
    tilus_define *defines;
    unsigned milliseconds;
    bool stdio;
} Settings;

static bool check(Settings *s)
{
    if (s->inputs.count)
        fprintf(stderr, "%s: error: it reads no file, got '%s'\n", TOOL, s->inputs.items[0]);
    else if (s->milliseconds > INT_MAX)
        fprintf(stderr, "%s: error: %u milliseconds, the limit is %d\n", TOOL, s->milliseconds,
                INT_MAX);
    else if (!target_find(s->target))
        fprintf(stderr, "%s: error: unknown target '%s'\n", TOOL, s->target);
    else
        return defines_parse(TOOL, &s->define_texts, &s->defines);
    return false;
}

static bool parse_settings(Settings *s, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        TOOL, "serve an editor: the Language Server Protocol on standard input and output",
        "[options]",
        "Reads requests of the Language Server Protocol 3.17 from standard input and writes\n"
        "answers to standard output: messages while a text is typed, types, layouts and the\n"
        "compiler's choices on hover, definitions, references, renaming, completion,\n"
        "formatting, hints, quick fixes. An editor may set target, defines, importPaths and\n"
        "milliseconds in initializationOptions, or as settings of `tilus`.\n"};
    const Option table[] = {
        {"mcpu", "target", "compile for this target (default sm_90a)", OPTION_STRING, &s->target,
         NULL},
        {"D", "name=value", "set a template parameter in texts that have it; repeatable",
         OPTION_LIST, &s->define_texts, NULL},
        {"I", "directory", "look for imported files here, too; repeatable", OPTION_LIST,
         &s->import_paths, NULL},
        {"milliseconds", "n", "end a compile after this time (default 2000; 0: never)", OPTION_UNSIGNED,
         &s->milliseconds, NULL},
        {"stdio", NULL, "speak on standard input and output, as it always does", OPTION_FLAG,
         &s->stdio, NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->inputs, status))
        return false;
    *status = EXIT_USAGE;
    return check(s);
}

static void set_configuration(Configuration *c, const Settings *s)
{
    c->target = lsp_strndup(s->target, strlen(s->target));
    c->milliseconds = s->milliseconds;
    for (size_t i = 0; i < s->define_texts.count; i++) {
        const tilus_define d = {lsp_strndup(s->defines[i].name, strlen(s->defines[i].name)),
                                lsp_strndup(s->defines[i].value, strlen(s->defines[i].value))};
        LSP_PUSH(c->defines, c->define_count, c->define_capacity, d);
    }
    for (size_t i = 0; i < s->import_paths.count; i++)
        LSP_PUSH(c->import_paths, c->import_path_count, c->import_path_capacity,
                 lsp_strndup(s->import_paths.items[i], strlen(s->import_paths.items[i])));
}

int main(int argc, char **argv)
{
    Settings s = {.target = "sm_90a", .milliseconds = 2000};
    Server server = {.in = stdin, .out = stdout};
    int status;
    if (parse_settings(&s, argc, argv, &status)) {
        setvbuf(stdin, NULL, _IONBF, 0);    /* so that poll sees what waits */
        signal(SIGPIPE, SIG_IGN);
        set_configuration(&server.configuration, &s);
        status = server_run(&server);
        configuration_free(&server.configuration);
    }
    defines_free(s.defines, s.define_texts.count);
    string_list_free(&s.define_texts);
    string_list_free(&s.import_paths);
    string_list_free(&s.inputs);
    return status;
}
