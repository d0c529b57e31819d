/* Semaphores and barriers of the grid: thread 0 acts for the block, or the group, a barrier hands
 * its order on.
 *
 *     lock       thread 0: until (ld.acquire.gpu == value);   [fence;]  bar.sync
 *     release    [fence;]  bar.sync;   thread 0: st.release.gpu
 *
 * With scope = system these are ld.acquire.sys and st.release.sys.
 *
 * What the releasing block did comes before its barrier, so before the store of its
 * thread 0; that comes before the load that sees it, and so before the other
 * block's barrier and all after it (PTX ISA, memory consistency model: causality
 * order). The barriers are those of a synchronize, behind its fence.proxy.async where
 * reads may be in flight (select/reads.h).
 *
 *     grid_synchronize    [fence;]  bar.sync
 *                         thread 0: old = atom.add.release.gpu state, share
 *                                   until ((ld.acquire.gpu state ^ old) < 0)
 *                         bar.sync
 *
 * The shares of all blocks sum to 2^31: each adds 1, and block 0 adds 2^31 - (blocks - 1). So the
 * last block, whichever it is, flips the top bit of the state, the others leave it; the low bits
 * are 0 again, and the next barrier begins with the other sense: nothing is ever reset. The
 * atomic operations are a chain, so that who sees the last one is behind all.
 *
 *     grid_pace           thread 0: atom.add.relaxed.gpu state, 1
 *                                   until (ld.relaxed.gpu state >= (number + 1) * blocks), or polled often enough
 *                         bar.sync
 *
 * Numbers of paces let the others wait again for a block that was late once: with senses, as above, who
 * went on without it would stay one pace ahead. */
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "select/plan.h"

static LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

static LLVMValueRef semaphore_pointer(Codegen *cg, const Op *op)
{
    const Lowered *memory = lowered(op_memory_operand(op));
    const Attr *offsets = op_attr(op, ATTR_OFFSETS);
    LLVMValueRef linear = memory->first;
    for (unsigned d = 0; d < offsets->count; d++)
        linear = add_i64(cg, linear, mul_i64(cg, emit_expr(cg, offsets->exprs[d]),
                                             memory->strides[d]));
    return LLVMBuildGEP2(cg->builder, cg->i32, memory->value, &linear, 1, "");
}

static LLVMValueRef semaphore_value(Codegen *cg, const Op *op)
{
    return LLVMBuildTrunc(cg->builder, emit_expr(cg, op_expr(op, ATTR_STATE)), cg->i32, "");
}

/* Branches to `act` in thread 0, else to `others`; the builder stands in `act`. */
static void branch_on_first(Codegen *cg, LLVMBasicBlockRef act, LLVMBasicBlockRef others)
{
    LLVMValueRef is_first = LLVMBuildICmp(cg->builder, LLVMIntEQ, cg->thread,
                                          const_i32_of(cg, 0), "");
    LLVMBuildCondBr(cg->builder, is_first, act, others);
    LLVMPositionBuilderAtEnd(cg->builder, act);
}

static bool is_of_system(const Op *op)
{
    return op_scope(op) == SCOPE_SYSTEM;
}

bool emit_lock(Codegen *cg, const Op *op, const Plan *plan)
{
    IntrinsicId load = is_of_system(op) ? INTR_load_acquire_system : INTR_load_acquire_gpu;
    LLVMBasicBlockRef poll = new_block(cg, "poll"), locked = new_block(cg, "locked");
    LLVMValueRef pointer = semaphore_pointer(cg, op), value = semaphore_value(cg, op);
    branch_on_first(cg, poll, locked);
    LLVMValueRef held = call_intrinsic(cg, load, op->loc, &pointer, 1);
    if (!held)
        return false;
    LLVMBuildCondBr(cg->builder, LLVMBuildICmp(cg->builder, LLVMIntEQ, held, value, ""), locked,
                    poll);
    LLVMPositionBuilderAtEnd(cg->builder, locked);
    return emit_synchronize(cg, op, plan);
}

bool emit_release(Codegen *cg, const Op *op, const Plan *plan)
{
    IntrinsicId give = is_of_system(op) ? INTR_store_release_system : INTR_store_release_gpu;
    LLVMBasicBlockRef store = new_block(cg, "release"), released = new_block(cg, "released");
    LLVMValueRef args[] = {semaphore_pointer(cg, op), semaphore_value(cg, op)};
    if (!emit_synchronize(cg, op, plan))
        return false;
    branch_on_first(cg, store, released);
    if (!call_intrinsic(cg, give, op->loc, args, 2))
        return false;
    LLVMBuildBr(cg->builder, released);
    LLVMPositionBuilderAtEnd(cg->builder, released);
    return true;
}

/* ---- barriers and paces of the grid ---------------------------------------- */

/* The number of blocks. */
static LLVMValueRef grid_blocks(Codegen *cg, const Op *op)
{
    static const IntrinsicId ids[] = {INTR_grid_extent_x, INTR_grid_extent_y, INTR_grid_extent_z};
    const Program *p = cg->program;
    LLVMValueRef blocks = const_i32_of(cg, 1);
    for (unsigned d = 0; d < p->grid_rank; d++) {
        LLVMValueRef extent = expr_is_constant(p->grid[d])
                                  ? const_i32_of(cg, (uint32_t)p->grid[d]->constant)
                                  : call_intrinsic(cg, ids[d], op->loc, NULL, 0);
        if (!extent)
            return NULL;
        blocks = LLVMBuildMul(cg->builder, blocks, extent, "");
    }
    return blocks;
}

/* Returns a number that is 0 in block 0 alone, or NULL after an error. */
static LLVMValueRef any_block_index(Codegen *cg, const Op *op)
{
    static const IntrinsicId ids[] = {INTR_block_index_x, INTR_block_index_y, INTR_block_index_z};
    LLVMValueRef any = const_i32_of(cg, 0);
    for (unsigned d = 0; d < cg->program->grid_rank; d++) {
        LLVMValueRef index = call_intrinsic(cg, ids[d], op->loc, NULL, 0);
        if (!index)
            return NULL;
        any = LLVMBuildOr(cg->builder, any, index, "");
    }
    return any;
}

/* Returns what this block adds to the state, or NULL after an error. */
static LLVMValueRef grid_share(Codegen *cg, const Op *op)
{
    LLVMValueRef blocks = grid_blocks(cg, op), any = blocks ? any_block_index(cg, op) : NULL;
    if (!any)
        return NULL;
    LLVMValueRef rest = LLVMBuildSub(cg->builder, const_i32_of(cg, (UINT32_C(1) << 31) + 1), blocks,
                                     "");
    LLVMValueRef is_first = LLVMBuildICmp(cg->builder, LLVMIntEQ, any, const_i32_of(cg, 0), "");
    return LLVMBuildSelect(cg->builder, is_first, rest, const_i32_of(cg, 1), "");
}

/* Adds the block's share, and waits for the other blocks'. */
static bool emit_meeting(Codegen *cg, const Op *op, LLVMBasicBlockRef met)
{
    LLVMBasicBlockRef poll = new_block(cg, "poll");
    LLVMValueRef args[] = {lowered(op->operands[0])->value, grid_share(cg, op)};
    if (!args[1] || !(args[1] = call_intrinsic(cg, INTR_grid_arrive, op->loc, args, 2)))
        return false;
    LLVMBuildBr(cg->builder, poll);
    LLVMPositionBuilderAtEnd(cg->builder, poll);
    LLVMValueRef differs = call_intrinsic(cg, INTR_grid_poll, op->loc, args, 2);
    if (!differs)
        return false;
    LLVMBuildCondBr(cg->builder, LLVMBuildICmp(cg->builder, LLVMIntSLT, differs,
                                               const_i32_of(cg, 0), ""), met, poll);
    LLVMPositionBuilderAtEnd(cg->builder, met);
    return true;
}

bool emit_grid_synchronize(Codegen *cg, const Op *op, const Plan *plan)
{
    LLVMBasicBlockRef arrive = new_block(cg, "arrive"), met = new_block(cg, "met");
    if (!emit_synchronize(cg, op, plan))
        return false;
    branch_on_first(cg, arrive, met);
    return emit_meeting(cg, op, met) && emit_barrier(cg, op) && renew_thread(cg, op->loc);
}

bool emit_grid_pace(Codegen *cg, const Op *op)
{
    LLVMBasicBlockRef pace = new_block(cg, "pace"), paced = new_block(cg, "paced");
    branch_on_first(cg, pace, paced);
    LLVMValueRef blocks = grid_blocks(cg, op), number = semaphore_value(cg, op);
    if (!blocks)
        return false;
    LLVMValueRef paces = LLVMBuildTrunc(cg->builder, emit_expr(cg, op_expr(op, ATTR_PACES)), cg->i32,
                                        "");
    LLVMValueRef next = LLVMBuildAdd(cg->builder, number, const_i32_of(cg, 1), "");
    LLVMValueRef args[] = {lowered(op->operands[0])->value,
                           LLVMBuildMul(cg->builder, next, blocks, ""),
                           LLVMBuildMul(cg->builder, paces, blocks, "")};
    if (!call_intrinsic(cg, INTR_grid_pace, op->loc, args, 3))
        return false;
    LLVMBuildBr(cg->builder, paced);
    LLVMPositionBuilderAtEnd(cg->builder, paced);
    return emit_barrier(cg, op);
}
