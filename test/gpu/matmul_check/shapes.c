/* Sizes with edges in n, and configurations that cover the template: pre-arranged A, directly and
 * through the ring; no ring, and 2, 3 and 4 stages; scales on sums and on weights; packed blocks of
 * 32, 64 and 128 rows; up to 8 warps along n or along k, up to 8 k-tiles a stage; 1, 2, 4 and 8
 * columns, and 1 to 16 tiles of them; blocks that have a tile each, that share tiles evenly, and
 * that begin in the middle of one; zero points by fma and by mma; registers reallocated. The
 * library's own choice, of so small products, is nearly always the same one. */
#include "check.h"

const int64_t shape_sizes[SIZES] = {1, 3, 16, 33, 128};

/* rows, warps_n, warps_k, stage_k_tiles, stages, columns, tiles, prearranged_a, scale_weights,
 * per_sm, zeros_by_mma, register_reallocation */
const Shape shapes[] = {
    {392, 512, {{0}}},
    {328, 512, {{64, 1, 4, 1, 2, 1, 1, 2, 0, 0, 1, 0},  /* a block a tile */
                {64, 1, 4, 1, 2, 4, 1, 1, 0, 0, 0, 0},
                {64, 1, 4, 1, 2, 8, 2, 2, 0, 0, 0, 0},
                {64, 2, 2, 2, 2, 8, 4, 2, 1, 0, 0, 0},
                {64, 8, 1, 1, 2, 8, 8, 2, 1, 0, 0, 1}}},
    {400, 512, {{128, 1, 2, 1, 3, 2, 1, 1, 0, 1, 0, 0},  /* large packed blocks */
                {128, 2, 2, 1, 2, 4, 1, 2, 0, 1, 1, 0},
                {128, 1, 4, 1, 2, 8, 1, 2, 0, 1, 0, 0},
                {128, 2, 1, 1, 2, 8, 1, 2, 0, 1, 1, 0},
                {128, 2, 1, 2, 2, 8, 2, 2, 1, 1, 0, 0}}},
    {264, 512, {{32, 4, 2, 1, 4, 1, 1, 2, 0, 1, 0, 1},  /* small ones, in wide tiles */
                {32, 4, 1, 2, 0, 4, 1, 1, 0, 1, 1, 0},
                {32, 8, 1, 1, 3, 8, 2, 2, 0, 1, 0, 1},
                {32, 2, 2, 2, 2, 8, 4, 2, 0, 0, 1, 0},
                {32, 4, 1, 2, 2, 8, 16, 2, 1, 0, 0, 0}}},
    {267, 384, {{64, 2, 2, 1, 0, 1, 1, 1, 0, 1, 0, 0},  /* no ring; rows of C at odd places */
                {64, 1, 4, 1, 0, 4, 1, 1, 0, 0, 0, 0},
                {64, 2, 2, 1, 0, 8, 1, 1, 0, 1, 1, 0},
                {64, 2, 1, 1, 0, 8, 2, 1, 0, 1, 0, 0},
                {64, 2, 1, 2, 0, 8, 4, 1, 1, 1, 0, 0}}},
    {600, 1024, {{32, 1, 1, 1, 2, 1, 1, 1, 0, 1, 0, 0},  /* 152 iterations */
                 {32, 2, 1, 8, 2, 4, 1, 2, 0, 1, 1, 0},  /* an iteration a tile */
                 {32, 1, 1, 1, 4, 8, 2, 2, 0, 1, 0, 0},
                 {32, 1, 1, 1, 2, 8, 4, 2, 0, 1, 1, 0},
                 {32, 8, 1, 2, 2, 8, 8, 2, 1, 1, 0, 1}}},
    {136, 1024, {{64, 1, 8, 1, 2, 1, 1, 1, 0, 1, 0, 1},  /* warps and iterations along k */
                 {64, 1, 4, 2, 2, 4, 1, 2, 0, 2, 0, 1},
                 {64, 1, 8, 1, 2, 8, 2, 2, 0, 0, 1, 1},
                 {64, 1, 2, 4, 2, 8, 2, 2, 0, 1, 0, 0},
                 {64, 1, 4, 1, 2, 8, 4, 2, 1, 0, 0, 0}}},
};

const size_t shape_count = COUNT(shapes);
