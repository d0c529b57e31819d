/* Makes an artefact, or a header, of each program. */
#define _GNU_SOURCE
#include "tool.h"

#include "support/clock.h"
#include "tilus/artefact.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* The maker of machine code, the time that it takes, and what ptxas says. */
typedef struct Assembler {
    const LlcSettings *settings;
    Times *times;
    char *log;
    bool failed;
} Assembler;

static void *assemble_timed(void *data, const char *cpu, const char *ptx, size_t *size)
{
    Assembler *a = data;
    double start = clock_seconds();
    (void)cpu;      /* that of the settings */
    char *cubin = assemble(a->settings, ptx, size, &a->log);
    a->times->ptxas += clock_seconds() - start;
    a->failed = !cubin;
    return cubin;
}

/* "W=u4 BK=64", of the command line; NULL when memory runs out. */
static char *join_parameters(const LlcSettings *s)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    for (size_t i = 0; i < s->line.define_texts.count; i++)
        fprintf(out, "%s%s", i ? " " : "", s->line.define_texts.items[i]);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* ---- where it goes -------------------------------------------------- */

static bool is_folder(const char *path)
{
    struct stat info;
    size_t len = strlen(path);
    return (len > 0 && path[len - 1] == '/') ||
           (stat(path, &info) == 0 && S_ISDIR(info.st_mode));
}

/* The file for `program`; malloc'ed, NULL when memory runs out. */
static char *name_file(const LlcSettings *s, const char *program)
{
    const char *suffix = s->file_type == FILE_HEADER ? ".h" : ".tilusk";
    size_t len = strlen(s->output);
    const char *slash = len > 0 && s->output[len - 1] == '/' ? "" : "/";
    char *path;
    if (!is_folder(s->output))
        return strdup(s->output);
    return asprintf(&path, "%s%s%s%s", s->output, slash, program, suffix) < 0 ? NULL : path;
}

/* One file holds one program. */
static bool check_count(const LlcSettings *s, const tilus_module *m, Outputs *outputs)
{
    size_t count = tilus_program_count(m);
    if (s->program || count == 1 || is_folder(s->output))
        return true;
    if (count == 0)
        fprintf(stderr, "tilus-llc: error: '%s' has no program\n", input_name(s));
    else
        fprintf(stderr, "tilus-llc: error: '%s' has %zu programs, and '%s' holds one: choose with "
                "--program=name, or give a folder, -o folder/\n", input_name(s), count, s->output);
    outputs->reported = true;
    return false;
}

/* ---- what it is ----------------------------------------------------- */

/* Prints what no diagnostic says. */
static bool fail(const tilus_artefact_options *extra, tilus_status status, Outputs *outputs)
{
    const Assembler *assembler = extra->assembler;
    outputs->reported = assembler->failed;
    if (status != TILUS_ERROR_ARGUMENT)
        return false;
    fprintf(stderr, "tilus-llc: error: the artefact is larger than %d bytes, or the parameters "
            "'%s' are not UTF-8\n", TILUS_ARTEFACT_MAX, extra->parameters);
    outputs->reported = true;
    return false;
}

static bool make_one(const LlcSettings *s, tilus_module *m, const char *program,
                     const tilus_artefact_options *extra, Outputs *outputs)
{
    Assembler *assembler = extra->assembler;
    tilus_compile_times *sum = &assembler->times->compile, times = {.struct_size = sizeof times};
    const tilus_compile_options options = compile_options(s, program);
    void *bytes;
    size_t size;
    tilus_status status = tilus_compile_artefact(m, &options, extra, &times, &bytes, &size);
    sum->llvm_seconds += times.llvm_seconds;
    sum->ptx_seconds += times.ptx_seconds;
    bool quiet = !assembler->log || tilus_report_spills(m, assembler->log);
    free(assembler->log);
    assembler->log = NULL;
    if (status != TILUS_OK)
        return fail(extra, status, outputs);
    if (!quiet) {
        free(bytes);
        return false;
    }
    if (s->file_type == FILE_HEADER) {
        char *header = header_make(bytes, size);
        free(bytes);
        bytes = header;
        size = header ? strlen(header) : 0;
    }
    char *path = name_file(s, program);
    bool ok = false;
    if (bytes && path)
        ok = outputs_add(outputs, path, bytes, size);
    else
        free(bytes);
    free(path);
    return ok;
}

bool artefacts_make(const LlcSettings *s, tilus_module *m, Times *times, Outputs *outputs)
{
    Assembler assembler = {.settings = s, .times = times};
    tilus_artefact_options extra = {.struct_size = sizeof extra,
                                    .parameters = join_parameters(s), .assembler = &assembler};
    if (s->cubin == CUBIN_ALWAYS || (s->cubin == CUBIN_AUTO && assembler_wanted(s)))
        extra.assemble = assemble_timed;
    bool ok = extra.parameters && check_count(s, m, outputs);
    if (ok && s->program)
        ok = make_one(s, m, s->program, &extra, outputs);
    for (size_t i = 0; ok && !s->program && i < tilus_program_count(m); i++)
        ok = make_one(s, m, tilus_program_name(m, i), &extra, outputs);
    free((char *)extra.parameters);
    return ok;
}
