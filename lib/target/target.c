#include "target/target.h"

#include <string.h>

static const Target targets[] = {
#define TARGET(id, sm, ptx, shared, warps, own)                               \
    {#id, sm, ptx, (int64_t)(shared) * 1024, warps, own},
#include "target/targets.def"
};

enum { TARGET_COUNT = sizeof targets / sizeof *targets };

const Target *target_at(size_t i)
{
    return i < TARGET_COUNT ? &targets[i] : NULL;
}

const Target *target_find(const char *name)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (!strcmp(targets[i].name, name))
            return &targets[i];
    return NULL;
}

const char *target_name_of(unsigned sm)
{
    for (size_t i = 0; i < TARGET_COUNT; i++)
        if (targets[i].sm == sm)
            return targets[i].name;
    return NULL;
}

const Target *target_for(int capability)
{
    const Target *best = NULL;
    for (const Target *t = targets; t < targets + TARGET_COUNT; t++) {
        /* Code for an architecture's own features ("a") runs nowhere else. */
        bool runs = t->own ? (int)t->sm == capability : (int)t->sm <= capability;
        if (runs && (!best || t->sm > best->sm || t->own))
            best = t;
    }
    return best;
}

const char *target_name_for(int capability)
{
    const Target *target = target_for(capability);
    return target ? target->name : NULL;
}
