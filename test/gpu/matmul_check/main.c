/* matmul_check: the command line, and a line for each case. */
#define _GNU_SOURCE
#include "check.h"

#include "common/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EXIT_LOST = 3 };

typedef struct Settings {
    int engine;                     /* index into engines */
    const char *share, *filter;
    unsigned number, shares;        /* of "number/shares", from 1 */
    unsigned every, skip, seconds;
    bool list, spoil;
} Settings;

typedef struct Report {
    const Settings *settings;
    size_t cases;                   /* of the filter, in all shares */
    size_t chosen;                  /* of them in this share */
    size_t counts[VERDICTS];
    bool lost;
} Report;

static const char *const engines[] = {"gpu", "cpu", NULL};

static const ToolInfo tool = {
    TOOL, "compare products of the matmul library with sums in f64",
    "[options]",
    "Each type of weights x f16 and bf16 activations x groups of 32, 64, 128 and all of k x\n"
    "no, integer and float zero points x m = 1, 3, 16, 33 and 128, by configurations of all\n"
    "kinds; then other types, epilogues, odd sizes, packing on the device, parts of packed\n"
    "weights, many rows.\n"
    "\n"
    "Prints a line for each case, PASS, FAIL or SKIP (of what cuBLAS computes, without one),\n"
    "and the last one counts them. The status is 1 when a case is wrong, and 3 when nothing\n"
    "after it could run, as the device's context is lost.\n"};

static bool parse(int argc, char **argv, Settings *s, int *status)
{
    const Option table[] = {
        {"engine", NULL, "what runs the products; default gpu", OPTION_CHOICE, &s->engine,
         engines},
        {"share", "i/n", "run the i-th of n parts of the trials", OPTION_STRING, &s->share,
         NULL},
        {"filter", "text", "run cases whose name contains the text", OPTION_STRING,
         &s->filter, NULL},
        {"every", "n", "run each n-th case, from the first on", OPTION_UNSIGNED, &s->every,
         NULL},
        {"skip", "n", "leave out the first n cases of what is left", OPTION_UNSIGNED, &s->skip,
         NULL},
        {"seconds", "n", "a case that takes longer ends the process, by SIGALRM; default "
         "120, 0: none does", OPTION_UNSIGNED, &s->seconds, NULL},
        {"spoil", NULL, "make one element of each result 0 before it is compared, which must "
         "be seen", OPTION_FLAG, &s->spoil, NULL},
        {"list", NULL, "print the cases' names, and run none", OPTION_FLAG, &s->list, NULL},
    };
    StringList rest = {0};
    if (!options_parse(&tool, table, COUNT(table), argc, argv, &rest, status))
        return false;
    char end;
    bool ok = rest.count == 0 && s->every > 0 &&
              sscanf(s->share, "%u/%u%c", &s->number, &s->shares, &end) == 2 &&
              s->number >= 1 && s->number <= s->shares;
    if (rest.count)
        fprintf(stderr, TOOL ": error: %s: there are options only\n", rest.items[0]);
    else if (s->every == 0)
        fprintf(stderr, TOOL ": error: --every=0: wants a number from 1 on\n");
    else if (!ok)
        fprintf(stderr, TOOL ": error: --share=%s: wants i/n, with i from 1 to n\n", s->share);
    string_list_free(&rest);
    *status = EXIT_USAGE;
    return ok;
}

/* ---- cases -------------------------------------------------------------------- */

static void report_case(Report *r, const char *name, const Outcome *o)
{
    static const char *const verdicts[VERDICTS] = {"PASS", "FAIL", "SKIP"};
    r->counts[o->verdict]++;
    r->lost |= o->lost;
    printf("%s %s: %s\n", verdicts[o->verdict], name, o->text);
    fflush(stdout);
}

/* The cases of a trial that are run. */
static size_t choose(Report *r, const Trial *trial, bool in_share, bool chosen[static SIZES])
{
    const Settings *s = r->settings;
    size_t count = 0;
    for (size_t i = 0; i < trial->size_count; i++) {
        char name[NAME_MAX_BYTES];
        trial_case_name(trial, i, name);
        chosen[i] = (!s->filter || strstr(name, s->filter)) && r->cases++ % s->every == 0 &&
                    in_share && r->chosen++ >= s->skip;
        count += chosen[i];
    }
    return count;
}

static void list_cases(const Trial *trial, const bool chosen[static SIZES])
{
    for (size_t i = 0; i < trial->size_count; i++) {
        char name[NAME_MAX_BYTES];
        trial_case_name(trial, i, name);
        if (chosen[i])
            printf("%s\n", name);
    }
}

/* Fails all cases of a trial that cannot be opened. */
static void run_trial(Report *r, Engine *engine, const Trial *trial,
                      const bool chosen[static SIZES])
{
    Outcome outcome;
    alarm(r->settings->seconds);
    Run *run = run_open(engine, trial, &outcome);
    for (size_t i = 0; i < trial->size_count && !r->lost; i++) {
        char name[NAME_MAX_BYTES];
        if (!chosen[i])
            continue;
        trial_case_name(trial, i, name);
        alarm(r->settings->seconds);
        if (run)
            run_product(run, i, r->settings->spoil, &outcome);
        report_case(r, name, &outcome);
    }
    alarm(0);
    run_close(run);
}

static void run_trials(Report *r, Engine *engine, const Trials *trials)
{
    const Settings *s = r->settings;
    size_t next = 0;                /* trials that the filter leaves */
    for (size_t i = 0; i < trials->count && !r->lost; i++) {
        const Trial *trial = &trials->items[i];
        bool chosen[SIZES];
        size_t before = r->cases;
        bool in_share = next % s->shares == s->number - 1;
        size_t count = choose(r, trial, in_share, chosen);
        next += r->cases > before;
        if (count && engine)
            run_trial(r, engine, trial, chosen);
        else
            list_cases(trial, chosen);
    }
}

/* ---- all ---------------------------------------------------------------------- */

static Engine *open_engine(const Settings *s, const Trials *trials)
{
    Engine *e = s->engine ? engine_open_cpu() : engine_open_gpu();
    char *tunings = e ? trials_tunings(trials, &e->device) : NULL;
    if (tunings && e->start(e, tunings) == TILUS_OK) {
        free(tunings);
        return e;
    }
    if (e) {
        fprintf(stderr, TOOL ": error: %s\n", tunings ? tilus_rt_error() : "out of memory");
        e->close(e);
    }
    free(tunings);
    return NULL;
}

static int run(const Settings *s, const Trials *trials)
{
    Report r = {.settings = s};
    Engine *engine = s->list ? NULL : open_engine(s, trials);
    if (!engine && !s->list)
        return EXIT_DIAGNOSTICS;
    run_trials(&r, engine, trials);
    if (!engine)
        return EXIT_OK;
    printf("%zu right, %zu wrong, %zu skipped\n", r.counts[VERDICT_RIGHT],
           r.counts[VERDICT_WRONG], r.counts[VERDICT_SKIPPED]);
    engine->close(engine);
    return r.lost ? EXIT_LOST : r.counts[VERDICT_WRONG] ? EXIT_DIAGNOSTICS : EXIT_OK;
}

int main(int argc, char **argv)
{
    Settings s = {.share = "1/1", .every = 1, .seconds = 120};
    Trials trials;
    int status;
    if (!parse(argc, argv, &s, &status))
        return status;
    if (!trials_make(&trials)) {
        fprintf(stderr, TOOL ": error: out of memory\n");
        return EXIT_DIAGNOSTICS;
    }
    status = run(&s, &trials);
    free(trials.items);
    return status;
}
