/* The command line of a tool that reads one file of program text and runs passes on it. */
#ifndef TILUS_TOOLS_COMMAND_LINE_H
#define TILUS_TOOLS_COMMAND_LINE_H

#include "common/options.h"
#include "common/pass_settings.h"
#include "tilus/tilus.h"

/* The first member of the tool's settings. */
typedef struct CommandLine {
    const char *input;          /* a path; "-" is standard input */
    StringList inputs;          /* the positional arguments */
    StringList define_texts;    /* of -D */
    tilus_define *defines;
    size_t define_count;
    PassSettings passes;
    char **arguments;           /* with those of a reproducer, or NULL */
} CommandLine;

typedef struct CommandLineTool {
    const char *name;
    /* Sets what the settings are before a line is read. */
    void (*reset)(CommandLine *line);
    /* Reads argv; false when the tool is done, with `*status`. */
    bool (*read)(CommandLine *line, int argc, char **argv, int *status);
    /* Checks options beside each other; false after a message. */
    bool (*check)(CommandLine *line);
    /* Frees what the tool has beside the CommandLine; may be NULL. */
    void (*free)(CommandLine *line);
} CommandLineTool;

/* Reads and checks argv, which --run-reproducer extends. Returns false when the tool is
 * done: `*status` is its exit code, and the settings are freed. */
bool command_line_parse(const CommandLineTool *tool, CommandLine *line, int argc, char **argv,
                        int *status);
void command_line_free(const CommandLineTool *tool, CommandLine *line);

#endif
