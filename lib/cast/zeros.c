/* Zero points in the constant that a family adds to its codes. */
#include "cast/internal.h"

#include <math.h>

bool zeros_fit(const Planner *p, DType to, double most)
{
    if (!p->zeros)
        return true;
    double exact = ldexp(2, (int)dtype_info[to].mantissa);  /* every integer up to it is */
    double low = dtype_min(p->zeros->type), high = dtype_max(p->zeros->type);
    return -low <= exact && most + high <= exact;
}

CastZeros cast_zeros_of(DType type, const Layout *groups, const Layout *codes, int64_t first,
                        unsigned elements)
{
    CastZeros zeros = {.type = type};
    int64_t slots[CAST_ELEMENTS_MAX];
    for (unsigned e = 0; e < elements; e++) {
        slots[e] = layout_broadcast_slot(groups, codes, first + e);
        while (slots[zeros.of[e]] != slots[e])
            zeros.of[e]++;
    }
    return zeros;
}

/* Returns true when the elements of two result words share their zero points, lane by
 * lane, as far as `word` has elements. */
static bool has_zeros_of(const Planner *p, DType to, unsigned word, unsigned other)
{
    unsigned lanes = lanes_of(to);
    for (unsigned i = 0; i < lanes && word * lanes + i < p->query->elements; i++)
        if (p->zeros->of[word * lanes + i] != p->zeros->of[other * lanes + i])
            return false;
    return true;
}

unsigned node_offset(Planner *p, DType to, unsigned word, uint32_t constant)
{
    unsigned offset = node_constant(p, constant), first = 0;
    if (!p->zeros)
        return offset;
    while (!has_zeros_of(p, to, word, first))
        first++;
    unsigned zeros = node_of(p, (CastOp){.code = CAST_input, .imm = p->in_words + first});
    return node_op(p, arithmetic_op(to, ARITH_SUB), offset, zeros, 0);
}
