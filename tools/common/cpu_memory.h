/* Memory of the host that stands for a device's, for launches by the CPU engine. Memory is
 * named by addresses, into which one may point. One thread at a time. */
#ifndef TILUS_TOOLS_CPU_MEMORY_H
#define TILUS_TOOLS_CPU_MEMORY_H

#include "tilus/tilus.h"

enum { CPU_BLOCKS_MAX = 32, CPU_ARGUMENTS_MAX = 32 };

/* {0} is empty. */
typedef struct CpuMemory {
    tilus_buffer blocks[CPU_BLOCKS_MAX];    /* that are allocated; data is NULL of free ones */
    bool shared[CPU_BLOCKS_MAX];            /* as cpu_memory_share says */
} CpuMemory;

/* `size` bytes of zeros at a multiple of 256; 0 bytes have an address, too. False: out of
 * memory or of blocks. cpu_memory_release frees it; cpu_memory_free all. */
bool cpu_memory_allocate(CpuMemory *memory, size_t size, uint64_t *address);

/* Frees the block that begins there; ignores other addresses, 0 among them. */
void cpu_memory_release(CpuMemory *memory, uint64_t address);
void cpu_memory_free(CpuMemory *memory);

/* Gives arguments that point into the block which begins there access up to the block's end: their
 * data lie in turns, as those of several experts. Ignores other addresses. */
void cpu_memory_share(CpuMemory *memory, uint64_t address);

/* Arguments as tilus_run_on_cpu takes them: pointers are numbers of buffers. */
typedef struct CpuCall {
    tilus_arg args[CPU_ARGUMENTS_MAX];
    tilus_buffer buffers[CPU_ARGUMENTS_MAX];
} CpuCall;

/* Makes a call from arguments whose pointers are addresses. A buffer reaches from an
 * argument's address to the next one, of another argument or of its block's end, of a shared
 * block always to its end; memory after that is not the program's. Returns NULL, or the reason against a launch. */
const char *cpu_call_make(CpuCall *call, const CpuMemory *memory,
                          const tilus_kernel_info *info, const tilus_arg *args, size_t count);

#endif
