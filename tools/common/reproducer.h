/* Reproducers: program text below the command that fails on it.
 *
 *   // tilus-opt --passes=dce,fold
 *   // made from matmul.tilus -D W=u4
 *   tilus 1
 *   ...
 *
 * `tilus-opt --run-reproducer FILE` runs that command on that file. The text is
 * the input's before the first pass (the command then has the -D), later the
 * module's as the failing pass found it.
 *
 * One is written when a signal kills the tool or a pass breaks the program:
 * faults of ours; and, with --reproducer=FILE, also when something just fails.
 * The signal handler calls nothing that allocates: what it would write is
 * prepared before each step that may crash. The file appears whole or not. */
#ifndef TILUS_TOOLS_REPRODUCER_H
#define TILUS_TOOLS_REPRODUCER_H

#include "common/pass_settings.h"

/* At most one in flight in a process. */
typedef struct Reproducer {
    const char *tool, *input;
    const PassSettings *settings;
    const StringList *defines;      /* of -D */
    const char *flags;              /* more of the command: " -O3", quoted where needed */
    char *path, *temporary;         /* the file; what is written before it has its name */
    char *announcement;             /* for stderr, when it is written ... */
    char *failure;                  /* ... and when it cannot be */
    char *bytes;                    /* what to write */
    size_t size;
    bool wanted;                    /* written at the end */
} Reproducer;

/* Prepares the reproducer of `tool` and handles signals from here on. The
 * strings and lists must outlive it. False when memory runs out, or when
 * --reproducer names what is no regular file; then a message was printed. */
bool reproducer_open(Reproducer *r, const char *tool, const char *input,
                     const PassSettings *settings, const StringList *defines,
                     const char *flags);

/* Stages `text` (`len` bytes of the input) before it is parsed, to be run through
 * `pipeline`. */
void reproducer_stage_input(Reproducer *r, const char *pipeline, const char *text, size_t len);

/* Stages the module `text` before the steps after the passes. */
void reproducer_stage_module(Reproducer *r, const char *text);

/* Notes that the text staged last has failed, without a crash. */
void reproducer_note_failure(Reproducer *r);

/* tilus_pass_options.observe: stages before each pass, notes what failed. */
void reproducer_observe(void *reproducer, const tilus_pass_event *event);

/* Writes it, if something failed that asks for it, and says so on stderr. Ends
 * the handling of signals. */
void reproducer_close(Reproducer *r);

/* Appends ` --name=value` to `out`, quoted as the header and a shell read it. */
void reproducer_add_option(FILE *out, const char *name, const char *value);

/* Returns argv for --run-reproducer, with `*count` words: those of the header of the one
 * file in `inputs`, and then the given ones. NULL after a message. The
 * caller frees it with free(). */
char **reproducer_arguments(const char *tool, const StringList *inputs, int argc, char **argv,
                            int *count);

#endif
