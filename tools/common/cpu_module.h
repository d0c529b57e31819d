/* The matmul template's programs as modules, for launches by the CPU engine. */
#ifndef TILUS_TOOLS_CPU_MODULE_H
#define TILUS_TOOLS_CPU_MODULE_H

#include "tilus/tilus.h"

/* The template's text with "NAME=VALUE .." for its params, as it is compiled for `target`.
 * NULL after errors, which `diag` holds, and without memory. The caller frees it by
 * tilus_module_free; the text is copied. */
tilus_module *cpu_module_parse(tilus_diag *diag, const char *text, size_t size,
                               const char *parameters, const char *target);

/* The first error of `diag`, which may be NULL, else the status's name. As long as `diag`. */
const char *cpu_module_reason(const tilus_diag *diag, tilus_status status);

#endif
