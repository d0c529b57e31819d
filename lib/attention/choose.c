/* The choice for a shape: schedules and splits by a small model of an H200's times, which
 * bench/results/NOTES.md has. Absolute times are rough; their order is what counts. */
#include "attention/internal.h"

#include <math.h>

static double at_least(double x, double y)
{
    return x > y ? x : y;
}

static int64_t ceil_div(int64_t x, int64_t y)
{
    return (x + y - 1) / y;
}

static int64_t round_up(int64_t x, int64_t y)
{
    return ceil_div(x, y) * y;
}

/* ---- forward ------------------------------------------------------------ */

int attention_forward_kernel(const AttentionChoice *choice)
{
    return choice->wide ? ATTENTION_K_WIDE : ATTENTION_K_SCHEDULE + (int)choice->schedule - 1;
}

int attention_arrange_kernel(const AttentionChoice *choice)
{
    return choice->wide ? ATTENTION_K_WIDE_ARRANGE : ATTENTION_K_ARRANGE;
}

/* Bytes that a microsecond moves. */
static const double bandwidth = 4.57e6;

int attention_tile(const tilus_attention_plan *plan, const AttentionChoice *choice)
{
    return choice->wide ? plan->wide : plan->tile;
}

/* Returns the bytes of v in tiles of tokens: each sequence begins with one. */
static size_t arranged_bytes(const tilus_attention_plan *plan, const tilus_attention_shape *s,
                             const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    const int64_t tile = attention_tile(plan, choice);
    int64_t tiles = p->ragged ? s->tokens / tile + s->batch
                              : ceil_div(s->tokens, tile) * s->batch;
    return (size_t)(p->kv_heads * tiles * tile * p->value_dim);
}

/* Tiles of rows of q by columns of k, microseconds: softmax binds below 100 columns of a head,
 * products above. */
typedef struct ForwardCosts {
    double launch, tile, item, block;   /* of an item, and more of one that begins a block */
} ForwardCosts;

static ForwardCosts forward_costs(const tilus_attention_plan *plan,
                                  const tilus_attention_shape *shape,
                                  const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    double products = (plan->eight ? 0.85 : 1.55) * (double)(p->dim + p->value_dim) / 256;
    double tile = at_least(products, plan->eight ? 1.15 : 1.24) * plan->tile / 128;
    ForwardCosts c = {.launch = 4, .tile = tile, .block = 3,
                      .item = p->causal && !p->window ? 2.8 : 0.8};
    if (plan->eight) {
        c.launch = 8 + 2 * (double)arranged_bytes(plan, shape, choice) / bandwidth;
        c.item = 2.6;
    }
    if (choice->wide) {             /* its softmax hides more; it begins and ends with more rows */
        c.tile = 1.165;
        c.item = 6;
    }
    return c;
}

/* Items of some rows of q: how many there are, and the tiles of one, on average and most. */
typedef struct Items {
    int64_t count, pairs;
    double tiles, most;
} Items;

/* Counts the items of a launch; ragged sequences are taken for fewer of the longest length. */
static Items items_of(const tilus_attention_plan *plan, const tilus_attention_shape *s,
                      const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    const int64_t item = choice->wide ? ATTENTION_WIDE_ROWS : ATTENTION_ROWS;
    int64_t given = p->ragged ? s->longest : s->queries, rows = round_up(given, item);
    int64_t sequences = p->ragged ? ceil_div(s->queries, s->longest) : s->batch;
    double columns = (double)s->tokens / (p->ragged ? (double)s->queries / (double)given : 1);
    double tile = attention_tile(plan, choice);
    columns += p->causal ? (double)(rows - given) : 0;
    double seen = columns;
    if (p->window)
        seen = (double)(p->left + p->right + item);
    else if (p->causal)
        seen = columns - (double)rows / 2;
    seen = seen < columns ? at_least(seen, 1) : columns;
    return (Items){.count = rows / item * p->heads * sequences,
                   .pairs = ceil_div(rows, 2 * item) * p->heads * sequences,
                   .tiles = seen / tile + (seen < columns ? 0.5 : 0),
                   .most = (p->window ? seen : columns) / tile};
}

static double forward_us(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                         const AttentionChoice *choice)
{
    const ForwardCosts c = forward_costs(plan, shape, choice);
    const Items items = items_of(plan, shape, choice);
    const int64_t blocks = plan->multiprocessors;
    const bool pairs = plan->problem.causal && !plan->problem.window;
    double tiles = items.tiles;
    if (choice->schedule == TILUS_ATTENTION_QUEUES) {
        int64_t each = pairs ? 2 * ceil_div(items.pairs, blocks)
                             : ceil_div(items.count, blocks);
        return c.launch + (double)each * (tiles * c.tile + c.item);
    }
    double item = c.item, most = items.most;
    if (choice->schedule == TILUS_ATTENTION_FOLDED) {   /* whose two groups wait for one another */
        tiles = (tiles + most) / 2 * 1.08;
        most *= 1.08;
        item = 0.8;
    }
    double longest = most * c.tile + item;
    if (items.count <= blocks)
        return c.launch + longest;
    double all = (double)items.count * (tiles * c.tile + item + c.block) / (double)blocks;
    return c.launch + (pairs ? all + longest / 3
                             : (double)ceil_div(items.count, blocks) * (longest + c.block));
}

/* Takes a choice of a kernel that there is, and that the shape allows, if it is faster. */
static void consider(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                     AttentionChoice choice, AttentionChoice *best)
{
    const bool given = shape->schedule != TILUS_ATTENTION_AUTO;
    if (!plan->kernels[attention_forward_kernel(&choice)] ||
        (given && shape->schedule != choice.schedule))
        return;
    choice.us = forward_us(plan, shape, &choice);
    if (best->schedule == TILUS_ATTENTION_AUTO || choice.us < best->us)
        *best = choice;
}

static AttentionChoice choose_schedule(const tilus_attention_plan *plan,
                                       const tilus_attention_shape *shape)
{
    AttentionChoice best = {.schedule = TILUS_ATTENTION_AUTO};
    for (int i = TILUS_ATTENTION_QUEUES; i <= TILUS_ATTENTION_FOLDED; i++)
        consider(plan, shape, (AttentionChoice){.schedule = (tilus_attention_schedule)i}, &best);
    consider(plan, shape, (AttentionChoice){.schedule = TILUS_ATTENTION_QUEUES, .wide = true},
             &best);
    return best;
}

/* ---- decoding ----------------------------------------------------------- */

int attention_combine_kernel(const tilus_attention_plan *plan, int64_t splits)
{
    if (splits <= ATTENTION_FEW)
        return ATTENTION_K_COMBINE_FEW;
    bool some = splits <= ATTENTION_SOME && plan->problem.kind == TILUS_ATTENTION_DECODE;
    return some ? ATTENTION_K_COMBINE_SOME : ATTENTION_K_COMBINE;
}

/* Returns the microseconds of @combine, and of the partial sums that it reads. */
static double combine_us(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                         int64_t splits)
{
    const tilus_attention_problem *p = &plan->problem;
    double parts = (double)(shape->batch * p->heads * splits * p->value_dim) * sizeof(float);
    return splits == 1 ? 0 : 2.5 + 2 * parts / bandwidth;
}

/* A block's start, which waits for its length, its table and the first page in turn, and a tile of
 * one of `active` blocks, which share the memory. */
typedef struct DecodeCosts {
    double start, tile;
} DecodeCosts;

static DecodeCosts decode_costs(const tilus_attention_plan *plan, double active)
{
    const tilus_attention_problem *p = &plan->problem;
    const CacheType *cache = plan->cache;
    if (p->kind == TILUS_ATTENTION_LATENT)
        return (DecodeCosts){.start = 6, .tile = 1.9};
    double bits = (double)p->dim * (cache ? cache->bits : 16);
    double entries = cache ? (double)p->groups * (cache->zeros ? 32 : 16) : 0;
    double shared = (bits + entries) / 4 * plan->tile * active / bandwidth;
    double alone = 0.87 * (double)p->dim / 128;
    return (DecodeCosts){.start = 2, .tile = cbrt(shared * shared * shared +
                                                  alone * alone * alone)};
}

static double decode_us(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                        int64_t splits)
{
    const tilus_attention_problem *p = &plan->problem;
    int64_t slots = (int64_t)plan->resident * plan->multiprocessors;
    int64_t heads = p->kind == TILUS_ATTENTION_LATENT ? ceil_div(p->heads, ATTENTION_LATENT_HEADS)
                                                      : p->kv_heads;
    int64_t blocks = shape->batch * heads * splits;
    int64_t share = ceil_div(ceil_div(shape->tokens, plan->tile), splits);
    const DecodeCosts c = decode_costs(plan, (double)(blocks < slots ? blocks : slots));
    return 4 + (double)ceil_div(blocks, slots) * (c.start + (double)share * c.tile) +
           combine_us(plan, shape, splits);
}

/* Returns the least splits of which each has fewer tiles. */
static int64_t next_splits(int64_t tiles, int64_t splits)
{
    int64_t share = ceil_div(tiles, splits);
    return share > 1 ? ceil_div(tiles, share - 1) : INT64_MAX;
}

static AttentionChoice choose_splits(const tilus_attention_plan *plan,
                                     const tilus_attention_shape *shape)
{
    int64_t tiles = ceil_div(shape->tokens, plan->tile);
    int64_t most = tiles < ATTENTION_SPLITS_MAX ? tiles : ATTENTION_SPLITS_MAX;
    AttentionChoice best = {.splits = shape->splits};
    if (shape->splits)
        best.us = decode_us(plan, shape, shape->splits);
    for (int64_t splits = 1; !shape->splits && splits <= most;
         splits = next_splits(tiles, splits)) {
        double us = decode_us(plan, shape, splits);
        if (!best.splits || us < best.us)
            best = (AttentionChoice){.splits = splits, .us = us};
    }
    return best;
}

AttentionChoice attention_choose(const tilus_attention_plan *plan,
                                 const tilus_attention_shape *shape)
{
    return plan->problem.kind == TILUS_ATTENTION_FORWARD ? choose_schedule(plan, shape)
                                                         : choose_splits(plan, shape);
}

/* ---- what it takes ------------------------------------------------------ */

Space attention_space(const tilus_attention_plan *plan, const tilus_attention_shape *shape,
                      const AttentionChoice *choice)
{
    const tilus_attention_problem *p = &plan->problem;
    if (plan->eight)
        return (Space){.size = arranged_bytes(plan, shape, choice)};
    if (choice->splits <= 1)
        return (Space){0};
    int64_t sums = shape->batch * p->heads * choice->splits * (int64_t)sizeof(float);
    int64_t parts = round_up(sums * p->value_dim, ATTENTION_ALIGN);
    return (Space){.sums = (size_t)parts,
                   .size = (size_t)(parts + round_up(sums, ATTENTION_ALIGN))};
}

/* Returns true for a kernel of forward problems that calls of a choice, or gradients, launch. */
static bool is_used(const AttentionChoice *choice, int i)
{
    const bool gradients = i >= ATTENTION_K_DELTA && i <= ATTENTION_K_DQ;
    return gradients || i == attention_forward_kernel(choice) ||
           i == attention_arrange_kernel(choice);
}

void attention_mark(const tilus_attention_plan *plan, const AttentionChoice *choice,
                    bool used[static ATTENTION_KERNELS])
{
    const bool forward = plan->problem.kind == TILUS_ATTENTION_FORWARD;
    for (int i = 0; i < ATTENTION_KERNELS; i++)
        used[i] = forward ? plan->kernels[i] && is_used(choice, i)
                          : i == ATTENTION_K_ATTEND ||
                                (i == attention_combine_kernel(plan, choice->splits) &&
                                 choice->splits > 1);
}
