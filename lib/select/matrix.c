/* Fit of a shared access to ldmatrix and stmatrix. */
#include "select/matrix.h"

#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "select/access.h"

enum { LANES_A_ROW = 4, WORD_BITS = 32 };

/* The layout of one matrix over tile dimensions `across` (a lane's elements
 * follow each other there) and `along` (lanes 4 apart), of a rank. */
static const Layout *make_atom(Module *m, unsigned rank, unsigned across, unsigned along,
                               int64_t run)
{
    int64_t lanes[LIMIT_RANK], slots[LIMIT_RANK];
    const char *why;
    for (unsigned d = 0; d < rank; d++)
        lanes[d] = slots[d] = 1;
    lanes[along] = MATRIX_ROWS;
    lanes[across] = LANES_A_ROW;
    slots[across] = run;
    const Layout *outer = along < across
                              ? layout_spatial(&m->layouts, rank, lanes, &why)
                              : layout_column_spatial(&m->layouts, rank, lanes, &why);
    const Layout *inner = layout_local(&m->layouts, rank, slots, &why);
    return layout_product(&m->layouts, outer, inner, &why);
}

/* Finds the two dimensions over which the tile's layout ends in the atom. */
static bool find_atom(Module *m, const Op *op, MatrixPlan *plan, unsigned *across,
                      unsigned *along)
{
    const Type *tile = op_tile_type(op);
    int64_t run = WORD_BITS / dtype_bits(tile->dtype);
    const char *why;
    for (*across = tile->rank; (*across)-- > 0;)
        for (*along = 0; *along < tile->rank; ++*along) {
            if (*across == *along || (run > 1 && layout_run(tile->layout, *across) == 1))
                continue;
            const Layout *atom = make_atom(m, tile->rank, *across, *along, run);
            plan->outer = layout_divide(&m->layouts, tile->layout, atom, &why);
            if (plan->outer) {
                for (unsigned d = 0; d < tile->rank; d++)
                    plan->extents[d] = atom->shape[d];
                return true;
            }
        }
    return false;
}

static bool has_stride_one(Module *m, const Op *op, unsigned dim)
{
    const Expr *stride = type_stride(m, op_memory_operand(op)->type, op_tile_dim(op, dim));
    return expr_is_constant(stride) && stride->constant == 1;
}

/* Why a row of a matrix is not 16 bytes in a row, aligned; NULL when it is. */
static const char *row_reason(Module *m, const Op *op, const MatrixPlan *plan)
{
    int64_t steps[LIMIT_RANK];
    for (unsigned d = 0; d < op_memory_operand(op)->type->rank; d++)
        steps[d] = access_step(op, d);
    steps[op_tile_dim(op, plan->row)] = 1;
    steps[op_tile_dim(op, plan->column)] = plan->extents[plan->column];
    return access_misalignment(m, op, steps, MATRIX_ROW_BYTES);
}

/* ---- matrices an instruction ---------------------------------------------- */

/* The tile's index of matrix `i` of warp 0. */
static void matrix_index(const MatrixPlan *plan, int64_t i, int64_t *index)
{
    layout_index(plan->outer, 0, i, index);
    for (unsigned d = 0; d < plan->outer->rank; d++)
        index[d] *= plan->extents[d];
}

void matrix_steps(const MatrixPlan *plan, int64_t *low, int64_t *high)
{
    unsigned n = via_info[plan->via].matrices;
    for (unsigned d = 0; d < plan->outer->rank; d++)
        low[d] = high[d] = 0;
    if (n > 1)
        matrix_index(plan, 1, low);
    if (n > 2)
        matrix_index(plan, 2, high);
}

/* Returns true when matrices i .. i + n - 1 lie to each other as the first n do. */
static bool group_fits(const MatrixPlan *plan, int64_t i, unsigned n)
{
    int64_t first[LIMIT_RANK], other[LIMIT_RANK], low[LIMIT_RANK], high[LIMIT_RANK];
    matrix_index(plan, i, first);
    matrix_steps(plan, low, high);
    for (unsigned j = 1; j < n; j++) {
        matrix_index(plan, i + j, other);
        for (unsigned d = 0; d < plan->outer->rank; d++)
            if (other[d] != first[d] + (j & 1) * low[d] + (j >> 1) * high[d])
                return false;
    }
    return true;
}

static bool groups_fit(const MatrixPlan *plan)
{
    unsigned n = via_info[plan->via].matrices;
    if (plan->outer->slots % n)
        return false;
    for (int64_t i = 0; i < plan->outer->slots; i += n)
        if (!group_fits(plan, i, n))
            return false;
    return true;
}

/* Rows of via.def from x4 down to x1: groups of one always fit. */
static void choose_via(const Op *op, bool transposed, MatrixPlan *plan)
{
    static const Via last[2][2] = {{VIA_ldmatrix_x4, VIA_ldmatrix_x4_trans},
                                   {VIA_stmatrix_x4, VIA_stmatrix_x4_trans}};
    plan->via = last[op->result_count == 0][transposed];
    while (!groups_fit(plan))
        plan->via--;
}

bool matrix_plan(Module *m, const Op *op, MatrixPlan *plan, const char **why)
{
    if (op_attr(op, ATTR_RANK)) {
        *why = "it moves tiles of the block's own shared memory only";
        return false;
    }
    const Type *tile = op_tile_type(op);
    unsigned bits = dtype_bits(tile->dtype), across, along;
    if (WORD_BITS % bits || tile->rank < 2 || !find_atom(m, op, plan, &across, &along)) {
        *why = arena_printf(&m->arena, "the layout does not end in spatial(8, 4).local(1, %u), "
                            "the matrix of 16-byte rows", WORD_BITS % bits ? 1 : WORD_BITS / bits);
        return false;
    }
    bool transposed = !has_stride_one(m, op, across);
    plan->column = transposed ? along : across;
    plan->row = transposed ? across : along;
    *why = NULL;
    if (!has_stride_one(m, op, plan->column))
        *why = "neither dimension of the matrix has stride 1";
    else if (transposed && bits != 16)
        *why = arena_printf(&m->arena, "it would be transposed, which moves 16-bit elements, "
                            "these have %u bits", bits);
    else
        *why = row_reason(m, op, plan);
    if (!*why)
        choose_via(op, transposed, plan);
    return !*why;
}
