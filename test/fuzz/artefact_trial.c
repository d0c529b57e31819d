/* Checks a reader of artefacts, whatever bytes it is given. */
#include "artefact_trial.h"

#include "artefact_format.h"

#include <stdlib.h>
#include <string.h>

/* Checks a launch with every argument 0: facts may refuse it, but no code may be one
 * that the machine cannot run. */
static const char *launch(const tilus_kernel_info *info)
{
    char message[256];
    int64_t grid[3];
    size_t size, zeroed;
    tilus_arg *args = calloc(info->arg_count + 1, sizeof *args);
    if (!args)
        return NULL;
    tilus_status status = tilus_kernel_check(info, args, info->arg_count, grid, message,
                                             sizeof message);
    const char *why = strstr(message, "malformed") ? "the grid's code cannot be run" : NULL;
    if (status == TILUS_OK) {
        tilus_kernel_workspace_size(info, args, &size, &zeroed, message, sizeof message);
        why = strstr(message, "malformed") ? "the workspace's code cannot be run" : why;
    }
    free(args);
    return why;
}

/* What is written is of the newest version: of an older file no other bytes are right, but
 * a reader must take them. */
static int is_written_as(const uint8_t *again, size_t again_size, const uint8_t *bytes,
                         size_t size)
{
    if (bytes[ARTEFACT_AT_VERSION] < TILUS_ARTEFACT_VERSION)
        return artefact_accepted(again, again_size);
    return again_size == size && memcmp(again, bytes, size) == 0;
}

static const char *write_again(const tilus_artefact *a, const uint8_t *bytes, size_t size)
{
    void *again;
    size_t again_size;
    tilus_status status = tilus_artefact_write(a, &again, &again_size);
    if (status != TILUS_OK)
        return status == TILUS_ERROR_MEMORY ? NULL : "what was read cannot be written";
    int same = is_written_as(again, again_size, bytes, size);
    free(again);
    return same ? NULL : "what was read is written as other bytes";
}

const char *artefact_trial(const uint8_t *bytes, size_t size)
{
    tilus_artefact *a;
    char message[256];
    tilus_status status = tilus_artefact_read(bytes, size, &a, message, sizeof message);
    if (status != TILUS_OK)
        return a || !*message ? "a refusal without a reason" : NULL;
    const char *why = write_again(a, bytes, size);
    why = why ? why : launch(a->info);
    free(a);
    return why;
}

int artefact_accepted(const uint8_t *bytes, size_t size)
{
    tilus_artefact *a;
    tilus_status status = tilus_artefact_read(bytes, size, &a, NULL, 0);
    free(a);
    return status == TILUS_OK;
}

static void put_number(uint8_t *at, uint64_t value, unsigned size)
{
    for (unsigned i = 0; i < size; i++)
        at[i] = (uint8_t)(value >> 8 * i);
}

void artefact_mend(uint8_t *bytes, size_t size)
{
    if (size < ARTEFACT_HEADER)
        return;
    put_number(bytes + ARTEFACT_AT_SIZE, size, 8);
    put_number(bytes + ARTEFACT_AT_CHECKSUM, artefact_checksum(bytes, size), 4);
}
