/* The command line of tilus-opt. */
#include "tool.h"

#include "common/defines.h"
#include "common/reproducer.h"

#include <stdio.h>
#include <stdlib.h>

static const OptSettings defaults = {.output = "-", .passes = PASS_SETTINGS};

static bool check_settings(OptSettings *s)
{
    if (s->inputs.count > 1) {
        fprintf(stderr, "tilus-opt: error: one input at a time, got '%s' and '%s'\n",
                s->inputs.items[0], s->inputs.items[1]);
        return false;
    }
    if (s->passes_text && s->pipeline_text) {
        fprintf(stderr, "tilus-opt: error: --passes and --pass-pipeline mean the same; give one\n");
        return false;
    }
    if (s->svg && !s->layout) {
        fprintf(stderr, "tilus-opt: error: --svg draws what --print-layout names; give "
                "both\n");
        return false;
    }
    s->input = s->inputs.count ? s->inputs.items[0] : "-";
    s->pipeline = s->passes_text ? s->passes_text : s->pipeline_text ? s->pipeline_text : "";
    s->define_count = s->define_texts.count;
    pass_settings_finish(&s->passes);
    return limits_set("tilus-opt", &s->passes.limits, NULL) &&
           defines_parse("tilus-opt", &s->define_texts, &s->defines);
}

static bool parse_line(OptSettings *s, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        "tilus-opt", "check and print program text, and run passes on it",
        "[options] [file | -]",
        "Reads a file of program text (standard input by default), instantiates its\n"
        "templates, verifies it, runs the passes of --passes, and prints the result in\n"
        "canonical form.\n"};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &s->define_texts, NULL},
        {"passes", "a,b", "run these passes in order", OPTION_STRING, &s->passes_text, NULL},
        {"pass-pipeline", "a,b", "the same as --passes", OPTION_STRING, &s->pipeline_text, NULL},
        PASS_OPTIONS(s->passes),
        {"mcpu", "target", "choose instructions for this target, not for any", OPTION_STRING,
         &s->passes.options.target, NULL},
        {"split-input-file", NULL, "process the parts between lines of // ----- alone",
         OPTION_FLAG, &s->split_input, NULL},
        {"verify-diagnostics", NULL, "compare diagnostics with // expected-error {{..}} comments",
         OPTION_FLAG, &s->verify_diagnostics, NULL},
        {"list-ops", NULL, "print the op reference", OPTION_FLAG, &s->list_ops, NULL},
        {"list-types", NULL, "print the element types and their ranges", OPTION_FLAG, &s->list_types,
         NULL},
        {"list-passes", NULL, "print the passes", OPTION_FLAG, &s->list_passes, NULL},
        {"list-limits", NULL, "print the limits and what they can be set to", OPTION_FLAG,
         &s->list_limits, NULL},
        {"print-layout", "layout", "draw a layout: thread:slot of each element", OPTION_STRING,
         &s->layout, NULL},
        {"svg", "file", "draw the layout of --print-layout as SVG, too", OPTION_STRING,
         &s->svg, NULL},
        {"version", NULL, "print versions", OPTION_FLAG, &s->version, NULL},
    };
    return options_parse(&tool, table, COUNT(table), argc, argv, &s->inputs, status);
}

/* Reads the line again, with that of the reproducer before it. */
static bool parse_reproducer(OptSettings *s, int argc, char **argv, int *status)
{
    int count;
    char **arguments = reproducer_arguments("tilus-opt", &s->inputs, argc, argv, &count);
    *status = EXIT_DIAGNOSTICS;
    if (!arguments)
        return false;
    settings_free(s);
    *s = defaults;
    s->arguments = arguments;
    return parse_line(s, count, arguments, status);
}

bool settings_parse(OptSettings *s, int argc, char **argv, int *status)
{
    *s = defaults;
    if (!parse_line(s, argc, argv, status) ||
        (s->passes.run_reproducer && !parse_reproducer(s, argc, argv, status))) {
        settings_free(s);
        return false;
    }
    if (!check_settings(s)) {
        settings_free(s);
        *status = EXIT_USAGE;
        return false;
    }
    return true;
}

void settings_free(OptSettings *s)
{
    defines_free(s->defines, s->define_count);
    string_list_free(&s->define_texts);
    string_list_free(&s->passes.limits);
    string_list_free(&s->inputs);
    free(s->arguments);
}
