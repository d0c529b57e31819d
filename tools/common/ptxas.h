/* Finds the ptxas of a CUDA toolkit. */
#ifndef TILUS_TOOLS_PTXAS_H
#define TILUS_TOOLS_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

enum { PTXAS_PATH = 4096 };

/* The path of the ptxas to run: the one that TILUS_PTXAS names, else the first of PATH and
 * of CUDA's usual place. False when there is none: why[0..size) then says so. */
bool ptxas_find(char path[PTXAS_PATH], char *why, size_t size);

#endif
