/* The search: candidates are compiled in the background and measured here, one after the
 * other, in rounds: the cheapest few of each task, then as many again, so that a run that is
 * cut has something for all. Each goes into the database at once. */
#define _GNU_SOURCE
#include "common/progress.h"
#include "compiler.h"
#include "database.h"
#include "product.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROUND_FIRST = 24 };      /* candidates of each task up to the end of the first round;
                                   of each other one twice as many as before */

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
    size_t end;                 /* of candidates of each task, in this round */
    Data data;                  /* of the shape at hand, */
    Shape shape;                /* which is open where it has an engine, */
    size_t shape_number;        /* and has this number */
    double began, waited;       /* of the shape: when, and seconds without a kernel to run */
    size_t before;              /* r.done when it began */
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

/* Returns the fastest right candidate with packed blocks of `rows` rows, 0: of any; NULL: there
 * is none. */
static const Candidate *find_best(const Search *s, int rows)
{
    const Candidate *best = NULL;
    for (size_t i = 0; i < s->candidates.count; i++) {
        const Candidate *c = &s->candidates.items[i];
        if (c->outcome == OUTCOME_OK && (rows == 0 || c->config.rows == rows) &&
            (!best || c->us < best->us))
            best = c;
    }
    return best;
}

static void print_counts(const Search *s)
{
    size_t counts[OUTCOMES] = {0};
    const char *gap = "";
    for (size_t i = 0; i < s->candidates.count; i++)
        counts[s->candidates.items[i].outcome]++;
    for (Outcome o = OUTCOME_NONE; o < OUTCOMES; o++)
        if (counts[o]) {
            printf("%s%zu %s", gap, counts[o], o ? outcome_name(o) : "not measured");
            gap = ", ";
        }
}

/* Prints the time that the searches of a shape took, the last of which is `s`. */
static void print_shape(const Run *r, const Search *s)
{
    char text[128];
    double seconds = tune_seconds() - r->began;
    size_t count = r->done - r->before;
    if (count == 0)
        return;
    progress_hide(r->progress);
    printf("%s: %zu candidates in %.1f s, %.1f a second; %.1f s of waiting for kernels\n",
           spec_print(&s->task.spec, text), count, seconds, (double)count / seconds,
           r->waited);
    fflush(stdout);
}

static void print_search(const Run *r, const Search *s)
{
    char text[128], config[MATMUL_CONFIG_MAX];
    const Candidate *best = find_best(s, 0);
    progress_hide(r->progress);
    printf("%s: ", task_print(&s->task, text));
    if (best) {
        double floor = matmul_floor(&s->task.spec, s->task.m, &r->engine->device);
        printf("%.2f us, ", best->us);
        if (r->settings->engine == ENGINE_GPU)
            printf("%.1f %% of the read floor, ", 100 * floor / best->us);
        else
            printf("of the CPU engine, ");
        printf("%s (", matmul_config_print(&best->config, config));
    } else {
        printf("nothing found (");
    }
    print_counts(s);
    puts(")");
    fflush(stdout);
}

/* ---- one candidate ---------------------------------------------------- */

static bool check(Run *r, Search *s, Candidate *c, Trial *t)
{
    char message[256];
    double error;
    void *result = trial_run(t);
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

/* Returns true when a candidate is slow among candidates of its rows: each number of rows has a
 * best of its own. */
static void time_product(Run *r, Search *s, Candidate *c, Trial *t)
{
    const Candidate *best = find_best(s, c->config.rows);
    const EngineWork work = {trial_launch, t, t->weights->copies};
    bool whole;
    if (!r->engine->time(r->engine, &work, best ? best->us : 0, &c->us, &whole)) {
        c->us = 0;
        record(r, s, c, OUTCOME_FAILED, r->engine->message);
    } else {
        record(r, s, c, whole ? OUTCOME_OK : OUTCOME_SLOW, "");
    }
}

static void measure(Run *r, Search *s, Candidate *c)
{
    Trial t;
    EngineKernel *prepare = c->prepare ? c->prepare->loaded : NULL;
    Kernels kernels = {[MATMUL_PACK] = c->pack->loaded,
                       [MATMUL_PREPARE] = prepare, [MATMUL_PRODUCT] = c->product->loaded,
                       [MATMUL_ARRANGE] = prepare, [MATMUL_WGMMA] = c->product->loaded};
    if (!trial_open(&t, &r->shape, &c->launched, s->task.m, kernels))
        record(r, s, c, OUTCOME_FAILED, r->engine->message);
    else if (check(r, s, c, &t))
        time_product(r, s, c, &t);
    trial_close(&t);
    if (!r->engine->lost)
        return;
    fprintf(stderr, "%s: error: %s; run again to go on without this candidate\n", TOOL,
            r->engine->message);
    r->failed = true;
}

/* Returns the kernel that the candidate still lacks, with its state in `*state`; NULL when all
 * are ready. */
static const Kernel *find_obstacle(Run *r, const Candidate *c, KernelState *state)
{
    Kernel *const all[] = {c->pack, c->prepare, c->product};
    for (size_t i = 0; i < COUNT(all); i++)
        if (all[i] && (*state = compiler_state(r->compiler, all[i])) != KERNEL_READY)
            return all[i];
    return NULL;
}

/* Notes a candidate as begun, in case that it ends this process, or never ends. One such end may
 * have another cause; after two the candidate has failed. */
static void expect_nothing(Run *r, const Search *s, const Candidate *c)
{
    Candidate lost = *c;
    lost.outcome = c->begun ? OUTCOME_FAILED : OUTCOME_BEGUN;
    if (!database_add(r->database, &s->task, &r->origin, &lost,
                      c->begun ? "it did not come back, twice" : "it did not come back"))
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

/* Notes the final outcome of a candidate. */
static void drop_kernels(Run *r, const Candidate *c)
{
    compiler_drop(r->compiler, c->pack);
    compiler_drop(r->compiler, c->prepare);
    compiler_drop(r->compiler, c->product);
}

/* Counts candidates up to the end of this round. */
static size_t count_reached(const Run *r, const Search *s)
{
    return s->candidates.count < r->end ? s->candidates.count : r->end;
}

static bool is_round_over(const Run *r, const Search *s)
{
    for (size_t i = 0; i < count_reached(r, s); i++)
        if (s->candidates.items[i].outcome == OUTCOME_NONE)
            return false;
    return true;
}

/* Returns the first candidate of this round whose kernels are final. */
static Candidate *next_candidate(Run *r, const Search *s)
{
    for (size_t i = 0; i < count_reached(r, s); i++) {
        Candidate *c = &s->candidates.items[i];
        KernelState state;
        if (c->outcome == OUTCOME_NONE &&
            (!find_obstacle(r, c, &state) || kernel_is_settled(state)))
            return c;
    }
    return NULL;
}

/* Makes the data of the shape, for the largest m of its tasks. */
static bool open_shape(Run *r, const Search *s)
{
    int64_t m = s->task.m;
    if (r->shape.engine && r->shape_number == s->task.shape)
        return true;
    shape_close(&r->shape);
    data_free(&r->data);
    for (size_t i = 0; i < r->count; i++)
        if (r->searches[i].task.shape == s->task.shape && r->searches[i].task.m > m)
            m = r->searches[i].task.m;
    r->shape_number = s->task.shape;
    if (!data_make(&r->data, &s->task.spec, m))
        return false;
    if (shape_open(&r->shape, r->engine, &r->data))
        return true;
    fprintf(stderr, "%s: error: %s\n", TOOL, r->engine->message);
    return false;
}

/* Waits until a kernel has been compiled. */
static size_t wait_for_kernels(Run *r, size_t seen)
{
    double start = tune_seconds();
    seen = compiler_wait(r->compiler, seen);
    r->waited += tune_seconds() - start;
    return seen;
}

/* Prints the best so far, where this round had something to do, and in the first one. */
static void search(Run *r, Search *s)
{
    size_t seen = 0;
    bool idle = is_round_over(r, s);
    if (idle && r->end > ROUND_FIRST)
        return;
    if (!idle && !open_shape(r, s))
        r->failed = true;
    while (!is_round_over(r, s) && !is_over(r)) {
        Candidate *c = next_candidate(r, s);
        if (c) {
            try_candidate(r, s, c);
            drop_kernels(r, c);
        } else {
            seen = wait_for_kernels(r, seen);
        }
    }
    print_search(r, s);
}

static bool is_last_of_shape(const Run *r, size_t i)
{
    const Search *s = &r->searches[i];
    return i + 1 == r->count || s[0].task.shape != s[1].task.shape;
}

static void begin_shape(Run *r)
{
    r->began = tune_seconds();
    r->waited = 0;
    r->before = r->done;
}

static void search_round(Run *r)
{
    bool first = r->end == ROUND_FIRST;
    begin_shape(r);
    for (size_t i = 0; i < r->count && ((first && i == 0) || !is_over(r)); i++) {
        search(r, &r->searches[i]);
        if (!is_last_of_shape(r, i) && !is_over(r))
            continue;
        print_shape(r, &r->searches[i]);
        begin_shape(r);
    }
}

static void search_all(Run *r)
{
    bool more = true;
    for (r->end = ROUND_FIRST; more; r->end *= 2) {
        search_round(r);
        more = r->end < r->settings->candidates && !is_over(r);
    }
}

/* ---- all of them ------------------------------------------------------ */

/* Requests the kernels of candidates from `first` to `end`. */
static bool want_kernels(Run *r, Search *s, size_t first, size_t end)
{
    const MatmulSpec *spec = &s->task.spec;
    for (size_t i = first; i < s->candidates.count && i < end; i++) {
        Candidate *c = &s->candidates.items[i];
        if (c->outcome != OUTCOME_NONE)
            continue;
        s->left++;
        r->total++;
        c->pack = compiler_want(r->compiler, spec, &c->launched, MATMUL_PACK);
        bool prepares = matmul_prepares(spec, &c->launched);
        if (prepares)
            c->prepare = compiler_want(r->compiler, spec, &c->launched,
                                       matmul_prepare_program(&c->launched));
        c->product = compiler_want(r->compiler, spec, &c->launched,
                                   matmul_product_program(&c->launched));
        if (!c->pack || (prepares && !c->prepare) || !c->product)
            return false;
    }
    return true;
}

/* Requests kernels in the order of measuring. */
static bool want_all_kernels(Run *r)
{
    size_t most = r->settings->candidates;
    for (size_t first = 0, end = ROUND_FIRST; first < most; first = end, end *= 2)
        for (size_t i = 0; i < r->count; i++)
            if (!want_kernels(r, &r->searches[i], first, end))
                return false;
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
                                                &search->candidates));
    }
    return ok && want_all_kernels(r);
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

/* Returns success when each task has a best, nothing is left to measure and nothing was wrong. */
static int finish(const Run *r)
{
    size_t left = 0, without = 0;
    for (size_t i = 0; i < r->count; i++) {
        left += r->searches[i].left;
        without += !find_best(&r->searches[i], 0);
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
        search_all(&r);
        progress_end(r.progress);
        status = finish(&r);
        fprintf(stderr, "%s: %zu candidates in %.1f s\n", TOOL, r.done,
                tune_seconds() - start);
    }
    close_run(&r);
    free(tasks.items);
    return status;
}
