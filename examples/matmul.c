/* c = a x W^T by the weights of a file, quantised to 4 bits; docs/matmul.md reads it line by
 * line. The file ends in f32[N, K], raw or .npy: matmul FILE N K [DIRECTORY OF KERNELS] */
#include "tilus/matmul.h"
#include "tilus/tilus.h"
#include <math.h>
#include <stdlib.h>
enum { GROUP = 128 };
#define TRY(calls) if (calls) return fprintf(stderr, "%s\n", tilus_rt_error()), 1

static void quantise(long g, const float *w, void *codes, uint16_t *scales, uint8_t *zeros)
{
    float low = 0, high = 0;
    for (long i = 0; i < GROUP; i++) low = fminf(low, w[i]), high = fmaxf(high, w[i]);
    scales[g] = tilus_encode("f16", (high - low) / 15 + 1e-6);
    double step = tilus_decode("f16", scales[g]);
    zeros[g] = tilus_encode("u4", -low / step);
    for (long i = 0; i < GROUP; i++)
        tilus_set_bits(codes, g * GROUP + i, 4, tilus_encode("u4", w[i] / step + zeros[g]));
}

int main(int argc, char **argv)
{
    long n = argc > 3 ? atol(argv[2]) : 0, k = argc > 3 ? atol(argv[3]) : 0, all = n * k;
    FILE *in = n > 0 && k > 0 && k % GROUP == 0 ? fopen(argv[1], "rb") : NULL;
    float *w = calloc(all, 4);
    uint8_t *codes = calloc(all, 1), *zeros = calloc(all / GROUP, 1);
    uint16_t *scales = calloc(all / GROUP, 2), *a = calloc(k, 2), *c = calloc(n, 2);
    if (!in || fseek(in, -4 * all, SEEK_END) || fread(w, 4, all, in) != (size_t)all)
        return fprintf(stderr, "usage: matmul FILE N K [DIRECTORY], K in 128s\n"), 2;
    for (long g = 0; g < all / GROUP; g++) quantise(g, w + g * GROUP, codes, scales, zeros);
    for (long i = 0; i < k; i++) a[i] = tilus_encode("f16", sin(i));

    tilus_rt *rt; tilus_matmul *matmul; tilus_matmul_plan *plan; uint64_t memory;
    const tilus_matmul_options from = {.directory = argv[4], .compile = tilus_matmul_compile};
    const tilus_matmul_problem problem = {.weights = "u4", .n = n, .k = k, .group = GROUP,
                                          .zeros = TILUS_ZEROS_INTEGER};
    TRY(tilus_rt_open(NULL, &rt, NULL, 0) || tilus_matmul_open(rt, &from, &matmul) ||
        tilus_matmul_plan_create(matmul, &problem, 0, &plan) || tilus_matmul_prepare(plan, 1));
    size_t bytes = tilus_matmul_packed_size(plan), room = tilus_matmul_workspace_size(plan, 1);
    void *packed = malloc(bytes);
    TRY(tilus_matmul_pack(plan, &(tilus_matmul_weights){codes, scales, zeros, true}, packed) ||
        tilus_rt_allocate(rt, 0, bytes + room + 2 * (k + n), &memory));
    const tilus_matmul_call call = {
        .m = 1, .weights = memory, .workspace = memory + bytes, .workspace_size = room,
        .a = memory + bytes + room, .c = memory + bytes + room + 2 * k};
    TRY(tilus_rt_upload(rt, 0, call.weights, packed, bytes) ||
        tilus_rt_fill(rt, 0, call.workspace, 0, TILUS_MATMUL_SEMAPHORES) ||
        tilus_rt_upload(rt, 0, call.a, a, 2 * k) || tilus_matmul_run(plan, NULL, &call) ||
        tilus_rt_download(rt, 0, c, call.c, 2 * n));
    double error = 0, norm = 0;
    for (long row = 0; row < n; row++) {
        double sum = 0;
        for (long i = 0; i < k; i++) sum += tilus_decode("f16", a[i]) * w[row * k + i];
        error += pow(tilus_decode("f16", c[row]) - sum, 2), norm += sum * sum;
    }
    printf("%ld x %ld: an error of %.3f of the norm\n", n, k, sqrt(error / norm));
    tilus_matmul_plan_free(plan), tilus_matmul_close(matmul), tilus_rt_close(rt);
    return !(error < 0.04 * norm);
}
