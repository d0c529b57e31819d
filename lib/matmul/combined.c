/* Products of few tokens that combine the rows of each in the product itself, @matmul_combined: which problems
 * and devices have them, and how blocks share the rows of a token. */
#include "matmul/config.h"

#include "support/integer.h"

enum { TOP_MOST = MATMUL_FEW_ROWS, SPLITS_MOST = 8, WARPS_MOST = 8, STAGES_MOST = 16 };

bool matmul_combines(const MatmulConfig *c)
{
    return c->prearranged_a >= MATMUL_COMBINED;
}

int matmul_splits(const MatmulConfig *c)
{
    return 1 << (c->prearranged_a - MATMUL_COMBINED);
}

int matmul_choices(const MatmulSpec *s, const MatmulConfig *c)
{
    return (int)s->top / matmul_splits(c);
}

int64_t matmul_combined_blocks(const MatmulSpec *s, const MatmulConfig *c, int64_t tokens)
{
    return ceil_div_i64(s->n, c->rows) * matmul_splits(c) * tokens;
}

/* Returns the slices of k of the rows that a block has, behind each other. */
static int64_t slices_of_block(const MatmulSpec *s, const MatmulConfig *c)
{
    return matmul_slices(s) * matmul_choices(s, c);
}

/* Adds up the ring, the rows of A with minus the sums of their groups, in whose place the sums of warps lie then, and
 * the block's sums, in all of whose place the ends of experts' rows lie before, but for the sums of several blocks, which share
 * their bytes with nothing; two lists of rows, and the mbarriers. Threads exchange sums of groups that are parts of a slice behind
 * all that. */
int64_t matmul_combined_bytes(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { ALIGN = 16, HALF = 2, WORD = 4, SUMS = 8, COLUMNS = 8, GAP = 4, PAIR = 8 };
    int64_t slices = slices_of_block(s, c), lists = matmul_choices(s, c) + MATMUL_FEW_ROWS;
    bool centred = (s->zeros != TILUS_ZEROS_NONE || s->offset > 0) && !c->scale_weights;
    int64_t groups = centred ? slices * (MATMUL_PACKED_K / s->group) : 0;
    int64_t rows = slices * MATMUL_PACKED_K * HALF + groups * SUMS;
    int64_t sums = (int64_t)c->warps_k * COLUMNS * (c->rows + GAP) * WORD - ALIGN;
    int64_t ring = c->stages * c->warps_k * matmul_packed_form(s, c->rows, c->columns).block;
    int64_t ends = (int64_t)matmul_experts_room(s) * WORD;
    int64_t own = (int64_t)matmul_splits(c) * c->rows * WORD, remote = matmul_splits(c) > 1 ? own : 0;
    int64_t all = ring + (rows > sums ? rows : sums) + own - remote;
    int64_t bytes = (all > ends ? all : ends) + remote + 2 * round_up_i64(lists * PAIR, ALIGN) +
                    round_up_i64(c->stages * PAIR, ALIGN) + c->stages * PAIR;
    return groups && s->group < MATMUL_PACKED_K ? round_up_i64(bytes, ALIGN) + groups * WORD : bytes;
}

/* Returns true where sums of rows can be combined before anything else is done with them, and a packed block has its
 * scales. */
static bool may_combine(const MatmulSpec *s)
{
    return s->combine && s->top <= TOP_MOST && s->function == TILUS_EPILOGUE_NONE && s->group > 0 && !s->batch_invariant;
}

/* Has a block as many stages of `warps` slices as fit, all if there are no more. False: A does not fit in its
 * registers, or not so many bytes of weights are in flight in a multiprocessor as keep its memory busy. */
static bool fill_ring(const MatmulSpec *s, MatmulConfig *c, int warps, const MatmulDevice *device)
{
    enum { IN_FLIGHT = 64 << 10, ELEMENTS_MOST = 128, LANES = 32 };
    int64_t slices = slices_of_block(s, c), iterations = slices / warps;
    int64_t stage = warps * matmul_packed_form(s, c->rows, c->columns).block;
    if (slices % warps || slices * MATMUL_PACKED_K > (int64_t)warps * LANES * ELEMENTS_MOST)
        return false;
    c->warps_k = warps;
    c->stages = (int)(iterations < STAGES_MOST ? iterations : STAGES_MOST);
    while (c->stages > 0 && !matmul_config_fits(s, c, device))
        c->stages--;
    return c->stages == iterations || c->stages * stage * c->per_sm >= IN_FLIGHT;
}

bool matmul_combine_in_blocks(const MatmulSpec *s, MatmulConfig *config, int64_t tokens, const MatmulDevice *device)
{
    enum { BUSY = 3, OF = 4,        /* multiprocessors that are to have blocks */
           PER_SM_MOST = 4 };
    MatmulConfig c = {.rows = config->rows, .warps_n = 1, .stage_k_tiles = 1, .columns = 1, .tiles = 1,
                      .prearranged_a = MATMUL_COMBINED, .scale_weights = matmul_scales_weights_only(s)};
    if (!may_combine(s) || tokens < 1)
        return false;
    for (int splits = 1; splits <= SPLITS_MOST && s->top % splits == 0; splits *= 2, c.prearranged_a++) {
        bool last = splits == SPLITS_MOST || s->top % (2 * splits);
        bool busy = matmul_combined_blocks(s, &c, tokens) * OF >= (int64_t)device->multiprocessors * BUSY;
        c.per_sm = (int)ceil_div_i64(matmul_combined_blocks(s, &c, tokens), device->multiprocessors);
        bool fits = false;
        for (int warps = WARPS_MOST; (busy || last) && c.per_sm <= PER_SM_MOST && warps > 1 && !fits; warps /= 2)
            fits = fill_ring(s, &c, warps, device);
        if (fits) {
            *config = c;
            return true;
        }
    }
    return false;
}
