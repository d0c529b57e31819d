/* The space, cheapest first. */
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"none",   "ok",      "slow", "wrong",
                                    "failed", "crashed", "late"};

const char *outcome_name(Outcome outcome)
{
    return names[outcome];
}

Outcome outcome_find(const char *name)
{
    for (Outcome o = OUTCOME_NONE; o <= OUTCOME_LATE; o++)
        if (strcmp(name, names[o]) == 0)
            return o;
    return OUTCOME_NONE;
}

typedef struct Collect {
    const Task *task;
    const MatmulDevice *device;
    Candidates *out;
    size_t capacity;
    bool failed;
} Collect;

static void collect(void *data, const MatmulConfig *config)
{
    Collect *c = data;
    Candidates *out = c->out;
    if (out->count == c->capacity) {
        size_t capacity = c->capacity ? 2 * c->capacity : 64;
        Candidate *items = realloc(out->items, capacity * sizeof *items);
        if (!items) {
            c->failed = true;
            return;
        }
        out->items = items;
        c->capacity = capacity;
    }
    double cost = matmul_cost(&c->task->spec, config, c->task->m, c->device);
    out->items[out->count++] = (Candidate){.config = *config, .cost = cost};
}

/* By cost; ties by their numbers, so that the order is one. */
static int compare(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return memcmp(&x->config, &y->config, sizeof x->config);
}

/* Keeps, in order, the first `most` and the first few of each number of rows. */
static void prune(Candidates *c, size_t most)
{
    enum { OF_ROWS = 4, KINDS = 3 };
    unsigned seen[KINDS] = {0};
    size_t kept = 0;
    for (size_t i = 0; i < c->count; i++) {
        int rows = c->items[i].config.rows;
        int kind = rows <= 32 ? 0 : rows <= 64 ? 1 : 2;
        if (seen[kind]++ < OF_ROWS || kept < most)
            c->items[kept++] = c->items[i];
    }
    c->count = kept;
}

bool candidates_make(const Task *task, const MatmulDevice *device, size_t most,
                     Candidates *out)
{
    Collect c = {.task = task, .device = device, .out = out};
    *out = (Candidates){0};
    matmul_enumerate(&task->spec, task->m, device, collect, &c);
    if (c.failed) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        free(out->items);
        return false;
    }
    if (out->count > 0)
        qsort(out->items, out->count, sizeof *out->items, compare);
    prune(out, most);
    return true;
}
