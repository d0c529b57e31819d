/* The cost model of configurations: the slower of memory and instructions, and the fixed time
 * of each launch. Its numbers were fitted to measurements on an H200. */
#include "matmul/config.h"

#include "support/integer.h"

#include <math.h>

/* ---- bytes ------------------------------------------------------------ */

/* Counts bytes of weights, scales and zero points, without padding. */
static double weight_bytes(const MatmulSpec *s)
{
    double zero = s->zeros == TILUS_ZEROS_NONE ? 0 : s->zeros == TILUS_ZEROS_INTEGER ? 1 : 2;
    int64_t groups = s->group ? ceil_div_i64(s->k, s->group * s->repeats) : 1;
    return (double)s->n * (double)s->k * dtype_bits(s->weights) / 8 +
           (double)groups * (double)s->n * (dtype_bits(s->scales) / 8.0 + zero);
}

static double vector_bytes(const MatmulSpec *s, int64_t m)
{
    double c = dtype_bits(s->result) / 8.0, a = dtype_bits(s->activations) / 8.0;
    double columns = (double)matmul_columns_of_c(s, s->n);
    return (double)m * (double)s->k * a + (double)m * columns * c * (1 + s->residual) +
           (double)s->n * c * s->bias;
}

double matmul_floor_experts(const MatmulSpec *spec, int64_t experts, int64_t m,
                            const MatmulDevice *device)
{
    double weights = (double)experts * weight_bytes(spec);
    return 2.50 + (weights + vector_bytes(spec, m)) / device->bandwidth;
}

double matmul_floor(const MatmulSpec *spec, int64_t m, const MatmulDevice *device)
{
    return matmul_floor_experts(spec, 1, m, device);
}

/* ---- time -------------------------------------------------------------- */

/* Microseconds of an H200, with its clocks; fitted to measurements of u1 to u8 at m = 1, 8 and
 * 16, of u4 also at 2, 4 and 32 to 256 (docs/tuning.md). In an iteration of the mainloop a warp
 * takes STAGE_K_TILES packed blocks. */
static const double
    launch_us = 1.27,           /* of a launch of @matmul, from start to end */
    prepare_us = 0.585,         /* of @prepare before it */
    wave_us = 2.56,             /* where blocks follow those that have ended */
    hand_over_us = 0.814,       /* tiles of several blocks are put together ... */
    hand_over_sum_us = 0.00177, /* ... and a row of them, by tiles of columns */
    hand_over_next_us = 1.037,  /* each block more of a tile, after the one before */
    iteration_us = 0.186,       /* of an iteration, a warp alone ... */
    iteration_ring_us = 0.589,  /* ... waiting for a ring of one stage, shared by the stages */
    block_row_us = 0.00291,     /* of a packed block, a row ... */
    block_tile_us = 0.00130,    /* ... and a tile of columns beyond the first */
    block_waited_us = 4.0,      /* where no ring is ahead */
    issue_iteration_us = 0.0323,    /* for which an iteration keeps a multiprocessor busy ... */
    issue_row_us = 0.000607,    /* ... and of a packed block, a row, */
    issue_bit_us = 0.000106,    /* a bit of each weight of it, */
    issue_tile_us = 0.000510,   /* a row and tile of columns beyond the first, */
    issue_zero_us = 0.0000828,  /* zero points of a row, by tiles where they act on sums */
    ahead = 0.0978,             /* share of an iteration that a stage beyond two delays */
    spill = 0.00523,            /* share of time that a register too many adds */
    sharpness = 5.05;

typedef struct Rates {
    double alone, busy;         /* us of an iteration: a warp alone, each warp that runs */
} Rates;

/* Returns the time of an iteration beside its packed blocks. Each stage hides a part of the
 * copies' time. */
static double find_iteration(const MatmulConfig *c)
{
    return iteration_us + (c->stages > 0 ? iteration_ring_us / c->stages : 0);
}

static Rates find_rates(const MatmulSpec *s, const MatmulConfig *c)
{
    double rows = c->rows, more = rows * (c->tiles - 1);
    double alone = block_row_us * rows + block_tile_us * more + (c->stages == 0) * block_waited_us;
    double busy = (issue_row_us + issue_bit_us * (double)dtype_bits(s->weights)) * rows +
                  issue_tile_us * more;
    if (s->zeros != TILUS_ZEROS_NONE)
        busy += issue_zero_us * rows * (c->scale_weights ? 1 : c->tiles);
    int over = matmul_registers(s, c) - matmul_registers_limit(c);
    double slower = 1 + (over > 0 ? over : 0) * spill;
    return (Rates){(find_iteration(c) + c->stage_k_tiles * alone) * slower,
                   (issue_iteration_us + c->stage_k_tiles * busy) * slower};
}

/* Counts iterations whose instructions nothing hides: the last one, whose weights come last.
 * Stages beyond two are in flight with the first, which then comes later. */
static double exposed_iterations(const MatmulConfig *c, double iterations)
{
    double most = fmin(c->stages, iterations) - 2;
    return 1 + ahead * fmax(most, 0);
}

/* Returns the time of blocks that run at once, the slowest of three: a warp's own iterations,
 * one after the other; the instructions of all warps of a multiprocessor; the memory. */
static double wave_time(const MatmulSpec *s, const MatmulConfig *c, const MatmulDevice *d,
                        Rates rates, double iterations, int64_t blocks)
{
    double most = ceil(iterations);
    int64_t warps = ceil_div_i64(blocks, d->multiprocessors) * c->warps_n * c->warps_k;
    double packed = iterations * c->warps_n * c->warps_k * c->stage_k_tiles;
    int64_t block = matmul_packed_form(s, c->rows, c->columns).block;
    double bytes = (double)blocks * packed * (double)block;
    double busy = (double)warps * rates.busy;
    return exposed_iterations(c, most) * busy +
           pow(pow(most * rates.alone, sharpness) + pow(most * busy, sharpness) +
                   pow(bytes / d->bandwidth, sharpness), 1 / sharpness);
}

/* Returns the time of stream-k's hand-overs: the block that has a tile's beginning adds the
 * partial sums of the tile's other blocks, one after the other. */
static double hand_over(const MatmulSpec *s, const MatmulConfig *c, int64_t blocks)
{
    int64_t rows = (int64_t)c->warps_n * c->rows, tiles = ceil_div_i64(s->n, rows);
    double next = fmax((double)blocks / (double)tiles - 1, 0);
    return blocks == tiles ? 0 : hand_over_us + hand_over_next_us * next +
                                     hand_over_sum_us * (double)(rows * c->tiles);
}

/* Returns a factor for configurations that were measured little, or only where they are bad. */
static double find_doubt(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { BITS = 16 };         /* of a weight, times STAGE_K_TILES */
    double doubt = c->stages == 0 ? 1.2 : 1;
    if (c->stage_k_tiles * (int)dtype_bits(s->weights) > BITS)
        doubt *= 1.05;
    if (c->tiles > 8)
        doubt *= 1.1;
    return c->warps_n * c->warps_k < 4 ? doubt * 1.3 : doubt;
}

/* Returns the iterations of the block that has most: of whole parts of k, or of `all_tiles`, as all have as many. */
static double wgmma_iterations(const MatmulSpec *s, double all_tiles, int multiprocessors)
{
    double all = (double)matmul_slices(s) * all_tiles / multiprocessors;
    double part = (double)matmul_slices(s) / fmax(matmul_split(s), 1);
    return matmul_split(s) ? ceil(all / part) * part : all;
}

/* Returns the time in which sums of parts of k pass through memory, most where blocks keep whole
 * tiles: u4 8192 x 8192 takes 729 us at m = 4096, and 993 in 4 parts. */
static double parts_time(const MatmulSpec *s, const MatmulConfig *c, double tiles,
                         int multiprocessors)
{
    const double next_us = 1.5, next_row_us = 0.02, whole_row_us = 0.085;   /* of 256 of n */
    enum { TILE_N = 256 };
    double rows = 8.0 * c->tiles * (c->warps_n * c->rows) / TILE_N, next = fmax(matmul_split(s) - 1, 0);
    double columns = (double)(matmul_iterations(s, c) / matmul_slices(s));
    double whole = floor(columns * tiles / multiprocessors);
    return next * (next_us + next_row_us * rows + whole * whole_row_us * rows);
}

/* Returns the microseconds of an iteration by single fragments, of 128 of n, fitted to measurements of u1 to u8 and f8e4m3 on
 * an H200: the slower of decoding and of multiplying, nearly. Where all multiprocessors are at work, or long, it is more. */
static double single_iteration(const MatmulSpec *s, const MatmulConfig *c)
{
    const double decode_us = 0.60, bit_us = 0.0125, float_us = 0.05, row_us = 0.0045, sharp = 3, zeros_more = 1.01;
    double decode = decode_us + bit_us * dtype_bits(s->weights) + (dtype_is_float(s->codes) ? float_us : 0);
    double us = pow(pow(decode, sharp) + pow(row_us * 8 * c->tiles, sharp), 1 / sharp);
    return us * (s->zeros != TILUS_ZEROS_NONE ? zeros_more : 1);
}

/* Returns the clocks of an iteration by pairs of fragments, of 256 of n, fitted to measurements of u2, u4 and u8 on an H200:
 * tensor cores take 16 clocks for each row of A, and copies and decoding some more. */
static double wgmma_clocks(const MatmulSpec *s, const MatmulConfig *c)
{
    const double of_row = 16, of_iteration = 70, of_bits = 5120, of_weights = 180, of_weights_in_parts = 60, zeros_more = 1.07;
    enum { LEAST_ROWS = 48, NARROW = 64 };
    double rows = 8 * c->tiles, bits = (double)dtype_bits(s->weights);
    bool has_zeros = s->zeros != TILUS_ZEROS_NONE;
    double clocks = of_row * rows + of_iteration + of_bits * bits / fmax(rows, LEAST_ROWS) +
                    (!c->scale_weights || rows > NARROW  ? 0
                     : matmul_parts(c) > 1               ? of_weights_in_parts
                                                         : of_weights);
    return clocks * (has_zeros ? zeros_more : 1);
}

/* Returns the microseconds of an iteration by wgmma, at the 1.6 GHz that power leaves. */
static double wgmma_iteration(const MatmulSpec *s, const MatmulConfig *c)
{
    const double clocks_a_us = 1600;
    return matmul_has_single_fragments(c) ? single_iteration(s, c) : wgmma_clocks(s, c) / clocks_a_us;
}

/* Returns the time of a product whose clusters have a tile each, fitted to measurements of u4 on an H200: those that run at
 * once take an iteration, which is longer where all multiprocessors are at work, for each 128 of a part of k, and read the
 * other parts' sums. */
static double cluster_time(const MatmulSpec *s, const MatmulConfig *c, int64_t m, const MatmulDevice *d)
{
    const double fixed_us = 1.0, arrange_us = 1.5, stages_more = 1.02, part_us = 0.5, exchange_us = 6.5e-5, busy_more = 0.1,
                 least_us = 0.8, of_floor = 1.12;
    enum { BEST_STAGES = 4, WORD = 4 };
    int64_t parts = matmul_parts(c), tile_n = (int64_t)c->warps_n * c->rows, rows = 8 * c->tiles;
    int64_t tiles = ceil_div_i64(s->n, tile_n) * ceil_div_i64(m, rows);
    int64_t at_once = matmul_clusters_at_once(parts, d), waves = ceil_div_i64(tiles, at_once);
    double busy = (double)ceil_div_i64(tiles, waves) * (double)parts / d->multiprocessors;
    double iteration = fmax(wgmma_iteration(s, c), matmul_has_single_fragments(c) ? 0 : least_us);
    double us = (double)ceil_div_i64(matmul_slices(s), parts) * iteration * (1 + busy_more * pow(busy, 4));
    us += part_us * (double)parts + exchange_us * (double)(tile_n * rows * WORD * (parts - 1) / parts);
    us = fixed_us + (matmul_prepares(s, c) ? arrange_us : 0) + (double)waves * us;
    return fmax(us, of_floor * matmul_floor(s, m, d)) * (c->stages != BEST_STAGES ? stages_more : 1);
}

/* Returns the time in which blocks that share a tile put it together: one of them reads the sums of the others, one after the
 * other. */
static double shared_sums(const MatmulConfig *c, double all_tiles, int multiprocessors)
{
    const double next_us = 0.95, element_us = 5e-5, more = 0.6;
    double elements = 8.0 * c->tiles * c->warps_n * c->rows;
    return (multiprocessors / all_tiles + more) * (next_us + element_us * elements);
}

/* Returns the microseconds of an iteration of blocks that go from tile to tile. */
static double long_iteration(const MatmulSpec *s, const MatmulConfig *c)
{
    const double single_more = 1.1;
    return wgmma_iteration(s, c) * (matmul_has_single_fragments(c) ? single_more : 1);
}

bool matmul_leaves_blocks_idle(const MatmulSpec *s, const MatmulConfig *c, int64_t all_tiles, int multiprocessors)
{
    double idle = (double)matmul_slices(s) * (1 - (double)all_tiles / multiprocessors);
    return all_tiles <= multiprocessors && idle * long_iteration(s, c) <= shared_sums(c, (double)all_tiles, multiprocessors);
}

/* Returns the time of a product by wgmma. Blocks share all iterations, and put tiles together, unless each has one. */
static double wgmma_time(const MatmulSpec *s, const MatmulConfig *c, int64_t m,
                         const MatmulDevice *d)
{
    const double fixed_us = 4.5, arrange_us = 1.5, stages_more = 1.04, stores_more = 1.05, of_floor = 1.12;
    enum { BEST_STAGES = 4, NARROW = 64, BEST_STORED = 32 };
    if (matmul_parts(c) > 1)
        return cluster_time(s, c, m, d);
    int cluster = matmul_cluster(s, c);
    int64_t columns = ceil_div_i64(matmul_iterations(s, c) / matmul_slices(s), cluster) * cluster;
    double rows = 8 * c->tiles, tiles = ceil((double)m / rows), all = tiles * (double)columns;
    bool idle = !matmul_split(s) && matmul_leaves_blocks_idle(s, c, (int64_t)all, d->multiprocessors);
    double us = (idle ? (double)matmul_slices(s) : wgmma_iterations(s, all, d->multiprocessors)) * long_iteration(s, c);
    us *= (c->stages != BEST_STAGES ? stages_more : 1) *
          (rows > NARROW && matmul_stored_rows(s, c) < BEST_STORED ? stores_more : 1);
    us += fixed_us + (matmul_prepares(s, c) ? arrange_us : 0) + parts_time(s, c, tiles, d->multiprocessors) +
          (idle ? 0 : shared_sums(c, all, d->multiprocessors));
    return fmax(us, of_floor * matmul_floor(s, m, d));
}

/* Returns the time of a product of 8 bits, fitted to measurements of u4 and groups of 128 on an H200:
 * an iteration takes so long beside its rows of A. Blocks share all iterations. */
static double a8_time(const MatmulSpec *s, const MatmulConfig *c, int64_t m, const MatmulDevice *d)
{
    const double fixed_us = 6, iteration_us = 0.2, bit_us = 0.01, row_us = 0.00625, integers_more = 1.15,
                 group_more = 0.15, stages_more = 1.05, rows_more = 1.01, of_floor = 1.12;
    enum { BEST_STAGES = 4, STAGES_OF_FEW = 8, FEW = 32, BEST_ROWS = 64 };
    int best_stages = 8 * c->tiles <= FEW ? STAGES_OF_FEW : BEST_STAGES;
    double rows = 8 * c->tiles, iterations = (double)matmul_iterations(s, c) / d->multiprocessors;
    double groups = s->group ? (double)MATMUL_PACKED_K / s->group : 1;
    double us = iteration_us + bit_us * dtype_bits(s->weights) + row_us * rows;
    us *= (s->product == DTYPE_i8 ? integers_more : 1) * (1 + group_more * (groups - 1));
    double least = fmax(fixed_us + iterations * ceil((double)m / rows) * us,
                        of_floor * matmul_floor(s, m, d));
    return least * (c->stages != best_stages ? stages_more : 1) *
           (c->rows != BEST_ROWS ? rows_more : 1);
}

/* Adds up waves: all columns of tiles follow each other, and read the weights again. */
double matmul_cost(const MatmulSpec *spec, const MatmulConfig *c, int64_t m,
                   const MatmulDevice *device)
{
    if (matmul_is_a8(spec))
        return a8_time(spec, c, m, device);
    if (matmul_by_wgmma(c))
        return wgmma_time(spec, c, m, device);
    int64_t blocks = matmul_blocks(spec, c, device->multiprocessors);
    int64_t left = blocks * ceil_div_i64(m, 8 * c->tiles);
    int resident = matmul_resident(spec, c, device);
    int64_t at_once = (int64_t)(resident ? resident : 1) * device->multiprocessors;
    double iterations = (double)matmul_iterations(spec, c) / (double)blocks;
    Rates rates = find_rates(spec, c);
    double us = launch_us + prepare_us + vector_bytes(spec, m) / device->bandwidth +
                hand_over(spec, c, blocks);
    int64_t full = left / at_once;
    us += (double)full * wave_time(spec, c, device, rates, iterations, at_once);
    if (left % at_once)
        us += wave_time(spec, c, device, rates, iterations, left % at_once);
    us += (double)(ceil_div_i64(left, at_once) - 1) * wave_us;
    return us * find_doubt(spec, c);
}
