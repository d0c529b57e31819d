/* Tensor maps of launches, encoded by the driver and kept.
 *
 * A kernel keeps the maps of its last WAYS different launches (buffers often take turns). A
 * launch that finds the cache taken by another thread encodes its own instead of waiting. */
#include "rt.h"

#include "support/kernel_map.h"
#include "support/limits.h"

#include <stdlib.h>
#include <string.h>

enum { WAYS = 4 };

/* One map, and the numbers that it was made of. */
typedef struct MapSlot {
    EncodedMap map;
    KernelMapValues values;
    bool used;
} MapSlot;

struct MapCache {
    pthread_mutex_t lock;
    unsigned *next;             /* of each map, the slot to give up */
    MapSlot *slots;             /* WAYS of each map */
};

/* ---- the cache ------------------------------------------------------ */

MapCache *maps_open(const tilus_kernel_info *info)
{
    size_t count = info->map_count;
    MapCache *maps = calloc(1, sizeof *maps);
    if (!maps)
        return NULL;
    maps->next = calloc(count, sizeof *maps->next);
    maps->slots = aligned_alloc(_Alignof(MapSlot), count * WAYS * sizeof *maps->slots);
    if (!maps->next || !maps->slots || pthread_mutex_init(&maps->lock, NULL)) {
        free(maps->next);
        free(maps->slots);
        free(maps);
        return NULL;
    }
    memset(maps->slots, 0, count * WAYS * sizeof *maps->slots);
    return maps;
}

void maps_close(MapCache *maps)
{
    if (!maps)
        return;
    pthread_mutex_destroy(&maps->lock);
    free(maps->next);
    free(maps->slots);
    free(maps);
}

static const EncodedMap *find_map(const MapCache *maps, size_t number,
                                  const KernelMapValues *values)
{
    for (size_t i = number * WAYS; i < (number + 1) * WAYS; i++)
        if (maps->slots[i].used && !memcmp(&maps->slots[i].values, values, sizeof *values))
            return &maps->slots[i].map;
    return NULL;
}

static void keep_map(MapCache *maps, size_t number, const KernelMapValues *values,
                     const EncodedMap *map)
{
    MapSlot *slot = &maps->slots[number * WAYS + maps->next[number]++ % WAYS];
    *slot = (MapSlot){.map = *map, .values = *values, .used = true};
}

/* ---- encoding -------------------------------------------------------- */

/* CUtensorMapSwizzle and CUtensorMapL2promotion, by their bytes. */
static int swizzle_number(unsigned bytes)
{
    return bytes == 0 ? 0 : bytes == 32 ? 1 : bytes == 64 ? 2 : 3;
}

static int promotion_number(unsigned bytes)
{
    return bytes == 0 ? 0 : bytes == 64 ? 1 : bytes == 128 ? 2 : 3;
}

/* The driver's order is ours reversed, and it needs no stride of the innermost dimension. */
static tilus_status encode(const ErrorContext *at, const tilus_tensor_map *map,
                           const KernelMapValues *values, EncodedMap *out)
{
    tilus_status status = TILUS_OK;
    uint64_t extents[TILUS_MAP_RANK], strides[TILUS_MAP_RANK] = {0};
    uint32_t box[TILUS_MAP_RANK], steps[TILUS_MAP_RANK];
    for (unsigned i = 0; i < map->rank; i++) {
        unsigned d = map->rank - 1 - i;
        extents[i] = (uint64_t)values->extents[d];
        box[i] = map->box[d];
        steps[i] = 1;
        if (i > 0)
            strides[i - 1] = (uint64_t)values->strides[d];
    }
    if (!at->rt->api.cuTensorMapEncodeTiled)
        return rt_fail_at(at, TILUS_ERROR_UNSUPPORTED, "the driver has no "
                          "cuTensorMapEncodeTiled, which tensor maps need: update it");
    CHECK(at, cuTensorMapEncodeTiled(out->bytes, (int)map->type, map->rank,
                                     (void *)(uintptr_t)values->address, extents, strides, box,
                                     steps, 0, swizzle_number(map->swizzle),
                                     promotion_number(map->promotion), 0));
done:
    return status;
}

/* Takes map `number` from the cache, which is NULL when another thread has it, or makes it. */
static tilus_status encode_cached(const ErrorContext *at, MapCache *maps, size_t number,
                                  const KernelMapValues *values, EncodedMap *out)
{
    const EncodedMap *known = maps ? find_map(maps, number, values) : NULL;
    if (known) {
        *out = *known;
        return TILUS_OK;
    }
    tilus_status status = encode(at, &at->kernel->artefact->info->maps[number], values, out);
    if (status == TILUS_OK && maps)
        keep_map(maps, number, values, out);
    return status;
}

tilus_status maps_encode(const ErrorContext *at, const tilus_arg *args, EncodedMap *out)
{
    const tilus_kernel_info *info = at->kernel->artefact->info;
    MapCache *maps = at->kernel->maps;
    char message[RT_LINE / 2];
    tilus_status status = TILUS_OK;
    if (maps && pthread_mutex_trylock(&maps->lock) != 0)
        maps = NULL;
    for (size_t i = 0; status == TILUS_OK && i < info->map_count; i++) {
        KernelMapValues values;
        if (!kernel_map_values(info, i, args, &values, (Report){message, sizeof message}))
            status = rt_fail_at(at, TILUS_ERROR_ARGUMENT, "%s", message);
        else
            status = encode_cached(at, maps, i, &values, &out[i]);
    }
    if (maps)
        pthread_mutex_unlock(&maps->lock);
    return status;
}
