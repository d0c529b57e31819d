/* Artefacts: what is written is read, and nothing else is. */
#include "artefact_format.h"
#include "artefact_trial.h"
#include "support/kernel_info.h"
#include "support/limits.h"
#include "support/scalar.h"
#include "tilus/runtime.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- a driver of allocations ------------------------------------------ */

static bool no_memory;

void *__real_malloc(size_t size);
void *__wrap_malloc(size_t size);

void *__wrap_malloc(size_t size)
{
    return no_memory ? NULL : __real_malloc(size);
}

/* ---- one artefact with everything ------------------------------------- */

static const tilus_arg_info args[] = {
    {"a", TILUS_ARG_POINTER, "f16", 1, INT64_MIN, INT64_MAX, 16},
    {"m", TILUS_ARG_I32, "i32", 128, -256, 1024, 1},
    {"n", TILUS_ARG_U32, "u32", 1, 0, UINT32_MAX, 1},
    {"0", TILUS_ARG_I64, "i64", 3, INT64_MIN, INT64_MAX, 1},
};
static const tilus_code grid_x[] = {{TILUS_CODE_ARGUMENT, 1},
                                    {TILUS_CODE_CONSTANT, 64},
                                    {TILUS_CODE_OPERATOR, SCALAR_ceil_div}};
static const tilus_code grid_y[] = {{TILUS_CODE_CONSTANT, INT64_MIN},
                                    {TILUS_CODE_OPERATOR, SCALAR_neg}};
static const tilus_code one[] = {{TILUS_CODE_CONSTANT, 1}};
static const tilus_code *const sums_extents[] = {grid_x, one};
static const size_t sums_lengths[] = {3, 1};
static const tilus_workspace_tensor workspace[] = {
    {"locks", 32, true, 1, &sums_lengths[1], &sums_extents[1]},
    {NULL, 6, false, 2, sums_lengths, sums_extents},
};
static const tilus_code *const map_strides[] = {grid_x};
static const tilus_tensor_map maps[] = {
    {.argument = 0, .type = TILUS_MAP_F16, .rank = 2, .extent_length = sums_lengths,
     .extents = sums_extents, .stride_length = sums_lengths, .strides = map_strides,
     .box = {3, 64}, .swizzle = 128, .promotion = 256},
    {.argument = 0, .type = TILUS_MAP_U8, .rank = 1, .extent_length = &sums_lengths[1],
     .extents = &sums_extents[1], .box = {16}},
};
static const tilus_kernel_info info = {
    .name = "mat_mul2", .arg_count = 4, .args = args, .grid_rank = 3,
    .grid_length = {3, 2, 1}, .grid = {grid_x, grid_y, one}, .threads = 96,
    .shared_bytes = 232448, .workspace_count = 2, .workspace = workspace, .overlaps = true,
    .map_count = 2, .maps = maps, .cluster = {2, 1, 4}};
static const tilus_artefact sample = {
    .info = &info, .target = "sm_90a", .ptx_version = 83,
    .ptx = "// \xc3\xa9\n.version 8.3\n", .cubin = "\x7f""ELF\0\xff", .cubin_size = 6,
    .source = "tilus 1\n", .parameters = "W=u4 BK=64", .compiler = "tilus 0.2.0"};

static uint8_t *write_bytes(const tilus_artefact *a, size_t *size)
{
    void *bytes;
    assert_int_equal(tilus_artefact_write(a, &bytes, size), TILUS_OK);
    assert_non_null(bytes);
    return bytes;
}

/* Reads bytes that end where their allocation does; the caller frees the result. */
static tilus_artefact *read_bytes(const uint8_t *bytes, size_t size)
{
    tilus_artefact *a;
    char message[256];
    if (tilus_artefact_read(bytes, size, &a, message, sizeof message) != TILUS_OK)
        fail_msg("refused: %s", message);
    assert_string_equal(message, "");
    return a;
}

/* ---- round trips ------------------------------------------------------ */

static void assert_codes_equal(const tilus_code *a, size_t a_length, const tilus_code *b,
                               size_t b_length)
{
    assert_int_equal(a_length, b_length);
    for (size_t i = 0; i < a_length; i++) {
        assert_int_equal(a[i].kind, b[i].kind);
        assert_int_equal(a[i].value, b[i].value);
    }
}

static void assert_args_equal(const tilus_kernel_info *a, const tilus_kernel_info *b)
{
    assert_int_equal(a->arg_count, b->arg_count);
    for (size_t i = 0; i < a->arg_count; i++) {
        assert_string_equal(a->args[i].name, b->args[i].name);
        assert_string_equal(a->args[i].dtype, b->args[i].dtype);
        assert_int_equal(a->args[i].kind, b->args[i].kind);
        assert_int_equal(a->args[i].divisible, b->args[i].divisible);
        assert_int_equal(a->args[i].min, b->args[i].min);
        assert_int_equal(a->args[i].max, b->args[i].max);
        assert_int_equal(a->args[i].align, b->args[i].align);
    }
}

static void assert_workspaces_equal(const tilus_kernel_info *a, const tilus_kernel_info *b)
{
    assert_int_equal(a->workspace_count, b->workspace_count);
    for (size_t i = 0; i < a->workspace_count; i++) {
        const tilus_workspace_tensor *s = &a->workspace[i], *t = &b->workspace[i];
        assert_int_equal(!s->name, !t->name);
        if (s->name)
            assert_string_equal(s->name, t->name);
        assert_int_equal(s->bits, t->bits);
        assert_int_equal(s->zeroed, t->zeroed);
        assert_int_equal(s->rank, t->rank);
        for (unsigned d = 0; d < s->rank; d++)
            assert_codes_equal(s->extents[d], s->extent_length[d], t->extents[d],
                               t->extent_length[d]);
    }
}

static void assert_maps_equal(const tilus_kernel_info *a, const tilus_kernel_info *b)
{
    assert_int_equal(a->map_count, b->map_count);
    for (size_t i = 0; i < a->map_count; i++) {
        const tilus_tensor_map *s = &a->maps[i], *t = &b->maps[i];
        assert_int_equal(s->argument, t->argument);
        assert_int_equal(s->type, t->type);
        assert_int_equal(s->rank, t->rank);
        assert_int_equal(s->swizzle, t->swizzle);
        assert_int_equal(s->promotion, t->promotion);
        for (unsigned d = 0; d < s->rank; d++) {
            assert_int_equal(s->box[d], t->box[d]);
            assert_codes_equal(s->extents[d], s->extent_length[d], t->extents[d],
                               t->extent_length[d]);
            if (d + 1 < s->rank)
                assert_codes_equal(s->strides[d], s->stride_length[d], t->strides[d],
                                   t->stride_length[d]);
        }
    }
}

static void assert_infos_equal(const tilus_kernel_info *a, const tilus_kernel_info *b)
{
    assert_string_equal(a->name, b->name);
    assert_args_equal(a, b);
    assert_int_equal(a->grid_rank, b->grid_rank);
    for (unsigned d = 0; d < a->grid_rank; d++)
        assert_codes_equal(a->grid[d], a->grid_length[d], b->grid[d], b->grid_length[d]);
    assert_int_equal(a->threads, b->threads);
    assert_int_equal(a->shared_bytes, b->shared_bytes);
    assert_workspaces_equal(a, b);
    assert_int_equal(a->overlaps, b->overlaps);
    assert_maps_equal(a, b);
    assert_memory_equal(a->cluster, b->cluster, sizeof a->cluster);
    assert_int_equal(a->cooperative, b->cooperative);
}

static void test_round_trip(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    tilus_artefact *a = read_bytes(bytes, size);
    /* The bytes may go away. */
    memset(bytes, 0xee, size);
    free(bytes);
    assert_infos_equal(a->info, &info);
    assert_string_equal(a->target, sample.target);
    assert_int_equal(a->ptx_version, sample.ptx_version);
    assert_string_equal(a->ptx, sample.ptx);
    assert_int_equal(a->cubin_size, sample.cubin_size);
    assert_memory_equal(a->cubin, sample.cubin, sample.cubin_size);
    assert_int_equal((uintptr_t)a->cubin % ARTEFACT_ALIGN, 0);
    assert_string_equal(a->source, sample.source);
    assert_string_equal(a->parameters, sample.parameters);
    assert_string_equal(a->compiler, sample.compiler);
    free(a);
}

/* The least that can be launched: no arguments, one block, no cubin, no texts. */
static void test_least(void **state)
{
    (void)state;
    const tilus_kernel_info small = {.name = "f", .grid_rank = 1, .grid_length = {1},
                                     .grid = {one}, .threads = 32};
    const tilus_artefact least = {.info = &small, .target = "sm_80", .ptx_version = 70,
                                  .ptx = "x"};
    size_t size;
    uint8_t *bytes = write_bytes(&least, &size);
    tilus_artefact *a = read_bytes(bytes, size);
    assert_infos_equal(a->info, &small);
    assert_null(a->cubin);
    assert_int_equal(a->cubin_size, 0);
    assert_string_equal(a->source, "");
    assert_string_equal(a->parameters, "");
    assert_string_equal(a->compiler, "");
    free(a);
    free(bytes);
}

/* Bytes depend on values only, not on where they lie or what lies around them. */
static void test_equal_bytes(void **state)
{
    (void)state;
    size_t size, again_size;
    uint8_t *bytes = write_bytes(&sample, &size);
    tilus_artefact *a = read_bytes(bytes, size);
    uint8_t *again = write_bytes(a, &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    assert_int_equal(size % ARTEFACT_ALIGN, 0);
    free(again);
    free(a);
    free(bytes);
}

/* Files name operators by these numbers. */
static void test_operator_numbers(void **state)
{
    (void)state;
    static const char *const names[] = {
        "or",  "and", "not", "eq",  "ne",  "lt",  "le",       "gt",  "ge",
        "add", "sub", "mul", "div", "mod", "neg", "ceil_div", "min", "max"};
    assert_int_equal(SCALAR_OP_COUNT, sizeof names / sizeof *names);
    for (size_t i = 0; i < SCALAR_OP_COUNT; i++)
        assert_string_equal(scalar_op_info[i].name, names[i]);
}

/* The checksum is that of zlib and of Ethernet, of all bytes but its own four. */
static void test_checksum(void **state)
{
    (void)state;
    unsigned char bytes[ARTEFACT_AT_CHECKSUM + 4] = "123456789";
    assert_int_equal(artefact_checksum(bytes, sizeof bytes), UINT32_C(0x77d55834));
    bytes[ARTEFACT_AT_CHECKSUM + 1] = 1;
    assert_int_equal(artefact_checksum(bytes, sizeof bytes), UINT32_C(0x77d55834));
    bytes[ARTEFACT_AT_CHECKSUM - 1] = 1;
    assert_int_not_equal(artefact_checksum(bytes, sizeof bytes), UINT32_C(0x77d55834));
}

/* ---- refusals --------------------------------------------------------- */

static void assert_refused(const uint8_t *bytes, size_t size, const char *reason)
{
    tilus_artefact *a;
    char message[256];
    assert_int_equal(tilus_artefact_read(bytes, size, &a, message, sizeof message),
                     TILUS_ERROR_ARTEFACT);
    assert_null(a);
    if (!strstr(message, reason))
        fail_msg("'%s' does not say '%s'", message, reason);
}

/* A copy that ends where its allocation does. */
static uint8_t *copy_bytes(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    return copy;
}

static void test_truncations(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    for (size_t length = 0; length < size; length++) {
        uint8_t *copy = copy_bytes(bytes, length);
        assert_refused(copy, length, "cut short");
        /* And if the header had been told. */
        artefact_mend(copy, length);
        assert_refused(copy, length, length < ARTEFACT_HEADER ? "cut short" : "damaged");
        free(copy);
    }
    assert_refused(NULL, 0, "cut short: 0 bytes");
    free(bytes);
}

static void test_bit_flips(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_refused(bytes, size, "");
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_true(artefact_accepted(bytes, size));
    free(bytes);
}

static void test_versions(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    bytes[ARTEFACT_AT_VERSION] = TILUS_ARTEFACT_VERSION + 1;
    assert_refused(bytes, size, "version 7, this is a reader of version 6");
    bytes[ARTEFACT_AT_VERSION] = 0;
    assert_refused(bytes, size, "version 0, the first is 1");
    bytes[0] = 'x';
    assert_refused(bytes, size, "no artefact");
    free(bytes);
}

static void assert_check(const tilus_artefact *a, const char *reason);

/* Floats came with version 3. */
static void test_floats(void **state)
{
    (void)state;
    static const tilus_arg_info floats[] = {
        {"h", TILUS_ARG_F16, "f16", 1, INT64_MIN, INT64_MAX, 1},
        {"b", TILUS_ARG_BF16, "bf16", 1, INT64_MIN, INT64_MAX, 1},
        {"eps", TILUS_ARG_F32, "f32", 1, INT64_MIN, INT64_MAX, 1}};
    tilus_kernel_info i = {.name = "f", .arg_count = 3, .args = floats, .grid_rank = 1,
                           .grid_length = {1}, .grid = {one}, .threads = 32};
    tilus_artefact a = sample;
    size_t size;
    a.info = &i;
    uint8_t *bytes = write_bytes(&a, &size);
    tilus_artefact *read = read_bytes(bytes, size);
    assert_infos_equal(read->info, &i);
    free(read);
    bytes[ARTEFACT_AT_VERSION] = 2;
    artefact_mend(bytes, size);
    assert_refused(bytes, size, "argument %h is a float, in a file of version 2");
    free(bytes);
    static const tilus_code of_float[] = {{TILUS_CODE_ARGUMENT, 2}};
    i.grid[0] = of_float;
    assert_check(&a, "a code that does not exist");
}

/* Version 1 ends the signature before the byte that says whether launches overlap, version 2
 * before the number of tensor maps, version 4 before the cluster, version 5 before the byte that says
 * whether blocks all run together. */
static void test_version_1(void **state)
{
    (void)state;
    enum { AT_INFO_SIZE = ARTEFACT_HEADER + 8, AT_INFO = ARTEFACT_HEADER + 16,
           MAPS = 4, CLUSTER = 12, COOPERATIVE = 1, TAIL = COOPERATIVE + CLUSTER + MAPS + 1 };
    tilus_kernel_info plain = info;
    tilus_artefact older = sample;
    size_t size;
    plain.name = "mat_mul2abcdef";
    plain.overlaps = false;
    plain.map_count = 0;
    memset(plain.cluster, 0, sizeof plain.cluster);
    older.info = &plain;
    uint8_t *bytes = write_bytes(&older, &size);
    size_t signature = bytes[AT_INFO_SIZE] + 256u * bytes[AT_INFO_SIZE + 1];
    uint8_t *flag = &bytes[AT_INFO + signature - TAIL];
    size_t end = AT_INFO + (signature + ARTEFACT_ALIGN - 1) / ARTEFACT_ALIGN * ARTEFACT_ALIGN;
    memmove(bytes + end - ARTEFACT_ALIGN, bytes + end, size - end);
    size -= ARTEFACT_ALIGN;
    assert_int_not_equal(signature % ARTEFACT_ALIGN, 1);        /* the rest becomes padding */
    bytes[ARTEFACT_AT_VERSION] = 1;
    bytes[AT_INFO_SIZE] -= TAIL;
    artefact_mend(bytes, size);
    assert_null(artefact_trial(bytes, size));
    tilus_artefact *a = read_bytes(bytes, size);
    assert_infos_equal(a->info, &plain);
    free(a);
    *flag = 1;
    artefact_mend(bytes, size);
    assert_refused(bytes, size, "a byte 0x01 behind it");
    bytes[ARTEFACT_AT_VERSION] = 2;
    bytes[AT_INFO_SIZE]++;
    artefact_mend(bytes, size);
    assert_true(artefact_accepted(bytes, size));
    *flag = 2;
    artefact_mend(bytes, size);
    assert_refused(bytes, size, "2 where 0 or 1 should be");
    free(bytes);
}

static void test_sizes(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    bytes = realloc(bytes, size + 16);
    assert_non_null(bytes);
    memset(bytes + size, 0, 16);
    assert_refused(bytes, size + 16, "it should be");
    artefact_mend(bytes, size + 16);
    assert_refused(bytes, size + 16, "16 bytes behind the last section");
    assert_refused(bytes, (size_t)TILUS_ARTEFACT_MAX + 1,
                   "too large: 268435457 bytes, the limit is 268435456");
    free(bytes);
}

/* Random changes of a few bytes that the header knows nothing of: numbers that are too
 * large, bytes and stretches from elsewhere, single bits. */
static uint64_t next_random(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed * UINT64_C(0x2545f4914f6cdd1d) >> 11;
}

static void mutate(uint8_t *bytes, size_t *size, uint64_t *seed)
{
    static const uint8_t special[] = {0, 1, 2, 3, 0x1f, 0x20, 0x7f, 0x80, 0xc0, 0xff};
    for (uint64_t changes = 1 + next_random(seed) % 3; changes > 0; changes--) {
        size_t at = next_random(seed) % *size, from = next_random(seed) % *size;
        size_t most = *size - (at > from ? at : from);
        switch (next_random(seed) % 8) {
        case 0: bytes[at] = (uint8_t)next_random(seed); break;
        case 1: memmove(bytes + at, bytes + from, next_random(seed) % (most + 1)); break;
        case 2: memset(bytes + at, 0xff, most < 4 ? most : 4); break;
        case 3: *size -= at > ARTEFACT_HEADER ? next_random(seed) % (*size - at) : 0; break;
        case 4: bytes[at] = special[next_random(seed) % sizeof special]; break;
        case 5: bytes[at]++; break;
        default: bytes[at] ^= (uint8_t)(1 << next_random(seed) % 8); break;
        }
    }
    artefact_mend(bytes, *size);
}

static void test_mutations(void **state)
{
    (void)state;
    enum { MUTATIONS = 20000 };
    size_t size, accepted = 0;
    uint8_t *bytes = write_bytes(&sample, &size);
    for (uint64_t i = 1; i <= MUTATIONS; i++) {
        uint64_t seed = i * UINT64_C(0x9e3779b97f4a7c15);
        size_t length = size;
        uint8_t *copy = copy_bytes(bytes, size);
        mutate(copy, &length, &seed);
        uint8_t *exact = copy_bytes(copy, length);
        const char *why = artefact_trial(exact, length);
        if (why)
            fail_msg("mutation %llu: %s", (unsigned long long)i, why);
        accepted += (size_t)artefact_accepted(exact, length);
        free(exact);
        free(copy);
    }
    /* A mutant may be read or refused: a letter of a text may become another. */
    assert_in_range(accepted, MUTATIONS / 50, MUTATIONS - MUTATIONS / 50);
    free(bytes);
}

static void test_no_memory(void **state)
{
    (void)state;
    size_t size;
    uint8_t *bytes = write_bytes(&sample, &size);
    tilus_artefact *a;
    void *again;
    char message[256];
    no_memory = true;
    tilus_status read = tilus_artefact_read(bytes, size, &a, message, sizeof message);
    tilus_status written = tilus_artefact_write(&sample, &again, &size);
    no_memory = false;
    assert_int_equal(read, TILUS_ERROR_MEMORY);
    assert_null(a);
    assert_non_null(strstr(message, "out of memory"));
    assert_int_equal(written, TILUS_ERROR_MEMORY);
    assert_null(again);
    assert_int_equal(size, 0);
    free(bytes);
}

/* ---- what the compiler never makes ------------------------------------- */

/* Refused by the writer, with the reason that a reader would give. */
static void assert_check(const tilus_artefact *a, const char *reason)
{
    char message[256] = "";
    void *bytes;
    size_t size;
    assert_false(artefact_check(a, message, sizeof message));
    if (!strstr(message, reason))
        fail_msg("'%s' does not say '%s'", message, reason);
    assert_int_equal(tilus_artefact_write(a, &bytes, &size), TILUS_ERROR_ARGUMENT);
    assert_null(bytes);
    if (!strstr(tilus_rt_error(), reason))
        fail_msg("'%s' does not say '%s'", tilus_rt_error(), reason);
}

static void assert_info_check(tilus_kernel_info i, const char *reason)
{
    tilus_artefact a = sample;
    a.info = &i;
    assert_check(&a, reason);
}

static void assert_arg_check(tilus_arg_info arg, const char *reason)
{
    tilus_kernel_info i = info;
    tilus_arg_info some[] = {args[0], args[1], arg, args[3]};
    i.args = some;
    assert_info_check(i, reason);
}

static void assert_code_check(const tilus_code *codes, size_t length, const char *reason)
{
    tilus_kernel_info i = info;
    i.grid[0] = codes;
    i.grid_length[0] = length;
    assert_info_check(i, reason);
    i = info;
    tilus_workspace_tensor t = workspace[0];
    t.extents = &codes;
    t.extent_length = &length;
    i.workspace = &t;
    i.workspace_count = 1;
    assert_info_check(i, reason);
}

/* A file of version 5 is one of version 6 without the last byte of the signature. */
static void test_cooperative(void **state)
{
    (void)state;
    enum { AT_INFO_SIZE = ARTEFACT_HEADER + 8, AT_INFO = ARTEFACT_HEADER + 16 };
    tilus_kernel_info i = info;
    tilus_artefact a = sample;
    size_t size;
    a.info = &i;
    i.cooperative = true;
    assert_info_check(i, "a cooperative program with a cluster, it has one of them");
    memset(i.cluster, 0, sizeof i.cluster);
    uint8_t *bytes = write_bytes(&a, &size);
    assert_null(artefact_trial(bytes, size));
    tilus_artefact *read = read_bytes(bytes, size);
    assert_true(tilus_kernel_cooperative(read->info));
    assert_infos_equal(read->info, &i);
    free(read);
    size_t signature = bytes[AT_INFO_SIZE] + 256u * bytes[AT_INFO_SIZE + 1];
    assert_int_not_equal(signature % ARTEFACT_ALIGN, 1);        /* the byte becomes padding */
    bytes[AT_INFO + signature - 1] = 2;
    artefact_mend(bytes, size);
    assert_refused(bytes, size, "2 where 0 or 1 should be");
    bytes[AT_INFO + signature - 1] = 0;
    bytes[AT_INFO_SIZE]--;
    bytes[ARTEFACT_AT_VERSION] = 5;
    artefact_mend(bytes, size);
    assert_null(artefact_trial(bytes, size));
    read = read_bytes(bytes, size);
    assert_false(tilus_kernel_cooperative(read->info));
    free(read);
    free(bytes);
}

static void test_bad_clusters(void **state)
{
    (void)state;
    tilus_kernel_info i = info;
    i.cluster[1] = 0;
    assert_info_check(i, "a cluster of 0 blocks in dimension 1, it has 1 to 8");
    i.cluster[1] = 9;
    assert_info_check(i, "a cluster of 9 blocks in dimension 1, it has 1 to 8");
    i.cluster[1] = 2;
    assert_info_check(i, "a cluster of 16 blocks, it has at most 8");
    i = info;
    i.grid_rank = 2;
    assert_info_check(i, "a cluster of 4 blocks in dimension 2, the grid has 2 dimensions");
}

static void test_bad_texts(void **state)
{
    (void)state;
    tilus_artefact a = sample;
    a.info = NULL, assert_check(&a, "no proper name");
    a = sample, a.target = NULL, assert_check(&a, "like sm_90a");
    a = sample, a.target = "sm_9", assert_check(&a, "like sm_90a");
    a = sample, a.target = "sm_90ab", assert_check(&a, "like sm_90a");
    a = sample, a.target = "sm_1234", assert_check(&a, "like sm_90a");
    a = sample, a.ptx = NULL, assert_check(&a, "no PTX");
    a = sample, a.ptx = "", assert_check(&a, "no PTX");
    a = sample, a.ptx_version = 9, assert_check(&a, "PTX version 9, there are 10 to 999");
    a = sample, a.ptx = "\xff", assert_check(&a, "the PTX is not UTF-8");
    a = sample, a.source = "\xc0\x80", assert_check(&a, "the source is not UTF-8");
    a = sample, a.parameters = "\xe0\x80\x80", assert_check(&a, "parameters is not UTF-8");
    a = sample, a.compiler = "\x80", assert_check(&a, "compiler is not UTF-8");
}

static void test_bad_args(void **state)
{
    (void)state;
    tilus_arg_info a = args[2];
    a.name = "a-b", assert_arg_check(a, "argument 2 has no proper name");
    a.name = NULL, assert_arg_check(a, "argument 2 has no proper name");
    a = args[2], a.dtype = "U32", assert_arg_check(a, "argument 2 has no proper type");
    a = args[2], a.dtype = "i32", assert_arg_check(a, "%n is of kind u32 and of type i32");
    a = args[2], a.kind = (tilus_arg_kind)7, assert_arg_check(a, "of kind 7, the last is 6");
    a = args[2], a.divisible = 0, assert_arg_check(a, "%n is divisible by 0, the least is 1");
    a = args[2], a.min = 5, a.max = 4, assert_arg_check(a, "[5, 4] of argument %n");
    a = args[2], a.min = -1, assert_arg_check(a, "[-1, 4294967295] of argument %n");
    a = args[0], a.align = 24, assert_arg_check(a, "%a is aligned to 24, no power");
    a = args[0], a.align = 0, assert_arg_check(a, "%a is aligned to 0, no power");
    a = args[0], a.align = INT64_MIN, assert_arg_check(a, "no power of two");
}

static void test_bad_launch(void **state)
{
    (void)state;
    tilus_kernel_info i = info;
    i.name = "../etc", assert_info_check(i, "no proper name");
    i = info, i.grid_rank = 0, assert_info_check(i, "a grid of 0 dimensions");
    i = info, i.grid_rank = 4, assert_info_check(i, "a grid of 4 dimensions");
    i = info, i.threads = 0, assert_info_check(i, "a block of 0 threads");
    i = info, i.threads = 33, assert_info_check(i, "a block of 33 threads");
    i = info, i.threads = 1056, assert_info_check(i, "a block of 1056 threads");
    i = info, i.arg_count = 257, assert_info_check(i, "257 arguments, the limit is 256");
    i = info, i.shared_bytes = SIZE_MAX, assert_info_check(i, "of shared memory, the limit");
}

static void test_bad_workspace(void **state)
{
    (void)state;
    tilus_workspace_tensor t[2] = {workspace[0], workspace[1]};
    tilus_kernel_info i = info;
    i.workspace = t;
    t[0].name = "", assert_info_check(i, "tensor 0 has no proper name");
    t[0] = workspace[0], t[0].bits = 65, assert_info_check(i, "elements of 65 bits");
    t[0] = workspace[0], t[0].rank = 0, assert_info_check(i, "has 0 dimensions");
    t[0].rank = LIMIT_RANK + 1, assert_info_check(i, "has 9 dimensions");
    t[0] = workspace[0], t[0].zeroed = false, t[1].zeroed = true;
    assert_info_check(i, "tensor 1 is zeroed, the one before is not");
}

static void test_bad_maps(void **state)
{
    (void)state;
    tilus_tensor_map t[2] = {maps[0], maps[1]};
    tilus_kernel_info i = info;
    const tilus_code add = {TILUS_CODE_OPERATOR, SCALAR_add};
    const tilus_code *bad[] = {&add, &add};
    i.maps = t;
    t[1].argument = 1, assert_info_check(i, "tensor map 1 is of argument 1, which is no pointer");
    t[1].argument = 9, assert_info_check(i, "tensor map 1 is of argument 9, which is no pointer");
    t[1] = maps[1], t[1].type = (tilus_map_type)10, assert_info_check(i, "of kind 10, the last is 9");
    t[1] = maps[1], t[1].rank = 0, assert_info_check(i, "map 1 has 0 dimensions, there are 1 to 5");
    t[1].rank = 6, assert_info_check(i, "map 1 has 6 dimensions, there are 1 to 5");
    t[1] = maps[1], t[1].swizzle = 16, assert_info_check(i, "map 1 has a swizzle of 16 bytes");
    t[1] = maps[1], t[1].promotion = 32, assert_info_check(i, "map 1 has a promotion of 32 bytes");
    t[1] = maps[1], t[1].box[0] = 0, assert_info_check(i, "a box of 0 in dimension 0, there are 1");
    t[1].box[0] = 257, assert_info_check(i, "a box of 257 in dimension 0, there are 1 to 256");
    t[1].box[0] = 8, assert_info_check(i, "map 1 has a row of 8 bytes, no multiple of 16");
    t[1] = maps[1], t[0].swizzle = 64, assert_info_check(i, "past its swizzle of 64");
    t[0] = maps[0], t[0].extents = bad, assert_info_check(i, "the extent of dimension 0 of tensor map 0 has");
    t[0] = maps[0], t[0].strides = bad, assert_info_check(i, "stride 0 of tensor map 0 has");
    i.map_count = 17, assert_info_check(i, "17 tensor maps, the limit is 16");
}

static void test_bad_codes(void **state)
{
    (void)state;
    const tilus_code add = {TILUS_CODE_OPERATOR, SCALAR_add}, n = {TILUS_CODE_ARGUMENT, 1};
    assert_code_check(NULL, 0, "leave one number");
    assert_code_check((tilus_code[]){n, n}, 2, "leave one number");
    assert_code_check((tilus_code[]){n, add}, 2, "an operator without operands");
    assert_code_check((tilus_code[]){add}, 1, "an operator without operands");
    assert_code_check((tilus_code[]){{TILUS_CODE_ARGUMENT, 4}}, 1, "does not exist");
    assert_code_check((tilus_code[]){{TILUS_CODE_ARGUMENT, -1}}, 1, "does not exist");
    assert_code_check((tilus_code[]){{TILUS_CODE_ARGUMENT, 0}}, 1, "does not exist");
    assert_code_check((tilus_code[]){n, {TILUS_CODE_OPERATOR, SCALAR_OP_COUNT}}, 2,
                      "does not exist");
    assert_code_check((tilus_code[]){{(tilus_code_kind)3, 0}}, 1, "does not exist");
}

/* No deeper than the language: n + (n + (...)), ((n + n) + n) ..., and as many minus. */
static void test_deep_codes(void **state)
{
    (void)state;
    enum { DEEP = 2 * 1025 };
    const tilus_code n = {TILUS_CODE_ARGUMENT, 1}, add = {TILUS_CODE_OPERATOR, SCALAR_add};
    const tilus_code neg = {TILUS_CODE_OPERATOR, SCALAR_neg};
    static tilus_code pushed[DEEP], right[2 * LIMIT_DEPTH + 3], left[2 * LIMIT_DEPTH + 3],
        unary[LIMIT_DEPTH + 2];
    for (size_t i = 0; i < DEEP; i++)
        pushed[i] = i < DEEP / 2 ? n : add;
    for (size_t i = 0; i < 2 * LIMIT_DEPTH + 3; i++) {
        right[i] = i < LIMIT_DEPTH + 2 ? n : add;
        left[i] = i == 0 || i % 2 ? n : add;
    }
    for (size_t i = 0; i < LIMIT_DEPTH + 2; i++)
        unary[i] = i ? neg : n;
    assert_code_check(pushed, DEEP - 1, "too many operands");
    assert_code_check(right, 2 * LIMIT_DEPTH + 3, "one in the other");
    assert_null(kernel_codes_fault(&info, right + 1, 2 * LIMIT_DEPTH + 1));
    assert_code_check(left, 2 * LIMIT_DEPTH + 3, "one in the other");
    assert_null(kernel_codes_fault(&info, left, 2 * LIMIT_DEPTH + 1));
    assert_code_check(unary, LIMIT_DEPTH + 2, "one in the other");
    assert_null(kernel_codes_fault(&info, unary, LIMIT_DEPTH + 1));
}

static void test_too_large(void **state)
{
    (void)state;
    tilus_artefact a = sample;
    void *bytes;
    size_t size;
    /* Less than the limit, but not with the rest. Nothing is read of it. */
    a.cubin_size = TILUS_ARTEFACT_MAX;
    assert_int_equal(tilus_artefact_write(&a, &bytes, &size), TILUS_ERROR_ARGUMENT);
    a.cubin_size = SIZE_MAX;
    assert_int_equal(tilus_artefact_write(&a, &bytes, &size), TILUS_ERROR_ARGUMENT);
    assert_null(bytes);
    assert_string_equal(tilus_rt_error(), "an artefact of 18446744073709551615 bytes, more than "
                                          "268435456");
}

/* Descriptions that a program made by hand. */
static void test_tables_at_null(void **state)
{
    (void)state;
    tilus_kernel_info i = info;
    i.args = NULL;
    assert_info_check(i, "arguments at NULL");
    i = info;
    i.workspace = NULL;
    i.workspace_count = 2;
    assert_info_check(i, "2 workspace tensors at NULL");
    tilus_workspace_tensor t = workspace[0];
    t.extents = NULL;
    i.workspace = &t;
    i.workspace_count = 1;
    assert_info_check(i, "workspace tensor 0 has extents at NULL");
    i = info;
    i.maps = NULL;
    i.map_count = 1;
    assert_info_check(i, "1 tensor maps at NULL");
    assert_code_check(NULL, 3, "codes at NULL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_least),
        cmocka_unit_test(test_equal_bytes), cmocka_unit_test(test_operator_numbers),
        cmocka_unit_test(test_checksum), cmocka_unit_test(test_truncations),
        cmocka_unit_test(test_bad_clusters), cmocka_unit_test(test_bit_flips), cmocka_unit_test(test_versions),
        cmocka_unit_test(test_version_1), cmocka_unit_test(test_floats),
        cmocka_unit_test(test_cooperative),
        cmocka_unit_test(test_sizes), cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_no_memory), cmocka_unit_test(test_bad_texts),
        cmocka_unit_test(test_bad_args), cmocka_unit_test(test_bad_launch),
        cmocka_unit_test(test_bad_workspace), cmocka_unit_test(test_bad_maps),
        cmocka_unit_test(test_bad_codes),
        cmocka_unit_test(test_deep_codes),
        cmocka_unit_test(test_too_large),
        cmocka_unit_test(test_tables_at_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
