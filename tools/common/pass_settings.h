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
    int print_changed;              /* tilus_changed */
    int stats, time_passes;         /* tilus_table */
    int remarks_format;             /* tilus_remark_format */
    bool print_pipeline;            /* and run nothing */
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
    {"print-changed", NULL, "print the module after each pass that changed it, or the "       \
     "difference", OPTION_MODE, &(s).print_changed, pass_changed_forms},                      \
    {"skip", "a,b", "leave these passes out of the pipeline", OPTION_STRING,                  \
     &(s).options.skip, NULL},                                                                \
    {"opt-bisect-limit", "N", "number each run of a pass on a program, and run the first N "  \
     "(-1: all)", OPTION_INTEGER, &(s).bisect_limit, NULL},                                   \
    {"time-passes", NULL, "print the passes' times, to stderr", OPTION_MODE,                  \
     &(s).time_passes, pass_table_forms},                                                     \
    {"stats", NULL, "print what the passes counted, to stderr", OPTION_MODE,                  \
     &(s).stats, pass_table_forms},                                                           \
    {"Rpass", "regex", "print what the passes of this name chose", OPTION_STRING,             \
     &(s).options.remarks_passed, NULL},                                                      \
    {"Rpass-missed", "regex", "print what the passes of this name missed, and why",           \
     OPTION_STRING, &(s).options.remarks_missed, NULL},                                       \
    {"remarks-file", "file", "write all remarks to file", OPTION_STRING, &(s).remarks, NULL}, \
    {"remarks-format", NULL, "write that file as LLVM's YAML, or as lines of JSON",           \
     OPTION_CHOICE, &(s).remarks_format, pass_remark_forms},                                  \
    {"print-pipeline", NULL, "print the passes that would run, as --passes takes them",       \
     OPTION_FLAG, &(s).print_pipeline, NULL},                                                 \
    {"load-pass-plugin", "file.so", "load passes from a shared library; repeatable",          \
     OPTION_LIST, &(s).plugins, NULL},                                                        \
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

/* Sets the options of tilus_run_passes once the line is read, and checks names of passes in
 * them; false after a message. */
bool pass_settings_finish(PassSettings *s, const char *tool);

/* Returns true when the passes and options of `pipeline`, of option --`option`, exist; else
 * prints which does not. NULL is right. */
bool pass_settings_check(const char *tool, const char *option, const char *pipeline);

/* Choices of the options below. */
extern const char *const pass_changed_forms[], *const pass_table_forms[],
    *const pass_remark_forms[];

#endif
