/* Counters and times, and how they are printed. */
#include "passes/report.h"

#include "support/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counters ----------------------------------------------------------- */

static const struct {
    int pass;
    const char *name, *summary;
} stat_info[STAT_COUNT] = {
#define STAT(pass, id, summary) [STAT_##pass##_##id] = {PASS_ID_##pass, #id, summary},
#include "passes/stats.def"
};

void stats_open(Module *m, bool on)
{
    m->pass_stats = on ? arena_array(&m->arena, uint64_t, STAT_COUNT) : NULL;
    m->own_stats = NULL;
}

static void print_stat(const Writer *out, uint64_t count, const char *pass, const char *name,
                       const char *summary)
{
    int pad = 19 - (int)strlen(pass);
    writer_printf(out, "%10llu  %s.%-*s  %s\n", (unsigned long long)count, pass,
            pad > 0 ? pad : 0, name, summary);
}

static void member_json(const Writer *out, bool *first, const char *pass, const char *name,
                        uint64_t count)
{
    char key[256];
    snprintf(key, sizeof key, "%s.%s", pass, name);
    write_json_key(out, key, *first);
    writer_printf(out, "%llu", (unsigned long long)count);
    *first = false;
}

/* {"statistics": {"fold.ops": 3}} */
static void stats_json(const Module *m, const Writer *out)
{
    bool first = true;
    writer_add(out, "{\"statistics\": {");
    for (Stat stat = 0; stat < STAT_COUNT; stat++)
        if (m->pass_stats[stat])
            member_json(out, &first, pass_info[stat_info[stat].pass].name, stat_info[stat].name,
                        m->pass_stats[stat]);
    for (const OwnStat *s = m->own_stats; s; s = s->next)
        if (s->count)
            member_json(out, &first, own_pass_name(s->pass), s->name, s->count);
    writer_add(out, "}}\n");
}

void stats_print(const Module *m, const Writer *out, tilus_table form)
{
    if (form == TILUS_TABLE_JSON) {
        stats_json(m, out);
        return;
    }
    writer_printf(out, "// ---- statistics ----\n");
    for (Stat stat = 0; stat < STAT_COUNT; stat++)
        if (m->pass_stats[stat])
            print_stat(out, m->pass_stats[stat], pass_info[stat_info[stat].pass].name,
                       stat_info[stat].name, stat_info[stat].summary);
    for (const OwnStat *s = m->own_stats; s; s = s->next)
        if (s->count)
            print_stat(out, s->count, own_pass_name(s->pass), s->name, own_pass_summary(s->pass));
}

/* ---- times ------------------------------------------------------------------ */

typedef struct Row {
    double seconds;
    unsigned runs;
    const char *name;
} Row;

static int longer_first(const void *x, const void *y)
{
    const Row *a = x, *b = y;
    return (a->seconds < b->seconds) - (a->seconds > b->seconds);
}

static void print_row(const Writer *out, const Row *row, double total)
{
    writer_printf(out, "%9.3f ms %6.1f%% %6u  %s\n", 1e3 * row->seconds,
            total > 0 ? 100 * row->seconds / total : 0, row->runs, row->name);
}

void pass_times_add(PassTimes *times, const PassInfo *pass, double seconds)
{
    unsigned i = 0;
    while (i < times->count && times->passes[i] != pass)
        i++;
    if (i == times->count)
        times->passes[times->count++] = pass;
    times->pass[i] += seconds;
    times->pass_runs[i]++;
}

/* Fills the rows of what ran, the longest first; their number. */
static size_t find_rows(const PassTimes *times, Row rows[PASS_TIMES + 1])
{
    size_t count = 0;
    for (unsigned i = 0; i < times->count; i++)
        rows[count++] = (Row){times->pass[i], times->pass_runs[i], times->passes[i]->name};
    if (times->verify_runs)
        rows[count++] = (Row){times->verify, times->verify_runs, "(verify)"};
    qsort(rows, count, sizeof *rows, longer_first);
    return count;
}

static void print_table(const Writer *out, const Row *rows, size_t count)
{
    Row total = {.name = "total"};
    for (size_t i = 0; i < count; i++) {
        total.seconds += rows[i].seconds;
        total.runs += rows[i].runs;
    }
    writer_printf(out, "// ---- time of passes ----\n        time   share   runs  pass\n");
    for (size_t i = 0; i < count; i++)
        print_row(out, &rows[i], total.seconds);
    print_row(out, &total, total.seconds);
}

void pass_times_print(const PassTimes *times, const Writer *out, tilus_table form)
{
    Row rows[PASS_TIMES + 1];
    size_t count = find_rows(times, rows);
    if (form == TILUS_TABLE_TEXT) {
        print_table(out, rows, count);
        return;
    }
    writer_add(out, "{\"times\": [");
    for (size_t i = 0; i < count; i++)
        writer_printf(out, "%s{\"pass\": \"%s\", \"seconds\": %.9f, \"runs\": %u}", i ? ", " : "",
                      rows[i].name, rows[i].seconds, rows[i].runs);
    writer_add(out, "]}\n");
}
