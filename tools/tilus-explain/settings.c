/* The command line of tilus-explain. */
#include "tool.h"

#include "tilus/runtime.h"

#include <stdio.h>
#include <string.h>

static Settings *settings_of(CommandLine *line)
{
    return (Settings *)line;
}

static void reset(CommandLine *line)
{
    *settings_of(line) = (Settings){
        .line.passes = PASS_SETTINGS, .cpu = "sm_80", .output = "-", .assemble = true};
}

static bool target_exists(const char *cpu)
{
    for (size_t i = 0; tilus_target_name(i); i++)
        if (!strcmp(tilus_target_name(i), cpu))
            return true;
    fprintf(stderr, TOOL ": error: --mcpu=%s: no such target; there are", cpu);
    for (size_t i = 0; tilus_target_name(i); i++)
        fprintf(stderr, "%s %s", i ? "," : "", tilus_target_name(i));
    fputc('\n', stderr);
    return false;
}

static bool device_exists(const char *name)
{
    if (!name || tilus_find_device(name))
        return true;
    fprintf(stderr, TOOL ": error: --device=%s: no such device; there are", name);
    for (size_t i = 0; tilus_known_device(i); i++)
        fprintf(stderr, "%s %s", i ? "," : "", tilus_known_device(i)->key);
    fputc('\n', stderr);
    return false;
}

static bool check(CommandLine *line)
{
    Settings *s = settings_of(line);
    s->line.passes.options.target = s->cpu;
    return target_exists(s->cpu) && device_exists(s->device) &&
           pass_settings_check(TOOL, "passes", s->pipeline);
}

static bool read_line(CommandLine *line, int argc, char **argv, int *status)
{
    static const char *const forms[] = {"html", "json", NULL};
    Settings *s = settings_of(line);
    static const ToolInfo info = {
        TOOL, "show what the compiler made of a program, line by line, as one page",
        "[options] [file | -]",
        "Compiles a file of program text (standard input by default) and writes one HTML file,\n"
        "which needs no network: the text with the instructions and remarks of each line,\n"
        "layouts, shared memory, passes, PTX. --explain=json writes the data of that page.\n"};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"explain", NULL, "write a page, or its data", OPTION_CHOICE, &s->form, forms},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &line->define_texts, NULL},
        {"mcpu", "target", "compile for this target (default sm_80)", OPTION_STRING, &s->cpu,
         NULL},
        {"passes", "a,b", "run these passes, not the default ones", OPTION_STRING, &s->pipeline,
         NULL},
        {"arg", "name=value", "give an integer argument, for blocks and bytes of a launch; "
         "repeatable", OPTION_LIST, &s->args, NULL},
        {"device", "name", "give the floor of a launch and count waves of blocks on this device "
         "(h200)", OPTION_STRING, &s->device, NULL},
        {"bandwidth", "TB/s", "the memory's rate for that floor (default: the device's)",
         OPTION_REAL, &s->bandwidth, NULL},
        {"measured", "file", "show what tilus-run --measured has written; repeatable", OPTION_LIST,
         &s->measured, NULL},
        {"assemble", NULL, "ask ptxas for registers, if there is one (default on)", OPTION_FLAG,
         &s->assemble, NULL},
        {"ptxas", "path", "use this ptxas", OPTION_STRING, &s->ptxas, NULL},
        {"nvdisasm", "path", "use this nvdisasm for SASS (default: the one beside ptxas, or in PATH)",
         OPTION_STRING, &s->nvdisasm, NULL},
        {"I", "directory", "look for imported files here, too; repeatable", OPTION_LIST,
         &line->passes.import_paths, NULL},
        {"limit", "name=n", "set a limit of the compiler; repeatable (tilus-opt --list-limits)",
         OPTION_LIST, &line->passes.limits, NULL},
        WARNING_OPTION(line->passes.warnings),
    };
    return options_parse(&info, table, COUNT(table), argc, argv, &line->inputs, status);
}

static void free_own(CommandLine *line)
{
    string_list_free(&settings_of(line)->args);
    string_list_free(&settings_of(line)->measured);
}

static const CommandLineTool tool = {TOOL, reset, read_line, check, free_own};

bool settings_parse(Settings *s, int argc, char **argv, int *status)
{
    return command_line_parse(&tool, &s->line, argc, argv, status);
}

void settings_free(Settings *s)
{
    command_line_free(&tool, &s->line);
}
