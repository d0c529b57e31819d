/* Blocks by address, and buffers of them. */
#include "common/cpu_memory.h"

#include <stdlib.h>
#include <string.h>

static uint64_t address_of(const void *data)
{
    return (uint64_t)(uintptr_t)data;
}

/* ---- blocks ----------------------------------------------------------- */

bool cpu_memory_allocate(CpuMemory *memory, size_t size, uint64_t *address)
{
    enum { ALIGN = 256 };
    size_t i = 0, room = (size / ALIGN + 1) * ALIGN;
    while (i < CPU_BLOCKS_MAX && memory->blocks[i].data)
        i++;
    void *data = i < CPU_BLOCKS_MAX ? aligned_alloc(ALIGN, room) : NULL;
    if (!data)
        return false;
    memset(data, 0, room);
    memory->blocks[i] = (tilus_buffer){data, size};
    *address = address_of(data);
    return true;
}

void cpu_memory_release(CpuMemory *memory, uint64_t address)
{
    for (size_t i = 0; i < CPU_BLOCKS_MAX && address; i++)
        if (address_of(memory->blocks[i].data) == address) {
            free(memory->blocks[i].data);
            memory->blocks[i] = (tilus_buffer){0};
            memory->shared[i] = false;
        }
}

void cpu_memory_share(CpuMemory *memory, uint64_t address)
{
    for (size_t i = 0; i < CPU_BLOCKS_MAX && address; i++)
        if (address_of(memory->blocks[i].data) == address)
            memory->shared[i] = true;
}

void cpu_memory_free(CpuMemory *memory)
{
    for (size_t i = 0; i < CPU_BLOCKS_MAX; i++)
        free(memory->blocks[i].data);
    *memory = (CpuMemory){0};
}

/* The block that holds the address, or ends there; NULL: none does. */
static const tilus_buffer *find_block(const CpuMemory *memory, uint64_t address)
{
    const tilus_buffer *at_end = NULL;
    for (size_t i = 0; i < CPU_BLOCKS_MAX; i++) {
        const tilus_buffer *block = &memory->blocks[i];
        uint64_t first = address_of(block->data), end = first + block->size;
        if (first && address >= first && address < end)
            return block;
        if (first && address == end)
            at_end = block;
    }
    return at_end;
}

/* ---- calls ------------------------------------------------------------ */

static bool is_pointer(const tilus_kernel_info *info, size_t i)
{
    return info->args[i].kind == TILUS_ARG_POINTER;
}

/* Data is NULL where there is no memory. */
static tilus_buffer find_buffer(const CpuMemory *memory, const tilus_kernel_info *info,
                                const tilus_arg *args, uint64_t address)
{
    const tilus_buffer *block = find_block(memory, address);
    if (!block)
        return (tilus_buffer){0};
    uint64_t end = address_of(block->data) + block->size;
    bool shared = memory->shared[block - memory->blocks];
    for (size_t i = 0; !shared && i < info->arg_count; i++)
        if (is_pointer(info, i) && args[i].pointer > address && args[i].pointer < end)
            end = args[i].pointer;
    return (tilus_buffer){(void *)(uintptr_t)address, (size_t)(end - address)};
}

/* The first argument of the same address, as the engine takes buffers for different memory. */
static size_t first_with(const tilus_kernel_info *info, const tilus_arg *args,
                         uint64_t address)
{
    size_t i = 0;
    while (!is_pointer(info, i) || args[i].pointer != address)
        i++;
    return i;
}

const char *cpu_call_make(CpuCall *call, const CpuMemory *memory,
                          const tilus_kernel_info *info, const tilus_arg *args, size_t count)
{
    *call = (CpuCall){0};
    if (count != info->arg_count || count > CPU_ARGUMENTS_MAX)
        return "a launch with another number of arguments than the kernel has";
    for (size_t i = 0; i < count; i++) {
        call->args[i] = args[i];
        if (!is_pointer(info, i))
            continue;
        size_t first = first_with(info, args, args[i].pointer);
        call->args[i].pointer = first;
        call->buffers[first] = find_buffer(memory, info, args, args[i].pointer);
        if (!call->buffers[first].data)
            return "a pointer to no memory";
        if (args[i].pointer % (uint64_t)info->args[i].align)
            return "a pointer that is not aligned";
    }
    return NULL;
}
