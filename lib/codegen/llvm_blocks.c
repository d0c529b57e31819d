/* Long basic blocks in pieces. LLVM selects instructions from one DAG for each basic block, in time
 * that grows with the square of its size: 2.1 million elements of 32 threads would take half a
 * minute. A piece branches to the next one, and ptxas joins the two again:
 *
 *   entry:                        entry:
 *     a                             a
 *     b                  =>         br label %piece
 *     br label %next              piece:
 *                                   b
 *                                   br label %next */
#include "codegen/internal.h"

/* The instructions of a piece. The block that others take for the predecessor of a PHI keeps its
 * terminator, so that no PHI changes: what comes first moves. */
enum { PIECE = 1024 };

/* Returns true when `i` opens the block that it stands in: PHIs do, and the allocas of an entry. */
static bool opens_block(LLVMValueRef i)
{
    LLVMOpcode code = LLVMGetInstructionOpcode(i);
    return code == LLVMPHI || code == LLVMAlloca;
}

static LLVMValueRef next_alloca(LLVMValueRef i)
{
    while (i && LLVMGetInstructionOpcode(i) != LLVMAlloca)
        i = LLVMGetNextInstruction(i);
    return i;
}

static void move(LLVMBuilderRef to, LLVMValueRef i)
{
    LLVMInstructionRemoveFromParent(i);
    LLVMInsertIntoBuilder(to, i);
}

/* Moves the allocas of the entry to its begin: in another block they would be dynamic. */
static void gather_allocas(LLVMBuilderRef builder, LLVMBasicBlockRef entry)
{
    LLVMValueRef first = LLVMGetFirstInstruction(entry);
    while (first && LLVMGetInstructionOpcode(first) == LLVMAlloca)
        first = LLVMGetNextInstruction(first);
    for (LLVMValueRef i = next_alloca(first), next; i; i = next) {
        next = next_alloca(LLVMGetNextInstruction(i));
        LLVMPositionBuilderBefore(builder, first);
        move(builder, i);
    }
}

static bool is_long(LLVMBasicBlockRef block)
{
    unsigned count = 0;
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i && count <= 2 * PIECE;
         i = LLVMGetNextInstruction(i))
        count++;
    return count > 2 * PIECE;
}

/* Has all branches to `block` lead to `to`: not by LLVMReplaceAllUsesWith, which would also change
 * PHIs that name the block. */
static void redirect(LLVMBasicBlockRef block, LLVMBasicBlockRef to)
{
    LLVMUseRef use;
    while ((use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block))) != NULL) {
        LLVMValueRef branch = LLVMGetUser(use);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++)
            if (LLVMGetSuccessor(branch, i) == block)
                LLVMSetSuccessor(branch, i, to);
    }
}

/* Moves the first instructions of `block` into a block of their own before it. */
static void split_head(Codegen *cg, LLVMBuilderRef builder, LLVMBasicBlockRef block)
{
    LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(cg->context, block, "piece");
    redirect(block, head);
    LLVMPositionBuilderAtEnd(builder, head);
    for (unsigned n = 0; n < PIECE || opens_block(LLVMGetFirstInstruction(block)); n++)
        move(builder, LLVMGetFirstInstruction(block));
    LLVMBuildBr(builder, block);
}

void llvm_split_blocks(Codegen *cg)
{
    LLVMBuilderRef builder = LLVMCreateBuilderInContext(cg->context);
    for (LLVMValueRef f = LLVMGetFirstFunction(cg->llvm); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b)) {
            if (!is_long(b))
                continue;
            if (b == LLVMGetEntryBasicBlock(f))
                gather_allocas(builder, b);
            while (is_long(b))
                split_head(cg, builder, b);
        }
    LLVMDisposeBuilder(builder);
}
