/* The targets that can be compiled for. */
#include "codegen/internal.h"

#include <string.h>

static const Target targets[] = {
#define TARGET(id, sm, ptx, shared, warps, own)                               \
    {#id, sm, ptx, (int64_t)(shared) * 1024, warps, own},
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

/* "sm_80, sm_86, ..." */
static const char *known_targets(Module *m)
{
    Text text;
    text_init(&text, &m->arena);
    for (size_t i = 0; i < TARGET_COUNT; i++)
        text_printf(&text, "%s%s", i ? ", " : "", targets[i].name);
    return text_string(&text);
}

const Target *target_require(Module *m, const char *name)
{
    const Target *target = target_find(name);
    if (!target)
        diag_error(m->diag, (Loc){0}, "unknown target %s; known are %s", name, known_targets(m));
    return target;
}

unsigned codegen_target_sm(Module *m, const char *name)
{
    const Target *target = target_require(m, name);
    return target ? target->sm : 0;
}

const Target *target_at(size_t i)
{
    return i < TARGET_COUNT ? &targets[i] : NULL;
}

const char *codegen_target_name(size_t i)
{
    return i < TARGET_COUNT ? targets[i].name : NULL;
}
