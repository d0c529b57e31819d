/* tilus-tune: finds the configurations of the matmul template that are fastest on a device.
 *
 *     main.c        the command line           search.c     candidates of a task, in order
 *     tasks.c       problems to tune for       run.c        measures them, one after the other
 *     worker.c      compiles, in a process     compiler.c   many of those
 *     compile.c     that, and nothing else
 *     data.c        inputs and references      product.c    the launches of a product
 *     engine_*.c    what runs them             database.c   what was found
 *     report.c      show, export, import
 */
#ifndef TILUS_TUNE_H
#define TILUS_TUNE_H

#include "common/options.h"
#include "matmul/table.h"

#include <signal.h>

#define TOOL "tilus-tune"

typedef enum ExportFormat { EXPORT_JSON, EXPORT_C } ExportFormat;

/* The command line. Strings point into argv. */
typedef struct Settings {
    const char *command;
    StringList words;           /* the command and what follows it */
    StringList weights, shapes, zeros;  /* as given: types, KxN, names; or several, "u4,u2" */
    const char *m;              /* "1,8,16" */
    const char *activations, *scales, *result;
    unsigned group;
    const char *database, *output;
    int engine;                 /* EngineKind */
    int format;                 /* ExportFormat */
    unsigned jobs;              /* 0: one a processor */
    unsigned candidates, count;
    double seconds, compile_seconds;
    bool again;
} Settings;

/* A problem and a bucket of m to tune for. */
typedef struct Task {
    MatmulSpec spec;
    int64_t m;                  /* a bucket */
    size_t shape;               /* a number that tasks of the same spec share */
} Task;

typedef struct Tasks {
    Task *items;
    size_t count;
} Tasks;

/* Set by SIGINT and SIGTERM: a search ends after the candidate at hand. */
extern volatile sig_atomic_t tune_interrupted;
void tune_handle_signals(void);

double tune_seconds(void);      /* of a clock that only goes on */

/* Every command returns an exit code, after it has printed errors on stderr. */
int tune_run(const Settings *s);
int tune_compile(const Settings *s);
int tune_show(const Settings *s);
int tune_export(const Settings *s);
int tune_import(const Settings *s);
int tune_worker(void);

/* Returns true when TILUS_TUNE_FAULT is `kind`, such as "crash:", and a part of `name`
 * (worker.c). */
bool tune_has_fault(const char *name, const char *kind);

/* tasks.c: every combination of zero points, weights, shape and m, in that order, without
 * integer zero points of floats where others are asked for, too; freed with free(). False
 * after a message. */
bool tasks_make(const Settings *s, Tasks *tasks);

/* "u4 8192x57344 group 128, zeros integer"; with "m = 8" after. */
const char *spec_print(const MatmulSpec *spec, char text[static 128]);
const char *task_print(const Task *task, char text[static 128]);

#endif
