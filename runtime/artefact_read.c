/* Reading an artefact. The file is copied to right after the structures made from it, so that
 * texts and machine code need no copies of their own:
 *
 *   one block:  tilus_artefact | info | arrays | the file
 *
 * A first pass over the caller's bytes measures the structures, and refuses what is
 * damaged; a second one, over the copy, fills them. */
#include "artefact_format.h"

#include "support/integer.h"
#include "support/kernel_info.h"
#include "support/utf8.h"

#include <assert.h>
#include <inttypes.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    const unsigned char *bytes;
    size_t at, end;             /* what is left of the section, or of the file */
    char *base;                 /* where structures are made; NULL in the first pass */
    size_t used;                /* bytes of them */
    const char *section;        /* for messages */
    unsigned version;           /* of the file */
    bool failed;                /* refused; from here on all numbers are 0 */
    char *message;
    size_t message_size;
} Reader;

/* Describes the first reason to refuse the artefact. */
__attribute__((format(printf, 2, 3)))
static void refuse(Reader *r, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (!r->failed && r->message_size > 0)
        vsnprintf(r->message, r->message_size, format, args);
    va_end(args);
    r->failed = true;
}

/* ---- structures ------------------------------------------------------ */

/* Makes `count` structures of `size` bytes; NULL in the first pass. */
static void *make(Reader *r, size_t count, size_t size)
{
    char *place = r->base ? r->base + r->used : NULL;
    r->used += round_up_size(count * size, alignof(max_align_t));
    return place;
}

/* ---- bytes ----------------------------------------------------------- */

/* The next `size` bytes; NULL when there are fewer. */
static const unsigned char *take(Reader *r, size_t size)
{
    const unsigned char *bytes = r->bytes + r->at;
    if (!r->failed && size > r->end - r->at)
        refuse(r, "the %s is damaged: it has %zu bytes left where %zu should follow",
               r->section, r->end - r->at, size);
    if (r->failed)
        return NULL;
    r->at += size;
    return bytes;
}

static uint64_t take_number(Reader *r, unsigned size)
{
    const unsigned char *bytes = take(r, size);
    uint64_t value = 0;
    for (unsigned i = 0; bytes && i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

static int64_t take_signed(Reader *r)
{
    return (int64_t)take_number(r, 8);
}

static bool take_flag(Reader *r)
{
    uint64_t flag = take_number(r, 1);
    if (flag > 1)
        refuse(r, "the %s is damaged: %" PRIu64 " where 0 or 1 should be", r->section, flag);
    return flag == 1;
}

/* Reads the number of elements that follow, each of at least `least` bytes. */
static size_t take_count(Reader *r, size_t least)
{
    size_t count = (size_t)take_number(r, 4), left = (r->end - r->at) / least;
    if (count > left)
        refuse(r, "the %s is damaged: it counts %zu elements, %zu fit in", r->section, count,
               left);
    return r->failed ? 0 : count;
}

/* Reads `length` bytes of text and the NUL after them. */
static const char *take_text(Reader *r, size_t length)
{
    const char *text = (const char *)take(r, length + 1);
    if (!text)
        return "";
    if (text[length])
        refuse(r, "the %s is damaged: no NUL behind a text of %zu bytes", r->section, length);
    else if (!utf8_valid(text, length))
        refuse(r, "the %s is damaged: a text of %zu bytes is not UTF-8", r->section, length);
    return text;
}

static const char *take_word(Reader *r)
{
    size_t length = (size_t)take_number(r, 4);
    return take_text(r, length);
}

/* ---- what a launcher must know ---------------------------------------- */

static const tilus_code *take_codes(Reader *r, size_t *length)
{
    *length = take_count(r, ARTEFACT_CODE);
    tilus_code *codes = make(r, *length, sizeof *codes);
    for (size_t i = 0; i < *length; i++) {
        tilus_code code = {.kind = (tilus_code_kind)take_number(r, 1)};
        code.value = take_signed(r);
        if (codes)
            codes[i] = code;
    }
    return codes;
}

static tilus_arg_info take_arg(Reader *r)
{
    tilus_arg_info a = {.name = take_word(r)};
    a.dtype = take_word(r);
    a.kind = (tilus_arg_kind)take_number(r, 1);
    if (r->version < 3 && kernel_arg_is_float(a.kind))
        refuse(r, "argument %%%s is a float, in a file of version %u", a.name, r->version);
    a.divisible = take_signed(r);
    a.min = take_signed(r);
    a.max = take_signed(r);
    a.align = take_signed(r);
    return a;
}

static void take_args(Reader *r, tilus_kernel_info *info)
{
    enum { LEAST = 2 * (4 + 1) + 1 + 4 * 8 };
    info->arg_count = take_count(r, LEAST);
    tilus_arg_info *args = make(r, info->arg_count, sizeof *args);
    info->args = args;
    for (size_t i = 0; i < info->arg_count; i++) {
        tilus_arg_info a = take_arg(r);
        if (args)
            args[i] = a;
    }
}

static void take_grid(Reader *r, tilus_kernel_info *info)
{
    info->grid_rank = (unsigned)take_number(r, 4);
    if (info->grid_rank > 3)
        refuse(r, "a grid of %u dimensions, there are 1 to 3", info->grid_rank);
    for (unsigned d = 0; !r->failed && d < info->grid_rank; d++)
        info->grid[d] = take_codes(r, &info->grid_length[d]);
}

static tilus_workspace_tensor take_tensor(Reader *r)
{
    tilus_workspace_tensor t = {.name = take_word(r)};
    if (!*t.name)
        t.name = NULL;
    t.bits = (unsigned)take_number(r, 4);
    t.zeroed = take_flag(r);
    t.rank = (unsigned)take_count(r, 4);
    size_t *lengths = make(r, t.rank, sizeof *lengths);
    const tilus_code **extents = make(r, t.rank, sizeof *extents);
    for (unsigned d = 0; d < t.rank; d++) {
        size_t length;
        const tilus_code *codes = take_codes(r, &length);
        if (extents) {
            lengths[d] = length;
            extents[d] = codes;
        }
    }
    t.extent_length = lengths;
    t.extents = extents;
    return t;
}

static void take_workspace(Reader *r, tilus_kernel_info *info)
{
    enum { LEAST = 4 + 1 + 4 + 1 + 4 };
    info->workspace_count = take_count(r, LEAST);
    tilus_workspace_tensor *tensors = make(r, info->workspace_count, sizeof *tensors);
    info->workspace = tensors;
    for (size_t i = 0; i < info->workspace_count; i++) {
        tilus_workspace_tensor t = take_tensor(r);
        if (tensors)
            tensors[i] = t;
    }
}

/* Each dimension's box and extent, and its stride except the last one's. */
static void take_map_dims(Reader *r, tilus_tensor_map *t)
{
    size_t *lengths = make(r, 2 * t->rank, sizeof *lengths);
    const tilus_code **codes = make(r, 2 * t->rank, sizeof *codes);
    t->extent_length = lengths;
    t->extents = codes;
    t->stride_length = lengths ? lengths + t->rank : NULL;
    t->strides = codes ? codes + t->rank : NULL;
    for (unsigned d = 0; d < 2 * t->rank - 1; d++) {
        unsigned at = d % 2 ? t->rank + d / 2 : d / 2;
        size_t length;
        if (d % 2 == 0)
            t->box[d / 2] = (unsigned)take_number(r, 4);
        const tilus_code *taken = take_codes(r, &length);
        if (codes) {
            lengths[at] = length;
            codes[at] = taken;
        }
    }
}

static tilus_tensor_map take_map(Reader *r)
{
    tilus_tensor_map t = {.argument = (unsigned)take_number(r, 4)};
    t.type = (tilus_map_type)take_number(r, 1);
    t.swizzle = (unsigned)take_number(r, 4);
    t.promotion = (unsigned)take_number(r, 4);
    t.rank = (unsigned)take_number(r, 4);
    if (!r->failed && (t.rank < 1 || t.rank > TILUS_MAP_RANK))
        refuse(r, "a tensor map of %u dimensions, there are 1 to %d", t.rank, TILUS_MAP_RANK);
    if (!r->failed)
        take_map_dims(r, &t);
    return t;
}

static void take_maps(Reader *r, tilus_kernel_info *info)
{
    enum { LEAST = 4 + 1 + 4 + 4 + 4 + 4 + 4 };
    info->map_count = take_count(r, LEAST);
    tilus_tensor_map *maps = make(r, info->map_count, sizeof *maps);
    info->maps = maps;
    for (size_t i = 0; i < info->map_count; i++) {
        tilus_tensor_map t = take_map(r);
        if (maps)
            maps[i] = t;
    }
}

static const tilus_kernel_info *take_info(Reader *r)
{
    tilus_kernel_info *place = make(r, 1, sizeof *place);
    tilus_kernel_info info = {.name = take_word(r)};
    info.threads = (unsigned)take_number(r, 4);
    info.shared_bytes = (size_t)take_number(r, 8);
    take_args(r, &info);
    take_grid(r, &info);
    take_workspace(r, &info);
    info.overlaps = r->version >= 2 && take_flag(r);
    if (r->version >= 4)
        take_maps(r, &info);
    for (unsigned d = 0; r->version >= 5 && d < 3; d++)
        info.cluster[d] = (unsigned)take_number(r, 4);
    info.cooperative = r->version >= 6 && take_flag(r);
    if (place)
        *place = info;
    return place;
}

/* ---- sections --------------------------------------------------------- */

/* Enters the next section, which ends where r->end is then; returns its size. */
static size_t begin_section(Reader *r, ArtefactSection section, const char *name)
{
    r->section = "file";
    uint64_t number = take_number(r, 4), zero = take_number(r, 4), size = take_number(r, 8);
    if (!r->failed && (number != section || zero))
        refuse(r, "the file is damaged: section %" PRIu64 " where section %u, %s, should be",
               number, (unsigned)section, name);
    if (!r->failed && size > r->end - r->at)
        refuse(r, "the file is damaged: section %s of %" PRIu64 " bytes, %zu are left", name,
               size, r->end - r->at);
    r->section = name;
    if (!r->failed)
        r->end = r->at + (size_t)size;
    return r->failed ? 0 : (size_t)size;
}

/* Leaves a section of a file of `size` bytes: all of it is read, and zeros follow. */
static void end_section(Reader *r, size_t size)
{
    if (!r->failed && r->at != r->end)
        refuse(r, "the %s is damaged: %zu bytes too many", r->section, r->end - r->at);
    r->end = size;
    const unsigned char *padding = take(r, -r->at % ARTEFACT_ALIGN);
    for (; padding && padding < r->bytes + r->at; padding++)
        if (*padding)
            refuse(r, "the %s is damaged: a byte 0x%02x behind it", r->section, *padding);
}

static const char *text_section(Reader *r, ArtefactSection section, const char *name)
{
    size_t file = r->end, size = begin_section(r, section, name);
    if (!r->failed && !size)
        refuse(r, "the %s is damaged: it is empty", name);
    const char *text = r->failed ? "" : take_text(r, size - 1);
    end_section(r, file);
    return text;
}

static void take_sections(Reader *r, tilus_artefact *a)
{
    size_t file = r->end;
    begin_section(r, SECTION_INFO, "signature");
    a->info = take_info(r);
    end_section(r, file);
    a->target = text_section(r, SECTION_TARGET, "target");
    begin_section(r, SECTION_PTX_VERSION, "version of PTX");
    a->ptx_version = (unsigned)take_number(r, 4);
    end_section(r, file);
    a->ptx = text_section(r, SECTION_PTX, "PTX");
    a->cubin_size = begin_section(r, SECTION_CUBIN, "cubin");
    a->cubin = a->cubin_size ? take(r, a->cubin_size) : NULL;
    end_section(r, file);
    a->source = text_section(r, SECTION_SOURCE, "source");
    a->parameters = text_section(r, SECTION_PARAMETERS, "parameters");
    a->compiler = text_section(r, SECTION_COMPILER, "name of the compiler");
    if (!r->failed && r->at != file)
        refuse(r, "the file is damaged: %zu bytes behind the last section", file - r->at);
}

/* Makes one pass over the file; returns the artefact in the second. */
static tilus_artefact *take_artefact(Reader *r)
{
    tilus_artefact *place = make(r, 1, sizeof *place), a = {0};
    r->at = ARTEFACT_HEADER;
    take_sections(r, &a);
    if (place)
        *place = a;
    return place;
}

/* ---- the file --------------------------------------------------------- */

static uint64_t number_at(const Reader *r, size_t at, unsigned size)
{
    Reader there = {.bytes = r->bytes, .at = at, .end = at + size};
    return take_number(&there, size);
}

static void check_version(Reader *r, size_t size)
{
    size_t shown = size < ARTEFACT_AT_VERSION ? size : ARTEFACT_AT_VERSION;
    if (shown > 0 && memcmp(r->bytes, ARTEFACT_MAGIC, shown) != 0) {
        refuse(r, "no artefact: it does not begin like one");
        return;
    }
    if (size < ARTEFACT_HEADER) {
        refuse(r, "cut short: %zu bytes, an artefact has at least %d", size, ARTEFACT_HEADER);
        return;
    }
    r->version = (unsigned)number_at(r, ARTEFACT_AT_VERSION, 4);
    if (r->version > TILUS_ARTEFACT_VERSION)
        refuse(r, "an artefact of version %u, this is a reader of version %d", r->version,
               TILUS_ARTEFACT_VERSION);
    else if (r->version < 1)
        refuse(r, "an artefact of version %u, the first is 1", r->version);
}

static void check_size(Reader *r, size_t size)
{
    uint64_t stated = number_at(r, ARTEFACT_AT_SIZE, 8);
    if (stated > size)
        refuse(r, "cut short: %zu bytes of %" PRIu64, size, stated);
    else if (stated < size)
        refuse(r, "damaged: %zu bytes, it should be %" PRIu64, size, stated);
}

static void check_checksum(Reader *r, size_t size)
{
    unsigned stated = (unsigned)number_at(r, ARTEFACT_AT_CHECKSUM, 4);
    unsigned found = artefact_checksum(r->bytes, size);
    if (found != stated)
        refuse(r, "damaged: its checksum is 0x%08x, it should be 0x%08x", found, stated);
    else if (number_at(r, ARTEFACT_AT_ZERO, 8))
        refuse(r, "damaged: its header has a number where 0 should be");
}

/* Checks the file before any section is read. */
static void check_file(Reader *r, size_t size)
{
    if (size > TILUS_ARTEFACT_MAX)
        refuse(r, "too large: %zu bytes, the limit is %d", size, TILUS_ARTEFACT_MAX);
    if (!r->failed)
        check_version(r, size);
    if (!r->failed)
        check_size(r, size);
    if (!r->failed)
        check_checksum(r, size);
}

/* Makes the second pass; the file lies after its structures. */
static tilus_status fill(Reader *r, size_t size, tilus_artefact **out)
{
    size_t measured = r->used;
    char *block = malloc(measured + size);
    if (!block) {
        refuse(r, "out of memory: %zu bytes", measured + size);
        return TILUS_ERROR_MEMORY;
    }
    memcpy(block + measured, r->bytes, size);
    r->bytes = (const unsigned char *)block + measured;
    r->base = block;
    r->used = 0;
    tilus_artefact *artefact = take_artefact(r);
    assert(r->used <= measured);
    if (r->failed || !artefact_check(artefact, r->message, r->message_size)) {
        free(block);
        return TILUS_ERROR_ARTEFACT;
    }
    *out = artefact;
    return TILUS_OK;
}

tilus_status tilus_artefact_read(const void *bytes, size_t size, tilus_artefact **out,
                                 char *message, size_t message_size)
{
    Reader r = {.bytes = bytes, .end = size, .message = message, .message_size = message_size};
    if (message_size > 0)
        message[0] = '\0';
    if ((!bytes && size) || !out) {
        snprintf(message, message_size, "%s is NULL", out ? "bytes" : "out");
        if (out)
            *out = NULL;
        return TILUS_ERROR_ARGUMENT;
    }
    *out = NULL;
    check_file(&r, size);
    if (!r.failed)
        take_artefact(&r);
    return r.failed ? TILUS_ERROR_ARTEFACT : fill(&r, size, out);
}
