/* What shall be tuned, from the command line. */
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

/* A number from 1 on at `*text`, which moves behind it. */
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

/* Buckets of "1,8,16", each once. */
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

static bool make_spec(const Settings *s, const char *weights, const char *shape,
                      MatmulSpec *spec)
{
    char message[256];
    tilus_matmul_problem p = {
        .weights = weights, .activations = s->activations, .scales = s->scales,
        .result = s->result, .group = s->group, .zeros = (tilus_zeros)s->zeros};
    if (!read_shape(shape, &p.k, &p.n))
        return false;
    if (matmul_spec(&p, spec, message, sizeof message))
        return true;
    fprintf(stderr, "%s: error: %s\n", TOOL, message);
    return false;
}

bool tasks_make(const Settings *s, Tasks *tasks)
{
    int64_t buckets[BUCKETS_MAX];
    size_t count;
    *tasks = (Tasks){0};
    if (s->weights.count == 0 || s->shapes.count == 0)
        return fail("a search", "none", "--weights and --shape");
    if (!read_buckets(s->m, buckets, &count))
        return false;
    tasks->items = calloc(s->weights.count * s->shapes.count * count, sizeof *tasks->items);
    if (!tasks->items) {
        fprintf(stderr, "%s: error: out of memory\n", TOOL);
        return false;
    }
    for (size_t w = 0; w < s->weights.count; w++)
        for (size_t i = 0; i < s->shapes.count; i++)
            for (size_t b = 0; b < count; b++) {
                Task *task = &tasks->items[tasks->count++];
                task->m = buckets[b];
                if (!make_spec(s, s->weights.items[w], s->shapes.items[i], &task->spec)) {
                    free(tasks->items);
                    return false;
                }
            }
    return true;
}

const char *task_print(const Task *task, char text[static 128])
{
    const MatmulSpec *s = &task->spec;
    snprintf(text, 128, "%s %" PRId64 "x%" PRId64 " group %" PRId64 ", m = %" PRId64,
             dtype_name(s->weights), s->k, s->n, s->group ? s->group * s->repeats : s->k,
             task->m);
    return text;
}

const char *config_print(const MatmulConfig *c, char text[static 160])
{
    snprintf(text, 160, "rows %d, warps %dx%d, deep %d, stages %d, columns %d, tiles %d, "
             "prepared %d, scaled %d, per_sm %d", c->rows, c->rwarps, c->kwarps, c->deep,
             c->stages, c->columns, c->tiles, c->prepared, c->scaled, c->per_sm);
    return text;
}
