/* SQLite. Texts of SQL stand where they are used. */
#include "database.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct Database {
    sqlite3 *db;
    const char *path;
};

enum { FORMAT = 3 };            /* of the tables: SQLite's user_version */

/* The columns that tell one search from another, and the fields of a configuration, each after
 * a comma. */
#define KEY_COLUMNS \
    "template, device, driver, weights, activations, scales, result, grouped, zeros, n, k, m"
#define KEY_PLACES "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?"
#define COLUMN(name, was) ", " #name
#define PLACE(name, was) ", ?"
#define DECLARATION(name, was) " " #name " INTEGER,"

enum { KEY_COUNT = 12 };

static const char schema[] =
    "CREATE TABLE IF NOT EXISTS measurements ("
    " id INTEGER PRIMARY KEY, template TEXT, device TEXT, driver TEXT, weights TEXT,"
    " activations TEXT, scales TEXT, result TEXT, grouped INTEGER, zeros TEXT, n INTEGER,"
    " k INTEGER, m INTEGER," MATMUL_CONFIG(DECLARATION)
    " outcome TEXT, us REAL, note TEXT, time TEXT DEFAULT CURRENT_TIMESTAMP,"
    " UNIQUE (" KEY_COLUMNS MATMUL_CONFIG(COLUMN) "));"
    "PRAGMA user_version = 3;";

static const char *const zeros_names[] = {"none", "integer", "float"};

static bool fail(const Database *d)
{
    fprintf(stderr, "%s: error: database '%s': %s\n", TOOL, d->path,
            d->db ? sqlite3_errmsg(d->db) : "out of memory");
    return false;
}

static bool execute(Database *d, const char *sql)
{
    return sqlite3_exec(d->db, sql, NULL, NULL, NULL) == SQLITE_OK || fail(d);
}

/* ---- opening ---------------------------------------------------------- */

static int read_version(Database *d)
{
    sqlite3_stmt *s = NULL;
    int version = -1;
    if (sqlite3_prepare_v2(d->db, "PRAGMA user_version", -1, &s, NULL) == SQLITE_OK &&
        sqlite3_step(s) == SQLITE_ROW)
        version = sqlite3_column_int(s, 0);
    sqlite3_finalize(s);
    return version;
}

static bool check_version(Database *d)
{
    int version = read_version(d);
    if (version < 0)
        return fail(d);
    if (version == 0 || version == FORMAT)
        return true;
    fprintf(stderr, "%s: error: database '%s' has format %d, this program knows %d\n", TOOL,
            d->path, version, FORMAT);
    return false;
}

Database *database_open(const char *path, bool writable)
{
    enum { BUSY_MS = 10000 };
    Database *d = calloc(1, sizeof *d);
    if (!d) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return NULL;
    }
    d->path = path;
    int flags = writable ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
    bool ok = sqlite3_open_v2(path, &d->db, flags, NULL) == SQLITE_OK || fail(d);
    if (ok)
        sqlite3_busy_timeout(d->db, BUSY_MS);
    if (ok && check_version(d) && (!writable || execute(d, schema)))
        return d;
    database_close(d);
    return NULL;
}

void database_close(Database *d)
{
    if (!d)
        return;
    sqlite3_close(d->db);
    free(d);
}

/* ---- keys ------------------------------------------------------------- */

static void bind_text(sqlite3_stmt *s, int i, const char *text)
{
    sqlite3_bind_text(s, i, text, -1, SQLITE_TRANSIENT);
}

static void bind_key(sqlite3_stmt *s, const MatmulTuning *t)
{
    const MatmulSpec *p = &t->spec;
    bind_text(s, 1, t->template);
    bind_text(s, 2, t->device);
    bind_text(s, 3, t->driver);
    bind_text(s, 4, dtype_name(p->weights));
    bind_text(s, 5, dtype_name(p->activations));
    bind_text(s, 6, dtype_name(p->scales));
    bind_text(s, 7, dtype_name(p->result));
    sqlite3_bind_int64(s, 8, p->group * p->repeats);
    bind_text(s, 9, zeros_names[p->zeros]);
    sqlite3_bind_int64(s, 10, p->n);
    sqlite3_bind_int64(s, 11, p->k);
    sqlite3_bind_int64(s, KEY_COUNT, t->m);
}

static void bind_config(sqlite3_stmt *s, const MatmulConfig *c)
{
    for (int i = 0; i < MATMUL_FIELDS; i++)
        sqlite3_bind_int(s, KEY_COUNT + 1 + i, matmul_field_value(c, i));
}

static MatmulConfig read_config(sqlite3_stmt *s, int first)
{
    MatmulConfig c;
    for (int i = 0; i < MATMUL_FIELDS; i++)
        *matmul_field(&c, i) = sqlite3_column_int(s, first + i);
    return c;
}

static MatmulTuning make_tuning(const Task *task, const Origin *origin)
{
    MatmulTuning t = {.spec = task->spec, .m = task->m};
    snprintf(t.template, sizeof t.template, "%s", matmul_template_hash());
    snprintf(t.device, sizeof t.device, "%s", origin->device);
    snprintf(t.driver, sizeof t.driver, "%s", origin->driver);
    return t;
}

/* ---- one search ------------------------------------------------------- */

static const char *text_at(sqlite3_stmt *s, int i)
{
    const unsigned char *text = sqlite3_column_text(s, i);
    return text ? (const char *)text : "";
}

static void recall(const Candidates *candidates, sqlite3_stmt *s)
{
    const MatmulConfig config = read_config(s, 2);
    for (size_t i = 0; i < candidates->count; i++) {
        Candidate *c = &candidates->items[i];
        if (memcmp(&c->config, &config, sizeof config) != 0)
            continue;
        Outcome outcome = outcome_find(text_at(s, 0));
        c->begun = outcome == OUTCOME_BEGUN;
        c->outcome = c->begun ? OUTCOME_NONE : outcome;
        c->us = sqlite3_column_double(s, 1);
    }
}

bool database_recall(Database *d, const Task *task, const Origin *origin,
                     const Candidates *candidates)
{
    static const char sql[] =
        "SELECT outcome, us" MATMUL_CONFIG(COLUMN) " FROM measurements WHERE (" KEY_COLUMNS
        ") = (" KEY_PLACES ")";
    const MatmulTuning key = make_tuning(task, origin);
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
        return fail(d);
    bind_key(s, &key);
    int status;
    while ((status = sqlite3_step(s)) == SQLITE_ROW)
        recall(candidates, s);
    sqlite3_finalize(s);
    return status == SQLITE_DONE || fail(d);
}

static bool add(Database *d, const MatmulTuning *t, const char *outcome, const char *note)
{
    static const char sql[] =
        "INSERT OR REPLACE INTO measurements (" KEY_COLUMNS MATMUL_CONFIG(COLUMN)
        ", outcome, us, note) VALUES (" KEY_PLACES MATMUL_CONFIG(PLACE) ", ?, ?, ?)";
    sqlite3_stmt *s;
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
        return fail(d);
    bind_key(s, t);
    bind_config(s, &t->config);
    bind_text(s, KEY_COUNT + MATMUL_FIELDS + 1, outcome);
    if (t->us > 0)
        sqlite3_bind_double(s, KEY_COUNT + MATMUL_FIELDS + 2, t->us);
    bind_text(s, KEY_COUNT + MATMUL_FIELDS + 3, note);
    int status = sqlite3_step(s);
    sqlite3_finalize(s);
    return status == SQLITE_DONE || fail(d);
}

bool database_add(Database *d, const Task *task, const Origin *origin,
                  const Candidate *candidate, const char *note)
{
    MatmulTuning t = make_tuning(task, origin);
    t.config = candidate->config;
    t.us = candidate->us;
    return add(d, &t, outcome_name(candidate->outcome), note);
}

bool database_import(Database *d, const MatmulTunings *tunings)
{
    bool ok = execute(d, "BEGIN");
    for (size_t i = 0; ok && i < tunings->count; i++)
        ok = add(d, &tunings->items[i], outcome_name(OUTCOME_OK), "imported");
    if (ok)
        return execute(d, "COMMIT");
    sqlite3_exec(d->db, "ROLLBACK", NULL, NULL, NULL);
    return false;
}

/* ---- what was found --------------------------------------------------- */

static bool read_tuning(const Database *d, sqlite3_stmt *s, MatmulTuning *t)
{
    char message[256];
    *t = (MatmulTuning){.m = sqlite3_column_int64(s, 11), .config = read_config(s, KEY_COUNT),
                        .us = sqlite3_column_double(s, KEY_COUNT + MATMUL_FIELDS)};
    snprintf(t->template, sizeof t->template, "%s", text_at(s, 0));
    snprintf(t->device, sizeof t->device, "%s", text_at(s, 1));
    snprintf(t->driver, sizeof t->driver, "%s", text_at(s, 2));
    tilus_matmul_problem p = {
        .weights = text_at(s, 3), .activations = text_at(s, 4), .scales = text_at(s, 5),
        .result = text_at(s, 6), .group = sqlite3_column_int64(s, 7),
        .n = sqlite3_column_int64(s, 9), .k = sqlite3_column_int64(s, 10)};
    while (p.zeros < TILUS_ZEROS_FLOAT && strcmp(zeros_names[p.zeros], text_at(s, 8)) != 0)
        p.zeros++;
    if (matmul_spec(&p, &t->spec, message, sizeof message))
        return true;
    fprintf(stderr, "%s: error: database '%s': %s\n", TOOL, d->path, message);
    return false;
}

static bool append(Database *d, sqlite3_stmt *s, MatmulTunings *out)
{
    MatmulTuning *items = realloc(out->items, (out->count + 1) * sizeof *items);
    if (!items) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    out->items = items;
    return read_tuning(d, s, &items[out->count++]);
}

/* Selects, for each key without template and driver, the search of the last row, and the least
 * time of that search for each number of rows. */
static const char best_sql[] =
    "WITH ranked AS (SELECT *,"
    " max(id) OVER (PARTITION BY template, device, driver, weights, activations, scales,"
    "  result, grouped, zeros, n, k, m) AS newest,"
    " max(id) OVER (PARTITION BY device, weights, activations, scales, result, grouped,"
    "  zeros, n, k, m) AS newest_of_all"
    " FROM measurements WHERE outcome IN ('ok', 'slow')),"
    " best AS (SELECT *, row_number() OVER (PARTITION BY device, weights, activations,"
    "  scales, result, grouped, zeros, n, k, m, rows ORDER BY us, id) AS place"
    " FROM ranked WHERE newest = newest_of_all) "
    "SELECT " KEY_COLUMNS MATMUL_CONFIG(COLUMN) ", us FROM best WHERE place = 1 "
    "ORDER BY device, weights, activations, scales, result, grouped, zeros, k, n, m, rows";

bool database_best(Database *d, MatmulTunings *out)
{
    sqlite3_stmt *s;
    *out = (MatmulTunings){0};
    if (sqlite3_prepare_v2(d->db, best_sql, -1, &s, NULL) != SQLITE_OK)
        return fail(d);
    int status;
    bool ok = true;
    while (ok && (status = sqlite3_step(s)) == SQLITE_ROW)
        ok = append(d, s, out);
    ok = ok && (status == SQLITE_DONE || fail(d));
    sqlite3_finalize(s);
    if (!ok) {
        free(out->items);
        *out = (MatmulTunings){0};
    }
    return ok;
}

bool database_count(Database *d, size_t counts[OUTCOMES])
{
    sqlite3_stmt *s;
    memset(counts, 0, OUTCOMES * sizeof *counts);
    static const char sql[] = "SELECT outcome, count(*) FROM measurements GROUP BY outcome";
    if (sqlite3_prepare_v2(d->db, sql, -1, &s, NULL) != SQLITE_OK)
        return fail(d);
    int status;
    while ((status = sqlite3_step(s)) == SQLITE_ROW)
        counts[outcome_find(text_at(s, 0))] += (size_t)sqlite3_column_int64(s, 1);
    sqlite3_finalize(s);
    return status == SQLITE_DONE || fail(d);
}
