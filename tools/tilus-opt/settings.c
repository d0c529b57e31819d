/* The command line of tilus-opt. */
#include "tool.h"

#include "common/defines.h"

#include <stdio.h>

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
    s->input = s->inputs.count ? s->inputs.items[0] : "-";
    s->pipeline = s->passes_text ? s->passes_text : s->pipeline_text ? s->pipeline_text : "";
    s->define_count = s->define_texts.count;
    return defines_parse("tilus-opt", &s->define_texts, &s->defines);
}

bool settings_parse(OptSettings *s, int argc, char **argv, int *status)
{
    *s = (OptSettings){.output = "-", .passes = {.verify_each = true}};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &s->define_texts, NULL},
        {"passes", "a,b", "run these passes in order", OPTION_STRING, &s->passes_text, NULL},
        {"pass-pipeline", "a,b", "the same as --passes", OPTION_STRING, &s->pipeline_text, NULL},
        {"verify-each", NULL, "verify after each pass that changed something (default on)",
         OPTION_FLAG, &s->passes.verify_each, NULL},
        {"print-before", "a,b", "print the module before these passes, to stderr", OPTION_STRING,
         &s->passes.print_before, NULL},
        {"print-after", "a,b", "print the module after these passes, to stderr", OPTION_STRING,
         &s->passes.print_after, NULL},
        {"print-before-all", NULL, "print the module before each pass", OPTION_FLAG,
         &s->passes.print_before_all, NULL},
        {"print-after-all", NULL, "print the module after each pass", OPTION_FLAG,
         &s->passes.print_after_all, NULL},
        {"time-passes", NULL, "print the time of each pass, to stderr", OPTION_FLAG,
         &s->passes.time_passes, NULL},
        {"split-input-file", NULL, "process the parts between lines of // ----- alone",
         OPTION_FLAG, &s->split_input, NULL},
        {"verify-diagnostics", NULL, "compare diagnostics with // expected-error {{..}} comments",
         OPTION_FLAG, &s->verify_diagnostics, NULL},
        {"list-ops", NULL, "print the op reference", OPTION_FLAG, &s->list_ops, NULL},
        {"list-types", NULL, "print the element types and their ranges", OPTION_FLAG, &s->list_types,
         NULL},
        {"list-passes", NULL, "print the passes", OPTION_FLAG, &s->list_passes, NULL},
        {"version", NULL, "print versions", OPTION_FLAG, &s->version, NULL},
    };
    if (!options_parse("tilus-opt", "[options] [file | -]", table, COUNT(table), argc, argv,
                       &s->inputs, status)) {
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
    string_list_free(&s->inputs);
}
