/* mbarriers and the copies that they count (PTX ISA, 9.7.13.15 and 9.7.9.25.4).
 *
 *     allocate_mbarrier   thread 0: mbarrier.init of each, fence.proxy.async;  bar.sync
 *     mbarrier_arrive     bar.warp.sync;  lane 0: mbarrier.arrive
 *     mbarrier_wait       all: until mbarrier.try_wait.parity;  bar.warp.sync
 *     copy_async_bulk     thread 0: fence.proxy.async if the program itself writes there,
 *                         mbarrier.expect_tx, cp.async.bulk
 *
 * An arrival releases and a wait acquires for the block, and the barriers of the warp
 * carry this to and from its other lanes. A bulk copy accesses memory through the async
 * proxy: the fence orders it behind writes through the generic proxy that are ordered
 * before it (PTX ISA, memory consistency model: proxy-preserved base causality order).
 * Reads of bytes that the copy overwrites need no fence, as in CUTLASS's pipelines:
 * values are in registers before their warp arrives. A thread that has seen the phase end
 * sees the copies' bytes without a fence.
 *
 * cp.async.bulk fills no zeros in beyond the source's view: where the tile is not proved
 * to lie inside, the kernel traps unless it does.
 *
 * A copy expects its own bytes, so that no program counts them wrong; that comes before
 * the arrival that follows the copy, so before the phase can end. */
#include "codegen/hints.h"
#include "codegen/memory.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"

enum { MBARRIER_BYTES = 8, LANE_MASK = 31 };

static LLVMBasicBlockRef new_block(Codegen *cg, const char *name)
{
    return LLVMAppendBasicBlockInContext(cg->context, cg->function, name);
}

/* The address of mbarrier number `number`, an i64, of those at `base`. */
static LLVMValueRef mbarrier_at(Codegen *cg, LLVMValueRef base, LLVMValueRef number)
{
    LLVMValueRef byte = mul_i64(cg, number, const_i64_of(cg, MBARRIER_BYTES));
    return LLVMBuildGEP2(cg->builder, cg->i8, base, &byte, 1, "");
}

static LLVMValueRef mbarrier_pointer(Codegen *cg, const Op *op)
{
    const Value *v = op->operands[op->operand_count - 1];
    return mbarrier_at(cg, lowered(v)->value, emit_expr(cg, op_expr(op, ATTR_ELEMENT)));
}

/* Begins code of the threads alone whose `number` (an i32) is 0; all threads join in the
 * block that is returned. */
static LLVMBasicBlockRef begin_single(Codegen *cg, LLVMValueRef number)
{
    LLVMBasicBlockRef one = new_block(cg, "one"), all = new_block(cg, "all");
    LLVMValueRef is_one = LLVMBuildICmp(cg->builder, LLVMIntEQ, number, const_i32_of(cg, 0), "");
    LLVMBuildCondBr(cg->builder, is_one, one, all);
    LLVMPositionBuilderAtEnd(cg->builder, one);
    return all;
}

static void end_single(Codegen *cg, LLVMBasicBlockRef all)
{
    LLVMBuildBr(cg->builder, all);
    LLVMPositionBuilderAtEnd(cg->builder, all);
}

bool emit_allocate_mbarrier(Codegen *cg, const Op *op)
{
    int64_t count = type_extent(op->results[0]->type, 0);
    LLVMValueRef base = shared_reserve(cg, op);
    LLVMValueRef args[2] = {NULL, const_i32_of(cg, (uint32_t)mbarrier_arrivals(op))};
    if (!base)
        return false;
    lower_value(cg, op->results[0])->value = base;
    LLVMBasicBlockRef all = begin_single(cg, cg->thread);
    for (int64_t i = 0; i < count; i++) {
        args[0] = mbarrier_at(cg, base, const_i64_of(cg, i));
        if (!call_intrinsic(cg, INTR_mbarrier_init, op->loc, args, 2))
            return false;
    }
    if (!call_intrinsic(cg, INTR_async_fence, op->loc, NULL, 0))
        return false;
    end_single(cg, all);
    return emit_barrier(cg, op);
}

static bool emit_warp_barrier(Codegen *cg, const Op *op)
{
    LLVMValueRef all_lanes = const_i32_of(cg, UINT32_MAX);
    return call_intrinsic(cg, INTR_warp_barrier, op->loc, &all_lanes, 1);
}

bool emit_mbarrier_arrive(Codegen *cg, const Op *op)
{
    LLVMValueRef pointer = mbarrier_pointer(cg, op);
    LLVMValueRef lane = LLVMBuildAnd(cg->builder, cg->thread, const_i32_of(cg, LANE_MASK), "");
    if (!emit_warp_barrier(cg, op))
        return false;
    LLVMBasicBlockRef all = begin_single(cg, lane);
    if (!call_intrinsic(cg, INTR_mbarrier_arrive, op->loc, &pointer, 1))
        return false;
    end_single(cg, all);
    return true;
}

bool emit_mbarrier_wait(Codegen *cg, const Op *op)
{
    LLVMBuilderRef b = cg->builder;
    LLVMBasicBlockRef poll = new_block(cg, "poll"), ended = new_block(cg, "ended");
    LLVMValueRef phase = LLVMBuildTrunc(b, emit_expr(cg, op_expr(op, ATTR_STATE)), cg->i32, "");
    LLVMValueRef args[2] = {mbarrier_pointer(cg, op)};
    args[1] = LLVMBuildAnd(b, phase, const_i32_of(cg, 1), "");
    LLVMBuildBr(b, poll);
    LLVMPositionBuilderAtEnd(b, poll);
    LLVMValueRef over = call_intrinsic(cg, INTR_mbarrier_try_wait, op->loc, args, 2);
    if (!over)
        return false;
    LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, over, const_i32_of(cg, 0), ""), ended, poll);
    LLVMPositionBuilderAtEnd(b, ended);
    return emit_warp_barrier(cg, op);
}

/* ---- copies ----------------------------------------------------------------- */

/* The address where the tile begins, at a whole byte. */
static LLVMValueRef tile_pointer(Codegen *cg, const MemoryTile *t)
{
    const Lowered *memory = lowered(t->memory);
    LLVMValueRef element = memory->first;
    for (unsigned d = 0; d < t->memory->type->rank; d++)
        element = add_i64(cg, element, mul_i64(cg, emit_expr(cg, t->offsets->exprs[d]),
                                               memory->strides[d]));
    LLVMValueRef bits = mul_i64(cg, element,
                                const_i64_of(cg, dtype_bits(t->memory->type->dtype)));
    LLVMValueRef byte = LLVMBuildExactSDiv(cg->builder, bits, const_i64_of(cg, 8), "");
    return LLVMBuildGEP2(cg->builder, cg->i8, memory->value, &byte, 1, "");
}

/* Computes whether the tile lies inside the dimensions `checked` of its view; NULL: yes. */
static LLVMValueRef tile_inside(Codegen *cg, uint32_t checked, const MemoryTile *t)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef all = NULL;
    for (unsigned d = 0; d < t->memory->type->rank; d++) {
        if (!(checked >> d & 1))
            continue;
        int dim = memory_tile_find(t, d);
        LLVMValueRef extent = lowered(t->memory)->extents[d];
        LLVMValueRef span = const_i64_of(cg, dim < 0 ? 1 : t->extents[dim]);
        LLVMValueRef offset = emit_expr(cg, t->offsets->exprs[d]);
        LLVMValueRef last = LLVMBuildSub(b, extent, span, "");
        LLVMValueRef one = LLVMBuildAnd(
            b, LLVMBuildICmp(b, LLVMIntSGE, offset, const_i64_of(cg, 0), ""),
            LLVMBuildICmp(b, LLVMIntSLE, offset, last, ""), "");
        all = all ? LLVMBuildAnd(b, all, one, "") : one;
    }
    return all;
}

/* Traps unless `holds`, an i1 or NULL. */
static bool emit_check(Codegen *cg, const Op *op, LLVMValueRef holds)
{
    if (!holds)
        return true;
    LLVMBasicBlockRef fail = new_block(cg, "outside"), inside = new_block(cg, "inside");
    LLVMBuildCondBr(cg->builder, holds, inside, fail);
    LLVMPositionBuilderAtEnd(cg->builder, fail);
    if (!call_intrinsic(cg, INTR_trap, op->loc, NULL, 0))
        return false;
    LLVMBuildUnreachable(cg->builder);
    LLVMPositionBuilderAtEnd(cg->builder, inside);
    return true;
}

bool emit_copy_async_bulk(Codegen *cg, const Op *op, const Plan *plan)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    LLVMValueRef bytes = const_i32_of(cg, (uint32_t)plan->bulk.bytes);
    unsigned count = 4;
    LLVMValueRef args[5] = {tile_pointer(cg, &target), tile_pointer(cg, &source), bytes,
                            mbarrier_pointer(cg, op)};
    LLVMBasicBlockRef all = begin_single(cg, cg->thread);
    if (!emit_check(cg, op, tile_inside(cg, plan->bulk.checked, &source)))
        return false;
    if (plan->bulk.fence && !call_intrinsic(cg, INTR_async_fence, op->loc, NULL, 0))
        return false;
    if (!call_intrinsic(cg, INTR_mbarrier_expect, op->loc, (LLVMValueRef[]){args[3], bytes}, 2))
        return false;
    hint_policy(cg, op, args, &count);
    if (!call_intrinsic(cg, count > 4 ? INTR_copy_bulk_policy : INTR_copy_bulk, op->loc, args,
                        count))
        return false;
    end_single(cg, all);
    return true;
}
