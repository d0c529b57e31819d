/* Tensor parallelism in one process: packs the weights of a product once, cuts the packed form
 * for two ranks by tilus_matmul_shard, and checks that the ranks' parts give the whole.
 *
 *     shards
 *
 *     columns   each rank has half of n; c is both results, side by side
 *     rows      each rank has half of k, and so half of a's columns; c is the sum of both results
 *
 * Each rank would run on a device of its own. Here one device serves both, without a GPU a
 * software device on the CPU engine. Parts are compared as bytes, too, with what packing each
 * part gives. docs/matmul.md, "Shards", has the rules. */
#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 512, K = 512, GROUP = 128, RANKS = 2, M = 4 };

/* A part of B: rows k .. k + rows, columns n .. n + columns. */
typedef struct Part {
    const char *name;
    int64_t n, k, columns, rows;
    tilus_matmul_plan *plan;
    void *packed;
} Part;

static tilus_rt *rt;
static tilus_matmul *matmul;

static void check(tilus_status status, const char *step)
{
    if (status == TILUS_OK)
        return;
    fprintf(stderr, "shards: error: %s: %s\n", step, tilus_rt_error());
    exit(1);
}

static void *allocate(size_t size)
{
    void *memory = calloc(size, 1);
    if (!memory)
        fprintf(stderr, "shards: error: out of memory\n"), exit(1);
    return memory;
}

/* Opens the driver; where there is none, describes an H200 and runs its kernels on the CPU. */
static void open_libraries(void)
{
    char message[256];
    tilus_rt_options software = {.struct_size = sizeof software,
                                 .devices = tilus_find_device("h200"), .device_count = 1,
                                 .engine = tilus_cpu_engine()};
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .compile = tilus_matmul_compile};
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK) {
        printf("no GPU (%s): the CPU engine\n", message);
        check(tilus_rt_open(&software, &rt, message, sizeof message), message);
    }
    check(tilus_matmul_open(rt, &options, &matmul), "opening the library");
}

/* ---- weights ------------------------------------------------------------------ */

/* Codes of 4 bits, [n, k] as PyTorch keeps them; a scale for each group of k. */
static uint8_t codes[N * K / 2];
static uint16_t scales[N * (K / GROUP)];

static void make_weights(void)
{
    uint32_t seed = 1;
    for (size_t i = 0; i < sizeof codes; i++)
        codes[i] = (uint8_t)((seed = seed * 1664525 + 1013904223) >> 24);
    for (size_t i = 0; i < N * (K / GROUP); i++)
        scales[i] = (uint16_t)tilus_encode("f16", 0.01 + 0.001 * (double)(i % 7));
}

/* Plans the part. n_tile is the whole's, 0 for the whole itself: a smaller problem might be
 * packed best in another form. */
static void plan_part(Part *part, int64_t n_tile)
{
    const tilus_matmul_problem problem = {.struct_size = sizeof problem, .weights = "u4",
                                          .result = "f32", .n = part->columns, .k = part->rows,
                                          .group = GROUP, .n_tile = n_tile};
    check(tilus_matmul_plan_create(matmul, &problem, 0, &part->plan), part->name);
    part->packed = allocate(tilus_matmul_packed_size(part->plan));
}

/* Packs the part from plain codes: for the whole the only way, for a part the slow one. */
static void pack_part(const Part *part, void *packed)
{
    size_t row = (size_t)part->rows / 2, groups = (size_t)part->rows / GROUP;
    uint8_t *own = allocate((size_t)part->columns * row);
    uint16_t *own_scales = allocate((size_t)part->columns * groups * 2);
    for (int64_t j = 0; j < part->columns; j++) {
        memcpy(own + j * row, codes + ((part->n + j) * K + part->k) / 2, row);
        memcpy(own_scales + j * groups, scales + (part->n + j) * (K / GROUP) + part->k / GROUP,
               groups * 2);
    }
    const tilus_matmul_weights weights = {.struct_size = sizeof weights, .codes = own,
                                          .scales = own_scales, .transposed = true};
    check(tilus_matmul_pack(part->plan, &weights, packed), "packing");
    free(own);
    free(own_scales);
}

/* Cuts the part out of the packed whole, and compares with packing it alone. */
static void cut_part(const Part *whole, Part *part)
{
    size_t size = tilus_matmul_packed_size(part->plan);
    void *alone = allocate(size);
    check(tilus_matmul_shard(whole->plan, whole->packed, part->plan, part->n, part->k,
                             part->packed), "cutting");
    pack_part(part, alone);
    if (memcmp(alone, part->packed, size) != 0)
        fprintf(stderr, "shards: error: %s differs from the part packed\n", part->name), exit(1);
    printf("%s: %lld x %lld from (%lld, %lld), %zu bytes\n", part->name,
           (long long)part->rows, (long long)part->columns, (long long)part->k,
           (long long)part->n, size);
    free(alone);
}

/* ---- products ------------------------------------------------------------------- */

/* c[M, columns] = a[:, k .. k + rows] x the part, on the device. */
static void multiply(const Part *part, const uint16_t *a, float *c)
{
    size_t bytes = tilus_matmul_packed_size(part->plan);
    size_t room = tilus_matmul_workspace_size(part->plan, M);
    size_t a_size = (size_t)(M * part->rows) * 2, c_size = (size_t)(M * part->columns) * 4;
    uint16_t *own = allocate(a_size);
    uint64_t memory;
    for (int64_t i = 0; i < M; i++)
        memcpy(own + i * part->rows, a + i * K + part->k, (size_t)part->rows * 2);
    check(tilus_rt_allocate(rt, 0, bytes + room + a_size + c_size, &memory), "allocating");
    const tilus_matmul_call call = {
        .struct_size = sizeof call, .m = M, .weights = memory, .workspace = memory + bytes,
        .workspace_size = room, .a = memory + bytes + room,
        .c = memory + bytes + room + a_size};
    check(tilus_rt_upload(rt, 0, call.weights, part->packed, bytes), "uploading");
    check(tilus_rt_upload(rt, 0, call.a, own, a_size), "uploading");
    check(tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES), "zeroing");
    check(tilus_matmul_prepare(part->plan, M), "preparing");
    check(tilus_matmul_run(part->plan, NULL, &call), "multiplying");
    check(tilus_rt_download(rt, 0, c, call.c, c_size), "downloading");
    check(tilus_rt_release(rt, 0, memory), "releasing");
    free(own);
}

/* Adds the part's result to c[M, N] at its columns: for columns this is a copy to where zeros
 * are, for rows the sum that ranks make by an all-reduce. */
static void add_result(const Part *part, const uint16_t *a, float *c)
{
    float *own = allocate((size_t)(M * part->columns) * 4);
    multiply(part, a, own);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < part->columns; j++)
            c[i * N + part->n + j] += own[i * part->columns + j];
    free(own);
}

static void compare(const char *name, const float *got, const float *expected)
{
    double error = 0, norm = 0;
    for (size_t i = 0; i < M * N; i++) {
        error += pow(got[i] - expected[i], 2);
        norm += pow(expected[i], 2);
    }
    error = sqrt(error / norm);
    printf("%s: the ranks' results differ from the whole's by %.1e of the norm\n", name, error);
    if (!(error < 1e-5))
        exit(1);
}

/* Runs the whole and the parts, and compares. */
static void check_products(const Part *whole, Part parts[2][RANKS])
{
    uint16_t a[M * K];
    float *expected = allocate(sizeof(float) * M * N);
    for (size_t i = 0; i < M * K; i++)
        a[i] = (uint16_t)tilus_encode("f16", sin((double)i));
    add_result(whole, a, expected);
    for (int way = 0; way < 2; way++) {
        float *c = allocate(sizeof(float) * M * N);
        for (int rank = 0; rank < RANKS; rank++)
            add_result(&parts[way][rank], a, c);
        compare(way ? "rows" : "columns", c, expected);
        free(c);
    }
    free(expected);
}

static void free_part(Part *part)
{
    tilus_matmul_plan_free(part->plan);
    free(part->packed);
}

int main(void)
{
    Part whole = {.name = "whole", .columns = N, .rows = K}, parts[2][RANKS];
    int64_t n_tile, k_tile;
    open_libraries();
    make_weights();
    plan_part(&whole, 0);
    pack_part(&whole, whole.packed);
    tilus_matmul_tile(whole.plan, &n_tile, &k_tile);
    for (int rank = 0; rank < RANKS; rank++) {
        parts[0][rank] = (Part){.name = "columns", .n = rank * (N / RANKS),
                                .columns = N / RANKS, .rows = K};
        parts[1][rank] = (Part){.name = "rows", .k = rank * (K / RANKS), .columns = N,
                                .rows = K / RANKS};
        for (int way = 0; way < 2; way++) {
            plan_part(&parts[way][rank], n_tile);
            cut_part(&whole, &parts[way][rank]);
        }
    }
    check_products(&whole, parts);
    for (int i = 0; i < 2 * RANKS; i++)
        free_part(&parts[i % 2][i / 2]);
    free_part(&whole);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    return 0;
}
