/* Plans of dot_async: instructions wgmma.mma_async of warpgroups (PTX ISA, 9.7.15).
 *
 *     %p = dot_async %a, %b, %c {via = wgmma.m64n256k16}
 *
 * Sums are fragments of 64 rows. A tile of them is 64 x 8; warp w of a warpgroup has rows
 * 16 w .. 16 w + 15, so
 *
 *     sums[m, n]   tiles of [m/64, n/8] over warpgroups . spatial(4, 1).local(2, 1)
 *                                                       .spatial(8, 4).local(1, 2)
 *     a[m, k]      steps of [m/64, k/K] over warpgroups . spatial(4, 1).column_local(2, 2)
 *                                                       .spatial(8, 4).local(1, run)
 *
 * with K * width of an element = 256 bits and run elements in 32. An instruction has the
 * tiles of as many neighboring columns as n of all warpgroups' shares allows. The four words
 * of a step, pieces spatial(8, 4).local(1, run), may lie in any slots, the same in each warp.
 *
 * Matrices in shared memory have rows of 32, 64 or 128 bytes and the swizzle of that width:
 * along k (K-major) or, of 16-bit elements, along m or n (MN-major). A side that is longer than
 * a row lies in blocks of rows (ir/product.h), one after another. */
#ifndef TILUS_SELECT_WGMMA_H
#define TILUS_SELECT_WGMMA_H

#include "ir/op_attrs.h"
#include "select/mma.h"

typedef struct Wgmma {
    DType types[MMA_OPERANDS];
    int64_t k;                  /* of one instruction */
    bool integers;              /* n as of integers: 8, 16, 24, 32, 48, .. */
    bool scales, major;         /* factors; matrices along m or n */
    unsigned ptx;               /* the least PTX version */
    const char *text;           /* "f32.f16.f16" */
} Wgmma;

enum {
#define WGMMA(a, b, c, k, counts, scales, major, ptx, text) WGMMA_ROW_##a##_##b##_##c,
#include "select/wgmma.def"
    WGMMA_COUNT
};

extern const Wgmma wgmma_table[WGMMA_COUNT];

enum { WGMMA_M = 64, WGMMA_N = 8, WGMMA_N_MOST = 256, WGMMA_SM = 90, WGMMA_A_PIECES = 4 };

/* The row of these types, or NULL. */
const Wgmma *wgmma_find(const DType types[MMA_OPERANDS]);
/* Returns true when an instruction of the row has this n. */
bool wgmma_has_n(const Wgmma *row, int64_t n);

/* The layouts of a tile of sums, and of a step of a, over a warpgroup; of a piece of a, over a
 * warp. */
const Layout *wgmma_tile(LayoutTable *t);
const Layout *wgmma_step(LayoutTable *t, const Wgmma *row);
const Layout *wgmma_piece(LayoutTable *t, const Wgmma *row);

/* A matrix in shared memory, as a descriptor has it. */
typedef struct WgmmaMatrix {
    bool mn_major;              /* rows along m or n: transposed */
    unsigned mode;              /* bits 62 .. 63: 1, 2, 3 for swizzles of 128, 64, 32 bytes */
    int64_t leading, stride;    /* byte offsets of the descriptor */
    int64_t k_bytes;            /* from one step of k to the next, in a block */
    int64_t block_steps, block_bytes;   /* K-major: steps of a block; to the next block */
    int64_t mn_bytes;           /* from one element along m or n to the next; where these lie
                                   in blocks, of whole blocks */
} WgmmaMatrix;

/* Bytes from a matrix's begin to element `mn` along m or n, and step `k`. */
static inline int64_t wgmma_offset(const WgmmaMatrix *m, int64_t mn, int64_t k)
{
    return mn * m->mn_bytes + k / m->block_steps * m->block_bytes + k % m->block_steps * m->k_bytes;
}

/* The descriptor of a matrix without its address, and the address's part of one. */
static inline uint64_t wgmma_descriptor(const WgmmaMatrix *m)
{
    return (uint64_t)m->mode << 62 | (uint64_t)(m->stride >> 4) << 32 |
           (uint64_t)(m->leading >> 4) << 16;
}
enum { WGMMA_ADDRESS_BITS = 18, WGMMA_ADDRESS_SHIFT = 4 };

/* An instruction of each warpgroup, relative to the warpgroup's first tile. */
typedef struct WgmmaUnit {
    int64_t row, column;        /* of the sums: element (row, column) is the first */
    int64_t *slots;             /* of its n / 8 tiles, in the sums' layout over tiles */
    int64_t *a_slots;           /* of each step of k, WGMMA_A_PIECES in a's layout over pieces;
                                   or NULL */
} WgmmaUnit;

typedef struct WgmmaPlan {
    const Wgmma *row;
    Via via;
    int64_t n, steps;           /* of one instruction; of k */
    WgmmaMatrix matrices[2];    /* of a and b, where they are in shared memory */
    bool in_registers;          /* a is */
    const Layout *tiles;        /* of the sums, a thread for each warpgroup */
    const Layout *a_pieces;     /* of a in registers, a thread for each warp */
    int64_t unit_count;
    WgmmaUnit *units;
    bool fence;                 /* wgmma.fence: registers were written by other instructions */
    bool async_fence;           /* fence.proxy.async: threads write the shared operands */
} WgmmaPlan;

/* The plan for target `sm`, 0: any that has wgmma, on the module's scratch arena. False after
 * an error. */
bool wgmma_plan(Module *m, const Op *op, unsigned sm, WgmmaPlan *plan);

/* The product of the op's open group whose fence, which ties a's registers of both, serves `op`,
 * too; or `op`. */
const Op *wgmma_fence_op(const Op *op);
/* The next product of the group, after `last`, with a in registers that the fence of `op` serves;
 * NULL: none. */
const Op *wgmma_fence_user(const Op *op, const Op *last);

/* Chooses the layouts of the sums and of a in registers, of which `sums` and `a` may be
 * known (NULL: open). False: none fit. */
bool fit_wgmma(Module *m, const Op *op, const Layout **sums, const Layout **a);

#endif
