/* Writes an artefact: a first pass measures, a second fills. */
#include "artefact_format.h"
#include "rt.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

typedef struct Output {
    unsigned char *base;        /* NULL in the first pass */
    size_t used;
} Output;

static void put(Output *o, const void *bytes, size_t size)
{
    if (o->base && size > 0)
        memcpy(o->base + o->used, bytes, size);
    o->used += size;
}

/* The lowest `size` bytes of a number. */
static void put_number(Output *o, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)(value >> 8 * i);
        put(o, &byte, 1);
    }
}

static void put_zeros(Output *o, size_t size)
{
    for (; size > 0; size--)
        put(o, "", 1);
}

/* Puts a number where there are already bytes. */
static void put_number_at(Output *o, size_t at, uint64_t value, unsigned size)
{
    Output there = {o->base, at};
    put_number(&there, value, size);
}

/* A word, "" for NULL: its length, and its bytes with the NUL. */
static void put_word(Output *o, const char *word)
{
    size_t length = word ? strlen(word) : 0;
    put_number(o, length, 4);
    put(o, word ? word : "", length + 1);
}

static void put_codes(Output *o, const tilus_code *codes, size_t length)
{
    put_number(o, length, 4);
    for (size_t i = 0; i < length; i++) {
        put_number(o, codes[i].kind, 1);
        put_number(o, (uint64_t)codes[i].value, 8);
    }
}

/* ---- what a launcher must know --------------------------------------- */

static void put_arg(Output *o, const tilus_arg_info *a)
{
    put_word(o, a->name);
    put_word(o, a->dtype);
    put_number(o, a->kind, 1);
    put_number(o, (uint64_t)a->divisible, 8);
    put_number(o, (uint64_t)a->min, 8);
    put_number(o, (uint64_t)a->max, 8);
    put_number(o, (uint64_t)a->align, 8);
}

static void put_tensor(Output *o, const tilus_workspace_tensor *t)
{
    put_word(o, t->name);
    put_number(o, t->bits, 4);
    put_number(o, t->zeroed, 1);
    put_number(o, t->rank, 4);
    for (unsigned d = 0; d < t->rank; d++)
        put_codes(o, t->extents[d], t->extent_length[d]);
}

static void put_map(Output *o, const tilus_tensor_map *t)
{
    put_number(o, t->argument, 4);
    put_number(o, t->type, 1);
    put_number(o, t->swizzle, 4);
    put_number(o, t->promotion, 4);
    put_number(o, t->rank, 4);
    for (unsigned d = 0; d < t->rank; d++) {
        put_number(o, t->box[d], 4);
        put_codes(o, t->extents[d], t->extent_length[d]);
        if (d + 1 < t->rank)
            put_codes(o, t->strides[d], t->stride_length[d]);
    }
}

static void put_info(Output *o, const tilus_kernel_info *info)
{
    put_word(o, info->name);
    put_number(o, info->threads, 4);
    put_number(o, info->shared_bytes, 8);
    put_number(o, info->arg_count, 4);
    for (size_t i = 0; i < info->arg_count; i++)
        put_arg(o, &info->args[i]);
    put_number(o, info->grid_rank, 4);
    for (unsigned d = 0; d < info->grid_rank; d++)
        put_codes(o, info->grid[d], info->grid_length[d]);
    put_number(o, info->workspace_count, 4);
    for (size_t i = 0; i < info->workspace_count; i++)
        put_tensor(o, &info->workspace[i]);
    put_number(o, info->overlaps, 1);
    put_number(o, info->map_count, 4);
    for (size_t i = 0; i < info->map_count; i++)
        put_map(o, &info->maps[i]);
    for (unsigned d = 0; d < 3; d++)
        put_number(o, info->cluster[d], 4);
    put_number(o, info->cooperative, 1);
}

/* ---- sections ------------------------------------------------------- */

/* Puts a section's head, whose size end_section knows; returns where it begins. */
static size_t begin_section(Output *o, ArtefactSection section)
{
    put_number(o, section, 4);
    put_zeros(o, ARTEFACT_SECTION_HEAD - 4);
    return o->used;
}

static void end_section(Output *o, size_t begin)
{
    put_number_at(o, begin - 8, o->used - begin, 8);
    put_zeros(o, -o->used % ARTEFACT_ALIGN);
}

static void put_section(Output *o, ArtefactSection section, const void *bytes, size_t size)
{
    size_t begin = begin_section(o, section);
    put(o, bytes, size);
    end_section(o, begin);
}

static void put_text(Output *o, ArtefactSection section, const char *text)
{
    put_section(o, section, text, strlen(text) + 1);
}

static void put_artefact(Output *o, const tilus_artefact *a)
{
    put(o, ARTEFACT_MAGIC, ARTEFACT_AT_VERSION);
    put_number(o, TILUS_ARTEFACT_VERSION, 4);
    put_zeros(o, ARTEFACT_HEADER - ARTEFACT_AT_CHECKSUM);
    size_t begin = begin_section(o, SECTION_INFO);
    put_info(o, a->info);
    end_section(o, begin);
    put_text(o, SECTION_TARGET, a->target);
    begin = begin_section(o, SECTION_PTX_VERSION);
    put_number(o, a->ptx_version, 4);
    end_section(o, begin);
    put_text(o, SECTION_PTX, a->ptx);
    put_section(o, SECTION_CUBIN, a->cubin, a->cubin ? a->cubin_size : 0);
    put_text(o, SECTION_SOURCE, a->source);
    put_text(o, SECTION_PARAMETERS, a->parameters);
    put_text(o, SECTION_COMPILER, a->compiler);
}

static tilus_status fail_size(size_t size)
{
    return rt_fail(TILUS_ERROR_ARGUMENT, "an artefact of %zu bytes, more than %d", size,
                   TILUS_ARTEFACT_MAX);
}

tilus_status tilus_artefact_write(const tilus_artefact *artefact, void **bytes, size_t *size)
{
    char message[RT_LINE / 2];
    if (bytes)
        *bytes = NULL;
    if (size)
        *size = 0;
    if (!bytes || !size || !artefact)
        return !bytes ? RT_FAIL_NULL(bytes) : !size ? RT_FAIL_NULL(size) : RT_FAIL_NULL(artefact);
    tilus_artefact a = *artefact;
    a.source = a.source ? a.source : "";
    a.parameters = a.parameters ? a.parameters : "";
    a.compiler = a.compiler ? a.compiler : "";
    if (a.cubin_size > TILUS_ARTEFACT_MAX)
        return fail_size(a.cubin_size);
    if (!artefact_check(&a, message, sizeof message))
        return rt_fail(TILUS_ERROR_ARGUMENT, "artefact: %s", message);
    Output o = {0};
    put_artefact(&o, &a);
    if (o.used > TILUS_ARTEFACT_MAX)
        return fail_size(o.used);
    o = (Output){.base = malloc(o.used)};
    if (!o.base)
        return rt_fail(TILUS_ERROR_MEMORY, "out of memory");
    put_artefact(&o, &a);
    assert(o.used <= TILUS_ARTEFACT_MAX);       /* as measured */
    put_number_at(&o, ARTEFACT_AT_SIZE, o.used, 8);
    put_number_at(&o, ARTEFACT_AT_CHECKSUM, artefact_checksum(o.base, o.used), 4);
    *bytes = o.base;
    *size = o.used;
    return TILUS_OK;
}
