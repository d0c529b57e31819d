/* Help texts of a tool, made from its table of options. */
#ifndef TILUS_TOOLS_HELP_H
#define TILUS_TOOLS_HELP_H

#include "common/options.h"

/* The dashes before an option's name as help shows it. */
const char *option_dashes(const char *name);

/* Each prints to stdout: the help; the man page, in roff; each spelling on a
 * line, "--name" or "--name=", and "--name=choice" for choices. */
void help_print(const ToolInfo *tool, const Option *table, size_t count);
void help_print_man(const ToolInfo *tool, const Option *table, size_t count);
void help_print_options(const Option *table, size_t count);

/* Prints the environment variables of all tools and libraries, as a table in Markdown. */
void help_print_environment(void);

#endif
