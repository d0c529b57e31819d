/* One load or store of a register tile while it is lowered. */
#ifndef TILUS_CODEGEN_MEMORY_H
#define TILUS_CODEGEN_MEMORY_H

#include "analysis/access.h"
#include "codegen/internal.h"

#include <string.h>

typedef struct MemoryAccess {
    Codegen *cg;
    const Op *op;
    Access plan;
    const Type *tile;
    unsigned bits;                      /* of an element */
    const Lowered *memory;
    bool global;
    LLVMValueRef index[LIMIT_RANK];     /* in the view, of this thread's slot 0: i64 */
    LLVMValueRef linear;                /* the number of that element: i64 */
} MemoryAccess;

/* The element in `slot`: its first bit, counted from the base; an i64. */
LLVMValueRef access_slot_bit(const MemoryAccess *a, int64_t slot);
/* The address of byte `byte` (an i64) of the tensor. */
LLVMValueRef access_pointer(const MemoryAccess *a, LLVMValueRef byte);

/* Elements that begin at any bit (emit_bits.c): between memory and the bits of
 * `slot` in `words`. */
void load_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words);
void store_bits(const MemoryAccess *a, int64_t slot, LLVMValueRef *words);

#endif
