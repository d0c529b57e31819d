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
#include "ir/reduction.h"
#include "ir/tile.h"

#include <stdlib.h>
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

/* The box whose corner is at the coordinates: where the hardware takes one, as the compiler has
 * proved (memory/tensor_map.h). */
static Box box_of(const CpuMap *map, const uint64_t *coordinates, bool written)
{
    enum { CHUNK = 1 << CHUNK_BITS };
    Box box = {.map = map};
    for (unsigned d = 0; d < map->rank; d++) {
        box.first[d] = (int32_t)coordinates[map->rank - 1 - d];
        if (written && box.first[d] < 0)
            fault_now("a box that is written begins at %lld in dimension %u",
                      (long long)box.first[d], d);
    }
    if (box.first[map->rank - 1] * map->element % CHUNK)
        fault_now("a box begins at element %lld of a row, which is at no multiple of %d bytes",
                  (long long)box.first[map->rank - 1], CHUNK);
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

/* Returns where the bytes at `at` in shared memory lie after the swizzle. */
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
    Box box = box_of(map, args + 3, false);
    do {
        size_t size = (size_t)map->box[map->rank - 1] * map->element;
        read_row(c, &box, row);
        for (size_t i = 0; i < size; i += CHUNK, next += CHUNK)
            memcpy(c->data + (swizzled(next, map->swizzle) - at), row + i, CHUNK);
    } while (next_row(&box));
    bulk_end(c);
}

/* To the running block; to each whose bit the mask after `rank` coordinates has. */
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

/* ---- stores ---------------------------------------------------------------------- */

/* A bulk store whose full wait has not come: its bytes, read when it was issued, go to memory
 * as late as may be. */
struct BulkStore {
    const unsigned char *from;
    unsigned char *to;          /* NULL: a box */
    Box box;
    size_t at, bytes;           /* at: of a box, in shared memory */
    Reduction reduction;        /* of elements of `dtype`; NONE: they replace what is there */
    DType dtype;
    Place place;
    uint32_t thread, group;
    bool read;                  /* somebody has waited for that */
    BulkStore *next;
    unsigned char data[];
};

void bulk_stores_begin_block(Worker *w)
{
    while (w->stores) {
        BulkStore *s = w->stores;
        w->stores = s->next;
        free(s);
    }
}

/* Calls `visit` for each run of bytes in global memory, and what is stored there. */
static void each_run(const BulkStore *s,
                     void (*visit)(const BulkStore *s, unsigned char *to,
                                   const unsigned char *from, size_t size))
{
    enum { CHUNK = 1 << CHUNK_BITS };
    const CpuMap *map = s->box.map;
    unsigned char row[ROW_MOST];
    size_t next = s->at;
    Box box = s->box;
    if (s->to) {
        visit(s, s->to, s->data, s->bytes);
        return;
    }
    do {
        RowPart part = row_part(&box);
        size_t size = (size_t)map->box[map->rank - 1] * map->element;
        for (size_t i = 0; i < size; i += CHUNK, next += CHUNK)
            memcpy(row + i, s->data + (swizzled(next, map->swizzle) - s->at), CHUNK);
        if (part.begin < part.end)
            visit(s, part.at, row + part.begin * map->element,
                  (part.end - part.begin) * map->element);
    } while (next_row(&box));
}

static AccessKind target_kind(const BulkStore *s)
{
    return s->reduction == REDUCTION_NONE ? ACCESS_WRITE : ACCESS_REDUCE;
}

static void begin_run(const BulkStore *s, unsigned char *to, const unsigned char *from,
                      size_t size)
{
    (void)from;
    shadow_store_begins(target_kind(s), to, size);
}

/* Combines a place with an element, as blocks that run at the same time may do. */
#define COMBINE(bits)                                                          \
    static void combine_##bits(const BulkStore *s, void *to, const void *from) \
    {                                                                          \
        uint##bits##_t *at = to, code, old = __atomic_load_n(at, __ATOMIC_RELAXED), next; \
        memcpy(&code, from, sizeof code);                                      \
        do                                                                     \
            next = (uint##bits##_t)reduction_combine(s->reduction, s->dtype, old, code); \
        while (!__atomic_compare_exchange_n(at, &old, next, false, __ATOMIC_RELAXED, \
                                            __ATOMIC_RELAXED));                \
    }
COMBINE(16)
COMBINE(32)
COMBINE(64)
#undef COMBINE

static void reduce_run(const BulkStore *s, unsigned char *to, const unsigned char *from,
                       size_t size)
{
    size_t element = dtype_bits(s->dtype) / 8;
    for (size_t i = 0; i < size; i += element)
        (element == 2 ? combine_16 : element == 4 ? combine_32 : combine_64)(s, to + i, from + i);
}

static void land_run(const BulkStore *s, unsigned char *to, const unsigned char *from, size_t size)
{
    if (s->reduction == REDUCTION_NONE)
        memcpy(to, from, size);
    else
        reduce_run(s, to, from, size);
}

static void end_run(const BulkStore *s, unsigned char *to, const unsigned char *from, size_t size)
{
    land_run(s, to, from, size);
    shadow_store_ends(target_kind(s), s->place, to, size);
}

/* Begins a store of `bytes` bytes of shared memory; to is NULL of a box. */
static void begin_store(const BulkStore *like, size_t bytes)
{
    BulkStore *s = malloc(sizeof *s + bytes), **end = &cpu_worker->stores;
    if (!s)
        fault_memory();
    *s = *like;
    s->bytes = bytes;
    s->place = this_thread()->place;
    s->thread = this_thread()->number;
    s->group = this_thread()->stores_committed;
    s->next = NULL;
    while (*end)
        end = &(*end)->next;
    *end = s;
    memcpy(s->data, s->from, bytes);
    shadow_store_begins(ACCESS_READ, s->from, bytes);
    each_run(s, begin_run);
}

/* The type of a map whose elements are reduced. */
static DType map_dtype(uint32_t type)
{
    return type == TILUS_MAP_U32   ? DTYPE_u32
           : type == TILUS_MAP_I32 ? DTYPE_i32
           : type == TILUS_MAP_U64 ? DTYPE_u64
           : type == TILUS_MAP_I64 ? DTYPE_i64
           : type == TILUS_MAP_F16 ? DTYPE_f16
           : type == TILUS_MAP_F32 ? DTYPE_f32
                                   : DTYPE_bf16;
}

static void store_box(const uint64_t *args, Reduction r)
{
    const CpuMap *map = helper_address(args[1], _Alignof(CpuMap));
    const unsigned char *from = helper_address(args[0], 1 << CHUNK_BITS);
    begin_store(&(BulkStore){.from = from, .box = box_of(map, args + 2, true),
                             .at = check_box(from, map->swizzle), .reduction = r,
                             .dtype = map_dtype(map->type)}, box_bytes(map));
}

#define STORE(name, reduction)                                                \
    void cpu_##name(const uint64_t *args, uint64_t *results)                  \
    {                                                                         \
        (void)results;                                                        \
        store_box(args, REDUCTION_##reduction);                               \
    }                                                                         \
    void cpu_##name##_policy(const uint64_t *args, uint64_t *results)         \
    {                                                                         \
        (void)results;                                                        \
        store_box(args, REDUCTION_##reduction);                               \
    }
#define RANKS(name, reduction)                                                \
    STORE(name##_1, reduction)                                                \
    STORE(name##_2, reduction)                                                \
    STORE(name##_3, reduction)                                                \
    STORE(name##_4, reduction)                                                \
    STORE(name##_5, reduction)
RANKS(store_tensor, NONE)
#define REDUCTION(id, spelling) RANKS(reduce_tensor_##id, id)
#include "ir/words.def"
#undef RANKS
#undef STORE

static void store_bytes(const uint64_t *args, Reduction r, DType t)
{
    if (args[2] % BULK_ALIGN)
        fault_now("a bulk store of %llu bytes: they must be a multiple of %d",
                  (unsigned long long)args[2], BULK_ALIGN);
    begin_store(&(BulkStore){.from = helper_address(args[1], BULK_ALIGN),
                             .to = helper_address(args[0], BULK_ALIGN),
                             .reduction = r, .dtype = t}, args[2]);
}

void cpu_store_bulk(const uint64_t *args, uint64_t *results)
{
    (void)results;
    store_bytes(args, REDUCTION_NONE, DTYPE_none);
}

void cpu_store_bulk_policy(const uint64_t *args, uint64_t *results)
{
    cpu_store_bulk(args, results);
}

#define REDUCES(op, dtype, ptx)                                               \
    void cpu_reduce_bulk_##op##_##dtype(const uint64_t *args, uint64_t *results) \
    {                                                                         \
        (void)results;                                                        \
        store_bytes(args, REDUCTION_##op, DTYPE_##dtype);                     \
    }                                                                         \
    void cpu_reduce_bulk_##op##_##dtype##_policy(const uint64_t *args, uint64_t *results) \
    {                                                                         \
        cpu_reduce_bulk_##op##_##dtype(args, results);                        \
    }
#include "ir/reduction.def"

void cpu_bulk_commit(const uint64_t *args, uint64_t *results)
{
    (void)args, (void)results;
    this_thread()->stores_committed++;
}

/* Waits for all groups of the thread but the last `pending`; for their reads alone, or all. */
static void wait_stores(uint64_t pending, bool reads)
{
    const Thread *t = this_thread();
    for (BulkStore **at = &cpu_worker->stores; *at;) {
        BulkStore *s = *at;
        bool meant = s->thread == t->number && s->group + pending < t->stores_committed;
        if (meant && !s->read)
            shadow_store_ends(ACCESS_READ, s->place, s->from, s->bytes);
        s->read |= meant;
        if (!meant || reads) {
            at = &s->next;
            continue;
        }
        each_run(s, end_run);
        *at = s->next;
        free(s);
    }
}

void cpu_bulk_wait(const uint64_t *args, uint64_t *results)
{
    (void)results;
    wait_stores(args[0], false);
}

void cpu_bulk_wait_read(const uint64_t *args, uint64_t *results)
{
    (void)results;
    wait_stores(args[0], true);
}

void bulk_stores_end_block(Worker *w)
{
    char block[FAULT_TEXT];
    for (const BulkStore *s = w->stores; s && !w->cluster->fault.found; s = s->next)
        if (!s->read)
            fault_set(w, s->place, "%s ends while this copy_async_bulk_store of thread %u reads: "
                      "no copy_async_bulk_wait_group waits for it", fault_block(w, block),
                      s->thread);
        else
            each_run(s, land_run);
}
