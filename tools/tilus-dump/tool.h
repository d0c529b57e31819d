/* tilus-dump: shows an artefact. */
#ifndef TILUS_DUMP_TOOL_H
#define TILUS_DUMP_TOOL_H

#include "tilus/artefact.h"

#include <stddef.h>

/* A file that was read. */
typedef struct File {
    const char *name;
    size_t size;                /* bytes */
    unsigned format;            /* version of it */
} File;

/* Prints to stdout what is in `artefact`, a file's: as a table, as JSON. */
void show_table(const tilus_artefact *artefact, const File *file);
void show_json(const tilus_artefact *artefact, const File *file);

#endif
