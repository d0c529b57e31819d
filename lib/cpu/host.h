/* Host code from the LLVM module that becomes PTX. */
#ifndef TILUS_CPU_HOST_H
#define TILUS_CPU_HOST_H

#include "codegen/internal.h"
#include "tilus/tilus.h"

/* A compiled program, in executable memory. */
typedef struct HostCode HostCode;

/* Compiles the program that `cg` was made for, for the target and at the level of
 * `options`, and sets `*entry`: it runs one thread, with the program's arguments, 64
 * bits each, and after them the workspace's address where there is one. NULL after
 * errors, which the module's diag holds, or when memory runs out. `cg` is only good for
 * codegen_free then, and must live until this returns. */
HostCode *host_compile(Codegen *cg, const tilus_cpu_options *options, Program *p,
                       void (**entry)(const uint64_t *args));
void host_free(HostCode *code);

#endif
