/* The search: candidates of all tasks are compiled in the background, cheapest first, and
 * measured here, one after the other. Each goes into the database at once. */
#define _GNU_SOURCE
#include "common/progress.h"
#include "compiler.h"
#include "database.h"
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A task with its candidates. */
typedef struct Search {
    Task task;
    Candidates candidates;
    size_t left;                /* not measured yet */
} Search;

typedef struct Run {
    const Settings *settings;
    Engine *engine;
    Compiler *compiler;
    Database *database;
    Origin origin;
    Search *searches;
    size_t count;
    Progress *progress;
    size_t done, total;         /* candidates of this run */
    size_t wrong;
    double deadline;            /* seconds of the clock; 0: none */
    Data data;                  /* of the shape at hand */
    Shape shape;
    bool failed;                /* nothing can go on; it was said why */
} Run;

static bool is_over(const Run *r)
{
    return r->failed || tune_interrupted || (r->deadline > 0 && tune_seconds() > r->deadline);
}

/* ---- results ---------------------------------------------------------- */

static void record(Run *r, Search *s, Candidate *c, Outcome outcome, const char *note)
{
    c->outcome = outcome;
    s->left--;
    progress_update(r->progress, (int64_t)++r->done, (int64_t)r->total);
    if (!database_add(r->database, &s->task, &r->origin, c, note))
        r->failed = true;
    if (outcome != OUTCOME_WRONG && outcome != OUTCOME_FAILED && outcome != OUTCOME_CRASHED &&
        outcome != OUTCOME_LATE)
        return;
    char text[128];
    progress_hide(r->progress);
    r->wrong += outcome == OUTCOME_WRONG;
    fprintf(stderr, "%s: %s: %s: %s: %s\n", TOOL, outcome == OUTCOME_WRONG ? "WRONG RESULT" :
            outcome_name(outcome), task_print(&s->task, text), c->product->name, note);
}

/* The fastest of those that are right; NULL: there is none. */
static const Candidate *find_best(const Search *s)
{
    const Candidate *best = NULL;
    for (size_t i = 0; i < s->candidates.count; i++) {
        const Candidate *c = &s->candidates.items[i];
        if (c->outcome == OUTCOME_OK && (!best || c->us < best->us))
            best = c;
    }
    return best;
}

static void print_counts(const Search *s)
{
    size_t counts[OUTCOME_LATE + 1] = {0};
    const char *gap = "";
    for (size_t i = 0; i < s->candidates.count; i++)
        counts[s->candidates.items[i].outcome]++;
    for (Outcome o = OUTCOME_NONE; o <= OUTCOME_LATE; o++)
        if (counts[o]) {
            printf("%s%zu %s", gap, counts[o], o ? outcome_name(o) : "not measured");
            gap = ", ";
        }
}

static void print_search(const Run *r, const Search *s)
{
    char text[128], config[160];
    const Candidate *best = find_best(s);
    progress_hide(r->progress);
    printf("%s: ", task_print(&s->task, text));
    if (best) {
        double floor = matmul_floor(&s->task.spec, s->task.m, &r->engine->device);
        printf("%.2f us, ", best->us);
        if (r->settings->engine == ENGINE_GPU)
            printf("%.1f %% of the read floor, ", 100 * floor / best->us);
        else
            printf("of the CPU engine, ");
        printf("%s (", config_print(&best->config, config));
    } else {
        printf("nothing found (");
    }
    print_counts(s);
    puts(")");
    fflush(stdout);
}

/* ---- one candidate ---------------------------------------------------- */

static bool check(Run *r, Search *s, Candidate *c, Product *p)
{
    char message[256];
    double error;
    void *result = product_run(p);
    if (!result) {
        record(r, s, c, OUTCOME_FAILED, r->engine->message);
        return false;
    }
    bool right = data_check(&r->data, s->task.m, result, &error, message, sizeof message);
    free(result);
    if (!right)
        record(r, s, c, OUTCOME_WRONG, message);
    return right;
}

static void time_product(Run *r, Search *s, Candidate *c, Product *p)
{
    static const double hopeless = 1.25;        /* times the best */
    const Candidate *best = find_best(s);
    const EngineWork work = {product_launch, p, p->packed->copies};
    bool whole;
    if (!r->engine->time(r->engine, &work, best ? hopeless * best->us : 0, &c->us, &whole)) {
        c->us = 0;
        record(r, s, c, OUTCOME_FAILED, r->engine->message);
    } else {
        record(r, s, c, whole ? OUTCOME_OK : OUTCOME_SLOW, "");
    }
}

static void measure(Run *r, Search *s, Candidate *c)
{
    Product p;
    const Kernels kernels = {c->pack->loaded, c->prepare ? c->prepare->loaded : NULL,
                             c->product->loaded};
    if (!product_open(&p, &r->shape, &c->config, s->task.m, kernels))
        record(r, s, c, OUTCOME_FAILED, r->engine->message);
    else if (check(r, s, c, &p))
        time_product(r, s, c, &p);
    product_close(&p);
    if (!r->engine->lost)
        return;
    fprintf(stderr, "%s: error: %s; run again to go on without this candidate\n", TOOL,
            r->engine->message);
    r->failed = true;
}

/* The kernel of the candidate that stands in its way, NULL when all are ready; in `*state`
 * how it ended. */
static const Kernel *find_obstacle(Run *r, const Candidate *c, KernelState *state)
{
    Kernel *const all[] = {c->pack, c->prepare, c->product};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i] && (*state = compiler_state(r->compiler, all[i])) != KERNEL_READY)
            return all[i];
    return NULL;
}

/* Until it is known better, in case that it ends this process, or never ends. */
static void expect_nothing(Run *r, const Search *s, const Candidate *c)
{
    Candidate lost = *c;
    lost.outcome = OUTCOME_FAILED;
    if (!database_add(r->database, &s->task, &r->origin, &lost, "it did not come back"))
        r->failed = true;
}

static void try_candidate(Run *r, Search *s, Candidate *c)
{
    KernelState state;
    const Kernel *obstacle = find_obstacle(r, c, &state);
    if (obstacle) {
        record(r, s, c, state == KERNEL_CRASHED ? OUTCOME_CRASHED :
               state == KERNEL_LATE ? OUTCOME_LATE : OUTCOME_FAILED, obstacle->message);
        return;
    }
    expect_nothing(r, s, c);
    measure(r, s, c);
}

/* ---- one task --------------------------------------------------------- */

/* The cheapest that waits for nothing. */
static Candidate *next_candidate(Run *r, const Search *s)
{
    for (size_t i = 0; i < s->candidates.count; i++) {
        Candidate *c = &s->candidates.items[i];
        KernelState state;
        if (c->outcome == OUTCOME_NONE &&
            (!find_obstacle(r, c, &state) || kernel_is_settled(state)))
            return c;
    }
    return NULL;
}

static bool is_same_shape(const Run *r, const MatmulSpec *spec)
{
    return r->shape.engine && memcmp(&r->data.spec, spec, sizeof *spec) == 0;
}

/* The data of the shape, for the largest m of its tasks. */
static bool open_shape(Run *r, const Search *s)
{
    int64_t m = s->task.m;
    if (is_same_shape(r, &s->task.spec))
        return true;
    shape_close(&r->shape);
    data_free(&r->data);
    for (size_t i = 0; i < r->count; i++)
        if (memcmp(&r->searches[i].task.spec, &s->task.spec, sizeof s->task.spec) == 0 &&
            r->searches[i].task.m > m)
            m = r->searches[i].task.m;
    if (!data_make(&r->data, &s->task.spec, m))
        return false;
    if (shape_open(&r->shape, r->engine, &r->data))
        return true;
    fprintf(stderr, "%s: error: %s\n", TOOL, r->engine->message);
    return false;
}

static void search(Run *r, Search *s)
{
    size_t seen = 0;
    if (s->left > 0 && !open_shape(r, s))
        r->failed = true;
    while (s->left > 0 && !is_over(r)) {
        Candidate *c = next_candidate(r, s);
        if (c)
            try_candidate(r, s, c);
        else
            seen = compiler_wait(r->compiler, seen);
    }
    print_search(r, s);
}

/* ---- all of them ------------------------------------------------------ */

static bool want_kernels(Run *r, Search *s)
{
    const MatmulSpec *spec = &s->task.spec;
    for (size_t i = 0; i < s->candidates.count; i++) {
        Candidate *c = &s->candidates.items[i];
        if (c->outcome != OUTCOME_NONE)
            continue;
        s->left++;
        c->pack = compiler_want(r->compiler, spec, &c->config, MATMUL_PACK);
        if (c->config.prepared)
            c->prepare = compiler_want(r->compiler, spec, &c->config, MATMUL_PREPARE);
        c->product = compiler_want(r->compiler, spec, &c->config, MATMUL_PRODUCT);
        if (!c->pack || (c->config.prepared && !c->prepare) || !c->product)
            return false;
    }
    r->total += s->left;
    return true;
}

static bool plan(Run *r, const Tasks *tasks)
{
    const Settings *s = r->settings;
    r->searches = calloc(tasks->count, sizeof *r->searches);
    bool ok = r->searches;
    for (size_t i = 0; ok && i < tasks->count; i++) {
        Search *search = &r->searches[r->count];
        search->task = tasks->items[i];
        ok = candidates_make(&search->task, &r->engine->device, s->candidates,
                             &search->candidates);
        r->count += ok;
        ok = ok && (s->again || database_recall(r->database, &search->task, &r->origin,
                                                &search->candidates)) &&
             want_kernels(r, search);
    }
    return ok;
}

static bool load(void *data, Kernel *k)
{
    Engine *e = data;
    k->loaded = e->load(e, k->bytes, k->size, k->message, sizeof k->message);
    free(k->bytes);
    k->bytes = NULL;
    return k->loaded;
}

static void unload(void *data, Kernel *k)
{
    Engine *e = data;
    e->unload(e, k->loaded);
}

static bool open_run(Run *r)
{
    const Settings *s = r->settings;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    unsigned jobs = s->jobs ? s->jobs : processors > 0 ? (unsigned)processors : 1;
    r->database = database_open(s->database, true);
    if (!r->database || !(r->engine = engine_open((EngineKind)s->engine)))
        return false;
    r->origin = (Origin){r->engine->device_name, r->engine->driver};
    r->compiler = compiler_open(jobs, r->engine->target, s->compile_seconds,
                                (Loader){load, unload, r->engine});
    return r->compiler;
}

static void close_run(Run *r)
{
    compiler_close(r->compiler);
    shape_close(&r->shape);
    data_free(&r->data);
    if (r->engine)
        r->engine->close(r->engine);
    database_close(r->database);
    for (size_t i = 0; i < r->count; i++)
        free(r->searches[i].candidates.items);
    free(r->searches);
}

/* Success: each task has a best, nothing is left to measure and nothing was wrong. */
static int finish(const Run *r)
{
    size_t left = 0, without = 0;
    for (size_t i = 0; i < r->count; i++) {
        left += r->searches[i].left;
        without += !find_best(&r->searches[i]);
    }
    if (left > 0)
        fprintf(stderr, "%s: %s, %zu candidates are left; run again to go on\n", TOOL,
                tune_interrupted ? "interrupted" : "not finished", left);
    if (r->wrong > 0)
        fprintf(stderr, "%s: error: %zu wrong results, which the database has with their "
                "configurations\n", TOOL, r->wrong);
    return r->failed || left || without || r->wrong ? EXIT_DIAGNOSTICS : EXIT_OK;
}

int tune_run(const Settings *s)
{
    Run r = {.settings = s};
    Tasks tasks;
    if (!tasks_make(s, &tasks))
        return EXIT_USAGE;
    tune_handle_signals();
    int status = EXIT_DIAGNOSTICS;
    double start = tune_seconds();
    r.deadline = s->seconds > 0 ? start + s->seconds : 0;
    if (open_run(&r) && plan(&r, &tasks)) {
        r.progress = progress_begin(TOOL, r.origin.device, "candidates");
        progress_update(r.progress, 0, (int64_t)r.total);
        for (size_t i = 0; i < r.count; i++)
            search(&r, &r.searches[i]);
        progress_end(r.progress);
        status = finish(&r);
        fprintf(stderr, "%s: %zu candidates in %.1f s\n", TOOL, r.done,
                tune_seconds() - start);
    }
    close_run(&r);
    free(tasks.items);
    return status;
}
