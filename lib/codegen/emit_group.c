/* Groups of threads: their branches and their barriers.
 *
 *          before
 *            | number = thread - begin
 *            |---- number < count ---> group: its threads count from 0
 *            |                           |
 *          after <-----------------------+
 *
 * Groups are whole warps, so no warp diverges, and other threads go on at once. Each
 * range of threads has a barrier of its own: two that wait at the same time never
 * share one, and the same threads come to all of theirs in one order. A warp alone
 * needs none. Groups of four warps may hand registers to each other. */
#include "codegen/internal.h"
#include "select/plan.h"

enum { WARP = 32 };

static LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

bool emit_thread_group(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMBuilderRef b = cg->builder;
    if (!emit_drain_before(cg, op, &plan->drain))
        return false;
    ThreadRange around = cg->threads;
    LLVMValueRef outer = cg->thread, outer_first = cg->first_thread, outer_warp = cg->warp;
    LLVMBasicBlockRef outer_begin = cg->begin;
    LLVMBasicBlockRef group = new_block(cg, "group"), after = new_block(cg, "after");
    cg->threads = region_threads(op->regions[0]);
    LLVMValueRef begin = const_i32_of(cg, (uint32_t)(cg->threads.begin - around.begin));
    LLVMValueRef count = const_i32_of(cg, (uint32_t)cg->threads.count);
    cg->thread = cg->first_thread = LLVMBuildSub(b, outer, begin, "");
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntULT, cg->thread, count, ""), group, after);
    LLVMPositionBuilderAtEnd(b, group);
    cg->begin = group;
    cg->warp = NULL;
    bool ok = emit_drained_region(cg, op, 0, &plan->drain);
    LLVMBuildBr(b, after);
    LLVMPositionBuilderAtEnd(b, after);
    cg->threads = around;
    cg->thread = outer;
    cg->first_thread = outer_first;
    cg->warp = outer_warp;
    cg->begin = outer_begin;
    return ok;
}

/* The number of the barrier of the running threads; BARRIERS: there is none left. */
static unsigned barrier_number(Codegen *cg)
{
    unsigned i = 0;
    while (i < cg->barrier_count && !thread_range_equal(cg->barriers[i], cg->threads))
        i++;
    if (i == cg->barrier_count && i < BARRIERS)
        cg->barriers[cg->barrier_count++] = cg->threads;
    return i;
}

bool emit_barrier(Codegen *cg, const Op *op)
{
    LLVMValueRef all_lanes = const_i32_of(cg, UINT32_MAX);
    LLVMValueRef count = const_i32_of(cg, (uint32_t)cg->threads.count);
    LLVMValueRef args[2] = {const_i32_of(cg, 0), count};
    if (cg->threads.count == program_threads(cg->program))
        return call_intrinsic(cg, INTR_barrier, op->loc, args, 1);
    if (cg->threads.count == WARP)
        return call_intrinsic(cg, INTR_warp_barrier, op->loc, &all_lanes, 1);
    unsigned number = barrier_number(cg);
    if (number == BARRIERS)
        return diag_error(cg->diag, op->loc, "this %s needs a barrier for one more "
                          "thread_group, a block has %d beside its own",
                          op_info[op->code].name, BARRIERS - 1);
    args[0] = const_i32_of(cg, number);
    return call_intrinsic(cg, INTR_group_barrier, op->loc, args, 2);
}

bool emit_synchronize(Codegen *cg, const Op *op, const Plan *plan)
{
    return emit_reads_fence(cg, op, plan) && emit_barrier(cg, op);
}

/* Returns true when threads can hand registers over. ptxas heeds min_blocks, and so gives
 * them the registers that the verifier counts on, only where a multiprocessor has room for so
 * many blocks. */
static bool target_hands_over(const Target *t, const Program *p)
{
    return t->own && p->min_blocks * p->warps <= t->warps;
}

/* PTX wants to know whether that is more than the threads have: the same number each, as the
 * verifier sees to. */
bool emit_setmaxnreg(Codegen *cg, const Op *op)
{
    int64_t wanted = op_expr(op, ATTR_NUMBER)->constant;
    int64_t *had = cg->registers + cg->threads.begin / WARPGROUP;
    IntrinsicId id = wanted < *had ? INTR_setmaxnreg_dec : INTR_setmaxnreg_inc;
    LLVMValueRef number = const_i32_of(cg, (uint32_t)wanted);
    for (int64_t i = 0; i < cg->threads.count / WARPGROUP; i++)
        had[i] = wanted;
    return !target_hands_over(cg->target, cg->program) ||
           call_intrinsic(cg, id, op->loc, &number, 1);
}
