/* The CPU engine: compiled programs on this machine, without a GPU.
 *
 * The engine runs the module that code generation emits, so it finds faults of code
 * generation; the interpreter defines what a program means. See docs/cpu-engine.md. */
#ifndef TILUS_CPU_CPU_H
#define TILUS_CPU_CPU_H

#include "ir/ir.h"
#include "tilus/tilus.h"

/* A run: LLVM objects, code, memory, host threads. NULL when memory runs out.
 * Freed in any state, also when an arena's guard was taken in the middle. */
typedef struct CpuRun CpuRun;
CpuRun *cpu_new(Module *m);
void cpu_free(CpuRun *run);

/* A launch's arguments and buffers, checked as a launcher does. */
typedef struct CpuLaunch {
    Program *program;
    const tilus_kernel_info *info;
    int64_t grid[3];
    const tilus_arg *args;          /* a pointer's is its buffer's number */
    const size_t *offsets;          /* of each argument in its buffer; NULL: 0 */
    const tilus_buffer *buffers;    /* aligned to 256 bytes where there are offsets */
    size_t buffer_count;
    size_t workspace_bytes, workspace_zeroed;
} CpuLaunch;

/* Compiles, at the first call, and runs. All calls of a CpuRun are of one program, with equal
 * options. `times` may be NULL. Buffers get what was
 * written, also after a fault, which the module's diag holds. */
tilus_status cpu_run(CpuRun *run, const CpuLaunch *launch, const tilus_cpu_options *options,
                     tilus_cpu_times *times);

#endif
