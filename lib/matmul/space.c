/* The space of configurations: the resources that each takes, and the devices that have room. */
#include "matmul/config.h"

#include "support/integer.h"
#include "support/limits.h"
#include "support/register_share.h"
#include "target/target.h"

#include <string.h>

enum { PREARRANGED = 1, PREARRANGED_IN_RING = 2, PREARRANGED_ROWS = 3 };

bool matmul_zeros_by_mma(const MatmulSpec *spec, const MatmulConfig *c)
{
    bool integers = spec->zeros == TILUS_ZEROS_INTEGER ||
                    (spec->zeros == TILUS_ZEROS_NONE && spec->offset > 0);
    return c->zeros_by_mma && integers && !c->scale_weights && !spec->wide_range &&
           !matmul_is_a8(spec);
}

bool matmul_by_wgmma(const MatmulConfig *c)
{
    return c->prearranged_a == PREARRANGED_ROWS;
}

enum {
    PAIRS_MOST = 16,            /* tiles of 8 rows of A of @matmul_wgmma with pairs of fragments */
    PAIRS_N = 256, SINGLES_N = 128      /* of a tile */
};

bool matmul_has_single_fragments(const MatmulConfig *c)
{
    return matmul_by_wgmma(c) && c->warps_n * c->rows == SINGLES_N;
}

int matmul_a_stages(const MatmulConfig *c)
{
    enum { OF_MANY_ROWS = 2, OF_FEW_ROWS = 4 };
    return !matmul_has_single_fragments(c) ? c->stages : c->tiles > PAIRS_MOST ? OF_MANY_ROWS : OF_FEW_ROWS;
}

int matmul_parts(const MatmulConfig *c)
{
    return matmul_by_wgmma(c) ? c->warps_k : 1;
}

int64_t matmul_clusters_at_once(int64_t parts, const MatmulDevice *device)
{
    enum { OF = 132, SIZES = 9 };
    static const int blocks[SIZES] = {1, 132, 132, 117, 120, 110, 102, 105, 120};
    int64_t all = device->multiprocessors * blocks[parts] / OF / parts;
    return all > 1 ? all : 1;
}

/* Blocks of a cluster are neighbors in n. To share A saves energy: on an H200 up to 5 % of the time of a
 * prompt, whose products run at its power limit; from rest only codes of 6 bits or more gain. Of few
 * columns an odd one would have a neighbor without work. */
int matmul_cluster(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { BLOCKS = 2, COLUMNS_MANY = 32 };
    int64_t columns = ceil_div_i64(spec->n, (int64_t)c->warps_n * c->rows);
    bool fills = columns % BLOCKS == 0 || columns >= COLUMNS_MANY;
    return matmul_has_single_fragments(c) && matmul_parts(c) == 1 && !spec->experts && fills ? BLOCKS : 1;
}

int matmul_arranged_k(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { SUMS = 16 };
    return MATMUL_PACKED_K + (matmul_zeros_by_mma(spec, c) ? SUMS : 0);
}

MatmulProgram matmul_product_program(const MatmulConfig *c)
{
    return matmul_parts(c) > 1     ? MATMUL_PARTS
           : matmul_by_wgmma(c)    ? MATMUL_WGMMA
           : matmul_combines(c)    ? MATMUL_PRODUCT_COMBINED
                                   : MATMUL_PRODUCT;
}

MatmulProgram matmul_prepare_program(const MatmulConfig *c)
{
    return matmul_by_wgmma(c) ? MATMUL_ARRANGE : MATMUL_PREPARE;
}

MatmulProgram matmul_normed_program(const MatmulConfig *c)
{
    return matmul_by_wgmma(c) ? MATMUL_ARRANGE_NORMED : MATMUL_PREPARE_NORMED;
}

/* Returns true where threads have registers for a row. */
bool matmul_prepares_normed(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { SLICES_MOST = 128 };
    return s->prologue != TILUS_PROLOGUE_NONE && !matmul_is_a8(s) && matmul_prepares(s, c) &&
           matmul_slices(s) <= SLICES_MOST;
}

/* Rounds the slices of a row up, so that so many warps share them evenly. */
static int64_t shared_slices(const MatmulSpec *s, int warps)
{
    enum { SLICES_OF_WARP = 2 };
    return round_up_i64(matmul_slices(s), warps * SLICES_OF_WARP);
}

/* Returns as many warps as share a row nearly evenly. */
int matmul_normed_warps(const MatmulSpec *s)
{
    enum { WARPS_MOST = 16, WARPS_LEAST = 4, PART = 4 };
    int64_t slices = matmul_slices(s);
    int warps = WARPS_MOST;
    while (warps > WARPS_LEAST && shared_slices(s, warps) > slices + slices / PART)
        warps /= 2;
    return warps;
}

int matmul_normed_slices(const MatmulSpec *s)
{
    return (int)shared_slices(s, matmul_normed_warps(s));
}

/* Returns the program that does for products of 8 bits what `program` does for others. */
static MatmulProgram a8_program(const MatmulSpec *s, MatmulProgram program)
{
    return program == MATMUL_WGMMA      ? MATMUL_A8
           : program != MATMUL_ARRANGE  ? program
           : matmul_has_a_scales(s)     ? MATMUL_COPY_ROWS
                                        : MATMUL_QUANTIZE;
}

bool matmul_arranges_in_blocks(const MatmulConfig *c)
{
    return c->prearranged_a >= MATMUL_ARRANGED_IN_BLOCKS;
}

bool matmul_fuses_prologue(const MatmulSpec *s, const MatmulConfig *c)
{
    return s->prologue != TILUS_PROLOGUE_NONE && matmul_arranges_in_blocks(c);
}

/* Returns true where tensor copies of a product by wgmma read A as the caller has it: 64 of k of a row
 * are a line of 128 bytes, or with products of 8 bits 128. */
static bool copies_read_a(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { LINE_K = 64 };
    bool as_it_is = matmul_is_a8(s) ? matmul_has_a_scales(s)
                                    : c->scale_weights && s->activations == s->product &&
                                          !s->gather && !matmul_reorders_k(s) &&
                                          s->k % LINE_K == 0;
    return matmul_by_wgmma(c) && as_it_is && matmul_divisor(s, s->a_stride) > 1;
}

bool matmul_prepares(const MatmulSpec *s, const MatmulConfig *c)
{
    return !matmul_arranges_in_blocks(c) && !copies_read_a(s, c);
}

MatmulProgram matmul_program_of(const MatmulSpec *s, MatmulProgram program)
{
    return matmul_is_a8(s)              ? a8_program(s, program)
           : s->experts == 0            ? program
           : program == MATMUL_PREPARE ? MATMUL_PREPARE_EXPERTS
           : program == MATMUL_PRODUCT ? MATMUL_PRODUCT_EXPERTS
           : program == MATMUL_ARRANGE ? MATMUL_ARRANGE_EXPERTS
           : program == MATMUL_WGMMA   ? MATMUL_WGMMA_EXPERTS
                                       : program;
}

bool matmul_reorders_k(const MatmulSpec *s)
{
    enum { GROUP = 16 };
    return s->group == GROUP && !matmul_is_a8(s);
}

bool matmul_stores_by_copies(const MatmulSpec *spec)
{
    return matmul_columns_of_c(spec, spec->n) * dtype_bits(spec->result) % 128 == 0;
}

/* ---- sizes ------------------------------------------------------------ */

int64_t matmul_slices(const MatmulSpec *spec)
{
    int64_t slices = ceil_div_i64(spec->k, MATMUL_PACKED_K);
    for (int64_t to = 8; to > 2; to /= 2)
        if ((round_up_i64(slices, to) - slices) * 16 <= slices)
            return round_up_i64(slices, to);
    return round_up_i64(slices, 2);
}

/* Returns the rows of packed weights: n, rounded up to 256. */
static int64_t padded_rows(const MatmulSpec *spec)
{
    enum { N_UNIT = 256 };
    return round_up_i64(spec->n, N_UNIT);
}

int64_t matmul_packed_blocks(const MatmulSpec *spec, int rows)
{
    return padded_rows(spec) / rows * matmul_slices(spec);
}

int matmul_vector(const MatmulSpec *spec)
{
    return 128 / (int)dtype_bits(spec->activations);
}

int matmul_divisor(const MatmulSpec *spec, int64_t a_stride)
{
    int vector = matmul_vector(spec);
    if (spec->k % MATMUL_PACKED_K == 0 && a_stride % MATMUL_PACKED_K == 0)
        return MATMUL_PACKED_K;
    return spec->k % vector == 0 && a_stride % vector == 0 ? vector : 1;
}

/* Return the rows of a tile, and the packed blocks along k of an iteration. */
static int64_t tile_rows(const MatmulConfig *c)
{
    return (int64_t)c->warps_n * c->rows;
}

static int64_t iteration_blocks(const MatmulConfig *c)
{
    return matmul_by_wgmma(c) ? 1 : (int64_t)c->warps_k * c->stage_k_tiles;
}

int64_t matmul_iterations(const MatmulSpec *spec, const MatmulConfig *config)
{
    return ceil_div_i64(spec->n, tile_rows(config)) *
           (matmul_slices(spec) / iteration_blocks(config));
}

int64_t matmul_blocks(const MatmulSpec *spec, const MatmulConfig *config, int multiprocessors)
{
    int64_t iterations = matmul_iterations(spec, config);
    int64_t blocks = config->per_sm ? (int64_t)config->per_sm * multiprocessors
                                    : ceil_div_i64(spec->n, tile_rows(config));
    return blocks < iterations ? blocks : iterations;
}

int matmul_split(const MatmulSpec *spec)
{
    enum { TILE_N = 256, BUSY = 128, MOST = 8 };
    int64_t columns = ceil_div_i64(spec->n, TILE_N), slices = matmul_slices(spec);
    int split = 1;
    if (!spec->batch_invariant || spec->experts)
        return 0;
    while (split < MOST && 2 * split * columns <= BUSY && slices % (2 * split) == 0)
        split *= 2;
    return split;
}

/* ---- devices ---------------------------------------------------------- */

/* Beside the blocks' own, each block takes 1 KiB of a multiprocessor's shared memory, which
 * is also what one block cannot have of it (CUDA's programming guide, compute capability 8
 * and 9). */
enum { SHARED_SYSTEM = 1024 };

static const struct {
    const char *name;
    double bandwidth;       /* as measured with reads of many times the L2, bytes a us */
} known_devices[] = {
    {"NVIDIA H200", 4.57e6},
};

MatmulDevice matmul_device(const char *name, int capability, int multiprocessors,
                           int64_t shared_block)
{
    MatmulDevice d = {name, capability, multiprocessors, shared_block,
                      shared_block + SHARED_SYSTEM, multiprocessors * 2.4e4};
    for (size_t i = 0; i < sizeof known_devices / sizeof *known_devices; i++)
        if (strcmp(name, known_devices[i].name) == 0)
            d.bandwidth = known_devices[i].bandwidth;
    return d;
}

/* ---- what a block takes ----------------------------------------------- */

/* Counts the bytes of two mbarriers of 8 bytes a stage, whose arrays begin at multiples of 16. */
static int64_t mbarriers_bytes(const MatmulConfig *c)
{
    return round_up_i64(8 * c->stages, 16) + 8 * c->stages;
}

/* Counts the bytes through which 16 rows of C get the order in which they are stored, before the
 * residual is added, for rows of experts. */
static int64_t stored_rows_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { ROWS = 16, THREADS = 256, TOGETHER = 8, VECTOR = 16, F32 = 4 };
    int64_t element = spec->residual && !spec->combine ? F32 : dtype_bits(spec->result) / 8;
    int64_t columns = matmul_columns_of_c(spec, tile_rows(c)), each = ROWS * columns / THREADS;
    int64_t padding = (each < TOGETHER ? each : TOGETHER) * element;    /* what a thread stores at once */
    return ROWS * (columns * element + (padding < VECTOR ? padding : VECTOR));
}

/* Counts the mbarriers of A's ring of single fragments, whose slots are in halves: full and empty. */
static int halves_mbarriers(const MatmulConfig *c)
{
    enum { HALVES = 2 };
    return matmul_has_single_fragments(c) ? 2 * HALVES * matmul_a_stages(c) : 0;
}

/* Adds up packed blocks, rows of A of 128 k and, where copies store C, two times `stored` rows of it,
 * the largest first, and mbarriers. What is not packed begins at a multiple of 1024 bytes. With single
 * fragments the ring of A has slots and mbarriers of its own; parts of k end at one more. */
static int64_t wgmma_shared_bytes(const MatmulSpec *spec, const MatmulConfig *c, int stored)
{
    enum { ALIGN = 1024, MBARRIER = 8 };
    bool single = matmul_has_single_fragments(c);
    int64_t bytes_of_row = matmul_arranged_k(spec, c) * dtype_bits(spec->product) / 8;
    int64_t ring = c->stages * c->warps_n * matmul_packed_form(spec, c->rows, 8).block;
    int64_t rows = (int64_t)matmul_a_stages(c) * 8 * c->tiles * bytes_of_row;
    int64_t mbarriers = single ? 2 * round_up_i64(MBARRIER * c->stages, 16) + MBARRIER * halves_mbarriers(c)
                               : mbarriers_bytes(c);
    if (matmul_parts(c) > 1)
        mbarriers = round_up_i64(mbarriers, 16) + MBARRIER;
    bool stages_c = matmul_stores_by_copies(spec) && !spec->experts;
    int64_t row_of_c = matmul_columns_of_c(spec, tile_rows(c)) * dtype_bits(spec->result) / 8;
    int64_t staged = stages_c ? 2 * stored * row_of_c : 0;
    if (rows <= ring || (staged > 0 && staged <= ring))
        ring = round_up_i64(ring, ALIGN);
    int64_t bytes = ring + rows + staged + mbarriers;
    return spec->experts ? round_up_i64(bytes, 16) + stored_rows_bytes(spec, c) : bytes;
}

int matmul_stored_rows(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { LEAST = 16, MOST = 32, CAPABILITY = 90 };
    bool fits = !spec->experts && 8 * c->tiles % MOST == 0 && wgmma_shared_bytes(spec, c, MOST) <=
                                                target_for(CAPABILITY)->shared_bytes;
    return fits ? MOST : LEAST;
}

static bool has_norm(const MatmulSpec *spec)
{
    return spec->prologue == TILUS_PROLOGUE_RMS_NORM;
}

enum { LANES_OF_SLICE = 4 };       /* fours of lanes, each of which has 32 of k */

/* Returns true where codes lie in bytes as they are, 128 / bits of k in each, all of one group. */
static bool are_fields_of_bytes(const MatmulSpec *s, const MatmulConfig *c)
{
    unsigned bits = dtype_bits(s->codes);
    return (bits & (bits - 1)) == 0 && !dtype_is_float(s->codes) && !c->scale_weights &&
           (s->group == 0 || s->group * (int)bits >= MATMUL_PACKED_K);
}

enum { NARROW = 2 };            /* bits of codes whose multiplication binds one row */

/* Narrow codes, as digits, need an even number of parts in a thread: fields of a byte lie in two. */
int64_t matmul_arranged_slices(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { FOURS = 8 };
    if (matmul_combines(c))
        return matmul_slices(spec);
    int64_t fours = (int64_t)c->warps_n * c->warps_k * FOURS;
    if (are_fields_of_bytes(spec, c) && dtype_bits(spec->codes) <= NARROW)
        fours *= 2;
    return round_up_i64(matmul_slices(spec) * LANES_OF_SLICE, fours) / LANES_OF_SLICE;
}

/* Digits take twice as much memory as f16, which the ring lacks then: of a long row only narrow codes gain
 * more than that. */
bool matmul_has_digits(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { SLICES_MANY = 128 };
    return matmul_arranges_in_blocks(c) && !matmul_combines(c) && are_fields_of_bytes(s, c) &&
           (dtype_bits(s->codes) <= NARROW || matmul_slices(s) <= SLICES_MANY);
}

/* Counts the groups of A whose sums a product takes: with digits none, as products give them. */
static int64_t summed_groups(const MatmulSpec *spec, const MatmulConfig *c)
{
    bool centred = spec->zeros != TILUS_ZEROS_NONE || spec->offset > 0;
    int64_t groups = MATMUL_PACKED_K / (spec->group ? spec->group : MATMUL_PACKED_K);
    return centred && !c->scale_weights && !matmul_has_digits(spec, c)
               ? matmul_arranged_slices(spec, c) * groups
               : 0;
}

/* Returns the bytes of the row of A that each block arranges, of elements of `bytes`. */
static int64_t row_bytes(const MatmulSpec *spec, const MatmulConfig *c, int bytes)
{
    return matmul_arranged_slices(spec, c) * MATMUL_PACKED_K * bytes;
}

/* Returns those, with two words for each sum of a group or the factor of digits, and of the list of
 * experts' rows. */
static int64_t arranged_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { HALF = 2, DIGITS = 4, FACTOR = 4, SUMS = 8, LINE = 20 };
    int64_t list = spec->experts ? MATMUL_FEW_ROWS * LINE : 0;
    return list + (matmul_has_digits(spec, c)
                       ? row_bytes(spec, c, DIGITS) + FACTOR
                       : row_bytes(spec, c, HALF) + summed_groups(spec, c) * SUMS);
}

/* Returns the bytes through which threads that arrange A exchange numbers of each warp, sums of squares and
 * largest elements, and then sums of groups. */
static int64_t exchanged_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { NUMBER = 4 };
    bool each = has_norm(spec) || matmul_has_digits(spec, c);
    int64_t numbers = each ? (int64_t)c->warps_n * c->warps_k : 0;
    int64_t groups = summed_groups(spec, c);
    return NUMBER * (numbers > groups ? numbers : groups);
}

/* Returns the bytes of what a block that arranges A reads first: the weights of a norm, or the ends of
 * experts' rows. */
static int64_t early_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { HALF = 2, END = 4 };
    return has_norm(spec)  ? row_bytes(spec, c, HALF)
           : spec->experts ? (int64_t)matmul_experts_room(spec) * END
                           : 0;
}

/* Adds up the ring, with panels of A that come through it, its mbarriers and, unless each warp has
 * whole sums, the sums of all warps, in columns of 4 more than the rows, the last without them. A
 * block that arranges its row of A needs memory for that, too; what it reads first is read before there
 * are sums, and lies in the same place. */
int64_t matmul_shared_bytes(const MatmulSpec *spec, const MatmulConfig *c)
{
    enum { ALIGN = 16 };
    if (matmul_by_wgmma(c))
        return wgmma_shared_bytes(spec, c, matmul_stored_rows(spec, c));
    if (matmul_combines(c))
        return matmul_combined_bytes(spec, c);
    PackedForm form = matmul_packed_form(spec, c->rows, c->columns);
    int64_t panels = c->prearranged_a == 2 ? c->tiles * form.panel : 0;
    int64_t k_tile = c->warps_n * form.block + panels;
    bool whole = c->warps_k == 1 && c->columns == 8;
    int64_t columns = matmul_has_digits(spec, c) ? 1 : 8 * c->tiles;
    int64_t sums = whole ? 0 : (int64_t)c->warps_k * columns * (tile_rows(c) + 4) * 4 - 16;
    int64_t bytes = c->stages * iteration_blocks(c) * k_tile;
    if (!matmul_arranges_in_blocks(c))
        return bytes + sums + mbarriers_bytes(c);
    int64_t early = early_bytes(spec, c);
    bytes += arranged_bytes(spec, c) + (early > sums ? early : sums);
    bytes = round_up_i64(bytes, ALIGN) + mbarriers_bytes(c);
    int64_t exchanged = exchanged_bytes(spec, c);
    return exchanged > 0 ? round_up_i64(bytes, ALIGN) + exchanged : bytes;
}

enum { WARPGROUP = 4, REGISTERS_MAX = 255 };     /* warps; registers that instructions name */

/* Counts the warps that multiply, and those that copy: one, or a warpgroup that gives registers
 * up. */
static int warps_of_block(const MatmulConfig *c)
{
    return c->warps_n * c->warps_k + (c->register_reallocation ? WARPGROUP : c->stages > 0);
}

/* Returns the registers that a product needs on sm_90a so as not to spill much: a part by the
 * rows, one for each word of codes, and activations and sums of tiles beyond the first, which
 * scales on sums need twice. */
int matmul_registers(const MatmulSpec *spec, const MatmulConfig *c)
{
    int rows = c->rows <= 32 ? 88 : c->rows <= 64 ? 119 : 135;
    int codes = c->rows * (int)dtype_bits(spec->weights) / 8;
    return rows + codes + (c->tiles - 1) * c->rows / (c->scale_weights ? 4 : 2);
}

/* Returns the registers that ptxas 13.0 takes without a limit, off by 9 on average: more, so as
 * to read ahead, which it gives up at no cost. */
static int registers_taken(const MatmulSpec *spec, const MatmulConfig *c)
{
    int rows = c->rows <= 32 ? 107 : c->rows <= 64 ? 123 : 150;
    int codes = c->rows * (int)dtype_bits(spec->weights) * 5 / 48;
    int path = (c->stages == 0) * 17;
    if (c->scale_weights)
        return rows + codes + path - 17 + (c->tiles - 1) * c->rows * 5 / 16;
    int ahead = (c->stage_k_tiles > 1) * 19 + (c->stage_k_tiles > 2) * 28;
    int more = (c->tiles > 1) * 15 + (c->tiles - 1) * c->rows * 7 / 16;
    return rows + codes + path + ahead + more;
}

/* Returns the registers that all threads of a multiprocessor's blocks may have alike. */
static int equal_share(const MatmulConfig *c)
{
    int blocks = c->per_sm > 1 ? c->per_sm : 1;
    int share = (int)register_share((int64_t)warps_of_block(c) * blocks);
    return share < REGISTERS_MAX ? share : REGISTERS_MAX;
}

int matmul_registers_reallocated(const MatmulConfig *c)
{
    enum { MOST = REGISTERS_MAX / REGISTER_STEP * REGISTER_STEP };
    if (!c->register_reallocation)
        return 0;
    int share = equal_share(c), warps = c->warps_n * c->warps_k;
    int given = (share - MATMUL_COPIER_REGISTERS) * WARPGROUP / warps;
    int registers = (share + given) / REGISTER_STEP * REGISTER_STEP;
    return registers < MOST ? registers : MOST;
}

int matmul_registers_limit(const MatmulConfig *c)
{
    return c->register_reallocation ? matmul_registers_reallocated(c) : equal_share(c);
}

int matmul_resident(const MatmulSpec *spec, const MatmulConfig *c, const MatmulDevice *device)
{
    if (matmul_by_wgmma(c))
        return matmul_shared_bytes(spec, c) <= device->shared_block;
    int taken = registers_taken(spec, c), share = equal_share(c);
    int registers = c->register_reallocation || taken > share ? share : taken;
    int by_registers = (int)register_warps(registers) / warps_of_block(c);
    int64_t by_shared = device->shared_sm / (matmul_shared_bytes(spec, c) + SHARED_SYSTEM);
    int64_t blocks = by_shared < by_registers ? by_shared : by_registers;
    return matmul_shared_bytes(spec, c) > device->shared_block ? 0 : (int)blocks;
}

static bool is_one_of(int value, const int *values)
{
    while (*values >= 0 && *values != value)
        values++;
    return *values == value && value >= 0;
}

static const int all_rows[] = {32, 64, 128, -1}, all_warps_n[] = {1, 2, 4, 8, -1};
static const int all_warps_k[] = {1, 2, 4, 8, -1}, all_stage_k_tiles[] = {1, 2, 4, 8, -1};
static const int all_stages[] = {0, 2, 3, 4, 8, -1}, all_tiles[] = {1, 2, 4, 8, 16, -1};
static const int wgmma_tiles[] = {2, 4, 6, 8, 12, 16, 24, 32, -1};

/* Returns true when the warps that multiply are whole warpgroups, and get more registers by
 * setmaxnreg than an equal share. */
static bool may_reallocate(const MatmulConfig *c)
{
    MatmulConfig alone = *c;
    alone.register_reallocation = 0;
    return c->stages > 0 && c->warps_n * c->warps_k % WARPGROUP == 0 &&
           matmul_registers_reallocated(c) > equal_share(&alone);
}

/* The copies into a ring. */
static bool has_bulk_copies(int capability)
{
    enum { BULK_COPIES = 90 };
    return capability >= BULK_COPIES;
}

/* setmaxnreg is an instruction of single architectures. */
static bool has_setmaxnreg(int capability)
{
    const Target *target = target_for(capability);
    return target && target->own;
}

enum { PARTS_MOST = 8 };

/* Returns true where sums of a part of k fit into A's ring, and a cluster is no larger than all GPUs have. */
static bool is_valid_parts(const MatmulConfig *c)
{
    enum { PAIRS_STAGES = 4 };
    return c->warps_k == 1 || (c->warps_k > 1 && c->warps_k <= PARTS_MOST &&
                               (matmul_has_single_fragments(c) || c->stages >= PAIRS_STAGES));
}

/* Returns true for what @matmul_wgmma has. */
static bool is_valid_wgmma(const MatmulConfig *c)
{
    enum { STAGES_LEAST = 2 };
    bool pairs = tile_rows(c) == PAIRS_N && c->tiles <= PAIRS_MOST;
    int summed = matmul_parts(c) > 1, mbarriers = 2 * c->stages + summed + halves_mbarriers(c);
    return (pairs || matmul_has_single_fragments(c)) && is_valid_parts(c) && c->stage_k_tiles == 1 &&
           c->columns == 8 && mbarriers <= LIMIT_MBARRIERS && is_one_of(c->tiles, wgmma_tiles) &&
           c->stages >= STAGES_LEAST && c->per_sm == 1 &&
           c->register_reallocation;
}

/* Returns true where programs by wgmma have the epilogue: only experts' multiplies. */
static bool has_epilogue_by_wgmma(const MatmulSpec *s)
{
    return !s->multiply || s->experts;
}

/* Returns true where @matmul_wgmma has registers for integer zero points beside sums of groups. */
static bool has_zeros_by_wgmma(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { TILES_MOST = 6 };
    return s->zeros == TILUS_ZEROS_INTEGER && !s->experts && matmul_zeros_by_mma(s, c) &&
           c->tiles <= TILES_MOST;
}

/* Returns true where @matmul_wgmma has scales as the configuration says: on sums of 128 of k, in
 * registers beside the tile's sums, or of all of k without zero points; or on weights, as always with
 * single fragments, which have no scales of 8 bits. */
static bool has_scales_by_wgmma(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { TILES_WITH_GROUPS = 8, SCALE_BITS = 16 };
    if (matmul_has_single_fragments(c))
        return c->scale_weights && dtype_bits(s->scales) == SCALE_BITS && !matmul_is_a8(s) &&
               (!s->experts || c->tiles > PAIRS_MOST);
    if (matmul_is_a8(s))
        return !c->scale_weights;
    bool centred = s->zeros != TILUS_ZEROS_NONE || s->offset > 0;
    return c->scale_weights || (s->group == 0 && !centred) ||
           (s->group == MATMUL_PACKED_K &&
            (centred ? has_zeros_by_wgmma(s, c) : c->tiles <= TILES_WITH_GROUPS));
}

static bool is_flag(int value)
{
    return value == 0 || value == 1;
}

/* Returns true when the template has the configuration, on any device. A stage has two
 * mbarriers. */
static bool is_valid(const MatmulConfig *c)
{
    enum { STAGES_MAX = LIMIT_MBARRIERS / 2, PER_SM_MAX = 32, ROWS_MAX = 512, WARPS_MAX = 16 };
    return is_one_of(c->rows, all_rows) && is_one_of(c->warps_n, all_warps_n) &&
           is_one_of(c->stage_k_tiles, all_stage_k_tiles) &&
           tile_rows(c) <= ROWS_MAX && c->stages >= 0 &&
           c->stages <= STAGES_MAX && is_one_of(c->columns, all_warps_k) &&
           (matmul_by_wgmma(c) || is_one_of(c->tiles, all_tiles)) &&
           (c->tiles == 1 || c->columns == 8) &&
           c->prearranged_a >= PREARRANGED && c->prearranged_a <= MATMUL_COMBINED_LAST &&
           (c->prearranged_a == PREARRANGED || c->stages > 0) &&
           (matmul_by_wgmma(c) ? is_valid_wgmma(c)
                               : is_one_of(c->warps_k, all_warps_k) && c->warps_n * c->warps_k <= WARPS_MAX) &&
           is_flag(c->scale_weights) &&
           c->per_sm >= 0 && c->per_sm <= PER_SM_MAX && is_flag(c->zeros_by_mma) &&
           is_flag(c->register_reallocation) &&
           (!c->register_reallocation || matmul_by_wgmma(c) || may_reallocate(c));
}

/* Returns true where packed weights are whole iterations of whole tiles. */
static bool are_whole_tiles(const MatmulSpec *spec, const MatmulConfig *c)
{
    int64_t rows = matmul_combines(c) ? matmul_choices(spec, c) : 1;
    return matmul_slices(spec) * rows % iteration_blocks(c) == 0 && padded_rows(spec) % tile_rows(c) == 0;
}

enum { BLOCKS_MAX = 65535 };

/* Returns true where sums of parts of k may have an order of their own, every part has an iteration, and a cluster has room. */
static bool has_parts(const MatmulSpec *spec, const MatmulConfig *c, const MatmulDevice *device)
{
    int parts = matmul_parts(c);
    return parts <= device->multiprocessors && !spec->experts && !spec->batch_invariant &&
           !matmul_is_a8(spec) && matmul_slices(spec) >= parts &&
           ceil_div_i64(spec->n, tile_rows(c)) * parts <= BLOCKS_MAX;
}

bool matmul_config_fits(const MatmulSpec *spec, const MatmulConfig *c,
                        const MatmulDevice *device)
{
    enum {
        SPILLED = 32,           /* registers: u4 with sums of 64 x 64 lacks 31 of 263 */
        WGMMA = 90,
    };
    if (!is_valid(c) || !are_whole_tiles(spec, c) || (matmul_parts(c) > 1 && !has_parts(spec, c, device)) ||
        (c->stages > 0 && !has_bulk_copies(device->capability)) ||
        (matmul_is_a8(spec) && !matmul_by_wgmma(c)) ||
        (c->register_reallocation && !has_setmaxnreg(device->capability)) ||
        (c->scale_weights ? !matmul_centred_fits(spec) : matmul_scales_weights_only(spec)) ||
        (matmul_by_wgmma(c) ? device->capability != WGMMA || !has_scales_by_wgmma(spec, c) ||
                                  !has_epilogue_by_wgmma(spec)
                            : matmul_registers(spec, c) > matmul_registers_limit(c) + SPILLED) ||
        matmul_blocks(spec, c, device->multiprocessors) > BLOCKS_MAX)
        return false;
    int resident = matmul_resident(spec, c, device);
    return resident > 0 && resident >= c->per_sm;
}

/* Returns true where the powers of two that decoding leaves to A repeat so soon that they are constants of a
 * thread that arranges a row: codes of 2, 4 and 8 bits, and of 1 bit as digits. */
static bool have_constant_powers(const MatmulSpec *s)
{
    unsigned bits = dtype_bits(s->codes);
    return (bits & (bits - 1)) == 0;
}

/* Returns true where threads have few registers of A, and of groups neighbors. Slices that are added so
 * that they share A evenly come with a long row: a step of Qwen2.5-32B, k = 27648, took u3 and u1 6 % longer
 * so, u2 1 % less. */
static bool shares_a(const MatmulSpec *s, const MatmulConfig *c)
{
    enum { STEP = 32, LANES = 32, ELEMENTS_MAX = 128, VARYING_MAX = 64 };
    int64_t lanes = (int64_t)c->warps_n * c->warps_k * LANES;
    int group = s->group ? s->group : MATMUL_PACKED_K;
    bool adds = matmul_arranged_slices(s, c) > matmul_slices(s);
    int64_t most = adds && !have_constant_powers(s) ? VARYING_MAX : ELEMENTS_MAX;
    return group >= STEP && lanes / LANES_OF_SLICE % (group / STEP) == 0 &&
           matmul_arranged_slices(s, c) * MATMUL_PACKED_K / lanes <= most;
}

/* Returns the blocks that run at once on a multiprocessor where all have as many. */
static int blocks_at_once(const MatmulSpec *s, const MatmulConfig *c, const MatmulDevice *device)
{
    int64_t blocks = matmul_blocks(s, c, device->multiprocessors);
    int needed = (int)ceil_div_i64(blocks, device->multiprocessors);
    int resident = matmul_resident(s, c, device);
    return needed < resident ? needed : resident;
}

/* Has a block arrange A where as many blocks have room for it, beside a ring of `less` stages less. False:
 * they have not. */
static bool arrange_in_blocks(const MatmulSpec *s, MatmulConfig *c, const MatmulDevice *device, int less)
{
    enum { STAGES_LEAST = 2 };
    MatmulConfig in_blocks = *c;
    in_blocks.prearranged_a = MATMUL_ARRANGED_IN_BLOCKS;
    in_blocks.stages -= less;
    bool has_room = shares_a(s, c) && in_blocks.stages >= STAGES_LEAST &&
                    matmul_resident(s, &in_blocks, device) >= blocks_at_once(s, c, device);
    if (has_room)
        *c = in_blocks;
    return has_room;
}

/* Joins two blocks of a multiprocessor along n, so that A is there once, and halves stages of more than
 * one k-tile. False: there are not two, or one does not fit. */
static bool join_blocks(const MatmulSpec *s, MatmulConfig *c, const MatmulDevice *device)
{
    enum { BLOCKS = 2, WARPS_MAX = 8 };
    MatmulConfig joined = *c;
    joined.warps_n *= BLOCKS;
    joined.per_sm /= BLOCKS;
    if (joined.stage_k_tiles > 1) {
        joined.stage_k_tiles /= 2;
        joined.stages *= 2;
    }
    if (blocks_at_once(s, c, device) != BLOCKS || joined.warps_n * joined.warps_k > WARPS_MAX ||
        !matmul_config_fits(s, &joined, device))
        return false;
    *c = joined;
    return true;
}

void matmul_config_renew(MatmulConfig *c)
{
    if (c->prearranged_a == 0)
        c->prearranged_a = c->stages ? PREARRANGED_IN_RING : PREARRANGED;
}

/* With two and four columns a step of Llama-3.3-70B took 4 and 48 % longer in blocks, with one 4 % less. Of joined blocks,
 * which are for a large k, each arranges more: k = 28672 and n = 8192 in a chain took u3 12 % longer, i4 3 % less and u4 as
 * long; a step takes u3 4 % less without them, u2 5 % more. That was by f16; 1 bit joins since it is digits. */
void matmul_arrange_in_blocks(const MatmulSpec *s, MatmulConfig *c, const MatmulDevice *device)
{
    enum { STAGES_LESS = 2 };
    if (matmul_by_wgmma(c) || c->stages == 0 || c->columns > 1 || s->batch_invariant)
        return;
    bool may_join = have_constant_powers(s) && !s->experts;
    bool arranged = false;
    for (int less = 0; less <= STAGES_LESS && !arranged; less++) {
        MatmulConfig joined = *c;
        arranged = arrange_in_blocks(s, c, device, less);
        if (!arranged && may_join && join_blocks(s, &joined, device) &&
            (arranged = arrange_in_blocks(s, &joined, device, less)))
            *c = joined;
    }
}

/* ---- the space -------------------------------------------------------- */

int64_t matmul_bucket(int64_t m)
{
    int64_t bucket = 1;
    while (bucket < m)
        bucket *= 2;
    return bucket;
}

typedef struct Space {
    const MatmulSpec *spec;
    const MatmulDevice *device;
    void (*visit)(void *data, const MatmulConfig *config);
    void *data;
    int64_t bucket;
} Space;

/* Visits a configuration that fits; where sums of many columns would take more than an equal
 * share of registers, also with register reallocation. */
static void visit_reallocation(const Space *s, MatmulConfig c)
{
    enum { TILES = 4 };
    bool scarce = c.tiles >= TILES && registers_taken(s->spec, &c) > equal_share(&c);
    for (int reallocates = 0; reallocates <= scarce; reallocates++) {
        c.register_reallocation = reallocates;
        if (matmul_config_fits(s->spec, &c, s->device))
            s->visit(s->data, &c);
    }
}

/* Visits one block for each tile, and 1 to 4 on each multiprocessor; zero points of narrow
 * weights, which instructions bind, both by fma and by mma. */
static void visit_blocks(const Space *s, MatmulConfig c)
{
    enum { MOST = 4, NARROW = 2 };
    int zeros_most = dtype_bits(s->spec->stored) <= NARROW;
    for (c.per_sm = 0; c.per_sm <= MOST; c.per_sm++)
        for (c.zeros_by_mma = 0; c.zeros_by_mma <= zeros_most; c.zeros_by_mma++)
            if (c.zeros_by_mma == matmul_zeros_by_mma(s->spec, &c))
                visit_reallocation(s, c);
}

/* Visits rings, through which A comes, too, and no ring. */
static void visit_rings(const Space *s, MatmulConfig c)
{
    bool rings = has_bulk_copies(s->device->capability);
    for (const int *stages = all_stages; *stages >= 0 && (*stages == 0 || rings); stages++) {
        c.stages = *stages;
        c.prearranged_a = *stages ? PREARRANGED_IN_RING : PREARRANGED;
        visit_blocks(s, c);
    }
}

static void visit_warps(const Space *s, MatmulConfig c)
{
    enum { WARPS_LEAST = 2, WARPS_MOST = 8 };
    for (const int *warps_n = all_warps_n; *warps_n >= 0; warps_n++)
        for (const int *warps_k = all_warps_k; *warps_k >= 0; warps_k++)
            for (const int *k_tiles = all_stage_k_tiles; *k_tiles >= 0; k_tiles++) {
                c.warps_n = *warps_n;
                c.warps_k = *warps_k;
                c.stage_k_tiles = *k_tiles;
                int warps = *warps_n * *warps_k;
                if (warps >= WARPS_LEAST && warps <= WARPS_MOST && are_whole_tiles(s->spec, &c))
                    visit_rings(s, c);
            }
}

/* Visits one block a tile, and as many parts of it as let all tiles run at once. */
static void visit_parts(const Space *s, MatmulConfig c)
{
    int64_t tiles = ceil_div_i64(s->spec->n, tile_rows(&c)) * ceil_div_i64(s->bucket, 8 * c.tiles);
    for (c.warps_k = 1; c.warps_k <= PARTS_MOST && (c.warps_k == 1 || tiles <= matmul_clusters_at_once(c.warps_k, s->device));
         c.warps_k++)
        if (matmul_config_fits(s->spec, &c, s->device))
            s->visit(s->data, &c);
}

/* Visits products by wgmma, of the widest tiles that the rows of A fill, and of half as wide ones,
 * down to half of the widest with pairs of fragments. */
static void visit_wgmma(const Space *s, MatmulConfig c)
{
    enum { TILES_LEAST = 2, TILES_MOST = 2 * PAIRS_MOST };
    static const int stages[] = {3, 4, 6, -1}, a8_stages[] = {3, 4, 8, -1};
    int64_t most = s->bucket / 8 < TILES_MOST ? s->bucket / 8 : TILES_MOST;
    most = most < TILES_LEAST ? TILES_LEAST : most;
    int least = (int)(most < PAIRS_MOST ? most : PAIRS_MOST) / 2;
    c.stage_k_tiles = c.per_sm = c.register_reallocation = 1;
    c.prearranged_a = PREARRANGED_ROWS;
    c.columns = 8;
    c.zeros_by_mma = s->spec->zeros == TILUS_ZEROS_INTEGER;
    c.zeros_by_mma = matmul_zeros_by_mma(s->spec, &c);
    for (const int *count = matmul_is_a8(s->spec) ? a8_stages : stages; *count >= 0; count++)
        for (c.tiles = (int)most; c.tiles >= least; c.tiles /= 2) {
            c.stages = *count;
            for (int tile_n = PAIRS_N; tile_n >= SINGLES_N; tile_n /= 2) {
                c.warps_n = tile_n / c.rows;
                visit_parts(s, c);
            }
        }
}

static void visit_tiles(const Space *s, MatmulConfig c)
{
    enum { WGMMA_FROM = 32 };
    bool a8 = matmul_is_a8(s->spec);
    if (!a8 && (c.tiles == 1 || 8 * c.tiles <= s->bucket))
        visit_warps(s, c);
    if (c.tiles == 1 && (a8 || s->bucket >= WGMMA_FROM || s->spec->batch_invariant))
        visit_wgmma(s, c);
}

void matmul_enumerate(const MatmulSpec *spec, int rows, int64_t m, const MatmulDevice *device,
                      void (*visit)(void *data, const MatmulConfig *config), void *data)
{
    enum { SCALE_WEIGHTS_FROM = 32 };
    bool always = spec->batch_invariant || matmul_scales_weights_only(spec);
    int64_t scale_weights_from = always ? 1 : SCALE_WEIGHTS_FROM;
    const Space s = {spec, device, visit, data, matmul_bucket(m)};
    MatmulConfig c = {.columns = s.bucket < 8 && !matmul_is_a8(spec) ? (int)s.bucket : 8};
    for (const int *tiles = all_tiles; *tiles >= 0; tiles++)
        for (const int *packed = all_rows; *packed >= 0; packed++)
            for (int scales = 0; scales <= (s.bucket >= scale_weights_from); scales++) {
                c.scale_weights = scales;
                c.tiles = *tiles;
                c.rows = *packed;
                if (rows == 0 || rows == *packed)
                    visit_tiles(&s, c);
            }
}
