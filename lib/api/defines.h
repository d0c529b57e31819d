/* Template parameters as the parser takes them. */
#ifndef TILUS_API_DEFINES_H
#define TILUS_API_DEFINES_H

#include "syntax/syntax.h"
#include "tilus/tilus.h"

/* The public -D as the parser's, on the module's arena; texts are shared. */
static inline Define *api_defines(Module *m, const tilus_define *defines, size_t count)
{
    Define *copy = arena_array(&m->arena, Define, count);
    for (size_t i = 0; i < count; i++)
        copy[i] = (Define){defines[i].name, defines[i].value};
    return copy;
}

enum { DEFINES_MAX = 64 };

/* Cuts "NAME=VALUE .." into defines, in place; their count, or -1 where it is not of that
 * form. */
int defines_split(char *text, tilus_define defines[static DEFINES_MAX]);

#endif
