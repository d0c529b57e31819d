/* Finding the CUDA driver. */
#define _GNU_SOURCE
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The member of CudaApi for each symbol's address. */
static const struct {
    const char *name;
    size_t offset;
    bool optional;
} symbols[] = {
#define CUDA_API(name, symbol, parameters) {#symbol, offsetof(CudaApi, name), false},
#define CUDA_API_OPTIONAL(name, symbol, parameters) {#symbol, offsetof(CudaApi, name), true},
#include "cuda_api.def"
};

static bool find_symbols(void *library, CudaApi *api, const char *path, char *message,
                         size_t size)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address && !symbols[i].optional) {
            snprintf(message, size, "%s is too old: it has no %s; update the NVIDIA driver",
                     path, symbols[i].name);
            return false;
        }
        memcpy((char *)api + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

bool cuda_api_load(CudaApi *api, const char *path, char *message, size_t size)
{
    if (!path)
        path = getenv("TILUS_LIBCUDA");
    if (!path || !*path)
        path = "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(message, size, "no CUDA driver: %s", dlerror());
        return false;
    }
    if (!find_symbols(library, api, path, message, size)) {
        dlclose(library);
        return false;
    }
    return true;
}

bool cuda_api_has_libraries(const CudaApi *api)
{
    return api->cuLibraryLoadData && api->cuLibraryUnload && api->cuLibraryGetKernel &&
           api->cuKernelGetFunction;
}

bool cuda_api_has_graphs(const CudaApi *api)
{
    return api->cuGraphCreate && api->cuGraphDestroy && api->cuGraphAddKernelNode &&
           api->cuGraphAddDependencies && api->cuGraphInstantiate && api->cuGraphExecDestroy &&
           api->cuGraphExecKernelNodeSetParams && api->cuGraphLaunch;
}
