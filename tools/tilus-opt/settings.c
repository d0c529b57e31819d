/* The command line of tilus-opt. */
#include "tool.h"

#include <stdio.h>
#include <string.h>

static OptSettings *settings_of(CommandLine *line)
{
    return (OptSettings *)line;
}

static void reset(CommandLine *line)
{
    *settings_of(line) = (OptSettings){.line.passes = PASS_SETTINGS, .output = "-"};
}

static bool check(CommandLine *line)
{
    OptSettings *s = settings_of(line);
    const char *why = NULL;
    if (s->passes_text && s->pipeline_text)
        why = "--passes and --pass-pipeline mean the same; give one";
    else if (s->svg && !s->layout)
        why = "--svg draws what --print-layout names; give both";
    if (why)
        fprintf(stderr, "tilus-opt: error: %s\n", why);
    s->pipeline = s->passes_text ? s->passes_text : s->pipeline_text ? s->pipeline_text : "";
    return !why && pass_settings_check("tilus-opt", "passes", s->pipeline);
}

static bool read_line(CommandLine *line, int argc, char **argv, int *status)
{
    OptSettings *s = settings_of(line);
    static const ToolInfo info = {
        "tilus-opt", "check and print program text, and run passes on it",
        "[options] [file | -]",
        "Reads a file of program text (standard input by default), instantiates its\n"
        "templates, verifies it, runs the passes of --passes, and prints the result in\n"
        "canonical form.\n"};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &line->define_texts, NULL},
        {"passes", "a,b", "run these passes in order", OPTION_STRING, &s->passes_text, NULL},
        {"pass-pipeline", "a,b", "the same as --passes", OPTION_STRING, &s->pipeline_text, NULL},
        PASS_OPTIONS(line->passes),
        {"mcpu", "target", "choose instructions for this target, not for any", OPTION_STRING,
         &line->passes.options.target, NULL},
        {"split-input-file", NULL, "process the parts between lines of // ----- alone",
         OPTION_FLAG, &s->split_input, NULL},
        {"verify-diagnostics", NULL, "compare diagnostics with // expected-error {{..}} comments",
         OPTION_FLAG, &s->verify_diagnostics, NULL},
        {"list-ops", NULL, "print the op reference", OPTION_FLAG, &s->list_ops, NULL},
        {"list-types", NULL, "print the element types and their ranges", OPTION_FLAG, &s->list_types,
         NULL},
        {"list-passes", NULL, "print the passes and their options", OPTION_FLAG, &s->list_passes,
         NULL},
        {"list-remarks", NULL, "print the remarks that passes give", OPTION_FLAG, &s->list_remarks,
         NULL},
        {"list-limits", NULL, "print the limits and what they can be set to", OPTION_FLAG,
         &s->list_limits, NULL},
        {"list-warnings", NULL, "print the groups of warnings", OPTION_FLAG, &s->list_warnings,
         NULL},
        {"print-layout", "layout", "draw a layout (a file gives it names): thread:slot of each "
         "element", OPTION_STRING, &s->layout, NULL},
        {"svg", "file", "draw the layout of --print-layout as SVG, too", OPTION_STRING,
         &s->svg, NULL},
        {"version", NULL, "print versions", OPTION_FLAG, &s->version, NULL},
    };
    return options_parse(&info, table, COUNT(table), argc, argv, &line->inputs, status);
}

static const CommandLineTool tool = {"tilus-opt", reset, read_line, check, NULL};

bool settings_parse(OptSettings *s, int argc, char **argv, int *status)
{
    return command_line_parse(&tool, &s->line, argc, argv, status);
}

void settings_free(OptSettings *s)
{
    command_line_free(&tool, &s->line);
}
