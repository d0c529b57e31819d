/* The numbers that a launch computes from its arguments. */
#ifndef TILUS_SUPPORT_KERNEL_MAP_H
#define TILUS_SUPPORT_KERNEL_MAP_H

#include "support/report.h"
#include "tilus/kernel.h"

/* Operands that the machine of codes holds at once. Expressions nest less deep than
 * this (LIMIT_DEPTH), and each level adds at most one. */
enum { KERNEL_STACK = 1024 };

/* Runs `length` codes; returns NULL and sets `*out`, or what is wrong. */
const char *kernel_codes_run(const tilus_code *code, size_t length, const tilus_arg *args,
                             size_t arg_count, int64_t *out);

/* The numbers that a tensor map is made of, dimensions as in tilus_tensor_map. */
typedef struct KernelMapValues {
    uint64_t address;
    int64_t extents[TILUS_MAP_RANK];
    int64_t strides[TILUS_MAP_RANK];    /* bytes; the last is an element's */
} KernelMapValues;

/* Bytes of an element. */
unsigned kernel_map_element(tilus_map_type type);

/* Computes the numbers of map `number` of a launch with arguments that fit `info`; false when
 * the hardware cannot take one, which `r` names. */
bool kernel_map_values(const tilus_kernel_info *info, size_t number, const tilus_arg *args,
                       KernelMapValues *values, Report r);

#endif
