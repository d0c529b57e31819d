/* tilus-matmul: the command line. */
#include "tilus-matmul/tool.h"

#include "common/file.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { M_MAX = 65536 };

bool fail(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs(TOOL ": error: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return false;
}

int64_t most_rows(const Settings *s)
{
    int64_t most = 1;
    for (size_t i = 0; i < s->m_count; i++)
        most = s->m[i] > most ? s->m[i] : most;
    return most;
}

/* ---- the command line ------------------------------------------------- */

static const char *const ranges[] = {"minmax", "absmax", NULL};
static const char *const layouts[] = {"nk", "kn", NULL};
static const char *const engines[] = {"cpu", "gpu", NULL};
static const char *const codes[] = {"none", "bytes", "compact", NULL};

static const ToolInfo tool = {
    TOOL, "plan, quantize, pack and compile matrix products with packed weights",
    "plan|kernels|pack|build|check|run [options] [file]",
    "  plan     print how products of -n x -k weights are computed for each of -m, and the\n"
    "           kernels that they need\n"
    "  kernels  compile these kernels to the folder -o; --list only lists them\n"
    "  pack     quantize and pack the matrices of a .npy or .safetensors file to the\n"
    "           .safetensors file -o, each with what it is among the metadata\n"
    "  build    do both for all of the file's matrices: -o is a folder with\n"
    "           weights.safetensors, kernels/ and manifest.json\n"
    "  check    verify such a file or folder: identities, sizes, checksums\n"
    "  run      quantize and pack one matrix, multiply, and compare with a product in f64 of\n"
    "           the quantized weights\n\n"
    "No command needs a GPU: --device is described by built-in figures, and products run on the\n"
    "CPU engine. The status is 1 when check or run finds something wrong.\n"};

static const struct {
    const char *name;
    int (*run)(const Settings *s);
    bool has_problem;           /* which wants --weights */
    bool has_extents;           /* -n and -k, and no file */
    bool has_output;
} commands[] = {
    {"plan", command_plan, true, true, false}, {"kernels", command_kernels, true, true, false},
    {"pack", command_pack, true, false, true}, {"build", command_build, true, false, true},
    {"check", command_check, false, false, false}, {"run", command_run, true, false, false},
};

static bool wrong(const char *format, const char *command)
{
    fail(format, command);
    return false;
}

/* Reads "1,16" of -m. */
static bool read_sizes(Settings *s)
{
    const char *at = s->sizes;
    do {
        char *end;
        int64_t m = strtoimax(at, &end, 10);
        if (*at < '0' || *at > '9' || (*end && *end != ',') || m < 1 || m > M_MAX ||
            s->m_count == SIZES_MAX)
            return fail("-m %s: up to %d numbers of 1 to %d are wanted, as in 1,16", s->sizes,
                        SIZES_MAX, M_MAX);
        s->m[s->m_count++] = m;
        at = *end ? end + 1 : end;
    } while (*at || at[-1] == ',');
    return true;
}

static bool check_command(const Settings *s, size_t i)
{
    const char *name = commands[i].name;
    size_t files = s->words.count - 1;
    if (commands[i].has_extents && files > 0)
        return fail("%s takes no '%s'", name, s->words.items[1]);
    if (!commands[i].has_extents && files != 1)
        return fail("%s takes one file, got %zu", name, files);
    if (commands[i].has_problem && !s->weights)
        return wrong("%s wants --weights=TYPE, u1 to u8, i1 to i8 or f3e1m1 to f8e7m0", name);
    if (commands[i].has_extents && (!s->n || !s->k))
        return wrong("%s wants -n and -k, the extents of the weights", name);
    if (s->experts && commands[i].run == command_run)
        return wrong("%s takes no --experts", name);
    if (commands[i].has_output && !s->output)
        return wrong("%s wants -o, where the result goes", name);
    return true;
}

static int run_command(Settings *s)
{
    const char *name = s->words.count ? s->words.items[0] : "";
    if (!read_sizes(s))
        return EXIT_USAGE;
    for (size_t i = 0; i < COUNT(commands); i++)
        if (strcmp(name, commands[i].name) == 0)
            return check_command(s, i) ? commands[i].run(s) : EXIT_USAGE;
    if (*name)
        fail("give one of plan, kernels, pack, build, check, run; got '%s'", name);
    else
        fail("a command is missing: give one of plan, kernels, pack, build, check, run");
    return EXIT_USAGE;
}

static int parse_and_run(Settings *s, int argc, char **argv)
{
    int status;
    const Option table[] = {
        {"weights", "type", "type of the weights: u1 to u8, i1 to i8, f3e1m1 to f8e7m0", OPTION_STRING,
         &s->weights, NULL},
        {"activations", "type", "type of A: f16, bf16, f8e4m3, f8e5m2, i8 (default f16)",
         OPTION_STRING, &s->activations, NULL},
        {"scales", "type", "type of scales: f16, bf16; for plan and kernels also f8e4m3 (default "
         "bf16 if A is bf16, else f16)",
         OPTION_STRING, &s->scales, NULL},
        {"result", "type", "type of C: f16, bf16, f32 (default the type of the scales)", OPTION_STRING,
         &s->result, NULL},
        {"product", "type", "type that tensor cores multiply: f8e4m3, i8 (default f16 or bf16)",
         OPTION_STRING, &s->product, NULL},
        {"group", "size", "number of k that share a scale; 0: all of k (default 128)", OPTION_UNSIGNED,
         &s->group, NULL},
        {"zeros", NULL, "zero points (default none)", OPTION_CHOICE, &s->zeros, zeros_names},
        {"function", NULL, "function of the sums, before they become C (default none)", OPTION_CHOICE, &s->function,
         function_names},
        {"gated", NULL, "compute function(A x gate) * (A x up), with gate in the first n / 2 columns of "
         "the weights and up in the others", OPTION_FLAG, &s->gated, NULL},
        {"n", "extent", "columns of the weights", OPTION_UNSIGNED, &s->n, NULL},
        {"k", "extent", "rows of the weights", OPTION_UNSIGNED, &s->k, NULL},
        {"n-tile", "size", "tile of the packed form, for parts of a matrix; 0: the best (default 0)",
         OPTION_UNSIGNED, &s->n_tile, NULL},
        {"experts", "count", "number of matrices of weights, each with its own rows of A; 0: one "
         "matrix for all rows (default 0)", OPTION_UNSIGNED, &s->experts, NULL},
        {"top", "count", "experts: rows of each token (default 1)", OPTION_UNSIGNED, &s->top, NULL},
        {"gather", NULL, "experts: A has a row for each token, which ids choose", OPTION_FLAG,
         &s->gather, NULL},
        {"scatter", NULL, "experts: rows of C are stored where ids say", OPTION_FLAG, &s->scatter, NULL},
        {"combine", NULL, "experts: C has the weighted sum of each token's rows", OPTION_FLAG,
         &s->combine, NULL},
        {"early-routing", NULL, "experts, combine: offsets, ids and routes were written before the launch in front",
         OPTION_FLAG, &s->early_routing, NULL},
        {"batch-invariant", NULL, "give a row of C the same bits in any batch", OPTION_FLAG,
         &s->batch_invariant, NULL},
        {"wide-range", NULL, "allow values from 8188 on in A of f16", OPTION_FLAG, &s->wide_range,
         NULL},
        {"m", "list", "numbers of rows of A (default 1,16)", OPTION_STRING, &s->sizes, NULL},
        {"device", "name", "device to plan and pack for (default h200)",
         OPTION_STRING, &s->device, NULL},
        {"target", "name", "compile for another target than the device's, such as sm_90", OPTION_STRING,
         &s->target, NULL},
        {"tunings", "file", "tunings that tilus-tune exported", OPTION_STRING, &s->tunings, NULL},
        {"layout", NULL, "layout of the file's matrices: [n, k], as PyTorch keeps them, or "
         "[k, n] (default nk)", OPTION_CHOICE, &s->layout, layouts},
        {"tensor", "pattern", "take tensors of the file whose names match; repeatable (default all "
         "matrices of floats)", OPTION_LIST, &s->tensors, NULL},
        {"codes", NULL, "the tensors hold codes, not floats to quantize: one in a byte, or "
         "without gaps (default none)", OPTION_CHOICE, &s->codes, codes},
        {"scales-suffix", "text", "suffix of the codes' name that names the tensor of their scales",
         OPTION_STRING, &s->scales_suffix, NULL},
        {"zeros-suffix", "text", "the same for zero points", OPTION_STRING, &s->zeros_suffix, NULL},
        {"range", NULL, "map the type's range to a group's least and largest value, or to its "
         "largest magnitude (default minmax)", OPTION_CHOICE, &s->range, ranges},
        {"clip-steps", "count", "number of smaller ranges to try for each group; the one with the "
         "least squared error is kept (default 0)", OPTION_UNSIGNED, &s->clip_steps, NULL},
        {"threads", "count", "number of threads that quantize and pack (default: all processors)",
         OPTION_UNSIGNED, &s->threads, NULL},
        {"jobs", "count", "number of processes that compile (default: all processors)",
         OPTION_UNSIGNED, &s->jobs, NULL},
        {"no-cubin", NULL, "leave out machine code, which is made if there is a ptxas",
         OPTION_FLAG, &s->no_cubin, NULL},
        {"list", NULL, "kernels: print name, program and parameters of each, compile nothing",
         OPTION_FLAG, &s->list, NULL},
        {"engine", NULL, "run: on the CPU engine, or on the first GPU (default cpu)",
         OPTION_CHOICE, &s->engine, engines},
        {"a", "file", "run: A as .npy, [m, k] of f4 or of the activations' type (default: made up, "
         "of the most rows of -m)", OPTION_STRING, &s->a, NULL},
        {"tolerance", "number", "run: of the error, relative to the norm of C (default 0.005)",
         OPTION_REAL, &s->tolerance, NULL},
        {"o", "path", "where the result goes", OPTION_STRING, &s->output, NULL},
    };
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &s->words, &status))
        return status;
    return run_command(s);
}

int main(int argc, char **argv)
{
    Settings s = {.group = 128, .sizes = "1,16", .device = "h200", .tolerance = 0.005};
    file_watch_output(TOOL);
    int status = parse_and_run(&s, argc, argv);
    string_list_free(&s.words);
    string_list_free(&s.tensors);
    return status;
}
