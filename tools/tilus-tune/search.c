/* The space, cheapest first, of each number of rows in turn. */
#include "search.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"none",   "ok",      "slow", "wrong",
                                    "failed", "crashed", "late", "begun"};

const char *outcome_name(Outcome outcome)
{
    return names[outcome];
}

Outcome outcome_find(const char *name)
{
    for (Outcome o = OUTCOME_NONE; o < OUTCOMES; o++)
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
    Candidate *candidate = &out->items[out->count++];
    *candidate = (Candidate){.config = *config, .launched = *config, .cost = cost};
    matmul_arrange_in_blocks(&c->task->spec, &candidate->launched, c->device);
}

/* Compares by cost, then by number, so that the order is one. */
static int compare_costs(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->cost != y->cost)
        return x->cost < y->cost ? -1 : 1;
    return memcmp(&x->config, &y->config, sizeof x->config);
}

static int compare_places(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    return x->place != y->place ? (x->place > y->place) - (x->place < y->place)
                                : compare_costs(a, b);
}

static void sort(Candidates *c, int (*compare)(const void *, const void *))
{
    if (c->count > 0)
        qsort(c->items, c->count, sizeof *c->items, compare);
}

/* Numbers candidates, which are ordered by cost, among candidates of equal rows. */
static void find_places(Candidates *c)
{
    enum { KINDS = 3 };
    size_t seen[KINDS] = {0};
    for (size_t i = 0; i < c->count; i++) {
        int rows = c->items[i].config.rows;
        c->items[i].place = seen[rows <= 32 ? 0 : rows <= 64 ? 1 : 2]++;
    }
}

bool candidates_make(const Task *task, const MatmulDevice *device, size_t most,
                     Candidates *out)
{
    Collect c = {.task = task, .device = device, .out = out};
    *out = (Candidates){0};
    matmul_enumerate(&task->spec, 0, task->m, device, collect, &c);
    if (c.failed) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        free(out->items);
        return false;
    }
    sort(out, compare_costs);
    find_places(out);
    sort(out, compare_places);
    if (out->count > most)
        out->count = most;
    return true;
}
