/* Splitting `-D NAME=VALUE`. */
#include "common/defines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *copy_name(const char *text, size_t len)
{
    char *name = malloc(len + 1);
    if (name) {
        memcpy(name, text, len);
        name[len] = 0;
    }
    return name;
}

/* Returns NULL, or what is wrong. */
static const char *split(const char *item, tilus_define *define)
{
    const char *equals = strchr(item, '=');
    if (!equals || equals == item || !equals[1])
        return "option '-D' takes NAME=VALUE";
    define->name = copy_name(item, (size_t)(equals - item));
    define->value = equals + 1;
    return define->name ? NULL : "no memory for it";
}

bool defines_parse(const char *tool, const StringList *list, tilus_define **defines)
{
    *defines = calloc(list->count + 1, sizeof **defines);   /* calloc(0) may be NULL */
    for (size_t i = 0; *defines && i < list->count; i++) {
        const char *error = split(list->items[i], &(*defines)[i]);
        if (error) {
            fprintf(stderr, "%s: error: %s, got '%s'\n", tool, error, list->items[i]);
            defines_free(*defines, list->count);
            *defines = NULL;
            return false;
        }
    }
    if (!*defines)
        fprintf(stderr, "%s: error: out of memory\n", tool);
    return *defines != NULL;
}

void defines_free(tilus_define *defines, size_t count)
{
    for (size_t i = 0; defines && i < count; i++)
        free((char *)defines[i].name);
    free(defines);
}
