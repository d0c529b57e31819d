/* Copying an artefact, with all that a launcher knows of its program. */
#include "rt.h"

#include "support/integer.h"

#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

/* A block that is measured in a first pass (`base` NULL) and filled in a
 * second. */
typedef struct Block {
    char *base;
    size_t used;
} Block;

static void *block_add(Block *b, const void *bytes, size_t size)
{
    char *place = b->base ? b->base + b->used : NULL;
    if (place && size > 0)
        memcpy(place, bytes, size);
    b->used += round_up_size(size, alignof(max_align_t));
    return place;
}

static const char *block_string(Block *b, const char *s)
{
    return s ? block_add(b, s, strlen(s) + 1) : NULL;
}

static const tilus_workspace_tensor *copy_workspace(Block *b, const tilus_kernel_info *info)
{
    size_t count = info->workspace_count;
    tilus_workspace_tensor *copy = block_add(b, info->workspace, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        const tilus_workspace_tensor *t = &info->workspace[i];
        const char *name = block_string(b, t->name);
        const size_t *lengths = block_add(b, t->extent_length, t->rank * sizeof *lengths);
        const tilus_code **extents = block_add(b, t->extents, t->rank * sizeof *extents);
        for (unsigned d = 0; d < t->rank; d++) {
            const tilus_code *codes = block_add(b, t->extents[d],
                                                t->extent_length[d] * sizeof *codes);
            if (extents)
                extents[d] = codes;
        }
        if (copy) {
            copy[i].name = name;
            copy[i].extent_length = lengths;
            copy[i].extents = extents;
        }
    }
    return copy;
}

/* The codes of `count` expressions, whose lengths are at *lengths. */
static const tilus_code **copy_codes(Block *b, const tilus_code *const *codes, unsigned count,
                                     const size_t **lengths)
{
    const size_t *lengths_of = *lengths;
    *lengths = block_add(b, lengths_of, count * sizeof *lengths_of);
    const tilus_code **copy = block_add(b, codes, count * sizeof *copy);
    for (unsigned d = 0; d < count; d++) {
        const tilus_code *one = block_add(b, codes[d], lengths_of[d] * sizeof *one);
        if (copy)
            copy[d] = one;
    }
    return copy;
}

static const tilus_tensor_map *copy_maps(Block *b, const tilus_kernel_info *info)
{
    size_t count = info->map_count;
    tilus_tensor_map *copy = block_add(b, info->maps, count * sizeof *copy);
    for (size_t i = 0; i < count; i++) {
        tilus_tensor_map t = info->maps[i];
        t.extents = copy_codes(b, t.extents, t.rank, &t.extent_length);
        t.strides = copy_codes(b, t.strides, t.rank - 1, &t.stride_length);
        if (copy)
            copy[i] = t;
    }
    return copy;
}

static tilus_kernel_info *copy_info(Block *b, const tilus_kernel_info *info)
{
    tilus_kernel_info *copy = block_add(b, info, sizeof *info);
    tilus_arg_info *args = block_add(b, info->args, info->arg_count * sizeof *args);
    for (size_t i = 0; i < info->arg_count; i++) {
        const char *name = block_string(b, info->args[i].name);
        const char *dtype = block_string(b, info->args[i].dtype);
        if (args) {
            args[i].name = name;
            args[i].dtype = dtype;
        }
    }
    const char *name = block_string(b, info->name);
    const tilus_workspace_tensor *workspace = copy_workspace(b, info);
    const tilus_tensor_map *maps = copy_maps(b, info);
    if (copy) {
        copy->maps = maps;
        copy->name = name;
        copy->args = args;
        copy->workspace = workspace;
    }
    for (size_t i = 0; i < 3; i++) {
        tilus_code *code = block_add(b, info->grid[i], info->grid_length[i] * sizeof *code);
        if (copy)
            copy->grid[i] = code;
    }
    return copy;
}

static tilus_artefact *copy_artefact(Block *b, const tilus_artefact *artefact)
{
    tilus_artefact *copy = block_add(b, artefact, sizeof *artefact);
    tilus_artefact parts = {
        .info = copy_info(b, artefact->info),
        .target = block_string(b, artefact->target),
        .ptx_version = artefact->ptx_version,
        .ptx = block_string(b, artefact->ptx),
        .cubin = artefact->cubin ? block_add(b, artefact->cubin, artefact->cubin_size) : NULL,
        .cubin_size = artefact->cubin ? artefact->cubin_size : 0,
        .source = block_string(b, artefact->source),
        .parameters = block_string(b, artefact->parameters),
        .compiler = block_string(b, artefact->compiler)};
    if (copy)
        *copy = parts;
    return copy;
}

tilus_artefact *artefact_copy(const tilus_artefact *artefact)
{
    Block block = {0};
    copy_artefact(&block, artefact);
    block.base = malloc(block.used);
    block.used = 0;
    return block.base ? copy_artefact(&block, artefact) : NULL;
}
