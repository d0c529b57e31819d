/* Every candidate that was measured, a row each, in a file of SQLite. Functions that return
 * false have said why on stderr. */
#ifndef TILUS_TUNE_DATABASE_H
#define TILUS_TUNE_DATABASE_H

#include "search.h"

typedef struct Database Database;

/* Opens or makes the file. NULL after a message. */
Database *database_open(const char *path, bool writable);
void database_close(Database *d);

/* The place of measurements. */
typedef struct Origin {
    const char *device, *driver;
} Origin;

/* Sets what is known of candidates, of this template, device and driver. What is only begun
 * is not measured, and c->begun says so. */
bool database_recall(Database *d, const Task *task, const Origin *origin,
                     const Candidates *candidates);

/* Keeps the outcome of a candidate, also when the process is killed right after. `note` tells
 * the reason. */
bool database_add(Database *d, const Task *task, const Origin *origin,
                  const Candidate *candidate, const char *note);

/* Adds tunings from elsewhere, all or none; rows of the same configurations are replaced. */
bool database_import(Database *d, const MatmulTunings *tunings);

/* Finds the best of each device, problem, m and number of rows, ordered by those; freed with
 * free(out->items). Of several templates and drivers the one that was measured last. */
bool database_best(Database *d, MatmulTunings *out);

/* Counts the rows of each outcome. */
bool database_count(Database *d, size_t counts[OUTCOMES]);

#endif
