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
    return remarks && (remarks->wanted[REMARK_PASSED] || remarks->wanted[REMARK_MISSED] ||
                       remarks->file.write);
}

/* Writes `text` in single quotes, where YAML gives only the quote itself a meaning. */
static void write_quoted(const Writer *file, const char *text)
{
    writer_char(file, '\'');
    for (; *text; text++)
        if (*text == '\'')
            writer_add(file, "''");
        else
            writer_char(file, *text);
    writer_char(file, '\'');
}

static const char *file_name(const Diag *diag, Loc loc)
{
    const char *file = diag_source(diag, loc)->file;
    return file ? file : "";
}

static void write_yaml(const Writer *file, RemarkKind kind, const char *pass, const Diag *diag,
                       Loc loc, const char *text)
{
    writer_printf(file, "--- !%s\nPass: %s\nDebugLoc: { File: ",
            kind == REMARK_PASSED ? "Passed" : "Missed", pass);
    write_quoted(file, file_name(diag, loc));
    writer_printf(file, ", Line: %u, Column: %u }\nText: ", loc.line, loc.column);
    write_quoted(file, text);
    writer_printf(file, "\n...\n");
}

void remark_emit(const Remarks *remarks, RemarkKind kind, const char *pass, Diag *diag, Loc loc,
                 const char *format, ...)
{
    bool print = remarks && matches(remarks->wanted[kind], pass);
    if (!print && !(remarks && remarks->file.write))
        return;
    ArenaMark mark = arena_mark(&diag->arena);
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(&diag->arena, format, args);
    va_end(args);
    if (print) {
        writer_add(&remarks->out, file_name(diag, loc));
        writer_printf(&remarks->out, ":%u:%u: remark: ", loc.line, loc.column);
        writer_add(&remarks->out, text);
        writer_printf(&remarks->out, " [%s=%s]\n", option_names[kind], pass);
    }
    if (remarks->file.write)
        write_yaml(&remarks->file, kind, pass, diag, loc, text);
    arena_reset(&diag->arena, mark);
}
