/* Finding ptxas and nvdisasm. */
#include "common/ptxas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* CUDA's usual place. */
static const char usual[] = "/usr/local/cuda/bin";

/* Writes the first "<dir>/<name>" that can be run, of the directories in
 * `list` (separated by colons). */
static bool search(const char *list, const char *name, char path[PTXAS_PATH])
{
    for (const char *dir = list; *dir;) {
        size_t len = strcspn(dir, ":");
        int need = snprintf(path, PTXAS_PATH, "%.*s/%s", (int)len, dir, name);
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
    if ((list && search(list, "ptxas", path)) || search(usual, "ptxas", path))
        return true;
    snprintf(why, size, "found no ptxas to make a cubin: set TILUS_PTXAS, or have it in PATH "
             "or /usr/local/cuda/bin");
    return false;
}

bool nvdisasm_find(const char *ptxas, char path[PTXAS_PATH])
{
    const char *slash = strrchr(ptxas, '/'), *list = getenv("PATH");
    int folder = slash ? (int)(slash - ptxas) : 0;
    int need = snprintf(path, PTXAS_PATH, "%.*s/nvdisasm", folder, ptxas);
    if (slash && need < PTXAS_PATH && access(path, X_OK) == 0)
        return true;
    return (list && search(list, "nvdisasm", path)) || search(usual, "nvdisasm", path);
}
