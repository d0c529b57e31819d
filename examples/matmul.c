/* Computes c = a x W^T with the weights of a file, quantized to 4 bits:
 *
 *     matmul FILE N K [DIRECTORY OF KERNELS]
 *
 * The file ends in N x K numbers of f32, raw or as .npy. docs/matmul.md explains the steps. */
#include "tilus/matmul.h"
#include "tilus/tilus.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP = 128 };           /* weights that share a scale and a zero point */

static void fail(const char *what, const char *why)
{
    fprintf(stderr, "matmul: error: %s: %s\n", what, why);
    exit(1);
}

/* Ends the program where a call of the runtime or the matmul library failed. */
static void check(tilus_status status, const char *step)
{
    if (status != TILUS_OK)
        fail(step, tilus_rt_error());
}

static void *allocate(size_t size)
{
    void *memory = calloc(size, 1);
    if (!memory)
        fail("allocating", strerror(errno));
    return memory;
}

/* Reads the `count` numbers at the end of a file, behind the header that .npy has. */
static float *read_weights(const char *path, size_t count)
{
    float *weights = allocate(count * sizeof *weights);
    FILE *in = fopen(path, "rb");
    if (!in)
        fail(path, strerror(errno));
    if (fseek(in, -(long)(count * sizeof *weights), SEEK_END) != 0 ||
        fread(weights, sizeof *weights, count, in) != count)
        fail(path, "fewer than N x K numbers of f32");
    fclose(in);
    return weights;
}

/* Quantizes group `g` of the weights: (code - zero) * scale spans its least to its largest. */
static void quantize(size_t g, const float *w, void *codes, uint16_t *scales, uint8_t *zeros)
{
    float low = 0, high = 0;
    for (int i = 0; i < GROUP; i++) {
        low = fminf(low, w[i]);
        high = fmaxf(high, w[i]);
    }
    scales[g] = tilus_encode("f16", (high - low) / 15 + 1e-6);
    double scale = tilus_decode("f16", scales[g]);
    zeros[g] = tilus_encode("u4", -low / scale);
    for (int i = 0; i < GROUP; i++)
        tilus_set_bits(codes, g * GROUP + i, 4, tilus_encode("u4", w[i] / scale + zeros[g]));
}

/* Returns |c - a x W^T| / |a x W^T| with the weights as they were in the file. */
static double find_error(long n, long k, const uint16_t *a, const float *w, const uint16_t *c)
{
    double error = 0, norm = 0;
    for (long row = 0; row < n; row++) {
        double sum = 0;
        for (long i = 0; i < k; i++)
            sum += tilus_decode("f16", a[i]) * w[row * k + i];
        error += pow(tilus_decode("f16", c[row]) - sum, 2);
        norm += sum * sum;
    }
    return sqrt(error / norm);
}

/* Opens the GPUs; where there are none, an H200 that is described, whose kernels the CPU runs. */
static tilus_rt *open_devices(void)
{
    const tilus_rt_options options = {.struct_size = sizeof options,
                                      .devices = tilus_find_device("h200"), .device_count = 1,
                                      .engine = tilus_cpu_engine()};
    tilus_rt *rt;
    tilus_status status = tilus_rt_open(NULL, &rt, NULL, 0);
    if (status == TILUS_ERROR_NO_DRIVER || status == TILUS_ERROR_NO_DEVICE) {
        printf("%s: the CPU computes, as an H200 would\n", tilus_rt_error());
        status = tilus_rt_open(&options, &rt, NULL, 0);
    }
    check(status, "finding a GPU");
    return rt;
}

int main(int argc, char **argv)
{
    long n = argc > 3 ? atol(argv[2]) : 0, k = argc > 3 ? atol(argv[3]) : 0;
    if (n < 1 || n > 1 << 20 || k < GROUP || k > 1 << 23 || k % GROUP != 0 || argc > 5) {
        fprintf(stderr, "usage: matmul FILE N K [DIRECTORY OF KERNELS], with K a multiple of "
                "%d\n", GROUP);
        return 2;
    }

    /* Weights: 4 bits each, and for each group a scale and a zero point. */
    size_t count = (size_t)n * k, groups = count / GROUP;
    float *w = read_weights(argv[1], count);
    uint8_t *codes = allocate(count / 2), *zeros = allocate(groups);
    uint16_t *scales = allocate(groups * 2), *a = allocate(k * 2), *c = allocate(n * 2);
    for (size_t g = 0; g < groups; g++)
        quantize(g, w + g * GROUP, codes, scales, zeros);
    for (long i = 0; i < k; i++)
        a[i] = tilus_encode("f16", sin(i));

    /* A plan: which kernels compute this problem on device 0. */
    tilus_rt *rt = open_devices();
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .directory = argv[4],
                                          .compile = tilus_matmul_compile};
    const tilus_matmul_problem problem = {.struct_size = sizeof problem,
                                          .weights = "u4", .n = n, .k = k, .group = GROUP,
                                          .zeros = TILUS_ZEROS_INTEGER};
    check(tilus_matmul_open(rt, &options, &matmul), "opening the library");
    check(tilus_matmul_plan_create(matmul, &problem, 0, &plan), "planning");
    check(tilus_matmul_prepare(plan, 1), "loading kernels");

    /* Packing, once; then one allocation for weights, workspace, a and c. */
    size_t bytes = tilus_matmul_packed_size(plan), room = tilus_matmul_workspace_size(plan, 1);
    void *packed = allocate(bytes);
    const tilus_matmul_weights weights = {sizeof weights, codes, scales, zeros,
                                          .transposed = true};
    uint64_t memory;
    check(tilus_matmul_pack(plan, &weights, packed), "packing");
    check(tilus_rt_allocate(rt, 0, bytes + room + 2 * (k + n), &memory), "allocating");
    const tilus_matmul_call call = {
        .struct_size = sizeof call,
        .m = 1, .weights = memory, .workspace = memory + bytes, .workspace_size = room,
        .a = memory + bytes + room, .c = memory + bytes + room + 2 * k};
    check(tilus_rt_upload(rt, 0, call.weights, packed, bytes), "uploading the weights");
    check(tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES), "zeroing");

    /* Running, as often as there are rows to multiply. */
    check(tilus_rt_upload(rt, 0, call.a, a, 2 * k), "uploading a");
    check(tilus_matmul_run(plan, NULL, &call), "running");
    check(tilus_rt_download(rt, 0, c, call.c, 2 * n), "downloading c");
    double error = find_error(n, k, a, w, c);
    printf("%ld x %ld: an error of %.3f of the norm\n", n, k, error);

    check(tilus_rt_release(rt, 0, memory), "releasing");
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    free(w), free(codes), free(zeros), free(scales), free(a), free(c), free(packed);
    return !(error < 0.2);
}
