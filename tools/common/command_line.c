#include "common/command_line.h"

#include "common/defines.h"
#include "common/limits.h"
#include "common/reproducer.h"

#include "tilus/pass.h"

#include <stdio.h>
#include <stdlib.h>

/* Reads argv again, with the arguments of the reproducer before it. */
static bool read_reproducer(const CommandLineTool *tool, CommandLine *line, int argc, char **argv,
                            int *status)
{
    int count;
    char **arguments = reproducer_arguments(tool->name, &line->inputs, argc, argv, &count);
    *status = EXIT_DIAGNOSTICS;
    if (!arguments)
        return false;
    command_line_free(tool, line);
    tool->reset(line);
    line->arguments = arguments;
    return tool->read(line, count, arguments, status);
}

/* Loads what the rest of the line may name passes of. */
static bool load_plugins(const CommandLineTool *tool, const StringList *plugins)
{
    char why[1024];
    for (size_t i = 0; i < plugins->count; i++)
        if (!tilus_load_plugin(plugins->items[i], why, sizeof why)) {
            fprintf(stderr, "%s: error: %s\n", tool->name, why);
            return false;
        }
    return true;
}

static bool check(const CommandLineTool *tool, CommandLine *line)
{
    if (line->inputs.count > 1) {
        fprintf(stderr, "%s: error: one input at a time, got '%s' and '%s'\n", tool->name,
                line->inputs.items[0], line->inputs.items[1]);
        return false;
    }
    line->input = line->inputs.count ? line->inputs.items[0] : "-";
    line->define_count = line->define_texts.count;
    return load_plugins(tool, &line->passes.plugins) &&
           pass_settings_finish(&line->passes, tool->name) && tool->check(line) &&
           limits_set(tool->name, &line->passes.limits, NULL) &&
           warnings_set(tool->name, &line->passes.warnings, NULL) &&
           defines_parse(tool->name, &line->define_texts, &line->defines);
}

bool command_line_parse(const CommandLineTool *tool, CommandLine *line, int argc, char **argv,
                        int *status)
{
    tool->reset(line);
    bool ok = tool->read(line, argc, argv, status) &&
              (!line->passes.run_reproducer || read_reproducer(tool, line, argc, argv, status));
    if (ok && !check(tool, line)) {
        *status = EXIT_USAGE;
        ok = false;
    }
    if (!ok)
        command_line_free(tool, line);
    return ok;
}

void command_line_free(const CommandLineTool *tool, CommandLine *line)
{
    if (tool->free)
        tool->free(line);
    defines_free(line->defines, line->define_count);
    string_list_free(&line->define_texts);
    string_list_free(&line->passes.limits);
    string_list_free(&line->passes.import_paths);
    string_list_free(&line->passes.warnings);
    string_list_free(&line->passes.plugins);
    string_list_free(&line->inputs);
    free(line->arguments);
}
