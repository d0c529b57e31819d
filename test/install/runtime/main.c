/* A launcher without a compiler: checks arguments against a program's facts and
 * asks for a device, which need not be there. */
#include <stdio.h>
#include <tilus/runtime.h>

int main(void)
{
    const tilus_arg_info n = {.name = "n", .kind = TILUS_ARG_I32, .dtype = "i32",
                              .divisible = 8, .min = 0, .max = 1024, .align = 1};
    const tilus_code extent = {TILUS_CODE_ARGUMENT, 0};
    const tilus_kernel_info info = {
        .name = "program", .arg_count = 1, .args = &n, .grid_rank = 1,
        .grid_length = {1}, .grid = {&extent}, .threads = 32};
    int64_t grid[3];
    char message[256];
    for (int64_t value = 16; value <= 17; value++) {
        tilus_arg arg = {.integer = value};
        tilus_status status = tilus_kernel_check(&info, &arg, 1, grid, message, sizeof message);
        printf("%s: %s\n", tilus_status_name(status),
               status == TILUS_OK ? "launchable" : message);
    }

    tilus_rt *rt;
    tilus_status status = tilus_rt_open(NULL, &rt, message, sizeof message);
    printf("device: %s\n", status == TILUS_OK ? tilus_rt_device_name(rt, 0) : message);
    tilus_rt_close(rt);
    return 0;
}
