/* Copies by the copy unit (PTX ISA, 9.7.9.25.4 and 9.7.9.25.5).
 *
 *     bulk      thread 0: [fence.proxy.async] mbarrier.expect_tx, cp.async.bulk
 *     tensor    an elected lane of warp 0: the same with cp.async.bulk.tensor
 *     store     [all: fence.proxy.async; bar.sync] that lane: cp.async.bulk to global memory,
 *               or cp.reduce.async.bulk
 *     commit, wait    that lane, whose the groups are; programs have a barrier after a wait
 *
 * A copy accesses memory through the async proxy: the fence, where the program itself writes
 * there, orders it after writes through the generic proxy that are ordered before it (PTX
 * ISA, memory consistency model: proxy-preserved base causality order).
 * Reads of bytes that the copy overwrites need no fence, as in CUTLASS's pipelines:
 * values are in registers before their warp arrives. A thread that has seen the phase end
 * sees the copies' bytes without a fence.
 *
 * cp.async.bulk fills no zeros in beyond the source's view: where the tile is not proved
 * to lie inside, the kernel traps unless it does. A tensor copy does; a coordinate is an
 * i32, and extents end before the greatest ones (TILUS_MAP_EXTENT_MAX).
 *
 * A copy to several blocks of a cluster is expected by each one's mbarrier. An arrival at
 * another block's that follows the expectation in its thread comes after it there.
 *
 * A copy expects its own bytes, so that no program counts them wrong; that comes before
 * the arrival that follows the copy, so before the phase can end. */
#include "codegen/bulk.h"

#include "codegen/hints.h"
#include "ir/op_attrs.h"
#include "ir/tile.h"
#include "scalar/facts.h"

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

/* ---- tensor maps --------------------------------------------------------------- */

static LLVMValueRef map_parameter(Codegen *cg, const TensorMap *map)
{
    unsigned i = 0;
    while (!tensor_map_equal(&cg->maps.of[i], map))
        i++;
    return LLVMGetParam(cg->function, cg->program->arg_count + i);
}

bool emit_map_prefetches(Codegen *cg)
{
    enum { FIRST_TARGET = 90 };
    const Program *p = cg->program;
    if (cg->maps.count == 0 || cg->target->sm < FIRST_TARGET)   /* whose copies are refused */
        return true;
    LLVMBasicBlockRef all = begin_single(cg, cg->thread);
    for (unsigned i = 0; i < cg->maps.count; i++) {
        LLVMValueRef map = LLVMGetParam(cg->function, p->arg_count + i);
        if (!call_intrinsic(cg, INTR_map_prefetch, p->loc, &map, 1))
            return false;
    }
    end_single(cg, all);
    return true;
}

/* Keeps an offset, an i64, among the numbers that a box may begin at: past the ends of a
 * dimension all are alike. */
static LLVMValueRef clamp_coordinate(Codegen *cg, const Expr *offset, LLVMValueRef value)
{
    LLVMBuilderRef b = cg->builder;
    ScalarFacts facts = facts_of_expr(offset);
    if (facts.min < INT32_MIN || facts.max > TILUS_MAP_EXTENT_MAX) {
        LLVMValueRef least = const_i64_of(cg, INT32_MIN);
        LLVMValueRef most = const_i64_of(cg, TILUS_MAP_EXTENT_MAX);
        value = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSLT, value, least, ""), least, value,
                                "");
        value = LLVMBuildSelect(b, LLVMBuildICmp(b, LLVMIntSGT, value, most, ""), most, value, "");
    }
    return LLVMBuildTrunc(b, value, cg->i32, "");
}

/* Appends the coordinates of the box, the innermost first. */
static void add_coordinates(Codegen *cg, const TensorMap *map, const MemoryTile *source,
                            LLVMValueRef *args, unsigned *count)
{
    for (unsigned d = map->rank; d-- > 0;) {
        const Expr *offset = source->offsets->exprs[map->dims[d]];
        args[(*count)++] = clamp_coordinate(cg, offset, emit_expr(cg, offset));
    }
}

static bool emit_fence(Codegen *cg, const Op *op, BulkFence fence)
{
    IntrinsicId id = fence == BULK_FENCE ? INTR_async_fence : INTR_async_fence_shared;
    return fence == BULK_NO_FENCE || call_intrinsic(cg, id, op->loc, NULL, 0);
}

static bool emit_expect_own(Codegen *cg, const Op *op, LLVMValueRef mbarrier, int64_t bytes)
{
    LLVMValueRef args[] = {mbarrier, const_i32_of(cg, (uint32_t)bytes)};
    return call_intrinsic(cg, INTR_mbarrier_expect, op->loc, args, 2);
}

/* Has the mbarrier of each block of the cluster whose bit `mask`, an i64, has expect the
 * bytes; without a mask, the block's own. */
static bool emit_expect(Codegen *cg, const Op *op, LLVMValueRef mbarrier, int64_t bytes,
                        LLVMValueRef mask)
{
    LLVMBuilderRef b = cg->builder;
    if (!mask)
        return emit_expect_own(cg, op, mbarrier, bytes);
    for (unsigned rank = 0; rank < program_blocks(cg->program); rank++) {
        LLVMBasicBlockRef expect = new_block(cg, "expect"), next = new_block(cg, "next");
        LLVMValueRef bit = LLVMBuildAnd(b, mask, const_i64_of(cg, INT64_C(1) << rank), "");
        LLVMValueRef args[] = {mbarrier, const_i32_of(cg, rank),
                               const_i32_of(cg, (uint32_t)bytes)};
        LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntNE, bit, const_i64_of(cg, 0), ""), expect, next);
        LLVMPositionBuilderAtEnd(b, expect);
        if (!call_intrinsic(cg, INTR_mbarrier_expect_remote, op->loc, args, 3))
            return false;
        end_single(cg, next);
    }
    return true;
}

/* The mask of ranks that the copy goes to, an i64, or NULL: to the block itself. */
static LLVMValueRef emit_mask(Codegen *cg, const Op *op)
{
    const Expr *mask = op_expr(op, ATTR_MULTICAST);
    return mask && program_blocks(cg->program) > 1 ? emit_expr(cg, mask) : NULL;
}

/* Appends the mask, if there is one, and the operand for a cache policy, if `op` asks for it;
 * returns true then. */
static bool add_modifiers(Codegen *cg, const Op *op, LLVMValueRef mask, LLVMValueRef *args,
                          unsigned *count)
{
    if (mask)
        args[(*count)++] = LLVMBuildTrunc(cg->builder, mask, cg->i16, "");
    unsigned plain = *count;
    hint_policy(cg, op, args, count);
    return *count > plain;
}

static bool emit_tensor_copy(Codegen *cg, const Op *op, const BulkPlan *plan)
{
    enum { OTHERS = 5 };        /* the target, the map, the mbarrier, a mask and a policy */
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    LLVMValueRef args[MAP_RANK + OTHERS] = {tile_pointer(cg, &target),
                                            map_parameter(cg, &plan->map),
                                            mbarrier_pointer(cg, op)};
    unsigned count = 3;
    Elected elected;
    add_coordinates(cg, &plan->map, &source, args, &count);
    LLVMValueRef mask = emit_mask(cg, op);
    if (!begin_elected(cg, op, &elected) || !emit_fence(cg, op, plan->fence) ||
        !emit_expect(cg, op, args[2], plan->bytes, mask))
        return false;
    bool hinted = add_modifiers(cg, op, mask, args, &count);
    IntrinsicId first = mask ? hinted ? INTR_copy_tensor_1_multicast_policy
                                      : INTR_copy_tensor_1_multicast
                             : hinted ? INTR_copy_tensor_1_policy : INTR_copy_tensor_1;
    if (!call_intrinsic(cg, first + (plan->map.rank - 1), op->loc, args, count))
        return false;
    end_elected(cg, &elected);
    return true;
}

/* ---- both ------------------------------------------------------------------------ */

static bool emit_bulk_copy(Codegen *cg, const Op *op, const BulkPlan *plan)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    LLVMValueRef bytes = const_i32_of(cg, (uint32_t)plan->bytes);
    unsigned count = 4;
    LLVMValueRef mask = emit_mask(cg, op);
    LLVMValueRef args[6] = {tile_pointer(cg, &target), tile_pointer(cg, &source), bytes,
                            mbarrier_pointer(cg, op)};
    LLVMBasicBlockRef all = begin_single(cg, cg->thread);
    if (!emit_check(cg, op, tile_inside(cg, plan->checked, &source)) ||
        !emit_fence(cg, op, plan->fence) || !emit_expect(cg, op, args[3], plan->bytes, mask))
        return false;
    bool hinted = add_modifiers(cg, op, mask, args, &count);
    IntrinsicId id = mask ? hinted ? INTR_copy_bulk_multicast_policy : INTR_copy_bulk_multicast
                          : hinted ? INTR_copy_bulk_policy : INTR_copy_bulk;
    if (!call_intrinsic(cg, id, op->loc, args, count))
        return false;
    end_single(cg, all);
    return true;
}

bool emit_copy_async_bulk(Codegen *cg, const Op *op, const Plan *plan)
{
    return plan->bulk.tensor ? emit_tensor_copy(cg, op, &plan->bulk)
                             : emit_bulk_copy(cg, op, &plan->bulk);
}

/* ---- stores ----------------------------------------------------------------------- */

/* Intrinsics that reduce elements, without a policy; the row after each has one. */
static const IntrinsicId reduce_rows[REDUCTION_NONE][DTYPE_COUNT] = {
#define REDUCES(op, dtype, ptx) [REDUCTION_##op][DTYPE_##dtype] = INTR_reduce_bulk_##op##_##dtype,
#include "ir/reduction.def"
};

static IntrinsicId bulk_store_intrinsic(const Op *op, bool hinted)
{
    Reduction r = store_reduction(op);
    if (r != REDUCTION_NONE)
        return reduce_rows[r][op->operands[0]->type->dtype] + hinted;
    return hinted ? INTR_store_bulk_policy : INTR_store_bulk;
}

static IntrinsicId tensor_store_intrinsic(const Op *op, unsigned rank, bool hinted)
{
    Reduction r = store_reduction(op);
    IntrinsicId first = hinted ? INTR_store_tensor_1_policy : INTR_store_tensor_1;
    if (r != REDUCTION_NONE)
        first = (hinted ? INTR_reduce_tensor_add_1_policy : INTR_reduce_tensor_add_1) +
                r * MAP_RANK;
    return first + (rank - 1);
}

static bool emit_bulk_store(Codegen *cg, const Op *op, const BulkPlan *plan)
{
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    LLVMValueRef args[4] = {tile_pointer(cg, &target), tile_pointer(cg, &source),
                            const_i32_of(cg, (uint32_t)plan->bytes)};
    unsigned count = 3;
    if (!emit_check(cg, op, tile_inside(cg, plan->checked, &target)))
        return false;
    hint_policy(cg, op, args, &count);
    return call_intrinsic(cg, bulk_store_intrinsic(op, count > 3), op->loc, args, count);
}

static bool emit_tensor_store(Codegen *cg, const Op *op, const BulkPlan *plan)
{
    enum { OTHERS = 3 };        /* the source, the map and a policy */
    MemoryTile source = op_source_tile(op), target = op_memory_tile(op);
    LLVMValueRef args[MAP_RANK + OTHERS] = {tile_pointer(cg, &source),
                                            map_parameter(cg, &plan->map)};
    unsigned count = 2;
    add_coordinates(cg, &plan->map, &target, args, &count);
    unsigned plain = count;
    hint_policy(cg, op, args, &count);
    return call_intrinsic(cg, tensor_store_intrinsic(op, plan->map.rank, count > plain), op->loc,
                          args, count);
}

/* Each thread that may have written the tile puts its writes before the async proxy; after
 * the barrier all have. */
static bool emit_writers_fence(Codegen *cg, const Op *op, const BulkPlan *plan)
{
    return !plan->fence || (emit_fence(cg, op, plan->fence) && emit_barrier(cg, op));
}

bool emit_copy_async_bulk_store(Codegen *cg, const Op *op, const Plan *plan)
{
    Elected elected;
    if (!emit_writers_fence(cg, op, &plan->bulk) || !begin_elected(cg, op, &elected))
        return false;
    if (plan->bulk.tensor ? !emit_tensor_store(cg, op, &plan->bulk)
                          : !emit_bulk_store(cg, op, &plan->bulk))
        return false;
    end_elected(cg, &elected);
    return true;
}

/* A call of the thread that stores: elect.sync elects one lane always. */
static bool emit_group_call(Codegen *cg, const Op *op, IntrinsicId id, LLVMValueRef *args,
                            unsigned count)
{
    Elected elected;
    if (!begin_elected(cg, op, &elected) || !call_intrinsic(cg, id, op->loc, args, count))
        return false;
    end_elected(cg, &elected);
    return true;
}

bool emit_copy_async_bulk_commit_group(Codegen *cg, const Op *op)
{
    return emit_group_call(cg, op, INTR_bulk_commit, NULL, 0);
}

bool emit_copy_async_bulk_wait_group(Codegen *cg, const Op *op)
{
    LLVMValueRef pending = const_i32_of(cg, (uint32_t)op_expr(op, ATTR_NUMBER)->constant);
    return emit_group_call(cg, op, bulk_wait_reads(op) ? INTR_bulk_wait_read : INTR_bulk_wait,
                           &pending, 1);
}
