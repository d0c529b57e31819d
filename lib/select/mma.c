/* The table of tensor core instructions, and their fragments. */
#include "select/mma.h"

#include <string.h>

const Mma mma_table[MMA_COUNT] = {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    {{DTYPE_##a, DTYPE_##b, DTYPE_##c}, m, n, k, from, to, parts},
#include "select/mma.def"
};

/* Rows of the same types stand with the greatest k first. */
const Mma *mma_find(const DType types[MMA_OPERANDS], unsigned sm, int64_t depth)
{
    const Mma *found = NULL;
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        if (mma->from <= sm && sm <= mma->to &&
            !memcmp(mma->types, types, sizeof mma->types) &&
            (!found || (depth % found->k && mma->k < found->k)))
            found = mma;
    return found;
}

bool mma_is_converted(const Mma *mma)
{
    return mma->parts > 1 && dtype_is_float(mma->types[MMA_A]);
}

void mma_shape(const Mma *mma, unsigned operand, int64_t shape[2])
{
    shape[0] = operand == MMA_B ? mma->k : mma->m;
    shape[1] = operand == MMA_A ? mma->k : mma->n;
}

/* The parts of all of these are small constants: the makers do not fail. */

const Layout *mma_piece(LayoutTable *t, const Mma *mma, unsigned operand)
{
    static const int64_t by_8_4[] = {8, 4}, by_4_8[] = {4, 8};
    bool upright = operand == MMA_B;        /* words lie along the first dimension */
    int64_t run = operand == MMA_C ? 2 : 32 / (int64_t)dtype_bits(mma->types[operand]);
    const int64_t elements[2] = {upright ? run : 1, upright ? 1 : run};
    const char *why;
    const Layout *threads = upright ? layout_column_spatial(t, 2, by_4_8, &why)
                                    : layout_spatial(t, 2, by_8_4, &why);
    return layout_product(t, threads, layout_local(t, 2, elements, &why), &why);
}

const Layout *mma_fragment(LayoutTable *t, const Mma *mma, unsigned operand)
{
    const Layout *piece = mma_piece(t, mma, operand);
    int64_t pieces[2];
    mma_shape(mma, operand, pieces);
    for (unsigned d = 0; d < 2; d++)
        pieces[d] /= piece->shape[d];
    const char *why;
    const Layout *words = operand == MMA_A ? layout_column_local(t, 2, pieces, &why)
                                           : layout_local(t, 2, pieces, &why);
    return layout_product(t, words, piece, &why);
}

const Layout *mma_with_batch(LayoutTable *t, const Layout *l, unsigned rank)
{
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = d + 2 < rank ? 1 : l->shape[d + 2 - rank];
    const char *why;
    return layout_reshape(t, l, rank, shape, &why);
}
