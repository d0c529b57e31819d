/* Operations of bf16 that LLVM compiles wrong for a processor without it. */
#ifndef TILUS_CPU_BF16_H
#define TILUS_CPU_BF16_H

#include <llvm-c/Core.h>

/* Replaces roundings of f32 to bf16, and maxima and minima of pairs of bf16, in all functions
 * of a module that is not optimized yet. */
void bf16_legalize(LLVMModuleRef m);

#endif
