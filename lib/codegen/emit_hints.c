/* Hints for the caches become qualifiers of PTX's ld, st and cp.async (PTX ISA,
 * 9.7.9.8 and 9.7.9.1, cache eviction priority hints):
 *
 *     prefetch = 128      .L2::128B
 *     evict = first       .L2::cache_hint with an evict_first policy; of loads
 *                         .L1::no_allocate too: what is used once needs no place there
 *     evict = last        .L2::cache_hint with an evict_last policy
 *
 * The policy is made where it is used; equal ones are one after inlining. */
#include "codegen/hints.h"
#include "ir/op_attrs.h"

bool hint_is_given(const Op *op)
{
    return access_evict(op) != EVICT_NORMAL || access_prefetch(op);
}

static unsigned width_number(unsigned bytes)
{
    return bytes == 4 ? 0 : bytes == 8 ? 1 : 2;
}

static unsigned prefetch_number(const Op *op)
{
    unsigned bytes = access_prefetch(op);
    return bytes == 0 ? 0 : bytes == 64 ? 1 : bytes == 128 ? 2 : 3;
}

/* The row of a family whose first one is `ahead`, without a policy, or `policy`. */
static IntrinsicId row_of(const Op *op, unsigned bytes, IntrinsicId ahead, IntrinsicId policy)
{
    unsigned number = prefetch_number(op);
    if (access_evict(op) == EVICT_NORMAL)
        return ahead + 3 * width_number(bytes) + number - 1;
    return policy + 4 * width_number(bytes) + number;
}

void hint_policy(Codegen *cg, const Op *op, LLVMValueRef *args, unsigned *count)
{
    Evict evict = access_evict(op);
    IntrinsicId id = evict == EVICT_FIRST ? INTR_policy_first : INTR_policy_last;
    if (evict != EVICT_NORMAL)
        args[(*count)++] = call_intrinsic(cg, id, op->loc, NULL, 0);
}

void hint_load(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef pointer,
               LLVMValueRef *words)
{
    bool last = access_evict(op) == EVICT_LAST;
    unsigned count = 1;
    LLVMValueRef args[2] = {pointer};
    hint_policy(cg, op, args, &count);
    IntrinsicId id = row_of(op, bytes, INTR_load_4_ahead_64,
                            last ? INTR_load_4_last : INTR_load_4_first);
    LLVMValueRef v = call_intrinsic(cg, id, op->loc, args, count);
    for (unsigned i = 0; i < bytes / 4; i++)
        words[i] = bytes == 4 ? v : LLVMBuildExtractValue(cg->builder, v, i, "");
}

void hint_store(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef pointer,
                LLVMValueRef *words)
{
    unsigned count = 1 + bytes / 4;
    LLVMValueRef args[6] = {pointer};
    memcpy(args + 1, words, bytes / 4 * sizeof *words);
    hint_policy(cg, op, args, &count);
    call_intrinsic(cg, INTR_store_4_policy + width_number(bytes), op->loc, args, count);
}

void hint_copy(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef target,
               LLVMValueRef source, LLVMValueRef copied)
{
    LLVMValueRef args[] = {target, source, copied};
    IntrinsicId id = INTR_copy_4_ahead_64 + 3 * width_number(bytes) + prefetch_number(op) - 1;
    call_intrinsic(cg, id, op->loc, args, 3);
}
