/* Tensor core instructions: the table (mma.def) and their fragments.
 *
 * A warp holds an operand of an instruction, a fragment, in pieces: 8 rows of 4 threads
 * for a and c, 4 threads in each of 8 columns for b. Of a piece of a or b, a thread has one
 * word, which covers as many neighboring elements along k as fit, the `run`; of a piece of
 * c it has two elements along n. The first factor puts the pieces into the order in which
 * the instruction takes them:
 *
 *     a[m, k]   column_local(m/8, k/4/run) . spatial(8, 4) . local(1, run)
 *     b[k, n]   local(k/4/run, n/8) . column_spatial(4, 8) . local(run, 1)
 *     c[m, n]   local(m/8, n/8) . spatial(8, 4) . local(1, 2)
 *
 * with run = 32 / width of an element: 1 for tf32, 2 for 16 bits, 4 for 8, 8 for 4
 * (PTX ISA, matrix fragments of mma.m16n8k8, k16, k32 and k64). */
#ifndef TILUS_SELECT_MMA_H
#define TILUS_SELECT_MMA_H

#include "ir/ir.h"

enum { MMA_A, MMA_B, MMA_C, MMA_OPERANDS };

typedef struct Mma {
    DType types[MMA_OPERANDS];
    int64_t m, n, k;
    unsigned from, to;      /* the targets that use it, by their numbers */
    unsigned parts;         /* words that a word of a or b is unpacked into */
} Mma;

enum {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    MMA_ROW_##a##_##b##_##c##_##k##_##from,
#include "select/mma.def"
    MMA_COUNT
};

extern const Mma mma_table[MMA_COUNT];

/* The instruction for operands of these types on target `sm` (90 for sm_90a) whose k divides
 * `depth`, the one with the greatest k; where none divides it, that with the least. NULL: the
 * types have none. */
const Mma *mma_find(const DType types[MMA_OPERANDS], unsigned sm, int64_t depth);

/* Returns true when words of a and b become `parts` words of f16. */
bool mma_is_converted(const Mma *mma);


/* The extents of an operand of one instruction. */
void mma_shape(const Mma *mma, unsigned operand, int64_t shape[2]);

/* The layout of a piece of that operand over a warp. */
const Layout *mma_piece(LayoutTable *t, const Mma *mma, unsigned operand);

/* The layout of that operand of one instruction over a warp: slots in the order of the
 * elements in the instruction's words. Its pieces follow each other column by column. */
const Layout *mma_fragment(LayoutTable *t, const Mma *mma, unsigned operand);

/* Returns the layout in rank `rank`, at least 2: extent 1 in the batch dimensions, which
 * come first. */
const Layout *mma_with_batch(LayoutTable *t, const Layout *l, unsigned rank);

#endif
