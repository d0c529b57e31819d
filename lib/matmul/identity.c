/* The identity of packed weights: their last 256 bytes, little-endian.
 *
 *       0  "TILUSMM\0"      24  form         56  group        80  weights  ("u4")
 *       8  version, u32     32  size         64  n_tile       96  product  ("f16")
 *      12  256, u32         40  n            72  zeros, u32  112  scales   ("f16")
 *      16  identity, u64    48  k            76  gated, u32  128  0 ..
 *
 * `form` is a hash of all that decides where the bits of codes and scales lie, `identity` one of
 * bytes 24 to 127. Names are padded with NUL. */
#include "matmul/internal.h"

#include "support/sized.h"
#include "types/storage.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* FORM_VERSION changes when pack.c puts anything elsewhere; a test of packed bytes asks for it.
 * PLANES_VERSION is of bit planes, GATED_VERSION of rows that lie in turns. */
enum { VERSION = 1, FORM_VERSION = 2, PLANES_VERSION = -1, GATED_VERSION = -2, NAME = 16 };

enum {
    AT_VERSION = 8, AT_BYTES = 12, AT_IDENTITY = 16, AT_FORM = 24, AT_SIZE = 32, AT_N = 40,
    AT_K = 48, AT_GROUP = 56, AT_N_TILE = 64, AT_ZEROS = 72, AT_GATED = 76, AT_WEIGHTS = 80, AT_PRODUCT = 96,
    AT_SCALES = 112, AT_END = 128,
};

static const char magic[8] = "TILUSMM";

/* ---- numbers ------------------------------------------------------------- */

static void put(unsigned char *to, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++)
        to[i] = (unsigned char)(value >> 8 * i);
}

static uint64_t get(const unsigned char *from, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes; i > 0; i--)
        value = value << 8 | from[i - 1];
    return value;
}

/* Goes on with a hash, FNV-1a of 64 bits. */
static uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t hash_start(void)
{
    return UINT64_C(0xcbf29ce484222325);
}

static uint64_t hash_number(uint64_t hash, int64_t value)
{
    unsigned char bytes[8];
    put(bytes, (uint64_t)value, sizeof bytes);
    return hash_bytes(hash, bytes, sizeof bytes);
}

/* ---- writing ------------------------------------------------------------- */

/* Goes on with the storage order of codes. */
static uint64_t hash_order(uint64_t hash, const MatmulSpec *s)
{
    CastStorage storage;
    cast_storage(s->stored, s->product, &storage);
    hash = hash_number(hash, CAST_STORAGE_VERSION);
    hash = hash_number(hash, storage.flips);
    for (unsigned i = 0; i < storage.elements * dtype_bits(s->stored); i++)
        hash = hash_number(hash, storage.order[i]);
    return hash;
}

/* Hashes the order of rows and of codes, and the sizes of a packed block and of the whole. */
static uint64_t form_of(const Packed *p, const MatmulSpec *s)
{
    const size_t sizes[] = {(size_t)p->rows, (size_t)p->tiles, (size_t)p->slices, p->block,
                            p->block_scales, p->block_zeros, p->scales, p->zeros};
    uint64_t hash = hash_number(hash_start(), FORM_VERSION);
    hash = matmul_is_a8(s) ? hash_number(hash, PLANES_VERSION) : hash_order(hash, s);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        hash = hash_number(hash, (int64_t)sizes[i]);
    return s->gated ? hash_number(hash, GATED_VERSION) : hash;
}

static void put_name(unsigned char *to, DType type)
{
    const char *name = dtype_name(type);
    memcpy(to, name, strlen(name));
}

/* Returns the identity that the fields give, which is never 0. */
static uint64_t identity_of(const unsigned char *bytes)
{
    uint64_t hash = hash_bytes(hash_start(), bytes + AT_FORM, AT_END - AT_FORM);
    return hash ? hash : 1;
}

void packed_identify(Packed *p, const MatmulSpec *s)
{
    unsigned char *b = p->bytes;
    memset(b, 0, sizeof p->bytes);
    memcpy(b, magic, sizeof magic);
    put(b + AT_VERSION, VERSION, 4);
    put(b + AT_BYTES, TILUS_MATMUL_IDENTITY, 4);
    put(b + AT_FORM, form_of(p, s), 8);
    put(b + AT_SIZE, p->size, 8);
    put(b + AT_N, (uint64_t)s->n, 8);
    put(b + AT_K, (uint64_t)s->k, 8);
    put(b + AT_GROUP, (uint64_t)(s->group * s->repeats), 8);
    put(b + AT_N_TILE, (uint64_t)p->rows, 8);
    put(b + AT_ZEROS, (uint64_t)s->zeros, 4);
    put(b + AT_GATED, s->gated, 4);
    put_name(b + AT_WEIGHTS, s->weights);
    put_name(b + AT_PRODUCT, s->product);
    put_name(b + AT_SCALES, s->scales);
    p->identity = identity_of(b);
    put(b + AT_IDENTITY, p->identity, 8);
}

uint64_t tilus_matmul_packed_identity(const tilus_matmul_plan *plan)
{
    return plan ? plan->packed.identity : 0;
}

/* ---- reading ------------------------------------------------------------- */

/* Reads a field of 16 bytes, which end with a NUL. */
static bool get_name(const unsigned char *from, char to[NAME])
{
    memcpy(to, from, NAME);
    return to[NAME - 1] == 0 && to[0] != 0;
}

/* Checks the frame: the mark, the version, the hash. */
static tilus_status check_frame(const unsigned char *b)
{
    if (memcmp(b, magic, sizeof magic))
        return library_refuse("packed weights: their last %d bytes are no identity: they are "
                              "damaged, cut short, or of version 0.1", TILUS_MATMUL_IDENTITY);
    uint64_t version = get(b + AT_VERSION, 4), identity = get(b + AT_IDENTITY, 8);
    if (version != VERSION || get(b + AT_BYTES, 4) != TILUS_MATMUL_IDENTITY)
        return library_refuse("packed weights: version is %" PRIu64 ", this library reads %d",
                              version, VERSION);
    if (identity != identity_of(b))
        return library_refuse("packed weights: identity is 0x%016" PRIx64 ", their fields give "
                              "0x%016" PRIx64 ": they are damaged", identity, identity_of(b));
    return TILUS_OK;
}

static tilus_status read_fields(const unsigned char *b, tilus_matmul_packed *out)
{
    *out = (tilus_matmul_packed){
        .struct_size = sizeof *out, .identity = get(b + AT_IDENTITY, 8),
        .form = get(b + AT_FORM, 8), .size = (size_t)get(b + AT_SIZE, 8),
        .n = (int64_t)get(b + AT_N, 8), .k = (int64_t)get(b + AT_K, 8),
        .group = (int64_t)get(b + AT_GROUP, 8), .n_tile = (int64_t)get(b + AT_N_TILE, 8),
        .version = (int)get(b + AT_VERSION, 4), .zeros = (tilus_zeros)get(b + AT_ZEROS, 4),
        .gated = get(b + AT_GATED, 4)};
    if (get_name(b + AT_WEIGHTS, out->weights) && get_name(b + AT_PRODUCT, out->product) &&
        get_name(b + AT_SCALES, out->scales) && (unsigned)out->zeros <= TILUS_ZEROS_FLOAT)
        return TILUS_OK;
    return library_refuse("packed weights: their identity names no types");
}

/* Reads the identity of `size` packed bytes. */
static tilus_status read_identity(const void *packed, size_t size, tilus_matmul_packed *out)
{
    if (!packed)
        return library_refuse("packed is NULL");
    if (size < TILUS_MATMUL_IDENTITY)
        return library_refuse("packed weights: %zu bytes, less than the %d of their identity",
                              size, TILUS_MATMUL_IDENTITY);
    const unsigned char *b = (const unsigned char *)packed + size - TILUS_MATMUL_IDENTITY;
    tilus_status status = check_frame(b);
    if (status == TILUS_OK)
        status = read_fields(b, out);
    if (status == TILUS_OK && out->size != size)
        return library_refuse("packed weights: %zu bytes, their identity says %zu", size,
                              out->size);
    return status;
}

tilus_status tilus_matmul_packed_describe(const void *packed, size_t size,
                                          tilus_matmul_packed *out)
{
    char message[256];
    tilus_matmul_packed found;
    if (!out)
        return library_refuse_null(out);
    tilus_status status = read_identity(packed, size, &found);
    if (status != TILUS_OK)
        return status;
    return SIZED_FILL(tilus_matmul_packed, out, &found, "out",
                      ((Report){message, sizeof message})) ? TILUS_OK
                                                           : library_refuse("%s", message);
}

/* ---- comparing ------------------------------------------------------------ */

static tilus_status compare_names(const char *field, const char *has, const char *wanted)
{
    return strcmp(has, wanted) == 0
               ? TILUS_OK
               : library_refuse("packed weights: %s is %s, the plan's %s", field, has, wanted);
}

static tilus_status compare_numbers(const tilus_matmul_packed *has,
                                    const tilus_matmul_packed *wanted)
{
    const struct {
        const char *field;
        int64_t has, wanted;
    } numbers[] = {
        {"n", has->n, wanted->n},
        {"k", has->k, wanted->k},
        {"group", has->group, wanted->group},
        {"zeros", has->zeros, wanted->zeros},
        {"gated", has->gated, wanted->gated},
        {"n_tile", has->n_tile, wanted->n_tile},
        {"size", (int64_t)has->size, (int64_t)wanted->size},
    };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        if (numbers[i].has != numbers[i].wanted)
            return library_refuse("packed weights: %s is %" PRId64 ", the plan's %" PRId64,
                                  numbers[i].field, numbers[i].has, numbers[i].wanted);
    return TILUS_OK;
}

tilus_status tilus_matmul_packed_check(const tilus_matmul_plan *plan, const void *packed,
                                       size_t size)
{
    tilus_matmul_packed has, wanted;
    if (!plan)
        return library_refuse_null(plan);
    tilus_status status = read_identity(packed, size, &has);
    if (status == TILUS_OK)
        status = read_fields(plan->packed.bytes, &wanted);
    if (status == TILUS_OK)
        status = compare_names("weights", has.weights, wanted.weights);
    if (status == TILUS_OK)
        status = compare_names("product", has.product, wanted.product);
    if (status == TILUS_OK)
        status = compare_names("scales", has.scales, wanted.scales);
    if (status == TILUS_OK)
        status = compare_numbers(&has, &wanted);
    if (status == TILUS_OK && has.form != wanted.form)
        return library_refuse("packed weights: form is 0x%016" PRIx64 ", the plan's 0x%016" PRIx64
                              ": another version of the library packed them", has.form,
                              wanted.form);
    return status;
}
