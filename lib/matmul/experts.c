/* Products of several experts: tiles of their rows, and the choice of configurations. Rows of
 * experts are known on the device only, so the choice is for as many rows of each as there are
 * on average, of as many experts as these rows can have. */
#include "matmul/internal.h"

#include "support/integer.h"

#include <math.h>

enum {
    ROWS_KINDS = 3,
    ROWS_LEAST = 32,
    TILES_OF_PAIRS = 16,        /* of 8 rows, at most */
    TILES_STEP = 2,             /* M_STEP, in tiles of 8 rows */
};

int64_t experts_tiles(const tilus_matmul_plan *plan, int64_t m, int64_t tile)
{
    int64_t experts = plan->spec.experts < m ? plan->spec.experts : m;
    int64_t most = (m + experts * (tile - 1)) / tile;
    return most < 1 ? 1 : most;
}

/* ---- the choice ----------------------------------------------------------- */

/* WgmmaKind tells what scales of a product by wgmma multiply, and how its fragments are made. */
typedef enum WgmmaKind { ON_SUMS, ON_WEIGHTS, BY_SINGLES, WGMMA_KINDS } WgmmaKind;

typedef struct Search {
    const tilus_matmul_plan *plan;
    int64_t m;
    double floor;
    Choice best[ROWS_KINDS];    /* for packed blocks of 32, 64, 128 rows; us 0: nothing fits */
    Choice wgmma[ROWS_KINDS][WGMMA_KINDS];
} Search;

static WgmmaKind wgmma_kind(const MatmulConfig *c)
{
    return matmul_has_single_fragments(c) ? BY_SINGLES : c->scale_weights ? ON_WEIGHTS : ON_SUMS;
}

/* Returns the number of 32, 64 or 128 rows among the kinds. */
static int kind_of(int rows)
{
    return rows / ROWS_LEAST / 2;
}

static int64_t touched_experts(const Search *s)
{
    return s->plan->spec.experts < s->m ? s->plan->spec.experts : s->m;
}

/* Returns the microseconds that a tile of rows takes by wgmma: its iterations, shared out to the multiprocessors. Those of 256
 * of n were measured on an H200, with u4 of 4096 x 7168 and 64 experts; wider types in f8e4m3. */
static double tile_time(const Search *s, const MatmulConfig *c)
{
    const double iteration_us = 0.5, row_us = 0.0081, on_sums = 0.9, few_on_weights = 0.1,
                 single_us = 0.18, single_row_us = 0.005, bit_us = 0.05;
    enum { FEW = 64, FEW_BITS = 4 };
    int bits = dtype_bits(s->plan->spec.weights);
    double rows = 8.0 * c->tiles, share = (double)matmul_iterations(&s->plan->spec, c) / s->plan->device.multiprocessors;
    if (matmul_has_single_fragments(c))
        return share * (single_us + single_row_us * rows);
    double us = iteration_us + row_us * rows + (bits > FEW_BITS ? bit_us * (bits - FEW_BITS) : 0);
    return share * (c->scale_weights ? us + (rows <= FEW ? few_on_weights : 0) : us * on_sums);
}

/* Returns the microseconds of a product by wgmma, whose last rows of an expert are a tile of `rest` where they fit; NULL:
 * all tiles are alike. Experts have from half to one and a half times the average. */
static double wgmma_time(const Search *s, const MatmulConfig *c, const MatmulConfig *rest)
{
    enum { PARTS = 8 };
    const double launches_us = 5, last_us = 1, tile = 8.0 * c->tiles, fits = rest ? 8.0 * rest->tiles : 0;
    double touched = (double)touched_experts(s), usual = tile_time(s, c), last = rest ? tile_time(s, rest) : usual, us = 0;
    for (int i = 0; i < PARTS; i++) {
        double rows = (double)s->m / touched * (0.5 + (i + 0.5) / PARTS), whole = floor(rows / tile);
        us += whole * usual + (rows - whole * tile <= fits ? last : usual);
    }
    return launches_us + (rest ? last_us : 0) + touched * us / PARTS;
}

/* Returns by what panels of A multiply the time: each tile reads them again, from the L2 cache, where a block has not a row
 * of its own. Of Qwen3's experts on an H200 iterations with an eighth of their weights' bytes took 6 % less than those with
 * half of them. */
static double panels_time(const Search *s, const MatmulConfig *c)
{
    const double part = 0.15;
    PackedForm form = matmul_packed_form(&s->plan->spec, c->rows, c->columns);
    if (s->m <= MATMUL_FEW_ROWS)
        return 1;
    return 1 + part * (double)(c->tiles * form.panel) / (double)(c->warps_n * form.block);
}

/* Returns the microseconds of a configuration, by mma as of one matrix with the tiles of all experts
 * along n. On average half of an expert's last tile has no rows. */
static double find_cost(const Search *s, const MatmulConfig *c)
{
    MatmulSpec spec = s->plan->spec;
    int64_t tile = 8 * c->tiles, touched = touched_experts(s);
    double tiles = fmax((double)s->m / (double)tile + 0.5 * (double)touched, (double)touched);
    spec.n = round_up_i64(spec.n, (int64_t)c->warps_n * c->rows) * (int64_t)ceil(tiles);
    double us = matmul_by_wgmma(c) ? wgmma_time(s, c, NULL)
                                   : matmul_cost(&spec, c, tile, &s->plan->device) * panels_time(s, c);
    return fmax(us, s->floor);
}

static void keep_better(Choice *best, const Choice *choice)
{
    if (best->us == 0 || choice->us < best->us)
        *best = *choice;
}

/* Considers configurations whose blocks find their tiles on the device. */
static void consider(void *data, const MatmulConfig *c)
{
    Search *s = data;
    bool reallocates = c->register_reallocation && !matmul_by_wgmma(c);
    bool varies = s->plan->spec.batch_invariant && !(matmul_by_wgmma(c) && c->scale_weights);
    if (varies || c->per_sm == 0 || c->zeros_by_mma || reallocates)
        return;
    int kind = kind_of(c->rows);
    const Choice choice = {.config = *c, .source = MATMUL_FROM_MODEL, .us = find_cost(s, c), .floor = s->floor};
    keep_better(&s->best[kind], &choice);
    if (matmul_by_wgmma(c))
        keep_better(&s->wgmma[kind][wgmma_kind(c)], &choice);
}

static void search(Search *s, const tilus_matmul_plan *plan, int64_t m)
{
    enum { LEAST = 8, LEAST_BY_WGMMA = 32, MOST = 256 };    /* rows of an expert whose
                                           configurations are looked at: up to twice the average */
    const MatmulSpec *spec = &plan->spec;
    *s = (Search){.plan = plan, .m = m};
    int64_t touched = touched_experts(s), rows = 2 * ceil_div_i64(m, touched);
    s->floor = matmul_floor_experts(spec, touched, m, &plan->device);
    int64_t least = spec->batch_invariant ? LEAST_BY_WGMMA : LEAST;
    rows = rows < least ? least : rows < MOST ? rows : MOST;
    matmul_enumerate(spec, 0, rows, &plan->device, consider, s);
}

/* Returns the kind of at most `most` rows with the least sum, over buckets of m, of the square of how
 * many times as long as the best it takes; -1: none fits in every bucket. */
static int find_rows(const Search all[MATMUL_BUCKETS], int most)
{
    double least = INFINITY;
    int found = -1;
    for (int kind = 0; kind <= kind_of(most); kind++) {
        double sum = 0;
        for (int i = 0; i < MATMUL_BUCKETS; i++) {
            double best = INFINITY, own = all[i].best[kind].us;
            for (int other = 0; other < ROWS_KINDS; other++)
                if (all[i].best[other].us > 0)
                    best = fmin(best, all[i].best[other].us);
            sum += own > 0 ? own / best * (own / best) : INFINITY;
        }
        if (sum < least) {
            least = sum;
            found = kind;
        }
    }
    return found;
}

/* Returns true where at most so many rows have experts of their own: those of a token have, and of many
 * experts nearly all. A call has whole tokens. */
static bool have_own_experts(const MatmulSpec *s, int64_t rows)
{
    enum { EXPERTS_A_ROW = 4 };
    return rows < 2 * s->top || (rows - 1) * EXPERTS_A_ROW <= s->experts;
}

/* Has three small blocks of a multiprocessor share the tiles, where they fit and there are a few tiles for each: one
 * multiplies while another waits for its row. On an H200 products of 8 to 32 rows took up to 10 % less so, and 6 % more
 * where blocks had more than four tiles. */
static MatmulConfig in_small_blocks(const MatmulSpec *all, MatmulConfig c, const MatmulDevice *device)
{
    enum { BLOCKS = 3, WARPS = 4, STAGES = 4, TILES_MOST = 4 };
    MatmulConfig small = c;
    small.warps_n = small.stage_k_tiles = 1;
    small.warps_k = WARPS;
    small.stages = STAGES;
    small.per_sm = BLOCKS;
    int64_t tiles = ceil_div_i64(all->n, c.rows), least = (int64_t)(BLOCKS - 1) * device->multiprocessors;
    bool few = tiles > least && tiles <= (int64_t)TILES_MOST * BLOCKS * device->multiprocessors;
    return few && matmul_config_fits(all, &small, device) ? small : c;
}

/* Has blocks of a bucket of few rows find their experts and arrange A, each row as a tile of its own: two
 * of one expert would read its weights twice, but no launch goes before the product. Where rows of a token are
 * combined, the product does that, too, if it can. */
static void arrange_few(tilus_matmul_plan *plan, int bucket)
{
    int64_t rows = INT64_C(1) << bucket;
    MatmulConfig *c = &plan->choices[bucket].config;
    MatmulSpec all = plan->spec;
    if (rows > MATMUL_FEW_ROWS || !have_own_experts(&plan->spec, rows) ||
        matmul_combine_in_blocks(&all, c, rows / all.top, &plan->device) || c->tiles != 1)
        return;
    all.n *= rows;
    MatmulConfig one = *c;
    one.columns = 1;
    const MatmulConfig choices[] = {in_small_blocks(&all, one, &plan->device), one};
    for (size_t i = 0; i < sizeof choices / sizeof *choices && !matmul_arranges_in_blocks(c); i++) {
        one = choices[i];
        matmul_arrange_in_blocks(&all, &one, &plan->device);
        if (matmul_arranges_in_blocks(&one))
            *c = one;
    }
}

/* Considers tiles of all sizes for the last rows of experts, by a kernel that is `like` another one by pairs of fragments. */
static void choose_last(const Search *s, Choice choice, const MatmulConfig *like, Choice *best)
{
    const double gain = 0.97;       /* of two kernels, at least */
    const tilus_matmul_plan *plan = s->plan;
    choice.rest = *like;
    for (int tiles = TILES_STEP; tiles < choice.config.tiles && tiles <= TILES_OF_PAIRS; tiles += TILES_STEP) {
        choice.rest.tiles = tiles;
        choice.us = fmax(wgmma_time(s, &choice.config, &choice.rest), s->floor);
        if (choice.us < best->us * (best->rest.tiles ? 1 : gain) &&
            matmul_config_fits(&plan->spec, &choice.rest, &plan->device))
            *best = choice;
    }
}

/* Considers two kernels for a bucket: tiles of all sizes, and smaller ones for last rows. */
static void choose_two(const Search *s, int kind, Choice *best)
{
    const tilus_matmul_plan *plan = s->plan;
    const Choice *known = s->wgmma[kind];
    for (int i = ON_SUMS; i <= ON_WEIGHTS; i++) {
        Choice choice = known[i];
        for (int tiles = 2 * TILES_STEP; known[i].us > 0 && tiles <= TILES_OF_PAIRS; tiles += TILES_STEP) {
            choice.config.tiles = tiles;
            if (matmul_config_fits(&plan->spec, &choice.config, &plan->device))
                choose_last(s, choice, &known[i].config, best);
        }
    }
    if (known[BY_SINGLES].us > 0 && known[ON_WEIGHTS].us > 0)
        choose_last(s, known[BY_SINGLES], &known[ON_WEIGHTS].config, best);
}

/* Gives the ring of a kernel by pairs of fragments as many stages as fit: on an H200 tiles of 32 to 64 rows took 8 to 16 %
 * less time with six than with three, and those of 256 rows by single fragments as long. */
static void deepen(const tilus_matmul_plan *plan, MatmulConfig *c)
{
    enum { MOST = 6 };
    MatmulConfig deeper = *c;
    if (!matmul_by_wgmma(c) || matmul_has_single_fragments(c) || matmul_is_a8(&plan->spec))
        return;
    while (++deeper.stages <= MOST && matmul_config_fits(&plan->spec, &deeper, &plan->device))
        *c = deeper;
}

int experts_choose(tilus_matmul_plan *plan, int rows)
{
    Search all[MATMUL_BUCKETS];
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        search(&all[i], plan, (int64_t)1 << i);
    int kind = rows ? kind_of(rows) : find_rows(all, matmul_rows_most(&plan->spec));
    for (int i = 0; i < MATMUL_BUCKETS && kind >= 0; i++) {
        plan->choices[i] = all[i].best[kind];
        choose_two(&all[i], kind, &plan->choices[i]);
        deepen(plan, &plan->choices[i].config);
        deepen(plan, &plan->choices[i].rest);
        kind = all[i].best[kind].us > 0 ? kind : -1;
    }
    if (kind < 0)
        return 0;
    for (int i = 0; i < MATMUL_BUCKETS; i++)
        arrange_few(plan, i);
    packed_place(&plan->packed, &plan->spec, ROWS_LEAST << kind);
    return ROWS_LEAST << kind;
}
