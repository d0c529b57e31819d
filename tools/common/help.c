/* Help, man page and list of options, from a tool's table of options and manual.def. */
#include "common/help.h"

#include "tilus/version.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static const struct {
    const char *tool, *purpose, *commands;
} examples[] = {
#define EXAMPLE(tool, purpose, commands) {tool, purpose, commands},
#include "common/manual.def"
};

static const struct {
    const char *variable, *readers, *meaning;
} environment[] = {
#define ENVIRONMENT(variable, readers, meaning) {variable, readers, meaning},
#include "common/manual.def"
};

static const struct {
    const char *tool, *failure;
} statuses[] = {
#define STATUS(tool, failure) {tool, failure},
#include "common/manual.def"
};

static const Option help_option = {"help", NULL, "print this text", OPTION_FLAG, NULL, NULL};

const char *option_dashes(const char *name)
{
    return name[1] ? "--" : "-";
}

static bool is_example_of(const ToolInfo *tool, size_t i)
{
    return strcmp(examples[i].tool, tool->name) == 0;
}

/* Tells whether the tool's name is among the words that say who reads a variable. */
static bool is_read_by(const ToolInfo *tool, size_t i)
{
    size_t len = strlen(tool->name);
    for (const char *at = environment[i].readers; *at; at += at[0] == ' ') {
        size_t word = strcspn(at, " ");
        if (word == len && strncmp(at, tool->name, len) == 0)
            return true;
        at += word;
    }
    return false;
}

/* ---- help ------------------------------------------------------------- */

/* Returns true when the values of an option are words of its own. */
static bool has_choices(const Option *o)
{
    return o->kind == OPTION_CHOICE || o->kind == OPTION_MODE;
}

/* The bracket before a value that may be left out. */
static const char *open_bracket(const Option *o)
{
    return o->kind == OPTION_MODE ? "[" : "";
}

/* The left column of the help, "--name=<metavar>"; returns its width. */
static int format_spelling(const Option *o, char *out, size_t size)
{
    int n = snprintf(out, size, "%s%s", option_dashes(o->name), o->name);
    const char *gap = o->name[1] ? "=" : " ";
    if (o->metavar)
        n += snprintf(out + n, size - (size_t)n, "%s<%s>", gap, o->metavar);
    for (size_t i = 0; has_choices(o) && o->choices[i] && (size_t)n < size; i++)
        n += snprintf(out + n, size - (size_t)n, "%s%s%s", i == 0 ? open_bracket(o) : "",
                      i ? "|" : gap, o->choices[i]);
    if (o->kind == OPTION_MODE && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, "]");
    return n;
}

static void print_examples(const ToolInfo *tool)
{
    const char *title = "\nEXAMPLES:\n";
    for (size_t i = 0; i < COUNT(examples); i++) {
        if (!is_example_of(tool, i))
            continue;
        printf("%s  # %s\n", title, examples[i].purpose);
        for (const char *at = examples[i].commands; *at; at += at[0] == '\n') {
            int len = (int)strcspn(at, "\n");
            printf("  %.*s\n", len, at);
            at += len;
        }
        title = "";
    }
}

static void print_environment(const ToolInfo *tool)
{
    const char *title = "\nENVIRONMENT:\n";
    for (size_t i = 0; i < COUNT(environment); i++)
        if (is_read_by(tool, i)) {
            printf("%s  %-16s  %s\n", title, environment[i].variable, environment[i].meaning);
            title = "";
        }
}

void help_print(const ToolInfo *tool, const Option *table, size_t count)
{
    char spelling[256];
    int width = 0;
    for (size_t i = 0; i < count; i++) {
        int n = format_spelling(&table[i], spelling, sizeof spelling);
        width = n > width && n <= 30 ? n : width;
    }
    printf("OVERVIEW: %s\n\nUSAGE: %s %s\n", tool->summary, tool->name, tool->usage);
    printf("%s%s\nOPTIONS:\n", tool->details ? "\n" : "", tool->details ? tool->details : "");
    for (size_t i = 0; i <= count; i++) {
        const Option *o = i < count ? &table[i] : &help_option;
        int n = format_spelling(o, spelling, sizeof spelling);
        printf("  %s%s%*s  %s\n", spelling, n > width ? "\n  " : "",
               n > width ? width : width - n, "", o->help);
    }
    print_examples(tool);
    print_environment(tool);
}

void help_print_environment(void)
{
    printf("| variable | read by | |\n|---|---|---|\n");
    for (size_t i = 0; i < COUNT(environment); i++) {
        printf("| `%s` | ", environment[i].variable);
        for (const char *at = environment[i].readers; *at; at++) {
            if (*at == ' ')
                putchar(',');
            putchar(*at);
        }
        printf(" | %s |\n", environment[i].meaning);
    }
}

/* ---- man page ------------------------------------------------------------- */

/* Prints text in which nothing is markup. */
static void print_roff(const char *text)
{
    bool begins_line = true;
    for (; *text; text++) {
        if (begins_line && (*text == '.' || *text == '\''))
            fputs("\\&", stdout);
        begins_line = *text == '\n';
        switch (*text) {
        case '\\': fputs("\\e", stdout); break;
        case '-': fputs("\\-", stdout); break;
        case '\'': fputs("\\(aq", stdout); break;
        case '`': fputs("\\(ga", stdout); break;
        case '^': fputs("\\(ha", stdout); break;
        case '~': fputs("\\(ti", stdout); break;
        default: putchar(*text);
        }
    }
}

static void print_roff_in(char font, const char *text)
{
    printf("\\f%c", font);
    print_roff(text);
    fputs("\\fR", stdout);
}

static void print_roff_option(const Option *o)
{
    const char *gap = o->name[1] ? "=" : " ";
    fputs(".TP\n\\fB", stdout);
    print_roff(option_dashes(o->name));
    print_roff(o->name);
    fputs("\\fR", stdout);
    if (o->metavar) {
        fputs(gap, stdout);
        print_roff_in('I', o->metavar);
    }
    for (size_t i = 0; has_choices(o) && o->choices[i]; i++) {
        printf("%s%s", i == 0 ? open_bracket(o) : "", i ? "|" : gap);
        print_roff_in('B', o->choices[i]);
    }
    if (o->kind == OPTION_MODE)
        putchar(']');
    putchar('\n');
    print_roff(o->help);
    putchar('\n');
}

static void print_roff_title(const ToolInfo *tool)
{
    fputs(".TH ", stdout);
    for (const char *p = tool->name; *p; p++)
        putchar(toupper((unsigned char)*p));
    printf(" 1 \"\" \"Tilus %s\" \"User Commands\"\n.SH NAME\n", TILUS_VERSION_STRING);
    print_roff(tool->name);
    fputs(" \\- ", stdout);
    print_roff(tool->summary);
    fputs("\n.SH SYNOPSIS\n", stdout);
    print_roff_in('B', tool->name);
    putchar(' ');
    print_roff(tool->usage);
    putchar('\n');
}

static void print_roff_examples(const ToolInfo *tool)
{
    const char *title = ".SH EXAMPLES\nThey work in a folder that has kernels/: a checkout, or "
                        "share/tilus below\nthe prefix of an installation.\n";
    for (size_t i = 0; i < COUNT(examples); i++)
        if (is_example_of(tool, i)) {
            printf("%s.PP\n", title);
            print_roff(examples[i].purpose);
            fputs(":\n.PP\n.EX\n", stdout);
            print_roff(examples[i].commands);
            fputs("\n.EE\n", stdout);
            title = "";
        }
}

static void print_roff_environment(const ToolInfo *tool)
{
    const char *title = ".SH ENVIRONMENT\n";
    for (size_t i = 0; i < COUNT(environment); i++)
        if (is_read_by(tool, i)) {
            printf("%s.TP\n", title);
            print_roff_in('B', environment[i].variable);
            putchar('\n');
            print_roff(environment[i].meaning);
            putchar('\n');
            title = "";
        }
}

static void print_roff_status(const ToolInfo *tool)
{
    fputs(".SH EXIT STATUS\n"
          "0 on success, 1 when the input is wrong or something failed, 2 when the command\n"
          "line is wrong.\n", stdout);
    for (size_t i = 0; i < COUNT(statuses); i++)
        if (strcmp(statuses[i].tool, tool->name) == 0) {
            fputs("It is 1, too, ", stdout);
            print_roff(statuses[i].failure);
            fputs(".\n", stdout);
        }
}

/* Names the other tools that have examples, and the page of the language. */
static void print_roff_see_also(const ToolInfo *tool)
{
    fputs(".SH SEE ALSO\n", stdout);
    for (size_t i = 0; i < COUNT(examples); i++) {
        if (is_example_of(tool, i) || (i && !strcmp(examples[i].tool, examples[i - 1].tool)))
            continue;
        fputs(".BR ", stdout);
        print_roff(examples[i].tool);
        fputs(" (1),\n", stdout);
    }
    fputs(".BR tilus (7)\n", stdout);
}

void help_print_man(const ToolInfo *tool, const Option *table, size_t count)
{
    print_roff_title(tool);
    if (tool->details) {
        fputs(".SH DESCRIPTION\n.nf\n", stdout);
        print_roff(tool->details);
        fputs(".fi\n", stdout);
    }
    fputs(".SH OPTIONS\nOne dash or two mean the same.\n", stdout);
    for (size_t i = 0; i < count; i++)
        print_roff_option(&table[i]);
    print_roff_option(&help_option);
    print_roff_examples(tool);
    print_roff_environment(tool);
    print_roff_status(tool);
    print_roff_see_also(tool);
}

/* ---- list for the shell ----------------------------------------------------- */

void help_print_options(const Option *table, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Option *o = &table[i];
        const char *dashes = option_dashes(o->name);
        bool joined = o->kind != OPTION_FLAG && o->kind != OPTION_MODE && o->name[1];
        for (size_t j = 0; o->choices && o->choices[j]; j++)
            printf("%s%s=%s\n", dashes, o->name, o->choices[j]);
        if (o->kind != OPTION_CHOICE)
            printf("%s%s%s\n", dashes, o->name, joined ? "=" : "");
    }
    printf("--help\n");
}
