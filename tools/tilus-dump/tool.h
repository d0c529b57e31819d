/* tilus-dump: shows an artefact. */
#ifndef TILUS_DUMP_TOOL_H
#define TILUS_DUMP_TOOL_H

#include "tilus/artefact.h"

/* Prints to stdout what is in `artefact`, a file of `size` bytes: as a table, as JSON. */
void show_table(const tilus_artefact *artefact, size_t size);
void show_json(const tilus_artefact *artefact, size_t size);

#endif
