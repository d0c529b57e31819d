/* Atomic ops: one relaxed instruction for each element, between fences.
 *
 *     fence.acq_rel.gpu                       order release, acq_rel
 *     if (the thread is the least holder of its elements)     replicas only
 *         for each slot: if (inside) red.relaxed.gpu ...
 *     fence.acq_rel.gpu                       order acquire, acq_rel
 *
 * A fence before or after relaxed accesses orders as a releasing or acquiring
 * access would, and one does for all slots. */
#include "codegen/memory.h"

/* The first row of the family of intrinsics that does what the op does. */
static IntrinsicId family(const Op *op)
{
    DType t = op_tile_type(op)->dtype;
    bool is_signed = dtype_info[t].kind == DKIND_INT;
    switch (op->code) {
    case OP_atomic_add:
        return dtype_is_float(t) ? INTR_atomic_add_f32_block : INTR_atomic_add_u32_block;
    case OP_atomic_max:
        return is_signed ? INTR_atomic_max_s32_block : INTR_atomic_max_u32_block;
    case OP_atomic_min:
        return is_signed ? INTR_atomic_min_s32_block : INTR_atomic_min_u32_block;
    default:
        return INTR_atomic_exch_b32_block;
    }
}

/* Changes the place of the element in `slot`, which is one word. */
static void change_slot(const MemoryAccess *a, int64_t slot, LLVMValueRef *words)
{
    unsigned row = a->global ? (unsigned)atomic_scope(a->op) : SCOPE_NONE;
    LLVMValueRef args[] = {access_unit_pointer(a, slot), words[slot]};
    call_intrinsic(a->cg, (IntrinsicId)(family(a->op) + row), a->op->loc, args, 2);
}

/* Only the block sees its shared memory. */
static void fence(Codegen *cg, const Op *op)
{
    bool global = op_memory_operand(op)->type->kind == TYPE_GLOBAL;
    AtomicScope scope = global ? atomic_scope(op) : SCOPE_BLOCK;
    call_intrinsic(cg, (IntrinsicId)(INTR_fence_block + (unsigned)scope), op->loc, NULL, 0);
}

/* Whether no lesser thread holds the elements of this one, an i1: it is the first of
 * its replicas. NULL without replicas. */
static LLVMValueRef is_least_holder(Codegen *cg, const Layout *l)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef all = NULL;
    int64_t below = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *digit = &l->spatial[i];
        below /= digit->extent;
        if (digit->mode >= 0)
            continue;
        LLVMValueRef v = LLVMBuildUDiv(b, cg->thread, const_i32_of(cg, (uint32_t)below), "");
        v = LLVMBuildURem(b, v, const_i32_of(cg, (uint32_t)digit->extent), "");
        v = LLVMBuildICmp(b, LLVMIntEQ, v, const_i32_of(cg, 0), "");
        all = all ? LLVMBuildAnd(b, all, v, "") : v;
    }
    return all;
}

/* Changes the tile, in one thread of those that hold the same elements. */
static void change_tile(MemoryAccess *a, LLVMValueRef *words)
{
    Codegen *cg = a->cg;
    LLVMValueRef acts = is_least_holder(cg, a->tile->layout);
    LLVMBasicBlockRef done = NULL;
    if (acts) {
        LLVMBasicBlockRef then =
            LLVMAppendBasicBlockInContext(cg->context, cg->function, "holder");
        done = LLVMAppendBasicBlockInContext(cg->context, cg->function, "changed");
        LLVMBuildCondBr(cg->builder, acts, then, done);
        LLVMPositionBuilderAtEnd(cg->builder, then);
    }
    access_locate_thread(a);
    access_move_units(a, words);
    if (done) {
        LLVMBuildBr(cg->builder, done);
        LLVMPositionBuilderAtEnd(cg->builder, done);
    }
}

static bool emit_atomic(Codegen *cg, const Op *op)
{
    enum { WORD_BYTES = 4 };
    AtomicOrder order = atomic_order(op);
    MemoryTile tile = op_memory_tile(op);
    MemoryAccess a;
    if (order == ORDER_RELEASE || order == ORDER_ACQ_REL)
        fence(cg, op);
    access_open(cg, op, &a);
    a.plan = (Access){.via = VIA_units, .unit = 1, .bytes = WORD_BYTES,
                      .checked = access_checked_dims(&tile)};
    a.move = change_slot;
    change_tile(&a, lowered_words(op->operands[0]));
    if (order == ORDER_ACQUIRE || order == ORDER_ACQ_REL)
        fence(cg, op);
    return true;
}

bool emit_atomic_add(Codegen *cg, const Op *op) { return emit_atomic(cg, op); }
bool emit_atomic_max(Codegen *cg, const Op *op) { return emit_atomic(cg, op); }
bool emit_atomic_min(Codegen *cg, const Op *op) { return emit_atomic(cg, op); }
bool emit_atomic_exch(Codegen *cg, const Op *op) { return emit_atomic(cg, op); }
