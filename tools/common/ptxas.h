/* Finds the ptxas and the nvdisasm of a CUDA toolkit, and runs them. */
#ifndef TILUS_TOOLS_PTXAS_H
#define TILUS_TOOLS_PTXAS_H

#include <stdbool.h>
#include <stddef.h>

enum { PTXAS_PATH = 4096 };

/* The path of the ptxas to run: the one that TILUS_PTXAS names, else the first of PATH and
 * of CUDA's usual place. False when there is none: why[0..size) then says so. */
bool ptxas_find(char path[PTXAS_PATH], char *why, size_t size);

/* The path of the nvdisasm beside a ptxas, else the first of PATH and of CUDA's usual place. False
 * when there is none. */
bool nvdisasm_find(const char *ptxas, char path[PTXAS_PATH]);

/* Runs `ptxas -v` on PTX: the cubin of `*size` bytes, which with `lines` names those of the program
 * text, and which the caller frees as it does `*log`, the figures and messages; NULL after a
 * message, which `tool` begins. Messages that are no figures are printed. */
char *ptxas_assemble(const char *tool, const char *ptxas, const char *cpu, const char *ptx,
                     bool lines, size_t *size, char **log);

/* The code of a cubin as nvdisasm prints it, with lines of the program text; the caller frees it.
 * NULL after a message, which `tool` begins. */
char *nvdisasm_print(const char *tool, const char *nvdisasm, const char *cubin, size_t size);

#endif
