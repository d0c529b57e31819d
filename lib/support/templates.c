/* The templates of programs. */
#include "support/templates.h"

#include <stddef.h>
#include <string.h>

static const struct {
    const char *library, *program, *template;
} programs[] = {
#define PROGRAM(library, program, template) {#library, #program, #template},
#include "support/templates.def"
};

const char *template_of(const char *library, const char *program)
{
    const char *template = library;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].library, library) != 0)
            continue;
        template = programs[i].template;
        if (!strcmp(programs[i].program, program))
            break;
    }
    return template;
}
