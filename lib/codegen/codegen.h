/* Code generation: a verified module becomes an LLVM module, then PTX.
 *
 * llvm-c is included only below lib/codegen (lib/cpu and lib/cache later). A
 * register tensor is, in each thread, an array of i32 values: its packed words
 * (see type_thread_words). Emitters build plain LLVM IR and calls of @tilus.*
 * functions (intrinsics.def), never NVVM intrinsics or inline assembly. */
#ifndef TILUS_CODEGEN_CODEGEN_H
#define TILUS_CODEGEN_CODEGEN_H

#include "ir/ir.h"
#include "tilus/tilus.h"

/* A compile: the LLVM objects that it holds. NULL when memory runs out. Freed
 * in any state, also when an arena's guard was taken in the middle. */
typedef struct Codegen Codegen;
Codegen *codegen_new(Module *m);
void codegen_free(Codegen *cg);

/* Compiles every program of the module, once for a Codegen. Returns malloc'ed
 * text, or NULL after errors, which the module's diag holds. `times` may be
 * NULL. */
char *codegen_module(Codegen *cg, const tilus_compile_options *options,
                     tilus_compile_times *times);

/* Bytes of shared memory a block of `p` needs; INT64_MAX past 2^63. */
int64_t codegen_shared_bytes(const Program *p);

/* The version of the LLVM library in this process, "22.1.8"; static storage.
 * Thread safe. */
const char *codegen_llvm_version(void);

/* Makes LLVM print its code around its passes, in the whole process. */
void codegen_print_llvm_passes(bool before, bool after);

/* The number of the target called `name`, 90 for sm_90a; 0 after an error. */
unsigned codegen_target_sm(Module *m, const char *name);

#endif
