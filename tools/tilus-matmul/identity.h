/* The identity of packed weights, which stands in a file's metadata as JSON: what they are, for
 * which device they were planned, and a checksum. */
#ifndef TILUS_MATMUL_IDENTITY_H
#define TILUS_MATMUL_IDENTITY_H

#include "tilus-matmul/tool.h"

#include <jansson.h>

enum { IDENTITY_FORM = 1, IDENTITY_KEY = 512 };

/* The key of a tensor's identity, "tilus.NAME"; cut off where the name is too long. */
void identity_key(const char *tensor, char key[static IDENTITY_KEY]);

/* NULL when memory runs out; freed with free(). */
char *identity_write(const tilus_matmul_problem *problem, const tilus_matmul_plan *plan,
                     const char *device, const char sum[static CHECKSUM]);

typedef struct Identity {
    json_t *root;               /* owns the texts; json_decref */
    tilus_matmul_problem problem;
    const char *device, *checksum;
} Identity;

/* Reads what the metadata have of a tensor. False after a message, with nothing to free. */
bool identity_read(const Source *source, const char *tensor, Identity *identity);

#endif
