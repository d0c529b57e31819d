/* Semaphores: thread 0 acts for the block, or the group, a barrier hands its order on.
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
 * reads may be in flight (select/reads.h). */
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
