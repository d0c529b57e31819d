/* The results of --profile and --bench, kept until --measured writes them. */
#ifndef TILUS_RUN_MEASURED_H
#define TILUS_RUN_MEASURED_H

#include "run.h"

/* Copies what lines did, if --measured wants it. */
void measured_keep_lines(Run *run, const tilus_line_profile *lines, size_t count);

/* Writes the file of --measured, if there is one. Returns an exit code. */
int measured_write(const Run *run);

#endif
