/* Checks of a launch by the library's engines, the same as a launcher's. */
#ifndef TILUS_API_LAUNCH_H
#define TILUS_API_LAUNCH_H

#include "ir/ir.h"
#include "tilus/tilus.h"

typedef struct LaunchSizes {
    int64_t grid[3];
    size_t workspace, zeroed;       /* bytes */
} LaunchSizes;

/* Checks every fact and that pointers are numbers of buffers in memory (whose addresses count
 * as aligned to 256 bytes). False after an error, which the module's diag holds. */
bool launch_check(Program *p, const tilus_kernel_info *info, const tilus_arg *args,
                  size_t count, const tilus_buffer *buffers, size_t buffer_count,
                  LaunchSizes *sizes);

#endif
