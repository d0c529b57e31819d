/* A program's signature as people read it: spelled as in program text. */
#ifndef TILUS_TOOLS_SIGNATURE_H
#define TILUS_TOOLS_SIGNATURE_H

#include "tilus/kernel.h"

#include <stdio.h>

/* Prints `length` codes over the arguments of `info` as an expression,
 * "ceil_div(%m, 64)"; they are codes that can be run. */
void signature_print_expr(FILE *out, const tilus_kernel_info *info, const tilus_code *codes,
                          size_t length);

/* Prints "<ceil_div(%m, 64), %n / 8>". */
void signature_print_grid(FILE *out, const tilus_kernel_info *info);

/* Prints "ptr<f16> {align = 16}", "i32 {divisible = 8, range = [0, 1024]}": the type, and
 * the facts that its type does not imply. */
void signature_print_arg(FILE *out, const tilus_arg_info *arg);

/* Prints a workspace tensor's elements and extents, and whether it starts as zeros:
 * "32 bits[%m / 8, 4], zeroed". */
void signature_print_tensor(FILE *out, const tilus_kernel_info *info,
                            const tilus_workspace_tensor *tensor);

/* The type of a tensor map's elements: "f16", or "8-bit" where types are alike; and all of
 * the map: "f16[%m, %k] strides(%k * 2) box(64, 64) swizzle 128, promotion 256 bytes". */
const char *signature_map_type(const tilus_tensor_map *map);
void signature_print_map(FILE *out, const tilus_kernel_info *info, const tilus_tensor_map *map);

#endif
