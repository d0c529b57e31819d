// The same headers in C++.
#include <cstddef>

#include "alone.h"
#include "scale.h"
#include "tilus.h"

tilus_status launch_all(tilus_rt *rt, std::size_t *size)
{
    tilus_kernel *kernel = nullptr;
    tilus_status status = scale_create(rt, &kernel);
    if (status == TILUS_OK)
        status = scale_workspace_size(kernel, 4096, 256, 7, -1, size);
    if (status == TILUS_OK)
        status = kernel_tilus_launch(kernel, nullptr, 1, 2, 3, 4, 5, 6, 7, 8, 9);
    return status == TILUS_OK ? alone_launch(kernel, nullptr) : status;
}
