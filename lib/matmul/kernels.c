/* Kernels by their names: programs of the template, with the parameters of a configuration. */
#include "matmul/internal.h"

#include <string.h>

_Static_assert((int)MATMUL_NAME_MAX == (int)KERNEL_NAME_MAX &&
               (int)MATMUL_TEXT_MAX == (int)KERNEL_PARAMETERS_MAX, "texts of kernels");
_Static_assert((int)MATMUL_ARGUMENTS <= (int)KERNEL_ARGUMENTS_MAX, "arguments of launches");

Kernel *kernel_find(tilus_matmul *matmul, const MatmulSpec *spec, const MatmulConfig *config,
                    MatmulProgram program, const char *target)
{
    Kernel wanted = {.program = matmul_program_name(program), .number = program,
                     .target = target};
    matmul_name(spec, config, program, target, wanted.name);
    matmul_parameters(spec, config, program, wanted.parameters);
    return kernel_library_find(&matmul->library, &wanted);
}

/* ---- arguments ---------------------------------------------------------- */

bool argument_order(const tilus_kernel_info *info, ArgumentOrder *order)
{
    static const char *const names[MATMUL_ARGUMENTS] = {
#define ARGUMENT(name) #name,
        MATMUL_ARGUMENT_NAMES(ARGUMENT)
#undef ARGUMENT
    };
    return argument_order_find(names, MATMUL_ARGUMENTS, info, order);
}

tilus_status kernel_check(Kernel *kernel, const tilus_kernel_info *info)
{
    if (argument_order(info, &kernel->order))
        return TILUS_OK;
    return argument_order_refuse(kernel->name, info, &kernel->order);
}
