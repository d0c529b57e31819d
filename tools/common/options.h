/* The command line of every tool: one table, one parser.
 *
 * Spellings, as in LLVM's tools (one dash or two mean the same):
 *
 *   --flag  --flag=false     a flag, on or off (true, false, 1, 0)
 *   --name=VALUE             a value, joined
 *   --name VALUE             a value, as the next argument, whatever it is (but of a mode)
 *   -DVALUE  -D VALUE        a one-letter option takes its value either way (-O2)
 *   -                        a positional argument: standard input
 *   --                       all later arguments are positional
 *
 * A repeated option overwrites its target, a repeated OPTION_LIST appends.
 * `--help` (and `-h`, unless the table has an `h`) prints the table. Two more
 * serve the build and the shell: `--help-man` prints a man page,
 * `--help-options` each option's spelling on a line.
 *
 *   static const char *const engines[] = {"interp", "gpu", NULL};
 *   const Option table[] = {
 *       {"o", "file", "write to file", OPTION_STRING, &output, NULL},
 *       {"D", "name=value", "set a parameter", OPTION_LIST, &defines, NULL},
 *       {"O", "level", "optimization level, 0..3", OPTION_UNSIGNED, &level, NULL},
 *       {"time", NULL, "print where time goes", OPTION_FLAG, &time, NULL},
 *       {"engine", NULL, "what runs the program", OPTION_CHOICE, &engine, engines},
 *   };
 *   static const ToolInfo tool = {"tilus-opt", "run passes", "[options] [file]", NULL};
 *   int status;
 *   if (!options_parse(&tool, table, COUNT(table), argc, argv, &inputs, &status))
 *       return status;
 */
#ifndef TILUS_TOOLS_OPTIONS_H
#define TILUS_TOOLS_OPTIONS_H

#include "support/nearest.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes of every tool. */
enum {
    EXIT_OK = 0,
    EXIT_DIAGNOSTICS = 1,   /* the input is wrong, or something failed */
    EXIT_USAGE = 2          /* the command line is wrong */
};

/* A list of strings that point into argv. Starts as {0}; freed with
 * string_list_free (the array only). */
typedef struct StringList {
    const char **items;
    size_t count, capacity;
} StringList;

/* False when memory runs out. */
bool string_list_add(StringList *list, const char *item);
void string_list_free(StringList *list);

typedef enum OptionKind {
    OPTION_FLAG,        /* bool */
    OPTION_STRING,      /* const char *, which points into argv */
    OPTION_LIST,        /* StringList, one item each time the option is given */
    OPTION_UNSIGNED,    /* unsigned, decimal */
    OPTION_INTEGER,     /* int, decimal */
    OPTION_REAL,        /* double, finite and not negative */
    OPTION_CHOICE,      /* int: index into `choices` */
    OPTION_MODE         /* likewise; the option without a value means choices[1] */
} OptionKind;

/* An option. Its default is what the target holds before the parse. */
typedef struct Option {
    const char *name;       /* without dashes */
    const char *metavar;    /* the value's name in --help; NULL: a flag or choice */
    const char *help;       /* one line, lower case */
    OptionKind kind;
    void *target;           /* of the type that `kind` names */
    const char *const *choices;     /* OPTION_CHOICE: spellings, NULL-terminated; of another
                                       kind: what a shell offers among others, or NULL */
} Option;

/* Texts of the help and the man page of a tool, beside its options. */
typedef struct ToolInfo {
    const char *name;
    const char *summary;    /* one line, lower case, a verb first */
    const char *usage;      /* what follows the name: "[options] [file | -]" */
    const char *details;    /* lines as they shall appear, or NULL */
} ToolInfo;

/* Parses argv[1..argc) by the table. Returns true when the tool shall run.
 * Otherwise it has printed the help (to stdout; *status is EXIT_OK) or what is
 * wrong (to stderr; *status is EXIT_USAGE), and main returns *status. The
 * caller frees every list. */
bool options_parse(const ToolInfo *tool, const Option *table, size_t count, int argc,
                   char **argv, StringList *positionals, int *status);

#define COUNT(array) (sizeof(array) / sizeof *(array))

#endif
