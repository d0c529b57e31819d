/* Pieces of the code of mbarriers and of the copies by one thread (emit_mbarrier.c). */
#ifndef TILUS_CODEGEN_BULK_H
#define TILUS_CODEGEN_BULK_H

#include "codegen/memory.h"

/* Adds a block to the function that is being lowered. */
LLVMBasicBlockRef new_block(Codegen *cg, const char *name);

/* The address of the mbarrier of `op`, its last operand. */
LLVMValueRef mbarrier_pointer(Codegen *cg, const Op *op);

/* Begins code of the threads alone whose `number` (an i32) is 0; all threads join in the
 * block that is returned, which end_single begins. */
LLVMBasicBlockRef begin_single(Codegen *cg, LLVMValueRef number);
void end_single(Codegen *cg, LLVMBasicBlockRef all);

/* Blocks in which the lanes of the first warp and all warps join. */
typedef struct Elected {
    LLVMBasicBlockRef lanes, warps;
} Elected;

/* Begins code of one elected lane (elect.sync) of the first warp that runs `op`; false after
 * an error. */
bool begin_elected(Codegen *cg, const Op *op, Elected *e);
void end_elected(Codegen *cg, const Elected *e);

/* Begins a program: has thread 0 fetch its tensor maps, which the first copies would wait for. */
bool emit_map_prefetches(Codegen *cg);

#endif
