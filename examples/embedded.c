/* A program without files: its kernel is an artefact in a header that the build makes of
 * kernels/silu_mul.tilus, with a function that creates the kernel and one that launches it.
 *
 *     embedded
 *
 * The rule is in examples/CMakeLists.txt. This program links libtilus_rt alone, no compiler.
 * Without a GPU it checks a launch's arguments on a software device. */
#include "silu_mul.h"

#include "tilus/types.h"

#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 4, N = 2048 };

static void check(tilus_status status, const char *step, const char *message)
{
    if (status == TILUS_OK)
        return;
    fprintf(stderr, "embedded: error: %s: %s: %s\n", step, tilus_status_name(status), message);
    exit(1);
}

/* Checks the facts of the arguments, as a launch does. */
static void check_arguments(const tilus_kernel *kernel)
{
    const tilus_kernel_info *info = tilus_kernel_artefact(kernel)->info;
    const tilus_arg args[] = {{.pointer = 4096}, {.pointer = 8192}, {.integer = ROWS},
                              {.integer = N}};
    char message[256] = "";
    int64_t grid[3];
    check(tilus_kernel_check(info, args, 4, grid, message, sizeof message), "checking", message);
    printf("@%s would run %lld x %lld blocks of %u threads\n", info->name, (long long)grid[0],
           (long long)grid[1], info->threads);
}

/* y = silu(x[:, :N]) * x[:, N:], of ones: 1 / (1 + 1 / e) each. */
static void run(tilus_rt *rt, tilus_kernel *kernel)
{
    static uint16_t x[ROWS * 2 * N], y[ROWS * N];
    uint64_t memory;
    for (size_t i = 0; i < ROWS * 2 * N; i++)
        x[i] = 0x3c00;
    check(tilus_kernel_prepare(kernel, 0), "preparing", tilus_rt_error());
    check(tilus_rt_allocate(rt, 0, sizeof x + sizeof y, &memory), "allocating", tilus_rt_error());
    check(tilus_rt_upload(rt, 0, memory, x, sizeof x), "uploading", tilus_rt_error());
    check(silu_mul_launch(kernel, NULL, memory, memory + sizeof x, ROWS, N), "launching",
          tilus_rt_error());
    check(tilus_rt_download(rt, 0, y, memory + sizeof x, sizeof y), "downloading",
          tilus_rt_error());
    check(tilus_rt_release(rt, 0, memory), "releasing", tilus_rt_error());
    printf("y[0] is %.4f\n", tilus_decode("f16", y[0]));
}

int main(void)
{
    char message[256] = "";
    const tilus_rt_options software = {.struct_size = sizeof software,
                                       .devices = tilus_find_device("h200"), .device_count = 1};
    tilus_rt *rt;
    tilus_kernel *kernel;
    bool has_device = tilus_rt_open(NULL, &rt, message, sizeof message) == TILUS_OK;
    if (!has_device)
        check(tilus_rt_open(&software, &rt, message, sizeof message), "opening", message);
    check(silu_mul_create(rt, &kernel), "loading", tilus_rt_error());
    check_arguments(kernel);
    if (has_device)
        run(rt, kernel);
    tilus_kernel_unload(kernel);
    tilus_rt_close(rt);
    return 0;
}
