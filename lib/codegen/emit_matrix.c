/* Tiles moved by ldmatrix and stmatrix: whole warps move 1, 2 or 4 matrices of
 * 8 rows of 16 bytes. Lane 8 * m + r gives the address of row r of matrix m;
 * the word that each lane gets or gives is the one that the layout puts there.
 *
 * So lanes touch rows that other lanes hold, while the language orders a
 * thread's own accesses to an element without any `synchronize`. Where such an
 * access may be near, a barrier of the warp stands between. */
#include "codegen/memory.h"

#include "select/matrix.h"

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

/* ---- order ------------------------------------------------------------- */

typedef struct Order {
    const Op *op;
    bool before;        /* which way to look from `op` */
} Order;

/* Whether a thread's own access in `other` must stay on its side of the op.
 * Copies are nobody's own: only `synchronize` orders them. */
static bool disturbs(const Order *o, const Op *other)
{
    Effect effect = op_info[other->code].effect;
    bool shared = false;
    for (unsigned i = 0; other->code != OP_copy_async && i < other->operand_count; i++)
        shared |= other->operands[i]->type->kind == TYPE_SHARED;
    return shared && effect != EFFECT_PURE &&
           (effect == EFFECT_WRITES || op_info[o->op->code].effect == EFFECT_WRITES);
}

static bool stays(Op *other, void *data)
{
    return !disturbs(data, other);
}

/* Looks from `other` on until `synchronize`, true, or an op that disturbs, or
 * has one inside, false; `*end` tells that neither came. */
static bool scan(const Order *o, Op *other, bool *end)
{
    *end = false;
    for (; other && other != o->op; other = o->before ? other->prev : other->next) {
        if (other->code == OP_synchronize)
            return true;
        if (disturbs(o, other))
            return false;
        for (unsigned i = 0; i < other->region_count; i++)
            if (!region_walk(other->regions[i], stays, (void *)o))
                return false;
    }
    *end = true;
    return true;
}

/* Whether no access that disturbs the op can run between it and the nearest
 * `synchronize`: in its region, around its loops, outside of them. */
static bool in_order(const Order *o)
{
    bool end, around;
    for (const Op *at = o->op; at; at = at->parent->parent) {
        const Region *r = at->parent;
        if (!scan(o, o->before ? at->prev : at->next, &end))
            return false;
        if (!end)
            return true;
        if (r->parent && r->parent->code != OP_if && r->parent->code != OP_thread_group &&
            !scan(o, o->before ? r->last : r->first, &around))
            return false;
    }
    return true;
}

static void order(Codegen *cg, const Op *op, bool before)
{
    LLVMValueRef all_lanes = const_i32_of(cg, UINT32_MAX);
    if (!in_order(&(Order){op, before}))
        call_intrinsic(cg, INTR_warp_barrier, op->loc, &all_lanes, 1);
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
    LLVMValueRef all = call_intrinsic(cg, intrinsic_of(a->plan.via), a->op->loc, args,
                                      load ? 1 : 1 + n);
    for (unsigned i = 0; all && load && i < n; i++)
        words[i] = n == 1 ? all : LLVMBuildExtractValue(cg->builder, all, i, "");
    return all != NULL;
}

bool move_matrices(MemoryAccess *a, LLVMValueRef *words)
{
    MatrixPlan plan;
    const char *why;
    if (!matrix_plan(a->cg->module, a->op, &plan, &why))
        return diag_error(a->cg->diag, a->op->loc, "no matrices: %s", why);
    plan.via = a->plan.via;
    unsigned n = via_info[plan.via].matrices;
    int64_t slots_a_word = 32 / a->bits;
    locate_row(a, &plan);
    order(a->cg, a->op, true);
    for (int64_t i = 0; i < plan.outer->slots; i += n)
        if (!move_words(a, access_unit_pointer(a, i * slots_a_word), words + i, n))
            return false;
    order(a->cg, a->op, false);
    return true;
}
