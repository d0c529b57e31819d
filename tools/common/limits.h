/* Options of a text from the command line: `--limit NAME=N`, `-I DIRECTORY`. */
#ifndef TILUS_TOOLS_LIMITS_H
#define TILUS_TOOLS_LIMITS_H

#include "common/options.h"
#include "tilus/tilus.h"

/* Sets every "NAME=N" of `list` in `diag`; without one it only checks them. The first
 * that is wrong is printed to stderr as a message of `tool`, and gives false. */
bool limits_set(const char *tool, const StringList *list, tilus_diag *diag);

/* Gives the diag of a text the directories of -I. */
void import_paths_set(const StringList *paths, tilus_diag *diag);

/* Prints the table of all limits, in Markdown. */
void limits_print(void);

#endif
