/* Parameters of templates as one text. */
#define _GNU_SOURCE
#include "api/defines.h"

#include <string.h>

int defines_split(char *text, tilus_define defines[static DEFINES_MAX])
{
    int count = 0;
    for (char *word = strsep(&text, " "); word; word = strsep(&text, " ")) {
        char *value = strchr(word, '=');
        if (!*word)
            continue;
        if (!value || value == word || count == DEFINES_MAX)
            return -1;
        *value = 0;
        defines[count++] = (tilus_define){word, value + 1};
    }
    return count;
}
