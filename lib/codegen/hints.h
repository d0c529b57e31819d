/* Accesses of global memory with hints for the caches (attributes `prefetch` and
 * `evict`), which LLVM's loads and stores cannot carry. */
#ifndef TILUS_CODEGEN_HINTS_H
#define TILUS_CODEGEN_HINTS_H

#include "codegen/memory.h"

/* Returns true when `op` gives a hint. */
bool hint_is_given(const Op *op);

/* Loads and stores `bytes` bytes, HINT_LEAST or more, at `pointer` as i32 words.
 * Every target has the instructions. */
void hint_load(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef pointer,
               LLVMValueRef *words);
void hint_store(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef pointer,
                LLVMValueRef *words);

/* Copies `copied` (an i32) of `bytes` bytes, 4, 8 or 16, to shared memory, and
 * zeros for the rest. */
void hint_copy(Codegen *cg, const Op *op, unsigned bytes, LLVMValueRef target,
               LLVMValueRef source, LLVMValueRef copied);

/* Appends the operand for the cache policy that `op` asks for, if it does. */
void hint_policy(Codegen *cg, const Op *op, LLVMValueRef *args, unsigned *count);

#endif
