/* Compiles the input file to the output files. Outputs are written once, at the
 * end: a compile that fails leaves older ones alone. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"
#include "common/reproducer.h"
#include "support/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_times(const Times *t)
{
    fprintf(stderr, "parse  %8.3f ms\npasses %8.3f ms\nLLVM   %8.3f ms\nPTX    %8.3f ms\n",
            1e3 * t->parse, 1e3 * t->passes, 1e3 * t->compile.llvm_seconds,
            1e3 * t->compile.ptx_seconds);
    if (t->ptxas > 0)
        fprintf(stderr, "ptxas  %8.3f ms\n", 1e3 * t->ptxas);
}

tilus_compile_options compile_options(const LlcSettings *s, const char *program)
{
    return (tilus_compile_options){.struct_size = sizeof(tilus_compile_options),
        .cpu = s->cpu,
        .features = s->features,
        .opt_level = s->opt_level,
        .output = s->emit_llvm ? TILUS_OUTPUT_LLVM_IR : TILUS_OUTPUT_PTX,
        .debug_lines = s->debug_lines,
        .program = program,
    };
}

/* A text for all there is to compile, malloc'ed; NULL after errors. */
static char *make_text(const LlcSettings *s, tilus_module *m, Times *times)
{
    const tilus_compile_options options = compile_options(s, s->program);
    if (s->cast_plans)
        return tilus_cast_plans(m, s->cpu, s->cast_plans == CAST_PLANS_OPERATIONS);
    if (s->stop_after)
        return tilus_print(m);
    return tilus_compile(m, &options, &times->compile);
}

/* Assembles PTX, where a cubin is wanted or --ptxas is given, and warns of what spills. Returns
 * the cubin in place of the PTX where that is what is written. NULL after errors. */
static char *assemble_text(const LlcSettings *s, tilus_module *m, char *ptx, size_t *size,
                           Times *times, Outputs *outputs)
{
    double start = clock_seconds();
    size_t cubin_size = 0;
    char *log, *cubin = assemble(s, ptx, &cubin_size, &log);
    times->ptxas = clock_seconds() - start;
    outputs->reported = !cubin;
    bool ok = cubin && (!log || tilus_report_spills(m, log)), is_written = s->file_type == FILE_OBJ;
    free(log);
    char *kept = is_written ? cubin : ptx;
    free(is_written ? ptx : cubin);
    *size = is_written ? cubin_size : *size;
    if (ok)
        return kept;
    free(kept);
    return NULL;
}

static bool make_outputs(const LlcSettings *s, tilus_module *m, Times *times,
                         Outputs *outputs)
{
    if (settings_want_artefacts(s))
        return artefacts_make(s, m, times, outputs);
    char *text = make_text(s, m, times);
    size_t size = text ? strlen(text) : 0;
    bool is_ptx = !s->stop_after && !s->cast_plans;
    if (text && is_ptx && (s->file_type == FILE_OBJ || s->ptxas))
        text = assemble_text(s, m, text, &size, times, outputs);
    return text && outputs_add(outputs, s->output, text, size);
}

/* Code generation, after the passes; what reproduces its failure is kept. */
static bool generate(const LlcSettings *s, tilus_module *m, Reproducer *reproducer,
                     Times *times, Outputs *outputs)
{
    if (s->cast_plans || s->stop_after)
        return make_outputs(s, m, times, outputs);
    char *module = tilus_print(m);
    if (!module)
        return false;
    reproducer_stage_module(reproducer, module);
    free(module);
    if (s->print_llvm_before || s->print_llvm_after)
        tilus_print_llvm_passes(s->print_llvm_before, s->print_llvm_after);
    bool ok = make_outputs(s, m, times, outputs);
    if (!ok && !outputs->reported)
        reproducer_note_failure(reproducer);
    return ok;
}

/* Compiles `m` to outputs; false after errors. */
static bool compile_module(const LlcSettings *s, tilus_module *m, Reproducer *reproducer,
                           Times *times, Outputs *outputs)
{
    tilus_pass_options passes = s->line.passes.options;
    passes.observe = reproducer_observe;
    passes.observer = reproducer;
    double start = clock_seconds();
    if (!tilus_run_passes(m, s->pipeline, &passes))
        return false;
    times->passes = clock_seconds() - start;
    return generate(s, m, reproducer, times, outputs);
}

static void warn_of_cache(void *user, const char *message)
{
    (void)user;
    fprintf(stderr, "tilus-llc: warning: %s\n", message);
}

/* Compiles program text through a cache; false after errors, or without memory. */
static bool compile_cached(const LlcSettings *s, const char *file, const char *source, size_t len,
                           tilus_diag *diag, Outputs *outputs)
{
    const tilus_cache_options where = {.struct_size = sizeof where, .directory = s->cache,
                                       .warn = warn_of_cache};
    tilus_cache *cache = tilus_cache_open(&where);
    const tilus_jit_options options = {
        .struct_size = sizeof options, .file = file, .defines = s->line.defines,
        .define_count = s->line.define_count, .program = s->program, .target = s->cpu,
        .features = s->features, .opt_level = s->opt_level, .debug_lines = s->debug_lines,
        .cache = cache};
    void *bytes;
    size_t size;
    bool ok = tilus_jit(diag, source, len, &options, &bytes, &size) == TILUS_OK &&
              outputs_add(outputs, s->output, bytes, size);
    tilus_cache_close(cache);
    return ok;
}

/* Parses program text and compiles it to outputs; false after errors, or without memory. */
static bool compile_parsed(const LlcSettings *s, const char *file, const char *source, size_t len,
                           tilus_diag *diag, Reproducer *reproducer, Times *times,
                           Outputs *outputs)
{
    double start = clock_seconds();
    tilus_module *m = tilus_parse(diag, file, source, len, 1, s->line.defines,
                                  s->line.define_count);
    times->parse = clock_seconds() - start;
    bool ok = m && compile_module(s, m, reproducer, times, outputs);
    tilus_module_free(m);
    return ok;
}

typedef struct Template {
    const char *name, *file;
    long long optimized;
} Template;

/* The template that is the input; NULL: none. */
static const Template *find_template(const LlcSettings *s)
{
    static const Template templates[] = {
#define TEMPLATE(name, optimized) {#name, #name ".tilus", optimized},
#include "support/templates.def"
    };
    for (size_t i = 0; s->template && i < sizeof templates / sizeof *templates; i++)
        if (!strcmp(s->template, templates[i].name))
            return &templates[i];
    return NULL;
}

const char *input_name(const LlcSettings *s)
{
    const Template *t = find_template(s);
    if (s->input_name)
        return s->input_name;
    if (t)
        return t->file;
    return strcmp(s->line.input, "-") ? s->line.input : "<stdin>";
}

/* Gives the diagnostics what the command line says, and before it the template's own limit. */
static void set_diagnostics(const LlcSettings *s, tilus_diag *diag)
{
    const Template *t = find_template(s);
    if (t && t->optimized)
        tilus_set_limit(diag, "optimized", t->optimized);
    limits_set("tilus-llc", &s->line.passes.limits, diag);
    import_paths_set(&s->line.passes.import_paths, diag);
    warnings_set("tilus-llc", &s->line.passes.warnings, diag);
}

/* Compiles program text to outputs; prints diagnostics. */
static bool compile_text(const LlcSettings *s, const char *source, size_t len,
                         Reproducer *reproducer, Times *times, Outputs *outputs)
{
    tilus_diag *diag = tilus_diag_new();
    const char *file = input_name(s);
    bool ok = false;
    if (diag)
        set_diagnostics(s, diag);
    if (diag && s->cache)
        ok = compile_cached(s, file, source, len, diag, outputs);
    else if (diag)
        ok = compile_parsed(s, file, source, len, diag, reproducer, times, outputs);
    if (diag)
        tilus_diag_write(diag, NULL, NULL);
    if (!ok && !outputs->reported && (!diag || !tilus_diag_errors(diag)))
        fprintf(stderr, "%s: error: out of memory\n", file);
    tilus_diag_free(diag);
    return ok;
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
    if (s->program)
        reproducer_add_option(out, "program", s->program);
    fprintf(out, " -O%u%s%s", s->opt_level, s->emit_llvm ? " --emit-llvm" : "",
            s->debug_lines ? " -g" : "");
    if (fclose(out) == 0)
        return flags;
    free(flags);
    return NULL;
}

/* Compiles program text, with a reproducer of its failure. */
static bool compile_staged(const LlcSettings *s, const char *source, size_t len, Times *times,
                           Outputs *outputs)
{
    Reproducer r;
    bool ok = false;
    char *flags = codegen_flags(s);
    if (!flags) {
        fprintf(stderr, "tilus-llc: error: out of memory\n");
    } else if (reproducer_open(&r, "tilus-llc", s->line.input, &s->line.passes, &s->line.define_texts,
                               flags)) {
        reproducer_stage_input(&r, s->pipeline, source, len);
        ok = compile_text(s, source, len, &r, times, outputs);
        reproducer_close(&r);
    }
    free(flags);
    return ok;
}

int print_all_cast_plans(const LlcSettings *s)
{
    tilus_diag *diag = tilus_diag_new();
    char *text = diag ? tilus_all_cast_plans(diag, s->cpu,
                                             s->cast_plans == CAST_PLANS_OPERATIONS) : NULL;
    if (text)
        fputs(text, stdout);
    else if (diag && tilus_diag_errors(diag))
        tilus_diag_write(diag, NULL, NULL);
    else
        fprintf(stderr, "tilus-llc: error: out of memory\n");
    tilus_diag_free(diag);
    int status = text ? EXIT_OK : EXIT_DIAGNOSTICS;
    free(text);
    return status;
}

/* Reads the input, or copies the template; false after a message. */
static bool read_source(const LlcSettings *s, char **source, size_t *len)
{
    if (!s->template)
        return file_read("tilus-llc", s->line.input, TEXT_SIZE_MAX, source, len);
    const char *text = tilus_template_text(s->template, len);
    *source = malloc(*len + 1);
    if (*source)
        memcpy(*source, text, *len + 1);
    else
        fprintf(stderr, "tilus-llc: error: out of memory\n");
    return *source != NULL;
}

int compile_input(LlcSettings *s)
{
    char *source;
    size_t len;
    Times times = {.compile = {.struct_size = sizeof times.compile}};
    Outputs outputs = {0};
    if (!read_source(s, &source, &len))
        return EXIT_DIAGNOSTICS;
    bool ok = pass_settings_open(&s->line.passes, "tilus-llc") &&
              compile_staged(s, source, len, &times, &outputs);
    ok &= pass_settings_close(&s->line.passes, "tilus-llc");
    free(source);
    if (ok && s->file_type != FILE_NULL)
        ok = outputs_write(&outputs, s->line.input);
    outputs_free(&outputs);
    if (ok && s->time)
        print_times(&times);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
