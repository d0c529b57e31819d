/* Modules of program text, and how a program ends on each engine. */
#ifndef TILUS_FUZZ_OUTCOME_H
#define TILUS_FUZZ_OUTCOME_H

#include "program_gen.h"

/* A module and the diag that it was parsed with. */
typedef struct Parsed {
    tilus_diag *diag;
    tilus_module *module;       /* NULL: refused */
} Parsed;

/* The caller releases it. */
Parsed parsed_new(const char *text, size_t len);
void parsed_release(Parsed p);

/* The first error, "" for none; warnings are not looked at. */
const char *parsed_error(const Parsed *p);

/* The module's text, on the arena. */
const char *parsed_print(const Parsed *p, Arena *arena);

/* NULL when `text` parses and prints as itself, else what is wrong; messages go to
 * stderr. */
const char *text_fixpoint_fault(const char *text, Arena *arena);

/* How a program ended, and what it left; on an arena. */
typedef struct Outcome {
    tilus_status status;
    const char *message;        /* the first error, "" for none */
    const char *printed;        /* what the program printed */
    tilus_buffer *buffers;
} Outcome;

/* Run @random of the module, with `g`'s arguments and copies of its memory. */
Outcome outcome_interpreted(const GenProgram *g, const Parsed *p, Arena *arena);
Outcome outcome_on_cpu(const GenProgram *g, const Parsed *p, const tilus_cpu_options *options,
                       Arena *arena);

/* NULL when the programs ended alike, else the difference in words. Buffers are equal
 * bit by bit, but with `free_nans` any two NaNs of 16 or more bits are. Errors may
 * differ in the condition at their end, which passes simplify. */
const char *outcome_difference(const GenProgram *g, const Outcome *expected,
                               const Outcome *got, bool free_nans, Arena *arena);

#endif
