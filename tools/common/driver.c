/* Finding the driver's calls. */
#define _GNU_SOURCE
#include "common/driver.h"

#include "common/options.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The member of Driver for each symbol's address. */
static const struct {
    const char *name;
    size_t offset;
} symbols[] = {
#define DRIVER(name, symbol, parameters) {#symbol, offsetof(Driver, name)},
#include "common/driver.def"
};

/* The library stays loaded, as the runtime leaves it. */
bool driver_load(Driver *driver, const char *user)
{
    const char *path = getenv("TILUS_LIBCUDA");
    if (!path || !*path)
        path = "libcuda.so.1";
    driver->user = user;
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s: no CUDA driver: %s\n", user, dlerror());
        return false;
    }
    for (size_t i = 0; i < COUNT(symbols); i++) {
        void *address = dlsym(library, symbols[i].name);
        if (!address) {
            fprintf(stderr, "%s: %s is too old: it has no %s\n", user, path, symbols[i].name);
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
    fprintf(stderr, "%s: %s: %s (%d)\n", driver->user, call, name, result);
    return false;
}
