/* Public API: which target suits a device. */
#include "tilus/tilus.h"

#include <stdlib.h>
#include <string.h>

const char *tilus_target_for(int capability)
{
    const char *best = NULL, *name;
    int best_number = 0;
    for (size_t i = 0; (name = tilus_target_name(i)); i++) {
        int number = atoi(name + strlen("sm_"));
        /* Code for an architecture's own features ("a") runs nowhere else. */
        bool specific = name[strlen(name) - 1] == 'a';
        if (number > capability || number < best_number || (specific && number != capability))
            continue;
        if (number > best_number || specific) {
            best = name;
            best_number = number;
        }
    }
    return best;
}
