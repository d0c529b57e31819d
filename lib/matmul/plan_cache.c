/* The plans that a library has made: an equal problem on the same device costs a look-up. The
 * latest ones stay, most recent first; a plan that is handed out is a copy. */
#include "matmul/internal.h"

#include "support/numeral.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PLANS_MOST = 64, KEY_MAX = 320 };

struct PlanCache {
    struct PlanCache *next;
    char key[KEY_MAX];
    tilus_matmul_plan plan;     /* its lock and handle are nobody's */
};

/* Writes all that a plan depends on, beside the library. */
static void make_key(const tilus_matmul_plan *plan, int64_t n_tile, char key[KEY_MAX])
{
    const MatmulSpec *s = &plan->spec;
    numeral_format(
        key, KEY_MAX, "%s %s %s %s %s n %" PRId64 " k %" PRId64 " group %" PRId64 " zeros %d "
        "function %d bias %d residual %d n_tile %" PRId64 " a_stride %" PRId64 " device %d "
        "experts %" PRId64 " top %" PRId64 " %d%d%d%d%d%d%d%d prologue %d %a",
        dtype_name(s->weights), dtype_name(s->activations), dtype_name(s->scales),
        dtype_name(s->result), dtype_name(s->product), s->n, s->k, s->group * s->repeats,
        (int)s->zeros, (int)s->function, s->bias, s->residual, n_tile, s->a_stride,
        plan->ordinal, s->experts, s->top, s->gather, s->scatter, s->combine, s->early_routing, s->multiply,
        s->batch_invariant, s->wide_range, s->gated, (int)s->prologue, s->eps);
}

/* Copies what planning has found, not what a plan has of its own. */
static void copy_plan(tilus_matmul_plan *to, const tilus_matmul_plan *from)
{
    to->spec = from->spec;
    to->device = from->device;
    to->target = from->target;
    to->packed = from->packed;
    memcpy(to->choices, from->choices, sizeof to->choices);
    memcpy(to->narrow, from->narrow, sizeof to->narrow);
    memcpy(to->largest, from->largest, sizeof to->largest);
    memcpy(to->pack, from->pack, sizeof to->pack);
    memcpy(to->sort, from->sort, sizeof to->sort);
    to->dense.possible = from->dense.possible;
    to->dense.api = from->dense.api;
    memcpy(to->unpack, from->unpack, sizeof to->unpack);
}

/* Returns the link to the plan of that key, or to the end, with the library's lock held. */
static PlanCache **find(tilus_matmul *matmul, const char *key)
{
    PlanCache **link = &matmul->plans;
    while (*link && strcmp((*link)->key, key) != 0)
        link = &(*link)->next;
    return link;
}

static void put_first(tilus_matmul *matmul, PlanCache *entry)
{
    entry->next = matmul->plans;
    matmul->plans = entry;
}

bool plan_find(tilus_matmul_plan *plan, int64_t n_tile)
{
    tilus_matmul *matmul = plan->matmul;
    char key[KEY_MAX];
    make_key(plan, n_tile, key);
    pthread_mutex_lock(&matmul->lock);
    PlanCache **link = find(matmul, key), *entry = *link;
    if (entry) {
        *link = entry->next;
        put_first(matmul, entry);
        copy_plan(plan, &entry->plan);
    }
    pthread_mutex_unlock(&matmul->lock);
    return entry;
}

/* Frees the plans after the first PLANS_MOST, with the library's lock held. */
static void drop_oldest(tilus_matmul *matmul)
{
    PlanCache **link = &matmul->plans;
    for (int i = 0; i < PLANS_MOST && *link; i++)
        link = &(*link)->next;
    plans_free(*link);
    *link = NULL;
}

tilus_status plan_keep(const tilus_matmul_plan *plan, int64_t n_tile)
{
    tilus_matmul *matmul = plan->matmul;
    PlanCache *entry = calloc(1, sizeof *entry);
    if (!entry)
        return library_fail_memory();
    make_key(plan, n_tile, entry->key);
    copy_plan(&entry->plan, plan);
    pthread_mutex_lock(&matmul->lock);
    if (*find(matmul, entry->key)) {
        free(entry);            /* another thread was faster */
    } else {
        put_first(matmul, entry);
        drop_oldest(matmul);
    }
    pthread_mutex_unlock(&matmul->lock);
    return TILUS_OK;
}

void plans_free(PlanCache *plans)
{
    while (plans) {
        PlanCache *next = plans->next;
        free(plans);
        plans = next;
    }
}
