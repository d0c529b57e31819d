/* The command line of tilus-llc. */
#include "tool.h"

#include "common/defines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The input's name with the suffix of what is written; stdin goes to stdout,
 * and so does program text, which must not replace the input. */
static bool name_output(LlcSettings *s)
{
    if (s->output)
        return true;
    const char *suffix = s->emit_llvm ? ".ll" : s->file_type == FILE_OBJ ? ".cubin" : ".ptx";
    const char *ending = strrchr(s->input, '.');
    size_t stem = ending && !strcmp(ending, ".tilus") ? (size_t)(ending - s->input)
                                                      : strlen(s->input);
    if (!strcmp(s->input, "-") || s->stop_after) {
        s->output = "-";
        return true;
    }
    s->default_output = malloc(stem + strlen(suffix) + 1);
    if (!s->default_output)
        return false;
    memcpy(s->default_output, s->input, stem);
    strcpy(s->default_output + stem, suffix);
    s->output = s->default_output;
    return true;
}

/* The default pipeline up to the first pass called s->stop_after. */
static bool cut_pipeline(LlcSettings *s)
{
    const char *all = tilus_default_pipeline();
    if (!s->stop_after)
        return true;
    for (const char *p = all; *p;) {
        size_t len = strcspn(p, ",");
        if (len == strlen(s->stop_after) && !strncmp(p, s->stop_after, len)) {
            size_t size = (size_t)(p - all) + len;
            s->pipeline = malloc(size + 1);
            if (s->pipeline)
                memcpy(s->pipeline, all, size), s->pipeline[size] = '\0';
            return s->pipeline != NULL;
        }
        p += len + (p[len] == ',');
    }
    fprintf(stderr, "tilus-llc: error: no pass '%s' in the pipeline: %s\n", s->stop_after, all);
    return false;
}

static bool check_settings(LlcSettings *s)
{
    if (s->inputs.count > 1) {
        fprintf(stderr, "tilus-llc: error: one input at a time, got '%s' and '%s'\n",
                s->inputs.items[0], s->inputs.items[1]);
        return false;
    }
    if (s->opt_level > 3) {
        fprintf(stderr, "tilus-llc: error: -O%u: levels are 0 .. 3\n", s->opt_level);
        return false;
    }
    if (s->emit_llvm && s->file_type == FILE_OBJ) {
        fprintf(stderr, "tilus-llc: error: --emit-llvm writes text; give --filetype=asm or null\n");
        return false;
    }
    s->input = s->inputs.count ? s->inputs.items[0] : "-";
    s->define_count = s->define_texts.count;
    return cut_pipeline(s) && name_output(s) &&
           defines_parse("tilus-llc", &s->define_texts, &s->defines);
}

bool settings_parse(LlcSettings *s, int argc, char **argv, int *status)
{
    static const char *const file_types[] = {"asm", "obj", "null", NULL};
    *s = (LlcSettings){.cpu = "sm_80", .opt_level = 3};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &s->define_texts, NULL},
        {"mcpu", "target", "compile for this target (default sm_80)", OPTION_STRING, &s->cpu,
         NULL},
        {"mattr", "+ptxNN,..", "use at least this PTX version", OPTION_STRING, &s->features,
         NULL},
        {"O", "level", "optimisation level, 0 .. 3 (default 3)", OPTION_UNSIGNED, &s->opt_level,
         NULL},
        {"filetype", NULL, "write PTX, a cubin (by ptxas), or nothing", OPTION_CHOICE,
         &s->file_type, file_types},
        {"emit-llvm", NULL, "write the optimised LLVM IR", OPTION_FLAG, &s->emit_llvm, NULL},
        {"stop-after", "pass", "write the program text after this pass", OPTION_STRING,
         &s->stop_after, NULL},
        {"time", NULL, "print where time goes, to stderr", OPTION_FLAG, &s->time, NULL},
        {"version", NULL, "print versions", OPTION_FLAG, &s->version, NULL},
    };
    if (!options_parse("tilus-llc", "[options] [file | -]", table, COUNT(table), argc, argv,
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

void settings_free(LlcSettings *s)
{
    defines_free(s->defines, s->define_count);
    string_list_free(&s->define_texts);
    string_list_free(&s->inputs);
    free(s->default_output);
    free(s->pipeline);
}
