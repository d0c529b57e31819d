/* Template parameters from the command line: `-D NAME=VALUE`. */
#ifndef TILUS_TOOLS_DEFINES_H
#define TILUS_TOOLS_DEFINES_H

#include "common/options.h"
#include "tilus/tilus.h"

/* Splits every "NAME=VALUE" of `list` into an array of list->count defines,
 * which the caller frees with defines_free. Values point into `list`'s
 * strings. A malformed item (or no memory) is printed to stderr as a message
 * of `tool` and gives false, with `*defines` NULL. */
bool defines_parse(const char *tool, const StringList *list, tilus_define **defines);
void defines_free(tilus_define *defines, size_t count);

#endif
