/* Plans a product and says which kernels it needs, if there is a device to plan for. */
#include <stdio.h>
#include <stdlib.h>
#include <tilus/matmul.h>

int main(void)
{
    const tilus_matmul_problem problem = {.struct_size = sizeof problem,
                                          .weights = "u4", .n = 4096, .k = 4096, .group = 128};
    char message[256];
    tilus_rt *rt;
    tilus_matmul *matmul;
    tilus_matmul_plan *plan;
    if (tilus_rt_open(NULL, &rt, message, sizeof message) != TILUS_OK)
        return printf("device: %s\n", message), 1;
    if (tilus_matmul_open(rt, NULL, &matmul) != TILUS_OK ||
        tilus_matmul_plan_create(matmul, &problem, 0, &plan) != TILUS_OK)
        return printf("%s\n", tilus_rt_error()), 1;
    printf("packed: %zu bytes\n", tilus_matmul_packed_size(plan));
    char *kernels = tilus_matmul_kernels(plan, 1);
    printf("kernels: %s", kernels);
    free(kernels);
    tilus_status status = tilus_matmul_prepare(plan, 1);
    printf("%s: %s\n", tilus_status_name(status), tilus_rt_error());
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
    tilus_rt_close(rt);
    return 0;
}
