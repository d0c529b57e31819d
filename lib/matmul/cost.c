/* What a configuration is thought to cost: the slower of memory and instructions, and what
 * begins and ends each launch. Its numbers were fitted to measurements on an H200. */
#include "matmul/config.h"

#include <math.h>

/* ---- bytes ------------------------------------------------------------ */

static int64_t ceil_div(int64_t a, int64_t b)
{
    return (a + b - 1) / b;
}

/* Of weights with their scales and zero points, without any padding. */
static double weight_bytes(const MatmulSpec *s)
{
    double zero = s->zeros == TILUS_ZEROS_NONE ? 0 : s->zeros == TILUS_ZEROS_INTEGER ? 1 : 2;
    int64_t groups = s->group ? ceil_div(s->k, s->group * s->repeats) : 1;
    return (double)s->n * (double)s->k * dtype_bits(s->weights) / 8 +
           (double)groups * (double)s->n * (2 + zero);
}

static double vector_bytes(const MatmulSpec *s, int64_t m)
{
    double c = dtype_bits(s->result) / 8.0, a = dtype_bits(s->activations) / 8.0;
    return (double)m * (double)s->k * a + (double)m * (double)s->n * c * (1 + s->residual) +
           (double)s->n * c * s->bias;
}

double matmul_floor(const MatmulSpec *spec, int64_t m, const MatmulDevice *device)
{
    return 2.50 + (weight_bytes(spec) + vector_bytes(spec, m)) / device->bandwidth;
}

/* ---- time -------------------------------------------------------------- */

/* Microseconds of an H200, with its clocks; fitted to measurements of u1, u2, u4 and u8 at
 * m = 1 to 256 (docs/tuning.md). A round is DEEP units for each warp of a block. */
static const double
    launch_us = 2.74,           /* of a launch of @matmul, from start to end */
    prepare_us = 1.1,           /* of @prepare before it */
    wave_us = 1.34,             /* where blocks follow those that have ended */
    hand_over_us = 1.76,        /* tiles of several blocks are put together */
    round_us = 0.377,           /* what a warp alone takes for a round ... */
    unit_us = 0.0438,           /* ... and for each unit of it */
    unit_row_us = 0.00129,      /* ... by its rows */
    unit_tile_us = 0.00163,     /* a row and tile of columns beyond the first */
    unit_plain_us = 0.108,      /* where A comes as it is */
    issue_row_us = 0.00104,     /* what a row of a unit keeps a multiprocessor busy */
    issue_tile_us = 0.000621,   /* a row and tile of columns beyond the first */
    issue_columns_us = 0.000808,/* more than one column of A */
    issue_plain_us = 0.0002,    /* a row, where A comes as it is */
    issue_scaled_us = 0.000974, /* a row, where scales act on weights */
    spill = 0.00486,            /* share of time that a register too many adds */
    sharpness = 3.38;

typedef struct Rates {
    double alone, busy;         /* us of a round: of a warp alone, of each warp that runs */
} Rates;

static Rates find_rates(const MatmulSpec *s, const MatmulConfig *c, int64_t m)
{
    double rows = c->rows, more = rows * (c->tiles - 1);
    bool plain = c->prepared == 0;
    double alone = unit_us + unit_row_us * rows + unit_tile_us * more + plain * unit_plain_us;
    double busy = issue_row_us * rows + issue_tile_us * more +
                  plain * issue_plain_us * rows + c->scaled * issue_scaled_us * rows +
                  (m > 1) * issue_columns_us;
    int over = matmul_registers(s, c) - matmul_registers_limit(c);
    double slower = 1 + (over > 0 ? over : 0) * spill;
    return (Rates){(round_us + c->deep * alone) * slower, c->deep * busy * slower};
}

/* Blocks that run at once. The slowest of three holds: a warp's own rounds, one after the
 * other; the instructions of all warps of a multiprocessor; the memory. */
static double wave_time(const MatmulSpec *s, const MatmulConfig *c, const MatmulDevice *d,
                        Rates rates, double rounds_a_block, int64_t blocks)
{
    double most = ceil(rounds_a_block);
    int64_t warps = ceil_div(blocks, d->multiprocessors) * c->rwarps * c->kwarps;
    double units = rounds_a_block * c->rwarps * c->kwarps * c->deep;
    double bytes = (double)blocks * units * (double)matmul_unit_bytes(s, c->rows);
    return pow(pow(most * rates.alone, sharpness) +
                   pow(most * (double)warps * rates.busy, sharpness) +
                   pow(bytes / d->bandwidth, sharpness), 1 / sharpness);
}

/* What was measured little or not at all counts more than the model says. */
static double find_doubt(const MatmulConfig *c)
{
    double doubt = c->stages == 0 ? 1.25 : 1;
    if (c->deep > 2)
        doubt *= 1.1;
    return c->rwarps * c->kwarps < 4 ? doubt * 1.15 : doubt;
}

/* All columns of tiles are waves behind each other, whose weights are read again. */
double matmul_cost(const MatmulSpec *spec, const MatmulConfig *c, int64_t m,
                   const MatmulDevice *device)
{
    int64_t blocks = matmul_blocks(spec, c, device->multiprocessors);
    int64_t left = blocks * ceil_div(m, 8 * c->tiles);
    int resident = matmul_resident(spec, c, device);
    int64_t at_once = (int64_t)(resident ? resident : 1) * device->multiprocessors;
    double rounds = (double)matmul_rounds(spec, c) / (double)blocks;
    Rates rates = find_rates(spec, c, m);
    double us = launch_us + (c->prepared > 0) * prepare_us +
                vector_bytes(spec, m) / device->bandwidth;
    if (blocks != ceil_div(spec->n, c->rwarps * c->rows))
        us += hand_over_us;
    int64_t full = left / at_once;
    us += (double)full * wave_time(spec, c, device, rates, rounds, at_once);
    if (left % at_once)
        us += wave_time(spec, c, device, rates, rounds, left % at_once);
    us += (double)(ceil_div(left, at_once) - 1) * wave_us;
    return us * find_doubt(c);
}
