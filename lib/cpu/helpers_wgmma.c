/* wgmma (PTX ISA, 9.7.15), a warp at a time: its 16 rows of the sums.
 *
 * Matrices in shared memory are read through their descriptors, address by address, and the
 * swizzle is of address bits, as hardware does it: a wrong descriptor gives wrong numbers.
 * Fragments are computed here by the formulas of the PTX ISA, not by layouts.
 *
 * A product is computed when it is issued. With --check-races its bytes are in flight until
 * the wait of its group. Floats are summed as in helpers_mma.c. */
#define _GNU_SOURCE
#include "codegen/product.h"
#include "cpu/machine.h"
#include "cpu/shadow.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { M = 16, K_MOST = 32, CHUNK = 16, GROUP_LANES = 4 };

/* Operands that the last lane of a warp multiplies; a host thread runs one product at a time. */
typedef struct Operands {
    double a[M][K_MOST], b[K_MOST][WGMMA_N_MOST];
} Operands;

static _Thread_local Operands operands;

/* ---- numbers ---------------------------------------------------------------------- */

static double value_of(DType t, uint64_t code)
{
    uint64_t sign = dtype_info[t].kind == DKIND_INT ? UINT64_C(1) << (dtype_bits(t) - 1) : 0;
    return dtype_is_float(t) ? dtype_decode(t, code) : (double)(int64_t)((code ^ sign) - sign);
}

/* c + product, in the type of the sums. */
static uint64_t sum_of(DType t, double product, uint64_t c, bool has_sums)
{
    if (!dtype_is_float(t))
        return (uint32_t)((uint32_t)(int64_t)product + (has_sums ? (uint32_t)c : 0));
    return dtype_encode(t, has_sums ? product + dtype_decode(t, c) : product);
}

/* ---- descriptors --------------------------------------------------------------------- */

/* The memory at the 18-bit shared address `address`. */
static const unsigned char *shared_at(uint64_t address, size_t size)
{
    const Guarded *shared = &cpu_worker->shared;
    uint64_t mask = (UINT64_C(1) << WGMMA_ADDRESS_BITS) - 1;
    uint64_t offset = (address - (uintptr_t)shared->data) & mask;
    if (offset + size > shared->size)
        fault_now("a matrix descriptor leads to byte %llu of shared memory, of which there are "
                  "%zu", (unsigned long long)offset, shared->size);
    return shared->data + offset;
}

/* Returns where element (mn, k) lies by descriptor `d`: the address with its bits swizzled. */
static const unsigned char *element_at(uint64_t d, bool mn_major, int64_t mn, int64_t k,
                                       unsigned bytes)
{
    uint64_t start = (d & 0x3fff) << 4, leading = (d >> 16 & 0x3fff) << 4;
    uint64_t stride = (d >> 32 & 0x3fff) << 4;
    unsigned mode = (unsigned)(d >> 62), bits = 4 - mode;
    uint64_t along = (uint64_t)(mn_major ? mn : k) * bytes, row = (uint64_t)(mn_major ? k : mn);
    uint64_t row_bytes = UINT64_C(16) << bits;
    if (!mode || d >> 49 & 7)
        fault_now("a matrix descriptor without a swizzle, or with a base offset");
    uint64_t address = start + row % 8 * row_bytes + row / 8 * stride + along % row_bytes +
                       along / row_bytes * leading;
    address ^= (address >> 7 & ((UINT64_C(1) << bits) - 1)) << 4;
    return shared_at(address, bytes);
}

/* ---- reads in flight -------------------------------------------------------------------- */

static ProductReads *reads_of(const Thread *lanes)
{
    return &cpu_worker->products[lanes->number / LANES];
}

static void add_read(const Thread *lanes, const unsigned char *at)
{
    enum { FIRST = 1024 };
    ProductReads *r = reads_of(lanes);
    if (r->count == r->capacity) {
        size_t capacity = r->capacity ? 2 * r->capacity : FIRST;
        ProductRead *items = realloc(r->items, capacity * sizeof *items);
        if (!items)
            fault_memory();
        r->items = items;
        r->capacity = capacity;
    }
    ProductRead *read = &r->items[r->count++];
    *read = (ProductRead){.at = at, .bytes = CHUNK, .place = lanes->place, .group = r->committed};
    shadow_product_begins(lanes, read);
}

/* Element (mn, k) of the matrix of descriptor `d`; its chunk of 16 bytes counts once. */
static double read_element(const Thread *lanes, uint64_t d, bool mn_major, int64_t mn, int64_t k,
                           DType t)
{
    unsigned bytes = dtype_bits(t) / 8;
    const unsigned char *at = element_at(d, mn_major, mn, k, bytes);
    uint64_t code = 0;
    if (cpu_worker->shadow && (uintptr_t)at % CHUNK == 0)
        add_read(lanes, at);
    memcpy(&code, at, bytes);
    return value_of(t, code);
}

/* ---- operands ------------------------------------------------------------------------------ */

/* Fragments of a: word r of lane 4 g + t has row g + 8 (r mod 2) and, from column
 * (r / 2) * 4 run + run t on, `run` elements. */
static void gather_a(const Thread *lanes, const ProductForm *f, unsigned first)
{
    DType t = f->row->types[MMA_A];
    unsigned bits = dtype_bits(t), run = 32 / bits;
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned r = 0; r < PRODUCT_A_WORDS; r++)
            for (unsigned e = 0; e < run; e++) {
                unsigned row = lane / GROUP_LANES + 8 * (r % 2);
                unsigned column = r / 2 * 4 * run + lane % GROUP_LANES * run + e;
                uint64_t word = (uint32_t)lanes[lane].args[first + r];
                operands.a[row][column] =
                    value_of(t, word >> (e * bits) & (UINT64_MAX >> (64 - bits)));
            }
}

static void read_a(const Thread *lanes, const ProductForm *f, uint64_t d)
{
    int64_t warp = lanes->number / LANES % (WARPGROUP / LANES);
    for (int64_t m = 0; m < M; m++)
        for (int64_t k = 0; k < f->row->k; k++)
            operands.a[m][k] = read_element(lanes, d, f->mn_major[0], M * warp + m, k,
                                            f->row->types[MMA_A]);
}

static void read_b(const Thread *lanes, const ProductForm *f, uint64_t d)
{
    for (int64_t n = 0; n < f->n; n++)
        for (int64_t k = 0; k < f->row->k; k++)
            operands.b[k][n] = read_element(lanes, d, f->mn_major[1], n, k,
                                            f->row->types[MMA_B]);
}

/* ---- sums ------------------------------------------------------------------------- */

static double product_at(const ProductForm *f, unsigned row, unsigned column)
{
    double sum = dtype_is_float(f->row->types[MMA_C]) ? -0.0 : 0.0;
    for (int64_t k = 0; k < f->row->k; k++)
        sum += operands.a[row][k] * operands.b[k][column];
    return f->negate ? -sum : sum;
}

/* Computes word `w` of a lane's sums: of f32 and i32, words 4 j .. 4 j + 3 are (g, 8 j + 2 t),
 * the next column, and both of row g + 8; of f16, word 2 j is the first pair. */
static void compute_word(Thread *lane, const ProductForm *f, unsigned w)
{
    DType t = f->row->types[MMA_C];
    unsigned bits = dtype_bits(t), per = 32 / bits, words = 4 / per, number = lane->number % LANES;
    unsigned tile = w / words, in_tile = w % words * per;       /* elements 0 .. 3 of a tile */
    uint64_t c = f->has_sums ? lane->args[1 + w] : 0, word = 0;
    for (unsigned e = in_tile; e < in_tile + per; e++) {
        unsigned row = number / GROUP_LANES + 8 * (e / 2);
        unsigned column = 8 * tile + number % GROUP_LANES * 2 + e % 2, at = (e - in_tile) * bits;
        uint64_t code = c >> at & (UINT64_MAX >> (64 - bits));
        word |= sum_of(t, product_at(f, row, column), code, f->has_sums) << at;
    }
    lane->results[w] = word;
}

static void multiply(Thread *lanes, IntrinsicId id)
{
    ProductForm f = product_unpack((uint32_t)lanes->args[0]);
    unsigned first = 1 + (f.has_sums ? f.words : 0);
    (void)id;
    for (unsigned lane = 1; lane < LANES; lane++)
        if (lanes[lane].args[0] != lanes->args[0])
            fault_now("lanes of a warp come to different wgmmas");
    if (f.in_registers)
        gather_a(lanes, &f, first);
    else
        read_a(lanes, &f, lanes->args[first]);
    read_b(lanes, &f, lanes->args[first + (f.in_registers ? PRODUCT_A_WORDS : 1)]);
    for (unsigned lane = 0; lane < LANES; lane++)
        for (unsigned w = 0; w < f.words; w++)
            compute_word(&lanes[lane], &f, w);
}

/* ---- groups ----------------------------------------------------------------------- */

/* The last lane of a warp to come commits for all. */
static void commit(Thread *lanes, IntrinsicId id)
{
    (void)id;
    reads_of(lanes)->committed++;
}

WARP_HELPER(wgmma_commit, commit)

void cpu_wgmma_fence(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
}

/* Waits for nothing: the program's own waits say when reads end, and what a race is. */
void cpu_wgmma_drain(const uint64_t *args, uint64_t *results)
{
    (void)args;
    (void)results;
}

/* Ends the reads of all groups but the newest. */
static void wait_for_groups(Thread *lanes, IntrinsicId id)
{
    ProductForm f = product_unpack((uint32_t)lanes->args[0]);
    ProductReads *r = reads_of(lanes);
    size_t kept = 0;
    (void)id;
    for (size_t i = 0; i < r->count; i++)
        if (r->items[i].group + f.pending < r->committed)
            shadow_product_ends(lanes, &r->items[i]);
        else
            r->items[kept++] = r->items[i];
    r->count = kept;
}

void cpu_product(const uint64_t *args, uint64_t *results, unsigned words)
{
    ProductForm f = product_unpack((uint32_t)args[0]);
    if (f.kind == PRODUCT_MULTIPLY) {
        wait_warp(INTR_wgmma_fence, args, results, multiply);
        return;
    }
    if (f.kind == PRODUCT_WAIT)
        wait_warp(INTR_wgmma_commit, args, results, wait_for_groups);
    memcpy(results, args + 1, words * sizeof *results);
}
