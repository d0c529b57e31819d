/* The command line of matmul_bench. */
#include "bench.h"

#include "common/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- the command line ----------------------------------------------------------- */

typedef struct Line {
    Settings *settings;
    const char *n, *k, *group, *sizes;
    int zeros;
    bool loaded;
    StringList inputs;
} Line;

static const char *const zero_kinds[] = {"none", "integer", "float", NULL};

static bool wrong(const char *option, const char *value, const char *wanted)
{
    fprintf(stderr, BENCH_USER ": --%s=%s: %s\n", option, value, wanted);
    return false;
}

/* The number at *text, which ends there or at a comma. */
static bool read_number(const char **text, int64_t least, int64_t most, int64_t *number)
{
    char *end;
    if (**text < '0' || **text > '9')
        return false;
    *number = strtoimax(*text, &end, 10);
    if ((*end && *end != ',') || *number < least || *number > most)
        return false;
    *text = *end ? end + 1 : end;
    return !*end || **text;
}

static bool read_extent(const char *option, const char *value, int64_t *extent)
{
    const char *at = value;
    if (!value)
        return wrong(option, "", "which must be given, is a number");
    if (strchr(value, ',') || !read_number(&at, 0, INT64_C(1) << 40, extent))
        return wrong(option, value, "wants a number");
    return true;
}

static bool read_sizes(Settings *s, const char *value)
{
    const char *at = value;
    for (s->size_count = 0; *at || s->size_count == 0; s->size_count++)
        if (s->size_count == SIZES_MAX ||
            !read_number(&at, 1, M_MAX, &s->sizes[s->size_count]))
            return wrong("m", value, "wants up to 32 numbers of 1 to 65536, as in 1,16");
    return true;
}

static bool parse_line(Line *line, int argc, char **argv, int *status)
{
    static const ToolInfo tool = {
        TOOL, "measure a product with packed weights", "[options]",
        "Prints CSV: a header, and a row for each m. bench/README.md says how it measures.\n"};
    Settings *s = line->settings;
    tilus_matmul_problem *p = &s->problem;
    const Option table[] = {
        {"weights", "type", "u1 to u8, i1 to i8, f3e1m1 to f8e7m0", OPTION_STRING, &p->weights,
         NULL},
        {"activations", "type", "of A; default f16", OPTION_STRING, &p->activations, NULL},
        {"scales", "type", "f16, bf16 or f8e4m3; default bf16 where A is, else f16", OPTION_STRING,
         &p->scales, NULL},
        {"product", "type", "that tensor cores multiply: f8e4m3, i8; default f16 or bf16", OPTION_STRING,
         &p->product, NULL},
        {"gated", NULL, "C is silu(A x gate) * (A x up), of weights whose first n / 2 columns are gate",
         OPTION_FLAG, &p->gated, NULL},
        {"n", "extent", "columns of the weights", OPTION_STRING, &line->n, NULL},
        {"k", "extent", "rows of the weights", OPTION_STRING, &line->k, NULL},
        {"group", "extent", "of k with one scale, 0 is all; default 128", OPTION_STRING,
         &line->group, NULL},
        {"zeros", NULL, "zero points", OPTION_CHOICE, &line->zeros, zero_kinds},
        {"m", "list", "rows of A, one after the other; default 1", OPTION_STRING, &line->sizes,
         NULL},
        {"kernels", "folder", "where artefacts lie", OPTION_STRING, &s->kernels, NULL},
        {"tunings", "file", "as tilus-tune exports them", OPTION_STRING, &s->tunings, NULL},
        {"no-cublas", NULL, "leave cuBLAS out, which has no gates anyway", OPTION_FLAG, &s->no_cublas, NULL},
        {"rotate", "MB", "of all copies of the weights, of which 2 are the least; default 512",
         OPTION_UNSIGNED, &s->rotate_mb, NULL},
        {"loaded", NULL, "measure under load, after half a second of it, not from rest",
         OPTION_FLAG, &line->loaded, NULL},
        {"seed", "number", "of the operands", OPTION_UNSIGNED, &s->seed, NULL},
        {"revision", "text", "of the sources, for the rows", OPTION_STRING, &s->revision,
         NULL},
        {"dry-run", NULL, "print the rows that would be measured on an H200", OPTION_FLAG,
         &s->dry_run, NULL},
        {"list-kernels", NULL, "print the artefacts that an H200 needs: name, program, -D",
         OPTION_FLAG, &s->list_kernels, NULL},
        {"list-space", NULL, "the same, of all configurations of @matmul for the last m",
         OPTION_FLAG, &s->list_space, NULL},
        {"device", NULL, "print the device's name and its driver, and do no more", OPTION_FLAG,
         &s->print_device, NULL},
    };
    return options_parse(&tool, table, COUNT(table), argc, argv, &line->inputs, status);
}

static bool read_line(Line *line)
{
    Settings *s = line->settings;
    tilus_matmul_problem *p = &s->problem;
    p->struct_size = sizeof *p;
    p->zeros = (tilus_zeros)line->zeros;
    p->function = p->gated ? TILUS_EPILOGUE_SILU : TILUS_EPILOGUE_NONE;
    s->state = line->loaded ? MEASURE_LOADED : MEASURE_RESTED;
    bool runs = !s->dry_run && !s->list_kernels && !s->list_space;
    if (line->inputs.count > 0)
        fprintf(stderr, BENCH_USER ": unexpected argument '%s'\n", line->inputs.items[0]);
    else if (s->print_device)
        return true;
    else if (!p->weights)
        wrong("weights", "", "which must be given, is a type");
    else if (!s->kernels && runs)
        wrong("kernels", "", "which must be given, is a folder");
    else if (strpbrk(s->revision, ",\"\n"))
        wrong("revision", s->revision, "has what CSV would have to quote");
    else
        return read_extent("n", line->n, &p->n) && read_extent("k", line->k, &p->k) &&
               read_extent("group", line->group, &p->group) && read_sizes(s, line->sizes);
    return false;
}

/* ---- all -------------------------------------------------------------------------- */

static int bench(Settings *s)
{
    MatmulSpec spec;
    char message[256];
    size_t size;
    if (s->print_device)
        return device_print();
    if (!matmul_spec(&s->problem, &spec, message, sizeof message)) {
        fprintf(stderr, BENCH_USER ": %s\n", message);
        return EXIT_USAGE;
    }
    if (s->tunings && !file_read(TOOL, s->tunings, TEXT_SIZE_MAX, &s->tunings_text, &size))
        return EXIT_DIAGNOSTICS;
    if (s->list_kernels || s->list_space)
        return s->list_kernels ? dry_kernels(s) : dry_space(s, &spec);
    row_print_header();
    return s->dry_run ? dry_rows(s) : device_measure(s, &spec);
}

int main(int argc, char **argv)
{
    Settings settings = {.revision = "unknown", .rotate_mb = 512, .seed = 1};
    Line line = {.settings = &settings, .group = "128", .sizes = "1"};
    int status;
    if (parse_line(&line, argc, argv, &status))
        status = read_line(&line) ? bench(&settings) : EXIT_USAGE;
    free(settings.tunings_text);
    string_list_free(&line.inputs);
    return status;
}
