/* Plans, and text about them. */
#define _GNU_SOURCE
#include "attention/internal.h"

#include "support/numeral.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- plans -------------------------------------------------------------- */

static tilus_status check_device(tilus_attention_plan *plan)
{
    const tilus_rt *rt = plan->attention->library.rt;
    int count = tilus_rt_device_count(rt), device = plan->device;
    if (device < 0 || device >= count)
        return library_fail(TILUS_ERROR_NO_DEVICE, "no device %d, there are %d", device, count);
    int capability = tilus_rt_compute_capability(rt, device);
    bool decode = plan->problem.kind == TILUS_ATTENTION_DECODE;
    plan->hopper = capability == 90;
    plan->multiprocessors = tilus_rt_multiprocessors(rt, device);
    if (plan->hopper || (decode && capability >= 80))
        return TILUS_OK;
    return library_fail(TILUS_ERROR_UNSUPPORTED, "device %d, %s, has compute capability %d.%d, and "
                        "%s needs %s", device, tilus_rt_device_name(rt, device), capability / 10,
                        capability % 10, decode ? "decoding" : "this attention",
                        decode ? "8.0" : "9.0");
}

/* Returns true where a warp may copy whole pages of codes, of which tiles are made. */
static bool may_copy_pages(const tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    return plan->hopper && plan->cache && p->finite && !p->tokens_first && p->page >= 8 &&
           p->page <= plan->tile;
}

static int64_t larger(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Returns the bytes that a block of decoding keeps of the cache: three tiles of numbers, or four of
 * codes. */
static int64_t tiles_bytes(const tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    const CacheType *cache = plan->cache;
    int64_t entries = cache ? p->groups * (cache->zeros ? 8 : 4) : 0;
    int64_t token = p->dim * (cache ? cache->bits : 16) / 4 + entries;
    return (cache ? 4 : 3) * plan->tile * token;
}

/* Returns the bytes of shared memory of a block of decoding, as @attend lays it out: tiles of the
 * cache; sums of each warp along tokens, in their place unless a warp may still copy pages there;
 * and what passes between warps, sums of weights or, where two or four warps share the heads, the
 * weights in rows of 16 more bytes. */
static int64_t block_bytes(const tilus_attention_plan *plan)
{
    enum { MBARRIERS = 64 };
    const tilus_attention_problem *p = &plan->problem;
    const bool packed = plan->cache;
    int64_t group = p->heads / p->kv_heads, along_heads = (group + 15) / 16;
    int64_t along_tokens = (along_heads == 3 ? 3 : 4) / along_heads;
    int64_t rows = packed && group <= 8 ? 8 : along_heads * 16;
    int64_t tiles = tiles_bytes(plan), sums = along_tokens * rows * p->dim * 4;
    int64_t totals = along_tokens > 1 ? along_tokens * rows * (packed ? 8 : 4) * 4 : 0;
    bool passed = packed && (along_heads == 2 || along_heads == 4);
    int64_t weights = passed ? plan->tile * p->groups * (rows * 4 + 16) : 0;
    return (plan->bulk ? tiles + sums + MBARRIERS : larger(tiles, sums)) + larger(totals, weights);
}

/* Returns the bytes of shared memory that a block may have. */
static int64_t room_of(const tilus_attention_plan *plan)
{
    return (int64_t)tilus_rt_shared_memory(plan->attention->library.rt, plan->device);
}

/* Finds the tile of decoding, the largest whose sums registers hold and for which shared memory has
 * room, and what follows from it. Pages are copied whole where there is room for that, too. */
static void fill_decode(tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool many = p->heads / p->kv_heads > 16;      /* whose sums take registers */
    plan->tile = plan->cache && !many ? 128 : 64;
    if (block_bytes(plan) > room_of(plan))
        plan->tile = 64;
    plan->blocks = p->dim == 256 || (plan->cache && many) ? 1 : 2;
    plan->bulk = may_copy_pages(plan);
    if (block_bytes(plan) > room_of(plan))
        plan->bulk = false;
    plan->shared = block_bytes(plan);
    plan->resident = plan->shared * 2 <= room_of(plan) ? plan->blocks : 1;
}

/* Returns the columns of a tile of three warpgroups, which plain 8-bit attention has: registers do
 * not hold more, and queues of causal rows end late. */
static int wide_tile(const tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    const bool plain = !p->causal && !p->window && !p->mask && !p->ragged && !p->sinks &&
                       !p->lse && p->cap <= 0 && p->dim == p->value_dim;
    if (!plan->eight || !plain)
        return 0;
    return p->dim == 64 ? 128 : p->dim == 128 ? 96 : 0;
}

/* Finds the tile of the kernels, as they choose it. */
static void fill_tiles(tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    int64_t columns = p->dim + p->value_dim;
    plan->eight = p->kind == TILUS_ATTENTION_FORWARD && !strcmp(p->type, "f8e4m3");
    plan->blocks = plan->resident = 1;
    plan->tile = 64;
    if (p->kind == TILUS_ATTENTION_FORWARD)
        plan->tile = p->mask ? 64 : plan->eight ? 128 : columns > 384 ? 64 : columns > 320 ? 96
                                                                                      : 128;
    else if (p->kind == TILUS_ATTENTION_DECODE)
        fill_decode(plan);
    plan->wide = wide_tile(plan);
}

static tilus_status check_room(const tilus_attention_plan *plan)
{
    const tilus_attention_problem *p = &plan->problem;
    const tilus_rt *rt = plan->attention->library.rt;
    if (plan->shared <= room_of(plan))
        return TILUS_OK;
    return library_fail(TILUS_ERROR_UNSUPPORTED, "device %d, %s, has %lld bytes of shared memory "
                        "for a block, and decoding of %lld columns of %s needs %lld (heads of one "
                        "of k: %lld, groups: %lld)",
                        plan->device, tilus_rt_device_name(rt, plan->device),
                        (long long)room_of(plan), (long long)p->dim, p->cache,
                        (long long)plan->shared, (long long)(p->heads / p->kv_heads),
                        (long long)p->groups);
}

tilus_status tilus_attention_plan_create(tilus_attention *attention,
                                         const tilus_attention_problem *problem, int device,
                                         tilus_attention_plan **out)
{
    if (!out)
        return library_refuse_null(out);
    *out = NULL;
    if (!attention)
        return library_refuse_null(attention);
    tilus_attention_plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return library_fail_memory();
    plan->attention = attention;
    plan->device = device;
    tilus_status status = attention_take_problem(problem, &plan->problem, &plan->cache);
    if (status == TILUS_OK)
        status = check_device(plan);
    if (status == TILUS_OK) {
        fill_tiles(plan);
        status = check_room(plan);
    }
    if (status == TILUS_OK)
        status = attention_find_kernels(plan);
    if (status == TILUS_OK)
        *out = plan;
    else
        free(plan);
    return status;
}

void tilus_attention_plan_free(tilus_attention_plan *plan)
{
    free(plan);
}

/* ---- kernels ------------------------------------------------------------ */

/* Marks the kernels of calls of a shape, for NULL all of the plan. */
static tilus_status mark(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                         bool used[static ATTENTION_KERNELS])
{
    tilus_attention_shape own;
    if (!plan)
        return library_refuse_null(plan);
    for (int i = 0; i < ATTENTION_KERNELS; i++)
        used[i] = plan->kernels[i];
    tilus_status status = shape ? attention_take_shape(plan, shape, &own) : TILUS_OK;
    if (status != TILUS_OK || !shape)
        return status;
    const AttentionChoice choice = attention_choose(plan, &own);
    attention_mark(plan, &choice, used);
    return TILUS_OK;
}

tilus_status tilus_attention_prepare(tilus_attention_plan *plan, const tilus_attention_shape *shape)
{
    bool used[ATTENTION_KERNELS];
    tilus_status status = mark(plan, shape, used);
    for (int i = 0; i < ATTENTION_KERNELS && status == TILUS_OK; i++)
        if (used[i])
            status = kernel_prepare(plan->kernels[i], plan->device);
    return status;
}

tilus_status tilus_attention_workspace_size(const tilus_attention_plan *plan,
                                            const tilus_attention_shape *shape, size_t *out)
{
    tilus_attention_shape own;
    if (!out)
        return library_refuse_null(out);
    *out = 0;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = attention_take_shape(plan, shape, &own);
    if (status != TILUS_OK)
        return status;
    const AttentionChoice choice = attention_choose(plan, &own);
    *out = attention_space(plan, &own, &choice).size;
    return TILUS_OK;
}

/* ---- text --------------------------------------------------------------- */

/* Opens a stream that makes a text. NULL: out of memory, which tilus_rt_error says. */
static FILE *open_text(char **text, size_t *size)
{
    FILE *out = open_memstream(text, size);
    if (!out)
        library_fail_memory();
    return out;
}

static char *close_text(FILE *out, char **text)
{
    if (fclose(out) == 0)
        return *text;
    library_fail_memory();
    free(*text);
    return NULL;
}

char *tilus_attention_kernels(const tilus_attention_plan *plan, const tilus_attention_shape *shape)
{
    bool used[ATTENTION_KERNELS];
    char *text = NULL;
    size_t size;
    if (mark(plan, shape, used) != TILUS_OK)
        return NULL;
    FILE *out = open_text(&text, &size);
    if (!out)
        return NULL;
    for (int i = 0; i < ATTENTION_KERNELS; i++)
        if (used[i])
            fprintf(out, "%s\t%s\t%s\n", plan->kernels[i]->name, plan->kernels[i]->program,
                    plan->kernels[i]->parameters);
    return close_text(out, &text);
}

/* Writes what each row sees, and what is done with scores. */
static void describe_features(FILE *out, const tilus_attention_problem *p)
{
    static const char *const masks[] = {"", ", mask added", ", boolean mask"};
    if (p->window)
        fprintf(out, ", window of %lld before and %lld after", (long long)p->left,
                (long long)p->right);
    else if (p->causal)
        fprintf(out, ", causal");
    fprintf(out, "%s", masks[p->mask]);
    if (p->cap > 0)
        numeral_print(out, ", soft cap %g", p->cap);
    fprintf(out, "%s%s%s\n", p->sinks ? ", sinks" : "", p->lse ? ", logarithms" : "",
            p->ragged ? ", ragged" : p->tokens_first ? ", tokens first" : "");
}

static void describe_forward(FILE *out, const tilus_attention_plan *plan,
                             const tilus_attention_shape *s, const AttentionChoice *choice)
{
    static const char *const schedules[] = {"", "queues", "blocks", "folded"};
    const tilus_attention_problem *p = &plan->problem;
    fprintf(out, "attention of %s%s%s, %lld x %lld heads of %lld, %lld of k, %lld queries, %lld "
            "tokens", p->type, plan->eight ? " to " : "", plan->eight ? p->out_type : "",
            (long long)s->batch, (long long)p->heads, (long long)p->dim,
            (long long)p->kv_heads, (long long)s->queries, (long long)s->tokens);
    describe_features(out, p);
    numeral_print(out, "schedule %s, tiles of %d x %d, about %.1f us", schedules[choice->schedule],
                  choice->wide ? ATTENTION_WIDE_ROWS : ATTENTION_ROWS,
                  attention_tile(plan, choice), choice->us);
}

static void describe_decode(FILE *out, const tilus_attention_plan *plan,
                            const tilus_attention_shape *s, const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    if (p->kind == TILUS_ATTENTION_LATENT)
        fprintf(out, "latent attention of %s, %lld x %lld heads of 576, about %lld tokens\n",
                p->type, (long long)s->batch, (long long)p->heads, (long long)s->tokens);
    else
        fprintf(out, "decoding of %s, %lld x %lld heads of %lld, %lld of k, about %lld tokens, "
                "cache of %s in pages of %lld%s\n", p->type, (long long)s->batch,
                (long long)p->heads, (long long)p->dim, (long long)p->kv_heads,
                (long long)s->tokens, p->cache, (long long)p->page,
                plan->bulk ? ", copied by pages" : "");
    numeral_print(out, "%lld split%s, about %.1f us", (long long)choice->splits,
                  choice->splits == 1 ? "" : "s", choice->us);
}

char *tilus_attention_describe(const tilus_attention_plan *plan, const tilus_attention_shape *shape)
{
    tilus_attention_shape own;
    char *text = NULL;
    size_t size;
    tilus_status status = plan ? attention_take_shape(plan, shape, &own)
                               : library_refuse_null(plan);
    if (status != TILUS_OK)
        return NULL;
    const AttentionChoice choice = attention_choose(plan, &own);
    FILE *out = open_text(&text, &size);
    if (!out)
        return NULL;
    bool forward = plan->problem.kind == TILUS_ATTENTION_FORWARD;
    (forward ? describe_forward : describe_decode)(out, plan, &own, &choice);
    fprintf(out, "; workspace %zu bytes\n", attention_space(plan, &own, &choice).size);
    return close_text(out, &text);
}
