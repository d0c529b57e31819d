/* Holds the outputs of a compile until all of them are written. */
#define _GNU_SOURCE
#include "tool.h"

#include "common/file.h"

#include <stdlib.h>
#include <string.h>

bool outputs_add(Outputs *list, const char *path, char *bytes, size_t size)
{
    Output *items = realloc(list->items, (list->count + 1) * sizeof *items);
    char *copy = items ? strdup(path) : NULL;
    if (items)
        list->items = items;
    if (!copy) {
        free(bytes);
        return false;
    }
    list->items[list->count++] = (Output){copy, bytes, size};
    return true;
}

bool outputs_write(const Outputs *list, const char *input)
{
    bool ok = true;
    for (size_t i = 0; i < list->count; i++)
        ok &= file_check_output("tilus-llc", input, list->items[i].path);
    for (size_t i = 0; ok && i < list->count; i++)
        ok = file_write("tilus-llc", list->items[i].path, list->items[i].bytes,
                        list->items[i].size);
    return ok;
}

void outputs_free(Outputs *list)
{
    for (size_t i = 0; i < list->count; i++) {
        free(list->items[i].path);
        free(list->items[i].bytes);
    }
    free(list->items);
}
