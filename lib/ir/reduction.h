/* Reductions of bulk stores (reduction.def). */
#ifndef TILUS_IR_REDUCTION_H
#define TILUS_IR_REDUCTION_H

#include "ir/op_attrs.h"

/* Returns true when the copy unit combines elements of the type so. */
bool reduction_takes(Reduction r, DType t);

/* The types that it takes, as "i32, u32 or f16". */
const char *reduction_types_text(Arena *arena, Reduction r);

/* The code that a place gets, from its code before and the element's: as the ops of that
 * name have it. */
uint64_t reduction_combine(Reduction r, DType t, uint64_t before, uint64_t code);

#endif
