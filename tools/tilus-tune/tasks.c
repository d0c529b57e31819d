/* Tasks of the command line: problems and rows of A to tune for. */
#define _GNU_SOURCE
#include "tune.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool fail(const char *what, const char *text, const char *wanted)
{
    fprintf(stderr, "%s: error: %s takes %s; got '%s'\n", TOOL, what, wanted, text);
    return false;
}

/* Reads a number from 1 on at `*text`, which moves past it. */
static bool read_number(const char **text, int64_t *out)
{
    char *end;
    errno = 0;
    long long value = strtoll(*text, &end, 10);
    bool ok = end > *text && **text >= '0' && **text <= '9' && errno == 0 && value > 0;
    *text = end;
    *out = value;
    return ok;
}

static bool read_shape(const char *text, int64_t *k, int64_t *n)
{
    const char *at = text;
    if (read_number(&at, k) && *at++ == 'x' && read_number(&at, n) && !*at)
        return true;
    return fail("option '--shape'", text, "KxN, like 8192x57344");
}

enum { BUCKETS_MAX = 17, M_MAX = 65536 };

/* Reads the buckets of "1,8,16", each once. */
static bool read_buckets(const char *text, int64_t buckets[BUCKETS_MAX], size_t *count)
{
    const char *at = text;
    int64_t m;
    *count = 0;
    do {
        if (!read_number(&at, &m) || m > M_MAX || (*at && *at != ','))
            return fail("option '--m'", text, "numbers from 1 to 65536, like 1,8,16");
        m = matmul_bucket(m);
        bool known = false;
        for (size_t i = 0; i < *count; i++)
            known |= buckets[i] == m;
        if (!known)
            buckets[(*count)++] = m;
    } while (*at++ == ',');
    return true;
}

/* ---- lists ------------------------------------------------------------- */

/* The words of options like "u4,u2", each given once or several times. */
typedef struct Words {
    char *text;                 /* where they lie */
    char **items;
    size_t count;
} Words;

static void words_free(Words *w)
{
    free(w->text);
    free(w->items);
}

static bool words_split(const StringList *given, const char *otherwise, Words *w)
{
    const StringList one = {&otherwise, 1, 1};
    const StringList *list = given->count ? given : &one;
    size_t size = 1;
    for (size_t i = 0; i < list->count; i++)
        size += strlen(list->items[i]) + 1;
    *w = (Words){.text = calloc(1, size), .items = calloc(size, sizeof *w->items)};
    if (!w->text || !w->items) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    char *rest = w->text;
    for (size_t i = 0; i < list->count; i++) {
        strcat(rest, i ? "," : "");
        strcat(rest, list->items[i]);
    }
    while (rest)
        w->items[w->count++] = strsep(&rest, ",");
    return true;
}

/* ---- problems ---------------------------------------------------------- */

static const char *const zeros_names[] = {"none", "integer", "float"};

static bool read_zeros(const char *text, tilus_zeros *zeros)
{
    for (*zeros = TILUS_ZEROS_NONE; *zeros <= TILUS_ZEROS_FLOAT; (*zeros)++)
        if (strcmp(text, zeros_names[*zeros]) == 0)
            return true;
    return fail("option '--zeros'", text, "none, integer or float, or several like "
                "none,integer");
}

static bool make_spec(const Settings *s, const char *weights, const char *shape,
                      const char *zeros, MatmulSpec *spec)
{
    char message[256];
    tilus_matmul_problem p = {
        .weights = weights, .activations = s->activations, .scales = s->scales,
        .result = s->result, .group = s->group};
    if (!read_shape(shape, &p.k, &p.n) || !read_zeros(zeros, &p.zeros))
        return false;
    bool ok = matmul_spec(&p, spec, message, sizeof message);
    if (!ok)
        fprintf(stderr, "%s: error: %s\n", TOOL, message);
    return ok;
}

/* The lists of options that tasks combine. */
typedef struct Lists {
    Words weights, shapes, zeros;
    int64_t buckets[BUCKETS_MAX];
    size_t bucket_count;
} Lists;

static void lists_free(Lists *l)
{
    words_free(&l->weights);
    words_free(&l->shapes);
    words_free(&l->zeros);
}

static bool lists_make(const Settings *s, Lists *l)
{
    *l = (Lists){0};
    if (s->weights.count == 0 || s->shapes.count == 0)
        return fail("a search", "none", "--weights and --shape");
    return read_buckets(s->m, l->buckets, &l->bucket_count) &&
           words_split(&s->weights, NULL, &l->weights) &&
           words_split(&s->shapes, NULL, &l->shapes) &&
           words_split(&s->zeros, zeros_names[TILUS_ZEROS_NONE], &l->zeros);
}

/* Floats have no integer zero points: left out where that is not all that is asked for. */
static bool is_left_out(const Lists *l, const char *weights, const char *zeros)
{
    return l->zeros.count > 1 && weights[0] == 'f' &&
           strcmp(zeros, zeros_names[TILUS_ZEROS_INTEGER]) == 0;
}

/* Adds a task for each m. */
static bool add_tasks(const Settings *s, const Lists *l, const char *weights,
                      const char *shape, const char *zeros, Tasks *tasks)
{
    MatmulSpec spec;
    if (is_left_out(l, weights, zeros))
        return true;
    if (!make_spec(s, weights, shape, zeros, &spec))
        return false;
    size_t number = tasks->count;
    for (size_t i = 0; i < l->bucket_count; i++)
        tasks->items[tasks->count++] = (Task){spec, l->buckets[i], number};
    return true;
}

static bool combine(const Settings *s, const Lists *l, Tasks *tasks)
{
    size_t most = l->zeros.count * l->weights.count * l->shapes.count * l->bucket_count;
    tasks->items = calloc(most, sizeof *tasks->items);
    if (!tasks->items) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    bool ok = true;
    for (size_t z = 0; z < l->zeros.count; z++)
        for (size_t w = 0; w < l->weights.count; w++)
            for (size_t i = 0; ok && i < l->shapes.count; i++)
                ok = add_tasks(s, l, l->weights.items[w], l->shapes.items[i],
                               l->zeros.items[z], tasks);
    return ok;
}

bool tasks_make(const Settings *s, Tasks *tasks)
{
    Lists lists;
    *tasks = (Tasks){0};
    bool ok = lists_make(s, &lists) && combine(s, &lists, tasks);
    lists_free(&lists);
    if (!ok)
        free(tasks->items);
    return ok;
}

/* ---- texts ------------------------------------------------------------- */

const char *spec_print(const MatmulSpec *s, char text[static 128])
{
    const char *zeros = zeros_names[s->zeros];
    snprintf(text, 128, "%s %" PRId64 "x%" PRId64 " group %" PRId64 "%s%s",
             dtype_name(s->weights), s->k, s->n, s->group ? s->group * s->repeats : s->k,
             s->zeros ? ", zeros " : "", s->zeros ? zeros : "");
    return text;
}

const char *task_print(const Task *task, char text[static 128])
{
    spec_print(&task->spec, text);
    size_t length = strlen(text);
    snprintf(text + length, 128 - length, ", m = %" PRId64, task->m);
    return text;
}
