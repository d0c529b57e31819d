/* Reports of a run of passes: counters and times. */
#ifndef TILUS_PASSES_REPORT_H
#define TILUS_PASSES_REPORT_H

#include "passes/pass.h"

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
/* Prints the counters that are not 0. */
void stats_print(const Module *m, const Writer *out);

/* Seconds spent so far. All programs of a module are one run of a pass. */
typedef struct PassTimes {
    double pass[PASS_ID_COUNT], verify;
    unsigned pass_runs[PASS_ID_COUNT], verify_runs;
} PassTimes;

/* Prints a table of what ran, the longest first, with shares of the total. */
void pass_times_print(const PassTimes *times, const Writer *out);

#endif
