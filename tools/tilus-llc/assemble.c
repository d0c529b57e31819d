/* PTX to cubin, by the ptxas of a CUDA toolkit. */
#include "tool.h"

#include "common/ptxas.h"

#include <stdio.h>
#include <stdlib.h>

bool assembler_wanted(const LlcSettings *s)
{
    const char *given = getenv("TILUS_PTXAS");
    char path[PTXAS_PATH], why[PTXAS_PATH + 128];
    return s->ptxas || (given && *given) || ptxas_find(path, why, sizeof why);
}

char *assemble(const LlcSettings *s, const char *ptx, size_t *size, char **log)
{
    char path[PTXAS_PATH], why[PTXAS_PATH + 128];
    *log = NULL;
    if (s->ptxas || ptxas_find(path, why, sizeof why))
        return ptxas_assemble("tilus-llc", s->ptxas ? s->ptxas : path, s->cpu, ptx, false, size,
                              log);
    fprintf(stderr, "tilus-llc: error: %s\n", why);
    return NULL;
}
