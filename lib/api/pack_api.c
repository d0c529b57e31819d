/* Public API: weights from plain codes to the words that kernels load, and back. */
#define _GNU_SOURCE
#include "api/sizes.h"
#include "ir/form.h"
#include "support/bits.h"
#include "support/integer.h"
#include "syntax/syntax.h"
#include "tilus/tilus.h"
#include "types/storage.h"

#include <string.h>

/* A packing that was checked; all in the module's arena. */
typedef struct Pack {
    Module *m;
    const tilus_packing *packing;
    DType type;
    unsigned bits;
    const Layout *layout;
    const CastStorage *storage;     /* NULL: plain order */
    int64_t tiles[2];
    size_t words;                   /* of a thread */
    size_t code_bytes, packed_bytes;
    int64_t *index;                 /* [threads][slots][2]: where an element lies in a tile */
} Pack;

static bool find_types(Pack *p)
{
    const tilus_packing *packing = p->packing;
    p->type = dtype_find(packing->type, strlen(packing->type));
    if (!p->type || dtype_bits(p->type) > 8)
        return diag_error(p->m->diag, (Loc){0}, "weights are of a type of 1 to 8 bits, got %s",
                          packing->type);
    p->bits = dtype_bits(p->type);
    if (!packing->order)
        return true;
    DType to = dtype_find(packing->order, strlen(packing->order));
    const char *why = NULL;
    const Type *t = type_reg(p->m, p->type, p->layout);
    if (!to || !form_allows_packed(p->m, t, to, &why))
        return diag_error(p->m->diag, (Loc){0}, why ? "%s" : "unknown type %s",
                          why ? why : packing->order);
    CastStorage *storage = arena_new(&p->m->arena, CastStorage);
    cast_storage(p->type, to, storage);
    p->storage = storage;
    return true;
}

/* Bytes of both matrices; false where they do not fit size_t, or bits 63 bits. */
static bool find_sizes(Pack *p)
{
    const tilus_packing *packing = p->packing;
    int64_t codes, tiles, bytes;
    if (packing->k < 1 || packing->n < 1)
        return diag_error(p->m->diag, (Loc){0}, "a matrix of %lld x %lld codes",
                          (long long)packing->k, (long long)packing->n);
    p->tiles[0] = ceil_div_i64(packing->k, p->layout->shape[0]);
    p->tiles[1] = ceil_div_i64(packing->n, p->layout->shape[1]);
    p->words = (size_t)(p->layout->slots * p->bits / 32);
    if (__builtin_mul_overflow(packing->k, packing->n, &codes) ||
        __builtin_mul_overflow(codes, (int64_t)p->bits, &codes) ||
        __builtin_add_overflow(codes, 7, &codes) ||
        __builtin_mul_overflow(p->tiles[0], p->tiles[1], &tiles) ||
        __builtin_mul_overflow(tiles, p->layout->threads * (int64_t)p->words * 4, &bytes))
        return diag_error(p->m->diag, (Loc){0}, "%lld x %lld codes have more than 2^63 bits",
                          (long long)packing->k, (long long)packing->n);
    p->code_bytes = (size_t)(codes / 8);
    p->packed_bytes = (size_t)bytes;
    return true;
}

static bool check_layout(Pack *p)
{
    const Layout *l = p->layout;
    if (l->rank != 2)
        return diag_error(p->m->diag, (Loc){1, 1, 1, 0}, "the layout of a tile has rank 2, got %u",
                          l->rank);
    if (layout_replicas(l) != 1)
        return diag_error(p->m->diag, (Loc){1, 1, 1, 0}, "%lld threads hold each element of the "
                          "tile, it must be 1", (long long)layout_replicas(l));
    if (l->slots * dtype_bits(p->type) % 32)
        return diag_error(p->m->diag, (Loc){1, 1, 1, 0}, "%lld elements of %s a thread fill no whole "
                          "words", (long long)l->slots, dtype_name(p->type));
    return true;
}

static void find_indices(Pack *p)
{
    const Layout *l = p->layout;
    p->index = arena_array(&p->m->arena, int64_t, (size_t)(l->threads * l->slots * 2));
    for (int64_t thread = 0; thread < l->threads; thread++)
        for (int64_t slot = 0; slot < l->slots; slot++)
            layout_index(l, thread, slot, p->index + 2 * (thread * l->slots + slot));
}

static bool pack_open(Pack *p)
{
    diag_set_source(p->m->diag, "<layout>", p->packing->layout, strlen(p->packing->layout), 1);
    p->layout = parse_layout_text(p->m);
    return p->layout && find_types(p) && check_layout(p) && find_sizes(p);
}

/* The number of the code at `index` of a tile; -1 beyond the edges. */
static int64_t code_number(const Pack *p, const int64_t *tile, const int64_t *index)
{
    const tilus_packing *packing = p->packing;
    int64_t row = tile[0] * p->layout->shape[0] + index[0];
    int64_t column = tile[1] * p->layout->shape[1] + index[1];
    if (row >= packing->k || column >= packing->n)
        return -1;
    return packing->transposed ? column * packing->k + row : row * packing->n + column;
}

/* The codes of one thread's elements of one tile, in slot order. */
static void gather(const Pack *p, const int64_t *tile, int64_t thread,
                   const unsigned char *codes, uint32_t *words)
{
    const int64_t *index = p->index + 2 * thread * p->layout->slots;
    memset(words, 0, p->words * sizeof *words);
    for (int64_t slot = 0; slot < p->layout->slots; slot++, index += 2) {
        int64_t number = code_number(p, tile, index);
        if (number >= 0)
            bits_set(words, (size_t)slot, p->bits, bits_get(codes, (size_t)number, p->bits));
    }
}

static void scatter(const Pack *p, const int64_t *tile, int64_t thread, unsigned char *codes,
                    const uint32_t *words)
{
    const int64_t *index = p->index + 2 * thread * p->layout->slots;
    for (int64_t slot = 0; slot < p->layout->slots; slot++, index += 2) {
        int64_t number = code_number(p, tile, index);
        if (number >= 0)
            bits_set(codes, (size_t)number, p->bits, bits_get(words, (size_t)slot, p->bits));
    }
}

/* A thread's words from plain order to the packing's, or back. */
static void reorder(const Pack *p, bool to_packed, const uint32_t *in, uint32_t *out)
{
    if (!p->storage)
        memcpy(out, in, p->words * sizeof *in);
    for (size_t i = 0; p->storage && i < p->words; i += p->storage->words)
        (to_packed ? cast_pack_group : cast_unpack_group)(p->storage, in + i, out + i);
}

/* The words of a thread of a tile, in plain order and as they are packed. */
typedef struct ThreadWords {
    uint32_t *plain, *packed;
    size_t bytes;
} ThreadWords;

static ThreadWords thread_words(Pack *p)
{
    return (ThreadWords){arena_array(&p->m->arena, uint32_t, p->words),
                         arena_array(&p->m->arena, uint32_t, p->words), 4 * p->words};
}

static void pack_all(Pack *p, const unsigned char *codes, unsigned char *packed)
{
    ThreadWords w = thread_words(p);
    int64_t tile[2];
    for (tile[0] = 0; tile[0] < p->tiles[0]; tile[0]++)
        for (tile[1] = 0; tile[1] < p->tiles[1]; tile[1]++)
            for (int64_t t = 0; t < p->layout->threads; t++, packed += w.bytes) {
                gather(p, tile, t, codes, w.plain);
                reorder(p, true, w.plain, w.packed);
                memcpy(packed, w.packed, w.bytes);
            }
}

static void unpack_all(Pack *p, const unsigned char *packed, unsigned char *codes)
{
    ThreadWords w = thread_words(p);
    int64_t tile[2];
    codes[p->code_bytes - 1] = 0;
    for (tile[0] = 0; tile[0] < p->tiles[0]; tile[0]++)
        for (tile[1] = 0; tile[1] < p->tiles[1]; tile[1]++)
            for (int64_t t = 0; t < p->layout->threads; t++, packed += w.bytes) {
                memcpy(w.packed, packed, w.bytes);
                reorder(p, false, w.packed, w.plain);
                scatter(p, tile, t, codes, w.plain);
            }
}

/* ---- the interface --------------------------------------------------------- */

typedef enum Job { JOB_SIZE, JOB_PACK, JOB_UNPACK } Job;

static bool check_sizes(const Pack *p, size_t codes, size_t packed)
{
    if (codes != p->code_bytes)
        return diag_error(p->m->diag, (Loc){0}, "the codes are %zu bytes, got %zu",
                          p->code_bytes, codes);
    if (packed != p->packed_bytes)
        return diag_error(p->m->diag, (Loc){0}, "the packed matrix is %zu bytes, got %zu",
                          p->packed_bytes, packed);
    return true;
}

static bool take_packing(Diag *diag, const tilus_packing *packing, tilus_packing *known)
{
    if (!API_COPY(diag, tilus_packing, known, packing, "packing"))
        return false;
    const char *missing = !known->type ? "type" : !known->layout ? "layout" : NULL;
    return !missing || diag_error(diag, (Loc){0}, "packing: %s is NULL", missing);
}

/* All but the guard against lack of memory; the packed matrix's bytes, or 0. */
static size_t do_job(Module *m, const tilus_packing *packing, Job job, void *codes,
                     size_t code_bytes, void *packed, size_t packed_bytes)
{
    tilus_packing known;
    Pack p = {.m = m, .packing = &known};
    if (!take_packing(m->diag, packing, &known) || !pack_open(&p) ||
        (job != JOB_SIZE && !check_sizes(&p, code_bytes, packed_bytes)))
        return 0;
    if (job != JOB_SIZE)
        find_indices(&p);
    if (job == JOB_PACK)
        pack_all(&p, codes, packed);
    else if (job == JOB_UNPACK)
        unpack_all(&p, packed, codes);
    return p.packed_bytes;
}

static size_t guarded(tilus_diag *diag, const tilus_packing *packing, Job job, void *codes,
                      size_t code_bytes, void *packed, size_t packed_bytes)
{
    Module *m = module_new(diag);
    volatile size_t bytes = 0;
    if (m && setjmp(diag->oom.jump) == 0)
        bytes = do_job(m, packing, job, codes, code_bytes, packed, packed_bytes);
    module_free(m);
    return bytes;
}

size_t tilus_packed_size(tilus_diag *diag, const tilus_packing *packing)
{
    return guarded(diag, packing, JOB_SIZE, NULL, 0, NULL, 0);
}

bool tilus_pack_weights(tilus_diag *diag, const tilus_packing *packing, const void *codes,
                        size_t size, void *packed, size_t packed_size)
{
    return guarded(diag, packing, JOB_PACK, (void *)codes, size, packed, packed_size) > 0;
}

bool tilus_unpack_weights(tilus_diag *diag, const tilus_packing *packing, const void *packed,
                          size_t packed_size, void *codes, size_t size)
{
    return guarded(diag, packing, JOB_UNPACK, codes, size, (void *)packed, packed_size) > 0;
}
