/* Digits of thread numbers, as layouts have them. */
#include "codegen/memory.h"

/* Builds the digit of `thread`, an i32 below `count`. */
static LLVMValueRef build_digit(Codegen *cg, LLVMValueRef thread, int64_t count,
                                ThreadDigit digit)
{
    LLVMValueRef weight = const_i32_of(cg, (uint32_t)digit.weight);
    LLVMValueRef v = LLVMBuildUDiv(cg->builder, thread, weight, "");
    if (digit.weight * digit.extent == count)
        return v;
    return LLVMBuildURem(cg->builder, v, const_i32_of(cg, (uint32_t)digit.extent), "");
}

LLVMValueRef emit_thread_digit(Codegen *cg, ThreadDigit digit)
{
    return build_digit(cg, cg->thread, cg->threads.count, digit);
}

LLVMValueRef emit_thread_number(Codegen *cg, const ThreadDigits *digits)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef number = const_i32_of(cg, 0);
    for (unsigned i = 0; i < digits->count; i++) {
        LLVMValueRef extent = const_i32_of(cg, (uint32_t)digits->digit[i].extent);
        number = LLVMBuildNUWAdd(b, LLVMBuildNUWMul(b, number, extent, ""),
                                 emit_thread_digit(cg, digits->digit[i]), "");
    }
    return number;
}

/* The elements that one step of the mode moves in its dimension. */
static int64_t mode_weight(const Layout *l, unsigned mode)
{
    int64_t weight = 1;
    for (unsigned i = mode + 1; i < l->mode_count; i++)
        weight *= l->modes[i].dim == l->modes[mode].dim ? l->modes[i].extent : 1;
    return weight;
}

/* The sum of its spatial digits, each times the elements that one step moves. */
LLVMValueRef emit_thread_index(Codegen *cg, const Layout *l, unsigned dim, LLVMValueRef thread)
{
    LLVMBuilderRef b = cg->builder;
    LLVMValueRef sum = const_i32_of(cg, 0);
    int64_t below = l->threads;
    for (unsigned i = 0; i < l->spatial_count; i++) {
        const LayoutDigit *digit = &l->spatial[i];
        below /= digit->extent;
        if (digit->mode < 0 || l->modes[digit->mode].dim != dim)
            continue;
        LLVMValueRef v = build_digit(cg, thread, l->threads, (ThreadDigit){below, digit->extent});
        int64_t weight = mode_weight(l, (unsigned)digit->mode);
        v = LLVMBuildNUWMul(b, v, const_i32_of(cg, (uint32_t)weight), "");
        sum = LLVMBuildNUWAdd(b, sum, v, "");
    }
    return LLVMBuildZExt(b, sum, cg->i64, "");
}

/* Positions the builder where the code of the running threads begins: after their numbers. */
static void position_at_begin(Codegen *cg)
{
    bool here = LLVMGetInstructionParent(cg->first_thread) == cg->begin;
    LLVMValueRef next = here ? LLVMGetNextInstruction(cg->first_thread)
                             : LLVMGetFirstInstruction(cg->begin);
    if (next)
        LLVMPositionBuilderBefore(cg->builder, next);
    else
        LLVMPositionBuilderAtEnd(cg->builder, cg->begin);
}

LLVMValueRef uniform_warp(Codegen *cg, Loc at)
{
    enum { LANE_BITS = 5, LAST_LANE = 31 };
    LLVMBasicBlockRef block = LLVMGetInsertBlock(cg->builder);
    LLVMMetadataRef line = LLVMGetCurrentDebugLocation2(cg->builder);
    if (cg->warp)
        return cg->warp;
    position_at_begin(cg);
    LLVMValueRef warp = LLVMBuildLShr(cg->builder, cg->first_thread,
                                      const_i32_of(cg, LANE_BITS), "");
    LLVMValueRef args[] = {const_i32_of(cg, UINT32_MAX), warp, const_i32_of(cg, 0),
                           const_i32_of(cg, LAST_LANE)};
    cg->warp = call_intrinsic(cg, INTR_shuffle_index, at, args, 4);
    LLVMPositionBuilderAtEnd(cg->builder, block);
    LLVMSetCurrentDebugLocation2(cg->builder, line);      /* which a place before `next` changes */
    return cg->warp;
}

bool renew_thread(Codegen *cg, Loc at)
{
    LLVMValueRef index = call_intrinsic(cg, INTR_thread_again, at, NULL, 0);
    if (!index)
        return false;
    cg->thread = LLVMBuildSub(cg->builder, index,
                              const_i32_of(cg, (uint32_t)cg->threads.begin), "");
    return true;
}
