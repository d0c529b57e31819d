/* Processes the input of tilus-opt. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"
#include "common/reproducer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool report_no_memory(void)
{
    fputs("tilus-opt: error: out of memory\n", stderr);
    return false;
}

int print_version(void)
{
    printf("tilus %s (%s), LLVM %s\n", tilus_version(), tilus_git_revision(),
           tilus_llvm_version());
    return EXIT_OK;
}

int print_ops(void)
{
    char *text = tilus_op_reference();
    if (text)
        fputs(text, stdout);
    else
        report_no_memory();
    free(text);
    return text ? EXIT_OK : EXIT_DIAGNOSTICS;
}

/* The least positive value of a float: that of code 0 (ue8m0), or of the lowest
 * bit that is not ignored. */
static double least_positive(const char *type)
{
    double value = tilus_decode(type, 0);
    for (uint64_t code = 1; value == 0; code <<= 1)
        value = tilus_decode(type, code);
    return value;
}

/* Every column follows from decode and encode, which define the type. */
static void print_type(const char *type)
{
    bool has_infinity = isinf(tilus_decode(type, tilus_encode(type, INFINITY)));
    bool has_nan = isnan(tilus_decode(type, tilus_encode(type, NAN)));
    printf("| `%s` | %u | %.10g | %.10g |", type, tilus_type_bits(type), tilus_type_min(type),
           tilus_type_max(type));
    if (tilus_type_is_float(type))
        printf(" %.10g", least_positive(type));
    printf(" | %s | %s |\n", has_infinity ? "yes" : "", has_nan ? "yes" : "");
}

int print_types(void)
{
    printf("| type | bits | least | largest | least positive | infinity | NaN |\n"
           "|---|---|---|---|---|---|---|\n");
    for (size_t i = 0; tilus_type_name(i); i++)
        print_type(tilus_type_name(i));
    return EXIT_OK;
}

static void print_pass_options(const char *pass)
{
    tilus_pass_option o = {.struct_size = sizeof o};
    for (size_t i = 0; tilus_pass_option_at(i, &o); i++) {
        if (strcmp(o.pass, pass) != 0)
            continue;
        bool flag = o.least == 0 && o.most == 1;
        printf("  {%s%s} %*s%s", o.name, flag ? "" : "=N", 15 - (int)strlen(o.name) - 2 * !flag, "",
               o.summary);
        if (!flag)
            printf(" (%lld .. %lld, default %lld)", (long long)o.least, (long long)o.most,
                   (long long)o.value);
        putchar('\n');
    }
}

int print_passes(void)
{
    for (size_t i = 0; tilus_pass_name(i); i++) {
        printf("%-20s %s\n", tilus_pass_name(i), tilus_pass_summary(i));
        print_pass_options(tilus_pass_name(i));
    }
    return EXIT_OK;
}

/* Prints the names of a remark's arguments, `Bytes` or `Op` (text). */
static void print_arguments(const char *text)
{
    static const char *const types[] = {"int", "real", "text"};
    bool first = true;
    for (const char *p = text; (p = strchr(p, '{')); p++)
        for (size_t i = 0; i < COUNT(types); i++) {
            const char *word = p + 1 + (p[1] == '-');
            size_t len = strlen(types[i]);
            if (strncmp(word, types[i], len) || word[len] != ' ')
                continue;
            word += len + 1;
            printf("%s`%.*s` %s", first ? "" : ", ", (int)strcspn(word, "}"), word, types[i]);
            first = false;
        }
}

/* Prints the text, with the name of each value in the place of it; a blank keeps those apart that
 * touch. */
static void print_remark_text(const char *text)
{
    bool after_value = false;
    for (; *text; text++) {
        if (*text != '{') {
            putchar(*text);
            after_value = false;
            continue;
        }
        const char *end = strchr(text, '}'), *name = strchr(text, ' ') + 1;
        if (text[1] == 's')
            putchar('s');
        else if (text[1] != '-')
            printf("%s*%.*s*", after_value ? " " : "", (int)(end - name), name);
        after_value = true;
        text = end;
    }
}

/* Prints a row of the page docs/remarks.md. */
static void print_remark(const tilus_remark_info *r)
{
    printf("| `%s` | %s | ", r->name, r->kind == TILUS_REMARK_PASSED ? "passed" : "missed");
    print_remark_text(r->text);
    printf(" | %s | %s | ", r->meaning, r->cure ? r->cure : "");
    print_arguments(r->text);
    puts(" |");
}

int print_remarks(void)
{
    tilus_remark_info r = {.struct_size = sizeof r};
    const char *pass = "";
    for (size_t i = 0; tilus_remark_at(i, &r); i++) {
        if (strcmp(pass, r.pass))
            printf("%s## %s\n\n| remark | kind | text | it means | what to do | arguments |\n"
                   "|---|---|---|---|---|---|\n", *pass ? "\n" : "", r.pass);
        pass = r.pass;
        print_remark(&r);
    }
    return EXIT_OK;
}

int print_pipeline(const OptSettings *s)
{
    puts(*s->pipeline ? s->pipeline : tilus_default_pipeline());
    return EXIT_OK;
}

int print_limits(void)
{
    limits_print();
    return EXIT_OK;
}

int print_warnings(void)
{
    warnings_print();
    return EXIT_OK;
}

/* The output so far, of all chunks. */
typedef struct Output {
    char *text;
    size_t len;
} Output;

static bool append(Output *out, const char *text)
{
    size_t len = strlen(text);
    char *longer = realloc(out->text, out->len + len + 1);
    if (!longer)
        return report_no_memory();
    memcpy(longer + out->len, text, len + 1);
    out->text = longer;
    out->len += len;
    return true;
}

static bool run_and_print(const OptSettings *s, tilus_module *m, Reproducer *reproducer,
                          Output *out)
{
    tilus_pass_options passes = s->line.passes.options;
    passes.observe = reproducer_observe;
    passes.observer = reproducer;
    if (!tilus_run_passes(m, s->pipeline, &passes))
        return false;
    char *text = tilus_print(m);
    bool ok = text && append(out, text);
    free(text);
    return ok;
}

/* True when the text gave no errors, or just the expected ones. */
static bool process_staged(const OptSettings *s, const char *text, size_t len,
                           unsigned first_line, Reproducer *reproducer, Output *out)
{
    const char *file = strcmp(s->line.input, "-") ? s->line.input : "<stdin>";
    tilus_diag *diag = tilus_diag_new();
    if (!diag)
        return report_no_memory();
    limits_set("tilus-opt", &s->line.passes.limits, diag);
    import_paths_set(&s->line.passes.import_paths, diag);
    warnings_set("tilus-opt", &s->line.passes.warnings, diag);
    tilus_module *m = tilus_parse(diag, file, text, len, first_line, s->line.defines,
                                  s->line.define_count);
    bool ok = m && run_and_print(s, m, reproducer, out);
    if (s->verify_diagnostics) {
        ok = expectations_hold(diag, file, text, len, first_line);
    } else {
        tilus_diag_write(diag, NULL, NULL);
        if (!ok && !tilus_diag_errors(diag))
            fprintf(stderr, "%s: error: out of memory\n", file);
    }
    tilus_module_free(m);
    tilus_diag_free(diag);
    return ok;
}

/* Processes one chunk of text, with a reproducer of its failure. */
static bool process_chunk(const OptSettings *s, const char *text, size_t len,
                          unsigned first_line, Output *out)
{
    Reproducer r;
    if (!reproducer_open(&r, "tilus-opt", s->line.input, &s->line.passes, &s->line.define_texts, ""))
        return false;
    reproducer_stage_input(&r, s->pipeline, text, len);
    bool ok = process_staged(s, text, len, first_line, &r, out);
    reproducer_close(&r);
    return ok;
}

/* The end of the chunk at `text`: at the next line that begins with // -----,
 * or at the end. */
static const char *chunk_end(const char *text, const char *end)
{
    static const char mark[] = "// -----";
    for (const char *p = text; p < end;) {
        if ((size_t)(end - p) >= sizeof mark - 1 && !memcmp(p, mark, sizeof mark - 1))
            return p;
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        p = newline ? newline + 1 : end;
    }
    return end;
}

static unsigned count_lines(const char *from, const char *to)
{
    unsigned lines = 0;
    for (; from < to; from++)
        lines += *from == '\n';
    return lines;
}

static bool process_text(const OptSettings *s, const char *text, size_t len, Output *out)
{
    bool ok = true;
    const char *end = text + len, *chunk = text;
    for (unsigned line = 1;;) {
        const char *stop = s->split_input ? chunk_end(chunk, end) : end;
        if (chunk != text && !s->verify_diagnostics)
            ok &= append(out, "\n// -----\n");
        ok &= process_chunk(s, chunk, (size_t)(stop - chunk), line, out);
        if (stop == end)
            return ok;
        const char *newline = memchr(stop, '\n', (size_t)(end - stop));
        const char *next = newline ? newline + 1 : end;
        line += count_lines(chunk, next);
        chunk = next;
    }
}

int process_input(OptSettings *s)
{
    char *text;
    size_t len;
    if (!file_check_output("tilus-opt", s->line.input, s->output) ||
        !file_read("tilus-opt", s->line.input, TEXT_SIZE_MAX, &text, &len))
        return EXIT_DIAGNOSTICS;
    Output out = {0};
    bool ok = pass_settings_open(&s->line.passes, "tilus-opt") &&
              process_text(s, text, len, &out);
    ok = pass_settings_close(&s->line.passes, "tilus-opt") && ok;
    if (ok && !s->verify_diagnostics)
        ok = file_write("tilus-opt", s->output, out.text ? out.text : "", out.len);
    free(out.text);
    free(text);
    return ok ? EXIT_OK : EXIT_DIAGNOSTICS;
}
