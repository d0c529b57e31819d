/* Finding cuBLAS. */
#include "matmul/cublas.h"

#include <dlfcn.h>
#include <stdlib.h>

static void *open_library(void)
{
    static const char *const names[] = {"libcublas.so.13", "libcublas.so.12"};
    const char *path = getenv("TILUS_LIBCUBLAS");
    void *library = NULL;
    if (path)
        return *path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    return library;
}

bool cublas_find(DenseApi *api)
{
    void *library = open_library();
    const struct {
        const char *symbol;
        void *function;
    } all[] = {
        {"cublasCreate_v2", &api->create},         {"cublasDestroy_v2", &api->destroy},
        {"cublasSetStream_v2", &api->set_stream},
        {"cublasSetWorkspace_v2", &api->set_workspace}, {"cublasGemmEx", &api->multiply},
    };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (!library || !(*(void **)all[i].function = dlsym(library, all[i].symbol)))
            return false;
    return true;
}
