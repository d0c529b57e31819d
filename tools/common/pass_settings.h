/* The options that every tool with a pass pipeline has. */
#ifndef TILUS_TOOLS_PASS_SETTINGS_H
#define TILUS_TOOLS_PASS_SETTINGS_H

#include "common/limits.h"
#include "common/options.h"
#include "common/warnings.h"
#include "tilus/tilus.h"

#include <limits.h>
#include <stdio.h>

typedef struct PassSettings {
    tilus_pass_options options;     /* for tilus_run_passes, after pass_settings_finish */
    int bisect_limit;
    const char *remarks;            /* a path, or NULL */
    FILE *remarks_file;             /* open only while passes run */
    const char *reproducer;         /* a path, or NULL */
    bool run_reproducer;
    StringList limits;              /* of --limit */
    StringList import_paths;        /* of -I */
    StringList warnings;            /* of -W */
    StringList plugins;             /* of --load-pass-plugin */
} PassSettings;

/* The settings before a command line is read. */
#define PASS_SETTINGS                                                                 \
    {.options = {.struct_size = sizeof(tilus_pass_options), .verify_each = true},     \
     .bisect_limit = INT_MIN}

/* Rows of a tool's option table; `s` is its PassSettings. */
#define PASS_OPTIONS(s)                                                                       \
    {"verify-each", NULL, "verify after each pass that changed something (default on)",       \
     OPTION_FLAG, &(s).options.verify_each, NULL},                                            \
    {"print-before", "a,b", "print the module before these passes, to stderr", OPTION_STRING, \
     &(s).options.print_before, NULL},                                                        \
    {"print-after", "a,b", "print the module after these passes", OPTION_STRING,              \
     &(s).options.print_after, NULL},                                                         \
    {"print-before-all", NULL, "print the module before each pass", OPTION_FLAG,              \
     &(s).options.print_before_all, NULL},                                                    \
    {"print-after-all", NULL, "print the module after each pass", OPTION_FLAG,                \
     &(s).options.print_after_all, NULL},                                                     \
    {"print-changed", NULL, "print the module after each pass that changed it", OPTION_FLAG,  \
     &(s).options.print_changed, NULL},                                                       \
    {"skip", "a,b", "leave these passes out of the pipeline", OPTION_STRING,                  \
     &(s).options.skip, NULL},                                                                \
    {"opt-bisect-limit", "N", "number each run of a pass on a program, and run the first N "  \
     "(-1: all)", OPTION_INTEGER, &(s).bisect_limit, NULL},                                   \
    {"time-passes", NULL, "print a table of the passes' times, to stderr", OPTION_FLAG,       \
     &(s).options.time_passes, NULL},                                                         \
    {"stats", NULL, "print what the passes counted, to stderr", OPTION_FLAG,                  \
     &(s).options.stats, NULL},                                                               \
    {"Rpass", "regex", "print what the passes of this name chose", OPTION_STRING,             \
     &(s).options.remarks_passed, NULL},                                                      \
    {"Rpass-missed", "regex", "print what the passes of this name missed, and why",           \
     OPTION_STRING, &(s).options.remarks_missed, NULL},                                       \
    {"remarks-file", "file", "write all remarks to file, as YAML", OPTION_STRING,             \
     &(s).remarks, NULL},                                                                     \
    {"load-pass-plugin", "file.so", "load passes from a shared library; repeatable",          \
     OPTION_LIST, &(s).plugins, NULL},                                                        \
    {"strict-hazards", NULL, "accesses that check-hazards cannot prove free of races are "     \
     "errors", OPTION_FLAG, &(s).options.strict_hazards, NULL},                               \
    {"reproducer", "file", "write here what reproduces a failed pass or a crash",             \
     OPTION_STRING, &(s).reproducer, NULL},                                                   \
    {"run-reproducer", NULL, "take the command line from the input's first line",             \
     OPTION_FLAG, &(s).run_reproducer, NULL},                                                 \
    {"I", "directory", "look for imported files here, too; repeatable", OPTION_LIST,          \
     &(s).import_paths, NULL},                                                                \
    {"limit", "name=n", "set a limit of the compiler; repeatable (tilus-opt --list-limits)",  \
     OPTION_LIST, &(s).limits, NULL},                                                         \
    WARNING_OPTION((s).warnings)

/* Opens the file of remarks, if there is to be one, and closes it; false after a message. */
bool pass_settings_open(PassSettings *s, const char *tool);
bool pass_settings_close(PassSettings *s, const char *tool);

/* Sets what depends on several options, once the line is read. */
static inline void pass_settings_finish(PassSettings *s)
{
    s->options.opt_bisect = s->bisect_limit != INT_MIN;
    s->options.opt_bisect_limit = s->bisect_limit;
}

#endif
