/* Loading and launching programs. */
#include "rt.h"

#include <stdlib.h>
#include <string.h>

/* Dynamic shared memory that every kernel may use without asking (CUDA
 * programming guide, 16.4), bytes. */
enum { SHARED_WITHOUT_ASKING = 48 * 1024 };

/* One parameter in the form that its PTX declaration has. */
typedef union Parameter {
    uint64_t u64;
    int64_t s64;
    uint32_t u32;
    int32_t s32;
} Parameter;

struct tilus_kernel {
    tilus_rt *rt;
    tilus_kernel_info *info;
    CUmodule module;            /* NULL until loaded */
    CUfunction function;
    int registers, local_bytes;
    Parameter *parameters;      /* one launch's, so that launching allocates nothing */
    void **pointers;            /* to each of them */
};

/* ---- loading -------------------------------------------------------- */

static tilus_kernel *kernel_new(tilus_rt *rt, const tilus_kernel_info *info)
{
    tilus_kernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        return NULL;
    size_t count = info->arg_count + 1;     /* the last is the workspace */
    kernel->rt = rt;
    kernel->info = info_copy(info);
    kernel->parameters = calloc(count, sizeof *kernel->parameters);
    kernel->pointers = calloc(count, sizeof *kernel->pointers);
    if (!kernel->info || !kernel->parameters || !kernel->pointers) {
        tilus_kernel_unload(kernel);
        return NULL;
    }
    for (size_t i = 0; i < count; i++)
        kernel->pointers[i] = &kernel->parameters[i];
    return kernel;
}

/* Adds what the JIT compiler said to the kept failure. */
static void append_log(tilus_rt *rt, const char *log)
{
    size_t len = strlen(log), used = strlen(rt->message);
    while (len > 0 && (log[len - 1] == '\n' || log[len - 1] == ' '))
        len--;
    if (len == 0 || used + 1 + len >= sizeof rt->message)
        return;
    rt->message[used] = '\n';
    memcpy(rt->message + used + 1, log, len);
    rt->message[used + 1 + len] = 0;
}

static tilus_status load_module(tilus_kernel *kernel, const char *ptx)
{
    tilus_rt *rt = kernel->rt;
    tilus_status status = TILUS_OK;
    char log[RT_JIT_LOG] = "";
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    CHECK(rt, cuModuleLoadDataEx(&kernel->module, ptx, 2, options, values));
done:
    if (status != TILUS_OK) {
        kernel->module = NULL;
        log[sizeof log - 1] = 0;
        append_log(rt, log);
    }
    return status;
}

static tilus_status prepare_function(tilus_kernel *kernel)
{
    tilus_rt *rt = kernel->rt;
    const tilus_kernel_info *info = kernel->info;
    tilus_status status = TILUS_OK;
    CHECK(rt, cuModuleGetFunction(&kernel->function, kernel->module, info->name));
    CHECK(rt, cuFuncGetAttribute(&kernel->registers, CU_FUNC_ATTRIBUTE_NUM_REGS,
                                 kernel->function));
    CHECK(rt, cuFuncGetAttribute(&kernel->local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                 kernel->function));
    if (info->shared_bytes > INT32_MAX)
        return rt_error(rt, TILUS_ERROR_UNSUPPORTED,
                        "program needs %zu bytes of shared memory", info->shared_bytes);
    if (info->shared_bytes > SHARED_WITHOUT_ASKING)
        CHECK(rt, cuFuncSetAttribute(kernel->function,
                                     CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     (int)info->shared_bytes));
done:
    return status;
}

tilus_status tilus_kernel_load(tilus_rt *rt, const char *ptx, const tilus_kernel_info *info,
                               tilus_kernel **out)
{
    *out = NULL;
    tilus_kernel *kernel = kernel_new(rt, info);
    if (!kernel)
        return rt_error(rt, TILUS_ERROR_MEMORY, "out of memory");
    tilus_status status = rt_enter(rt);
    if (status == TILUS_OK) {
        status = load_module(kernel, ptx);
        if (status == TILUS_OK)
            status = prepare_function(kernel);
        status = rt_leave(rt, status);
    }
    if (status == TILUS_OK)
        *out = kernel;
    else
        tilus_kernel_unload(kernel);
    return status;
}

/* Keeps the last failure's text: it may be why the kernel is unloaded. */
void tilus_kernel_unload(tilus_kernel *kernel)
{
    if (!kernel)
        return;
    CudaApi *api = &kernel->rt->api;
    CUcontext popped;
    if (kernel->module && api->cuCtxPushCurrent(kernel->rt->context) == CUDA_SUCCESS) {
        api->cuModuleUnload(kernel->module);
        api->cuCtxPopCurrent(&popped);
    }
    free(kernel->info);
    free(kernel->parameters);
    free(kernel->pointers);
    free(kernel);
}

int tilus_kernel_registers(const tilus_kernel *kernel)
{
    return kernel->registers;
}

int tilus_kernel_local_bytes(const tilus_kernel *kernel)
{
    return kernel->local_bytes;
}

/* ---- launching ------------------------------------------------------ */

static void pack_parameters(tilus_kernel *kernel, const tilus_arg *args)
{
    for (size_t i = 0; i < kernel->info->arg_count; i++) {
        Parameter *p = &kernel->parameters[i];
        switch (kernel->info->args[i].kind) {
        case TILUS_ARG_POINTER: p->u64 = args[i].pointer; break;
        case TILUS_ARG_I32: p->s32 = (int32_t)args[i].integer; break;
        case TILUS_ARG_U32: p->u32 = (uint32_t)args[i].integer; break;
        case TILUS_ARG_I64: p->s64 = args[i].integer; break;
        }
    }
}

/* A launch that has been checked. */
typedef struct Launch {
    int64_t grid[3];
    size_t workspace, zeroed;   /* bytes that it needs, and that are filled before */
} Launch;

static tilus_status check_launch(tilus_kernel *kernel, const tilus_arg *args, size_t count,
                                 Launch *l)
{
    tilus_rt *rt = kernel->rt;
    tilus_status status = tilus_kernel_check(kernel->info, args, count, l->grid, rt->message,
                                             sizeof rt->message);
    if (status != TILUS_OK)
        return status;
    return tilus_kernel_workspace_size(kernel->info, args, &l->workspace, &l->zeroed,
                                       rt->message, sizeof rt->message);
}

static tilus_status check_workspace(tilus_rt *rt, const Launch *l, uint64_t workspace,
                                    size_t size)
{
    if (size < l->workspace)
        return rt_error(rt, TILUS_ERROR_ARGUMENT, "a workspace of %zu bytes, this launch needs "
                        "%zu", size, l->workspace);
    if (l->workspace && workspace % TILUS_WORKSPACE_ALIGN)
        return rt_error(rt, TILUS_ERROR_ARGUMENT, "the workspace at 0x%llx is not aligned to %d "
                        "bytes", (unsigned long long)workspace, TILUS_WORKSPACE_ALIGN);
    return TILUS_OK;
}

tilus_status tilus_workspace_size(tilus_kernel *kernel, const tilus_arg *args, size_t count,
                                  size_t *size)
{
    Launch l = {0};
    tilus_status status = check_launch(kernel, args, count, &l);
    *size = l.workspace;
    return status;
}

tilus_status tilus_launch(tilus_kernel *kernel, tilus_stream stream, const tilus_arg *args,
                          size_t count, uint64_t workspace, size_t size)
{
    tilus_rt *rt = kernel->rt;
    const tilus_kernel_info *info = kernel->info;
    Launch l;
    tilus_status status = check_launch(kernel, args, count, &l);
    if (status != TILUS_OK || l.grid[0] == 0 || l.grid[1] == 0 || l.grid[2] == 0)
        return status;      /* an empty grid runs nothing; the driver would refuse it */
    status = check_workspace(rt, &l, workspace, size);
    if (status != TILUS_OK)
        return status;
    pack_parameters(kernel, args);
    kernel->parameters[info->arg_count].u64 = workspace;
    status = rt_enter(rt);
    if (status != TILUS_OK)
        return status;
    if (l.zeroed)
        CHECK(rt, cuMemsetD8Async(workspace, 0, l.zeroed, stream));
    CHECK(rt, cuLaunchKernel(kernel->function, (unsigned)l.grid[0], (unsigned)l.grid[1],
                             (unsigned)l.grid[2], info->threads, 1, 1,
                             (unsigned)info->shared_bytes, stream, kernel->pointers, NULL));
done:
    return rt_leave(rt, status);
}
