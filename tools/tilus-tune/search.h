/* Candidates of a task. */
#ifndef TILUS_TUNE_SEARCH_H
#define TILUS_TUNE_SEARCH_H

#include "tune.h"

/* The outcome of a candidate, as the database has it. */
typedef enum Outcome {
    OUTCOME_NONE,               /* not measured yet */
    OUTCOME_OK,
    OUTCOME_SLOW,               /* right; measured briefly, as it was clearly slower */
    OUTCOME_WRONG,              /* its result differs from the expected one */
    OUTCOME_FAILED,             /* not compiled, not loaded, not run */
    OUTCOME_CRASHED,            /* it took the compiler's process with it */
    OUTCOME_LATE,               /* not compiled in time */
    OUTCOME_BEGUN,              /* the process ended while it was measured */
    OUTCOMES
} Outcome;

const char *outcome_name(Outcome outcome);
/* Returns the outcome of that name; OUTCOME_NONE: there is none. */
Outcome outcome_find(const char *name);

typedef struct Candidate {
    MatmulConfig config;
    MatmulConfig launched;      /* as plans launch it: blocks may arrange A */
    double cost;                /* us, of the model */
    size_t place;               /* among those of its rows, by cost */
    Outcome outcome;
    bool begun;                 /* in an earlier process, which ended before it was settled */
    double us;                  /* where it is OK or SLOW */
    struct Kernel *pack, *prepare, *product;    /* prepare: NULL where A is read as it is */
} Candidate;

typedef struct Candidates {
    Candidate *items;
    size_t count;
} Candidates;

/* Lists at most `most` candidates, equally many of each number of rows as far as there are, since
 * a plan has the same rows for all m: the cheapest of each by the cost model, then the second
 * of each, and so on. The caller frees out->items. False: out of memory, after a message. */
bool candidates_make(const Task *task, const MatmulDevice *device, size_t most,
                     Candidates *out);

#endif
