/* The parts of descriptions and artefacts one by one. */
#include "tilus/artefact.h"

/* ---- descriptions ------------------------------------------------------------- */

const char *tilus_kernel_name(const tilus_kernel_info *info) { return info->name; }

size_t tilus_kernel_arg_count(const tilus_kernel_info *info) { return info->arg_count; }

/* The i-th argument, or one of no name past the last. */
static const tilus_arg_info *argument(const tilus_kernel_info *info, size_t i)
{
    static const tilus_arg_info none = {.name = "", .dtype = "", .divisible = 1, .align = 1};
    return i < info->arg_count ? &info->args[i] : &none;
}

const char *tilus_kernel_arg_name(const tilus_kernel_info *info, size_t i)
{
    return argument(info, i)->name;
}

tilus_arg_kind tilus_kernel_arg_kind(const tilus_kernel_info *info, size_t i)
{
    return argument(info, i)->kind;
}

const char *tilus_kernel_arg_type(const tilus_kernel_info *info, size_t i)
{
    return argument(info, i)->dtype;
}

int64_t tilus_kernel_arg_divisible(const tilus_kernel_info *info, size_t i)
{
    return argument(info, i)->divisible;
}

void tilus_kernel_arg_range(const tilus_kernel_info *info, size_t i, int64_t *min, int64_t *max)
{
    *min = argument(info, i)->min;
    *max = argument(info, i)->max;
}

int64_t tilus_kernel_arg_align(const tilus_kernel_info *info, size_t i)
{
    const tilus_arg_info *a = argument(info, i);
    return a->kind == TILUS_ARG_POINTER ? a->align : 1;
}

unsigned tilus_kernel_threads(const tilus_kernel_info *info) { return info->threads; }

size_t tilus_kernel_shared_bytes(const tilus_kernel_info *info) { return info->shared_bytes; }

unsigned tilus_kernel_grid_rank(const tilus_kernel_info *info) { return info->grid_rank; }

void tilus_kernel_cluster(const tilus_kernel_info *info, unsigned cluster[3])
{
    for (unsigned d = 0; d < 3; d++)
        cluster[d] = info->cluster[d] ? info->cluster[d] : 1;
}

bool tilus_kernel_overlaps(const tilus_kernel_info *info) { return info->overlaps; }

bool tilus_kernel_cooperative(const tilus_kernel_info *info) { return info->cooperative; }

/* ---- artefacts ------------------------------------------------------------------ */

const tilus_kernel_info *tilus_artefact_kernel(const tilus_artefact *artefact)
{
    return artefact->info;
}

const char *tilus_artefact_target(const tilus_artefact *artefact) { return artefact->target; }

unsigned tilus_artefact_ptx_version(const tilus_artefact *artefact)
{
    return artefact->ptx_version;
}

const char *tilus_artefact_ptx(const tilus_artefact *artefact) { return artefact->ptx; }

const void *tilus_artefact_cubin(const tilus_artefact *artefact, size_t *size)
{
    *size = artefact->cubin_size;
    return artefact->cubin;
}

const char *tilus_artefact_source(const tilus_artefact *artefact) { return artefact->source; }

const char *tilus_artefact_parameters(const tilus_artefact *artefact)
{
    return artefact->parameters;
}

const char *tilus_artefact_compiler(const tilus_artefact *artefact)
{
    return artefact->compiler;
}
