/* Finding ptxas. */
#include "common/ptxas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Writes the first "<dir>/ptxas" that can be run, of the directories in
 * `list` (separated by colons). */
static bool search(const char *list, char path[PTXAS_PATH])
{
    for (const char *dir = list; *dir;) {
        size_t len = strcspn(dir, ":");
        int need = snprintf(path, PTXAS_PATH, "%.*s/ptxas", (int)len, dir);
        if (need > 0 && need < PTXAS_PATH && access(path, X_OK) == 0)
            return true;
        dir += len + (dir[len] == ':');
    }
    return false;
}

bool ptxas_find(char path[PTXAS_PATH], char *why, size_t size)
{
    const char *given = getenv("TILUS_PTXAS"), *list = getenv("PATH");
    if (given && *given) {
        snprintf(path, PTXAS_PATH, "%s", given);
        if (access(path, X_OK) == 0)
            return true;
        snprintf(why, size, "TILUS_PTXAS names '%s': %s", given, strerror(errno));
        return false;
    }
    if ((list && search(list, path)) || search("/usr/local/cuda/bin", path))
        return true;
    snprintf(why, size, "found no ptxas to make a cubin: set TILUS_PTXAS, or have it in PATH "
             "or /usr/local/cuda/bin");
    return false;
}
