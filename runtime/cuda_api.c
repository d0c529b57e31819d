/* Finding the CUDA driver. */
#define _GNU_SOURCE
#include "cuda_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where each symbol's address goes in a CudaApi. */
static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define CUDA_API(name, symbol, parameters) {#symbol, offsetof(CudaApi, name)},
#include "cuda_api.def"
};

static bool find_symbols(void *library, CudaApi *api, const char *path, char *message,
                         size_t size)
{
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            snprintf(message, size, "%s is too old: it has no %s", path, symbols[i].name);
            return false;
        }
        memcpy((char *)api + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

bool cuda_api_load(CudaApi *api, char *message, size_t size)
{
    const char *path = getenv("TILUS_LIBCUDA");
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
