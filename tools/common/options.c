/* Command lines by table. */
#include "common/options.h"

#include "common/file.h"
#include "common/help.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A parse: the arguments, and how far it is. */
typedef struct Parser {
    const char *tool;
    const Option *table;
    size_t count;
    int argc, next;
    char **argv;
} Parser;

bool string_list_add(StringList *list, const char *item)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? 2 * list->capacity : 8;
        const char **items = realloc(list->items, capacity * sizeof *items);
        if (!items)
            return false;
        list->items = items;
        list->capacity = capacity;
    }
    list->items[list->count++] = item;
    return true;
}

void string_list_free(StringList *list)
{
    free(list->items);
    *list = (StringList){0};
}

/* ---- unknown options ------------------------------------------------ */

static bool report_unknown(const Parser *p, const char *argument, const char *name, size_t len)
{
    Nearest nearest = {.name = name, .len = len};
    for (size_t i = 0; i < p->count; i++)
        nearest_try(&nearest, p->table[i].name);
    fprintf(stderr, "%s: error: unknown option '%s'", p->tool, argument);
    if (nearest.found)
        fprintf(stderr, ", did you mean '%s%s'?\n", option_dashes(nearest.found),
                nearest.found);
    else
        fprintf(stderr, ", see '%s --help'\n", p->tool);
    return false;
}

/* ---- values --------------------------------------------------------- */

static bool report_value(const Parser *p, const Option *o, const char *value,
                         const char *expected)
{
    fprintf(stderr, "%s: error: option '%s%s' takes %s, got '%s'\n", p->tool,
            option_dashes(o->name), o->name, expected, value);
    return false;
}

static bool set_flag(const Parser *p, const Option *o, const char *value)
{
    bool on = !value || strcmp(value, "true") == 0 || strcmp(value, "1") == 0;
    if (!on && strcmp(value, "false") != 0 && strcmp(value, "0") != 0)
        return report_value(p, o, value, "true or false");
    *(bool *)o->target = on;
    return true;
}

static bool set_unsigned(const Parser *p, const Option *o, const char *value)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end || errno || number > UINT_MAX)
        return report_value(p, o, value, "an unsigned 32-bit number");
    *(unsigned *)o->target = (unsigned)number;
    return true;
}

static bool set_integer(const Parser *p, const Option *o, const char *value)
{
    char *end;
    errno = 0;
    long number = strtol(value, &end, 10);
    if (end == value || *end || errno || number < INT_MIN || number > INT_MAX)
        return report_value(p, o, value, "a 32-bit number");
    *(int *)o->target = (int)number;
    return true;
}

static bool set_real(const Parser *p, const Option *o, const char *value)
{
    char *end;
    double number = strtod(value, &end);
    if (end == value || *end || !isfinite(number) || number < 0)
        return report_value(p, o, value, "a number that is not negative");
    *(double *)o->target = number;
    return true;
}

static bool set_choice(const Parser *p, const Option *o, const char *value)
{
    char expected[256];
    int n = snprintf(expected, sizeof expected, "one of");
    for (size_t i = 0; o->choices[i]; i++) {
        if (strcmp(value, o->choices[i]) == 0) {
            *(int *)o->target = (int)i;
            return true;
        }
        if ((size_t)n < sizeof expected)
            n += snprintf(expected + n, sizeof expected - (size_t)n, "%s %s", i ? "," : "",
                          o->choices[i]);
    }
    return report_value(p, o, value, expected);
}

static bool set_list(const Parser *p, const Option *o, const char *value)
{
    if (string_list_add(o->target, value))
        return true;
    fprintf(stderr, "%s: error: out of memory\n", p->tool);
    return false;
}

static bool set_option(const Parser *p, const Option *o, const char *value)
{
    switch (o->kind) {
    case OPTION_FLAG: return set_flag(p, o, value);
    case OPTION_STRING: *(const char **)o->target = value; return true;
    case OPTION_LIST: return set_list(p, o, value);
    case OPTION_UNSIGNED: return set_unsigned(p, o, value);
    case OPTION_INTEGER: return set_integer(p, o, value);
    case OPTION_REAL: return set_real(p, o, value);
    case OPTION_CHOICE: return set_choice(p, o, value);
    case OPTION_MODE: return set_choice(p, o, value ? value : o->choices[1]);
    }
    return false;
}

/* ---- arguments ------------------------------------------------------ */

static const Option *find_option(const Parser *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->count; i++)
        if (strlen(p->table[i].name) == len && memcmp(p->table[i].name, name, len) == 0)
            return &p->table[i];
    return NULL;
}

static bool parse_option(Parser *p, const char *argument)
{
    const char *name = argument + (argument[1] == '-' ? 2 : 1);
    size_t len = strcspn(name, "=");
    const char *value = name[len] ? name + len + 1 : NULL;
    const Option *o = find_option(p, name, len);
    if (!o && argument[1] != '-') {     /* -O2, -DBM=32 */
        o = find_option(p, name, 1);
        o = o && o->kind != OPTION_FLAG ? o : NULL;
        value = name + 1;
    }
    if (!o)
        return report_unknown(p, argument, name, len);
    if (!value && o->kind != OPTION_FLAG && o->kind != OPTION_MODE) {
        if (p->next == p->argc) {
            fprintf(stderr, "%s: error: option '%s%s' needs a value\n", p->tool,
                    option_dashes(o->name), o->name);
            return false;
        }
        value = p->argv[p->next++];
    }
    return set_option(p, o, value);
}

/* Prints what `argument` asks for instead of a run; false if it is not that. */
static bool print_about(const Parser *p, const ToolInfo *tool, const char *argument)
{
    bool short_help = strcmp(argument, "-h") == 0 && !find_option(p, "h", 1);
    if (short_help || strcmp(argument, "--help") == 0 || strcmp(argument, "-help") == 0)
        help_print(tool, p->table, p->count);
    else if (strcmp(argument, "--help-man") == 0)
        help_print_man(tool, p->table, p->count);
    else if (strcmp(argument, "--help-options") == 0)
        help_print_options(p->table, p->count);
    else
        return false;
    return true;
}

bool options_parse(const ToolInfo *tool, const Option *table, size_t count, int argc,
                   char **argv, StringList *positionals, int *status)
{
    Parser p = {tool->name, table, count, argc, 1, argv};
    Option positional = {"", NULL, NULL, OPTION_LIST, positionals, NULL};
    bool only_positionals = false;
    file_watch_output(tool->name);
    *status = EXIT_USAGE;
    while (p.next < argc) {
        const char *argument = argv[p.next++];
        bool ok = true;
        if (only_positionals || argument[0] != '-' || !argument[1])
            ok = set_list(&p, &positional, argument);
        else if (strcmp(argument, "--") == 0)
            only_positionals = true;
        else if (print_about(&p, tool, argument)) {
            *status = EXIT_OK;
            return false;
        } else
            ok = parse_option(&p, argument);
        if (!ok)
            return false;
    }
    *status = EXIT_OK;
    return true;
}
