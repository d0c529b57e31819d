/* Groups of warnings from the command line: -W<group>, -Wno-<group>, -Werror=<group>. */
#ifndef TILUS_TOOLS_WARNINGS_H
#define TILUS_TOOLS_WARNINGS_H

#include "common/options.h"
#include "tilus/tilus.h"

/* The row of -W in a tool's option table; `list` is a StringList. */
#define WARNING_OPTION(list)                                                                  \
    {"W", "group", "warn of this group; -Wno-<group> does not, -Werror[=<group>] makes its "  \
     "warnings errors; repeatable (tilus-opt --list-warnings)", OPTION_LIST, &(list), NULL}

/* Sets every flag of `list` in `diag`, in order; without one it only checks them. The first
 * that names no group is printed to stderr as a message of `tool`, and gives false. */
bool warnings_set(const char *tool, const StringList *list, tilus_diag *diag);

/* Prints the table of all groups, in Markdown. */
void warnings_print(void);

#endif
