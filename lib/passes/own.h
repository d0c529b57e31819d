/* Passes of callers of the library (include/tilus/pass.h), beside the rows of passes.def. */
#ifndef TILUS_PASSES_OWN_H
#define TILUS_PASSES_OWN_H

#include "passes/pass.h"
#include "support/report.h"
#include "tilus/pass.h"

/* A caller's pass. It lives as long as the process. */
typedef struct OwnPass {
    PassInfo info;
    tilus_pass pass;
    PassOptionInfo options[OWN_OPTIONS];    /* whose `pass` does not count */
    unsigned option_count;
} OwnPass;

/* A counter of a caller's pass. */
typedef struct OwnStat {
    const OwnPass *pass;
    const char *name;
    uint64_t count;
    struct OwnStat *next;
} OwnStat;

/* Adds a pass; false with a report. Thread safe. */
bool own_pass_add(const tilus_pass *pass, Report why);

/* The i-th caller's pass, or NULL; how many there are. Thread safe. */
const OwnPass *own_pass_at(size_t i);
size_t own_pass_count(void);

static inline const char *own_pass_name(const OwnPass *pass) { return pass->info.name; }
static inline const char *own_pass_summary(const OwnPass *pass) { return pass->info.summary; }

/* Runs a caller's pass on a program, or on the module when `p` is NULL. Changes are the edits
 * that it made; the module is verified after them. */
PassResult own_pass_run(const OwnPass *pass, Module *m, Program *p);

/* The i-th option of all callers' passes, and the name of its pass; NULL past the last. */
const PassOptionInfo *own_option_at(size_t i, const char **pass);

/* The value of an option of the pass that runs; 0 without such. */
int64_t own_option_value(const Module *m, const char *name);

/* Adds to a counter of the pass that runs. */
void own_stat_add(Module *m, const char *name, uint64_t n);

#endif
