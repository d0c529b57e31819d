/* The table of tensor core instructions, and their fragments. */
#include "analysis/mma.h"

#include <string.h>

const Mma mma_table[MMA_COUNT] = {
#define MMA(a, b, c, m, n, k, from, to, parts, intrinsic)                     \
    {{DTYPE_##a, DTYPE_##b, DTYPE_##c}, m, n, k, from, to, parts},
#include "analysis/mma.def"
};

const Mma *mma_find(const DType types[MMA_OPERANDS], unsigned sm)
{
    for (const Mma *mma = mma_table; mma < mma_table + MMA_COUNT; mma++)
        if (mma->from <= sm && sm <= mma->to && !memcmp(mma->types, types, sizeof mma->types))
            return mma;
    return NULL;
}

void mma_shape(const Mma *mma, unsigned operand, int64_t shape[2])
{
    shape[0] = operand == MMA_B ? mma->k : mma->m;
    shape[1] = operand == MMA_A ? mma->k : mma->n;
}

/* The parts are small constants: the makers do not fail. */
const Layout *mma_fragment(LayoutTable *t, const Mma *mma, unsigned operand)
{
    static const int64_t by_8_4[] = {8, 4}, by_4_8[] = {4, 8};
    bool upright = operand == MMA_B;        /* words lie along the first dimension */
    int64_t run = operand == MMA_C ? 2 : 32 / (int64_t)dtype_bits(mma->types[operand]);
    int64_t inner[2] = {upright ? run : 1, upright ? 1 : run}, outer[2];
    mma_shape(mma, operand, outer);
    for (unsigned d = 0; d < 2; d++)
        outer[d] /= inner[d] * (upright ? by_4_8 : by_8_4)[d];
    const char *why;
    const Layout *words = operand == MMA_A ? layout_column_local(t, 2, outer, &why)
                                           : layout_local(t, 2, outer, &why);
    const Layout *threads = upright ? layout_column_spatial(t, 2, by_4_8, &why)
                                    : layout_spatial(t, 2, by_8_4, &why);
    const Layout *elements = layout_local(t, 2, inner, &why);
    return layout_product(t, layout_product(t, words, threads, &why), elements, &why);
}

const Layout *mma_fragment_of_rank(LayoutTable *t, const Mma *mma, unsigned operand,
                                   unsigned rank)
{
    const Layout *fragment = mma_fragment(t, mma, operand);
    int64_t shape[LIMIT_RANK];
    for (unsigned d = 0; d < rank; d++)
        shape[d] = d + 2 < rank ? 1 : fragment->shape[d + 2 - rank];
    const char *why;
    return layout_reshape(t, fragment, rank, shape, &why);
}
