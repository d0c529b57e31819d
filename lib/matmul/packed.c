/* Packed weights: offsets in them, and shards. */
#include "matmul/internal.h"

#include "support/integer.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- places ------------------------------------------------------------- */

size_t packed_scale_bytes(const MatmulSpec *spec)
{
    return dtype_bits(spec->scales) / 8;
}

size_t packed_zero_bytes(const MatmulSpec *spec)
{
    return spec->zeros == TILUS_ZEROS_NONE ? 0 : spec->zeros == TILUS_ZEROS_INTEGER ? 1 : 2;
}

int packed_zero_nothing(const MatmulSpec *spec)
{
    return spec->zeros == TILUS_ZEROS_INTEGER ? spec->offset : 0;
}

int64_t packed_groups(const MatmulSpec *spec)
{
    return spec->group ? ceil_div_i64(spec->k, spec->group * spec->repeats) : 1;
}

void packed_place(Packed *p, const MatmulSpec *spec, int rows)
{
    PackedForm form = matmul_packed_form(spec, rows, 1);
    *p = (Packed){.rows = rows, .slices = matmul_slices(spec), .block = (size_t)form.block,
                  .block_scales = (size_t)form.codes,
                  .block_zeros = (size_t)(form.codes + form.scales)};
    p->tiles = matmul_packed_blocks(spec, rows) / p->slices;
    size_t tables = (size_t)p->tiles * (size_t)rows;
    p->size = round_up_size((size_t)p->tiles * (size_t)p->slices * p->block, MATMUL_ALIGN);
    if (spec->group == 0) {
        p->scales = p->size;
        p->size = round_up_size(p->size + packed_scale_bytes(spec) * tables, MATMUL_ALIGN);
    }
    if (matmul_has_factor(spec)) {
        p->factor = p->size;
        p->size += MATMUL_ALIGN;
    }
    if (spec->group == 0 && spec->zeros != TILUS_ZEROS_NONE) {
        p->zeros = p->size;
        p->size = round_up_size(p->size + packed_zero_bytes(spec) * tables, MATMUL_ALIGN);
    }
    p->size += TILUS_MATMUL_IDENTITY;
    packed_identify(p, spec);
}

/* Places rows that are equal mod 8, which are one thread's, side by side. */
size_t packed_scale_index(int rows, int q, int row)
{
    return (size_t)((q * 8 + row % 8) * (rows / 8) + row / 8);
}

tilus_status weights_take(const tilus_matmul_plan *plan, const tilus_matmul_weights *weights,
                          tilus_matmul_weights *w)
{
    bool has_zeros = plan->spec.zeros != TILUS_ZEROS_NONE;
    tilus_status status = LIBRARY_TAKE(tilus_matmul_weights, w, weights, "weights");
    if (status != TILUS_OK)
        return status;
    if (!w->codes || !w->scales || (has_zeros && !w->zeros))
        return library_refuse("weights: %s is NULL", !w->codes ? "codes" : !w->scales ? "scales"
                                                                                     : "zeros");
    if (!has_zeros && w->zeros)
        return library_refuse("weights: zeros is given, but the problem has none: give NULL");
    if (!w->factor != !matmul_has_factor(&plan->spec))
        return library_refuse(w->factor ? "weights: factor is given, but scales of %s have none: give "
                                          "NULL"
                                        : "weights: factor is NULL, but scales of %s have one",
                              dtype_name(plan->spec.scales));
    return TILUS_OK;
}

void packed_put_identity(const tilus_matmul_plan *plan, unsigned char *packed)
{
    const Packed *p = &plan->packed;
    memcpy(packed + p->size - sizeof p->bytes, p->bytes, sizeof p->bytes);
}

size_t tilus_matmul_packed_size(const tilus_matmul_plan *plan)
{
    return plan ? plan->packed.size : 0;
}

void tilus_matmul_tile(const tilus_matmul_plan *plan, int64_t *n_tile, int64_t *k_tile)
{
    if (n_tile)
        *n_tile = plan ? plan->packed.rows : 0;
    if (k_tile)
        *k_tile = plan ? MATMUL_PACKED_K : 0;
}

/* ---- shards -------------------------------------------------------------- */

/* Checks that the plans pack alike: types, groups and tiles. */
static tilus_status check_forms(const tilus_matmul_plan *whole, const tilus_matmul_plan *part)
{
    const MatmulSpec *w = &whole->spec, *p = &part->spec;
    if (w->weights != p->weights || w->product != p->product || w->zeros != p->zeros ||
        w->scales != p->scales)
        return library_refuse("the part is of %s for %s, scales %s, zeros %d; the whole of %s "
                              "for %s, scales %s, zeros %d", dtype_name(p->weights),
                              dtype_name(p->product), dtype_name(p->scales), (int)p->zeros,
                              dtype_name(w->weights), dtype_name(w->product),
                              dtype_name(w->scales), (int)w->zeros);
    if (w->gated != p->gated)
        return library_refuse("the part is%s gated, the whole is%s", p->gated ? "" : " not",
                              w->gated ? "" : " not");
    if (w->group != p->group || w->repeats != p->repeats)
        return library_refuse("the part has groups of %" PRId64 ", the whole of %" PRId64,
                              p->group * p->repeats, w->group * w->repeats);
    if (whole->packed.rows != part->packed.rows)
        return library_refuse("the part is packed in tiles of %d rows, the whole of %d",
                              part->packed.rows, whole->packed.rows);
    return TILUS_OK;
}

/* Checks that [first, first + size) lies in [0, all), and is cut at multiples of `tile`. */
static tilus_status check_cut(const char *what, int64_t first, int64_t size, int64_t all,
                              int64_t tile)
{
    if (first < 0 || first > all - size)
        return library_refuse("%s_first is %" PRId64 ": %" PRId64 " from there on are not in "
                              "the whole's %" PRId64, what, first, size, all);
    if (first % tile)
        return library_refuse("%s_first is %" PRId64 ", not a multiple of %" PRId64, what,
                              first, tile);
    if (size % tile && first + size != all)
        return library_refuse("the part's %s is %" PRId64 ", which is no multiple of %" PRId64
                              " and does not reach the end of the whole, %" PRId64, what, size,
                              tile, all);
    return TILUS_OK;
}

static tilus_status check_part(const tilus_matmul_plan *whole, const tilus_matmul_plan *part,
                               int64_t n_first, int64_t k_first)
{
    int64_t k_tile = MATMUL_PACKED_K * whole->spec.repeats;
    tilus_status status = check_forms(whole, part);
    if (status == TILUS_OK)
        status = check_cut("n", n_first, part->spec.n, whole->spec.n, whole->packed.rows);
    if (status == TILUS_OK)
        status = check_cut("k", k_first, part->spec.k, whole->spec.k, k_tile);
    return status;
}

/* Returns the offset of a slice's packed block of a tile. */
static size_t block_at(const Packed *p, int64_t tile, int64_t slice)
{
    return (size_t)(tile * p->slices + slice) * p->block;
}

/* Goes on with the scales, or zero points, `bytes` each, of a last group after the `filled` packed
 * blocks of a tile: up to the group's end its packed groups have those of the last one. */
static void repeat_last(const tilus_matmul_plan *part, size_t place, size_t bytes, int64_t filled,
                        unsigned char *to)
{
    const Packed *p = &part->packed;
    int64_t groups = MATMUL_PACKED_K / part->spec.group, repeats = part->spec.repeats;
    int64_t last = groups * filled - 1, end = (last / repeats + 1) * repeats;
    size_t size = bytes * (size_t)p->rows;
    const unsigned char *from = to + block_at(p, 0, filled - 1) + place;
    from += (size_t)(groups - 1) * size;
    if (last / repeats >= packed_groups(&part->spec))
        return;
    for (int64_t g = last + 1; g < end && g < p->slices * groups; g++)
        memcpy(to + block_at(p, 0, g / groups) + place + (size_t)(g % groups) * size, from, size);
}

/* Copies the packed blocks of a tile, and puts empty ones after them. */
static void copy_tile(const tilus_matmul_plan *part, const unsigned char *from,
                      const unsigned char *empty, unsigned char *to)
{
    const Packed *p = &part->packed;
    int64_t filled = ceil_div_i64(part->spec.k, MATMUL_PACKED_K);
    memcpy(to, from, (size_t)filled * p->block);
    for (int64_t slice = filled; slice < p->slices; slice++)
        memcpy(to + block_at(p, 0, slice), empty, p->block);
    if (part->spec.group == 0)
        return;
    repeat_last(part, p->block_scales, packed_scale_bytes(&part->spec), filled, to);
    repeat_last(part, p->block_zeros, packed_zero_bytes(&part->spec), filled, to);
}

/* Copies tiles, and puts empty packed blocks after the last row. */
static void copy_blocks(const tilus_matmul_plan *whole, const unsigned char *from,
                       const tilus_matmul_plan *part, int64_t tile_first, int64_t slice_first,
                       const unsigned char *empty, unsigned char *to)
{
    const Packed *w = &whole->packed, *p = &part->packed;
    int64_t filled = ceil_div_i64(part->spec.n, p->rows);
    for (int64_t tile = 0; tile < filled; tile++)
        copy_tile(part, from + block_at(w, tile_first + tile, slice_first), empty,
                  to + block_at(p, tile, 0));
    for (int64_t block = filled * p->slices; block < p->tiles * p->slices; block++)
        memcpy(to + block_at(p, 0, block), empty, p->block);
}

/* Copies a table of scales or zero points of all of k, `bytes` each, and puts `nothing` after
 * the last row. */
static void copy_table(const tilus_matmul_plan *part, size_t bytes, const unsigned char *from,
                       int64_t tile_first, int nothing, unsigned char *to)
{
    size_t tile = bytes * (size_t)part->packed.rows;
    size_t size = (size_t)ceil_div_i64(part->spec.n, part->packed.rows) * tile;
    memcpy(to, from + (size_t)tile_first * tile, size);
    memset(to + size, nothing, (size_t)part->packed.tiles * tile - size);
}

tilus_status tilus_matmul_shard(const tilus_matmul_plan *whole, const void *packed,
                                const tilus_matmul_plan *part, int64_t n_first,
                                int64_t k_first, void *packed_part)
{
    const unsigned char *from = packed;
    unsigned char *to = packed_part;
    if (!whole || !part)
        return library_refuse("%s is NULL", whole ? "part" : "whole");
    if (!packed || !packed_part)
        return library_refuse("%s is NULL", packed ? "packed_part" : "packed");
    tilus_status status = tilus_matmul_packed_check(whole, packed, whole->packed.size);
    if (status == TILUS_OK)
        status = check_part(whole, part, n_first, k_first);
    if (status != TILUS_OK)
        return status;
    unsigned char *empty = malloc(part->packed.block);
    if (!empty)
        return library_fail_memory();
    status = pack_empty_block(part, empty);
    if (status == TILUS_OK) {
        int64_t tile_first = n_first / whole->packed.rows;
        memset(to, 0, part->packed.size);
        copy_blocks(whole, from, part, tile_first, k_first / MATMUL_PACKED_K, empty, to);
        if (whole->packed.factor)
            memcpy(to + part->packed.factor, from + whole->packed.factor, sizeof(float));
        if (whole->packed.scales)
            copy_table(part, packed_scale_bytes(&part->spec), from + whole->packed.scales, tile_first, 0,
                       to + part->packed.scales);
        if (whole->packed.zeros)
            copy_table(part, packed_zero_bytes(&part->spec), from + whole->packed.zeros,
                       tile_first, packed_zero_nothing(&part->spec),
                       to + part->packed.zeros);
        packed_put_identity(part, to);
    }
    free(empty);
    return status;
}
