/* Batch invariant products: configurations whose sums have one order for all m. By wgmma tiles of
 * any width add up the same parts of k (matmul_split), as columns are computed by themselves. By
 * mma one configuration serves all m, since blocks share out the iterations of each column of
 * tiles alike. */
#include "matmul/internal.h"

#include <math.h>
#include <string.h>

typedef struct Search {
    const tilus_matmul_plan *plan;
    int64_t m;
    bool by_wgmma;
    Choice best;                /* us 0: nothing fits */
} Search;

/* Returns true for a configuration that the search is for: by wgmma with scales on weights, which
 * all types have; by mma without panels that lack columns, and what the model has no times of. */
static bool is_wanted(const Search *s, const MatmulConfig *c)
{
    if (matmul_by_wgmma(c) != s->by_wgmma)
        return false;
    return s->by_wgmma ? c->scale_weights : !c->zeros_by_mma && !c->register_reallocation;
}

static double find_cost(const tilus_matmul_plan *plan, const MatmulConfig *c, int64_t m)
{
    return matmul_cost(&plan->spec, c, m, &plan->device);
}

static void consider(void *data, const MatmulConfig *c)
{
    Search *s = data;
    if (!is_wanted(s, c))
        return;
    double us = find_cost(s->plan, c, s->m);
    if (s->best.us == 0 || us < s->best.us)
        s->best = (Choice){.config = *c, .source = MATMUL_FROM_MODEL, .us = us};
}

static Choice find_best(const tilus_matmul_plan *plan, int64_t m, bool by_wgmma)
{
    Search s = {.plan = plan, .m = m, .by_wgmma = by_wgmma};
    matmul_enumerate(&plan->spec, plan->packed.rows, m, &plan->device, consider, &s);
    return s.best;
}

static bool choose_wgmma(tilus_matmul_plan *plan)
{
    for (int i = 0; i < MATMUL_BUCKETS; i++) {
        plan->choices[i] = find_best(plan, (int64_t)1 << i, true);
        if (plan->choices[i].us == 0)
            return false;
    }
    return true;
}

/* Adds up how many times as long as the best of each bucket up to `last` a configuration
 * takes, squared. */
static double find_sum(const tilus_matmul_plan *plan, const MatmulConfig *c,
                       const double best[MATMUL_BUCKETS], int last)
{
    double sum = 0;
    for (int i = 0; i <= last; i++) {
        double times = find_cost(plan, c, (int64_t)1 << i) / best[i];
        sum += times * times;
    }
    return sum;
}

/* Takes the configuration that is best for some m of 8 or more and, over all of these, least far
 * from the best. */
static bool choose_mma(tilus_matmul_plan *plan)
{
    enum { FIRST = 3, LAST = 8 };       /* buckets of 8 and 256 rows */
    Choice found[MATMUL_BUCKETS];
    double best[MATMUL_BUCKETS], least = INFINITY;
    const MatmulConfig *config = NULL;
    for (int i = 0; i <= LAST; i++) {
        found[i] = find_best(plan, (int64_t)1 << i, false);
        best[i] = found[i].us;
        if (best[i] == 0)
            return false;
    }
    for (int i = FIRST; i <= LAST; i++) {
        double sum = find_sum(plan, &found[i].config, best, LAST);
        config = sum < least ? &found[i].config : config;
        least = sum < least ? sum : least;
    }
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        plan->choices[i] = (Choice){.config = *config, .source = MATMUL_FROM_MODEL,
                                    .us = find_cost(plan, config, (int64_t)1 << i)};
    return true;
}

bool invariant_choose(tilus_matmul_plan *plan)
{
    Choice usual[MATMUL_BUCKETS];
    memcpy(usual, plan->choices, sizeof usual);
    if (!choose_wgmma(plan) && !choose_mma(plan))
        return false;
    for (int i = 0; i < MATMUL_BUCKETS; i++) {
        plan->choices[i].floor = usual[i].floor;
        plan->choices[i].usual_us = usual[i].us;
    }
    return true;
}
