/* The sides of matrices of dot_async. */
#include "ir/product.h"

/* Leaves out a dimension of extent 1. */
static MatrixSide shorten(const Type *t, MatrixSide side)
{
    if (type_extent(t, side.last) == 1)
        side.last = side.first;
    if (type_extent(t, side.first) == 1)
        side.first = side.last;
    return side;
}

MatrixSide product_side(const Op *op, const Type *sums, unsigned i, bool k)
{
    const Type *t = op->operands[i]->type;
    bool is_first = (i == 1) == k;      /* k of b, or m of a */
    unsigned mn = i ? 2 : 0;            /* the dimension of m or n where k has two */
    bool k_is_split = t->rank == 3 && type_extent(t, mn) == type_extent(sums, i);
    unsigned of_first = t->rank == 3 && k_is_split == (i == 1) ? 2 : 1;
    return shorten(t, is_first ? (MatrixSide){0, of_first - 1}
                               : (MatrixSide){of_first, t->rank - 1});
}

int64_t side_extent(const Type *t, MatrixSide side)
{
    int64_t extent = type_extent(t, side.first);
    return side.last > side.first ? extent * type_extent(t, side.last) : extent;
}
