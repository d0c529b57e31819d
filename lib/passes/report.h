/* Reports of a run of passes: counters and times. */
#ifndef TILUS_PASSES_REPORT_H
#define TILUS_PASSES_REPORT_H

#include "passes/own.h"

typedef enum Stat {
#define STAT(pass, id, summary) STAT_##pass##_##id,
#include "passes/stats.def"
    STAT_COUNT
} Stat;

/* Adds `n` to a counter, when counters are requested. */
static inline void stat_add(Module *m, Stat stat, uint64_t n)
{
    if (m->pass_stats)
        m->pass_stats[stat] += n;
}

/* Sets all counters of `m` to 0 and counts from here on, or counts no more. */
void stats_open(Module *m, bool on);
/* Prints the counters that are not 0, as a table or a line of JSON. */
void stats_print(const Module *m, const Writer *out, tilus_table form);

/* As many passes as there can be, the callers' too. */
enum { PASS_TIMES = PASS_ID_COUNT + TILUS_PASSES_MOST };

/* Seconds spent so far. All programs of a module are one run of a pass. */
typedef struct PassTimes {
    double pass[PASS_TIMES], verify;
    unsigned pass_runs[PASS_TIMES], verify_runs;
    const PassInfo *passes[PASS_TIMES];     /* that ran, in the order of their first runs */
    unsigned count;
} PassTimes;

/* Adds a run of a pass. */
void pass_times_add(PassTimes *times, const PassInfo *pass, double seconds);

/* Prints what ran, the longest first, as a table with shares of the total or a line of JSON. */
void pass_times_print(const PassTimes *times, const Writer *out, tilus_table form);

#endif
