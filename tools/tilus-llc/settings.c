/* The command line of tilus-llc. */
#include "tool.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const template_names[] = {
#define TEMPLATE(name, optimized) #name,
#include "support/templates.def"
    NULL};
static const char template_help[] =
    "compile this program text, kernels/<name>.tilus, which is built in; names:"
#define TEMPLATE(name, optimized) " " #name
#include "support/templates.def"
    ;

/* Text after a pass, or a table, whatever the file type. */
static bool writes_text(const LlcSettings *s)
{
    return s->stop_after || s->cast_plans;
}

bool settings_want_artefacts(const LlcSettings *s)
{
    return (s->file_type == FILE_ARTEFACT || s->file_type == FILE_HEADER) && !writes_text(s);
}

static void choose_file_type(LlcSettings *s)
{
    const char *ending = s->output ? strrchr(s->output, '.') : NULL;
    if (s->file_type == FILE_BY_NAME)
        s->file_type = ending && !strcmp(ending, ".tilusk") ? FILE_ARTEFACT : FILE_ASM;
}

/* The input's name with the suffix of what is written; stdin goes to stdout,
 * and so does program text, which must not replace the input. */
static bool name_output(LlcSettings *s)
{
    static const char *const suffixes[] = {[FILE_ASM] = ".ptx", [FILE_OBJ] = ".cubin",
                                           [FILE_NULL] = "", [FILE_ARTEFACT] = ".tilusk",
                                           [FILE_HEADER] = ".h"};
    if (s->output)
        return true;
    const char *suffix = s->emit_llvm ? ".ll" : suffixes[s->file_type];
    const char *ending = strrchr(s->line.input, '.');
    size_t stem = ending && !strcmp(ending, ".tilus") ? (size_t)(ending - s->line.input)
                                                      : strlen(s->line.input);
    if (!strcmp(s->line.input, "-") || writes_text(s)) {
        s->output = "-";
        return true;
    }
    s->default_output = malloc(stem + strlen(suffix) + 1);
    if (!s->default_output)
        return false;
    memcpy(s->default_output, s->line.input, stem);
    strcpy(s->default_output + stem, suffix);
    s->output = s->default_output;
    return true;
}

/* The pipeline up to the first pass called s->stop_after. */
static bool cut_pipeline(LlcSettings *s)
{
    const char *all = s->pipeline;
    if (!s->stop_after)
        return true;
    for (const char *p = all; *(p += strspn(p, ", "));) {
        size_t name = strcspn(p, ",{ "), len = name;
        if (p[len] == '{')
            len += strcspn(p + len, "}") + 1;
        if (name == strlen(s->stop_after) && !strncmp(p, s->stop_after, name)) {
            size_t size = (size_t)(p - all) + len;
            s->cut = malloc(size + 1);
            if (s->cut)
                memcpy(s->cut, all, size), s->cut[size] = '\0';
            s->pipeline = s->cut;
            return s->cut != NULL;
        }
        p += len;
    }
    fprintf(stderr, "tilus-llc: error: no pass '%s' in the pipeline: %s\n", s->stop_after, all);
    return false;
}

/* Checks options that contradict others. */
static bool check_output(const LlcSettings *s)
{
    const char *why = NULL;
    if (s->emit_llvm && s->file_type != FILE_ASM && s->file_type != FILE_NULL)
        why = "--emit-llvm writes text; give --filetype=asm or null";
    else if (s->cubin != CUBIN_AUTO && !settings_want_artefacts(s))
        why = "--cubin is of artefacts; give --filetype=artefact or header";
    else if (s->ptxas && (s->emit_llvm || s->file_type == FILE_NULL || writes_text(s)))
        why = "--ptxas assembles PTX, and none is written";
    else if (s->program && writes_text(s))
        why = "--program chooses what is compiled; --stop-after and --print-cast-plans "
              "show the whole file";
    else if (s->cache &&
             (s->file_type != FILE_ARTEFACT || s->cubin != CUBIN_NEVER || writes_text(s)))
        why = "--cache keeps artefacts without machine code; give --filetype=artefact --cubin=never";
    else if (s->cache && strcmp(s->pipeline, tilus_default_pipeline()) != 0)
        why = "--cache keeps what the default pipeline makes, and --passes names another one";
    if (why)
        fprintf(stderr, "tilus-llc: error: %s\n", why);
    return !why;
}

static void refuse_template(const char *name)
{
    fprintf(stderr, "tilus-llc: error: no template '%s'; there are", name);
    for (size_t i = 0; template_names[i]; i++)
        fprintf(stderr, "%s %s", i ? "," : "", template_names[i]);
    fputs("\n", stderr);
}

/* Checks that there is one input, and that a template is known. */
static bool check_template(const LlcSettings *s)
{
    size_t size;
    if (!s->template)
        return true;
    if (s->line.inputs.count)
        fprintf(stderr, "tilus-llc: error: --template=%s is the input, and so is '%s'\n",
                s->template, s->line.input);
    else if (!tilus_template_text(s->template, &size))
        refuse_template(s->template);
    else
        return true;
    return false;
}

static LlcSettings *settings_of(CommandLine *line)
{
    return (LlcSettings *)line;
}

static bool check(CommandLine *line)
{
    LlcSettings *s = settings_of(line);
    if (s->opt_level > 3) {
        fprintf(stderr, "tilus-llc: error: -O%u: levels are 0 .. 3\n", s->opt_level);
        return false;
    }
    choose_file_type(s);
    if (s->program && s->program[0] == '@')
        s->program++;
    line->passes.options.target = s->cpu;
    return pass_settings_check("tilus-llc", "passes", s->pipeline) && check_output(s) &&
           check_template(s) && cut_pipeline(s) && name_output(s);
}

static void reset(CommandLine *line)
{
    *settings_of(line) = (LlcSettings){.line.passes = PASS_SETTINGS, .cpu = "sm_80",
                                       .opt_level = 3, .file_type = FILE_BY_NAME,
                                       .pipeline = tilus_default_pipeline()};
}

static bool read_line(CommandLine *line, int argc, char **argv, int *status)
{
    LlcSettings *s = settings_of(line);
    static const char *const file_types[] = {"asm", "obj", "null", "artefact", "header", NULL};
    static const char *const cubins[] = {"auto", "always", "never", NULL};
    static const char *const cast_plans[] = {"none", "table", "operations", NULL};
    static const ToolInfo info = {
        "tilus-llc", "compile program text to PTX, a cubin, LLVM IR or artefacts",
        "[options] [file | -]",
        "Writes what it makes of prog.tilus to prog.ptx (.cubin, .ll, .tilusk, .h), of\n"
        "standard input to standard output. A cubin is made by ptxas, which --ptxas, TILUS_PTXAS,\n"
        "PATH or /usr/local/cuda/bin has. An artefact (.tilusk) is one program with all that\n"
        "launching it needs; a header embeds one in C or C++. Of a file with several\n"
        "programs choose one, or have each written as -o folder/.\n"};
    const Option table[] = {
        {"o", "file", "write to file; - is standard output", OPTION_STRING, &s->output, NULL},
        {"D", "name=value", "set a template parameter; repeatable", OPTION_LIST,
         &line->define_texts, NULL},
        {"mcpu", "target", "compile for this target (default sm_80)", OPTION_STRING, &s->cpu,
         NULL},
        {"mattr", "+ptxNN,..", "use at least this PTX version", OPTION_STRING, &s->features,
         NULL},
        {"O", "level", "optimization level, 0 .. 3 (default 3)", OPTION_UNSIGNED, &s->opt_level,
         NULL},
        {"g", NULL, "mark the PTX with lines of the program text", OPTION_FLAG,
         &s->debug_lines, NULL},
        {"filetype", NULL, "write PTX, a cubin (by ptxas), nothing, an artefact, or a C header "
         "with one", OPTION_CHOICE, &s->file_type, file_types},
        {"program", "name", "compile only this program", OPTION_STRING, &s->program, NULL},
        {"template", "name", template_help, OPTION_STRING, &s->template, template_names},
        {"input-name", "file", "name standard input so in messages, and look beside it for imports",
         OPTION_STRING, &s->input_name, NULL},
        {"cache", "directory", "look for an artefact in this cache first, and keep it there; with --cubin=never",
         OPTION_STRING, &s->cache, NULL},
        {"cubin", NULL, "put machine code into artefacts (auto: where there is a ptxas)",
         OPTION_CHOICE, &s->cubin, cubins},
        {"ptxas", "path", "assemble by this ptxas; PTX is assembled, too, to warn of registers "
         "that spill", OPTION_STRING, &s->ptxas, NULL},
        {"emit-llvm", NULL, "write the optimized LLVM IR", OPTION_FLAG, &s->emit_llvm, NULL},
        {"passes", "a,b", "run these passes, not the usual ones", OPTION_STRING, &s->pipeline,
         NULL},
        PASS_OPTIONS(line->passes),
        {"print-llvm-before-all", NULL, "print LLVM's code before each of its passes",
         OPTION_FLAG, &s->print_llvm_before, NULL},
        {"print-llvm-after-all", NULL, "print LLVM's code after each of its passes",
         OPTION_FLAG, &s->print_llvm_after, NULL},
        {"print-cast-plans", NULL, "print how the input's casts go, or all casts without one",
         OPTION_CHOICE, &s->cast_plans, cast_plans},
        {"stop-after", "pass", "write the program text after this pass", OPTION_STRING,
         &s->stop_after, NULL},
        {"time", NULL, "print where time goes, to stderr", OPTION_FLAG, &s->time, NULL},
        {"list-targets", NULL, "print the targets", OPTION_FLAG, &s->list_targets, NULL},
        {"version", NULL, "print versions", OPTION_FLAG, &s->version, NULL},
    };
    return options_parse(&info, table, COUNT(table), argc, argv, &line->inputs, status);
}

static void free_texts(CommandLine *line)
{
    free(settings_of(line)->default_output);
    free(settings_of(line)->cut);
}

static const CommandLineTool tool = {"tilus-llc", reset, read_line, check, free_texts};

bool settings_parse(LlcSettings *s, int argc, char **argv, int *status)
{
    return command_line_parse(&tool, &s->line, argc, argv, status);
}

void settings_free(LlcSettings *s)
{
    command_line_free(&tool, &s->line);
}
