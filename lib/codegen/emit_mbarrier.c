/* mbarriers (PTX ISA, 9.7.13.15). The copies that they count are emit_bulk.c's.
 *
 *     allocate_mbarrier   [fence.proxy.async.shared::cta;]
 *                         thread 0: mbarrier.init of each, fence.proxy.async.shared::cta;  bar.sync
 *     mbarrier_arrive     [fence.proxy.async.shared::cta;]  bar.warp.sync;  lane 0: mbarrier.arrive
 *     mbarrier_wait       [fence.proxy.async.shared::cta;]  all: until mbarrier.try_wait.parity;
 *                         bar.warp.sync
 *
 * The fence in brackets is of .shared::cluster where threads read another block's memory, which
 * .shared::cta does not name (PTX ISA, membar/fence: .proxykind; state spaces: shared memory).
 *
 * An arrival releases and a wait acquires for the block, and the barriers of the warp
 * carry this to and from its other lanes. In a cluster an arrival may be at the same
 * mbarrier of another block, whose address mapa gives (lib/select/cluster.c says when it
 * releases for the cluster). Blocks of a cluster meet after allocations, and at the end of
 * programs that access other blocks' memory. */
#include "codegen/bulk.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"

enum { MBARRIER_BYTES = 8, LANE_MASK = 31 };

LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

/* The address of mbarrier number `number`, an i64, of those at `base`. */
static LLVMValueRef mbarrier_at(Codegen *cg, LLVMValueRef base, LLVMValueRef number)
{
    LLVMValueRef byte = mul_i64(cg, number, const_i64_of(cg, MBARRIER_BYTES));
    return LLVMBuildGEP2(cg->builder, cg->i8, base, &byte, 1, "");
}

LLVMValueRef mbarrier_pointer(Codegen *cg, const Op *op)
{
    const Value *v = op->operands[op->operand_count - 1];
    return mbarrier_at(cg, lowered(v)->value, emit_expr(cg, op_expr(op, ATTR_ELEMENT)));
}

/* Begins code of the threads for which `is_one` holds. */
static LLVMBasicBlockRef begin_if(Codegen *cg, LLVMValueRef is_one)
{
    LLVMBasicBlockRef one = new_block(cg, "one"), all = new_block(cg, "all");
    LLVMBuildCondBr(cg->builder, is_one, one, all);
    LLVMPositionBuilderAtEnd(cg->builder, one);
    return all;
}

LLVMBasicBlockRef begin_single(Codegen *cg, LLVMValueRef number)
{
    return begin_if(cg, LLVMBuildICmp(cg->builder, LLVMIntEQ, number, const_i32_of(cg, 0), ""));
}

/* ptxas must know that the warp's number is uniform: else it would guard each instruction of
 * the copy unit by a loop. */
bool begin_elected(Codegen *cg, const Op *op, Elected *e)
{
    LLVMValueRef warp = uniform_warp(cg, op->loc);
    if (!warp)
        return false;
    e->warps = begin_single(cg, warp);
    LLVMValueRef elected = call_intrinsic(cg, INTR_elect, op->loc, NULL, 0);
    if (!elected)
        return false;
    e->lanes = begin_if(cg, elected);
    return true;
}

void end_elected(Codegen *cg, const Elected *e)
{
    end_single(cg, e->lanes);
    end_single(cg, e->warps);
}

void end_single(Codegen *cg, LLVMBasicBlockRef all)
{
    LLVMBuildBr(cg->builder, all);
    LLVMPositionBuilderAtEnd(cg->builder, all);
}

/* Returns true when another allocate_mbarrier follows before anything can use this one's. */
static bool is_followed(const Op *op)
{
    Effect effect;
    do {
        op = op->next;
        effect = op ? op_info[op->code].effect : EFFECT_CONTROL;
    } while (effect == EFFECT_PURE || (effect == EFFECT_ALLOC && op->code != OP_allocate_mbarrier));
    return op && op->code == OP_allocate_mbarrier;
}

/* Makes the mbarriers known to all threads: of the block, or of all blocks of a cluster. */
static bool emit_meeting(Codegen *cg, const Op *op)
{
    return program_blocks(cg->program) == 1 ? emit_barrier(cg, op)
                                            : emit_cluster_barrier(cg, op->loc);
}

/* Orders all inits after which nothing else is allocated. */
static bool emit_init_fences(Codegen *cg, const Op *op)
{
    return call_intrinsic(cg, INTR_async_fence_shared, op->loc, NULL, 0) &&
           (program_blocks(cg->program) == 1 ||
            call_intrinsic(cg, INTR_mbarrier_init_fence, op->loc, NULL, 0));
}

bool emit_allocate_mbarrier(Codegen *cg, const Op *op, const Plan *plan)
{
    int64_t count = type_extent(op->results[0]->type, 0);
    LLVMValueRef base = shared_reserve(cg, op);
    LLVMValueRef args[2] = {NULL, const_i32_of(cg, (uint32_t)mbarrier_arrivals(op))};
    if (!base || !emit_reads_fence(cg, op, plan))
        return false;
    lower_value(cg, op->results[0])->value = base;
    LLVMBasicBlockRef all = begin_single(cg, cg->thread);
    for (int64_t i = 0; i < count; i++) {
        args[0] = mbarrier_at(cg, base, const_i64_of(cg, i));
        if (!call_intrinsic(cg, INTR_mbarrier_init, op->loc, args, 2))
            return false;
    }
    if (!is_followed(op) && !emit_init_fences(cg, op))
        return false;
    end_single(cg, all);
    return is_followed(op) || emit_meeting(cg, op);
}

static bool emit_warp_barrier(Codegen *cg, const Op *op)
{
    LLVMValueRef all_lanes = const_i32_of(cg, UINT32_MAX);
    return call_intrinsic(cg, INTR_warp_barrier, op->loc, &all_lanes, 1);
}

/* The value of an expression of `op` as an i32. */
static LLVMValueRef emit_i32(Codegen *cg, const Op *op, AttrKind kind)
{
    return LLVMBuildTrunc(cg->builder, emit_expr(cg, op_expr(op, kind)), cg->i32, "");
}

bool emit_reads_fence(Codegen *cg, const Op *op, const Plan *plan)
{
    IntrinsicId id = plan->sync.reads_others ? INTR_async_fence_cluster : INTR_async_fence_shared;
    return !plan->sync.reads || call_intrinsic(cg, id, op->loc, NULL, 0);
}

bool emit_mbarrier_arrive(Codegen *cg, const Op *op, const Plan *plan)
{
    bool remote = plan->sync.remote;
    LLVMValueRef args[2] = {mbarrier_pointer(cg, op), remote ? emit_i32(cg, op, ATTR_RANK) : NULL};
    IntrinsicId id = !remote                ? INTR_mbarrier_arrive
                     : plan->sync.publishes ? INTR_mbarrier_arrive_release
                                            : INTR_mbarrier_arrive_remote;
    LLVMValueRef lane = LLVMBuildAnd(cg->builder, cg->thread, const_i32_of(cg, LANE_MASK), "");
    if (!emit_reads_fence(cg, op, plan) || !emit_warp_barrier(cg, op))
        return false;
    LLVMBasicBlockRef all = begin_single(cg, lane);
    if (!call_intrinsic(cg, id, op->loc, args, remote ? 2 : 1))
        return false;
    end_single(cg, all);
    return true;
}

bool emit_mbarrier_wait(Codegen *cg, const Op *op, const Plan *plan)
{
    IntrinsicId id = plan->sync.publishes ? INTR_mbarrier_wait_acquire
                                          : INTR_mbarrier_try_wait;
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef poll = new_block(cg, "poll"), ended = new_block(cg, "ended");
    LLVMValueRef phase = LLVMBuildTrunc(b, emit_expr(cg, op_expr(op, ATTR_STATE)), cg->i32, "");
    LLVMValueRef args[2] = {mbarrier_pointer(cg, op)};
    args[1] = LLVMBuildAnd(b, phase, const_i32_of(cg, 1), "");
    if (!emit_reads_fence(cg, op, plan))
        return false;
    LLVMBuildBr(b, poll);
    LLVMPositionBuilderAtEnd(b, poll);
    LLVMValueRef over = call_intrinsic(cg, id, op->loc, args, 2);
    if (!over)
        return false;
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, over, const_i32_of(cg, 0), ""), ended, poll);
    LLVMPositionBuilderAtEnd(b, ended);
    return emit_warp_barrier(cg, op);
}
