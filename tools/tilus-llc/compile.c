/* From the input file to the output file. The output is written once, at the
 * end: a compile that fails leaves an older one alone. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"
#include "common/reproducer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

double seconds_now(void)
{
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Where time went, in seconds. */
typedef struct Times {
    double parse, passes, ptxas;
    tilus_compile_times compile;
} Times;

static void print_times(const Times *t)
{
    fprintf(stderr, "parse  %8.3f ms\npasses %8.3f ms\nLLVM   %8.3f ms\nPTX    %8.3f ms\n",
            1e3 * t->parse, 1e3 * t->passes, 1e3 * t->compile.llvm_seconds,
            1e3 * t->compile.ptx_seconds);
    if (t->ptxas > 0)
        fprintf(stderr, "ptxas  %8.3f ms\n", 1e3 * t->ptxas);
}

/* Code generation, after the passes; NULL after errors. */
static char *generate(const LlcSettings *s, tilus_module *m, Reproducer *reproducer,
                      Times *times)
{
    const tilus_compile_options options = {
        .cpu = s->cpu,
        .features = s->features,
        .opt_level = s->opt_level,
        .output = s->emit_llvm ? TILUS_OUTPUT_LLVM_IR : TILUS_OUTPUT_PTX,
        .debug_lines = s->debug_lines,
    };
    if (s->cast_plans)
        return tilus_cast_plans(m, s->cpu, s->cast_plans == CAST_PLANS_OPERATIONS);
    char *module = tilus_print(m);
    if (!module || s->stop_after)
        return module;
    reproducer_stage_module(reproducer, module);
    free(module);
    if (s->print_llvm_before || s->print_llvm_after)
        tilus_print_llvm_passes(s->print_llvm_before, s->print_llvm_after);
    char *text = tilus_compile(m, &options, &times->compile);
    if (!text)
        reproducer_note_failure(reproducer);
    return text;
}

/* The bytes to write for `m`, malloc'ed; NULL after errors. */
static char *compile_module(const LlcSettings *s, tilus_module *m, Reproducer *reproducer,
                            Times *times, size_t *size)
{
    tilus_pass_options passes = s->passes.options;
    passes.observe = reproducer_observe;
    passes.observer = reproducer;
    double start = seconds_now();
    if (!tilus_run_passes(m, s->pipeline, &passes))
        return NULL;
    times->passes = seconds_now() - start;
    char *text = generate(s, m, reproducer, times);
    *size = text ? strlen(text) : 0;
    return text;
}

/* The same for program text; prints diagnostics. */
static char *compile_text(const LlcSettings *s, const char *source, size_t len,
                          Reproducer *reproducer, Times *times, size_t *size)
{
    tilus_diag *diag = tilus_diag_new();
    const char *file = strcmp(s->input, "-") ? s->input : "<stdin>";
    char *text = NULL;
    double start = seconds_now();
    if (diag)
        limits_set("tilus-llc", &s->passes.limits, diag);
    tilus_module *m = diag ? tilus_parse(diag, file, source, len, 1, s->defines,
                                         s->define_count) : NULL;
    times->parse = seconds_now() - start;
    if (m)
        text = compile_module(s, m, reproducer, times, size);
    if (diag)
        tilus_diag_print(diag, stderr);
    if (!text && (!diag || !tilus_diag_errors(diag)))
        fprintf(stderr, "%s: error: out of memory\n", file);
    tilus_module_free(m);
    tilus_diag_free(diag);
    return text;
}

/* The options of code generation, as a reproducer repeats them; malloc'ed. */
static char *codegen_flags(const LlcSettings *s)
{
    char *flags = NULL;
    size_t size;
    FILE *out = open_memstream(&flags, &size);
    if (!out)
        return NULL;
    if (s->features)
        reproducer_add_option(out, "mattr", s->features);
    fprintf(out, " -O%u%s%s", s->opt_level, s->emit_llvm ? " --emit-llvm" : "",
            s->debug_lines ? " -g" : "");
    if (fclose(out) == 0)
        return flags;
    free(flags);
    return NULL;
}

/* Compiles program text, and what reproduces its failure. */
static char *compile_staged(const LlcSettings *s, const char *source, size_t len, Times *times,
                            size_t *size)
{
    Reproducer r;
    char *flags = codegen_flags(s), *bytes = NULL;
    if (!flags) {
        fprintf(stderr, "tilus-llc: error: out of memory\n");
    } else if (reproducer_open(&r, "tilus-llc", s->input, &s->passes, &s->define_texts,
                               flags)) {
        reproducer_stage_input(&r, s->pipeline, source, len);
        bytes = compile_text(s, source, len, &r, times, size);
        reproducer_close(&r);
    }
    free(flags);
    return bytes;
}

/* Replaces PTX by the cubin that ptxas makes of it. */
static char *assemble_timed(const LlcSettings *s, char *ptx, Times *times, size_t *size)
{
    double start = seconds_now();
    char *cubin = assemble(s->cpu, ptx, size);
    times->ptxas = seconds_now() - start;
    free(ptx);
    return cubin;
}

int print_all_cast_plans(const LlcSettings *s)
{
    tilus_diag *diag = tilus_diag_new();
    char *text = diag ? tilus_all_cast_plans(diag, s->cpu,
                                             s->cast_plans == CAST_PLANS_OPERATIONS) : NULL;
    if (text)
        fputs(text, stdout);
    else if (diag && tilus_diag_errors(diag))
        tilus_diag_print(diag, stderr);
    else
        fprintf(stderr, "tilus-llc: error: out of memory\n");
    tilus_diag_free(diag);
    int status = text ? EXIT_OK : EXIT_DIAGNOSTICS;
    free(text);
    return status;
}

int compile_input(LlcSettings *s)
{
    char *source;
    size_t len, size = 0;
    Times times = {0};
    if (!file_read("tilus-llc", s->input, TEXT_SIZE_MAX, &source, &len))
        return EXIT_DIAGNOSTICS;
    char *bytes = NULL;
    if (!s->passes.remarks ||
        (s->passes.options.remarks_file = file_open("tilus-llc", s->passes.remarks)))
        bytes = compile_staged(s, source, len, &times, &size);
    bool written = file_close("tilus-llc", s->passes.remarks, s->passes.options.remarks_file);
    free(source);
    if (bytes && s->file_type == FILE_OBJ && !s->stop_after && !s->cast_plans)
        bytes = assemble_timed(s, bytes, &times, &size);
    bool ok = written && bytes && (s->file_type == FILE_NULL ||
                        file_write("tilus-llc", s->output, bytes, size));
    free(bytes);
    if (ok && s->time)
        print_times(&times);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
