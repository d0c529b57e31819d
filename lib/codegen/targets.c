/* The targets that can be compiled for. */
#include "codegen/internal.h"

#include <string.h>

static const Target targets[] = {
#define TARGET(id, sm, ptx, shared) {#id, sm, ptx, (int64_t)(shared) * 1024},
#include "codegen/targets.def"
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_find(const char *name)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const Target *target_at(size_t i)
{
    return i < TARGET_COUNT ? &targets[i] : NULL;
}

const char *codegen_target_name(size_t i)
{
    return i < TARGET_COUNT ? targets[i].name : NULL;
}
