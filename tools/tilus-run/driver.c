/* Finding the driver's calls. */
#define _GNU_SOURCE
#include "driver.h"

#include "run.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Where each symbol's address goes in a Driver. */
static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define DRIVER(name, symbol, parameters) {#symbol, offsetof(Driver, name)},
#include "driver.def"
};

/* The library stays loaded, as the runtime leaves it. */
bool driver_load(Driver *driver)
{
    const char *path = getenv("TILUS_LIBCUDA");
    if (!path || !*path)
        path = "libcuda.so.1";
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s: error: no CUDA driver: %s\n", TOOL, dlerror());
        return false;
    }
    for (size_t i = 0; i < COUNT(symbols); i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            fprintf(stderr, "%s: error: --bench: %s is too old: it has no %s\n", TOOL, path,
                    symbols[i].name);
            return false;
        }
        memcpy((char *)driver + symbols[i].offset, &address, sizeof address);
    }
    return true;
}

bool driver_check(const Driver *driver, CUresult result, const char *call)
{
    const char *name = NULL;
    if (result == 0)
        return true;
    if (driver->cuGetErrorName(result, &name) != 0 || !name)
        name = "unknown error";
    fprintf(stderr, "%s: error: --bench: %s: %s (%d)\n", TOOL, call, name, result);
    return false;
}
