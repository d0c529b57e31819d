/* Tensor copies (PTX ISA, 9.7.9.25.5.2) by the maps that this engine's launcher makes.
 *
 * A box is laid out as the hardware does: row after row, its innermost dimension first, and
 * 16-byte chunks exchanged by bits of their address in shared memory:
 *
 *     address   .. r r r c c c b b b b      swizzle of 128 bytes: chunk c becomes c ^ r
 *
 * of 64 bytes by two of the bits c and r, of 32 bytes by one. */
#define _GNU_SOURCE
#include "cpu/machine.h"

#include "cpu/shadow.h"

#include <string.h>

enum {
    CHUNK_BITS = 4, ROW_BITS = 7, BOX_ALIGN = 128, PATTERN_ROWS = 8,
    ROW_MOST = 8 * TILUS_MAP_BOX_MAX        /* bytes */
};

/* The copying thread is the lowest one of its warp. */
void cpu_elect(const uint64_t *args, uint64_t *results)
{
    (void)args;
    results[0] = this_thread()->number % LANES == 0;
}

/* ---- boxes --------------------------------------------------------------------- */

/* A box that is copied, row after row. */
typedef struct Box {
    const CpuMap *map;
    int64_t first[TILUS_MAP_RANK];      /* outermost dimension first */
    uint32_t index[TILUS_MAP_RANK];     /* of the row; the last is 0 */
} Box;

static Box box_of(const CpuMap *map, const uint64_t *coordinates)
{
    Box box = {.map = map};
    for (unsigned d = 0; d < map->rank; d++)
        box.first[d] = (int32_t)coordinates[map->rank - 1 - d];
    return box;
}

static size_t box_bytes(const CpuMap *map)
{
    size_t bytes = map->element;
    for (unsigned d = 0; d < map->rank; d++)
        bytes *= map->box[d];
    return bytes;
}

/* The next row; false after the last. */
static bool next_row(Box *box)
{
    for (unsigned d = box->map->rank - 1; d-- > 0;) {
        if (++box->index[d] < box->map->box[d])
            return true;
        box->index[d] = 0;
    }
    return false;
}

/* The part of a row that lies inside of the tensor: elements [begin, end) of the box's. */
typedef struct RowPart {
    unsigned char *at;          /* of element `begin` */
    size_t begin, end;
} RowPart;

static RowPart row_part(const Box *box)
{
    const CpuMap *map = box->map;
    unsigned last = map->rank - 1u;
    int64_t offset = 0, begin = -box->first[last], end = map->extents[last] - box->first[last];
    begin = begin > 0 ? begin : 0;
    end = end < map->box[last] ? end : map->box[last];
    bool inside = begin < end;
    for (unsigned d = 0; d < last; d++) {
        int64_t index = box->first[d] + box->index[d];
        inside &= index >= 0 && index < map->extents[d];
        offset += index * map->strides[d];
    }
    if (!inside)
        return (RowPart){0};
    offset += (box->first[last] + begin) * map->element;
    return (RowPart){map->base + offset, (size_t)begin, (size_t)end};
}

/* Where the bytes at `at` in shared memory lie after the swizzle. */
static size_t swizzled(size_t at, unsigned swizzle)
{
    size_t chunks = swizzle >> CHUNK_BITS;
    return chunks ? at ^ ((at >> ROW_BITS & (chunks - 1)) << CHUNK_BITS) : at;
}

/* The place in shared memory of a box, which must be aligned. */
static size_t check_box(const void *to, unsigned swizzle)
{
    size_t align = swizzle ? PATTERN_ROWS * swizzle : BOX_ALIGN;
    size_t at = (size_t)((const unsigned char *)to - cpu_worker->shared.data);
    if (at % align)
        fault_now("a box in shared memory begins at byte %zu, no multiple of %zu", at, align);
    return at;
}

/* ---- loads ---------------------------------------------------------------------- */

/* Reads the row, with zeros outside of the tensor. */
static void read_row(const BulkCopy *c, const Box *box, unsigned char *row)
{
    const CpuMap *map = box->map;
    RowPart part = row_part(box);
    size_t size = (part.end - part.begin) * map->element;
    memset(row, 0, (size_t)map->box[map->rank - 1] * map->element);
    if (!size)
        return;
    memcpy(row + part.begin * map->element, part.at, size);
    shadow_bulk_read(c, part.at, size);
}

/* A box of a map at the coordinates, to shared memory of the block `w`. */
static void load_box_to(const Worker *w, const uint64_t *args)
{
    enum { CHUNK = 1 << CHUNK_BITS };
    const CpuMap *map = helper_address(args[1], _Alignof(CpuMap));
    unsigned char *own = helper_address(args[0], CHUNK), row[ROW_MOST];
    unsigned char *to = helper_address(address_in(w, args[0]), CHUNK);
    size_t at = check_box(own, map->swizzle), next = at;
    BulkCopy *c = bulk_begin(address_in(w, args[2]), to, box_bytes(map));
    Box box = box_of(map, args + 3);
    do {
        size_t size = (size_t)map->box[map->rank - 1] * map->element;
        read_row(c, &box, row);
        for (size_t i = 0; i < size; i += CHUNK, next += CHUNK)
            memcpy(c->data + (swizzled(next, map->swizzle) - at), row + i, CHUNK);
    } while (next_row(&box));
    bulk_end(c);
}

/* To the running block; to each whose bit the mask behind `rank` coordinates has. */
static void load_box(const uint64_t *args)
{
    load_box_to(cpu_worker, args);
}

static void load_box_each(unsigned rank, const uint64_t *args)
{
    uint64_t mask = args[3 + rank];
    for (uint64_t i = 0; mask >> i; i++)
        if (mask >> i & 1)
            load_box_to(worker_of_rank(i), args);
}

#define LOAD(rank)                                                            \
    void cpu_copy_tensor_##rank(const uint64_t *args, uint64_t *results)     \
    {                                                                         \
        (void)results;                                                        \
        load_box(args);                                                       \
    }                                                                         \
    void cpu_copy_tensor_##rank##_policy(const uint64_t *args, uint64_t *results) \
    {                                                                         \
        (void)results;                                                        \
        load_box(args);                                                       \
    }                                                                         \
    void cpu_copy_tensor_##rank##_multicast(const uint64_t *args, uint64_t *results) \
    {                                                                         \
        (void)results;                                                        \
        load_box_each(rank, args);                                            \
    }                                                                         \
    void cpu_copy_tensor_##rank##_multicast_policy(const uint64_t *args, uint64_t *results) \
    {                                                                         \
        (void)results;                                                        \
        load_box_each(rank, args);                                            \
    }
LOAD(1)
LOAD(2)
LOAD(3)
LOAD(4)
LOAD(5)
#undef LOAD
