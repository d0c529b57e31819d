/* Tiles moved by ldmatrix and stmatrix: whole warps move 1, 2 or 4 matrices of
 * 8 rows of 16 bytes. Lane 8 * m + r gives the address of row r of matrix m;
 * the word that each lane gets or gives is the one that the layout puts there.
 * Where lanes may touch rows that other lanes access just then, the plan has barriers of
 * the warp (select/matrix_order.c). */
#include "codegen/memory.h"
#include "ir/op_attrs.h"

enum { LANES = 32 };

static LLVMValueRef bits_of(Codegen *cg, LLVMValueRef v, unsigned from, unsigned mask)
{
    LLVMValueRef shifted = LLVMBuildLShr(cg->builder, v, const_i32_of(cg, from), "");
    LLVMValueRef masked = LLVMBuildAnd(cg->builder, shifted, const_i32_of(cg, mask), "");
    return LLVMBuildZExt(cg->builder, masked, cg->i64, "");
}

/* sum + times * v. */
static LLVMValueRef add_times(Codegen *cg, LLVMValueRef sum, int64_t times, LLVMValueRef v)
{
    return times ? add_i64(cg, sum, mul_i64(cg, v, const_i64_of(cg, times))) : sum;
}

/* Locates the row whose address this lane gives. */
static void locate_row(MemoryAccess *a, const MatrixPlan *plan)
{
    Codegen *cg = a->cg;
    LLVMValueRef index[LIMIT_RANK];
    int64_t low[LIMIT_RANK], high[LIMIT_RANK];
    LLVMValueRef warp = LLVMBuildUDiv(cg->builder, cg->thread, const_i32_of(cg, LANES), "");
    matrix_steps(plan, low, high);
    for (unsigned d = 0; d < a->tile->rank; d++) {
        LLVMValueRef sum = emit_thread_index(cg, plan->outer, d, warp);
        sum = mul_i64(cg, sum, const_i64_of(cg, plan->extents[d]));
        sum = add_times(cg, sum, low[d], bits_of(cg, cg->thread, 3, 1));
        sum = add_times(cg, sum, high[d], bits_of(cg, cg->thread, 4, 1));
        index[d] = add_times(cg, sum, d == plan->row, bits_of(cg, cg->thread, 0, 7));
    }
    access_locate(a, index);
}

/* ---- instructions --------------------------------------------------------- */

static IntrinsicId intrinsic_of(Via via)
{
#define ROW(id) [VIA_##id] = INTR_##id
    static const IntrinsicId ids[VIA_COUNT] = {
        ROW(ldmatrix_x1), ROW(ldmatrix_x2), ROW(ldmatrix_x4),
        ROW(ldmatrix_x1_trans), ROW(ldmatrix_x2_trans), ROW(ldmatrix_x4_trans),
        ROW(stmatrix_x1), ROW(stmatrix_x2), ROW(stmatrix_x4),
        ROW(stmatrix_x1_trans), ROW(stmatrix_x2_trans), ROW(stmatrix_x4_trans)};
#undef ROW
    return ids[via];
}

/* Moves `n` words of each lane from words[0] on. */
static bool move_words(const MemoryAccess *a, LLVMValueRef pointer, LLVMValueRef *words,
                       unsigned n)
{
    Codegen *cg = a->cg;
    bool load = a->op->result_count > 0;
    LLVMValueRef args[5] = {pointer};
    for (unsigned i = 0; !load && i < n; i++)
        args[1 + i] = words[i];
    LLVMValueRef all = call_intrinsic(cg, intrinsic_of(a->plan->via), a->op->loc, args,
                                      load ? 1 : 1 + n);
    for (unsigned i = 0; all && load && i < n; i++)
        words[i] = n == 1 ? all : LLVMBuildExtractValue(cg->builder, all, i, "");
    return all != NULL;
}

/* Emits a barrier of the warp where the plan has one. */
static void emit_order(const MemoryAccess *a, bool barrier)
{
    LLVMValueRef all_lanes = const_i32_of(a->cg, UINT32_MAX);
    if (barrier)
        call_intrinsic(a->cg, INTR_warp_barrier, a->op->loc, &all_lanes, 1);
}

bool move_matrices(MemoryAccess *a, LLVMValueRef *words)
{
    const MatrixPlan *plan = &a->plan->matrix;
    unsigned n = via_info[plan->via].matrices;
    int64_t slots_a_word = 32 / a->bits;
    locate_row(a, plan);
    emit_order(a, plan->barrier_before);
    for (int64_t i = 0; i < plan->outer->slots; i += n)
        if (!move_words(a, access_unit_pointer(a, i * slots_a_word), words + i, n))
            return false;
    emit_order(a, plan->barrier_after);
    return true;
}
