/* Prints what an H200 would get, without a GPU. */
#include "bench.h"

#include "matmul/internal.h"
#include "target/target.h"

#include <math.h>
#include <stdio.h>

/* Compute capability 9.0, and what the runtime says of it. */
enum { CAPABILITY = 90, MULTIPROCESSORS = 132, SHARED = 227 * 1024 };

static MatmulDevice h200(void)
{
    return matmul_device("NVIDIA H200", CAPABILITY, MULTIPROCESSORS, SHARED);
}

/* NULL after a failure, which stands on stderr. The library outlives the plan. */
static tilus_matmul_plan *open_plan(const Settings *s, tilus_matmul **matmul)
{
    const tilus_matmul_options options = {.struct_size = sizeof options,
                                          .tunings = s->tunings_text};
    const MatmulDevice device = h200();
    tilus_matmul_plan *plan = NULL;
    tilus_status status = matmul_open_absent(&options, matmul);
    if (status == TILUS_OK)
        status = plan_create_absent(*matmul, &s->problem, &device, &plan);
    if (status != TILUS_OK)
        fprintf(stderr, BENCH_USER ": %s\n", tilus_rt_error());
    return plan;
}

static void close_plan(tilus_matmul_plan *plan, tilus_matmul *matmul)
{
    tilus_matmul_plan_free(plan);
    tilus_matmul_close(matmul);
}

int dry_rows(const Settings *s)
{
    tilus_matmul *matmul = NULL;
    tilus_matmul_plan *plan = open_plan(s, &matmul);
    for (size_t i = 0; plan && i < s->size_count; i++) {
        char configuration[CONFIGURATION_MAX];
        row_configuration(plan, s->sizes[i], configuration);
        const Row row = {.device = plan->device.name, .driver = "", .m = s->sizes[i],
                         .configuration = configuration, .cublas_layout = "",
                         .us = NAN, .kernel_us = NAN, .chain_us = NAN,
                         .flush_us = NAN, .cublas_us = NAN, .error = NAN};
        row_print(s, &plan->spec, &row);
    }
    close_plan(plan, matmul);
    return plan ? EXIT_OK : EXIT_DIAGNOSTICS;
}

static void print_kernel(const Kernel *kernel)
{
    printf("%s\t%s\t%s\n", kernel->name, kernel->program,
           kernel->parameters);
}

/* Lists kernels, also those that decode for cuBLAS, which the GPU's machine may have. */
int dry_kernels(const Settings *s)
{
    tilus_matmul *matmul = NULL;
    tilus_matmul_plan *plan = open_plan(s, &matmul);
    if (plan)
        print_kernel(plan->pack[true]);
    for (size_t i = 0; plan && i < s->size_count; i++) {
        const Choice *choice = plan_choice(plan, s->sizes[i]);
        if (choice->prepare)
            print_kernel(choice->prepare);
        print_kernel(choice->product);
        if (s->sizes[i] >= MATMUL_DENSE_M)
            print_kernel(unpack_kernel(plan, plan->spec.product));
    }
    close_plan(plan, matmul);
    return plan ? EXIT_OK : EXIT_DIAGNOSTICS;
}

static void print_product(void *data, const MatmulConfig *config)
{
    const MatmulSpec *spec = data;
    char name[MATMUL_NAME_MAX], parameters[MATMUL_TEXT_MAX];
    MatmulProgram program = matmul_product_program(config);
    matmul_name(spec, config, program, target_name_for(CAPABILITY), name);
    matmul_parameters(spec, config, program, parameters);
    printf("%s\t%s\t%s\n", name, matmul_program_name(program), parameters);
}

int dry_space(const Settings *s, const MatmulSpec *spec)
{
    MatmulSpec copy = *spec;
    const MatmulDevice device = h200();
    matmul_enumerate(spec, 0, s->sizes[s->size_count - 1], &device, print_product, &copy);
    return EXIT_OK;
}
