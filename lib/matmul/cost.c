/* What a configuration is thought to cost: the slower of memory and instructions, and what
 * begins and ends each launch. Its numbers were fitted to measurements on an H200. */
#include "matmul/config.h"

/* ---- bytes ------------------------------------------------------------------- */

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

/* ---- time ------------------------------------------------------------------- */

/* Microseconds that launches of an even share of the rounds take, the last being those of
 * the block that has most. */
double matmul_cost(const MatmulSpec *spec, const MatmulConfig *c, int64_t m,
                   const MatmulDevice *device)
{
    int64_t blocks = matmul_blocks(spec, c, device->multiprocessors);
    int64_t columns = ceil_div(m, 8 * c->tiles);
    int resident = matmul_resident(spec, c, device);
    int64_t at_once = (int64_t)(resident ? resident : 1) * device->multiprocessors;
    int64_t waves = ceil_div(blocks * columns, at_once);
    int64_t most = waves * ceil_div(matmul_rounds(spec, c), blocks);
    int64_t running = blocks * columns < at_once ? blocks * columns : at_once;
    double units = (double)most * (double)running * c->rwarps * c->kwarps * c->deep;
    double memory = (units * (double)matmul_unit_bytes(spec, c->rows) + vector_bytes(spec, m)) /
                    device->bandwidth;
    double instructions = units * c->rows / 64 * (290 + 90 * c->tiles) / 4 /
                          device->multiprocessors / 1755;
    return (c->prepared ? 5 : 3) + (memory > instructions ? memory : instructions) + (c->per_sm ? 1 : 0);
}
