/* tilus-opt's parts: settings from the command line, processing of one input,
 * and the check of expected diagnostics. */
#ifndef TILUS_OPT_TOOL_H
#define TILUS_OPT_TOOL_H

#include "common/command_line.h"
#include "tilus/tilus.h"

typedef struct OptSettings {
    CommandLine line;
    const char *output;
    const char *pipeline;       /* "" runs no pass */
    bool verify_diagnostics, split_input;
    const char *layout, *svg;   /* to be drawn, and where to as SVG; or NULL */
    bool version, list_ops, list_types, list_passes, list_limits, list_warnings;
    bool list_remarks;
    const char *passes_text, *pipeline_text;
} OptSettings;

/* False: the tool ends with *status (help was printed, or the line is wrong).
 * The settings are then freed already. */
bool settings_parse(OptSettings *s, int argc, char **argv, int *status);
void settings_free(OptSettings *s);

/* Each returns the exit status of the tool. */
int print_version(void);
int print_ops(void);
int print_types(void);
int print_passes(void);
int print_remarks(void);
/* Prints the pipeline, or that of tilus-llc where there is none. */
int print_pipeline(const OptSettings *s);
int print_limits(void);
int print_warnings(void);
int print_layout(const OptSettings *s);
int process_input(OptSettings *s);

/* Compares the diagnostics of one chunk of text, which begins at `first_line`
 * of its file, with its comments
 *
 *   // expected-error {{text}}   expected-warning, expected-note
 *   // expected-error@+1 {{text}}    on the line after; @-1 before; @* on any,
 *                                    or on none, as for -D
 *
 * `text` must occur in the message. Every diagnostic must be expected and
 * every expectation met. Prints what differs to stderr. */
bool expectations_hold(const tilus_diag *diag, const char *file, const char *text, size_t len,
                       unsigned first_line);

#endif
