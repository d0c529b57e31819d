/* Choosing by tunings and by the cost model. */
#include "matmul/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ----------------------------------------------------------- */

struct MatmulTable {
    MatmulTunings user;
};

/* As `tilus-tune export --c` writes them. */
#define TUNING(hash, weights, activations, scales, result, group, zeros, n, k, m, device,    \
               driver, rows, rwarps, kwarps, deep, stages, columns, tiles, prepared, scaled, \
               per_sm, us)                                                                   \
    {hash, {weights, activations, scales, result, n, k, group, TILUS_ZEROS_##zeros}, m,      \
     device, driver, {rows, rwarps, kwarps, deep, stages, columns, tiles, prepared, scaled,  \
                      per_sm}, us},

static const struct BuiltIn {
    const char *hash;
    struct {
        const char *weights, *activations, *scales, *result;
        int64_t n, k, group;
        tilus_zeros zeros;
    } problem;
    int64_t m;
    const char *device, *driver;
    MatmulConfig config;
    double us;
} built_in[] = {
#include "matmul/h200.inc"
};

const char *matmul_template_hash(void)
{
    return MATMUL_TEMPLATE;
}

bool matmul_table_open(const char *json, MatmulTable **out, char *message, size_t size)
{
    MatmulTable *table = *out = calloc(1, sizeof *table);
    if (!table) {
        snprintf(message, size, "%s", "");
        return false;
    }
    if (!json || matmul_tunings_read(json, &table->user, message, size))
        return true;
    matmul_table_free(table);
    *out = NULL;
    return false;
}

void matmul_table_free(MatmulTable *table)
{
    if (table)
        free(table->user.items);
    free(table);
}

/* ---- which tunings count ---------------------------------------------- */

enum { BUCKET_ONE_TILE = 8 };   /* up to which configurations differ by their columns only */

typedef struct Query {
    const MatmulTable *table;
    const MatmulSpec *spec;
    const MatmulDevice *device;
    int rows;                   /* 0: any */
    int64_t bucket;
} Query;

/* The spec and texts of a built-in tuning, as if it had been read. */
static MatmulTuning built_in_tuning(size_t i)
{
    const struct BuiltIn *b = &built_in[i];
    MatmulTuning t = {.m = b->m, .config = b->config, .us = b->us};
    const tilus_matmul_problem problem = {
        .weights = b->problem.weights, .activations = b->problem.activations,
        .scales = b->problem.scales, .result = b->problem.result, .n = b->problem.n,
        .k = b->problem.k, .group = b->problem.group, .zeros = b->problem.zeros};
    char message[128];
    matmul_spec(&problem, &t.spec, message, sizeof message);
    snprintf(t.template, sizeof t.template, "%s", b->hash);
    snprintf(t.device, sizeof t.device, "%s", b->device);
    snprintf(t.driver, sizeof t.driver, "%s", b->driver);
    return t;
}

/* Cheap and first: most built-in tunings are of other shapes. */
static bool is_built_in_for(size_t i, const MatmulSpec *spec)
{
    return built_in[i].problem.n == spec->n && built_in[i].problem.k == spec->k;
}

static bool is_same_problem(const MatmulTuning *t, const Query *q)
{
    const MatmulSpec *a = &t->spec, *b = q->spec;
    return a->n == b->n && a->k == b->k && a->weights == b->weights &&
           a->product == b->product && a->group == b->group && a->repeats == b->repeats &&
           strcmp(t->device, q->device->name) == 0 &&
           (q->rows == 0 || t->config.rows == q->rows);
}

/* How far a bucket is from the one that is asked for; -1: it does not help there. */
static int bucket_distance(int64_t bucket, int64_t wanted)
{
    int distance = 0;
    if (bucket == wanted)
        return 0;
    if (bucket > BUCKET_ONE_TILE || wanted > BUCKET_ONE_TILE)
        return -1;
    int beyond = bucket < wanted ? BUCKET_ONE_TILE : 0;     /* after all larger ones */
    for (; bucket < wanted; bucket *= 2)
        distance++;
    for (; wanted < bucket; wanted *= 2)
        distance++;
    return distance + beyond;
}

/* The less, the better does a tuning fit the question; -1: not at all. */
static int rank(const MatmulTuning *t, const Query *q)
{
    int distance = is_same_problem(t, q) ? bucket_distance(t->m, q->bucket) : -1;
    if (distance < 0)
        return -1;
    return distance * 16 + (strcmp(t->template, matmul_template_hash()) != 0) * 8 +
           (t->spec.zeros != q->spec->zeros) * 4 + (t->spec.scales != q->spec->scales) * 2 +
           (t->spec.result != q->spec->result);
}

typedef struct Best {
    bool found;
    int rank;
    MatmulChoice choice;
} Best;

static void consider(Best *best, const MatmulTuning *t, MatmulSource source, const Query *q)
{
    int r = rank(t, q);
    if (r < 0 || (best->found && (r > best->rank ||
                                  (r == best->rank && t->us >= best->choice.us))))
        return;
    MatmulConfig c = t->config;
    if (t->m != q->bucket)
        c.columns = (int)q->bucket;
    if (matmul_config_fits(q->spec, &c, q->device))
        *best = (Best){true, r, {c, source, r == 0, t->us}};
}

static Best find_tuning(const Query *q)
{
    Best best = {0};
    for (size_t i = 0; i < q->table->user.count; i++)
        consider(&best, &q->table->user.items[i], MATMUL_FROM_USER, q);
    if (best.found)
        return best;
    for (size_t i = 0; i < sizeof built_in / sizeof *built_in; i++)
        if (is_built_in_for(i, q->spec)) {
            MatmulTuning t = built_in_tuning(i);
            consider(&best, &t, MATMUL_FROM_BUILT_IN, q);
        }
    return best;
}

/* ---- the cost model --------------------------------------------------- */

typedef struct Search {
    const Query *query;
    Best best;
} Search;

static void consider_cost(void *data, const MatmulConfig *c)
{
    Search *s = data;
    const Query *q = s->query;
    if (q->rows && c->rows != q->rows)
        return;
    double us = matmul_cost(q->spec, c, q->bucket, q->device);
    if (!s->best.found || us < s->best.choice.us)
        s->best = (Best){true, 0, {*c, MATMUL_FROM_MODEL, false, us}};
}

static Best find_cheapest(const Query *q)
{
    Search s = {q, {0}};
    matmul_enumerate(q->spec, q->bucket, q->device, consider_cost, &s);
    return s.best;
}

bool matmul_table_config(const MatmulTable *table, const MatmulSpec *spec, int rows, int64_t m,
                         const MatmulDevice *device, MatmulChoice *choice)
{
    Query q = {table, spec, device, rows, matmul_bucket(m)};
    Best best = find_tuning(&q);
    if (!best.found)
        best = find_cheapest(&q);
    *choice = best.choice;
    return best.found;
}

/* ---- rows ------------------------------------------------------------- */

/* Microseconds in a bucket, as matmul_table_rows counts them; negative: nothing fits. */
static double time_of_rows(const Query *any, int rows)
{
    Query q = *any;
    q.rows = rows;
    Best tuned = find_tuning(any), own = find_tuning(&q);
    if (own.found)
        return own.choice.us;
    Best modelled = find_cheapest(&q);
    return !modelled.found ? -1 : tuned.found ? 2 * tuned.choice.us : modelled.choice.us;
}

int matmul_table_rows(const MatmulTable *table, const MatmulSpec *spec,
                      const MatmulDevice *device)
{
    static const int all_rows[] = {32, 64, 128};
    enum { BUCKET_LAST = 16 };
    int best = 0;
    double least = 0;
    for (size_t i = 0; i < sizeof all_rows / sizeof *all_rows; i++) {
        Query q = {table, spec, device, 0, 1};
        double sum = 0, us = 0;
        for (; q.bucket <= BUCKET_LAST && us >= 0; q.bucket *= 2)
            sum += us = time_of_rows(&q, all_rows[i]);
        if (us >= 0 && (best == 0 || sum < least)) {
            best = all_rows[i];
            least = sum;
        }
    }
    return best;
}
