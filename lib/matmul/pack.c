/* Packing on the host, as @pack of the template does it on a device.
 *
 * A block has ROWS rows of 128 codes, shared out over 32 threads: thread 4 r + q has the codes
 * of rows r, r + 8, .. , of each eight along k two from 2 q on, so 32 of a row; with groups of 16
 * of each 32 along k eight from 8 q on, which are of one group. These become
 * whole words in storage order (types/storage.h). The words of all threads lie in vectors of
 * four:
 *
 *     k           0, 1     2, 3   4, 5   6, 7   8, 9 ..
 *     row 0       thread 0    1      2      3      0
 *     row 1            4      5      6      7      4
 *
 * Bits move alike in all blocks, so a table says for each byte of plain words which bits of
 * packed words it sets: a group takes an XOR for each byte. Floats that are packed as integers
 * become these when codes are gathered.
 *
 * For products of 8 bits, words are bit planes, as kernels/matmul/planes.tilus has them. */
#include "matmul/internal.h"
#include "support/parallel.h"
#include "types/storage.h"

#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS = 32,
    ROWS_MAX = 128,
    QUADS = 4,              /* threads that share rows */
    FRAGMENT = 16,          /* rows of bit planes that threads share */
    EACH = MATMUL_PACKED_K / QUADS,       /* codes of a row that a thread has */
    GROUP_WORDS_MAX = CAST_GROUP_BITS_MAX / 32,
    BYTE_VALUES = 256,
};

typedef struct Packer {
    const tilus_matmul_plan *plan;
    const tilus_matmul_weights *from;
    unsigned bits;
    CastStorage storage;
    uint32_t *table;        /* [bytes of a group][BYTE_VALUES][words of a group] */
    uint32_t zero[GROUP_WORDS_MAX];     /* the group of zeros: where signs are inverted */
    unsigned char stored[BYTE_VALUES];  /* what each code is packed as */
    unsigned char *to;          /* packed weights */
} Packer;

/* Codes of a packed block as bytes; each thread has its own. */
typedef struct Codes {
    unsigned char rows[ROWS_MAX][MATMUL_PACKED_K];
} Codes;

/* ---- storage order ------------------------------------------------------ */

static uint32_t *table_entry(const Packer *p, unsigned byte, unsigned value)
{
    return p->table + (size_t)(byte * BYTE_VALUES + value) * p->storage.words;
}

/* Fills in the packed bits that each bit of a group sets, then each byte: those of its lowest
 * bit, and of its other bits. */
static void fill_table(Packer *p)
{
    const CastStorage *s = &p->storage;
    uint32_t plain[GROUP_WORDS_MAX] = {0};
    cast_pack_group(s, plain, p->zero);
    for (unsigned byte = 0; byte < 4 * s->words; byte++)
        for (unsigned value = 1; value < BYTE_VALUES; value++) {
            uint32_t *entry = table_entry(p, byte, value);
            unsigned rest = value & (value - 1);
            const uint32_t *low = table_entry(p, byte, value ^ rest);
            if (rest == 0) {
                plain[byte / 4] = value << 8 * (byte % 4);
                cast_pack_group(s, plain, entry);
                plain[byte / 4] = 0;
            }
            for (unsigned w = 0; w < s->words; w++)
                entry[w] ^= rest ? low[w] ^ table_entry(p, byte, rest)[w] : p->zero[w];
        }
}

static tilus_status packer_open(Packer *p, const tilus_matmul_plan *plan,
                                const tilus_matmul_weights *from)
{
    *p = (Packer){.plan = plan, .from = from, .bits = dtype_bits(plan->spec.weights)};
    for (unsigned code = 0; code < 1u << p->bits; code++)
        p->stored[code] = (unsigned char)matmul_stored_code(&plan->spec, code);
    if (matmul_is_a8(&plan->spec))
        return TILUS_OK;
    cast_storage(plan->spec.stored, plan->spec.product, &p->storage);
    size_t words = p->storage.words;
    p->table = calloc(4 * words * BYTE_VALUES * words, sizeof *p->table);
    if (!p->table)
        return library_fail_memory();
    fill_table(p);
    return TILUS_OK;
}

static void pack_group(const Packer *p, const uint32_t *plain, uint32_t *packed)
{
    unsigned words = p->storage.words;
    memcpy(packed, p->zero, words * sizeof *packed);
    for (unsigned byte = 0; byte < 4 * words; byte++) {
        const uint32_t *entry = table_entry(p, byte, plain[byte / 4] >> 8 * (byte % 4) & 0xff);
        for (unsigned w = 0; w < words; w++)
            packed[w] ^= entry[w];
    }
}

/* ---- codes -------------------------------------------------------------- */

/* Unpacks `count` codes from number `first` on, as they are stored, to bytes `stride` apart. */
static void unpack_codes(const Packer *p, int64_t first, int64_t count, unsigned char *to,
                         size_t stride)
{
    unsigned bits = p->bits, mask = (1u << bits) - 1;
    const unsigned char *at = (const unsigned char *)p->from->codes + first * bits / 8;
    unsigned skip = (unsigned)(first * bits % 8), have = 8 - skip;
    uint32_t window = (uint32_t)*at++ >> skip;
    for (int64_t i = 0; i < count; i++, to += stride) {
        if (have < bits) {
            window |= (uint32_t)*at++ << have;
            have += 8;
        }
        *to = p->stored[window & mask];
        window >>= bits;
        have -= bits;
    }
}

static int64_t at_most(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Gathers the codes of a packed block as bytes [rows, 128]; codes beyond the edges are 0. */
static void gather_block(const Packer *p, int64_t tile, int64_t slice, Codes *codes)
{
    const MatmulSpec *s = &p->plan->spec;
    int64_t n = tile * p->plan->packed.rows, k = slice * MATMUL_PACKED_K;
    int64_t rows = at_most(s->n - n, p->plan->packed.rows);
    int64_t across = at_most(s->k - k, MATMUL_PACKED_K);
    if (rows < p->plan->packed.rows || across < MATMUL_PACKED_K)
        memset(codes, 0, sizeof *codes);
    if (rows < 1 || across < 1)
        return;
    for (int64_t r = 0; p->from->transposed && r < rows; r++)
        unpack_codes(p, matmul_row_of_b(s, n + r) * s->k + k, across, codes->rows[r], 1);
    int64_t run = s->gated ? MATMUL_GATED_ROWS : rows;      /* that are neighbors in B, too */
    for (int64_t i = 0; !p->from->transposed && i < across; i++)
        for (int64_t r = 0; r < rows; r += run)
            unpack_codes(p, (k + i) * s->n + matmul_row_of_b(s, n + r), run, &codes->rows[r][i],
                         MATMUL_PACKED_K);
}

/* Packs the codes of a row that thread `quad` of four has. */
static void pack_row(const Packer *p, const unsigned char *codes, int quad, uint32_t *packed)
{
    uint32_t plain[8];
    uint64_t window = 0;
    unsigned have = 0, word = 0;
    int each = matmul_reorders_k(&p->plan->spec) ? 8 : 2;       /* neighbors */
    for (int i = 0; i < EACH; i++) {
        window |= (uint64_t)codes[(i / each * QUADS + quad) * each + i % each] << have;
        have += p->bits;
        if (have >= 32) {
            plain[word++] = (uint32_t)window;
            window >>= 32;
            have -= 32;
        }
    }
    for (unsigned w = 0; w < p->bits; w += p->storage.words)
        pack_group(p, plain + w, packed + w);
}

/* Adds the bits from `from` on of four codes, word `i` of those that thread `thread` has of fragment
 * `fragment`, to a plane of `bits` bits. */
static void add_to_plane(const Packer *p, uint32_t codes, unsigned from, unsigned bits,
                         unsigned fragment, unsigned i, unsigned thread, unsigned char *block)
{
    const uint32_t ones = 0x01010101;
    unsigned before = 2 * (unsigned)p->plan->packed.rows / FRAGMENT * from;
    unsigned number = before + fragment * 2 * bits + i % (2 * bits);
    size_t place = 4 * ((number / 4 * THREADS + thread) * 4 + number % 4);
    uint32_t word, mask = ((1u << bits) - 1) * ones;
    memcpy(&word, block + place, 4);
    word |= (codes >> from & mask) << i / (2 * bits) * bits;
    memcpy(block + place, &word, 4);
}

/* Writes bit planes: a word has four neighbors along k. */
static void pack_block_planes(const Packer *p, const Codes *codes, unsigned char *block)
{
    enum { CHUNK = 16 };
    unsigned rows = (unsigned)p->plan->packed.rows;
    memset(block, 0, p->plan->packed.block_scales);
    for (unsigned row = 0; row < rows; row++)
        for (unsigned k = 0; k < MATMUL_PACKED_K; k += 4) {
            uint32_t word;
            unsigned i = row % FRAGMENT / 8 * 8 + k / CHUNK, from = 0;
            memcpy(&word, &codes->rows[row][k], 4);
            for (unsigned bits = 8; bits > 0; bits /= 2)
                if (p->bits & bits) {
                    add_to_plane(p, word, from, bits, row / FRAGMENT, i,
                                 row % 8 * QUADS + k % CHUNK / 4, block);
                    from += bits;
                }
        }
}

/* Writes the words of all threads in vectors of four. */
static void pack_block_codes(const Packer *p, const Codes *codes, unsigned char *block)
{
    for (int row = 0; row < p->plan->packed.rows; row++)
        for (int quad = 0; quad < QUADS; quad++) {
            uint32_t words[8];
            unsigned thread = (unsigned)(row % 8 * QUADS + quad);
            pack_row(p, codes->rows[row], quad, words);
            for (unsigned w = 0; w < p->bits; w++) {
                unsigned number = (unsigned)(row / 8) * p->bits + w;
                size_t place = (number / 4 * THREADS + thread) * 4 + number % 4;
                memcpy(block + 4 * place, &words[w], 4);
            }
        }
}

/* ---- scales and zero points --------------------------------------------- */

/* Returns the index in plain weights of the scale of a row and of group `group` of the template
 * (of at most 128 of k); -1: beyond the edges. */
static int64_t scale_number(const Packer *p, int64_t row, int64_t group)
{
    const MatmulSpec *s = &p->plan->spec;
    int64_t groups = packed_groups(s);
    group /= s->repeats;
    if (row >= s->n || group >= groups)
        return -1;
    row = matmul_row_of_b(s, row);
    return p->from->transposed ? row * groups + group : group * s->n + row;
}

/* Packs a tile's scales and zero points of group `group` of the template, as group `q` of those
 * at `scales` and `zeros`. */
static void pack_scales(const Packer *p, int64_t tile, int64_t group, int q,
                        unsigned char *scales, unsigned char *zeros)
{
    const MatmulSpec *s = &p->plan->spec;
    const unsigned char *from = p->from->scales, *zeros_from = p->from->zeros;
    int rows = p->plan->packed.rows;
    size_t scale_bytes = packed_scale_bytes(s), zero_bytes = packed_zero_bytes(s);
    for (int row = 0; row < rows; row++) {
        int64_t number = scale_number(p, tile * rows + row, group);
        size_t to = packed_scale_index(rows, q, row);
        unsigned char zero[2] = {0};
        memset(scales + scale_bytes * to, 0, scale_bytes);
        if (number >= 0)
            memcpy(scales + scale_bytes * to, from + scale_bytes * (size_t)number, scale_bytes);
        if (number >= 0 && zero_bytes)
            memcpy(zero, zeros_from + zero_bytes * (size_t)number, zero_bytes);
        zero[0] = (unsigned char)(zero[0] + packed_zero_nothing(s));
        memcpy(zeros + zero_bytes * to, zero, zero_bytes);
    }
}

/* ---- checks ------------------------------------------------------------- */

/* Returns the bits of a scale that are all set in infinities and NaNs alone. */
static unsigned not_finite_mask(DType scales)
{
    return scales == DTYPE_f16 ? 0x7c00 : scales == DTYPE_bf16 ? 0x7f80 : 0x7f;
}

static unsigned load_number(const unsigned char *from, size_t bytes)
{
    uint16_t number = *from;
    if (bytes == 2)
        memcpy(&number, from, sizeof number);
    return number;
}

/* Refuses a number of scales or zero points, by its place as the caller has it. */
static tilus_status refuse_number(const Packer *p, const char *what, size_t at, double value,
                                  const char *wanted)
{
    size_t across = (size_t)(p->from->transposed ? packed_groups(&p->plan->spec) : p->plan->spec.n);
    return library_refuse("weights: %s [%zu, %zu] is %g, not %s", what, at / across, at % across, value,
                          wanted);
}

/* Checks that numbers of the scales' type are finite. */
static tilus_status check_finite(const Packer *p, const char *what, const unsigned char *from,
                                 size_t count)
{
    const MatmulSpec *s = &p->plan->spec;
    size_t bytes = packed_scale_bytes(s);
    unsigned mask = not_finite_mask(s->scales);
    for (size_t i = 0; i < count; i++) {
        unsigned code = load_number(from + bytes * i, bytes);
        if ((code & mask) == mask)
            return refuse_number(p, what, i, dtype_decode(s->scales, code), "a finite number");
    }
    return TILUS_OK;
}

/* Checks that zero points in bytes are numbers of the weights' type. */
static tilus_status check_integers(const Packer *p, const unsigned char *from, size_t count)
{
    const MatmulSpec *s = &p->plan->spec;
    bool is_signed = s->offset > 0;
    int least = (int)dtype_min(s->weights), most = (int)dtype_max(s->weights);
    for (size_t i = 0; i < count; i++) {
        int zero = is_signed ? (signed char)from[i] : from[i];
        char wanted[48];
        if (zero >= least && zero <= most)
            continue;
        snprintf(wanted, sizeof wanted, "%d to %d of %s", least, most, dtype_name(s->weights));
        return refuse_number(p, "zero point", i, zero, wanted);
    }
    return TILUS_OK;
}

/* Checks scales, zero points and the factor: products of others would be wrong and nothing would
 * say so. */
static tilus_status check_numbers(const Packer *p)
{
    const MatmulSpec *s = &p->plan->spec;
    const tilus_matmul_weights *from = p->from;
    size_t count = (size_t)(s->n * packed_groups(s));
    tilus_status status = check_finite(p, "scale", from->scales, count);
    if (status == TILUS_OK && s->zeros == TILUS_ZEROS_INTEGER)
        status = check_integers(p, from->zeros, count);
    if (status == TILUS_OK && s->zeros == TILUS_ZEROS_FLOAT)
        status = check_finite(p, "zero point", from->zeros, count);
    if (status == TILUS_OK && from->factor && !isfinite(*from->factor))
        status = library_refuse("weights: factor is %g, not a finite number", (double)*from->factor);
    return status;
}

/* ---- all of it ---------------------------------------------------------- */

static void pack_block(const Packer *p, int64_t tile, int64_t slice, unsigned char *block)
{
    Codes codes;
    const Packed *packed = &p->plan->packed;
    int group = p->plan->spec.group, groups = group ? MATMUL_PACKED_K / group : 0;
    gather_block(p, tile, slice, &codes);
    if (matmul_is_a8(&p->plan->spec))
        pack_block_planes(p, &codes, block);
    else
        pack_block_codes(p, &codes, block);
    for (int q = 0; q < groups; q++)
        pack_scales(p, tile, slice * groups + q, q, block + packed->block_scales,
                    block + packed->block_zeros);
}

/* Packs scales of all of k, one tile after the other. */
static void pack_tables(const Packer *p, unsigned char *to)
{
    const Packed *packed = &p->plan->packed;
    const MatmulSpec *s = &p->plan->spec;
    size_t rows = (size_t)packed->rows, scale = packed_scale_bytes(s), zero = packed_zero_bytes(s);
    for (int64_t tile = 0; tile < packed->tiles; tile++)
        pack_scales(p, tile, 0, 0, to + packed->scales + scale * rows * (size_t)tile,
                    to + packed->zeros + zero * rows * (size_t)tile);
}

static void pack_tile(void *packer, size_t tile)
{
    const Packer *p = packer;
    const Packed *packed = &p->plan->packed;
    for (int64_t slice = 0; slice < packed->slices; slice++)
        pack_block(p, (int64_t)tile, slice,
                   p->to + (tile * (size_t)packed->slices + (size_t)slice) * packed->block);
}

static void pack_all(Packer *p, unsigned threads)
{
    const Packed *packed = &p->plan->packed;
    size_t blocks = (size_t)(packed->tiles * packed->slices) * packed->block;
    memset(p->to + blocks, 0, packed->size - blocks);
    parallel_for(threads, (size_t)packed->tiles, pack_tile, p);
    if (p->plan->spec.group == 0)
        pack_tables(p, p->to);
    if (packed->factor)
        memcpy(p->to + packed->factor, p->from->factor, sizeof *p->from->factor);
    packed_put_identity(p->plan, p->to);
}

tilus_status pack_empty_block(const tilus_matmul_plan *plan, unsigned char *block)
{
    static const tilus_matmul_weights nothing;
    Packer *p = malloc(sizeof *p);
    if (!p)
        return library_fail_memory();
    tilus_status status = packer_open(p, plan, &nothing);
    if (status == TILUS_OK)
        pack_block(p, 0, plan->packed.slices + plan->spec.repeats, block);     /* beyond all groups */
    free(p->table);
    free(p);
    return status;
}

tilus_status tilus_matmul_pack(const tilus_matmul_plan *plan,
                               const tilus_matmul_weights *weights, void *packed)
{
    tilus_matmul_weights own;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = packed ? weights_take(plan, weights, &own)
                                 : library_refuse("packed is NULL");
    if (status != TILUS_OK)
        return status;
    Packer *p = malloc(sizeof *p);
    if (!p)
        return library_fail_memory();
    status = packer_open(p, plan, &own);
    p->to = packed;
    if (status == TILUS_OK)
        status = check_numbers(p);
    if (status == TILUS_OK)
        pack_all(p, own.threads < UINT_MAX ? (unsigned)own.threads : UINT_MAX);
    free(p->table);
    free(p);
    return status;
}
