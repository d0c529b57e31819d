/* LLVM's ORC JIT. */
#ifndef TILUS_CPU_JIT_H
#define TILUS_CPU_JIT_H

#include "cpu/host.h"

/* A target machine of this computer, which the caller disposes of; NULL after an
 * error. */
LLVMTargetMachineRef jit_machine(Codegen *cg, unsigned opt_level);

/* Takes the LLVM module and its context out of `cg`, compiles it and sets `*address`
 * to that of the function called `name`. NULL after an error. */
HostCode *jit_load(Codegen *cg, unsigned opt_level, const char *name, uintptr_t *address);
void jit_unload(HostCode *code);

#endif
