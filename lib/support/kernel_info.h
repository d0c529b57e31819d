/* Checks of a kernel's expressions before they run, and kinds of its arguments. */
#ifndef TILUS_SUPPORT_KERNEL_INFO_H
#define TILUS_SUPPORT_KERNEL_INFO_H

#include "support/kernel_map.h"

/* Returns the fault of `length` codes over the arguments of `info`, in words, or NULL: then
 * they run without over- or underflow of the stack, leave one number, and nest no deeper
 * than the language allows. */
const char *kernel_codes_fault(const tilus_kernel_info *info, const tilus_code *code,
                               size_t length);

/* Returns true for an argument that expressions may use. */
static inline bool kernel_arg_is_integer(tilus_arg_kind kind)
{
    return kind == TILUS_ARG_I32 || kind == TILUS_ARG_U32 || kind == TILUS_ARG_I64;
}

static inline bool kernel_arg_is_float(tilus_arg_kind kind)
{
    return kind == TILUS_ARG_F16 || kind == TILUS_ARG_BF16 || kind == TILUS_ARG_F32;
}

/* The code of `value`, rounded to the type of a float argument, as dtype_encode gives it. */
uint32_t kernel_float_code(tilus_arg_kind kind, double value);

#endif
