/* tilus-dump: shows what is in an artefact, or takes a part of it out. It needs neither
 * the compiler nor the runtime. */
#include "tool.h"

#include "common/file.h"
#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOOL "tilus-dump"

typedef struct Settings {
    const char *cubin;          /* where it goes, or NULL */
    bool ptx, source, json;
    StringList inputs;
} Settings;

static bool parse_line(Settings *s, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        TOOL, "show a compiled program", "[options] [file | -]",
        "Shows what a file of tilus-llc --filetype=artefact has: the signature with its facts\n"
        "and its grid, the block, memory, the target. Refuses files that are damaged.\n"};
    const Option table[] = {
        {"ptx", NULL, "print the PTX", OPTION_FLAG, &s->ptx, NULL},
        {"source", NULL, "print the program text that was compiled", OPTION_FLAG, &s->source,
         NULL},
        {"cubin", "file", "write the machine code to file; - is standard output",
         OPTION_STRING, &s->cubin, NULL},
        {"json", NULL, "print everything but the contents as JSON", OPTION_FLAG, &s->json,
         NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->inputs, status))
        return false;
    *status = EXIT_USAGE;
    if (s->inputs.count > 1)
        fprintf(stderr, "%s: error: one input at a time, got '%s' and '%s'\n", TOOL,
                s->inputs.items[0], s->inputs.items[1]);
    else if (s->ptx + s->source + s->json + (s->cubin != NULL) > 1)
        fprintf(stderr, "%s: error: give one of --ptx, --source, --cubin and --json\n", TOOL);
    else
        return true;
    return false;
}

static bool write_cubin(const Settings *s, const File *file, const tilus_artefact *a)
{
    if (a->cubin)
        return file_check_output(TOOL, file->name, s->cubin) &&
               file_write(TOOL, s->cubin, a->cubin, a->cubin_size);
    fprintf(stderr, "%s: error: '%s' has no cubin, only PTX\n", TOOL, file->name);
    return false;
}

static bool show(const Settings *s, const File *file, const tilus_artefact *a)
{
    if (s->cubin)
        return write_cubin(s, file, a);
    if (s->ptx || s->source) {
        const char *text = s->ptx ? a->ptx : a->source;
        return file_write(TOOL, "-", text, strlen(text));
    }
    if (s->json)
        show_json(a, file);
    else
        show_table(a, file);
    return file_close(TOOL, "-", stdout);
}

/* The lowest byte of the version of an artefact's format, as far as readers know any: it
 * stands after the 8 that all artefacts begin with. */
static unsigned format_of(const char *bytes)
{
    enum { AT_VERSION = 8 };
    return (unsigned char)bytes[AT_VERSION];
}

static int dump(const Settings *s)
{
    File file = {.name = s->inputs.count ? s->inputs.items[0] : "-"};
    char message[512], *bytes;
    tilus_artefact *a;
    if (!file_read(TOOL, file.name, TILUS_ARTEFACT_MAX, &bytes, &file.size))
        return EXIT_DIAGNOSTICS;
    bool ok = tilus_artefact_read(bytes, file.size, &a, message, sizeof message) == TILUS_OK;
    if (ok)
        file.format = format_of(bytes);
    free(bytes);
    if (!ok)
        fprintf(stderr, "%s: error: '%s': %s\n", TOOL, file.name, message);
    ok = ok && show(s, &file, a);
    free(a);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}

int main(int argc, char **argv)
{
    Settings s = {0};
    int status;
    if (parse_line(&s, argc, argv, &status))
        status = dump(&s);
    string_list_free(&s.inputs);
    return status;
}
