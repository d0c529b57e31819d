/* Printing of remarks. */
#include "support/remark.h"

#include <regex.h>
#include <string.h>

static const char *const option_names[] = {"-Rpass", "-Rpass-missed"};

/* An expression is compiled for each use: it holds memory of its own, which no
 * jump out of an arena must leave behind. */
static bool matches(const char *wanted, const char *pass)
{
    regex_t regex;
    if (!wanted || regcomp(&regex, wanted, REG_EXTENDED | REG_NOSUB))
        return false;
    bool found = regexec(&regex, pass, 0, NULL, 0) == 0;
    regfree(&regex);
    return found;
}

bool remarks_check(const Remarks *remarks, Diag *diag)
{
    for (RemarkKind kind = REMARK_PASSED; kind <= REMARK_MISSED; kind++) {
        regex_t regex;
        char why[128];
        int error = remarks->wanted[kind]
                        ? regcomp(&regex, remarks->wanted[kind], REG_EXTENDED | REG_NOSUB) : 0;
        if (error) {
            regerror(error, &regex, why, sizeof why);
            return diag_error(diag, (Loc){0}, "%s=%s is no regular expression: %s",
                              option_names[kind], remarks->wanted[kind], why);
        }
        if (remarks->wanted[kind])
            regfree(&regex);
    }
    return true;
}

bool remarks_wanted(const Remarks *remarks)
{
    return remarks &&
           (remarks->wanted[REMARK_PASSED] || remarks->wanted[REMARK_MISSED] || remarks->file);
}

/* Writes `text` in single quotes, where YAML gives only the quote itself a meaning. */
static void write_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text; text++)
        fprintf(file, *text == '\'' ? "''" : "%c", *text);
    fputc('\'', file);
}

static const char *file_name(const Diag *diag, Loc loc)
{
    const char *file = diag_source(diag, loc)->file;
    return file ? file : "";
}

static void write_yaml(FILE *file, RemarkKind kind, const char *pass, const Diag *diag, Loc loc,
                       const char *text)
{
    fprintf(file, "--- !%s\nPass: %s\nDebugLoc: { File: ",
            kind == REMARK_PASSED ? "Passed" : "Missed", pass);
    write_quoted(file, file_name(diag, loc));
    fprintf(file, ", Line: %u, Column: %u }\nText: ", loc.line, loc.column);
    write_quoted(file, text);
    fprintf(file, "\n...\n");
}

void remark_emit(const Remarks *remarks, RemarkKind kind, const char *pass, Diag *diag, Loc loc,
                 const char *format, ...)
{
    bool print = remarks && matches(remarks->wanted[kind], pass);
    if (!print && !(remarks && remarks->file))
        return;
    ArenaMark mark = arena_mark(&diag->arena);
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(&diag->arena, format, args);
    va_end(args);
    if (print)
        fprintf(remarks->out, "%s:%u:%u: remark: %s [%s=%s]\n", file_name(diag, loc),
                loc.line, loc.column, text, option_names[kind], pass);
    if (remarks->file)
        write_yaml(remarks->file, kind, pass, diag, loc, text);
    arena_reset(&diag->arena, mark);
}
