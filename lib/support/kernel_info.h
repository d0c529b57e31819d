/* Checks of a kernel's expressions before they run. */
#ifndef TILUS_SUPPORT_KERNEL_INFO_H
#define TILUS_SUPPORT_KERNEL_INFO_H

#include "tilus/kernel.h"

/* Returns the fault of `length` codes over the arguments of `info`, in words, or NULL: then
 * they run without over- or underflow of the stack, leave one number, and nest no deeper
 * than the language allows. */
const char *kernel_codes_fault(const tilus_kernel_info *info, const tilus_code *code,
                               size_t length);

#endif
