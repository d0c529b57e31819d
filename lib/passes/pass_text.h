/* Pipelines as text: names of passes with their options,
 *
 *     canonicalize,unroll-loops{factor=4},check-hazards{strict}
 *
 * Options are separated by spaces. */
#ifndef TILUS_PASSES_PASS_TEXT_H
#define TILUS_PASSES_PASS_TEXT_H

#include "passes/pass.h"
#include "support/report.h"

/* A pass of a pipeline, with the values of its options. */
typedef struct PassStep {
    const PassInfo *pass;
    const char *text;           /* from its name on */
    int64_t values[PASS_VALUES];
} PassStep;

typedef enum StepResult { STEP_TAKEN, STEP_END, STEP_WRONG } StepResult;

/* Takes the next pass of `*list`. STEP_WRONG: `why` says what is wrong with it. */
StepResult pass_next_step(const char **list, PassStep *step, Report why);

/* Returns true when each pass and option of `list`, which may be NULL, exists; else `why` says
 * which does not. */
bool pass_check_text(const char *list, Report why);

/* Returns true when `list`, names of passes, has that of `pass`; NULL has none. */
bool pass_is_named(const char *list, const PassInfo *pass);

#endif
