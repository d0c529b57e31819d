/* Choosing by tunings and by the cost model. */
#include "matmul/table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- tables ----------------------------------------------------------- */

struct MatmulTable {
    MatmulTunings user, built_in;
};

/* Reads a row as `tilus-tune export --format=c` writes it. */
#define TUNING(hash, weights, activations, scales, result, group, zeros, n, k, m, device,    \
               driver, us, ...)                                                              \
    {hash, {weights, activations, scales, result, n, k, group, TILUS_ZEROS_##zeros}, m,      \
     device, driver, us, {__VA_ARGS__}},

static const struct BuiltIn {
    const char *hash;
    struct {
        const char *weights, *activations, *scales, *result;
        int64_t n, k, group;
        tilus_zeros zeros;
    } problem;
    int64_t m;
    const char *device, *driver;
    double us;
    MatmulConfig config;
} built_in_rows[] = {
#include "matmul/h100.inc"
#include "matmul/h200.inc"
};
#undef TUNING

const char *matmul_template_hash(void)
{
    return MATMUL_TEMPLATE;
}

/* Makes the tuning that reading the row as JSON would make. */
static MatmulTuning built_in_tuning(const struct BuiltIn *b)
{
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

static bool make_built_in(MatmulTunings *out)
{
    size_t count = sizeof built_in_rows / sizeof *built_in_rows;
    out->items = calloc(count, sizeof *out->items);
    for (; out->items && out->count < count; out->count++)
        out->items[out->count] = built_in_tuning(&built_in_rows[out->count]);
    return out->items;
}

bool matmul_table_open(const char *json, MatmulTable **out, char *message, size_t size)
{
    MatmulTable *table = *out = calloc(1, sizeof *table);
    if (!table || !make_built_in(&table->built_in))
        snprintf(message, size, "%s", "");
    else if (!json || matmul_tunings_read(json, &table->user, message, size))
        return true;
    matmul_table_free(table);
    *out = NULL;
    return false;
}

void matmul_table_free(MatmulTable *table)
{
    if (!table)
        return;
    free(table->user.items);
    free(table->built_in.items);
    free(table);
}

/* ---- which tunings count ---------------------------------------------- */

enum {
    BUCKET_ONE_TILE = 8,    /* up to which configurations differ by their columns only */
    BUCKET_WGMMA = 32,      /* from which the model takes products by wgmma: below mma is as fast */
};

typedef struct Query {
    const MatmulTable *table;
    const MatmulSpec *spec;
    const MatmulDevice *device;
    int rows;                   /* 0: any */
    int64_t bucket;
} Query;

enum { AS_MANY_BITS = 2 };      /* the most of type_distance for those */

/* Returns how near the types of weights are to each other, 0: the same. Of as many bits,
 * integers with or without sign are next, and floats that are packed as such, then the other of
 * integers and floats; then those of a bit less, whose best configurations serve well where memory binds
 * more; then of a bit more. -1: they say nothing of each other. */
static int type_distance(const MatmulSpec *of, const MatmulSpec *wanted)
{
    static const int by_bits[] = {5, 1, 3};     /* a bit more, as many, a bit less */
    int less = (int)dtype_bits(wanted->stored) - (int)dtype_bits(of->stored);
    if (of->weights == wanted->weights)
        return 0;
    if (less < -1 || less > 1)
        return -1;
    return by_bits[less + 1] + (dtype_is_float(of->stored) != dtype_is_float(wanted->stored));
}

/* Counts the steps between groups of 16, 32, 64, 128 and all of k. Others count as their greatest
 * part of these: groups of 96 as 32, of 192 as 64. */
static int group_distance(const MatmulSpec *a, const MatmulSpec *b)
{
    int steps = 0;
    int64_t all = 2 * MATMUL_PACKED_K;
    int64_t x = a->group ? a->group : all, y = b->group ? b->group : all;
    for (; x < y; x *= 2)
        steps++;
    for (; y < x; y *= 2)
        steps++;
    return steps;
}

/* Returns true where the groups of a tuning say something of those that are wanted: where scales of both
 * act on weights whatever m is, or of neither; or those of 128 and more, which say something of all. */
static bool serves_groups(const MatmulSpec *of, const MatmulSpec *wanted)
{
    return of->group == 0 || of->group == MATMUL_PACKED_K ||
           matmul_scales_weights_only(of) == matmul_scales_weights_only(wanted);
}

static bool is_same_shape(const MatmulTuning *t, const Query *q)
{
    return t->spec.n == q->spec->n && t->spec.k == q->spec->k &&
           strcmp(t->device, q->device->name) == 0 &&
           (q->rows == 0 || t->config.rows == q->rows);
}

/* Returns how far a bucket is from the one that is asked for; -1: too far. */
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

/* The distance of a tuning from the query: `type`, then `bucket`, then `rest`. */
typedef struct Rank {
    int type, bucket, rest;
} Rank;

/* Returns false when the tuning is too far from the query. */
static bool find_rank(const MatmulTuning *t, const Query *q, Rank *rank)
{
    const MatmulSpec *a = &t->spec, *b = q->spec;
    int bucket = is_same_shape(t, q) ? bucket_distance(t->m, q->bucket) : -1;
    rank->type = type_distance(a, b);
    rank->bucket = bucket;
    if (bucket < 0 || rank->type < 0 || !serves_groups(a, b))
        return false;
    const int bits[] = {strcmp(t->template, matmul_template_hash()) != 0, a->product != b->product,
                        a->zeros != b->zeros, a->repeats != b->repeats,
                        a->scales != b->scales, a->activations != b->activations, a->result != b->result};
    rank->rest = group_distance(a, b);
    for (size_t i = 0; i < sizeof bits / sizeof *bits; i++)
        rank->rest = 2 * rank->rest + bits[i];
    return true;
}

static int compare_ranks(Rank a, Rank b)
{
    int type = a.type - b.type, bucket = a.bucket - b.bucket;
    return type ? type : bucket ? bucket : a.rest - b.rest;
}

typedef struct Best {
    bool found;
    Rank rank;
    MatmulChoice choice;
} Best;

/* Returns the time to expect of the query's problem: as far from the read floor. From BUCKET_WGMMA on
 * fewer bytes take no less time, as multiplications bind. */
static double expect_time(const MatmulTuning *t, const Query *q)
{
    double us = t->us * (matmul_floor(q->spec, q->bucket, q->device) /
                         matmul_floor(&t->spec, t->m, q->device));
    return q->bucket >= BUCKET_WGMMA ? fmax(us, t->us) : us;
}

/* Has scales act on weights in what was measured with scales on sums. Floats, which take more
 * instructions then than four warps issue, get two blocks in the place of one if they fit. */
static void put_scales_on_weights(MatmulConfig *c, const Query *q)
{
    enum { WARPS = 4, STAGES = 2, BLOCKS = 2 };
    MatmulConfig two = *c;
    c->scale_weights = two.scale_weights = 1;
    two.per_sm = BLOCKS;
    two.stages = STAGES;
    if (dtype_is_float(q->spec->stored) && c->per_sm == 1 && c->stages > STAGES &&
        c->warps_n * c->warps_k <= WARPS && !matmul_by_wgmma(c) &&
        matmul_config_fits(q->spec, &two, q->device))
        *c = two;
}

static void consider(Best *best, const MatmulTuning *t, MatmulSource source, const Query *q)
{
    Rank rank;
    if (!find_rank(t, q, &rank))
        return;
    double us = expect_time(t, q);
    int order = best->found ? compare_ranks(rank, best->rank) : -1;
    if (order > 0 || (order == 0 && us >= best->choice.us))
        return;
    MatmulConfig c = t->config;
    matmul_config_renew(&c);
    if (t->m != q->bucket)
        c.columns = (int)q->bucket;
    if (matmul_scales_weights_only(q->spec) && !c.scale_weights)
        put_scales_on_weights(&c, q);
    bool exact = rank.type == 0 && rank.bucket == 0 && rank.rest == 0;
    if (matmul_config_fits(q->spec, &c, q->device))
        *best = (Best){true, rank, {c, source, exact, us}};
}

static Best find_in(const MatmulTunings *tunings, MatmulSource source, const Query *q)
{
    Best best = {0};
    for (size_t i = 0; i < tunings->count; i++)
        consider(&best, &tunings->items[i], source, q);
    return best;
}

/* Finds the nearest tuning: of the user first, but a nearer type of weights goes before. Tunings do
 * not say what tensor cores multiply: none is of a product of 8 bits. */
static Best find_tuning(const Query *q)
{
    if (matmul_is_a8(q->spec))
        return (Best){0};
    Best user = find_in(&q->table->user, MATMUL_FROM_USER, q);
    Best built = find_in(&q->table->built_in, MATMUL_FROM_BUILT_IN, q);
    return user.found && (!built.found || user.rank.type <= built.rank.type) ? user : built;
}

/* ---- the cost model --------------------------------------------------- */

typedef struct Search {
    const Query *query;
    bool by_wgmma;              /* nothing else */
    Best best;
} Search;

/* Considers a configuration: by wgmma; or, unless the search leaves others out, without zero
 * points by mma and register reallocation, of which the model knows no times. */
static void consider_cost(void *data, const MatmulConfig *c)
{
    Search *s = data;
    const Query *q = s->query;
    bool known = matmul_by_wgmma(c) ? q->bucket >= BUCKET_WGMMA || matmul_is_a8(q->spec)
                                    : !s->by_wgmma && !c->zeros_by_mma && !c->register_reallocation;
    if (!known)
        return;
    double us = matmul_cost(q->spec, c, q->bucket, q->device);
    if (!s->best.found || us < s->best.choice.us)
        s->best = (Best){true, {0}, {*c, MATMUL_FROM_MODEL, false, us}};
}

static Best find_cheapest(const Query *q, bool by_wgmma)
{
    Search s = {q, by_wgmma, {0}};
    matmul_enumerate(q->spec, q->rows, q->bucket, q->device, consider_cost, &s);
    return s.best;
}

/* Returns true where a product by wgmma may be better than a built-in tuning, which was measured
 * before there were such products. */
static bool is_outdated(const Best *tuned, const Query *q)
{
    return tuned->choice.source == MATMUL_FROM_BUILT_IN && q->bucket >= BUCKET_WGMMA &&
           !matmul_by_wgmma(&tuned->choice.config);
}

/* The share of a measured time below which one by the model is less. */
static const double SURELY_LESS = 0.95;

bool matmul_table_config(const MatmulTable *table, const MatmulSpec *spec, int rows, int64_t m,
                         const MatmulDevice *device, MatmulChoice *choice)
{
    Query q = {table, spec, device, rows, matmul_bucket(m)};
    Best best = find_tuning(&q);
    if (!best.found)
        best = find_cheapest(&q, false);
    else if (is_outdated(&best, &q)) {
        Best newer = find_cheapest(&q, true);
        if (newer.found && newer.choice.us < best.choice.us * SURELY_LESS)
            best = newer;
    }
    *choice = best.choice;
    return best.found;
}

/* ---- rows ------------------------------------------------------------- */

/* Returns true when the bucket itself has tunings, not only one that stands in for it. */
static bool is_tuned(const Best *best)
{
    return best->found && best->rank.bucket == 0;
}

/* Microseconds in a bucket, as matmul_table_rows counts them; negative: nothing fits. */
static double time_of_rows(const Query *any, int rows)
{
    Query q = *any;
    q.rows = rows;
    Best tuned = find_tuning(any), own = find_tuning(&q);
    if (rows > matmul_rows_most(q.spec))
        return -1;
    if (is_tuned(&tuned) && is_tuned(&own) && own.rank.type == tuned.rank.type)
        return own.choice.us;
    Best modelled = find_cheapest(&q, false);
    return !modelled.found ? -1 : is_tuned(&tuned) ? 2 * tuned.choice.us : modelled.choice.us;
}

enum { ROWS_KINDS = 3 };
static const int all_rows[ROWS_KINDS] = {32, 64, 128};

/* Adds how many times as long as the best each number of rows takes in a bucket, squared: 20 %
 * more in one bucket count as 5 % in four do, and a bit. */
static void add_bucket(const Query *any, double weight, double sums[ROWS_KINDS])
{
    double us[ROWS_KINDS], best = INFINITY;
    for (size_t i = 0; i < ROWS_KINDS; i++) {
        us[i] = time_of_rows(any, all_rows[i]);
        best = us[i] >= 0 ? fmin(best, us[i]) : best;
    }
    for (size_t i = 0; i < ROWS_KINDS; i++)
        sums[i] += us[i] >= 0 ? weight * (us[i] / best) * (us[i] / best) : INFINITY;
}

/* Buckets whose rows matter most, and the largest that counts at all. */
enum { BUCKET_DECODE = 16, BUCKET_LAST = 256 };

/* Beyond m = 16, where much shared memory is taken, what is best of fewer bits often does not
 * fit. */
static bool has_tuning(const Query *q)
{
    Best best = find_tuning(q);
    return is_tuned(&best) &&
           (q->bucket <= BUCKET_DECODE || best.rank.type <= AS_MANY_BITS);
}

int matmul_table_rows(const MatmulTable *table, const MatmulSpec *spec,
                      const MatmulDevice *device)
{
    const double weight_decode = 1, weight_beyond = 0.25;
    double sums[ROWS_KINDS] = {0}, least = INFINITY;
    int best = 0;
    bool measured = false;
    Query q = {.table = table, .spec = spec, .device = device};
    for (q.bucket = 1; q.bucket <= BUCKET_DECODE; q.bucket *= 2)
        measured |= has_tuning(&q);
    for (q.bucket = 1; q.bucket <= BUCKET_LAST; q.bucket *= 2)
        if (has_tuning(&q) || (!measured && q.bucket <= BUCKET_DECODE))
            add_bucket(&q, q.bucket <= BUCKET_DECODE ? weight_decode : weight_beyond, sums);
    for (size_t i = 0; i < ROWS_KINDS; i++)
        if (sums[i] < least) {
            best = all_rows[i];
            least = sums[i];
        }
    return best;
}
